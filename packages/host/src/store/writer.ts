import { type Commit, type Lease, lostLease, SluiceError, wrongSequence } from '@sluice/core'
import type { Connection } from './connection.ts'
import { headOf } from './history.ts'
import { nameText, SPAN } from './schema.ts'

interface Pending {
  readonly lease: Lease
  readonly commit: Commit
  resolve(): void
  reject(error: unknown): void
}

/** A line that this process holds. Nobody else writes to it, so its head is known without asking the file. */
interface Held {
  readonly line: number
  head: number
}

/** The lease is judged, and the record's place taken, in the one statement that writes it. */
const APPEND =
  'insert or ignore into log (id, body) select ?, ? from line where id = ? and epoch = ? and owner is not null'

/** Runs `flush` when those who are about to append have done so. */
export type Gather = (flush: () => void) => void

/** Where a commit waits for the disk, it waits for one turn of the event loop first: whoever was woken in it comes along. */
export const inTurn: Gather = (flush) => {
  setImmediate(flush)
}

/** Where it does not, a turn would cost more than it saves. A tick asked for in a microtask comes after all microtasks. */
export const atOnce: Gather = (flush) => queueMicrotask(() => process.nextTick(flush))

/**
 * Writes what is appended. Appends that come together, of whichever lines, become one transaction: a disk takes as long for one
 * commit as for sixteen.
 */
export class Writer {
  readonly #db: Connection
  readonly #gather: Gather
  /** By epoch; what is not here is looked up. */
  readonly #held = new Map<number, Held>()
  readonly #taken = new Map<number, Lease>()
  #queue: Pending[] = []

  constructor(db: Connection, gather: Gather) {
    this.#db = db
    this.#gather = gather
  }

  /** Told of each lease that this store took. */
  took(lease: Lease, line: number, head: number): void {
    this.#taken.set(lease.epoch, lease)
    this.#held.set(lease.epoch, { line, head })
  }

  /** Gives a lease back. */
  letGo({ thread, branch, epoch }: Lease): void {
    const sql = 'update line set owner = null, until = null where thread = ? and branch = ? and epoch = ?'
    this.#db.run(sql, nameText(thread), nameText(branch), epoch)
    this.#forget(epoch)
  }

  /** The same for a line that may be an empty one, of a run that was refused: nothing was ever written to it. */
  leave(lease: Lease): void {
    this.letGo(lease)
    const { thread, branch, epoch } = lease
    const empty = `delete from line where thread = ? and branch = ? and epoch = ? and origin is null
      and not exists (select 1 from log where log.id > line.id * ${SPAN} and log.id < (line.id + 1) * ${SPAN})`
    this.#db.run(empty, nameText(thread), nameText(branch), epoch)
  }

  /** Gives back every lease that this store took and did not give back. */
  letAllGo(): void {
    if (this.#taken.size === 0) return
    this.#db.writing(() => {
      for (const lease of this.#taken.values()) this.leave(lease)
    })
  }

