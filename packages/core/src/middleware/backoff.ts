/** How long to wait before a call is made again. */
export interface Backoff {
  /** Milliseconds before the first retry, at most. */
  readonly baseMs: number
  /** Milliseconds that no wait is longer than. */
  readonly capMs: number
}

/**
 * Milliseconds to wait after the failure of attempt `attempt`, from 1: a whole number between 0 and `capMs`.
 * Full jitter: uniform in [0, min(capMs, baseMs * 2 ** (attempt - 1))].
 *
 * @param random in [0, 1).
 * @see "Exponential Backoff And Jitter", AWS Architecture Blog, 2015 - where the formula comes from.
 */
export function backoffMs(attempt: number, { baseMs, capMs }: Backoff, random: () => number): number {
  return Math.floor(random() * (Math.min(capMs, baseMs * 2 ** (attempt - 1)) + 1))
}
