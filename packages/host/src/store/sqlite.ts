import {
  branchExists,
  busyLine,
  type Commit,
  type KeptStore,
  type Lease,
  type Line,
  type LineSummary,
  type Loaded,
  lostLease,
  MAIN,
  notInHistory,
  SluiceError,
  type Standing,
  type Store,
  type StoredRecord,
  unknownLine,
} from '@sluice/core'
import type { Connection } from './connection.ts'
import { openFile } from './file.ts'
import { findLine, headOf, historyOf, type LineRow, linesOf, recordsOf, startOf } from './history.ts'
import { SqliteKept } from './kept.ts'
import { describeOwner, isGone, parseOwner, thisProcess } from './owner.ts'
import { nameText, SPAN } from './schema.ts'
import { atOnce, inTurn, Writer } from './writer.ts'

export interface SqliteOptions {
  /**
   * What a commit survives once it is acknowledged: `FULL`, the default, a loss of power; `NORMAL` the end of the process, while the
   * last ones may go with the power. The file is whole either way.
   */
  readonly synchronous?: 'FULL' | 'NORMAL'
  /** Milliseconds after which a lease may be taken over when it was not renewed; 30,000 unless told. It is renewed at a third. */
  readonly leaseMs?: number
  /** Milliseconds to wait while another process writes, 10,000 unless told. This process stands still meanwhile. */
  readonly busyTimeoutMs?: number
  /** The clock, in milliseconds since 1970. All processes on one file should have the same. */
  readonly now?: () => number
}

/**
 * A store in one SQLite file, for any number of processes of one machine. The file is made, with its folder, when there is none.
 * Commits are written at once and block; not for network file systems.
 *
 * Needs Node 22.13 or later, or the package better-sqlite3.
 *
 * @throws SluiceError `STORE_DRIVER_MISSING`, `STORE_FOREIGN` for what is no store, `STORE_NEWER`, `STORE_READ_ONLY`,
 * `STORE_FULL`, `STORE_BUSY`, `STORE_CORRUPT`, or `STORE_FAILED`; so do its methods, and `STORE_CLOSED` after `close()`.
 */
export function sqliteStore(path: string, options: SqliteOptions = {}): Store {
  const { leaseMs = 30_000, busyTimeoutMs = 10_000, now = Date.now } = options
  const synchronous = options.synchronous === 'NORMAL' ? 'NORMAL' : 'FULL'
  const db = openFile(path, { synchronous, busyTimeoutMs })
  return new SqliteStore(db, new Writer(db, synchronous === 'FULL' ? inTurn : atOnce), leaseMs, now)
}

interface SummaryRow extends Pick<LineRow, 'id' | 'at' | 'owner' | 'until'> {
  readonly thread: string
  readonly branch: string
  readonly graph: string
  readonly status: Standing['status'] | null
  readonly asks: string
  readonly written: number
  readonly origin: string | null
}

