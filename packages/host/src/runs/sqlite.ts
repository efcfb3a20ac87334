import { randomUUID } from 'node:crypto'
import { SluiceError } from '@sluice/core'
import type { Connection } from '../store/connection.ts'
import { openFile } from '../store/file.ts'
import { isGone, parseOwner, thisProcess } from '../store/owner.ts'
import { nameText, SPAN } from '../store/schema.ts'
import type { SqliteOptions } from '../store/sqlite.ts'
import { atOnce, inTurn } from '../store/writer.ts'
import { Gathered, type Part } from './gathered.ts'
import { threadOf } from './memory.ts'
import {
  type AskEntry,
  answeredAsk,
  lostRun,
  type PutAsk,
  type RunEnd,
  type RunEntry,
  type RunFilter,
  type RunLog,
  type StoredEvent,
  type ThreadEntry,
  unknownRun,
} from './run-log.ts'
import { CREATE } from './tables.ts'

/** How long a cancel takes to reach another process. */
const BEAT_MS = 1_000

/**
 * A log in the file of a {@link sqliteStore}, for any number of processes of one machine: one goes on with what another has left. What
 * comes together is written in one commit.
 *
 * @throws SluiceError as `sqliteStore` does, and so do its methods.
 */
export function sqliteRunLog(path: string, options: SqliteOptions = {}): RunLog {
  const { leaseMs = 30_000, busyTimeoutMs = 10_000, now = Date.now } = options
  const synchronous = options.synchronous === 'NORMAL' ? 'NORMAL' : 'FULL'
  const db = openFile(path, { synchronous, busyTimeoutMs })
  try {
    db.writing(() => db.exec(CREATE))
  } catch (error) {
    db.close()
    throw error
  }
  return new SqliteRunLog(db, synchronous, leaseMs, now)
}

/** A run of this log. Nobody else appends to it, so its last event is known without asking the file. */
interface Held {
  readonly n: number
  readonly epoch: number
  /** Absent where a write came to nothing since. */
  seq: number | undefined
}

interface RunRow {
  readonly n: number
  readonly entry: string
  readonly ending: string | null
  readonly ended: number | null
}

interface AskRow {
  readonly id: string
  readonly branch: string
  readonly entry: string
  readonly closed: string | null
}

class SqliteRunLog implements RunLog {
  readonly durable = true
  readonly beatEveryMs: number
  readonly #db: Connection
  readonly #writer: Gathered
  readonly #leaseMs: number
  readonly #now: () => number
  /** Two logs of one process are two. */
  readonly #holder = JSON.stringify({ ...thisProcess(), log: randomUUID() })
  readonly #held = new Map<string, Held>()
  #renewedAt: number
  #closed = false

  constructor(db: Connection, synchronous: 'FULL' | 'NORMAL', leaseMs: number, now: () => number) {
    this.#db = db
    this.#writer = new Gathered(db, synchronous === 'FULL' ? inTurn : atOnce, () => this.#recount())
    this.#leaseMs = leaseMs
    this.#now = now
    this.#renewedAt = now()
    this.beatEveryMs = Math.min(BEAT_MS, leaseMs / 3)
  }

