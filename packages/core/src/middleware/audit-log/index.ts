import type { ChatRequest, ChatResponse, Usage } from '../../chat/chat.ts'
import { showError } from '../../errors/error.ts'
import { canonical } from '../../json/canonical.ts'
import type { Json, JsonObject } from '../../json/json.ts'
import type { RunOutcomeTold } from '../../run/steps/graph-hooks.ts'
import { RefusedError } from '../../seams/failure.ts'
import type { WrapOutcome } from '../../seams/own.ts'
import type { GraphMiddlewareContext, ModelMiddlewareContext, ToolMiddlewareContext } from '../contexts.ts'
import { Middleware, type NextOf, type NextOfModel } from '../middleware.ts'
import { readMembers } from '../reading.ts'

/** Where the lines of a log go. `fileSink(path)` of `@sluice/host` is one. */
export interface AuditSink {
  /** Takes one line, JSON without a line break. It is waited for, so that a line is there before the step it is about. */
  write(line: string): void | Promise<void>
  /** A run has ended: what was taken should be where it stays. */
  flush?(): void | Promise<void>
}

export interface AuditLogOptions {
  readonly sink: AuditSink
  /** Whether what went in and came out stands in the log. It does not without it. */
  readonly payload?: boolean
  /** Whether each line of a call has the SHA-256 of what went in, so that it can be held against the original. Not without it. */
  readonly digests?: boolean
  /** What becomes of a run whose line the sink does not take: it ends, or goes on with a warning. `fail` without it. */
  readonly onFailure?: 'fail' | 'warn'
  /** Names it where there are two; `AuditLogMiddleware` without it. */
  readonly name?: string
}

/** What a line is about. `…_call` stands before the step and `…_result` after it: without a result the step was given up. */
export type AuditType = 'run_start' | 'run_end' | 'model_call' | 'model_result' | 'tool_call' | 'tool_result' | 'ask'

/** One line of the log. Members that do not apply are left out. */
export interface AuditRecord {
  readonly type: AuditType
  /** RFC 3339, UTC. */
  readonly time: string
  /** Counts the lines of this middleware in this process, from 1 and without gaps; those that were lost are counted too. */
  readonly seq: number
  /** Lines lost before this one. */
  readonly dropped?: number
  readonly thread?: string
  readonly branch?: string
  readonly run: string
  /** The turn: the outermost run, over pauses and in sub-agents. */
  readonly turn: string
  readonly task?: string
  readonly seam: 'run' | 'modelCall' | 'toolCall' | 'ask'
  readonly subject: {
    readonly kind: 'graph' | 'model' | 'tool' | 'ask'
    readonly name: string
    readonly source?: string
    readonly caller?: string
    readonly callId?: string
    readonly node?: string
    readonly round?: number
  }
  readonly attempt?: number
  readonly resuming?: boolean
  readonly durationMs?: number
  /** `ok`, `failed` or `refused` of a call; the status of a run. */
  readonly outcome?: string
  /** Who refused a call, supplied its result, or asks: `graph`, `engine`, `policy:<Type>`, or the name of a middleware. */
  readonly by?: string
  /** Of a refusal, 256 characters at most. */
  readonly reason?: string
  /** Never its text, which may quote what went in. */
  readonly error?: { readonly name: string; readonly code?: string }
  readonly usage?: Usage
  readonly inputDigest?: string
  readonly labels?: readonly string[]
  readonly input?: Json
  readonly output?: Json
}

const OPTIONS = ['sink', 'payload', 'digests', 'onFailure', 'name'] as const
const MAX_REASON = 256

type Context = GraphMiddlewareContext | ModelMiddlewareContext | ToolMiddlewareContext
type Told = Omit<AuditRecord, 'time' | 'seq' | 'dropped' | 'run' | 'turn'>

/**
 * Writes one JSON line for each thing that happens: a run begins and ends, a model or a tool is called and answers, a call is
 * refused, a person is asked. Nothing of what was said stands in it unless it is asked for.
 *
 * @throws TypeError without a sink and for an unknown option; RangeError for an `onFailure` that is none.
 */
export class AuditLogMiddleware extends Middleware {
  override readonly name: string
  readonly #sink: AuditSink
  readonly #options: AuditLogOptions
  #seq = 0
  #dropped = 0

  constructor(options: AuditLogOptions) {
    super()
    readMembers(options, OPTIONS, 'AuditLogMiddleware')
    const { sink, onFailure = 'fail', name = 'AuditLogMiddleware' } = options
    if (typeof sink?.write !== 'function') {
      throw new TypeError(`${name}: sink has no write(line); give fileSink(path) of @sluice/host, or your own.`)
    }
    if (onFailure !== 'fail' && onFailure !== 'warn') {
      throw new RangeError(`${name}: onFailure is "${onFailure}"; give "fail" or "warn".`)
    }
    this.name = name
    this.#sink = sink
    this.#options = options
  }

  override beforeGraph(ctx: GraphMiddlewareContext) {
    const subject = { kind: 'graph', name: ctx.graphName } as const
    return this.#write(ctx, { type: 'run_start', seam: 'run', subject, resuming: ctx.resuming })
  }

