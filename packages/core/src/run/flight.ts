/**
 * What a task, or a tool call, has under way. Once a question is open and nothing moves for one turn of the loop, it can only
 * wait for people.
 */
export class Flight {
  readonly #turn: () => Promise<void>
  readonly #paused: () => void
  #moving = 0
  #open = 0
  #moves = 0
  #looking = false

  constructor(turn: () => Promise<void>, paused: () => void) {
    this.#turn = turn
    this.#paused = paused
  }

  /** A call is under way until `work` settles, or until it is told to wait. */
  async through<Value>(work: (flown: Flown) => Promise<Value>): Promise<Value> {
    this.#moving++
    this.#moves++
    let waits = false
    const flown = {
      waits: () => {
        if (waits) return
        waits = true
        this.#moving--
        this.asks()
      },
    }
    try {
      return await work(flown)
    } finally {
      if (!waits) this.#moving--
      this.#moves++
      this.#look()
    }
  }

  /** A question is open. */
  asks(): void {
    this.#open++
    this.#look()
  }

  #look(): void {
    if (this.#open === 0 || this.#moving > 0 || this.#looking) return
    this.#looking = true
    const moves = this.#moves
    this.#turn().then(() => {
      this.#looking = false
      if (this.#moving > 0) return
      if (this.#moves === moves) this.#paused()
      else this.#look()
    })
  }
}

/** Of a call in a run without a thread, which never waits. */
export const UNFLOWN: Flown = { waits: () => undefined }

/** A call under way, which may turn out to wait for a person. */
export interface Flown {
  waits(): void
}
