import type { ChatRequest, ChatResponse } from '../../chat/chat.ts'
import type { ChatModel } from '../../chat/model.ts'
import { messageOf, SluiceError } from '../../errors/error.ts'
import { isObject } from '../../json/json.ts'
import type { WrapOutcome } from '../../seams/own.ts'
import type { ModelMiddlewareContext } from '../contexts.ts'
import { Middleware, type NextOfModel } from '../middleware.ts'
import { requireFunction } from '../options.ts'
import { readMembers } from '../reading.ts'

export interface ModelFallbackOptions {
  /** Who is asked when a model fails, one after another: a model, or the name of one that the runtime has. */
  readonly models: readonly (string | ChatModel)[]
  /** Whether another model is asked after this error; without it, after every error. */
  readonly fallbackOn?: (error: unknown) => boolean
  /** Names it; two in one graph need two names. */
  readonly name?: string
}

/** A model and those that stood in for it failed. */
export class ModelFallbackError extends SluiceError {
  override readonly name = 'ModelFallbackError'
  /** What each failed with, in the order in which they were asked; the first is the `cause` too. */
  readonly errors: readonly unknown[]

  constructor(failed: readonly { readonly model: string; readonly error: unknown }[]) {
    const why = failed.map(({ model, error }) => `"${model}": ${messageOf(error)}`).join('; ')
    super('MODELS_FAILED', `each of ${failed.length} models failed: ${why}`, {}, failed[0]?.error)
    this.errors = failed.map(({ error }) => error)
  }
}

/**
 * Asks another model when one fails. Each is a `next` of its wrap, with the request as it is but for the model's name, so that
 * policies see who is asked. A refusal is final: nobody else is asked. When all failed, the call does with a
 * {@link ModelFallbackError}.
 */
export class ModelFallbackMiddleware extends Middleware {
  override readonly name: string
  readonly #models: readonly (string | ChatModel)[]
  readonly #fallbackOn: (error: unknown) => boolean

  /** @throws TypeError for an option that is wrong, or where no model is given. */
  constructor(options: ModelFallbackOptions) {
    super()
    const { models, fallbackOn = () => true, name = 'ModelFallbackMiddleware' } = options
    readMembers(options, ['models', 'fallbackOn', 'name'], name)
    if (!Array.isArray(models) || models.length === 0 || !models.every(isModel)) {
      throw new TypeError(`${name}: models must be a list of models and names of models, one at least.`)
    }
    requireFunction(name, 'fallbackOn', fallbackOn)
    this.name = name
    this.#models = models
    this.#fallbackOn = fallbackOn
  }

  override async wrapModel(
    request: ChatRequest,
    next: NextOfModel,
    ctx: ModelMiddlewareContext,
  ): Promise<WrapOutcome<ChatResponse>> {
    // All are looked up before the first is asked: a name that is wrong shows on the first call and not on the first bad day.
    const others = this.#models.map((model) => (typeof model === 'string' ? ctx.modelNamed(model) : model))
    const asked = [undefined, ...others]
    const failed: { model: string; error: unknown }[] = []
    for (const [i, model] of asked.entries()) {
      const outcome = await next(undefined, { model })
      if (outcome.ok || outcome.refused || ctx.signal.aborted) return outcome
      const { error } = outcome
      failed.push({ model: model?.model ?? request.model, error })
      const goesOn = this.#fallbackOn(error)
      if (!goesOn && failed.length === 1) return outcome
      const other = asked[i + 1]
      if (!goesOn || other === undefined) break
      ctx.warn(`model "${failed.at(-1)?.model}" failed, and "${other.model}" is asked: ${messageOf(error)}`)
    }
    return { ok: false, error: new ModelFallbackError(failed) }
  }
}

const isModel = (model: unknown): boolean =>
  typeof model === 'string' || (isObject(model) && typeof model.model === 'string' && typeof model.chat === 'function')
