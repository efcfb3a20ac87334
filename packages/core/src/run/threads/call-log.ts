import { SluiceError } from '../../errors/error.ts'
import { Digester, digestOf } from '../../json/digest.ts'
import type { Json, JsonObject } from '../../json/json.ts'
import { own } from '../../json/own.ts'
import type { Asked } from '../../seams/asks.ts'
import { askerOf } from '../../seams/failure.ts'
import { type CallKind, Entry, Journal, keyOf, type Ledger, ReadDigest, type Trip } from '../../seams/journal.ts'
import { wait } from '../../seams/timer.ts'
import {
  type AnswerRecord,
  type AskRecord,
  revivedOutcome,
  type StoredOutcome,
  storedOutcome,
  type ThreadRecord,
  type Untimed,
  type Within,
  withinOf,
} from '../../store/records.ts'
import type { RunScope } from '../scope.ts'
import type { Flight } from './flight.ts'
import { inKey, recordsAt } from './position.ts'
import type { Thread } from './thread.ts'

/** Milliseconds that a call waits for others that are still to come, where nothing but a timer of the node's own may be under way. */
const PATIENCE_MS = 1_000

/** Milliseconds between two looks at a response that is coming in: who reads the thread is at most that far behind. */
const KEEP_EVERY_MS = 100

/** The last step of the key under which the text lies that has left of a response; that of a call has colons. */
export const SAID = 'said'

type SettledCall = Extract<ThreadRecord, { type: 'call' }>

/** An unsettled call as it lies beside the log. */
interface Note {
  readonly kind: CallKind
  readonly name: string
  readonly ordinal: number
  readonly order: number
  readonly digest: string
  readonly attempt: number
  readonly trips: readonly {
    readonly attempt: number
    /** From 1, which it is without it. */
    readonly number?: number
    readonly given: string
    readonly input: Json
    readonly outcome?: StoredOutcome
  }[]
}

/** The calls of a task, or of a tool call, as its thread keeps them. */
export class CallLog implements Ledger {
  readonly scope: RunScope
  readonly thread: Thread
  readonly within: Within
  /** What the keys of its asks begin with. */
  readonly prefix: string
  readonly flight: Flight
  readonly journal: Journal
  readonly #records: readonly ThreadRecord[]
  /** Those that are about the calls of this very log, and not further in. */
  readonly #own: readonly ThreadRecord[]
  readonly #digester = new Digester()
  #firstRun: string | undefined
  /** What is written with the outcome of an entry, in the same go. */
  readonly along = new WeakMap<Entry, () => readonly Untimed[]>()
  /** Which call a question is about, by its id. */
  readonly #askIds = new Map<string, string>()

