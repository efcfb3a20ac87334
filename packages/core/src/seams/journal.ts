import { equal } from '../json/equal.ts'
import type { Json } from '../json/json.ts'
import type { Asked } from './asks.ts'
import type { Outcome } from './outcome.ts'
import { Turns } from './turns.ts'

/** The kinds of calls that a journal holds. */
export type CallKind = 'model' | 'tool' | 'run' | 'gather' | 'once' | 'round' | 'ask'

/** Stands for an input in what was read back. */
export class ReadDigest {
  readonly digest: string

  constructor(digest: string) {
    this.digest = digest
  }
}

/** One attempt of a call, until the call is settled: what it was given, what policies let run, and the raw outcome. */
export interface Trip {
  readonly attempt: number
  /** Which trip of its attempt it is, from 1. */
  readonly number: number
  readonly given: Json | ReadDigest
  readonly input: Json
  outcome: Outcome<unknown> | undefined
}

/** Where calls are written down. What is handed back never rejects: a write that fails ends the run, and nothing settles then. */
export interface Ledger {
  digest(kind: CallKind, input: Json): string
  /** Puts an entry that is not settled beside the log, as it stands. */
  note(entry: Entry): void | Promise<void>
  /** Writes an entry's outcome to the log, and takes away what lay beside it. */
  settled(entry: Entry): void | Promise<void>
  /** Lets everything else have its turn once. */
  turn(): Promise<void>
  /** Settles once time enough has gone by for what moves without any call, like a timer; never when it is given up before. */
  patience?(givenUp: AbortSignal): Promise<void>
  /** How many calls are under way, those that wait in the journal included; and when that changes. */
  readonly underWay?: number
  change?(): Promise<void>
  /** A call was made that the journal does not have where others are still to come: the run ends, for the code has changed. */
  diverged(kind: CallKind, name: string): Promise<never>
}

/** What was read back of an entry. */
export interface Recorded {
  readonly digest: string
  readonly order: number
  readonly attempt?: number
  readonly trips?: readonly Trip[]
  readonly settled?: Outcome<unknown>
  readonly told?: string
  /** When it had settled, among the others of its task. */
  readonly settledAs?: number
}

/**
 * One call as written down: what the code gave, the trips made for it, and, once settled, the outcome. In memory the input is
 * kept by reference, for it is frozen; a digest is made when it is written or compared with what was read back.
 */
export class Entry {
  readonly kind: CallKind
  readonly name: string
  /** Which call of this kind and name it is in its task, from 0. */
  readonly ordinal: number
  /** Which call it is in its task, from 1. */
  readonly order: number
  readonly ledger: Ledger | undefined
  settled: Outcome<unknown> | undefined
  /** What whoever asked for the call is told beside the outcome. */
  told: string | undefined
  /** When it had settled, among those read back. */
  readonly settledAs: number | undefined
  /** The attempt on which a call that is entered anew goes on. */
  attempt: number
  /** Whether doing it twice does no harm, so that a call that was cut off is made again without asking. */
  repeatable = true
  /** Whether a question was put further in that still waits: the call was not cut off, and goes on there. */
  beneath = false
  /** Whether it lies beside the log. */
  noted: boolean
  /** Whether it was read back. */
  readonly recorded: boolean
  /** What a person was asked about this call, and what they answered. */
  asks: Asked[] | undefined
  #input: Json | undefined
  #digest: string | undefined
  /** Whether a trip was started here, and not in an earlier run. */
  #started = false
  readonly trips: Trip[]

  constructor(
    kind: CallKind,
    name: string,
    input?: Json,
    ordinal = 0,
    order = 1,
    ledger?: Ledger,
    recorded?: Recorded,
  ) {
    this.kind = kind
    this.name = name
    this.ordinal = ordinal
    this.order = order
    this.ledger = ledger
    this.settled = recorded?.settled
    this.told = recorded?.told
    this.settledAs = recorded?.settledAs
    this.attempt = recorded?.attempt ?? 1
    this.recorded = recorded !== undefined
    this.noted = recorded !== undefined && recorded.settled === undefined
    this.trips = [...(recorded?.trips ?? [])]
    this.#input = input
    this.#digest = recorded?.digest
  }

  /** Tells it from all others of its task. */
  get key(): string {
    return keyOf(this.kind, this.name, this.ordinal)
  }

