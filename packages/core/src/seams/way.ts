import type { Json } from '../json/json.ts'
import type { Call } from './call.ts'

/** Why an attempt was left before it came to an outcome: a granted retry, or a question that was answered at once. */
export type Left = 'retry' | 'again'

/**
 * One go into the onion: an attempt from the top, or what one `next` of a wrap goes into. Once it is over, because a wrap has
 * settled without it, its signal has aborted, or its attempt was left, nothing that is still under way in it counts.
 */
export class Way {
  readonly #outer: { readonly over: boolean }
  readonly #endings = new Set<() => void>()
  #ended = false
  /** Whether the step itself is being made: a signal ends that by itself. */
  performing = false

  constructor(outer: { readonly over: boolean }) {
    this.#outer = outer
  }

  get over(): boolean {
    return this.#ended || this.#outer.over
  }

  /** A way that ends with this one. */
  inside(): Way {
    const inner = new Way(this)
    this.onEnd(() => inner.end())
    return inner
  }

  /** Calls `then` when it ends, unless what this hands back is called before. */
  onEnd(then: () => void): () => void {
    this.#endings.add(then)
    return () => this.#endings.delete(then)
  }

  end(): void {
    this.#ended = true
    for (const then of this.#endings) then()
    this.#endings.clear()
  }
}

/** One attempt on its way through the onion. */
export class Attempt<Input extends Json> extends Way {
  readonly call: Call<Input>
  readonly #leave: (why: Left) => void
  trips = 0

  constructor(call: Call<Input>, leave: (why: Left) => void) {
    super(call)
    this.call = call
    this.#leave = leave
  }

  leave(why: Left): void {
    if (!this.over) this.#leave(why)
    this.end()
  }
}
