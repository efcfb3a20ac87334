import { equal } from '../json/equal.ts'
import type { Json } from '../json/json.ts'
import type { Outcome } from './outcome.ts'

/** The kinds of calls that a task's journal holds. */
export type CallKind = 'model' | 'tool'

/** One attempt of a call, until the call is settled: what it was given, what policies let run, and the raw outcome. */
export interface Trip {
  readonly attempt: number
  readonly given: Json
  readonly input: Json
  outcome: Outcome<unknown> | undefined
}

/**
 * One call as written down: what the code gave, the trips made for it, and, once settled, the outcome. In memory the input is
 * kept by reference, for it is frozen; no copy and no digest is made.
 */
export class Entry {
  readonly kind: CallKind
  readonly name: string
  readonly input: Json
  settled: Outcome<unknown> | undefined
  /** The attempt on which a call that is entered anew goes on. */
  attempt = 1
  readonly #trips: Trip[] = []

  constructor(kind: CallKind, name: string, input: Json) {
    this.kind = kind
    this.name = name
    this.input = input
  }

  /** The trip of this attempt that was given this very input and has its raw outcome, if there is one. */
  made(attempt: number, given: Json): Trip | undefined {
    return this.#trips.find(
      (trip) => trip.attempt === attempt && trip.outcome !== undefined && equal(trip.given, given),
    )
  }

  start(attempt: number, given: Json, input: Json): Trip {
    const trip: Trip = { attempt, given, input, outcome: undefined }
    this.#trips.push(trip)
    return trip
  }

  /** A retry was granted; written before its delay, so that a call entered anew goes on there. */
  retry(attempt: number): void {
    this.attempt = attempt
  }

  /** Settles the call and forgets its trips: what a policy withheld stands nowhere. */
  settle(outcome: Outcome<unknown>): void {
    this.settled = outcome
    this.#trips.length = 0
  }
}

/** The calls of one execution of a node, in the order they were made. */
export class Journal {
  readonly #entries: Entry[]
  readonly #replayed: Set<Entry>

  /** @param recorded the entries of an earlier run of the same execution, to be handed back rather than made again. */
  constructor(recorded: readonly Entry[] = []) {
    this.#entries = [...recorded]
    this.#replayed = new Set(recorded)
  }

  get entries(): readonly Entry[] {
    return this.#entries
  }

  /** The first unused recorded entry of that kind and name whose input fits, else a new one. */
  enter(kind: CallKind, name: string, input: Json): Entry {
    for (const entry of this.#replayed) {
      if (entry.kind !== kind || entry.name !== name || !equal(entry.input, input)) continue
      this.#replayed.delete(entry)
      return entry
    }
    const entry = new Entry(kind, name, input)
    this.#entries.push(entry)
    return entry
  }
}
