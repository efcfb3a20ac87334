import { digestOf } from '../json/digest.ts'
import { equal } from '../json/equal.ts'
import type { Json } from '../json/json.ts'
import type { Asking } from './asks.ts'
import type { Entry } from './journal.ts'
import type { Outcome } from './outcome.ts'
import type { NextOptions } from './own.ts'
import type { Policy } from './policy.ts'
import type { Site } from './site.ts'
import type { Subject } from './subject.ts'
import type { Half, Seam } from './table.ts'

/** Who makes a call. Once it is over, no call of it starts or settles. */
export interface Maker {
  readonly over: boolean
  /** Aborts when it is over for good. */
  readonly signal: AbortSignal
  /** Names the task. */
  readonly taskId: string
}

/** How many calls that have no place were named in this process. */
let unplaced = 0

/** One call on its way through a gate. The gate moves `input` and `attempt` on; nobody else writes them. */
export class Call<Input extends Json = Json> {
  readonly site: Site
  readonly subject: Subject
  /** What the code gave; each attempt starts from it. */
  readonly given: Input
  /** What runs: `given`, as own middleware and the policies have left it so far. */
  input: Input
  /** Counts from 1. */
  attempt: number
  readonly maxAttempts: number
  /** The name of who supplied the outcome, when the step itself did not. */
  substituted: string | undefined
  /** What whoever asked for it is told beside its outcome; no verdict is about that. */
  told: string | undefined
  /** Where this call is written down; absent at seams that are not journaled. */
  readonly entry: Entry | undefined
  /** How it asks people; absent where there is no thread to wait on. */
  asking: Asking | undefined
  /** Policies this call is made by or nested in; they are not consulted about it. */
  readonly nestedIn: readonly Policy[]
  /** The agent's round in which the call is made, from 1. */
  readonly round: number | undefined
  /** Aborts the trip that is under way, where whoever began it gave a signal. */
  tripSignal: AbortSignal | undefined
  /** Who makes it; absent where the run itself does. */
  readonly maker: Maker | undefined
  #key: string | undefined
  #trip = 1
  #made: Map<string, MadeTrip<Input>> | undefined

  constructor(
    site: Site,
    subject: Subject,
    given: Input,
    { maxAttempts = 1, entry, asking, nestedIn = [], round, maker }: CallOptions = {},
  ) {
    this.site = site
    this.subject = Object.freeze(subject)
    this.given = given
    this.input = given
    this.attempt = entry?.attempt ?? 1
    this.maxAttempts = maxAttempts
    this.entry = entry
    this.asking = asking
    this.nestedIn = nestedIn
    this.round = round
    this.maker = maker
  }

  /** Which trip of its attempt is under way, from 1; each `next` of a wrap makes one. */
  get trip(): number {
    return this.#trip
  }
  set trip(trip: number) {
    this.#trip = trip
  }

  /** Keeps what a trip came to that is not written down: entered anew after an answer, the call does not make it again. */
  keepTrip(given: Input, outcome: Outcome<unknown>): void {
    this.#made ??= new Map()
    this.#made.set(this.#tripKey, { given, input: this.input, outcome })
  }
  /** What this trip has come to, if it was made with that. */
  tripMade(given: Input): MadeTrip<Input> | undefined {
    const made = this.#made?.get(this.#tripKey)
    return made !== undefined && equal(made.given, given) ? made : undefined
  }
  get #tripKey(): string {
    return `${this.attempt}.${this.trip}`
  }

  /** Where it is made, as its thread names it: the same when it is entered anew. Absent where it never is. */
  get place(): readonly string[] | undefined {
    const { asking, entry } = this
    return asking?.within && [...asking.within, entry?.key ?? '']
  }

  /** Names it: the same when it is entered anew; where it never is, of its own in this process. */
  get key(): string {
    this.#key ??= digestOf(this.place ?? ++unplaced)
    return this.#key
  }

  /** Nobody waits for this call any more: its run was ended from outside, or whoever made it was given up. */
  get over(): boolean {
    return this.maker === undefined ? this.site.stopped : this.maker.over
  }

  /** How it asks where there is no thread to wait on: whoever may answer at once. Absent where nobody is asked. */
  askHere(): Asking | undefined {
    return undefined
  }

  /** The task in which it is made; absent at the edge of a run. */
  get taskId(): string | undefined {
    return this.maker?.taskId
  }

  /** Aborts when its run ends, or whoever makes it is given up. */
  get ends(): AbortSignal {
    return this.maker === undefined ? this.site.signal : this.maker.signal
  }
}

/** A trip and its raw outcome: `given` is what it was asked to make, `input` what was made. */
interface MadeTrip<Input> {
  readonly given: Input
  readonly input: Input
  readonly outcome: Outcome<unknown>
}

export interface CallOptions {
  readonly maxAttempts?: number
  readonly entry?: Entry
  readonly asking?: Asking
  readonly nestedIn?: readonly Policy[]
  readonly round?: number
  /** Absent where the run itself makes the call. */
  readonly maker?: Maker
}

/** How one seam does what all seams do. */
export interface SeamSpec<Input extends Json, Value> {
  readonly seam: Seam
  /** The halves this way leads through; both, where a spec does not say. */
  readonly halves?: readonly Half[]
  /** Its calls are never written down, so that a gate nobody subscribed to is `perform` and nothing else. */
  readonly unwritten?: true
  /** Told at the top of each attempt, before anybody is consulted. */
  entering?(call: Call<Input>): void
  /** Does the step with `call.input`. Throws, or rejects, when it fails. */
  perform(call: Call<Input>): Value | Promise<Value>
  /** Of a modify, an object with the fields to change; the whole new input, where a seam does not say. */
  readonly edits?: true
  /** Told when the step failed, before anybody is consulted about it. */
  failed?(call: Call<Input>): void
  /** Reads the `input` of a `modify`, validated like the call's own. Throws what is wrong with it. */
  readInput?(value: Json, call: Call<Input>, what: string): Input
  /** Reads the `value` of a `replace`, validated like the step's own. Throws, or rejects with, what is wrong with it. */
  readValue?(value: Json, call: Call<Input>, what: string): Value | Promise<Value>
  /** What policies see of a value. */
  show?(value: Value): Json
  /** What own middleware sees of a value, where that is not the value itself. */
  showOwn?(value: Value): unknown
  /** Reads a result that own middleware gave in place of `from`; without it, as that of a policy. Throws what is wrong with it. */
  readOwn?(value: unknown, call: Call<Input>, what: string, from: Value | undefined): Value
  /** An input of own middleware that does not fit is an error of the call, and not the middleware's failure. */
  readonly misfits?: true
  /** Reads what a wrap gives its `next` beside the input. Throws what is wrong with it. */
  readOptions?(options: NextOptions, call: Call<Input>): NextOptions
  /** Told at the start of each trip; `options` are those of its `next`, as they were read. */
  setOut?(call: Call<Input>, options: NextOptions | undefined): void
  /** The error that a value tells of, where an outcome that went well is the end of something that did not. */
  errorIn?(value: Value): unknown
  /** Whether `after` is consulted about an outcome; every outcome is, where a seam does not say. */
  judged?(outcome: Outcome<Value>): boolean
  /** Whether a verdict of `after` counts. Where it does not, it is reported and the outcome stands. */
  binding?(outcome: Outcome<Value>): boolean
  /** A retry was granted: whatever the next attempt costs is booked and written here. */
  retrying?(call: Call<Input>): void | Promise<void>
}