  get digest(): string {
    this.#digest ??= this.ledger?.digest(this.kind, this.#input ?? null) ?? ''
    return this.#digest
  }

  /** Whether it was made for this input. */
  fits(input: Json): boolean {
    if (this.#input !== undefined) return equal(this.#input, input)
    if (this.ledger?.digest(this.kind, input) !== this.#digest) return false
    this.#input = input
    return true
  }

  /** That trip of this attempt, if it was given this very input and has its raw outcome. */
  made(attempt: number, number: number, given: Json): Trip | undefined {
    return this.trips.find(
      (trip) =>
        trip.attempt === attempt && trip.number === number && trip.outcome !== undefined && this.#wasGiven(trip, given),
    )
  }

  #wasGiven({ given: was }: Trip, given: Json): boolean {
    return was instanceof ReadDigest ? this.ledger?.digest(this.kind, given) === was.digest : equal(was, given)
  }

  /** A trip was started and nobody knows what came of it; it may have done its work. */
  get orphaned(): boolean {
    const last = this.trips.at(-1)
    const cutOff = last !== undefined && last.outcome === undefined
    return this.recorded && !this.#started && !this.repeatable && !this.beneath && cutOff
  }

  /** Which go at it was the last one, over all processes. */
  get go(): string {
    return `${this.attempt}.${this.trips.length}`
  }

  /** Its start is written before it is made, where it must not happen twice. */
  start(attempt: number, number: number, given: Json, input: Json): Trip | Promise<Trip> {
    const trip: Trip = { attempt, number, given, input, outcome: undefined }
    this.#started = true
    this.trips.push(trip)
    const written = this.repeatable ? undefined : this.ledger?.note(this)
    return written === undefined ? trip : written.then(() => trip)
  }

  /** Writes the raw outcome, before anybody judges it. */
  performed(trip: Trip, outcome: Outcome<unknown>): void | Promise<void> {
    trip.outcome = outcome
    return this.ledger?.note(this)
  }

  /** A retry was granted; written before its delay, so that a call entered anew goes on there. */
  retry(attempt: number): void | Promise<void> {
    this.attempt = attempt
    this.trips.length = 0
    return this.ledger?.note(this)
  }

  /** Settles the call and forgets its trips: what a policy withheld stands nowhere. */
  settle(outcome: Outcome<unknown>, told?: string): void | Promise<void> {
    this.settled = outcome
    this.told = told
    this.trips.length = 0
    this.asks = undefined
    return this.ledger?.settled(this)
  }
}

export const keyOf = (kind: CallKind, name: string, ordinal: number): string => `${kind}:${name}:${ordinal}`

/** The calls of one execution of a node, or of one tool call, in the order they were made. */
export class Journal {
  readonly #ledger: Ledger
  /** Those read back that no call has taken yet. */
  readonly #unused: Set<Entry>
  readonly #rounds: ReadonlyMap<string, Entry>
  /** For each kind and name, how many calls were made. */
  readonly #counts = new Map<string, number>()
  /** Keys that are not free for a new call; none where nothing was read back, for then each call has a place of its own. */
  readonly #taken: Set<string>
  #started = 0
  /** Calls that wait until others have taken what was read back. */
  #waiting = 0
  /** How often something happened here: while it grows, others may still take what was read back. */
  #moves = 0
  /** Told when something happens. */
  #told: (() => void)[] = []
  /** When what had settled is handed back; absent where nothing had. */
  readonly #turns: Turns | undefined

  /**
   * @param recorded the entries of an earlier run of the same execution, to be handed back rather than made again.
   * @param asked when questions had settled, among those.
   */
  constructor(ledger: Ledger, recorded: readonly Entry[] = [], asked: readonly number[] = []) {
    this.#ledger = ledger
    const settled = recorded.flatMap(({ kind, settledAs }) =>
      kind === 'round' || settledAs === undefined ? [] : [settledAs],
    )
    const order = [...settled, ...asked].sort((a, b) => a - b)
    this.#turns = order.length === 0 ? undefined : new Turns(order, ledger)
    this.#unused = new Set(recorded.filter(({ kind }) => kind !== 'round'))
    this.#rounds = new Map(recorded.flatMap((entry) => (entry.kind === 'round' ? [[entry.key, entry]] : [])))
    this.#taken = new Set(recorded.map(({ key }) => key))
  }

