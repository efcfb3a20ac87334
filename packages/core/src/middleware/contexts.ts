import type { ChatRequest, ChatResponse } from '../chat/chat.ts'
import type { ChatModel } from '../chat/model.ts'
import { SluiceError } from '../errors/error.ts'
import type { NodeRequest } from '../graph/context.ts'
import type { Json, JsonObject } from '../json/json.ts'
import { callModelBeside, callToolBeside } from '../run/calls/inner-calls.ts'
import type { ModelCall } from '../run/calls/model-call.ts'
import type { NodeCall } from '../run/calls/node-call.ts'
import type { ToolCall } from '../run/calls/tool-call.ts'
import type { Platform } from '../run/platform.ts'
import type { RunScope } from '../run/scope.ts'
import type { GraphPoint } from '../run/steps/graph-hooks.ts'
import type { Task } from '../run/task.ts'
import type { Call } from '../seams/call.ts'
import { Replacement, Said } from '../seams/hooks.ts'
import { type Keeper, type Kept, keptMissing } from '../seams/kept.ts'
import type { HookConsulted } from '../seams/own.ts'
import type { Caller } from '../seams/subject.ts'
import { after, wait } from '../seams/timer.ts'
import type { Round } from '../seams/verdict.ts'
import type { OutputOf, Schema } from '../state/schema.ts'
import type { AnyState } from '../state/state.ts'
import { MAIN } from '../store/store.ts'
import type { AskOptions } from '../tools/inside.ts'
import type { Tool } from '../tools/tool.ts'

/** What a hook may ask a person: shown as it is, but for the members the engine reads. */
export interface Ask {
  readonly [member: string]: unknown
  /** JSON Schema of the answers that are taken. */
  readonly schema?: object
  readonly expiresInMs?: number
  /** Stands where nobody answers in time; without it the call is refused then. */
  readonly default?: unknown
  /** `result`: the answer itself is what the call comes to. */
  readonly onAnswer?: 'result'
}

/** What every hook is given: where the run stands, what this middleware keeps, and calls of its own. */
abstract class HookContext<C, K> {
  readonly #call: Call
  readonly #consulted: HookConsulted
  readonly #name: string

  constructor(name: string, call: Call, consulted: HookConsulted) {
    this.#name = name
    this.#call = call
    this.#consulted = consulted
  }

  protected abstract get scope(): RunScope

  /** The call that the hook is consulted about. */
  protected get about(): Call {
    return this.#call
  }

