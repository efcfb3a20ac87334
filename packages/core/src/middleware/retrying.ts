import { messageOf } from '../errors/error.ts'
import type { WrapOutcome } from '../seams/own.ts'
import { type Backoff, backoffMs } from './backoff.ts'
import { requireCount, requireFunction, requireTime } from './options.ts'
import { isTransient, retryAfterMs } from './transient.ts'

/** Which errors are tried again: those with one of these codes, those of one of these classes, or those it says. */
export type RetryOn = readonly (string | (abstract new (...args: never[]) => Error))[] | ((error: unknown) => boolean)

export interface RetryOptions {
  /** How often the call is made, the first time included; 3 without it. */
  readonly maxAttempts?: number
  /** Without it, errors that may be gone the next time: 408, 409, 425, 429, 5xx, a broken connection, a time-out. */
  readonly retryOn?: RetryOn
  /** Waits in milliseconds, `{ baseMs: 500, capMs: 30_000 }` without it; one may be given alone. */
  readonly backoff?: Partial<Backoff>
  /** Numbers in [0, 1) for the jitter; `Math.random` without it. */
  readonly random?: () => number
  /** Names it; two in one graph need two names. */
  readonly name?: string
}

/** What options come to. */
export interface RetryPlan {
  readonly maxAttempts: number
  readonly backoff: Backoff
  readonly random: () => number
  readonly retries: (error: unknown) => boolean
}

/** What is needed of a wrap's context. */
interface Waiting {
  readonly signal: AbortSignal
  wait(ms: number): Promise<void>
  warn(message: string): void
}

/** @throws TypeError or RangeError for an option that is wrong. */
export function readRetryOptions(options: RetryOptions, by: string): RetryPlan {
  const { maxAttempts = 3, retryOn = isTransient, backoff = {}, random = Math.random } = options
  const { baseMs = 500, capMs = 30_000 } = backoff
  requireCount(by, 'maxAttempts', maxAttempts)
  requireTime(by, 'backoff.baseMs', baseMs)
  requireTime(by, 'backoff.capMs', capMs)
  requireFunction(by, 'random', random)
  return { maxAttempts, backoff: { baseMs, capMs }, random, retries: readRetryOn(retryOn, by) }
}

function readRetryOn(retryOn: RetryOn, by: string): RetryPlan['retries'] {
  if (typeof retryOn === 'function') return retryOn as (error: unknown) => boolean
  if (!Array.isArray(retryOn) || retryOn.some((one) => typeof one !== 'string' && typeof one !== 'function')) {
    throw new TypeError(`${by}: retryOn must be a function of the error, or a list of codes and classes of errors.`)
  }
  const given: readonly (string | (abstract new (...args: never[]) => Error))[] = retryOn
  return (error) =>
    given.some((one) =>
      typeof one === 'string' ? (error as { code?: unknown } | null)?.code === one : error instanceof one,
    )
}

/**
 * Makes a call until it goes well, may not be tried again, or was made as often as it may be; hands on what the last attempt came
 * to, as it is. Before each further attempt it waits as long as the server asks and the jitter says, and warns.
 */
export async function retrying<Value>(
  next: () => Promise<WrapOutcome<Value>>,
  what: string,
  { maxAttempts, backoff, random, retries }: RetryPlan,
  ctx: Waiting,
): Promise<WrapOutcome<Value>> {
  for (let attempt = 1; ; attempt++) {
    const outcome = await next()
    if (outcome.ok || outcome.refused || ctx.signal.aborted) return outcome
    const { error } = outcome
    if (attempt >= maxAttempts || !retries(error)) return outcome
    const asked = retryAfterMs(error) ?? 0
    if (asked > backoff.capMs) {
      ctx.warn(`${what} is not tried again: it is to wait ${asked} ms, and ${backoff.capMs} ms is the most.`)
      return outcome
    }
    const delayMs = asked + backoffMs(attempt, backoff, random)
    ctx.warn(
      `${what} failed in attempt ${attempt} of ${maxAttempts} and is tried again in ${delayMs} ms: ${messageOf(error)}`,
    )
    if (delayMs > 0) await ctx.wait(delayMs)
  }
}
