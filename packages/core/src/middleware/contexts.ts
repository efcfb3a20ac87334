import type { ChatRequest, ChatResponse } from '../chat/chat.ts'
import type { ChatModel } from '../chat/model.ts'
import type { Json, JsonObject } from '../json/json.ts'
import { type ModelCall, modelNamed } from '../run/calls/model-call.ts'
import type { NodeCall } from '../run/calls/node-call.ts'
import type { ToolCall } from '../run/calls/tool-call.ts'
import type { Call } from '../seams/call.ts'
import { Replacement, Said } from '../seams/hooks.ts'
import type { Keeper } from '../seams/kept.ts'
import type { HookConsulted } from '../seams/own.ts'
import type { Caller } from '../seams/subject.ts'
import type { Round } from '../seams/verdict.ts'
import type { OutputOf, Schema } from '../state/schema.ts'
import type { AnyState } from '../state/state.ts'
import type { AskOptions } from '../tools/inside.ts'
import type { Tool } from '../tools/tool.ts'
import { callAbout, HookContext, scopeOf, taskOf } from './hook-context.ts'

/** What a hook may ask a person: shown as it is, but for the members the engine reads. */
export interface Ask {
  readonly [member: string]: unknown
  /** JSON Schema of the answers that are taken. */
  readonly schema?: object
  readonly expiresInMs?: number
  /** Who may answer: CEL over `principal`, as `'finance' in principal.claims.teams`, for a server that knows who answers. */
  readonly approvers?: string
  /** Stands where nobody answers in time; without it the call is refused then. */
  readonly default?: unknown
  /** `result`: the answer itself is what the call comes to. */
  readonly onAnswer?: 'result'
}

/** Context of `beforeGraph`, `afterGraph` and `onRunEnd`. */
export class GraphMiddlewareContext<S = JsonObject, C = unknown, K = unknown> extends HookContext<C, K> {
  /** The run's state as of its last superstep; it cannot be changed. */
  get state(): S {
    return scopeOf(this).lastState as S
  }
  /** Whether the run goes on where an earlier one stopped. */
  get resuming(): boolean {
    return scopeOf(this).resuming
  }
  /** Shared by these hooks of all middleware over one run. */
  get scratch(): Record<string, unknown> {
    return scopeOf(this).scratch
  }
}

/** What hooks inside a node are given. */
abstract class TaskContext<S, C, K> extends HookContext<C, K> {
  get nodeName(): string {
    return taskOf(this).node.name
  }
  get nodeType(): string {
    return taskOf(this).node.type
  }
  get taskId(): string {
    return taskOf(this).taskId
  }
  /** The superstep of this run, from 0. */
  get step(): number {
    return taskOf(this).step
  }
  /** The state that the node received; it cannot be changed. */
  get state(): S {
    return taskOf(this).input as S
  }
  /** The node's input as stored, before any replacement. */
  get storedState(): S {
    return taskOf(this).given as S
  }
  /** Shared by the hooks of all middleware over one execution of the node. */
  get scratch(): Record<string, unknown> {
    return taskOf(this).scratch
  }
  /**
   * The step is refused: at a node the run ends, at a round or a model call the node fails, at a tool call a model that asked for
   * it is told the reason, and where nobody asked the call throws.
   */
  reject(reason: string): Said<'reject', string> {
    return new Said('reject', reason)
  }
  /** Nobody may use what the step came to: at a node or a tool call the run ends, at a round or a model call the node fails. */
  fail(reason: string): Said<'fail', string> {
    return new Said('fail', reason)
  }
}

/** What hooks are given at a step that has an input and a result; `Input` and `Result` may stand in their place. */
abstract class StepContext<S, C, K, Input = unknown, Result = unknown> extends TaskContext<S, C, K> {
  /** Before the step: another input, validated like its own, and not stored. After it: another result. */
  replace<V extends Input>(value: V): Replacement<V> {
    return new Replacement(value)
  }
  /** The step is not made; this is its result. */
  answer<V extends Result>(result: V): Said<'answer', V> {
    return new Said('answer', result)
  }
  /** A person is asked, and the step waits; the answer comes back as `ctx.answered`. */
  suspend(ask: Ask): Said<'suspend', Ask> {
    return new Said('suspend', ask)
  }
}

/** The same at a step that may be made again. */
abstract class RepeatableContext<S, C, K, Input = unknown, Result = unknown> extends StepContext<
  S,
  C,
  K,
  Input,
  Result
> {
  /** The step is made again, from its `before…` hooks, until `maxAttempts` is reached. */
  retry(options: { readonly delayMs?: number } = {}): Said<'retry', { readonly delayMs?: number }> {
    return new Said('retry', options)
  }
}

/** Context of the node hooks. */
export class NodeMiddlewareContext<S = JsonObject, C = unknown, K = unknown> extends RepeatableContext<S, C, K> {
  readonly #state: unknown
  readonly #keeper: Keeper | undefined

