/** Ends a call when the plugin says nothing for so long. A word starts the time anew; while the host serves the plugin, it stands still. */
export class SilenceLimit {
  readonly #ms: number
  readonly #over: () => void
  #timer: NodeJS.Timeout | undefined
  #holds = 0
  #hasEnded = false

  constructor(ms: number, over: () => void) {
    this.#ms = ms
    this.#over = over
    this.heard()
  }

  heard(): void {
    clearTimeout(this.#timer)
    if (this.#holds === 0 && !this.#hasEnded) this.#timer = setTimeout(this.#over, this.#ms)
  }

  async held<Value>(serve: () => Promise<Value>): Promise<Value> {
    this.#holds++
    clearTimeout(this.#timer)
    try {
      return await serve()
    } finally {
      this.#holds--
      this.heard()
    }
  }

  end(): void {
    this.#hasEnded = true
    clearTimeout(this.#timer)
  }
}
