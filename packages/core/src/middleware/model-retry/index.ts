import type { ChatRequest, ChatResponse } from '../../chat/chat.ts'
import type { WrapOutcome } from '../../seams/own.ts'
import type { ModelMiddlewareContext } from '../contexts.ts'
import { Middleware, type NextOfModel } from '../middleware.ts'
import { readMembers } from '../reading.ts'
import { type RetryOptions, type RetryPlan, readRetryOptions, retrying } from '../retrying.ts'

/**
 * Asks a model again when its call failed and the error may be gone the next time. Each attempt is a `next` of its wrap: it meets
 * what stands after this middleware, and the policies, anew, and spends none of the three attempts of the gate. A refusal is never
 * tried again. After the last attempt its error goes on as it is.
 */
export class ModelRetryMiddleware extends Middleware {
  override readonly name: string
  readonly #plan: RetryPlan

  /** @throws TypeError for an option that there is not or that is of another type; RangeError for a number out of range. */
  constructor(options: RetryOptions = {}) {
    super()
    const { name = 'ModelRetryMiddleware' } = options
    readMembers(options, ['maxAttempts', 'retryOn', 'backoff', 'random', 'name'], name)
    this.name = name
    this.#plan = readRetryOptions(options, name)
  }

  override wrapModel(
    { model }: ChatRequest,
    next: NextOfModel,
    ctx: ModelMiddlewareContext,
  ): Promise<WrapOutcome<ChatResponse>> {
    return retrying(next, `model "${model}"`, this.#plan, ctx)
  }
}
