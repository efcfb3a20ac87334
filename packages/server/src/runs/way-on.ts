import type { Json, RunEvent, Runtime, SluiceError } from '@sluice/core'
import type { FlowGraph } from '@sluice/flow'
import type { RunEntry } from '@sluice/host'
import { innerName } from './thread-name.ts'

export type RunEndEvent = RunEvent & { readonly type: 'run_end' }

/**
 * How a run goes on that its process has left: it is begun as it was asked for where its thread knows nothing of it, continued where
 * it was cut off, and over where its thread says so.
 */
export type WayOn = 'begin' | 'continue' | RunEndEvent

type History = Awaited<ReturnType<Runtime['history']>>
type End = History[number] & { readonly type: 'end' }

/** Records with which a run takes a thread up. */
const OPENINGS: ReadonlySet<string> = new Set(['start', 'resume', 'continue'])

const opens = (record: History[number]): boolean => OPENINGS.has(record.type)

/** Looks into the thread of a run how far it came. */
export async function wayOn(runtime: Runtime, graph: FlowGraph, entry: RunEntry): Promise<WayOn> {
  const history = await historyOf(runtime, entry)
  const its = history.findLastIndex((record) => opens(record) && 'runId' in record && record.runId === entry.id)
  if (its === -1) return isCompacted(history, entry) ? lost(graph) : 'begin'
  const after = history.slice(its + 1)
  const next = after.findIndex(opens)
  const records = next === -1 ? after : after.slice(0, next)
  const end = records.findLast((record): record is End => record.type === 'end')
  const isOver = end !== undefined && end.error?.code !== 'RUN_DRAINED'
  if (isOver) return shownEnd(runtime, graph, entry, end, next === -1)
  return next === -1 ? 'continue' : lost(graph)
}

async function historyOf(runtime: Runtime, { owner, thread, branch }: RunEntry): Promise<History> {
  try {
    return await runtime.history(innerName(owner, thread), { branch })
  } catch (error) {
    if ((error as Partial<SluiceError>).code === 'THREAD_UNKNOWN') return []
    throw error
  }
}

/** What the thread said of the run may be dropped. */
const isCompacted = ([first]: History, { at }: RunEntry): boolean =>
  first !== undefined && first.seq > 1 && first.time > at

/** Somebody else has gone on with the thread. */
const lost = ({ plan }: FlowGraph): RunEndEvent => ({
  type: 'run_end',
  status: 'cancelled',
  error: {
    name: 'SluiceError',
    message: 'the process of this run ended, and before another one could go on with it, its thread was gone on with.',
    code: 'RUN_LOST',
  },
  path: [plan.name],
})

/** The end as the thread has it, as the event that would have told it. */
async function shownEnd(
  runtime: Runtime,
  graph: FlowGraph,
  { owner, thread, branch }: RunEntry,
  { seq, status, result, error }: End,
  isLast: boolean,
): Promise<RunEndEvent> {
  const told = { type: 'run_end', status, path: [graph.plan.name] } as const
  if (status === 'failed' || status === 'cancelled')
    return error === undefined ? told : { ...told, error: shown(error) }
  if (status === 'completed' && result !== undefined) return { ...told, result }
  const stands = await runtime.stateAt(graph, innerName(owner, thread), { branch, at: seq })
  return status === 'completed'
    ? { ...told, result: stands.state as unknown as Json }
    : { ...told, asks: isLast ? stands.asks : [] }
}

const shown = ({ name, message, code }: NonNullable<End['error']>) => ({
  name,
  message,
  ...(code === undefined ? {} : { code }),
})
