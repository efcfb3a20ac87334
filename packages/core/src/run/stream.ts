import type { RunEvent, Sink } from './event.ts'

const MOST_READ_KEPT = 1_024

/** Events that may wait to be read; a run that has made more waits for its reader. */
const HIGH_WATER = 1_024

/** A queue that is itself the iterator: the run pushes, the consumer pulls, and closing it early tells the run. */
export class EventQueue implements AsyncIterableIterator<RunEvent>, Sink {
  #events: RunEvent[] = []
  #head = 0
  #closed = false
  #waiting: ((result: IteratorResult<RunEvent>) => void)[] = []
  #room: Promise<void> | undefined
  #makeRoom: (() => void) | undefined
  readonly #abandoned: () => void

  constructor(abandoned: () => void) {
    this.#abandoned = abandoned
  }

  push(event: RunEvent): void {
    if (this.#closed) return
    const resolve = this.#waiting.shift()
    if (resolve === undefined) this.#events.push(event)
    else resolve({ done: false, value: event })
  }

  /** While too many events wait: a promise for the moment when half of them were read. */
  room(): Promise<void> | undefined {
    if (this.#closed || this.#events.length - this.#head < HIGH_WATER) return undefined
    this.#room ??= new Promise((resolve) => {
      this.#makeRoom = resolve
    })
    return this.#room
  }

  close(): void {
    this.#closed = true
    this.#roomMade()
    for (const resolve of this.#waiting.splice(0)) resolve({ done: true, value: undefined })
  }

  next(): Promise<IteratorResult<RunEvent>> {
    const value = this.#events[this.#head]
    if (value !== undefined) {
      this.#head++
      if (this.#makeRoom !== undefined && this.#events.length - this.#head <= HIGH_WATER / 2) this.#roomMade()
      this.#forgetRead()
      return Promise.resolve({ done: false, value })
    }
    if (this.#closed) return Promise.resolve({ done: true, value: undefined })
    return new Promise((resolve) => {
      this.#waiting.push(resolve)
    })
  }

  return(): Promise<IteratorResult<RunEvent>> {
    const abandoned = !this.#closed
    this.close()
    this.#events = []
    this.#head = 0
    if (abandoned) this.#abandoned()
    return Promise.resolve({ done: true, value: undefined })
  }

  #roomMade(): void {
    this.#makeRoom?.()
    this.#room = this.#makeRoom = undefined
  }

  /** Lets go of what was read, at once when all was, else now and then: a consumer may never quite catch up. */
  #forgetRead(): void {
    if (this.#head < this.#events.length && this.#head < MOST_READ_KEPT) return
    this.#events = this.#events.slice(this.#head)
    this.#head = 0
  }

  [Symbol.asyncIterator](): this {
    return this
  }
}
