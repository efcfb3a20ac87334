import type { FailureCause } from './decision.ts'
import type { BreakerOptions } from './policy.ts'

/**
 * Counts a policy's failures in a row. After `failures` of them it opens, and the policy is not consulted for `openMs`; then one
 * consultation is let through, and what becomes of that decides. One that is never heard of again gives way to the next after
 * as long.
 */
export class Breaker {
  readonly #options: BreakerOptions
  #failures = 0
  #opensUntil = 0
  /** Of the last failure. */
  cause: FailureCause = 'threw'

  constructor(options: BreakerOptions) {
    this.#options = options
  }

  get isOpen(): boolean {
    return this.#failures >= this.#options.failures
  }

  /** Whether the policy may be consulted now. */
  admits(now: number): boolean {
    if (!this.isOpen) return true
    if (now < this.#opensUntil) return false
    this.#opensUntil = now + this.#options.openMs
    return true
  }

  /** Milliseconds until it lets one through. */
  waits(now: number): number {
    return Math.max(0, Math.ceil(this.#opensUntil - now))
  }

  /** Whether that opened it. */
  failed(now: number, cause: FailureCause): boolean {
    this.cause = cause
    this.#opensUntil = now + this.#options.openMs
    return ++this.#failures === this.#options.failures
  }

  /** Whether that closed it. */
  succeeded(): boolean {
    const wasOpen = this.isOpen
    this.#failures = 0
    return wasOpen
  }
}
