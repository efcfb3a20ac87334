import { HttpError } from '../http/errors.ts'

/** How many runs may be under way, and how many may wait. */
export interface SlotOptions {
  /** Runs at once: 16 unless told. */
  readonly max?: number
  /** Runs of one caller at once, and as many of theirs that wait; without it, a caller may have all. */
  readonly maxPerCaller?: number
  /** Runs that wait for others to end: 64 unless told. */
  readonly maxQueue?: number
}

interface Waiting {
  readonly caller: string
  enter(): void
  refuse(error: Error): void
}

/** When to come again, in seconds; how long runs take is not known. */
const RETRY_AFTER = '1'

const gone = () => new HttpError('REQUEST_CUT', 'whoever asked for this run left before it had begun.')

const closed = () =>
  new HttpError('SERVER_DRAINING', 'the server is about to end. Come again later.', { 'retry-after': RETRY_AFTER })

/** Places for runs. A place is held from before a run is written down until it has ended. */
export class Slots {
  readonly max: number
  readonly maxQueue: number
  readonly #maxPerCaller: number | undefined
  readonly #running = new Map<string, number>()
  readonly #queue: Waiting[] = []
  #taken = 0
  #refused = 0
  #closed = false

  constructor({ max = 16, maxPerCaller, maxQueue = 64 }: SlotOptions = {}) {
    this.max = max
    this.maxQueue = maxQueue
    this.#maxPerCaller = maxPerCaller
  }

  /** Runs that hold a place. */
  get taken(): number {
    return this.#taken
  }

  /** Runs that wait for one. */
  get waiting(): number {
    return this.#queue.length
  }

  /** Runs that were refused one so far. */
  get refused(): number {
    return this.#refused
  }

  /**
   * Waits for a place, and hands back what gives it up again; to call that twice does nothing more.
   *
   * @param signal whoever waits has gone.
   * @throws HttpError `TOO_MANY_RUNS` when too many wait already, `REQUEST_CUT` when whoever waits goes, `SERVER_DRAINING` when the server is about to end.
   */
  async take(caller: string, signal?: AbortSignal): Promise<() => void> {
    if (this.#closed) throw closed()
    if (signal?.aborted) throw gone()
    if (!this.#isFree(caller)) await this.#wait(caller, signal)
    else this.#enter(caller)
    let held = true
    return () => {
      if (held) this.#leave(caller)
      held = false
    }
  }

  /** Refuses whoever waits, and whoever comes. Who has a place keeps it. */
  close(): void {
    this.#closed = true
    for (const waiting of this.#queue.splice(0)) waiting.refuse(closed())
  }

  #isFree(caller: string): boolean {
    return this.#taken < this.max && this.#of(caller) < (this.#maxPerCaller ?? this.max)
  }

  #of(caller: string): number {
    return this.#running.get(caller) ?? 0
  }

  #enter(caller: string): void {
    this.#taken++
    this.#running.set(caller, this.#of(caller) + 1)
  }

  #leave(caller: string): void {
    this.#taken--
    const left = this.#of(caller) - 1
    if (left > 0) this.#running.set(caller, left)
    else this.#running.delete(caller)
    this.#letIn()
  }

  /** Who has the fewest runs under way comes first, and of these who has waited longest. */
  #letIn(): void {
    const free = this.#queue.filter(({ caller }) => this.#isFree(caller))
    const [first] = free.toSorted((a, b) => this.#of(a.caller) - this.#of(b.caller))
    if (first === undefined) return
    this.#queue.splice(this.#queue.indexOf(first), 1)
    this.#enter(first.caller)
    first.enter()
  }

  #wait(caller: string, signal: AbortSignal | undefined): Promise<void> {
    const theirs = this.#queue.filter((each) => each.caller === caller).length
    if (this.#queue.length >= this.maxQueue || theirs >= (this.#maxPerCaller ?? this.maxQueue)) {
      this.#refused++
      const why = 'too many runs are under way, and too many wait already. Come again later.'
      throw new HttpError('TOO_MANY_RUNS', why, { 'retry-after': RETRY_AFTER })
    }
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#queue.splice(this.#queue.indexOf(waiting), 1)
        reject(gone())
      }
      const over = () => signal?.removeEventListener('abort', leave)
      const waiting: Waiting = {
        caller,
        enter: () => {
          over()
          resolve()
        },
        refuse: (error) => {
          over()
          reject(error)
        },
      }
      signal?.addEventListener('abort', leave, { once: true })
      this.#queue.push(waiting)
    })
  }
}