  /** How many calls have been made. */
  get started(): number {
    return this.#started
  }

  /**
   * The entry of a call: the one read back for its kind, name and place if it fits, else the first unused one of that kind and
   * name that fits. While others read back are still to be used it waits for them, and is then a new one.
   */
  enter(kind: CallKind, name: string, input: Json): Entry | Promise<Entry> {
    const what = `${kind}:${name}`
    const ordinal = this.#counts.get(what) ?? 0
    this.#counts.set(what, ordinal + 1)
    if (this.#unused.size === 0) return this.#begin(kind, name, input, ordinal)
    const found = this.#find(kind, name, input, ordinal)
    if (found === undefined) return this.#wait(kind, name, input, ordinal)
    const turn = this.turnOf(found.settledAs)
    return turn === undefined ? found : turn.then(() => found)
  }

  /** When what had settled so is handed back; without a place among those, after them. `undefined`: at once. */
  turnOf(settledAs = Number.POSITIVE_INFINITY): Promise<void> | undefined {
    return this.#turns?.take(settledAs)
  }

  /**
   * The entry of an agent's round. A round stands around its calls and only says that it was judged, so it is found by its
   * place, and others neither wait for it nor count it.
   */
  enterRound(name: string, input: Json): Entry {
    const ordinal = this.#counts.get(`round:${name}`) ?? 0
    this.#counts.set(`round:${name}`, ordinal + 1)
    const recorded = this.#rounds.get(keyOf('round', name, ordinal))
    return recorded?.fits(input) ? recorded : new Entry('round', name, input, ordinal, 0, this.#ledger)
  }

  /** Counts a question, which is found by its id and not by its place; `order` is its number if it was read back. */
  asked(order: number | undefined): number {
    this.moved()
    this.#started = order === undefined ? this.#started + 1 : Math.max(this.#started, order)
    return order ?? this.#started
  }

  /** Somebody asks about one of the calls; says how many of them have been made. */
  askedAbout(): number {
    this.moved()
    return this.#started
  }

  /** Something of the task has moved on. */
  moved(): void {
    this.#moves++
    if (this.#told.length > 0) for (const tell of this.#told.splice(0)) tell()
  }

  /** Whether something happens here before the patience of the ledger is over. */
  async #movesOn(): Promise<boolean> {
    const moves = this.#moves
    if (this.#ledger.patience === undefined) return false
    const moved = new AbortController()
    await Promise.race([this.#ledger.patience(moved.signal), new Promise<void>((tell) => this.#told.push(tell))])
    moved.abort()
    return this.#moves !== moves
  }

  /** A new call has the place at which it is made, which is also the one it had when it was cut off; else the first free one. */
  #begin(kind: CallKind, name: string, input: Json, made: number): Entry {
    this.moved()
    let ordinal = made
    if (this.#taken.size > 0) {
      if (this.#taken.has(keyOf(kind, name, made))) ordinal = 0
      while (this.#taken.has(keyOf(kind, name, ordinal))) ordinal++
      this.#taken.add(keyOf(kind, name, ordinal))
    }
    return new Entry(kind, name, input, ordinal, ++this.#started, this.#ledger)
  }

  #find(kind: CallKind, name: string, input: Json, ordinal: number): Entry | undefined {
    let found: Entry | undefined
    for (const entry of this.#unused) {
      if (entry.kind !== kind || entry.name !== name || !entry.fits(input)) continue
      if (entry.ordinal === ordinal) return this.#take(entry)
      found ??= entry
    }
    return found && this.#take(found)
  }

  #take(entry: Entry): Entry {
    this.#unused.delete(entry)
    this.#started = Math.max(this.#started, entry.order)
    this.moved()
    return entry
  }

  async #wait(kind: CallKind, name: string, input: Json, ordinal: number): Promise<Entry> {
    this.#waiting++
    try {
      for (;;) {
        const moves = this.#moves
        await this.#ledger.turn()
        if (this.#unused.size === 0) return this.#begin(kind, name, input, ordinal)
        if (this.#moves !== moves) continue
        const { underWay = 0 } = this.#ledger
        if (underWay > this.#waiting) await this.#ledger.change?.()
        else if (!(await this.#movesOn())) return this.#ledger.diverged(kind, name)
      }
    } finally {
      this.#waiting--
    }
  }
}
