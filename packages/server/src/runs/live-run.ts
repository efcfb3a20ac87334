/** A run that is under way in this process, and those who wait for what it does next. */
export class LiveRun {
  /** Settles when it is under way here no longer; never rejects. */
  done: Promise<void> = Promise.resolve()
  readonly cancel: () => void
  #next: Promise<void> | undefined
  #tell: (() => void) | undefined

  constructor(cancel: () => void) {
    this.cancel = cancel
  }

  /** Settles when it has done something more, or has ended. */
  next(): Promise<void> {
    this.#next ??= new Promise((resolve) => {
      this.#tell = resolve
    })
    return this.#next
  }

  moved(): void {
    this.#tell?.()
    this.#next = this.#tell = undefined
  }
}