  begin(entry: RunEntry, answering: readonly string[] = []): Promise<void> {
    const { id, owner, thread, by, at } = entry
    const place = [nameText(owner), nameText(thread)] as const
    const closed = JSON.stringify({ by, at, run: id })
    let n = 0
    const part: Part = (db) => {
      for (const ask of answering) {
        const row = db.get<AskRow>('select closed from run_ask where id = ?', nameText(ask))
        if (row !== undefined && row.closed !== null) return answeredAsk(ask)
      }
      for (const ask of answering)
        db.run('update run_ask set closed = ?, closer = ? where id = ?', closed, nameText(id), nameText(ask))
      const before = threadIn(db, ...place)
      const insert = `insert into run (id, owner, thread, entry, before, holder, until, epoch)
        values (?, ?, ?, ?, ?, ?, ?, 1) returning n`
      const until = this.#now() + this.#leaseMs
      const texts = [JSON.stringify(entry), before === undefined ? null : JSON.stringify(before)] as const
      n = db.get<{ n: number }>(insert, nameText(id), ...place, ...texts, this.#holder, until)?.n ?? 0
      putThread(db, ...place, threadOf(entry, before))
      return undefined
    }
    return this.#write(part, () => this.#held.set(id, { n, epoch: 1, seq: 0 }))
  }

  refuse(run: string): Promise<void> {
    const part: Part = (db) => {
      const held = this.#find(db, run)
      if (held instanceof SluiceError) return held
      const row = db.get<{ owner: string; thread: string; before: string | null }>(
        'select owner, thread, before from run where n = ?',
        held.n,
      )
      reopen(db, run)
      forget(db, held.n)
      if (row === undefined) return undefined
      const { owner, thread, before } = row
      const later = 'select 1 from run where owner = ? and thread = ? and n > ?'
      if (db.get(later, owner, thread, held.n) !== undefined) return undefined
      if (before === null) db.run('delete from run_thread where owner = ? and thread = ?', owner, thread)
      else putThread(db, owner, thread, JSON.parse(before))
      return undefined
    }
    return this.#write(part, () => this.#held.delete(run))
  }

  append(run: string, texts: readonly string[]): Promise<void> {
    return this.#write((db) => {
      const held = this.#find(db, run)
      if (held instanceof SluiceError) return held
      this.#put(db, held, texts)
      return undefined
    })
  }

  end(run: string, { ending, at, events = [], refused }: RunEnd): Promise<void> {
    const part: Part = (db) => {
      const held = this.#find(db, run)
      if (held instanceof SluiceError) return held
      this.#put(db, held, events)
      const sql = 'update run set ending = ?, ended = ?, holder = null, until = null where n = ? returning entry'
      const row = db.get<{ entry: string }>(sql, JSON.stringify(ending), at, held.n)
      if (refused) reopen(db, run)
      else if (row !== undefined) putAsks(db, JSON.parse(row.entry), ending.asks ?? [], at)
      return undefined
    }
    return this.#write(part, () => this.#held.delete(run))
  }

  release(run: string): Promise<void> {
    const held = this.#held.get(run)
    if (held === undefined) return Promise.resolve()
    this.#held.delete(run)
    return this.#write((db) => {
      letGo(db, held)
      return undefined
    })
  }

  claim(): readonly RunEntry[] {
    const db = this.#open()
    // Without the file's lock: mostly there is nothing.
    if (this.#left(db).length === 0) return []
    return db.writing(() =>
      this.#left(db).map(({ n, entry }) => {
        const sql = 'update run set holder = ?, until = ?, epoch = epoch + 1 where n = ? returning epoch'
        const row = db.get<{ epoch: number }>(sql, this.#holder, this.#now() + this.#leaseMs, n)
        const claimed: RunEntry = JSON.parse(entry)
        this.#held.set(claimed.id, { n, epoch: row?.epoch ?? 0, seq: undefined })
        return claimed
      }),
    )
  }

  beat(): readonly string[] {
    const db = this.#open()
    const now = this.#now()
    if (this.#held.size > 0 && now - this.#renewedAt >= this.#leaseMs / 3) {
      db.run('update run set until = ? where holder = ? and ending is null', now + this.#leaseMs, this.#holder)
      this.#renewedAt = now
    }
    const sql = 'select id from run where ending is null and holder = ? and cancelled is not null'
    return db.all<{ id: string }>(sql, this.#holder).map(({ id }) => JSON.parse(id))
  }

  cancel(run: string): boolean {
    return this.#open().run('update run set cancelled = 1 where id = ? and ending is null', nameText(run)) > 0
  }

  run(id: string): RunEntry | undefined {
    const row = this.#open().get<RunRow>('select n, entry, ending, ended from run where id = ?', nameText(id))
    return row && entryOf(row)
  }

  runs({ owner, thread, limit = 100 }: RunFilter = {}): readonly RunEntry[] {
    const { where, values } = matching({ owner, thread })
    const sql = `select n, entry, ending, ended from run where ${where} order by n desc limit ?`
    return this.#open()
      .all<RunRow>(sql, ...values, limit)
      .map(entryOf)
  }

  events(run: string, after: number, limit: number): readonly StoredEvent[] {
    const db = this.#open()
    const n = this.#held.get(run)?.n ?? db.get<{ n: number }>('select n from run where id = ?', nameText(run))?.n
    if (n === undefined) throw unknownRun(run)
    const sql = 'select id, body from run_event where id > ? and id < ? order by id limit ?'
    const first = n * SPAN
    return db
      .all<{ id: number; body: string }>(sql, first + Math.min(after, SPAN - 1), first + SPAN, limit)
      .map(({ id, body }) => ({ seq: id - first, text: body }))
  }

  ask(id: string): AskEntry | undefined {
    const sql = 'select id, branch, entry, closed from run_ask where id = ?'
    const row = this.#open().get<AskRow>(sql, nameText(id))
    return row && askOf(row)
  }

  asks({ owner, thread }: Omit<RunFilter, 'limit'> = {}): readonly AskEntry[] {
    const { where, values } = matching({ owner, thread })
    const sql = `select id, branch, entry, closed from run_ask where closed is null and ${where} order by n`
    return this.#open()
      .all<AskRow>(sql, ...values)
      .map(askOf)
  }

  addThread(thread: ThreadEntry): Promise<void> {
    return this.#write((db) => {
      const place = [nameText(thread.owner), nameText(thread.id)] as const
      if (threadIn(db, ...place) === undefined) putThread(db, ...place, thread)
      return undefined
    })
  }

  thread(owner: string, id: string): ThreadEntry | undefined {
    return threadIn(this.#open(), nameText(owner), nameText(id))
  }

  threads(owner: string | undefined, limit = 100): readonly ThreadEntry[] {
    const { where, values } = matching({ owner })
    const sql = `select entry from run_thread where ${where} order by n desc limit ?`
    return this.#open()
      .all<{ entry: string }>(sql, ...values, limit)
      .map(({ entry }) => JSON.parse(entry))
  }

  removeThread(owner: string, id: string): Promise<void> {
    return this.#write((db) => {
      removeThread(db, nameText(owner), nameText(id))
      return undefined
    })
  }

  trim({ keep, endedBefore = 0 }: Parameters<RunLog['trim']>[0]): readonly ThreadEntry[] {
    const db = this.#open()
    return db.writing(() => {
      const { ended } = db.get<{ ended: number }>('select count(*) as ended from run where ending is not null') ?? {
        ended: 0,
      }
      const most = keep === undefined ? 0 : Math.max(0, ended - keep)
      const columns = 'select n, owner, thread from run where ending is not null'
      const old = new Map<number, { readonly n: number; readonly owner: string; readonly thread: string }>()
      for (const row of [
        ...db.all<{ n: number; owner: string; thread: string }>(`${columns} order by ended, n limit ?`, most),
        ...db.all<{ n: number; owner: string; thread: string }>(`${columns} and ended < ?`, endedBefore),
      ])
        old.set(row.n, row)
      for (const n of old.keys()) forget(db, n)
      const over = unneeded(db, [...old.values()])
      for (const { owner, id } of over) removeThread(db, nameText(owner), nameText(id))
      db.run(`delete from run_ask where closed is not null
        and not exists (select 1 from run where run.id = run_ask.run)
        and not exists (select 1 from run where run.id = run_ask.closer)`)
      return over
    })
  }

  close(): void {
    if (this.#closed) return
    this.#writer.flush()
    this.#closed = true
    try {
      if (this.#held.size > 0)
        this.#db.writing(() => {
          for (const held of this.#held.values()) letGo(this.#db, held)
        })
    } catch {
      // Whoever looks sees that this process is gone.
    } finally {
      this.#db.close()
    }
  }

  async #write(part: Part, then: () => void = () => {}): Promise<void> {
    this.#requireOpen()
    await this.#writer.write(part)
    then()
  }

  #open(): Connection {
    this.#requireOpen()
    return this.#db
  }

  #requireOpen(): void {
    if (!this.#closed) return
    const { file } = this.#db
    throw new SluiceError('STORE_CLOSED', `the run log ${file} is closed. Close it when all runs are over.`, { file })
  }

  /** A run that this log holds, as the file knows it. */
  #find(db: Connection, run: string): Held | SluiceError {
    const held = this.#held.get(run)
    const sql = 'select epoch from run where n = ? and holder = ? and ending is null'
    const row = held && db.get<{ epoch: number }>(sql, held.n, this.#holder)
    if (held !== undefined && row?.epoch === held.epoch) return held
    this.#held.delete(run)
    return db.get('select 1 from run where id = ?', nameText(run)) === undefined ? unknownRun(run) : lostRun(run)
  }

  #put(db: Connection, held: Held, texts: readonly string[]): void {
    held.seq ??= lastSeq(db, held.n)
    for (const text of texts) {
      held.seq++
      db.run('insert into run_event (id, body) values (?, ?)', held.n * SPAN + held.seq, text)
    }
  }

  #recount(): void {
    for (const held of this.#held.values()) held.seq = undefined
  }

  /** Runs under way that nobody does. */
  #left(db: Connection): readonly { readonly n: number; readonly entry: string }[] {
    const sql = 'select n, entry, holder, until from run where ending is null order by n'
    const now = this.#now()
    const mine = new Set([...this.#held.values()].map(({ n }) => n))
    const gone = new Map<string, boolean>()
    return db
      .all<{ n: number; entry: string; holder: string | null; until: number | null }>(sql)
      .filter(({ n, holder, until }) => {
        if (mine.has(n)) return false
        if (holder === null || holder === this.#holder || (until ?? 0) <= now) return true
        const known = gone.get(holder) ?? isLost(holder)
        gone.set(holder, known)
        return known
      })
  }
}

function isLost(holder: string): boolean {
  const owner = parseOwner(holder)
  return owner !== undefined && isGone(owner)
}

const entryOf = ({ entry, ending, ended }: RunRow): RunEntry =>
  ending === null ? JSON.parse(entry) : { ...JSON.parse(entry), ending: JSON.parse(ending), endedAt: ended }

const askOf = ({ entry, closed }: AskRow): AskEntry =>
  closed === null ? JSON.parse(entry) : { ...JSON.parse(entry), closed: JSON.parse(closed) }

function matching({ owner, thread }: { readonly owner?: string | undefined; readonly thread?: string | undefined }): {
  where: string
  values: readonly string[]
} {
  const given = Object.entries({ owner, thread }).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, nameText(value)] as const],
  )
  return {
    where: ['true', ...given.map(([name]) => `${name} = ?`)].join(' and '),
    values: given.map(([, value]) => value),
  }
}

