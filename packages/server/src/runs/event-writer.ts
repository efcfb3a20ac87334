import type { RunLog } from '@sluice/host'

export interface EventWriterOptions {
  readonly log: RunLog
  readonly run: string
  /** Told when something was written. */
  readonly onWritten: () => void
  /** Events that stand in the log already. */
  readonly written?: number
  readonly keep?: EventLimits
  /** Said once in place of the first event that is too many. */
  readonly notice: string
}

/** What of one run's events is kept. */
export interface EventLimits {
  readonly events: number
  /** Of their JSON texts. */
  readonly characters: number
}

const KEPT: EventLimits = { events: 100_000, characters: 2 ** 24 }

/** Events that may wait to be written; whoever makes more of them waits. */
const MOST_WAITING = 1_024

/**
 * Writes the events of a run down in their order. What comes while a write is under way goes along with the next one, so a run never
 * waits for each of its events. Of a run that makes too many, the first ones are kept and its end.
 */
export class EventWriter {
  readonly #options: EventWriterOptions
  readonly #keep: EventLimits
  #events: number
  #characters = 0
  #queue: string[] = []
  #writing: Promise<void> | undefined
  #failure: unknown

  constructor(options: EventWriterOptions) {
    const { keep = KEPT, written = 0 } = options
    this.#options = options
    this.#keep = keep
    this.#events = written
  }

  /** What went wrong; nothing is written any more. */
  get failure(): unknown {
    return this.#failure
  }

  /** A promise where too many wait; it never rejects. */
  write(text: string): Promise<void> | undefined {
    if (this.#failure !== undefined || !this.#makeRoom(text)) return undefined
    this.#writing ??= this.#write()
    return this.#queue.length < MOST_WAITING ? undefined : this.#writing
  }

  /** Settles when all is written or nothing more will be; what came last and waits still is handed back, to go with the end. */
  async rest(): Promise<readonly string[]> {
    const rest = this.#queue
    this.#queue = []
    await this.#writing
    return rest
  }

  #makeRoom(text: string): boolean {
    const isFirstTooMany = this.#events === this.#keep.events
    this.#events++
    if (this.#events > this.#keep.events) {
      if (isFirstTooMany) this.#queue.push(this.#options.notice)
      return isFirstTooMany
    }
    this.#characters += text.length
    if (this.#characters > this.#keep.characters) {
      this.#events = this.#keep.events + 1
      this.#queue.push(this.#options.notice)
      return true
    }
    this.#queue.push(text)
    return true
  }

  async #write(): Promise<void> {
    const { log, run, onWritten } = this.#options
    try {
      while (this.#queue.length > 0) {
        const texts = this.#queue
        this.#queue = []
        await log.append(run, texts)
        onWritten()
      }
    } catch (failure) {
      this.#failure = failure
      this.#queue = []
    } finally {
      this.#writing = undefined
    }
  }
}
