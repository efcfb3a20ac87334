/** What the order of outcomes needs to know of the calls around. */
interface Around {
  /** Lets everything else have its turn once. */
  turn(): Promise<void>
  /** How many calls are under way, the one that asks included. */
  readonly underWay?: number
  /** Settles once time enough has gone by for what moves without any call; never when it is given up before. */
  patience?(givenUp: AbortSignal): Promise<void>
}

interface Waiting {
  readonly turn: number
  readonly come: () => void
}

/**
 * Hands outcomes back in the order in which they had settled: each once whoever was handed the one before has gone on, so that
 * branches of one node make their next calls in the order in which they made them. One that is not asked for in time is passed by.
 */
export class Turns {
  readonly #around: Around
  /** Those that are to come, in their order. */
  readonly #order: number[]
  readonly #waiting = new Set<Waiting>()
  #running = false
  /** Told when somebody else comes to wait. */
  #told: (() => void) | undefined

  /** @param order the turns, ascending. */
  constructor(order: readonly number[], around: Around) {
    this.#around = around
    this.#order = [...order]
  }

  /** `undefined` when it is the turn of that outcome; a call that has none yet comes after all that have, by `Infinity`. */
  take(turn: number): Promise<void> | undefined {
    if (this.#waiting.size === 0 && turn <= this.#next && (this.#around.underWay ?? 0) <= 1) {
      this.#pass(turn)
      return undefined
    }
    return new Promise((come) => {
      this.#waiting.add({ turn, come })
      this.#told?.()
      if (!this.#running) void this.#run()
    })
  }

  get #next(): number {
    return this.#order[0] ?? Number.POSITIVE_INFINITY
  }

  /** That turn has come; what would have come before it is not waited for any more. */
  #pass(turn: number): void {
    while (this.#order.length > 0 && this.#next <= turn) this.#order.shift()
  }

  async #run(): Promise<void> {
    this.#running = true
    while (this.#waiting.size > 0) {
      await this.#around.turn()
      const first = this.#first
      if (first.turn > this.#next && (await this.#anotherComes())) continue
      this.#waiting.delete(first)
      this.#pass(first.turn)
      first.come()
    }
    this.#running = false
  }

  get #first(): Waiting {
    return [...this.#waiting].reduce((first, each) => (each.turn < first.turn ? each : first))
  }

  /** Whether somebody else comes to wait before patience is over. */
  async #anotherComes(): Promise<boolean> {
    if (this.#around.patience === undefined) return false
    const came = new AbortController()
    const another = new Promise<true>((tell) => {
      this.#told = () => tell(true)
    })
    const comes = await Promise.race([another, this.#around.patience(came.signal).then(() => false)])
    came.abort()
    this.#told = undefined
    return comes
  }
}
