import type { ChatMessage } from '../../chat/chat.ts'
import { typeOf } from '../../seams/hooks.ts'
import type { ModelMiddlewareContext } from '../contexts.ts'
import { Middleware } from '../middleware.ts'
import { requireFunction } from '../options.ts'
import { readMembers } from '../reading.ts'

/** Makes the system message of a request; `current` is the one that it has. Nothing leaves it as it is, `''` takes it away. */
export type PromptOf<S, C> = (
  ctx: ModelMiddlewareContext<S, C>,
  current: string | undefined,
) => string | undefined | Promise<string | undefined>

/**
 * Sets the system message of each model call, or replaces the one that it has: by the state, the run's context, the time. It goes
 * with the request and is never stored.
 */
export class DynamicPromptMiddleware<S = unknown, C = unknown> extends Middleware<S, C> {
  override readonly name: string
  readonly #promptOf: PromptOf<S, C>

  /** @throws TypeError for what is no function, or an option that there is not. */
  constructor(promptOf: PromptOf<S, C>, options: { readonly name?: string } = {}) {
    super()
    const { name = 'DynamicPromptMiddleware' } = options
    readMembers(options, ['name'], name)
    requireFunction(name, 'the prompt', promptOf)
    this.name = name
    this.#promptOf = promptOf
  }

  override async beforeModel(ctx: ModelMiddlewareContext<S, C>) {
    const { messages } = ctx.request
    const [first] = messages
    const current = first?.role === 'system' ? first.content : undefined
    const prompt: unknown = await this.#promptOf(ctx, current)
    if (prompt === undefined || prompt === current) return undefined
    if (typeof prompt !== 'string')
      throw new TypeError(`its function made ${typeOf(prompt)}; a system message is a text`)
    const rest = current === undefined ? messages : messages.slice(1)
    const system: readonly ChatMessage[] = prompt === '' ? [] : [{ role: 'system', content: prompt }]
    return ctx.replace({ messages: [...system, ...rest] })
  }
}
