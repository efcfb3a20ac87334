import type { Json } from '../json/json.ts'
import { type Held, Keeper, Kept, type KeptOptions, readHeld } from './kept.ts'
import { OneAtATime } from './one-at-a-time.ts'

/** What one policy keeps of one principal. */
export interface KeptOfPrincipal {
  /** The policy's name; of one in shadow with `shadow:` before it. */
  readonly by: string
  /** The principal's id. */
  readonly principal: string
  /** JSON text. */
  readonly text: string
}

/** What policies keep of principals, beside all threads: a text for each policy and principal. */
export interface KeptStore {
  /** `undefined` where nothing is kept. */
  read(by: string, principal: string): string | undefined | Promise<string | undefined>
  /** Writes, if what is kept is still `was`; `undefined`: still nothing. False, and nothing is written, where it is not. */
  write(by: string, principal: string, text: string, was: string | undefined): boolean | Promise<boolean>
  /** All that is kept, of everybody or of one principal, in no order. */
  list(principal?: string): readonly KeptOfPrincipal[] | Promise<readonly KeptOfPrincipal[]>
  /** Forgets what one policy keeps of a principal, or all policies; says of how many. */
  remove(principal: string, by?: string): number | Promise<number>
}

/** The same, in the process's memory. */
export class MemoryKept implements KeptStore {
  readonly #texts = new Map<string, KeptOfPrincipal>()

  read(by: string, principal: string): string | undefined {
    return this.#texts.get(keyOf(by, principal))?.text
  }

  write(by: string, principal: string, text: string, was: string | undefined): boolean {
    if (this.read(by, principal) !== was) return false
    this.#texts.set(keyOf(by, principal), { by, principal, text })
    return true
  }

  list(principal?: string): readonly KeptOfPrincipal[] {
    return [...this.#texts.values()].filter((each) => principal === undefined || each.principal === principal)
  }

  remove(principal: string, by?: string): number {
    const found = this.list(principal).filter((each) => by === undefined || each.by === by)
    for (const each of found) this.#texts.delete(keyOf(each.by, principal))
    return found.length
  }
}

const keyOf = (by: string, principal: string): string => JSON.stringify([by, principal])

/** Whether one consultation was there before, and what is to be done when its change is written. */
export interface Consulted {
  again(): boolean
  written(): void
}

/** What policies keep of principals, as the runs of this process have their turns at it. */
export class KeptOfPrincipals {
  readonly #store: KeptStore
  readonly #turns = new OneAtATime()
  static readonly #known = new WeakMap<KeptStore, KeptOfPrincipals>()

  private constructor(store: KeptStore) {
    this.#store = store
  }

  /** One for each store, whichever runtimes are on it. */
  static of(store: KeptStore): KeptOfPrincipals {
    const known = KeptOfPrincipals.#known.get(store)
    if (known !== undefined) return known
    const made = new KeptOfPrincipals(store)
    KeptOfPrincipals.#known.set(store, made)
    return made
  }

  /** One consultation's turn; settles when it is there and what is kept has been read. */
  async keeper(by: string, principal: string, options: KeptOptions, consulted: Consulted): Promise<Keeper> {
    const take = () => this.#turns.take(keyOf(by, principal))
    const giveBack = await take()
    try {
      const draft = new Draft(await this.#store.read(by, principal))
      const settle = async () => {
        const { text, was } = draft
        if (text === undefined) return true
        const isWritten = await this.#store.write(by, principal, text, was)
        if (isWritten) consulted.written()
        return isWritten
      }
      return new Keeper(new Kept(draft, by, options, undefined), consulted.again(), { giveBack, take, settle })
    } catch (error) {
      giveBack()
      throw error
    }
  }
}

/** What is kept, as one consultation found it and leaves it. */
class Draft implements Held {
  readonly was: string | undefined
  #read: { readonly value: Json } | undefined
  /** What is to be written; absent while nothing was changed. */
  text: string | undefined

  constructor(was: string | undefined) {
    this.was = was
  }

  read<Value>(by: string, options: KeptOptions<Value>): Value {
    const stored = this.was === undefined ? undefined : { value: JSON.parse(this.was) as Json }
    this.#read ??= { value: readHeld(by, options, stored) as Json }
    return this.#read.value as Value
  }

  set(_by: string, _scope: string, value: Json): void {
    this.#read = { value }
    this.text = JSON.stringify(value)
  }
}