function lastSeq(db: Connection, n: number): number {
  const sql = 'select max(id) as id from run_event where id > ? and id < ?'
  const last = db.get<{ id: number | null }>(sql, n * SPAN, (n + 1) * SPAN)?.id ?? null
  return last === null ? 0 : last - n * SPAN
}

function letGo(db: Connection, { n, epoch }: Held): void {
  db.run('update run set holder = null, until = null where n = ? and epoch = ?', n, epoch)
}

function threadIn(db: Connection, owner: string, thread: string): ThreadEntry | undefined {
  const sql = 'select entry from run_thread where owner = ? and thread = ?'
  const row = db.get<{ entry: string }>(sql, owner, thread)
  return row && JSON.parse(row.entry)
}

function putThread(db: Connection, owner: string, thread: string, entry: ThreadEntry): void {
  const sql = `insert into run_thread (owner, thread, entry) values (?, ?, ?)
    on conflict (owner, thread) do update set entry = excluded.entry`
  db.run(sql, owner, thread, JSON.stringify(entry))
}

function putAsks(db: Connection, entry: RunEntry, asks: readonly PutAsk[], at: number): void {
  const { id: run, owner, thread, branch, flow, startedBy } = entry
  const place = [nameText(owner), nameText(thread)] as const
  const open = new Set(asks.map(({ id }) => nameText(id)))
  const sql = 'select id, branch from run_ask where closed is null and owner = ? and thread = ?'
  const withdrawn = JSON.stringify({ by: null, at, run })
  for (const row of db.all<AskRow>(sql, ...place))
    if (row.branch === nameText(branch) && !open.has(row.id))
      db.run('update run_ask set closed = ?, closer = ? where id = ?', withdrawn, nameText(run), row.id)
  const insert = 'insert or ignore into run_ask (id, run, owner, thread, branch, entry) values (?, ?, ?, ?, ?, ?)'
  for (const ask of asks) {
    const text = JSON.stringify({ run, owner, thread, branch, flow, startedBy, ask } satisfies AskEntry)
    db.run(insert, nameText(ask.id), nameText(run), ...place, nameText(branch), text)
  }
}

