import type { ChatRequest, ChatResponse } from '../../chat/chat.ts'
import { readResponse } from '../../chat/read.ts'
import { messageOf } from '../../errors/error.ts'
import { canonical } from '../../json/canonical.ts'
import type { Json } from '../../json/json.ts'
import { own } from '../../json/own.ts'
import type { WrapOutcome } from '../../seams/own.ts'
import type { ModelMiddlewareContext } from '../contexts.ts'
import { Middleware, type NextOfModel } from '../middleware.ts'
import { requireCount, requireFunction, requireTime } from '../options.ts'
import { readMembers } from '../reading.ts'
import { MemoryCache } from './memory.ts'

/** A response as a cache holds it: JSON. */
export interface CachedResponse {
  readonly response: ChatResponse
  /** Milliseconds since 1970; from then on it is not used. */
  readonly expiresAt: number
}

/** Where responses are held. Keys are 64 hexadecimal digits. What fails here is a warning, and the model is asked. */
export interface ResponseCache {
  get(key: string): CachedResponse | undefined | Promise<CachedResponse | undefined>
  set(key: string, response: CachedResponse): void | Promise<void>
}

export interface ResponseCacheOptions {
  /** Milliseconds for which a response is used; an hour without it. */
  readonly ttlMs?: number
  /** How many the memory holds; 1,000 without it. A store of your own bounds itself. */
  readonly maxEntries?: number
  /** What makes two requests equal, as JSON; without it, all of a request but the ids of its messages. */
  readonly key?: (request: ChatRequest, ctx: ModelMiddlewareContext) => unknown
  /** Where responses are held; the memory of this middleware without it. */
  readonly store?: ResponseCache
  /** Whether responses are held too that a policy or other middleware supplied in place of the model. */
  readonly substituted?: boolean
  /** Names it; two in one graph need two names. */
  readonly name?: string
}

/**
 * Answers a request that was answered before with the same response, without asking the model. Failures and refusals are never
 * held, and what others supplied in place of the model only if that is asked for.
 */
export class ResponseCacheMiddleware extends Middleware {
  override readonly name: string
  readonly #ttlMs: number
  readonly #keyOf: NonNullable<ResponseCacheOptions['key']>
  readonly #store: ResponseCache
  readonly #substituted: boolean

  /** @throws TypeError for an option that is wrong; RangeError for a number out of range. */
  constructor(options: ResponseCacheOptions = {}) {
    super()
    const { ttlMs = 3_600_000, maxEntries = 1_000, key = spoken, name = 'ResponseCacheMiddleware' } = options
    readMembers(options, ['ttlMs', 'maxEntries', 'key', 'store', 'substituted', 'name'], name)
    requireTime(name, 'ttlMs', ttlMs)
    requireCount(name, 'maxEntries', maxEntries)
    requireFunction(name, 'key', key)
    const { store = new MemoryCache(maxEntries), substituted = false } = options
    requireFunction(name, 'store.get', store?.get)
    requireFunction(name, 'store.set', store?.set)
    this.name = name
    this.#ttlMs = ttlMs
    this.#keyOf = key
    this.#store = store
    this.#substituted = substituted
  }

  override async wrapModel(
    request: ChatRequest,
    next: NextOfModel,
    ctx: ModelMiddlewareContext,
  ): Promise<WrapOutcome<ChatResponse>> {
    const key = await ctx.platform.sha256(canonical(own(this.#keyOf(request, ctx), 'the key of a cached response')))
    const held = await this.#held(key, ctx)
    if (held !== undefined) return { ok: true, value: held }
    const outcome = await next()
    if (outcome.ok && (this.#substituted || outcome.substituted === undefined))
      await this.#hold(key, outcome.value, ctx)
    return outcome
  }

  async #held(key: string, ctx: ModelMiddlewareContext): Promise<ChatResponse | undefined> {
    try {
      const found = await this.#store.get(key)
      if (found === undefined || found.expiresAt <= ctx.platform.time()) return undefined
      return readResponse(found.response, 'a cached response')
    } catch (error) {
      ctx.warn(`the cache could not be read, and the model is asked: ${messageOf(error)}`)
      return undefined
    }
  }

  async #hold(key: string, response: ChatResponse, ctx: ModelMiddlewareContext): Promise<void> {
    try {
      // It costs nothing when it is used again, and whoever counts tokens is to know.
      const usage = { inputTokens: 0, outputTokens: 0, totalTokens: 0 }
      await this.#store.set(key, { response: { ...response, usage }, expiresAt: ctx.platform.time() + this.#ttlMs })
    } catch (error) {
      ctx.warn(`a response could not be put into the cache: ${messageOf(error)}`)
    }
  }
}

/** What is said to the model: ids by which messages are found in a state are no part of that. */
const spoken = (request: ChatRequest): Json =>
  own({ ...request, messages: request.messages.map(({ id: _, ...message }) => message) })