  override async onRunEnd(ctx: GraphMiddlewareContext, { status, error, interrupts }: RunOutcomeTold) {
    for (const { key, askedBy, middleware, nodeName: node, taskId: task, payload } of Object.values(interrupts)) {
      const subject = { kind: 'ask', name: key, node } as const
      const by = middleware ?? askedBy
      await this.#write(ctx, { type: 'ask', seam: 'ask', task, subject, by, ...this.#payload({ output: payload }) })
    }
    const subject = { kind: 'graph', name: ctx.graphName } as const
    const failed = error === undefined ? {} : errorOf(error)
    await this.#write(ctx, { type: 'run_end', seam: 'run', subject, outcome: status, ...failed })
    await this.#orWarn(ctx, () => this.#sink.flush?.())
  }

  override async wrapModel(
    request: ChatRequest,
    next: NextOfModel,
    ctx: ModelMiddlewareContext,
  ): Promise<WrapOutcome<ChatResponse>> {
    const { nodeName: node, round, model: name } = ctx
    const subject = { kind: 'model', name, node, ...(round === undefined ? {} : { round }) } as const
    const told = { seam: 'modelCall', subject, attempt: ctx.attempt } as const
    await this.#called(ctx, { type: 'model_call', ...told }, request as unknown as JsonObject)
    const startedAt = ctx.platform.now()
    const outcome = await next()
    const usage = outcome.ok && outcome.value.usage !== undefined ? { usage: outcome.value.usage } : {}
    await this.#settled(ctx, { type: 'model_result', ...told, ...usage }, outcome, startedAt)
    return outcome
  }

  override async wrapTool(
    args: JsonObject,
    next: NextOf<JsonObject, Json>,
    ctx: ToolMiddlewareContext,
  ): Promise<WrapOutcome<Json>> {
    const { nodeName: node, toolName: name, toolCallId: callId, source, caller } = ctx
    const subject = { kind: 'tool', name, source, caller, callId, node } as const
    const told = { seam: 'toolCall', subject, attempt: ctx.attempt } as const
    await this.#called(ctx, { type: 'tool_call', ...told }, args)
    const startedAt = ctx.platform.now()
    const outcome = await next()
    await this.#settled(ctx, { type: 'tool_result', ...told }, outcome, startedAt)
    return outcome
  }

  async #called(ctx: Context, told: Told, input: JsonObject): Promise<void> {
    const { seam, subject } = told
    const digest = this.#options.digests
      ? { inputDigest: `sha256:${await ctx.platform.sha256(canonical({ seam, subject, input }))}` }
      : {}
    await this.#write(ctx, { ...told, ...digest, ...this.#payload({ input }) })
  }

  #settled(ctx: Context, told: Told, outcome: WrapOutcome, startedAt: number): Promise<void> {
    const durationMs = Math.round(ctx.platform.now() - startedAt)
    return this.#write(ctx, { ...told, durationMs, ...this.#outcome(outcome) })
  }

  #outcome(outcome: WrapOutcome): Partial<AuditRecord> {
    if (outcome.ok) {
      const by = outcome.substituted === undefined ? {} : { by: outcome.substituted }
      return { outcome: 'ok', ...by, ...this.#payload({ output: outcome.value as Json }) }
    }
    const { error, refused } = outcome
    if (!refused) return { outcome: 'failed', ...errorOf(error) }
    const { at, reason } = error instanceof RefusedError ? error : { at: {}, reason: '' }
    const by = at.middleware ?? at.policy
    return {
      outcome: 'refused',
      ...(by === undefined ? {} : { by }),
      reason: reason.slice(0, MAX_REASON),
      ...errorOf(error),
    }
  }

  #payload<P>(payload: P): P | object {
    return this.#options.payload ? payload : {}
  }

  async #write(ctx: Context, told: Told): Promise<void> {
    const { threadId, branchId, runId: run, rootRunId: turn, labels } = ctx
    const record: AuditRecord = {
      // biome-ignore lint/style/noRestrictedGlobals: the platform says when it is, and this writes it as a text
      time: new Date(ctx.platform.time()).toISOString(),
      seq: ++this.#seq,
      ...(this.#dropped === 0 ? {} : { dropped: this.#dropped }),
      ...(threadId === undefined ? {} : { thread: threadId, branch: branchId }),
      run,
      turn,
      ...('taskId' in ctx ? { task: ctx.taskId } : {}),
      ...(labels.length === 0 ? {} : { labels }),
      ...told,
    }
    const written = await this.#orWarn(ctx, () => this.#sink.write(JSON.stringify(record)))
    this.#dropped = written ? 0 : this.#dropped + 1
  }

  /** Whether the sink did it; a sink that does not is this middleware's failure, or a warning. */
  async #orWarn(ctx: Context, work: () => void | Promise<void>): Promise<boolean> {
    try {
      await work()
      return true
    } catch (failure) {
      if (this.#options.onFailure !== 'warn') throw failure
      ctx.warn(`the audit log did not take a line: ${showError(failure).message}`)
      return false
    }
  }
}

function errorOf(thrown: unknown): Pick<AuditRecord, 'error'> {
  const { name, code } = showError(thrown)
  return { error: code === undefined ? { name } : { name, code } }
}
