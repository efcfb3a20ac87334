/** What of an abort signal a run needs. */
export interface CancelSignal {
  readonly aborted: boolean
  readonly reason: unknown
  addEventListener(type: 'abort', listener: () => void, options?: { readonly once?: boolean }): void
  removeEventListener(type: 'abort', listener: () => void): void
}

/** Cancels one run. An `AbortController` would do as well, and cost as much as a superstep. */
export class Cancel implements CancelSignal {
  aborted = false
  reason: unknown
  #listener: (() => void) | undefined

  abort(reason: unknown): void {
    if (this.aborted) return
    this.aborted = true
    this.reason = reason
    this.#listener?.()
  }

  /** The run's alone: of two listeners the last one is told. */
  addEventListener(_type: 'abort', listener: () => void): void {
    this.#listener = listener
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    if (this.#listener === listener) this.#listener = undefined
  }
}