  get graphName(): string {
    return this.scope.plan.name
  }
  /** The id of this call of `run`, or of the child run. */
  get runId(): string {
    return this.scope.runId
  }
  /** The id of the outermost run: the turn. */
  get rootRunId(): string {
    return this.scope.rootRunId
  }
  /** Absent in a run without a thread. */
  get threadId(): string | undefined {
    return this.scope.thread?.line.thread
  }
  get branchId(): string {
    return this.scope.thread?.line.branch ?? MAIN
  }
  /** Aborts when the run ends before the step does; in a wrap, also when one around it gives up the trip that it is part of. */
  get signal(): AbortSignal {
    const { until } = this.#consulted
    return until === undefined ? this.end : AbortSignal.any([this.end, until])
  }
  /** Aborts when nobody waits for the hook any more: later than what it is about, which may have failed. */
  protected get end(): AbortSignal {
    return this.#call.ends
  }
  /** What the caller of the run gave as `context`; it is never stored. */
  get context(): C {
    return this.scope.context as C
  }
  /** One set of the turn that only grows; what policies say joins it. */
  get labels(): readonly string[] {
    return [...this.scope.labels]
  }
  /** The go at this call, from 1. */
  get attempt(): number {
    return this.#call.attempt
  }
  get maxAttempts(): number {
    return this.#call.maxAttempts
  }
  /** Names the step, for example one model call with all its attempts: the same when it is entered anew, also in another process. */
  get callKey(): string {
    return this.#call.key
  }
  /** True when what this middleware keeps was changed by an earlier consultation about this very step: who counts, counts when it is false. */
  get revisit(): boolean {
    return this.#consulted.revisit
  }
  /** What a person answered to this middleware's own question about this very input. */
  get answered(): Json | undefined {
    return this.#consulted.answered
  }
  /**
   * What this middleware keeps, in the scope that it declared: durable on a thread, changed by one consultation at a time.
   *
   * @throws SluiceError `KEPT_MISSING` when it declared nothing.
   */
  get kept(): Kept<K> {
    const { kept } = this.#consulted
    if (kept !== undefined) return kept as Kept<K>
    throw keptMissing(this.#name)
  }
  /** The clock, timers, ids and hashing of the runtime: what a hook needs of time and chance it takes from here. */
  get platform(): Platform {
    return this.scope.runtime.platform
  }
  /**
   * Waits so many milliseconds; less, when a wrap around this one gives up. When the run or the step ends before, it stays
   * pending, and its timer is gone.
   */
  wait(ms: number): Promise<void> {
    return wait(this.scope.timers, this.end, ms, this.#consulted.until)
  }
  /**
   * Does something that may take `ms` milliseconds: then its signal aborts, with a `CALL_TIMED_OUT` that says that `what` timed
   * out. Hand the signal to `next`, which then ends with that error.
   */
  async within<V>(ms: number, what: string, work: (signal: AbortSignal) => V | Promise<V>): Promise<V> {
    const controller = new AbortController()
    const timedOut = () => controller.abort(new SluiceError('CALL_TIMED_OUT', `${what} timed out after ${ms} ms`))
    const done = after(this.scope.timers, this.end, ms, timedOut)
    try {
      return await work(controller.signal)
    } finally {
      done()
    }
  }
  /** Says something to whoever looks at the run: a `warning` event. */
  warn(message: string): void {
    this.#call.site.warn({ message: `middleware "${this.#name}": ${message}`, middleware: this.#name })
  }
  /** Asks a model beside the run: past the policies, past no middleware of the graph, off the user's stream. */
  callModel(model: ChatModel | string, request: NodeRequest): Promise<ChatResponse> {
    return callModelBeside(this.scope, this.#call, model, request)
  }
  /** Runs a tool beside the run, past the policies. */
  callTool(tool: Tool | string, input: JsonObject): Promise<Json> {
    return callToolBeside(this.scope, this.#call, tool, input)
  }
}

/** Context of `beforeGraph`, `afterGraph` and `onRunEnd`. */
export class GraphMiddlewareContext<S = JsonObject, C = unknown, K = unknown> extends HookContext<C, K> {
  protected override get about(): GraphPoint {
    return super.about as GraphPoint
  }
  protected get scope(): RunScope {
    return this.about.scope
  }
  /** The run's state as of its last superstep; it cannot be changed. */
  get state(): S {
    return this.scope.lastState as S
  }
  /** Whether the run goes on where an earlier one stopped. */
  get resuming(): boolean {
    return this.scope.resuming
  }
  /** Shared by these hooks of all middleware over one run. */
  get scratch(): Record<string, unknown> {
    return this.scope.scratch
  }
}

/** What hooks inside a node are given. */
abstract class TaskContext<S, C, K> extends HookContext<C, K> {
  protected abstract get task(): Task

  protected get scope(): RunScope {
    return this.task.scope
  }
  get nodeName(): string {
    return this.task.node.name
  }
  get nodeType(): string {
    return this.task.node.type
  }
  get taskId(): string {
    return this.task.taskId
  }
  /** The superstep of this run, from 0. */
  get step(): number {
    return this.task.step
  }
  /** The state that the node received; it cannot be changed. */
  get state(): S {
    return this.task.input as S
  }
  /** The node's input as stored, before any replacement. */
  get storedState(): S {
    return this.task.given as S
  }
  /** Shared by the hooks of all middleware over one execution of the node. */
  get scratch(): Record<string, unknown> {
    return this.task.scratch
  }
}

/** Context of the node hooks. */
export class NodeMiddlewareContext<S = JsonObject, C = unknown, K = unknown> extends TaskContext<S, C, K> {
  readonly #state: unknown
  readonly #keeper: Keeper | undefined

  constructor(name: string, call: Call, consulted: HookConsulted, state: unknown = (call as NodeCall).input) {
    super(name, call, consulted)
    this.#state = state
    this.#keeper = consulted.keeper
  }
  protected override get about(): NodeCall {
    return super.about as NodeCall
  }
  protected get task(): Task {
    return this.about.task
  }
  /** The node's input in `beforeNode` and `onError`, as earlier middleware left it; its update in `afterNode`. */
  override get state(): S {
    return this.#state as S
  }
  /** How many tasks this superstep has. */
  get superstepSize(): number {
    return this.scope.superstepSize
  }
  get stateSchema(): AnyState {
    return this.scope.plan.state
  }
  /**
   * Asks a person under a key of the node, and waits; see {@link NodeContext.ask}. Meanwhile other consultations of this
   * middleware may change what it keeps.
   */
  ask<A extends Schema = Schema<Json>>(id: string, payload: Json, options?: AskOptions<A>): Promise<OutputOf<A>> {
    const ask = () => this.task.askBeside(id, payload, options)
    return this.#keeper === undefined ? ask() : this.#keeper.aside(ask)
  }
  /** In `beforeNode`: another input, which is not stored. In `afterNode`: another update, or what else a node may return. */
  replace<V>(value: V): Replacement<V> {
    return new Replacement(value)
  }
  /** The node does not run; this is its update. */
  answer<V>(update: V): Said<'answer', V> {
    return new Said('answer', update)
  }
  /** The run ends. */
  reject(reason: string): Said<'reject', string> {
    return new Said('reject', reason)
  }
  /** A person is asked, and the node waits; the answer comes back as `ctx.answered`. */
  suspend(ask: Ask): Said<'suspend', Ask> {
    return new Said('suspend', ask)
  }
  /** The node runs again, from `beforeNode`. */
  retry(options: { readonly delayMs?: number } = {}): Said<'retry', { readonly delayMs?: number }> {
    return new Said('retry', options)
  }
  /** The run ends, and nobody may use what the node did. */
  fail(reason: string): Said<'fail', string> {
    return new Said('fail', reason)
  }
}

/** Context of `beforeRound` and `afterRound`. */
export class RoundMiddlewareContext<S = JsonObject, C = unknown, K = unknown> extends TaskContext<S, C, K> {
  /** The names of the tools that the round ran; none before it did. */
  declare readonly toolCalls: readonly string[]

  constructor(name: string, call: Call, consulted: HookConsulted, toolCalls: readonly string[] = []) {
    super(name, call, consulted)
    this.toolCalls = toolCalls
  }
  protected get task(): Task {
    return this.about.maker as Task
  }
  /** From 1. */
  get round(): number {
    return (this.about.given as unknown as Round).round
  }
  get maxRounds(): number {
    return (this.about.given as unknown as Round).maxRounds
  }
  /** The node fails. */
  reject(reason: string): Said<'reject', string> {
    return new Said('reject', reason)
  }
  /** The node fails. */
  fail(reason: string): Said<'fail', string> {
    return new Said('fail', reason)
  }
}

/** Context of the model hooks. */
export class ModelMiddlewareContext<S = JsonObject, C = unknown, K = unknown> extends TaskContext<S, C, K> {
  /** The request as earlier middleware left it; in `afterModel`, what was sent. */
  declare readonly request: ChatRequest
  /** Only in `afterModel`. */
  declare readonly response: ChatResponse

  constructor(name: string, call: Call, consulted: HookConsulted, response?: ChatResponse) {
    super(name, call, consulted)
    this.request = call.input as unknown as ChatRequest
    this.response = response as ChatResponse
  }
  protected override get about(): ModelCall {
    return super.about as ModelCall
  }
  protected get task(): Task {
    return this.about.maker as Task
  }
  /** The name of the model that is asked, as the request has it; providers may report another. */
  get model(): string {
    return this.request.model
  }
  /** The request as the node gave it, before any middleware. */
  get givenRequest(): ChatRequest {
    return this.about.given as unknown as ChatRequest
  }
  /**
   * A model that the runtime has, to be asked by `next(request, { model })`.
   *
   * @throws SluiceError `MODEL_UNKNOWN` for one that it does not have.
   */
  modelNamed(name: string): ChatModel {
    const model = this.scope.runtime.models(name)
    if (model !== undefined) return model
    throw new SluiceError('MODEL_UNKNOWN', `there is no model "${name}" in the runtime.`, { model: name })
  }
  /** The agent's round, from 1; absent outside of an agent. */
  get round(): number | undefined {
    return this.about.round
  }
  /** Who supplied the response, if the model itself did not. */
  get substituted(): string | undefined {
    return this.about.substituted
  }
  /** In `beforeModel`: another request. In `afterModel`: another response. */
  replace<V extends Partial<ChatRequest> | ChatResponse>(value: V): Replacement<V> {
    return new Replacement(value)
  }
  /** The model is not asked; this is its response. */
  answer<V extends Partial<ChatResponse>>(response: V): Said<'answer', V> {
    return new Said('answer', response)
  }
  /** The call fails, and with it the node, if it does not catch that. */
  reject(reason: string): Said<'reject', string> {
    return new Said('reject', reason)
  }
  /** A person is asked, and the call waits; the answer comes back as `ctx.answered`. */
  suspend(ask: Ask): Said<'suspend', Ask> {
    return new Said('suspend', ask)
  }
  /** The model is asked again, from `beforeModel`; three attempts are the most. */
  retry(options: { readonly delayMs?: number } = {}): Said<'retry', { readonly delayMs?: number }> {
    return new Said('retry', options)
  }
  /** The call fails. */
  fail(reason: string): Said<'fail', string> {
    return new Said('fail', reason)
  }
}

/** Context of the tool hooks. */
export class ToolMiddlewareContext<S = JsonObject, C = unknown, K = unknown> extends TaskContext<S, C, K> {
  /** The arguments, validated; in `afterTool` the result. */
  declare readonly value: Json
  /** The arguments; in `afterTool`, those that ran. */
  declare readonly args: JsonObject

  constructor(name: string, call: Call, consulted: HookConsulted, result?: Json) {
    super(name, call, consulted)
    this.args = call.input as JsonObject
    this.value = result === undefined ? this.args : result
  }
  protected override get about(): ToolCall {
    return super.about as ToolCall
  }
  protected get task(): Task {
    return this.about.maker as Task
  }
  get toolName(): string {
    return this.about.tool.name
  }
  get tool(): Tool {
    return this.about.tool
  }
  /** The model's id of the call, or one of ours where no model asked. */
  get toolCallId(): string {
    return this.about.subject.toolCallId as string
  }
  get caller(): Caller {
    return this.about.subject.caller as Caller
  }
  /** Where the tool comes from: `code`, `tools-dir`, `plugin:<name>`, `mcp:<server>`. */
  get source(): string {
    return this.about.subject.source as string
  }
  /** Who supplied the result, if the tool itself did not. */
  get substituted(): string | undefined {
    return this.about.substituted
  }
  /** In `beforeTool`: other arguments, which are validated anew. In `afterTool`: another result. */
  replace<V>(value: V): Replacement<V> {
    return new Replacement(value)
  }
  /** The tool does not run; this is its result. */
  answer<V>(result: V): Said<'answer', V> {
    return new Said('answer', result)
  }
  /** A model that asked for the call is told the reason; where nobody asked, the call throws. */
  reject(reason: string): Said<'reject', string> {
    return new Said('reject', reason)
  }
  /** A person is asked, and the call waits; the answer comes back as `ctx.answered`. */
  suspend(ask: Ask): Said<'suspend', Ask> {
    return new Said('suspend', ask)
  }
  /** The run ends. */
  fail(reason: string): Said<'fail', string> {
    return new Said('fail', reason)
  }
}
