import type { ChatResponse } from '../chat/chat.ts'
import type { ChatModel } from '../chat/model.ts'
import { SluiceError, showError } from '../errors/error.ts'
import type {
  GatherOptions,
  NodeContext,
  NodeRequest,
  SubAgentHandle,
  SubAgentResult,
  SubAgentTask,
  ToolCallOptions,
} from '../graph/context.ts'
import type { Runnable } from '../graph/graph.ts'
import type { AnyNode } from '../graph/node.ts'
import { digestOf } from '../json/digest.ts'
import type { Json, JsonObject } from '../json/json.ts'
import { own } from '../json/own.ts'
import type { Maker } from '../seams/call.ts'
import type { Entry } from '../seams/journal.ts'
import { never } from '../seams/site.ts'
import type { Caller, Subject } from '../seams/subject.ts'
import type { OutputOf, Schema } from '../state/schema.ts'
import type { AskOptions, ChildOptions } from '../tools/inside.ts'
import type { ArgumentsOf, ResultOf, Tool } from '../tools/tool.ts'
import { Agents } from './calls/agents.ts'
import { type Asker, askPerson } from './calls/ask-call.ts'
import { runChild } from './calls/child.ts'
import { callModel, type ModelCall, type ModelCallOptions } from './calls/model-call.ts'
import { doOnce } from './calls/once.ts'
import { runRound } from './calls/round.ts'
import { callTool } from './calls/tool-call.ts'
import type { RunScope } from './scope.ts'
import { CallLog } from './threads/call-log.ts'
import { CountedCall, Flight, type Flown, UNFLOWN } from './threads/flight.ts'
import { inKey, recordsAt, type TaskImage, taskIdOf, tripStep } from './threads/position.ts'

/** One execution of a node: what it is given beside the state. A retry is a new one, with a journal of its own. */
export class Task implements NodeContext, Maker, Asker {
  readonly scope: RunScope
  readonly node: AnyNode
  /** Which task of this node it is in the superstep, from 0. */
  readonly ordinal: number
  /** Values laid over the state for this task alone. */
  readonly payload: JsonObject | undefined
  readonly attempt: number
  /** Which trip of its attempt it is, from 1: how often a wrap around the node has come to its `next`. */
  readonly trip: number
  /** What it was given, before anybody changed that. */
  readonly given: JsonObject
  input: JsonObject
  /** What was written about it in an earlier run; absent for a new one, and for every further execution. */
  readonly image: TaskImage | undefined
  /** When it last gave a sign of life; kept where its node has an idle time. */
  lastActive = 0
  /** Rounds that the agent in it may have, and agents inside it that ask for no other number. */
  maxRounds: number | undefined
  /** Told when it can only wait for people. Whatever it still does then comes to nothing. */
  onPaused: (() => void) | undefined
  #log: CallLog | undefined
  /** The execution that came after this one. */
  #next: Task | undefined
  #askIds: Set<string> | undefined
  #agents: Agents | undefined
  #paused = false
  #closed = false
  #signal: AbortSignal | undefined
  #end: { readonly controller: AbortController; readonly signal: AbortSignal } | undefined
  #given = false
  #scratch: Record<string, unknown> | undefined
  #children: Set<RunScope> | undefined
  #streaming: Set<ModelCall> | undefined

  constructor(
    scope: RunScope,
    node: AnyNode,
    ordinal: number,
    payload: JsonObject | undefined,
    input: JsonObject,
    attempt = 1,
    image?: TaskImage,
    trip = 1,
  ) {
    this.scope = scope
    this.node = node
    this.ordinal = ordinal
    this.payload = payload
    this.given = this.input = input
    this.attempt = attempt
    this.image = image
    this.trip = trip
  }

  /** @throws SluiceError `CONTEXT_FOREIGN` for a `ctx` that is not the one a node was given. */
  static of(ctx: NodeContext): Task {
    if (ctx instanceof Task) return ctx
    throw new SluiceError('CONTEXT_FOREIGN', 'this runs inside a node only: hand on the ctx that the node was given.')
  }

  /** The next execution of the same task; calls that this one still makes come to nothing. */
  again(): Task {
    this.giveUp()
    const next = new Task(this.scope, this.node, this.ordinal, this.payload, this.given, this.attempt + 1)
    next.onPaused = this.onPaused
    this.#next = next
    return next
  }

