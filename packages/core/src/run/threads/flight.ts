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
  /** Questions that are on their way, open or not. */
  #questions = 0
  #waiting: (() => void)[] = []
  #changing: (() => void)[] = []

  constructor(turn: () => Promise<void>, paused: () => void) {
    this.#turn = turn
    this.#paused = paused
  }

  /** A call is under way until `work` settles, or until it is told to wait. */
  async through<Value>(work: (flown: Flown) => Promise<Value>): Promise<Value> {
    this.#moving++
    this.#changed()
    let waits = false
    const flown = {
      waits: () => {
        if (waits) return
        waits = true
        this.#moving--
        this.#changed()
        this.asks()
      },
    }
    try {
      return await work(flown)
    } finally {
      // What waited and settles all the same was given up, and its questions with it.
      if (waits) this.#open--
      else this.#moving--
      this.#changed()
      this.#look()
      this.#tell()
    }
  }

  /** The same for what makes calls of its own: while `work` has it do so, those are under way and it is not. */
  around<Value>(
    work: (inside: <Inner>(calls: () => Promise<Inner>) => Promise<Inner>) => Promise<Value>,
  ): Promise<Value> {
    return this.through(() =>
      work(async (calls) => {
        this.#moving--
        this.#changed()
        try {
          const made = calls()
          this.#look()
          return await made
        } finally {
          this.#moving++
          this.#changed()
        }
      }),
    )
  }

  /** A question is under way: whoever put it has not come to its end before it is answered. */
  async question<Value>(work: (flown: Flown) => Promise<Value>): Promise<Value> {
    this.#questions++
    try {
      return await this.through(work)
    } finally {
      this.#questions--
      this.#tell()
    }
  }

  /** How many calls are under way. */
  get moving(): number {
    return this.#moving
  }

  /** Settles when a call begins or ends, or waits for a person. */
  change(): Promise<void> {
    return new Promise((resolve) => this.#changing.push(resolve))
  }

  #changed(): void {
    this.#moves++
    if (this.#changing.length > 0) for (const resolve of this.#changing.splice(0)) resolve()
  }

  /** Whether a question is open, or on its way. */
  get asking(): boolean {
    return this.#open > 0 || this.#questions > 0
  }

  /** Settles when no question is open any more; while one is, nobody comes to an end. */
  answered(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve)
      this.#tell()
    })
  }

  #tell(): void {
    if (this.#waiting.length === 0 || this.asking) return
    for (const resolve of this.#waiting.splice(0)) resolve()
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
  /** How whoever drains the process counts it. */
  readonly counted?: CountedCall
}

/** A call as a drain counts it: under way until it ends, but not while it waits for people, or for graphs that it runs. */
export class CountedCall {
  readonly #tell: (counts: boolean) => void
  #counts = true
  #over = false
  #resting = 0

  /** @param tell told when it counts no longer, or again. */
  constructor(tell: (counts: boolean) => void) {
    this.#tell = tell
  }

  /** It has ended, or can only wait for people. */
  end(): void {
    this.#over = true
    this.#look()
  }

  /** While `work` goes on, that is what is under way. */
  async rest<Value>(work: () => Promise<Value>): Promise<Value> {
    this.#resting++
    this.#look()
    try {
      return await work()
    } finally {
      this.#resting--
      this.#look()
    }
  }

  #look(): void {
    const counts = !this.#over && this.#resting === 0
    if (counts === this.#counts) return
    this.#counts = counts
    this.#tell(counts)
  }
}
