import { createHash } from 'node:crypto'
import type { Platform } from '../src/run/platform.ts'

/** What time it is when a test begins. */
const EPOCH = Date.UTC(2026, 0, 1)

interface Timer {
  readonly at: number
  readonly then: () => void
}

/** A platform whose time goes on only when it is told to, so that a test waits for nothing. */
export class Clock implements Platform {
  #now = 0
  #ids = 0
  readonly #timers = new Set<Timer>()
  /** How long each timer was set for, in the order they were set. */
  readonly waits: number[] = []

  now(): number {
    return this.#now
  }
  set(ms: number, then: () => void): Timer {
    const timer = { at: this.#now + ms, then }
    this.waits.push(ms)
    this.#timers.add(timer)
    return timer
  }
  clear(timer: unknown): void {
    this.#timers.delete(timer as Timer)
  }
  turn(): Promise<void> {
    return quiet()
  }
  uuid(): string {
    return `id-${++this.#ids}`
  }
  time(): number {
    return EPOCH + this.#now
  }
  sha256(text: string): string {
    return createHash('sha256').update(text).digest('hex')
  }

  /** How many timers are set and neither fired nor cleared. */
  get pending(): number {
    return this.#timers.size
  }

  /** Lets `ms` milliseconds go by: each timer fires at its time, after everything that could go on before it has. */
  async pass(ms: number): Promise<void> {
    const until = this.#now + ms
    await quiet()
    for (let next = this.#next(until); next !== undefined; next = this.#next(until)) {
      this.#now = next.at
      this.#timers.delete(next)
      next.then()
      await quiet()
    }
    this.#now = until
  }

  #next(until: number): Timer | undefined {
    const due = [...this.#timers].filter((timer) => timer.at <= until)
    return due.toSorted((a, b) => a.at - b.at)[0]
  }
}

/** Settles when nothing can go on any more without time or an answer from outside. */
export const quiet = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)))

/** A promise to be settled from outside. */
export function open<Value>(): { promise: Promise<Value>; resolve(value: Value): void; reject(error: unknown): void } {
  let resolve!: (value: Value) => void
  let reject!: (error: unknown) => void
  const promise = new Promise<Value>((yes, no) => {
    resolve = yes
    reject = no
  })
  return { promise, resolve, reject }
}

/** Lets so much time go by that nothing waits any more for calls that are not made. */
export async function patience(platform: Clock): Promise<void> {
  for (let seconds = 0; seconds < 3; seconds++) await platform.pass(1_000)
}
