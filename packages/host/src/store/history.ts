import type { Line, StoredRecord } from '@sluice/core'
import type { Connection } from './connection.ts'
import { nameText, SPAN } from './schema.ts'

export interface LineRow {
  readonly id: number
  readonly branch: string
  readonly origin: number | null
  readonly at: number | null
  readonly epoch: number
  readonly owner: string | null
  readonly until: number | null
}

/** The records of a line that a history holds: those after `after`, up to and including `to`; none where that is before. */
export interface Stretch {
  readonly line: number
  readonly after: number
  readonly to: number
}

const COLUMNS = 'id, branch, origin, at, epoch, owner, until'

export function findLine(db: Connection, { thread, branch }: Line): LineRow | undefined {
  const sql = `select ${COLUMNS} from line where thread = ? and branch = ?`
  return db.get(sql, nameText(thread), nameText(branch))
}

export function linesOf(db: Connection, thread: string): readonly LineRow[] {
  return db.all(`select ${COLUMNS} from line where thread = ? order by id`, nameText(thread))
}

/** The sequence number of a line's last record; 0 while nothing was written. */
export function headOf(db: Connection, { id, at }: Pick<LineRow, 'id' | 'at'>): number {
  const sql = 'select max(id) as id from log where id > ? and id < ?'
  const last = db.get<{ id: number | null }>(sql, id * SPAN, (id + 1) * SPAN)?.id ?? null
  return last === null ? (at ?? 0) : last - id * SPAN
}

/** Where the history of `row` up to record `to` lies: in the line itself, and before that in those it was forked from. */
export function historyOf(db: Connection, row: LineRow, to: number): readonly Stretch[] {
  const stretches = [{ line: row.id, after: row.at ?? 0, to }]
  for (let { origin, at } = row; origin !== null; ) {
    const before = db.get<LineRow>(`select ${COLUMNS} from line where id = ?`, origin)
    to = Math.min(to, at ?? 0)
    stretches.push({ line: origin, after: before?.at ?? 0, to })
    origin = before?.origin ?? null
    at = before?.at ?? null
  }
  return stretches
}

/** The first record that is needed to stand at the end of a history: its last snapshot, or the very first. */
export function startOf(db: Connection, history: readonly Stretch[]): number {
  const sql = 'select max(seq) as seq from snapshot where line = ? and seq <= ?'
  for (const { line, to } of history) {
    const seq = db.get<{ seq: number | null }>(sql, line, to)?.seq ?? null
    if (seq !== null) return seq
  }
  return 1
}

/** The records of a history from `from` on, as far as they are still there. */
export function recordsOf(db: Connection, history: readonly Stretch[], from: number): readonly StoredRecord[] {
  const sql = 'select id, body from log where id > ? and id <= ? order by id'
  return history
    .toReversed()
    .flatMap(({ line, after, to }) =>
      db
        .all<{ id: number; body: string }>(sql, line * SPAN + Math.max(after, from - 1), line * SPAN + to)
        .map(({ id, body }) => ({ seq: id - line * SPAN, text: body })),
    )
}
