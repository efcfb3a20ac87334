import { createMiddleware } from 'hono/factory'
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import type { Env } from '../http/env.ts'
import { HttpError } from '../http/errors.ts'

/** So many requests of one caller in so many seconds. */
export interface Rate {
  readonly requests: number
  readonly seconds: number
}

/** Counts the requests of each caller. @throws HttpError `TOO_MANY_REQUESTS`, with `retry-after`. */
export function rateLimited({ requests, seconds }: Rate) {
  const limiter = new RateLimiterMemory({ points: requests, duration: seconds })
  return createMiddleware<Env>(async (ctx, next) => {
    await limiter.consume(ctx.get('principal').id).catch((refused: unknown) => {
      if (!(refused instanceof RateLimiterRes)) throw refused
      const why = `more than ${requests} requests in ${seconds} s.`
      throw new HttpError('TOO_MANY_REQUESTS', why, { 'retry-after': String(Math.ceil(refused.msBeforeNext / 1_000)) })
    })
    await next()
  })
}
