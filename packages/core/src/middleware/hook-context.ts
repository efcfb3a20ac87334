import type { ChatResponse } from '../chat/chat.ts'
import type { ChatModel } from '../chat/model.ts'
import { SluiceError } from '../errors/error.ts'
import type { NodeRequest } from '../graph/context.ts'
import type { Json, JsonObject } from '../json/json.ts'
import { callModelBeside, callToolBeside } from '../run/calls/inner-calls.ts'
import { NodeCall } from '../run/calls/node-call.ts'
import type { Platform } from '../run/platform.ts'
import type { RunScope } from '../run/scope.ts'
import { GraphPoint } from '../run/steps/graph-hooks.ts'
import type { Task } from '../run/task.ts'
import type { Call } from '../seams/call.ts'
import { type Kept, keptMissing } from '../seams/kept.ts'
import type { HookConsulted } from '../seams/own.ts'
import { after, wait } from '../seams/timer.ts'
import { MAIN } from '../store/store.ts'
import type { ArgumentsOf, ResultOf, Tool } from '../tools/tool.ts'

/** The call that a hook is consulted about. No member leads from a context to it, for a hook would reach the engine there. */
let callOf: (ctx: HookContext<unknown, unknown>) => Call

/** The same for the contexts made of this one. */
export const callAbout = <About extends Call = Call>(ctx: HookContext<unknown, unknown>): About => callOf(ctx) as About

/** The execution of a node in which a hook is consulted. */
export function taskOf(ctx: HookContext<unknown, unknown>): Task {
  const call = callOf(ctx)
  return call instanceof NodeCall ? call.task : (call.maker as Task)
}

/** The run in which it is. */
export function scopeOf(ctx: HookContext<unknown, unknown>): RunScope {
  const call = callOf(ctx)
  return call instanceof GraphPoint ? call.scope : taskOf(ctx).scope
}

/** What every hook is given: where the run stands, what this middleware keeps, and calls of its own. */
export abstract class HookContext<C, K> {
  readonly #call: Call
  readonly #consulted: HookConsulted
  readonly #name: string

  static {
    callOf = (ctx) => ctx.#call
  }

  constructor(name: string, call: Call, consulted: HookConsulted) {
    this.#name = name
    this.#call = call
    this.#consulted = consulted
  }

  get graphName(): string {
    return scopeOf(this).plan.name
  }
  /** The id of this call of `run`, or of the child run. */
  get runId(): string {
    return scopeOf(this).runId
  }
  /** The id of the outermost run: the turn. */
  get rootRunId(): string {
    return scopeOf(this).rootRunId
  }
  /** Absent in a run without a thread. */
  get threadId(): string | undefined {
    return scopeOf(this).thread?.line.thread
  }
  get branchId(): string {
    return scopeOf(this).thread?.line.branch ?? MAIN
  }
  /** Aborts when the run ends before the step does; in a wrap, also when one around it gives up the trip that it is part of. */
  get signal(): AbortSignal {
    const { until } = this.#consulted
    return until === undefined ? this.#end : AbortSignal.any([this.#end, until])
  }
  /** Aborts when nobody waits for the hook any more: later than what it is about, which may have failed. */
  get #end(): AbortSignal {
    return this.#call.ends
  }
  /** What the caller of the run gave as `context`; it is never stored. */
  get context(): C {
    return scopeOf(this).context as C
  }
  /** One set of the turn that only grows; what policies say joins it. */
  get labels(): readonly string[] {
    return [...scopeOf(this).labels]
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
    return scopeOf(this).runtime.platform
  }
  /**
   * Waits so many milliseconds; less, when a wrap around this one gives up. When the run or the step ends before, it stays
   * pending, and its timer is gone.
   */
  wait(ms: number): Promise<void> {
    return wait(scopeOf(this).timers, this.#end, ms, this.#consulted.until)
  }
  /**
   * Does something that may take `ms` milliseconds: then its signal aborts, with a `CALL_TIMED_OUT` that says that `what` timed
   * out. Hand the signal to `next`, which then ends with that error.
   */
  async within<V>(ms: number, what: string, work: (signal: AbortSignal) => V | Promise<V>): Promise<V> {
    const controller = new AbortController()
    const timedOut = () => controller.abort(new SluiceError('CALL_TIMED_OUT', `${what} timed out after ${ms} ms`))
    const done = after(scopeOf(this).timers, this.#end, ms, timedOut)
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
    return callModelBeside(scopeOf(this), this.#call, model, request)
  }
  /** Runs a tool beside the run, past the policies; typed as a node's {@link NodeContext.callTool}. */
  callTool<T extends Tool | string>(tool: T, args: ArgumentsOf<T>): Promise<ResultOf<T>> {
    return callToolBeside(scopeOf(this), this.#call, tool, args as JsonObject) as Promise<ResultOf<T>>
  }
}
