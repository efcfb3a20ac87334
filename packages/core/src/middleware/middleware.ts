import type { ChatRequest, ChatResponse } from '../chat/chat.ts'
import type { ChatModel } from '../chat/model.ts'
import type { NodeReturn } from '../graph/node.ts'
import type { Json, JsonObject } from '../json/json.ts'
import type { RunOutcomeTold } from '../run/steps/graph-hooks.ts'
import { looksLikeHook, requireHookName, type Said } from '../seams/hooks.ts'
import type { KeptOptions, OwnKeptScope } from '../seams/kept.ts'
import { requireDeclared } from '../seams/order.ts'
import {
  type Constraints,
  LAYER,
  type Layer,
  type NextOptions,
  type OwnMiddleware,
  type StreamGate,
  type WrapOutcome,
} from '../seams/own.ts'
import type { Seam } from '../seams/table.ts'
import { type StateOf, StateType, type UpdateFor } from '../state/state.ts'
import type { Awaitable } from '../store/store.ts'
import type { Tool } from '../tools/tool.ts'
import type {
  GraphMiddlewareContext,
  ModelMiddlewareContext,
  NodeMiddlewareContext,
  RoundMiddlewareContext,
  ToolMiddlewareContext,
} from './contexts.ts'
import { layerOf } from './layers.ts'

// biome-ignore lint/suspicious/noConfusingVoidType: a hook that has nothing to say returns nothing
type Nothing = undefined | void

/** What hooks may return, by the words they may use; see {@link HOOKS}. */
type Says<Word> = Awaitable<Word | Nothing>
type Retry = Said<'retry', { readonly delayMs?: number }>
type Fail = Said<'fail', string>
type Reject = Said<'reject', string>
type Suspend = Said<'suspend'>

/** Goes on with the call, with another input where one is given; gives an outcome and never throws. */
export type NextOf<Input, Value, Options = Pick<NextOptions, 'signal'>> = (
  input?: Input,
  options?: Options,
) => Promise<WrapOutcome<Value>>

/** The same at a model call, where another model may be asked: one, or the name of one in the runtime. */
export type NextOfModel = NextOf<
  Partial<ChatRequest>,
  ChatResponse,
  Pick<NextOptions, 'signal'> & { readonly model?: ChatModel | string }
>

/** A state's values and updates; any, where a middleware does not say for which state it is. */
// biome-ignore lint/suspicious/noExplicitAny: hooks of middleware for every graph may read any field
type Any = any

/** The hooks, by name. `S` is the state of the graph, `U` an update of it, `C` the run's context, `K` what is kept. */
export interface Hooks<S = Any, U = Any, C = unknown, K = unknown> {
  /** Observes the state before the first superstep, also of a run that goes on. */
  beforeGraph?(ctx: GraphMiddlewareContext<S, C, K>): Awaitable<Nothing>
  /** Observes the final state; only of a run that completes. */
  afterGraph?(ctx: GraphMiddlewareContext<S, C, K>): Awaitable<Nothing>
  /** Told once how the run ended, if `beforeGraph` was reached. */
  onRunEnd?(ctx: GraphMiddlewareContext<S, C, K>, outcome: RunOutcomeTold): Awaitable<Nothing>
  beforeNode?(ctx: NodeMiddlewareContext<S, C, K>): Says<Said<'replace', S> | Said<'answer', U> | Reject | Suspend>
  /** `ctx.state` is the update. */
  afterNode?(ctx: NodeMiddlewareContext<U, C, K>): Says<Said<'replace', NodeReturn<U>> | Fail>
  /** The first that returns something recovers the node with it. */
  onError?(ctx: NodeMiddlewareContext<S, C, K>, error: Any): Awaitable<NodeReturn<U> | Retry | Fail | Nothing>
  wrapNode?(state: S, next: NextOf<S, U>, ctx: NodeMiddlewareContext<S, C, K>): Awaitable<WrapOutcome<NodeReturn<U>>>
  beforeRound?(ctx: RoundMiddlewareContext<S, C, K>): Says<Reject>
  afterRound?(ctx: RoundMiddlewareContext<S, C, K>): Says<Fail>
  beforeModel?(
    ctx: ModelMiddlewareContext<S, C, K>,
  ): Says<Said<'replace', Partial<ChatRequest>> | Said<'answer', Partial<ChatResponse>> | Reject | Suspend>
  afterModel?(ctx: ModelMiddlewareContext<S, C, K>): Says<Said<'replace', ChatResponse> | Retry | Fail>
  /** The first that returns something recovers the call with it. */
  onModelError?(ctx: ModelMiddlewareContext<S, C, K>, error: Any): Awaitable<ChatResponse | Retry | Fail | Nothing>
  wrapModel?(
    request: ChatRequest,
    next: NextOfModel,
    ctx: ModelMiddlewareContext<S, C, K>,
  ): Awaitable<WrapOutcome<ChatResponse>>
  /** May throw `ToolDeniedError`, which is a `reject`. */
  beforeTool?(
    ctx: ToolMiddlewareContext<S, C, K>,
  ): Says<Said<'replace', JsonObject> | Said<'answer', unknown> | Reject | Suspend>
  afterTool?(ctx: ToolMiddlewareContext<S, C, K>): Says<Said<'replace', unknown> | Reject | Fail>
  /** Observes a tool that failed, or whose result does not fit. */
  onToolError?(ctx: ToolMiddlewareContext<S, C, K>, error: Any): Awaitable<Nothing>
  wrapTool?(
    args: JsonObject,
    next: NextOf<JsonObject, Json>,
    ctx: ToolMiddlewareContext<S, C, K>,
  ): Awaitable<WrapOutcome>
  /** Answers a question without a person: at once, or not at all. */
  onInterrupt?(ctx: NodeMiddlewareContext<S, C, K>, payload: Json): unknown
}