  constructor(name: string, call: Call, consulted: HookConsulted, state: unknown = (call as NodeCall).input) {
    super(name, call, consulted)
    this.#state = state
    this.#keeper = consulted.keeper
  }
  /** The node's input in `beforeNode` and `onError`, as earlier middleware left it; its update in `afterNode`. */
  override get state(): S {
    return this.#state as S
  }
  /** How many tasks this superstep has. */
  get superstepSize(): number {
    return scopeOf(this).superstepSize
  }
  get stateSchema(): AnyState {
    return scopeOf(this).plan.state
  }
  /**
   * Asks a person under a key of the node, and waits; see {@link NodeContext.ask}. Meanwhile other consultations of this
   * middleware may change what it keeps.
   */
  ask<A extends Schema = Schema<Json>>(id: string, payload: Json, options?: AskOptions<A>): Promise<OutputOf<A>> {
    const ask = () => taskOf(this).askBeside(id, payload, options)
    return this.#keeper === undefined ? ask() : this.#keeper.aside(ask)
  }
}

/** Context of `beforeRound` and `afterRound`. */
export class RoundMiddlewareContext<S = JsonObject, C = unknown, K = unknown> extends TaskContext<S, C, K> {
  readonly #toolCalls: readonly string[]

  constructor(name: string, call: Call, consulted: HookConsulted, toolCalls: readonly string[] = []) {
    super(name, call, consulted)
    this.#toolCalls = toolCalls
  }
  /** The names of the tools that the round ran; none before it did. */
  get toolCalls(): readonly string[] {
    return this.#toolCalls
  }
  /** From 1. */
  get round(): number {
    return (callAbout(this).given as unknown as Round).round
  }
  get maxRounds(): number {
    return (callAbout(this).given as unknown as Round).maxRounds
  }
}

/** Context of the model hooks. */
export class ModelMiddlewareContext<S = JsonObject, C = unknown, K = unknown> extends RepeatableContext<
  S,
  C,
  K,
  Partial<ChatRequest> | ChatResponse,
  Partial<ChatResponse>
> {
  readonly #request: ChatRequest
  readonly #response: ChatResponse | undefined

  constructor(name: string, call: Call, consulted: HookConsulted, response?: ChatResponse) {
    super(name, call, consulted)
    this.#request = call.input as unknown as ChatRequest
    this.#response = response
  }
  /** The request as earlier middleware left it; in `afterModel`, what was sent. */
  get request(): ChatRequest {
    return this.#request
  }
  /** Only in `afterModel`. */
  get response(): ChatResponse {
    return this.#response as ChatResponse
  }
  /** The name of the model that is asked, as the request has it; providers may report another. */
  get model(): string {
    return this.#request.model
  }
  /** The request as the node gave it, before any middleware. */
  get givenRequest(): ChatRequest {
    return callAbout<ModelCall>(this).given as unknown as ChatRequest
  }
  /**
   * A model that the runtime has.
   *
   * @throws SluiceError `MODEL_UNKNOWN` for one that it does not have.
   */
  modelNamed(name: string): ChatModel {
    return modelNamed(scopeOf(this).runtime, name)
  }
  /** The agent's round, from 1; absent outside of an agent. */
  get round(): number | undefined {
    return callAbout(this).round
  }
  /** Who supplied the response, if the model itself did not. */
  get substituted(): string | undefined {
    return callAbout(this).substituted
  }
}

/** Context of the tool hooks. */
export class ToolMiddlewareContext<S = JsonObject, C = unknown, K = unknown> extends StepContext<S, C, K> {
  readonly #args: JsonObject
  readonly #value: Json

  constructor(name: string, call: Call, consulted: HookConsulted, result?: Json) {
    super(name, call, consulted)
    this.#args = call.input as JsonObject
    this.#value = result === undefined ? this.#args : result
  }
  /** The arguments, validated; in `afterTool` the result. */
  get value(): Json {
    return this.#value
  }
  /** The arguments; in `afterTool`, those that ran. */
  get args(): JsonObject {
    return this.#args
  }
  get toolName(): string {
    return callAbout<ToolCall>(this).tool.name
  }
  get tool(): Tool {
    return callAbout<ToolCall>(this).tool
  }
  /** The model's id of the call, or one of ours where no model asked. */
  get toolCallId(): string {
    return callAbout(this).subject.toolCallId as string
  }
  get caller(): Caller {
    return callAbout(this).subject.caller as Caller
  }
  /** Where the tool comes from: `code`, `tools-dir`, `plugin:<name>`, `mcp:<server>`. */
  get source(): string {
    return callAbout(this).subject.source as string
  }
  /** Who supplied the result, if the tool itself did not. */
  get substituted(): string | undefined {
    return callAbout(this).substituted
  }
}
