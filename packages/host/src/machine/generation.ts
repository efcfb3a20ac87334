import type { Host } from './host.ts'

/** A host and the runs that began on it. When another one has taken its place, it is closed after the last of them. */
export class Generation {
  readonly host: Host
  #runs = 0
  #retired = false
  /** Whether a flow that calls its plugins was loaded on it: it may be run at any time. */
  #kept = false
  #closing: Promise<void> | undefined

  readonly #onClosed: (closed: Generation) => void

  constructor(host: Host, onClosed: (closed: Generation) => void) {
    this.host = host
    this.#onClosed = onClosed
  }

  keep(): void {
    this.#kept = true
  }

  /** Counts a run; what is handed back is called at its end, and does nothing when it is called again. */
  begin(): () => void {
    this.#runs++
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      this.#runs--
      this.#closeWhenIdle()
    }
  }

  retire(): void {
    this.#retired = true
    this.#closeWhenIdle()
  }

  /** Ends its runs before their next call, and then its plugins. */
  async close(): Promise<void> {
    await this.host.runtime.drain()
    await this.#close()
  }

  #closeWhenIdle(): void {
    if (this.#retired && !this.#kept && this.#runs === 0) void this.#close()
  }

  #close(): Promise<void> {
    this.#closing ??= this.host.close().finally(() => this.#onClosed(this))
    return this.#closing
  }
}
