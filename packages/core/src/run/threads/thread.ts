import type { SluiceError } from '../../errors/error.ts'
import type { Json } from '../../json/json.ts'
import type { KeptRecord } from '../../seams/kept.ts'
import { never } from '../../seams/site.ts'
import { isThenable } from '../../seams/thenable.ts'
import { type AskRecord, isBelow, type Untimed, type Within } from '../../store/records.ts'
import { type Commit, type Lease, type Line, type Loaded, RENEWALS_IN_A_LEASE, type Store } from '../../store/store.ts'
import type { Platform } from '../platform.ts'

type StepRecord = Extract<Untimed, { type: 'step' }>

/** A name as JSON; names are quoted again and again, and few. */
function quoted(name: string): string {
  let text = QUOTED.get(name)
  if (text === undefined) {
    text = JSON.stringify(name)
    if (QUOTED.size < 1_000) QUOTED.set(name, text)
  }
  return text
}
const QUOTED = new Map<string, string>()

/** A snapshot is considered once this many bytes of changes have been written since the last one. */
const SNAPSHOT_AFTER = 64 * 1024

/** And is taken when it is at most half of them: a conversation writes three times what it grows by, and snapshots add half to that. */
const CHANGES_PER_SNAPSHOT = 2

type Extra = Pick<Commit, 'beside' | 'standing' | 'release' | 'snapshot'>
const NOTHING: Extra = {}
const NONE: readonly never[] = []

/** A record's text. A copy of the record with one more member would take as long as making the text. */
const stamped = (record: Untimed, time: number): string =>
  joined([JSON.stringify(record).slice(0, -1), ',"time":', time, '}'])

/** One text: what is added up keeps its pieces for as long as a store in memory keeps it. */
const joined = (parts: readonly (string | number)[]): string => parts.join('')

/** What does not begin at the beginning begins with a snapshot. */
const sinceSnapshot = (loaded: Loaded | undefined): readonly string[] =>
  loaded === undefined ? NONE : loaded.from === 1 ? loaded.records : loaded.records.slice(1)

function lengthOf(texts: readonly string[]): number {
  let length = 0
  for (const text of texts) length += text.length
  return length
}

/**
 * What a run writes to its thread: records in their order, under its lease. A write that fails ends the run, and what is
 * written afterwards comes to nothing; a promise of such a write stays pending.
 */
export class Thread {
  readonly line: Line
  readonly platform: Platform
  readonly #store: Store
  readonly #lease: Lease
  #next: number
  #closed = false
  #failed: ((error: unknown) => void) | undefined
  #failure: unknown
  #renewal: unknown
  /** Characters written since the last snapshot, by runs before this one too. */
  #changed: number
  #considerAt = SNAPSHOT_AFTER
  /** Labels given since the last record, which carries them. */
  readonly #labels: string[] = []
  /** The same of what middleware keeps. */
  readonly #kept: KeptRecord[] = []
  #decisions: number | undefined
  #untouched = true
  #putOff: { readonly records: readonly string[]; readonly extra: Extra } | undefined

  /** What lies beside the log, by key. */
  readonly #beside: Map<string, string>
  /** The questions that are open, by key. */
  readonly asks = new Map<string, AskRecord>()
  /** The keys that this run answers; absent where it does not resume. */
  answered: ReadonlySet<string> | undefined

  constructor(store: Store, lease: Lease, platform: Platform, loaded: Loaded | undefined) {
    this.line = { thread: lease.thread, branch: lease.branch }
    this.platform = platform
    this.#store = store
    this.#lease = lease
    this.#next = (loaded?.head ?? 0) + 1
    this.#changed = lengthOf(sinceSnapshot(loaded))
    this.#beside = new Map(loaded?.beside)
    this.#renewLater()
  }

  /** The sequence number of the last record. */
  get head(): number {
    return this.#next - 1
  }

  /** Tells, once, when a write has failed. */
  onFailure(failed: (error: unknown) => void): void {
    this.#failed = failed
  }

  /** Whether something lies beside the log under this key. */
  liesBeside(key: string): boolean {
    return this.#beside.has(key)
  }

  /** The entries that lie beside the log at this place. */
  besideWithin(within: Within): readonly Json[] {
    const entries: Json[] = []
    for (const [key, text] of this.#beside) {
      const at = JSON.parse(key) as readonly string[]
      if (at.length === within.length + 1 && isBelow(at, within)) entries.push(JSON.parse(text))
    }
    return entries
  }