function reopen(db: Connection, run: string): void {
  db.run('update run_ask set closed = null, closer = null where closed is not null and closer = ?', nameText(run))
}

function forget(db: Connection, n: number): void {
  db.run('delete from run_event where id > ? and id < ?', n * SPAN, (n + 1) * SPAN)
  db.run('delete from run where n = ?', n)
}

function removeThread(db: Connection, owner: string, thread: string): void {
  for (const { n } of db.all<{ n: number }>('select n from run where owner = ? and thread = ?', owner, thread))
    forget(db, n)
  db.run('delete from run_ask where owner = ? and thread = ?', owner, thread)
  db.run('delete from run_thread where owner = ? and thread = ?', owner, thread)
}

/** Unnamed threads of runs that are forgotten, where neither another run nor a question is left. */
function unneeded(
  db: Connection,
  forgotten: readonly { readonly owner: string; readonly thread: string }[],
): readonly ThreadEntry[] {
  const places = new Map(forgotten.map(({ owner, thread }) => [`${owner} ${thread}`, [owner, thread] as const]))
  return [...places.values()].flatMap((place) => {
    const entry = threadIn(db, ...place)
    const run = 'select 1 from run where owner = ? and thread = ?'
    const ask = 'select 1 from run_ask where owner = ? and thread = ? and closed is null'
    const isNeeded = !entry?.unnamed || db.get(run, ...place) !== undefined || db.get(ask, ...place) !== undefined
    return isNeeded ? [] : [entry]
  })
}
