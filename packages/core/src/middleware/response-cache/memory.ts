import type { CachedResponse, ResponseCache } from './index.ts'

/** A cache in memory that holds so many responses, and lets go of the one that was not used for longest. */
export class MemoryCache implements ResponseCache {
  readonly #maxEntries: number
  /** In the order in which they were used last: a Map keeps the order in which keys were set. */
  readonly #held = new Map<string, CachedResponse>()

  constructor(maxEntries: number) {
    this.#maxEntries = maxEntries
  }

  get(key: string): CachedResponse | undefined {
    const found = this.#held.get(key)
    if (found === undefined) return undefined
    this.#held.delete(key)
    this.#held.set(key, found)
    return found
  }

  set(key: string, response: CachedResponse): void {
    this.#held.delete(key)
    this.#held.set(key, response)
    if (this.#held.size <= this.#maxEntries) return
    const [oldest] = this.#held.keys()
    this.#held.delete(oldest as string)
  }
}