  /** Takes away whatever lies beside the log below this place: what it belongs to is over. What tells of the place itself stays. */
  without(within: Within): Pick<Extra, 'beside'> {
    if (this.#beside.size === 0) return NOTHING
    const keys = [...this.#beside.keys()].filter((key) => {
      const at = JSON.parse(key) as readonly string[]
      return at.length > within.length && isBelow(at, within)
    })
    return keys.length === 0 ? NOTHING : { beside: keys.map((key) => [key, null]) }
  }

  /** Nobody waits any more for the questions that are open at this place or below it. */
  withdraw(within: Within): void {
    for (const [key, ask] of this.asks) if (isBelow(ask.within, within)) this.asks.delete(key)
  }

  label(label: string): void {
    this.#labels.push(label)
  }

  /** How many decisions were written down about this branch so far; written with the next record. */
  decided(count: number): void {
    this.#decisions = count
  }

  keep(change: KeptRecord): void {
    this.#kept.push(change)
  }

  /** Whether nothing was written yet. */
  get untouched(): boolean {
    return this.#untouched
  }

  /** The first records of a run, to go with the next write: nothing has happened yet that they would have to precede. */
  openLater(records: readonly Untimed[], extra: Extra): void {
    this.#requireOpen()
    this.#putOff = { records: this.#texts(records), extra }
    this.#layBeside(extra.beside)
  }

  /** The first records of a run. */
  async open(records: readonly Untimed[], extra: Extra): Promise<void> {
    this.#requireOpen()
    this.#untouched = false
    try {
      await this.#store.append(this.#lease, this.#commit(this.#texts(records), extra))
    } catch (error) {
      this.#stop()
      throw error
    }
  }

  /** The lease may be lost before the run begins. */
  #requireOpen(): void {
    if (this.#closed) throw this.#failure
  }