class SqliteStore implements Store {
  readonly renewEveryMs: number
  readonly kept: KeptStore = new SqliteKept(() => this.#open())
  readonly #db: Connection
  readonly #writer: Writer
  readonly #leaseMs: number
  readonly #now: () => number
  #closed = false

  constructor(db: Connection, writer: Writer, leaseMs: number, now: () => number) {
    this.#db = db
    this.#writer = writer
    this.#leaseMs = leaseMs
    this.#now = now
    this.renewEveryMs = leaseMs / 3
  }

  acquire(line: Line, { create = false }: { create?: boolean } = {}): Lease {
    // First without the file's lock: who asks again and again for a line that is held shall not stand in its holder's way.
    this.#open()
    this.#findFree(line, create)
    const { epoch, id, head } = this.#writing((db) => {
      const { row = this.#begin(line), head } = this.#findFree(line, create)
      const { last } = db.get<{ last: number }>('update epoch set last = last + 1 returning last') ?? { last: 0 }
      const sql = 'update line set epoch = ?, owner = ?, until = ? where id = ?'
      db.run(sql, last, JSON.stringify(thisProcess()), this.#now() + this.#leaseMs, row.id)
      return { epoch: last, id: row.id, head }
    })
    const lease = { thread: line.thread, branch: line.branch, epoch }
    this.#writer.took(lease, id, head)
    return lease
  }

  renew(lease: Lease): void {
    const { thread, branch, epoch } = lease
    const sql = 'update line set until = ? where thread = ? and branch = ? and epoch = ? and owner is not null'
    const until = this.#now() + this.#leaseMs
    if (this.#open().run(sql, until, nameText(thread), nameText(branch), epoch) === 0) throw lostLease(lease)
  }

  release(lease: Lease): void {
    this.#writing(() => this.#writer.leave(lease))
  }

  append(lease: Lease, commit: Commit): Promise<void> {
    return this.#closed ? Promise.reject(this.#closedError()) : this.#writer.append(lease, commit)
  }

  load(line: Line): Loaded | undefined {
    return this.#reading((db) => {
      const row = findLine(db, line)
      const head = row === undefined ? 0 : headOf(db, row)
      if (row === undefined || head === 0) return undefined
      const history = historyOf(db, row, head)
      const from = startOf(db, history)
      const records = recordsOf(db, history, from).map(({ text }) => text)
      const beside = db
        .all<{ key: string; body: string }>('select key, body from beside where line = ? order by id', row.id)
        .map(({ key, body }) => [JSON.parse(key) as string, body] as const)
      return { head, from, records, beside }
    })
  }