  /** The execution of another trip: the hooks around both share what they share, and each has a journal of its own. */
  onTrip(trip: number): Task {
    this.giveUp()
    const { scope, node, ordinal, payload, given, attempt, image, maxRounds } = this
    scope.thread?.withdraw([...scope.within, ...this.#steps])
    const next = new Task(scope, node, ordinal, payload, given, attempt, image, trip)
    next.onPaused = this.onPaused
    next.maxRounds = maxRounds
    next.#scratch = this.scratch
    this.#next = next
    return next
  }

  /** Whatever this execution still does is dropped: it failed, or its time is over. */
  giveUp(reason: unknown = new Error(`an execution of node "${this.node.name}" was given up`)): void {
    this.#given = true
    for (const child of this.#children ?? []) child.cancel(reason)
    for (const call of this.#streaming ?? []) call.retract()
    this.#streaming = undefined
    this.#end?.controller.abort(reason)
  }

  /** It is through, and written down as that: a call that it did not wait for comes to nothing. */
  close(): void {
    this.#closed = true
    for (const child of this.#children ?? []) child.cancel(new Error(`node "${this.node.name}" has ended`))
  }

  /** The parts of this call that have left are called back when the execution is given up before the call has settled. */
  async streaming<Value>(call: ModelCall, work: () => Value | Promise<Value>): Promise<Value> {
    this.#streaming ??= new Set()
    this.#streaming.add(call)
    try {
      return await work()
    } finally {
      this.#streaming?.delete(call)
    }
  }

  /** A run that this execution starts ends with it. */
  async withChild<Value>(child: RunScope, work: () => Promise<Value>): Promise<Value> {
    this.#children ??= new Set()
    this.#children.add(child)
    try {
      return await work()
    } finally {
      this.#children.delete(child)
    }
  }

  get task(): Task {
    return this
  }
  /** What the hooks of all middleware share over this execution. */
  get scratch(): Record<string, unknown> {
    this.#scratch ??= {}
    return this.#scratch
  }
  get graphName(): string {
    return this.scope.plan.name
  }
  get nodeName(): string {
    return this.node.name
  }
  get runId(): string {
    return this.scope.runId
  }
  get rootRunId(): string {
    return this.scope.rootRunId
  }
  get taskId(): string {
    return taskIdOf(this.node.name, this.ordinal)
  }
  get step(): number {
    return this.scope.step - 1
  }
  /** Aborts with the run, when this execution's time is over, or when it is given up. Made when first read. */
  get signal(): AbortSignal {
    if (this.#end === undefined) {
      const controller = new AbortController()
      const signal = AbortSignal.any([this.#signal ?? this.scope.signal, controller.signal])
      this.#end = { controller, signal }
    }
    return this.#end.signal
  }
  /** The signal of this execution alone, where its time is bounded. */
  get ownSignal(): AbortSignal | undefined {
    return this.#signal
  }
  set ownSignal(signal: AbortSignal | undefined) {
    this.#signal = signal
  }
  /** How errors speak of who wrote an update. */
  get writer(): string {
    return `node "${this.node.name}"`
  }
  /** Where its calls are written down; absent in a run without a thread. */
  get log(): CallLog | undefined {
    const { thread, within } = this.scope
    if (thread === undefined || this.#log !== undefined) return this.#log
    const flight = new Flight(
      () => thread.platform.turn(),
      () => this.#pause(),
    )
    const place = [...within, ...this.#steps]
    this.#log = new CallLog(this.scope, thread, place, this.keyPrefix, flight, recordsAt(place, this.image?.records))
    return this.#log
  }

  /** How many calls its last execution has made. */
  get started(): number {
    return this.#next === undefined ? (this.#log?.journal.started ?? 0) : this.#next.started
  }

  /** The way down to its calls, from the run. */
  get #steps(): readonly string[] {
    return this.trip === 1 ? [this.taskId] : [this.taskId, tripStep(this.trip)]
  }

  /** Tells it from the other executions of its task. */
  get execution(): number | string {
    return this.trip === 1 ? this.attempt : `${this.attempt}.${this.trip}`
  }

  /** Where its calls are made, as the thread names it. A further execution makes other calls. */
  get place(): readonly string[] {
    const { scope, taskId, execution } = this
    const at = [scope.address, ...scope.within, taskId]
    return execution === 1 ? at : [...at, String(execution)]
  }

  /** What the keys of its asks begin with. */
  get keyPrefix(): string {
    const { prefix } = this.scope
    // No run inside the task is named with two signs: none of its asks is taken for one of these.
    const id = this.trip === 1 ? inKey(this.taskId) : `${inKey(this.taskId)}##${this.trip}`
    return prefix === '' ? id : `${prefix}/${id}`
  }

  get askIds(): Set<string> {
    this.#askIds ??= new Set()
    return this.#askIds
  }

  #pause(): void {
    if (this.over) return
    this.#paused = true
    this.onPaused?.()
  }

  get subject(): Subject {
    return { nodeName: this.node.name, nodeType: this.node.type }
  }

  /** It is alive. */
  active(): void {
    if (this.node.idleTimeoutMs !== undefined) this.lastActive = this.scope.timers.now()
    this.scope.active()
  }

  emit(data: Json): void {
    this.active()
    const owned = own(data, `what node "${this.node.name}" emits`)
    if (this.scope.sink !== null && !this.over) this.scope.emit({ type: 'custom', ...this.at, data: owned })
  }

  get at(): { readonly nodeName: string; readonly nodeType: string } {
    return { nodeName: this.node.name, nodeType: this.node.type }
  }

  callModel(model: ChatModel | string, request: NodeRequest, options?: ModelCallOptions): Promise<ChatResponse> {
    return this.#call((flown) => callModel(this, this.#model(model), request, options, flown))
  }

  callTool<T extends Tool | string>(
    tool: T,
    args: ArgumentsOf<T>,
    { callId }: ToolCallOptions = {},
  ): Promise<ResultOf<T>> {
    const caller = callId === undefined ? 'node' : 'model'
    // Both are validated by the tool's own schemas, which their types come from.
    return this.callToolAs(caller, tool, args as JsonObject, callId) as Promise<ResultOf<T>>
  }

  callToolAs(
    caller: Caller,
    tool: Tool | string,
    args: JsonObject,
    callId?: string,
    tell?: (told: string) => void,
  ): Promise<Json> {
    return this.#call((flown) => callTool(this, this.#tool(tool), args, caller, callId, flown, tell))
  }

  run<State, Update>(graph: Runnable<State, Update>, input: Update, options?: ChildOptions): Promise<State> {
    return this.#fly((flown) => runChild(this, this, this.log, graph.plan, input, options, flown)) as Promise<State>
  }

  spawn(tasks: readonly SubAgentTask[]): readonly SubAgentHandle[] {
    this.#agents ??= new Agents(this)
    return this.over ? [] : this.#agents.spawn(tasks)
  }

  gather(handles: readonly (SubAgentHandle | string)[], options?: GatherOptions): Promise<readonly SubAgentResult[]> {
    this.#agents ??= new Agents(this)
    const agents = this.#agents
    return this.#through(() => agents.gather(handles, options))
  }

  /** The node has returned. @throws SluiceError `AGENTS_UNGATHERED` when it left sub-agents behind. */
  endAgents(): void {
    this.#agents?.end()
  }

  get context(): unknown {
    const { context } = this.scope
    if (context !== undefined) return context
    throw new SluiceError(
      'CONTEXT_MISSING',
      `node "${this.node.name}" reads ctx.context, and the run was given none. Give it with every run, resume and continue: it is never stored.`,
      { node: this.node.name },
    )
  }

  once<Value extends Json | undefined>(
    name: string,
    work: () => Value | Promise<Value>,
    repeatable = false,
  ): Promise<Value> {
    return this.#call((flown) => doOnce(this, name, work, repeatable, flown)) as Promise<Value>
  }

  ask<S extends Schema = Schema<Json>>(id: string, payload: Json, options?: AskOptions<S>): Promise<OutputOf<S>> {
    const { log } = this
    const ask = (flown: Flown) => this.#through(() => askPerson(this, id, payload, options, flown))
    if (this.over) return never()
    return (log === undefined ? ask(UNFLOWN) : log.flight.question(ask)) as Promise<OutputOf<S>>
  }

  /**
   * A question that a hook puts around the node: the execution itself may be through, or have failed. The task pauses once
   * nothing of it is under way.
   */
  async askBeside<S extends Schema = Schema<Json>>(
    id: string,
    payload: Json,
    options?: AskOptions<S>,
  ): Promise<OutputOf<S>> {
    const { log, scope } = this
    if (scope.stopped || this.#paused) return never()
    const flight =
      log &&
      new Flight(
        () => log.turn(),
        () => this.#pauseBeside(log),
      )
    const ask = (flown: Flown) => askPerson(this, id, payload, options, flown)
    const answer = await (flight === undefined ? ask(UNFLOWN) : flight.question(ask))
    return (scope.stopped ? never() : answer) as OutputOf<S>
  }

  async #pauseBeside({ flight }: CallLog): Promise<void> {
    while (flight.moving > 0 && !this.#given) await flight.change()
    if (this.scope.stopped || this.#paused) return
    this.#paused = true
    this.onPaused?.()
  }

  /** Whether one of its questions is open. What it returns meanwhile waits until none is. */
  get asking(): boolean {
    return this.#log?.flight.asking === true
  }
  async answered(): Promise<void> {
    await this.#log?.flight.answered()
  }

  /** One round of an agent; `work` calls the model and the tools it asks for. */
  round<Result extends { readonly toolNames: readonly string[] }>(
    round: number,
    maxRounds: number,
    work: () => Promise<Result>,
  ): Promise<Result> {
    const { log } = this
    const through = (calls: () => Promise<Result>) => this.#through(() => runRound(this, { round, maxRounds }, calls))
    if (log === undefined) return through(work)
    return this.over ? never() : log.flight.around((inside) => through(() => inside(work)))
  }

  /** The id of a tool call that no model asked for: the same when the node is entered anew, and of no other call of any thread. */
  callIdOf({ key }: Entry): string {
    const { scope, taskId, execution } = this
    return `call-${digestOf([scope.address, taskId, execution, key]).slice('h1:'.length)}`
  }

  /** Reads a tool call; one that could not even be made, for want of a tool or of arguments that fit, is reported all the same. */
  orReport<Read>(toolCallId: string | undefined, toolName: string, read: () => Read): Read {
    try {
      return read()
    } catch (error) {
      this.#reportUnrun(toolCallId ?? this.scope.nextCallId(), toolName, error)
      throw error
    }
  }

  #reportUnrun(toolCallId: string, toolName: string, error: unknown): void {
    const { scope, at } = this
    if (scope.sink === null || this.over) return
    scope.emit({ type: 'tool_call', ...at, toolName, toolCallId, toolArgs: {} })
    scope.emit({ type: 'tool_result', ...at, toolName, toolCallId, error: showError(error) })
  }

  /** The run has ended, or this execution was given up: its calls neither start nor settle. */
  get over(): boolean {
    return this.#given || this.#paused || this.#closed || this.scope.stopped
  }

  /** A call that counts as under way until it settles or waits for a person. */
  #fly<Value>(call: (flown: Flown) => Promise<Value>): Promise<Value> {
    const { log } = this
    if (log === undefined) return this.#through(() => call(UNFLOWN))
    if (this.over) return never()
    return log.flight.through((flown) => this.#through(() => call(flown)))
  }

  /** The same for a call of a model, a tool or a step done once: none begins while the process drains. */
  async #call<Value>(call: (flown: Flown) => Promise<Value>): Promise<Value> {
    const { scope } = this
    if (this.over || !scope.callBegins()) return never()
    const counted = new CountedCall((counts) => (counts ? scope.callGoesOn() : scope.callEnds()))
    try {
      return await this.#fly((flown) => {
        const waits = () => {
          counted.end()
          flown.waits()
        }
        return call({ waits, counted })
      })
    } finally {
      counted.end()
    }
  }

  /** A call of a run that was stopped, or of an execution that was given up, neither starts nor settles. */
  async #through<Value>(call: () => Promise<Value>): Promise<Value> {
    if (this.over) return never()
    this.active()
    try {
      const value = await call()
      this.active()
      return this.over ? never() : value
    } catch (error) {
      if (this.over) return never()
      throw error
    }
  }

  #model(model: ChatModel | string): ChatModel {
    if (typeof model !== 'string') return model
    const found = this.scope.runtime.models(model)
    if (found !== undefined) return found
    throw new SluiceError(
      'MODEL_UNKNOWN',
      `node "${this.node.name}" asks for model "${model}", which the runtime does not have.`,
      { node: this.node.name, model },
    )
  }

  #tool(tool: Tool | string): Tool {
    if (typeof tool !== 'string') return tool
    return this.scope.runtime.tool(tool)
  }
}
