import type { Timers } from '../seams/site.ts'

/** What a run needs of the machine. Everything of core that touches the outside comes through here. */
export interface Platform extends Timers {
  /** Lets everything else in the process have its turn once. */
  turn(): Promise<void>
  uuid(): string
}

interface Globals {
  readonly setImmediate?: (then: () => void) => unknown
  readonly setTimeout: (then: () => void, ms: number) => unknown
  readonly clearTimeout: (timer: unknown) => void
  readonly performance: { now(): number }
  readonly crypto: { randomUUID(): string }
}

const globals = globalThis as unknown as Globals

/** A longer timer would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** The clock, timers and random ids that every JavaScript platform has. */
export const platform: Platform = {
  now: () => globals.performance.now(),
  set: (ms, then) => globals.setTimeout(then, Math.min(ms, LONGEST_TIMER_MS)),
  clear: (timer) => globals.clearTimeout(timer),
  turn: () =>
    new Promise<void>((resolve) => {
      if (globals.setImmediate === undefined) globals.setTimeout(resolve, 0)
      else globals.setImmediate(resolve)
    }),
  uuid: () => globals.crypto.randomUUID(),
}