  read(line: Line, { from = 1, to = Number.POSITIVE_INFINITY } = {}): readonly StoredRecord[] {
    return this.#reading((db) => {
      const { row, head } = this.#written(line)
      return recordsOf(db, historyOf(db, row, Math.min(to, head)), from)
    })
  }

  fork(from: Line, at: number, branch: string, { graph, status, asks, at: written }: Standing): void {
    this.#writing((db) => {
      const { row, head } = this.#written(from)
      if (!(Number.isInteger(at) && at >= 1 && at <= head)) throw notInHistory(from, at, head)
      const fork = { thread: from.thread, branch }
      if (findLine(db, fork) !== undefined) throw branchExists(fork)
      const start = startOf(db, historyOf(db, row, at))
      if (recordsOf(db, historyOf(db, row, start), start).length === 0) throw trimmedAway(from, at)
      const begin = `insert into line (thread, branch, origin, at, epoch, graph, status, asks, written)
        select thread, ?, id, ?, 0, ?, ?, ?, ? from line where id = ? returning id`
      const stands = [nameText(graph), status ?? null, asks, written] as const
      const begun = db.get<{ id: number }>(begin, nameText(branch), at, ...stands, row.id)
      if (at < head || begun === undefined) return
      const copy = 'insert into beside (line, key, body) select ?, key, body from beside where line = ? order by id'
      db.run(copy, begun.id, row.id)
    })
  }

  trim(lease: Lease, before: number): number {
    return this.#writing((db) => {
      const row = findLine(db, lease)
      if (row === undefined || row.epoch !== lease.epoch || row.owner === null) throw lostLease(lease)
      // A fork, and a fork of one, needs this line's records from the last snapshot before the place where it left.
      const needed = linesOf(db, lease.thread).flatMap((line) => {
        const history = historyOf(db, line, headOf(db, line))
        const here = history.findIndex((stretch) => stretch.line === row.id)
        return here === -1 ? [] : [startOf(db, history.slice(here))]
      })
      const first = row.id * SPAN + Math.min(before, ...needed)
      db.run('delete from snapshot where line = ? and seq < ?', row.id, first - row.id * SPAN)
      return db.run('delete from log where id > ? and id < ?', row.id * SPAN, first)
    })
  }

  lines(thread?: string): readonly LineSummary[] {
    return this.#reading((db) => {
      const sql = `select line.id, line.thread, line.branch, line.at, line.owner, line.until, line.graph, line.status,
          line.asks, line.written, origin.branch as origin
        from line left join line as origin on origin.id = line.origin
        where line.written is not null ${thread === undefined ? '' : 'and line.thread = ?'}
        order by line.written desc, line.id`
      const rows = db.all<SummaryRow>(sql, ...(thread === undefined ? [] : [nameText(thread)]))
      return rows.map((row) => ({
        thread: JSON.parse(row.thread),
        branch: JSON.parse(row.branch),
        ...standingOf(row),
        head: headOf(db, row),
        ...(row.origin !== null && { forkedFrom: { branch: JSON.parse(row.origin), at: row.at ?? 0 } }),
        busy: this.#isHeld(row),
      }))
    })
  }

  remove(thread: string): boolean {
    return this.#writing((db) => {
      const rows = linesOf(db, thread)
      for (const row of rows) this.#refuseHeld({ thread, branch: JSON.parse(row.branch) }, row)
      for (const { id } of rows) {
        db.run('delete from log where id > ? and id < ?', id * SPAN, (id + 1) * SPAN)
        db.run('delete from snapshot where line = ?', id)
        db.run('delete from beside where line = ?', id)
        db.run('delete from line where id = ?', id)
      }
      return rows.length > 0
    })
  }

  /** Writes what was appended, and gives back the leases this store still holds: nobody can write under them any more. */
  close(): void {
    if (this.#closed) return
    this.#writer.flush()
    this.#closed = true
    try {
      this.#writer.letAllGo()
    } catch {
      // They run out by themselves.
    } finally {
      this.#db.close()
    }
  }

  /** A line that may be taken; without a row, one that may begin. */
  #findFree(line: Line, create: boolean): { readonly row: LineRow | undefined; readonly head: number } {
    const row = findLine(this.#db, line)
    const head = row === undefined ? 0 : headOf(this.#db, row)
    if (head === 0 && !(create && (row !== undefined || line.branch === MAIN))) throw unknownLine(line)
    if (row !== undefined) this.#refuseHeld(line, row)
    return { row, head }
  }

  #begin(line: Line): LineRow {
    const sql = 'insert into line (thread, branch, epoch) values (?, ?, 0)'
    this.#db.run(sql, nameText(line.thread), nameText(line.branch))
    return findLine(this.#db, line) as LineRow
  }

  #written(line: Line): { readonly row: LineRow; readonly head: number } {
    const row = findLine(this.#db, line)
    const head = row === undefined ? 0 : headOf(this.#db, row)
    if (row === undefined || head === 0) throw unknownLine(line)
    return { row, head }
  }

  #refuseHeld(line: Line, row: LineRow): void {
    if (this.#isHeld(row)) throw busyLine(line, describeOwner(parseOwner(row.owner ?? '')))
  }

  #isHeld({ owner, until }: Pick<LineRow, 'owner' | 'until'>): boolean {
    if (owner === null || (until ?? 0) <= this.#now()) return false
    const holder = parseOwner(owner)
    return holder === undefined || !isGone(holder)
  }

  #reading<Result>(work: (db: Connection) => Result): Result {
    const db = this.#open()
    return db.reading(() => work(db))
  }

  #writing<Result>(work: (db: Connection) => Result): Result {
    const db = this.#open()
    return db.writing(() => work(db))
  }

  /** What was appended before is written before anything else is done. */
  #open(): Connection {
    if (this.#closed) throw this.#closedError()
    this.#writer.flush()
    return this.#db
  }

  #closedError(): SluiceError {
    const { file } = this.#db
    return new SluiceError('STORE_CLOSED', `the store ${file} is closed. Close it when all runs are over.`, { file })
  }
}

function standingOf({ graph, status, asks, written }: SummaryRow): Standing {
  return { graph: JSON.parse(graph), ...(status !== null && { status }), asks, at: written }
}

const trimmedAway = (line: Line, at: number) =>
  new SluiceError(
    'HISTORY_UNKNOWN',
    `record ${at} of branch "${line.branch}" of thread "${line.thread}" cannot be forked from: the records before it were dropped. Fork from a later one.`,
    { ...line },
  )