  append(lease: Lease, commit: Commit): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#queue.push({ lease, commit, resolve, reject }) === 1) this.#gather(this.#flush)
    })
  }

  readonly #flush = (): void => this.flush()

  /** Writes what was appended so far. */
  flush(): void {
    const batch = this.#queue
    if (batch.length === 0) return
    this.#queue = []
    this.#commit(batch)
  }

  #commit(batch: readonly Pending[]): void {
    try {
      const refusals = this.#written(batch)
      for (const [i, refusal] of refusals.entries()) settle(batch[i] as Pending, refusal)
    } catch (error) {
      this.#held.clear()
      // One of them may be what cannot be written, too large a text for example: the others shall not suffer for it.
      if (batch.length > 1 && (error as SluiceError).code !== 'STORE_BUSY') for (const one of batch) this.#commit([one])
      else for (const one of batch) settle(one, error)
    }
  }

  /** What stood in the way of each commit; the others are written. */
  #written(batch: readonly Pending[]): readonly (SluiceError | undefined)[] {
    const [first] = batch
    if (batch.length === 1 && first !== undefined && isOneRecord(first.commit)) return [this.#put(first)]
    return this.#db.writing(() => batch.map((pending) => this.#put(pending)))
  }

  #put({ lease, commit }: Pending): SluiceError | undefined {
    return isOneRecord(commit) ? this.#putRecord(lease, commit) : this.#putAll(lease, commit)
  }

  #putRecord(lease: Lease, { seq, records }: Commit): SluiceError | undefined {
    const held = this.#held.get(lease.epoch) ?? this.#findHeld(lease)
    if (held === undefined || seq !== held.head + 1) return this.#refusal(lease, seq)
    if (seq >= SPAN) return tooMany(lease)
    if (this.#db.run(APPEND, held.line * SPAN + seq, records[0] as string, held.line, lease.epoch) === 0) {
      return this.#refusal(lease, seq)
    }
    held.head = seq
    return undefined
  }

  /** Only within a transaction. Whatever may be wrong with the commit is found before its first write. */
  #putAll(lease: Lease, { seq, records, snapshot, beside, standing, release }: Commit): SluiceError | undefined {
    const held = this.#findHeld(lease)
    if (held === undefined || !isNext(held, seq, records.length)) return this.#refusal(lease, seq)
    if (held.head + records.length >= SPAN) return tooMany(lease)
    const { line } = held
    for (const [i, text] of records.entries()) {
      this.#db.run('insert into log (id, body) values (?, ?)', line * SPAN + seq + i, text)
    }
    held.head += records.length
    if (snapshot) this.#db.run('insert or ignore into snapshot (line, seq) values (?, ?)', line, seq)
    if (beside !== undefined) this.#putBeside(line, beside)
    if (standing !== undefined) this.#putStanding(line, standing)
    if (release) this.letGo(lease)
    return undefined
  }

  #putBeside(line: number, entries: NonNullable<Commit['beside']>): void {
    const put =
      'insert into beside (line, key, body) values (?, ?, ?) on conflict (line, key) do update set body = excluded.body'
    for (const [key, text] of entries) {
      if (text === null) this.#db.run('delete from beside where line = ? and key = ?', line, nameText(key))
      else this.#db.run(put, line, nameText(key), text)
    }
  }

  #putStanding(line: number, { graph, status, asks, at }: NonNullable<Commit['standing']>): void {
    const sql = 'update line set graph = ?, status = ?, asks = ?, written = ? where id = ?'
    this.#db.run(sql, nameText(graph), status ?? null, asks, at, line)
  }

  /** The line of a lease as it stands in the file; `undefined` when the lease is lost. */
  #findHeld({ thread, branch, epoch }: Lease): Held | undefined {
    const sql = 'select id, at from line where thread = ? and branch = ? and epoch = ? and owner is not null'
    const row = this.#db.get<{ id: number; at: number | null }>(sql, nameText(thread), nameText(branch), epoch)
    if (row === undefined) {
      this.#forget(epoch)
      return undefined
    }
    const held = { line: row.id, head: headOf(this.#db, row) }
    this.#held.set(epoch, held)
    return held
  }

  #forget(epoch: number): void {
    this.#held.delete(epoch)
    this.#taken.delete(epoch)
  }

  #refusal(lease: Lease, seq: number): SluiceError {
    const held = this.#findHeld(lease)
    return held === undefined ? lostLease(lease) : wrongSequence(lease, seq, held.head + 1)
  }
}

/** What most steps write: nothing but a record. */
const isOneRecord = ({ records, snapshot, beside, standing, release }: Commit): boolean =>
  records.length === 1 && !snapshot && beside === undefined && standing === undefined && !release

/** Without a record, a commit has no place of its own; one whose predecessor was refused is refused with it. */
const isNext = ({ head }: Held, seq: number, records: number): boolean =>
  records > 0 ? seq === head + 1 : seq <= head + 1

const tooMany = ({ thread, branch }: Lease) =>
  new SluiceError(
    'STORE_FULL',
    `branch "${branch}" of thread "${thread}" has ${SPAN - 1} records, and a line takes no more. Go on in a new thread.`,
    { thread, branch },
  )

function settle({ resolve, reject }: Pending, refusal: unknown): void {
  if (refusal === undefined) resolve()
  else reject(refusal)
}
