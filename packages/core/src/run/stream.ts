import type { RunEvent } from './event.ts'

/** A queue that is itself the iterator: the run pushes, the consumer pulls, and closing it early tells the run. */
export class EventQueue implements AsyncIterableIterator<RunEvent> {
  #events: RunEvent[] = []
  #head = 0
  #closed = false
  #waiting: ((result: IteratorResult<RunEvent>) => void) | undefined
  readonly #abandoned: () => void

  constructor(abandoned: () => void) {
    this.#abandoned = abandoned
  }

  push(event: RunEvent): void {
    if (this.#closed) return
    if (this.#waiting === undefined) {
      this.#events.push(event)
      return
    }
    const resolve = this.#waiting
    this.#waiting = undefined
    resolve({ done: false, value: event })
  }

  close(): void {
    this.#closed = true
    this.#waiting?.({ done: true, value: undefined })
    this.#waiting = undefined
  }

  next(): Promise<IteratorResult<RunEvent>> {
    const value = this.#events[this.#head]
    if (value !== undefined) {
      this.#head++
      if (this.#head === this.#events.length) {
        this.#events = []
        this.#head = 0
      }
      return Promise.resolve({ done: false, value })
    }
    if (this.#closed) return Promise.resolve({ done: true, value: undefined })
    return new Promise((resolve) => {
      this.#waiting = resolve
    })
  }

  return(): Promise<IteratorResult<RunEvent>> {
    if (!this.#closed) this.#abandoned()
    this.#closed = true
    this.#events = []
    this.#head = 0
    return Promise.resolve({ done: true, value: undefined })
  }

  [Symbol.asyncIterator](): this {
    return this
  }
}