  constructor(
    scope: RunScope,
    thread: Thread,
    within: Within,
    prefix: string,
    flight: Flight,
    records: readonly ThreadRecord[] = [],
  ) {
    this.scope = scope
    this.thread = thread
    this.within = within
    this.prefix = prefix
    this.flight = flight
    this.#records = records
    this.#own = records.filter((record) => withinOf(record).length === within.length)
    const recorded = this.#recordedCalls()
    this.#firstRun = recorded.find(({ kind }) => kind === 'run')?.name
    this.journal = new Journal(this, recorded, [...this.#settledAsks().values()])
  }

  digest(kind: CallKind, input: Json): string {
    return kind === 'model' ? this.#digester.of(input) : digestOf(input)
  }

  note(entry: Entry): void | Promise<void> {
    if (entry.kind === 'round') return undefined
    entry.noted = true
    return this.thread.writeBeside(this.#key(entry.key), noteOf(entry, this) as unknown as JsonObject)
  }

  /**
   * Keeps the text of a response that is still coming, a few times a second, and nothing of the request, which may be long; it goes
   * when the call is settled.
   */
  keeperOf(entry: Entry): (said: string) => void {
    const { platform } = this.thread
    let next = platform.now() + KEEP_EVERY_MS
    return (said) => {
      if (platform.now() < next || entry.settled !== undefined) return
      next = platform.now() + KEEP_EVERY_MS
      this.thread.writeBeside(this.#saidKey(entry), said)
    }
  }

  settled(entry: Entry): void | Promise<void> {
    this.journal.moved()
    const { kind, name, ordinal, digest, order, settled, told } = entry
    if (settled === undefined) return undefined
    if (this.thread.asks.size > 0) this.thread.withdraw([...this.within, entry.key])
    const outcome = storedOutcome(kind === 'round' && settled.ok ? { ok: true, value: undefined } : settled)
    const { started } = this.journal
    const record = {
      type: 'call',
      within: this.within,
      kind,
      name,
      ordinal,
      digest,
      order,
      started,
      ...(told === undefined ? {} : { told }),
      ...outcome,
    } as const
    const records = [...(this.along.get(entry)?.() ?? []), record]
    // Of the door of the outermost run: a snapshot has it.
    if (this.within === this.scope.within)
      for (const each of records) this.scope.on?.position?.apply({ ...each, time: 0 } as ThreadRecord)
    const beside = this.#besideOf(entry)
    return this.thread.write(records, beside.length > 0 ? { beside } : undefined)
  }

  turn(): Promise<void> {
    return this.thread.platform.turn()
  }

  patience(givenUp: AbortSignal): Promise<void> {
    return wait(this.thread.platform, AbortSignal.any([givenUp, this.scope.signal]), PATIENCE_MS)
  }

  /** When the questions of the node or the tool had been answered and that handed over, by id; one that was put again has not. */
  #settledAsks(): ReadonlyMap<string, number> {
    const settled = new Map<string, number>()
    for (const [settledAs, record] of this.#own.entries()) {
      if (record.type === 'ask') settled.delete(record.id)
      else if (record.type === 'call' && record.kind === 'ask' && !record.name.includes('@')) {
        settled.set(record.name, settledAs)
      }
    }
    return settled
  }

  /** When that answer is handed back, in the order in which what is read back had settled. */
  turnOf(id: string): Promise<void> | undefined {
    return this.journal.turnOf(this.#settledAsks().get(id))
  }

  get underWay(): number {
    return this.flight.moving
  }

  change(): Promise<void> {
    return this.flight.change()
  }

  diverged(kind: CallKind, name: string): Promise<never> {
    return this.scope.halt(
      new SluiceError(
        'CODE_CHANGED',
        `${this.prefix}: the call of ${kind} "${name}" is not one that was made before the pause, and calls that were made are still to come: the code before the pause changed. Put it back, or fork the thread before this node.`,
        { node: this.within.at(-1) },
      ),
    )
  }

  /** What was written further in, below one of these calls. */
  inside(key: string): readonly ThreadRecord[] {
    return recordsAt([...this.within, key], this.#records)
  }

  /** The key of one of its asks. */
  keyOf(id: string): string {
    return id.startsWith('@') ? `${this.prefix}${id}` : `${this.prefix}:${id}`
  }

  /**
   * What the keys of asks in a run begin with: those of the first graph that is run here say no more than the place, so that a
   * node that runs one graph has keys that are easily read.
   */
  prefixOf({ name, ordinal }: Entry): string {
    this.#firstRun ??= name
    const other = name === this.#firstRun ? '' : `#${inKey(name)}`
    // A graph that is called like a number is told from the first graph's runs, which have one.
    const which = ordinal === 0 && !/^#\d+$/.test(other) ? '' : `#${ordinal}`
    return `${this.prefix}${other}${which}`
  }

  /** A question of that id, and what became of it, if it was put in an earlier run. */
  recordedAsk(id: string): PutAsk | undefined {
    let ask: AskRecord | undefined
    let answer: PutAsk['answer']
    for (const record of this.#own) {
      if (record.type === 'ask' && record.id === id) [ask, answer] = [record.withdrawn ? undefined : record, undefined]
      else if (record.type === 'answer' && record.id === id) answer = record
    }
    return ask && { ask, answer }
  }

  /** The settled outcome of a question, if it was handed over in an earlier run. */
  recordedOutcome(id: string): Extract<ThreadRecord, { type: 'call' }> | undefined {
    let outcome: ThreadRecord | undefined
    for (const record of this.#own) {
      // One that was put once more is open again.
      if (record.type === 'ask' && record.id === id) outcome = undefined
      else if (record.type === 'call' && record.kind === 'ask' && record.name === id) outcome = record
    }
    return outcome as never
  }

  /** What policies and the engine asked about one of these calls, or about the node itself. */
  askedAbout(call: string | undefined): Asked[] {
    const ids = new Set<string>()
    for (const record of this.#own)
      if (record.type === 'ask' && isAboutCall(record) && record.call === call) ids.add(record.id)
    return [...ids].flatMap((id) => {
      const put = this.recordedAsk(id)
      return put === undefined ? [] : [askedOf(put)]
    })
  }

  /** Whether somebody below one of these calls has asked and was not handed an answer: the call waits, and was not cut off. */
  #waitsBelow(key: string): boolean {
    const waiting = new Set<string>()
    for (const record of this.inside(key)) {
      if (record.type === 'ask') waiting.add(JSON.stringify([...record.within, record.id]))
      else if (record.type === 'call' && record.kind === 'ask') {
        waiting.delete(JSON.stringify([...record.within, record.name]))
      }
    }
    return waiting.size > 0
  }

  /** Takes an id for a question about one of these calls, unless one about another call has it: two may be called the same. */
  takeAskId(id: string, call: string): boolean {
    const of = this.#askIds.get(id) ?? this.recordedAsk(id)?.ask.call ?? call
    this.#askIds.set(id, of)
    return of === call
  }

  /**
   * The entries that were read back: settled ones from the log, others from beside it. What lies beside the log about a call that
   * a person skipped is newer than that: it is being made again.
   */
  #recordedCalls(): readonly Entry[] {
    const entries = new Map<string, Entry>()
    for (const [settledAs, record] of this.#own.entries()) {
      if (record.type !== 'call' || record.kind === 'ask') continue
      const entry = record.cutOff ? cutOff(record, this) : this.#fromRecord(record, settledAs)
      entries.set(entry.key, entry)
    }
    for (const note of this.thread.besideWithin(this.within) as readonly unknown[] as readonly Note[]) {
      const key = keyOf(note.kind, note.name, note.ordinal)
      if (entries.get(key)?.settled === undefined) entries.set(key, this.#fromNote(note))
    }
    return [...entries.values()].sort((a, b) => a.order - b.order)
  }

  #fromRecord(record: SettledCall, settledAs: number): Entry {
    const { kind, name, ordinal, order, digest, told } = record
    const settled = revivedOutcome(
      record.ok && record.value !== undefined ? { ok: true, value: own(record.value) } : record,
    )
    return new Entry(kind, name, undefined, ordinal, order, this, { digest, order, settled, settledAs, told })
  }

  #fromNote({ kind, name, ordinal, order, digest, attempt, trips }: Note): Entry {
    const read: Trip[] = trips.map((trip) => ({
      attempt: trip.attempt,
      number: trip.number ?? 1,
      given: new ReadDigest(trip.given),
      input: own(trip.input),
      outcome: trip.outcome && revivedOutcome(trip.outcome),
    }))
    const entry = new Entry(kind, name, undefined, ordinal, order, this, { digest, order, attempt, trips: read })
    entry.beneath = kind === 'tool' && this.#waitsBelow(entry.key)
    return entry
  }

  /** What lies beside the log about a call, to be taken away. */
  #besideOf(entry: Entry): readonly (readonly [key: string, text: null])[] {
    const note = entry.noted ? [[this.#key(entry.key), null] as const] : []
    if (entry.kind !== 'model' || !this.thread.liesBeside(this.#saidKey(entry))) return note
    return [...note, [this.#saidKey(entry), null]]
  }

  #saidKey({ key }: Entry): string {
    return JSON.stringify([...this.within, key, SAID])
  }

  #key(call: string): string {
    return JSON.stringify([...this.within, call])
  }
}

/** A node's, or a tool's, own question is about no call. */
const isAboutCall = ({ askedBy, middleware }: AskRecord) => askedBy !== 'graph' || middleware !== undefined

/** A question that was put in an earlier run, and what came back. */
interface PutAsk {
  readonly ask: AskRecord
  readonly answer: (AnswerRecord & { readonly time: number }) | undefined
}

function askedOf({ ask, answer }: PutAsk): Asked {
  const { id, askedBy, middleware, digest = '', asResult = false } = ask
  const by = middleware === undefined ? askedBy.replace(/^policy:/, '') : askerOf({ name: middleware })
  const asked = { id, by, digest, asResult }
  if (answer === undefined) return asked
  const { principal, value } = answer
  const closed = { by: answer.by, at: answer.time, ...(principal === undefined ? {} : { principal }) }
  return value === undefined ? { ...asked, closed, expired: true } : { ...asked, closed, answer: { value: own(value) } }
}

/** A call that was started, and of which nobody knows what came. */
function cutOff({ kind, name, ordinal, order, digest }: SettledCall, log: CallLog): Entry {
  const trips = [{ attempt: 1, number: 1, given: new ReadDigest(digest), input: null, outcome: undefined }]
  const entry = new Entry(kind, name, undefined, ordinal, order, log, { digest, order, trips })
  entry.noted = false
  return entry
}

function noteOf({ kind, name, ordinal, order, digest, attempt, trips }: Entry, log: CallLog): Note {
  return {
    kind,
    name,
    ordinal,
    order,
    digest,
    attempt,
    trips: trips.map((trip) => ({
      attempt: trip.attempt,
      ...(trip.number === 1 ? {} : { number: trip.number }),
      given: givenDigest(kind, trip, log),
      input: trip.input,
      ...(trip.outcome === undefined ? {} : { outcome: storedOutcome(trip.outcome) }),
    })),
  }
}

function givenDigest(kind: CallKind, { given }: Trip, log: CallLog): string {
  return given instanceof ReadDigest ? given.digest : log.digest(kind, given)
}

/** How the key of an ask speaks of a call. */
export const labelOf = ({ kind, name, ordinal }: Entry): string => {
  const what = kind === 'model' ? 'model' : name
  return ordinal === 0 ? what : `${what}[${ordinal}]`
}