/**
 * Base class for hooks around graphs, nodes, rounds, model calls and tools. Override the hooks you need and give an instance to
 * a graph or an agent. `before…` hooks run in list order, `after…` hooks in reverse.
 *
 * @throws TypeError from the constructor for a method, static ones included, that looks like a hook and is none.
 */
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: the interface adds optional methods only, which need no initializer
export abstract class Middleware<S = Any, C = unknown, K = unknown> implements OwnMiddleware<S> {
  declare readonly '~reads'?: (state: S) => void
  declare readonly '~context'?: C
  /** Names it in order, errors and reports; the class's name without it. */
  readonly name: string
  /** Where it must stand among others. */
  readonly order?: Constraints
  /** What it keeps, as `ctx.kept` in its hooks. */
  readonly kept?: KeptOptions<K, OwnKeptScope>
  /** When parts of a streamed response leave; at once without it. */
  readonly stream?: StreamGate
  /** Names of tools that it treats in a way of their own, so that an agent without such a tool is refused: one of them is misspelt. */
  readonly aboutTools?: readonly string[]

  constructor() {
    requireHooks(this.constructor as Class)
    this.name = this.constructor.name
  }

  /** Tools that it provides. No node gets them by itself; an agent does. */
  tools(): Iterable<Tool> {
    return []
  }

  [LAYER](seam: Seam): Layer | undefined {
    return layerOf(this, seam)
  }
}
export interface Middleware<S, C, K> extends Hooks<S, Any, C, K> {}

interface MiddlewareOptions<T, K> {
  readonly name: string
  /** The state of the graphs that it is for, which may have more, so that hooks know its fields. */
  readonly state?: T
  readonly order?: Constraints
  readonly kept?: KeptOptions<K, OwnKeptScope>
  readonly stream?: StreamGate
  readonly aboutTools?: readonly string[]
  tools?(): Iterable<Tool>
}

type StateFor<T> = T extends StateType<never, never> | StateType ? StateOf<T> : Any
type UpdateOf<T> = T extends StateType<never, never> | StateType ? UpdateFor<T> : Any

/**
 * The same without a class: a name, and the hooks you need.
 *
 * @throws TypeError for a member that is none, and for a state, a scope of what is kept or a stream gate that is none.
 */
export function middleware<T = undefined, C = unknown, K = unknown>(
  options: MiddlewareOptions<T, K> & Hooks<StateFor<T>, UpdateOf<T>, C, K>,
): Middleware<StateFor<T>, C, K> {
  const { state, ...members } = options
  for (const [member, value] of Object.entries(members)) {
    if (MEMBERS.includes(member)) continue
    requireHookName(member, options.name)
    if (value !== undefined && typeof value !== 'function') {
      throw new TypeError(`middleware "${options.name}" gives a ${member} that is no function.`)
    }
  }
  requireDeclared(options as OwnMiddleware)
  const fields = state === undefined ? {} : { '~fields': fieldsOf(state, options.name) }
  return Object.assign(new Made(), members, fields) as unknown as Middleware<StateFor<T>, C, K>
}

function fieldsOf(state: unknown, name: string): readonly string[] {
  if (state instanceof StateType) return state.names
  throw new TypeError(`middleware "${name}" is for a state that is none; make one with state({ … }).`)
}

class Made extends Middleware {}

const MEMBERS = ['name', 'order', 'kept', 'stream', 'aboutTools', 'tools']

type Class = (abstract new (...args: never[]) => unknown) & { readonly prototype: object }

const checked = new WeakSet<object>()

/** Each class is looked at once, when its first instance is made. */
function requireHooks(made: Class): void {
  for (let known = made; known !== Function.prototype && !checked.has(known); known = Object.getPrototypeOf(known)) {
    for (const owner of [known, known.prototype]) {
      for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(owner))) {
        if (typeof value === 'function' && looksLikeHook(name)) requireHookName(name, known.name)
      }
    }
    checked.add(known)
  }
}
