import { SluiceError } from '../errors/error.ts'
import type { RunEvent, Sink } from './event.ts'

/**
 * What a stream yields: `events` is everything that happens on the way, `tokens` the text of models, `custom` what nodes and
 * tools emit, `updates` what each task wrote once its superstep is through, `values` the state after each superstep. The last
 * event, `run_end`, is always there.
 */
export type StreamMode = 'values' | 'updates' | 'tokens' | 'custom' | 'events'

const TYPES: { readonly [M in Exclude<StreamMode, 'events'>]: readonly string[] } = {
  values: ['values'],
  updates: ['update'],
  tokens: ['token', 'retracted'],
  custom: ['custom'],
}

/** Which events the modes ask for. @throws SluiceError `STREAM_MODE` for one that does not exist. */
export function wantedBy(mode: StreamMode | readonly StreamMode[]): (type: string) => boolean {
  const modes: readonly string[] = typeof mode === 'string' ? [mode] : Array.isArray(mode) ? mode : [String(mode)]
  const unknown = modes.find((name) => name !== 'events' && !Object.hasOwn(TYPES, name))
  if (unknown !== undefined) {
    throw new SluiceError(
      'STREAM_MODE',
      `there is no stream mode "${unknown}"; modes are: ${[...Object.keys(TYPES), 'events'].join(', ')}.`,
    )
  }
  const types = new Set(modes.flatMap((name) => TYPES[name as keyof typeof TYPES] ?? []))
  const all = modes.includes('events')
  return (type) => type === 'run_end' || types.has(type) || (all && type !== 'update' && type !== 'values')
}

const MOST_READ_KEPT = 1_024

/** Events that may wait to be read; a run that has made more waits for its reader. */
const HIGH_WATER = 1_024

/** A queue that is itself the iterator: the run pushes, the consumer pulls, and closing it early tells the run. */
export class EventQueue implements AsyncIterableIterator<RunEvent>, Sink {
  #events: RunEvent[] = []
  #head = 0
  #closed = false
  #told = false
  #waiting: ((result: IteratorResult<RunEvent>) => void)[] = []
  #room: Promise<void> | undefined
  #makeRoom: (() => void) | undefined
  #ended!: () => void
  readonly #end = new Promise<void>((resolve) => {
    this.#ended = resolve
  })
  readonly #abandoned: () => void
  readonly wants: (type: string) => boolean

  constructor(abandoned: () => void, wants: (type: string) => boolean = wantedBy('events')) {
    this.#abandoned = abandoned
    this.wants = wants
  }

  push(event: RunEvent): void {
    if (this.#closed || this.#told || !this.wants(event.type)) return
    // A policy in shadow may answer later than that.
    this.#told = event.type === 'run_end'
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

  /** The run has ended. */
  close(): void {
    this.#shut()
    this.#ended()
  }

  #shut(): void {
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

  /** The reader leaves. Settles when the run has ended, so that its thread can be gone on with. */
  async return(): Promise<IteratorResult<RunEvent>> {
    const abandoned = !this.#closed
    this.#shut()
    this.#events = []
    this.#head = 0
    if (abandoned) this.#abandoned()
    await this.#end
    return { done: true, value: undefined }
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
