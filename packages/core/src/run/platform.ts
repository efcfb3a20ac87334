import type { Timers } from '../seams/site.ts'

/** What a run needs of the machine. Everything of core that touches the outside comes through here. */
export interface Platform extends Timers {
  /** Lets everything else in the process have its turn once. */
  turn(): Promise<void>
  uuid(): string
  /** Milliseconds since 1970. */
  time(): number
  /** The SHA-256 of a text's UTF-8 bytes, as 64 hexadecimal digits. */
  sha256(text: string): string | Promise<string>
}

interface Globals {
  readonly setImmediate?: (then: () => void) => unknown
  readonly setTimeout: (then: () => void, ms: number) => unknown
  readonly clearTimeout: (timer: unknown) => void
  readonly performance: { now(): number }
  readonly crypto: {
    randomUUID(): string
    readonly subtle: { digest(algorithm: string, data: unknown): Promise<ArrayBuffer> }
  }
  readonly TextEncoder: new () => { encode(text: string): unknown }
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
  time: () => Date.now(),
  sha256: async (text) => {
    const bytes = await globals.crypto.subtle.digest('SHA-256', new globals.TextEncoder().encode(text))
    return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, '0')).join('')
  },
}
