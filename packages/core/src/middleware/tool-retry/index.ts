import type { Json, JsonObject } from '../../json/json.ts'
import type { WrapOutcome } from '../../seams/own.ts'
import type { ToolMiddlewareContext } from '../contexts.ts'
import { Middleware, type NextOf } from '../middleware.ts'
import { readNames } from '../options.ts'
import { readMembers } from '../reading.ts'
import { type RetryOptions, type RetryPlan, readRetryOptions, retrying } from '../retrying.ts'

export interface ToolRetryOptions extends RetryOptions {
  /** Names of the tools that may be called again; without it, those that say of themselves that they are idempotent. */
  readonly tools?: readonly string[]
}

/**
 * Calls a tool again when it failed and the error may be gone the next time. A tool that failed may have done its work all the
 * same, so only idempotent tools are, and those named in `tools`. A refusal is never tried again. After the last attempt its error
 * goes on as it is.
 */
export class ToolRetryMiddleware extends Middleware {
  override readonly name: string
  override readonly aboutTools: readonly string[]
  readonly #plan: RetryPlan
  readonly #tools: ReadonlySet<string> | undefined

  /** @throws TypeError for an option that there is not or that is of another type; RangeError for a number out of range. */
  constructor(options: ToolRetryOptions = {}) {
    super()
    const { tools, name = 'ToolRetryMiddleware' } = options
    readMembers(options, ['tools', 'maxAttempts', 'retryOn', 'backoff', 'random', 'name'], name)
    this.name = name
    this.#plan = readRetryOptions(options, name)
    this.#tools = tools === undefined ? undefined : readNames(name, 'tools', tools)
    this.aboutTools = [...(this.#tools ?? [])]
  }

  override wrapTool(
    _args: JsonObject,
    next: NextOf<JsonObject, Json>,
    ctx: ToolMiddlewareContext,
  ): Promise<WrapOutcome<Json>> {
    const { tool } = ctx
    const mayRepeat = this.#tools === undefined ? tool.idempotent : this.#tools.has(tool.name)
    return mayRepeat ? retrying(next, `tool "${tool.name}"`, this.#plan, ctx) : next()
  }
}
