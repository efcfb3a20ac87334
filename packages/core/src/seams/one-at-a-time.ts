/** One at a time under each name: whoever comes first has the first turn. */
export class OneAtATime {
  readonly #last = new Map<string, Promise<void>>()

  /** Settles when it is there; what it hands back gives it to the next one. */
  async take(name: string): Promise<() => void> {
    const before = this.#last.get(name)
    let done: () => void = () => undefined
    const mine = new Promise<void>((resolve) => {
      done = resolve
    })
    this.#last.set(name, mine)
    await before
    return () => {
      if (this.#last.get(name) === mine) this.#last.delete(name)
      done()
    }
  }
}