  /** Writes records in one go; settles when they are durable. */
  write(records: readonly Untimed[], extra: Extra = {}): void | Promise<void> {
    if (this.#closed) return never()
    return this.#append(this.#texts(records), extra)
  }

  /** The same for a superstep that is through: the record that most threads have most of, so its text is put together by hand. */
  writeStep(
    within: Within,
    writes: StepRecord['writes'],
    next: StepRecord['next'],
    ended: Pick<StepRecord, 'ended'> | undefined,
  ): void | Promise<void> {
    if (this.#closed) return never()
    const extra = this.without(within)
    if (this.#carries || writes.length !== 1 || ended !== undefined)
      return this.write([{ type: 'step', ...(within.length === 0 ? {} : { within }), writes, next, ...ended }], extra)
    const { task, update } = writes[0] as StepRecord['writes'][0]
    const place = within.length === 0 ? '' : `"within":${JSON.stringify(within)},`
    const [ready] = next
    const then = next.length === 1 && typeof ready === 'string' ? `[${quoted(ready)}]` : JSON.stringify(next)
    const text = joined([
      '{"type":"step",',
      place,
      '"writes":[{"task":',
      quoted(task),
      ',"update":',
      JSON.stringify(update),
      '}],"next":',
      then,
      ',"time":',
      this.platform.time(),
      '}',
    ])
    return this.#append([text], extra)
  }

  /** Puts an entry beside the log, or takes it away. */
  writeBeside(key: string, value: Json | null): void | Promise<void> {
    if (this.#closed) return never()
    // Whoever goes on from what lies beside the log does not consult again those who have kept something on the way there.
    const beside = [[key, value === null ? null : JSON.stringify(value)]] as const
    return this.#append(this.#keeps ? this.#texts([{ type: 'kept' }]) : [], { beside })
  }

  /**
   * The end of the run, in one write with the lease; `make` is called where a snapshot may go before it. Rejects when it could not
   * be written.
   */
  async close(records: readonly Untimed[], extra: Omit<Extra, 'release'>, make?: () => Untimed): Promise<void> {
    this.#failed = undefined
    this.#stop()
    const snapshot = make && this.#putOff === undefined ? this.#due(make) : undefined
    const texts = this.#texts(records)
    const all = snapshot === undefined ? texts : [snapshot, ...texts]
    await this.#store.append(
      this.#lease,
      this.#commit(all, { snapshot: snapshot !== undefined, release: true, ...extra }),
    )
  }

  /** Gives the lease back without a word. */
  async leave(): Promise<void> {
    this.#stop()
    await this.#store.release(this.#lease)
  }

  /** Takes a snapshot when enough has changed for what it costs; `make` is called when it might. */
  snapshot(make: () => Untimed): void | Promise<void> {
    const text = this.#closed ? undefined : this.#due(make)
    if (text === undefined) return undefined
    const written = this.#append([text], { snapshot: true })
    this.#changed = 0
    return written
  }

  /** A snapshot's text, if it is time for one. */
  #due(make: () => Untimed): string | undefined {
    if (this.#changed < this.#considerAt) return undefined
    const text = stamped(make(), this.platform.time())
    this.#considerAt = Math.max(SNAPSHOT_AFTER, CHANGES_PER_SNAPSHOT * text.length)
    return this.#changed < this.#considerAt ? undefined : text
  }

  #append(records: readonly string[], extra: Extra): void | Promise<void> {
    try {
      const written = this.#store.append(this.#lease, this.#commit(records, extra))
      return isThenable(written) ? (written as Promise<void>).then(undefined, (error) => this.#fail(error)) : undefined
    } catch (error) {
      return this.#fail(error)
    }
  }

  #texts(records: readonly Untimed[]): readonly string[] {
    const time = this.platform.time()
    return records.map((record, i) =>
      stamped(i === 0 && this.#carries ? { ...record, ...this.#carried() } : record, time),
    )
  }

  /** Whether something was given or kept that is to be durable with the next write. */
  get #keeps(): boolean {
    return this.#labels.length > 0 || this.#kept.length > 0
  }

  get #carries(): boolean {
    return this.#keeps || this.#decisions !== undefined
  }

  #carried(): { labels?: readonly string[]; kept?: readonly KeptRecord[]; decisions?: number } {
    const decisions = this.#decisions
    this.#decisions = undefined
    return {
      ...(decisions === undefined ? {} : { decisions }),
      ...(this.#labels.length === 0 ? {} : { labels: this.#labels.splice(0) }),
      ...(this.#kept.length === 0 ? {} : { kept: this.#kept.splice(0) }),
    }
  }

  /** Takes the next sequence numbers, and what was put off along. */
  #commit(texts: readonly string[], extra: Extra): Commit {
    const before = this.#putOff
    this.#putOff = undefined
    this.#untouched = false
    const records = before === undefined ? texts : [...before.records, ...texts]
    const seq = this.#next
    this.#next += records.length
    this.#changed += lengthOf(records)
    this.#layBeside(extra.beside)
    if (before === undefined) return extra === NOTHING ? { seq, records } : { seq, records, ...extra }
    const beside = [...(before.extra.beside ?? []), ...(extra.beside ?? [])]
    return { seq, records, ...before.extra, ...extra, ...(beside.length === 0 ? {} : { beside }) }
  }

  #layBeside(entries: Extra['beside'] = NONE): void {
    for (const [key, text] of entries) {
      if (text === null) this.#beside.delete(key)
      else this.#beside.set(key, text)
    }
  }

  #fail(error: unknown): Promise<never> {
    this.#stop()
    this.#failure = error
    this.#failed?.(error as SluiceError)
    this.#failed = undefined
    return never()
  }

  #stop(): void {
    this.#closed = true
    this.platform.clear(this.#renewal)
  }

  /** A store that cannot be reached just now is tried again: the run ends with the lease, and not before. */
  #renewLater(failures = 0): void {
    const { renewEveryMs } = this.#store
    if (renewEveryMs === undefined) return
    const failed = (error: unknown) => {
      const lost = (error as { code?: string }).code === 'LEASE_LOST' || failures + 1 === RENEWALS_IN_A_LEASE
      return lost ? this.#fail(error) : this.#renewLater(failures + 1)
    }
    this.#renewal = this.platform.set(renewEveryMs, () => {
      Promise.resolve()
        .then(() => this.#store.renew(this.#lease))
        .then(
          () => (this.#closed ? undefined : this.#renewLater()),
          (error) => (this.#closed ? undefined : failed(error)),
        )
    })
  }
}
