import type { ChatRequest, ChatResponse } from '../../chat/chat.ts'
import type { Json, JsonObject } from '../../json/json.ts'
import type { WrapOutcome } from '../../seams/own.ts'
import type { ModelMiddlewareContext, ToolMiddlewareContext } from '../contexts.ts'
import { Middleware, type NextOf, type NextOfModel } from '../middleware.ts'
import { requireTime } from '../options.ts'
import { readMembers } from '../reading.ts'

export interface CallTimeoutOptions {
  /** Names it; two in one graph need two names. */
  readonly name?: string
  /** Milliseconds that one request to a model may take, to the last of its parts. */
  readonly modelMs?: number
  /** Milliseconds that one call of a tool may take. */
  readonly toolMs?: number
  /** The same for single tools, by name, in place of `toolMs`. */
  readonly perTool?: Readonly<Record<string, number>>
}

/**
 * Bounds the time of single calls. One that takes longer fails with `CALL_TIMED_OUT`, whose message contains `timed out`, and its
 * signal aborts; what it still does then comes to nothing.
 */
export class CallTimeoutMiddleware extends Middleware {
  override readonly name: string
  override readonly aboutTools: readonly string[]
  readonly #options: CallTimeoutOptions

  /** @throws TypeError where no time is given, or an option that there is not; RangeError for a time that is not above 0. */
  constructor(options: CallTimeoutOptions) {
    super()
    readMembers(options, ['name', 'modelMs', 'toolMs', 'perTool'], 'CallTimeoutMiddleware')
    const { name = 'CallTimeoutMiddleware', modelMs, toolMs, perTool = {} } = options
    this.name = name
    this.aboutTools = Object.keys(perTool)
    this.#options = options
    const times = Object.entries({ modelMs, toolMs, ...perTool }).filter(([, ms]) => ms !== undefined)
    if (times.length === 0) throw new TypeError(`${name}: give modelMs, toolMs or perTool; it bounds nothing as it is.`)
    for (const [option, ms] of times) requireTime(name, option, ms)
  }

  override wrapModel(
    request: ChatRequest,
    next: NextOfModel,
    ctx: ModelMiddlewareContext,
  ): Promise<WrapOutcome<ChatResponse>> {
    const { modelMs } = this.#options
    if (modelMs === undefined) return next()
    return ctx.within(modelMs, `model "${request.model}"`, (signal) => next(undefined, { signal }))
  }

  override wrapTool(
    _args: JsonObject,
    next: NextOf<JsonObject, Json>,
    ctx: ToolMiddlewareContext,
  ): Promise<WrapOutcome<Json>> {
    const { toolMs, perTool = {} } = this.#options
    const ms = Object.hasOwn(perTool, ctx.toolName) ? perTool[ctx.toolName] : toolMs
    if (ms === undefined) return next()
    return ctx.within(ms, `tool "${ctx.toolName}"`, (signal) => next(undefined, { signal }))
  }
}
