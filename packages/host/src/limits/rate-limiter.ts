import type { Limited, Limiter } from '@sluice/core'
import { isObject, SluiceError } from '@sluice/core'

export interface MemoryLimiterOptions {
  /** Calls that each key has in a window: a whole number of 1 or more. */
  readonly calls: number
  /** Milliseconds of a window, which begins with a key's first call. */
  readonly perMs: number
}

/** What is needed of a limiter of `rate-limiter-flexible`; every one of its stores has it. */
export interface FlexibleLimiter {
  consume(key: string, points?: number): Promise<unknown>
}

/**
 * Counts in this process, with `RateLimiterMemory` of `rate-limiter-flexible`.
 *
 * @throws RangeError for calls or a window that are none.
 */
export function memoryLimiter({ calls, perMs }: MemoryLimiterOptions): Limiter {
  if (!Number.isSafeInteger(calls) || calls < 1)
    throw new RangeError(`memoryLimiter: calls is ${calls}; give 1 or more.`)
  if (!(perMs > 0)) throw new RangeError(`memoryLimiter: perMs is ${perMs}; give milliseconds above 0.`)
  // The library brings all its stores along, so it is loaded once it is needed.
  const loading = once(async () => {
    const { RateLimiterMemory } = await import('rate-limiter-flexible')
    return limiterOf(new RateLimiterMemory({ points: calls, duration: perMs / 1_000 }))
  })
  return { take: async (key) => (await loading()).take(key) }
}

/** Counts with a limiter of `rate-limiter-flexible` that you have made: in Redis, in Postgres, for many processes. */
export const limiterOf = (limiter: FlexibleLimiter): Limiter => ({
  async take(key): Promise<Limited | undefined> {
    try {
      await limiter.consume(key)
      return undefined
    } catch (rejected) {
      const retryAfterMs = waitIn(rejected)
      if (retryAfterMs !== undefined) return { retryAfterMs }
      throw new SluiceError(
        'LIMITER_FAILED',
        'the store of a rate limiter failed; calls are not let through uncounted.',
        {},
        rejected,
      )
    }
  },
})

/** The library rejects with an answer where a key has no calls left, and with an error where its store failed. */
function waitIn(rejected: unknown): number | undefined {
  if (rejected instanceof Error || !isObject(rejected)) return undefined
  return typeof rejected.msBeforeNext === 'number' ? rejected.msBeforeNext : undefined
}

function once<Value>(make: () => Promise<Value>): () => Promise<Value> {
  let made: Promise<Value> | undefined
  return () => {
    made ??= make()
    return made
  }
}
