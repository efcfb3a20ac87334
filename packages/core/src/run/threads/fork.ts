import { SluiceError } from '../../errors/error.ts'
import { keyOf } from '../../seams/journal.ts'
import { type AskRecord, isBelow, readRecord, type ThreadRecord, type Within, withinOf } from '../../store/records.ts'
import { type Line, type LineSummary, type Standing, unknownLine } from '../../store/store.ts'
import type { Runtime } from '../runtime.ts'
import { askOf, idOf, inOrder, openAsks } from './position.ts'
import { lineOf } from './thread-run.ts'
import type { LineOptions } from './threads.ts'

export interface ForkOptions extends LineOptions {
  /** The sequence number of the last record that the fork shares; the line's last one without it. */
  readonly at?: number
  /** The name of the new branch; without it, `fork-1` or the next number that is free. */
  readonly name?: string
}

/**
 * @throws SluiceError `THREAD_UNKNOWN`, `BRANCH_EXISTS`, `HISTORY_UNKNOWN`, `THREAD_NAME`; `FORK_ANSWERED` for a place at which
 *   somebody has answered a policy or the engine, and what they were asked about is not through: an answer counts once.
 */
export async function forkThread(
  { store, platform }: Runtime,
  thread: string,
  { branch, at, name }: ForkOptions = {},
): Promise<Line> {
  const from = lineOf({ thread, branch })
  const loaded = await store.load(from)
  if (loaded === undefined) throw unknownLine(from)
  const fork = lineOf({ thread, branch: name ?? nextName(await store.lines(thread)) })
  const seq = at ?? loaded.head
  const shared =
    seq === loaded.head
      ? loaded.records.map((text, i) => ({ text, seq: loaded.from + i }))
      : await store.read(from, { to: seq })
  const records = shared.map((record) => readRecord(record.text, record.seq, thread))
  const unspent = answeredIn(records)
  if (unspent !== undefined) throw forkAnswered(thread, seq, unspent)
  await store.fork(from, seq, fork.branch, { ...standingIn(records), at: platform.time() })
  return fork
}

/** How a line stands that has come to these records. */
function standingIn(records: readonly ThreadRecord[]): Omit<Standing, 'at'> {
  const graph = records.find((record): record is ThreadRecord & { graph: string } => 'graph' in record)?.graph ?? ''
  const last = records.findLast(({ type }) => TURNS.has(type))
  const status = last?.type === 'end' || last?.type === 'snapshot' ? last.status : undefined
  const keys = (last?.type === 'end' && last.asks) || []
  const waiting = new Set(keys)
  const asks = inOrder(openAsks(records), ({ key }) => key, keys).filter(({ key }) => waiting.has(key))
  return { graph, ...(status === undefined ? {} : { status }), asks: JSON.stringify(asks.map(askOf)) }
}

/** Records after which a line stands otherwise than before. */
const TURNS: ReadonlySet<ThreadRecord['type']> = new Set(['start', 'resume', 'continue', 'end', 'snapshot'])

function nextName(lines: readonly LineSummary[]): string {
  const taken = new Set(lines.map(({ branch }) => branch))
  let n = 1
  while (taken.has(`fork-${n}`)) n++
  return `fork-${n}`
}

/** A question of a policy or of the engine that was answered, and what it was about is not through. */
function answeredIn(records: readonly ThreadRecord[]): AskRecord | undefined {
  const asked = new Map<string, AskRecord>()
  const answered = new Map<string, AskRecord>()
  for (const record of records) {
    if (record.type === 'ask') {
      asked.set(idOf(record), record)
      answered.delete(idOf(record))
    } else if (record.type === 'answer') {
      const ask = asked.get(idOf(record))
      if (ask !== undefined && ask.askedBy !== 'graph') answered.set(idOf(record), ask)
    } else for (const [id, ask] of answered) if (isThrough(aboutOf(ask), record)) answered.delete(id)
  }
  return answered.values().next().value
}

/** The way down to what a policy or the engine asks about: a call, a task, or a run at its door. */
const aboutOf = ({ within, call }: AskRecord): Within => (call === undefined ? within : [...within, call])

/** Whether what is at a place is through, or void, once this is written. */
function isThrough(about: Within, record: ThreadRecord): boolean {
  const within = withinOf(record)
  const isAt = (at: Within) => about.length === at.length && isBelow(about, at)
  switch (record.type) {
    case 'begin':
      return isAt(within)
    case 'call':
      return isBelow(about, [...within, keyOf(record.kind, record.name, record.ordinal)])
    case 'task':
      return isBelow(about, [...within, record.task])
    case 'failed':
      return isAt([...within, record.task])
    case 'retry':
      return isBelow(about, [...within, record.task]) && !isAt([...within, record.task])
    case 'start':
    case 'step':
    case 'snapshot':
      return isBelow(about, within)
    default:
      return false
  }
}

const forkAnswered = (thread: string, at: number, { key }: AskRecord) =>
  new SluiceError(
    'FORK_ANSWERED',
    `at record ${at} of thread "${thread}" an answer to "${key}" is given, and what it was asked about is not through; a fork would have that answer once more. Fork before the answer, and it is asked again, or after the superstep.`,
    { thread },
  )
