import { SluiceError } from '../../errors/error.ts'
import type { GraphPlan } from '../../graph/graph.ts'
import type { Maker } from '../../seams/call.ts'
import type { Entry } from '../../seams/journal.ts'
import { handBack } from '../../seams/perform.ts'
import { never } from '../../seams/site.ts'
import { isThenable } from '../../seams/thenable.ts'
import { type ThreadRecord, type Within, withinOf } from '../../store/records.ts'
import type { ChildOptions } from '../../tools/inside.ts'
import { conduct, readInput } from '../engine.ts'
import { MAX_DEPTH_OF_RUNS, requireTime } from '../limits.ts'
import { type OnThread, type RunEnd, RunScope } from '../scope.ts'
import type { Task } from '../task.ts'
import type { CallLog } from '../threads/call-log.ts'
import type { Flown } from '../threads/flight.ts'
import { asOutermost, Position } from '../threads/position.ts'

/**
 * Runs a graph inside a node: same runtime, same policies, within the time the parent has left. What stops the child stops
 * every run above it; its own cancel, time and budget are errors in the parent's node. On a thread it is a call like any
 * other: settled, it is handed back, and cut off or paused, it goes on where it was.
 */
export async function runChild(
  task: Task,
  starter: Maker,
  log: CallLog | undefined,
  plan: GraphPlan,
  input: unknown,
  options: ChildOptions = {},
  flown: Flown,
): Promise<unknown> {
  const { scope } = task
  if (scope.depth >= MAX_DEPTH_OF_RUNS) {
    throw new SluiceError(
      'RUNS_TOO_DEEP',
      `node "${task.node.name}" starts a run nested ${MAX_DEPTH_OF_RUNS + 1} deep; ${MAX_DEPTH_OF_RUNS} is the most.`,
      { node: task.node.name },
    )
  }
  if (options.remember && log === undefined) {
    throw new SluiceError(
      'REMEMBER_NEEDS_THREAD',
      `node "${task.node.name}" starts a run that remembers, and there is no thread to keep what it remembers. Run it on a thread.`,
      { node: task.node.name },
    )
  }
  requireTime(options.timeoutMs ?? scope.timeoutMs)
  const given = readInput(plan, input ?? {})
  const entered = log?.journal.enter('run', plan.name, given)
  const entry = isThenable(entered) ? await entered : entered
  if (entry?.settled !== undefined) {
    if (options.remember && log !== undefined && entry.settled.ok) rememberAgain(log, entry, plan, task)
    return handBack(entry.settled)
  }
  if (log !== undefined && entry !== undefined && !entry.noted) await log.note(entry)
  if (starter.over) return never()
  const signal = eitherOf(options.signal, task.ownSignal)
  const on = log && entry && placeOf(log, entry, plan, task, options)
  const prefix = on?.prefix ?? task.keyPrefix
  const child = new RunScope(
    scope.runtime,
    plan,
    { ...options, signal, onActive: () => task.active() },
    scope.sink,
    task,
    on,
    prefix,
  )
  const end = await task.withChild(child, () => conduct(child, given))
  if (starter.over) return never()
  // Tasks of it that came to their end in the very turn that ended it count, should it go on.
  if (log !== undefined && child.left.length > 0) await log.thread.write(child.left)
  if (end.stop) return scope.halt(end.error)
  if (end.status === 'paused') {
    flown.waits()
    if (signal === undefined) return never()
    // Whoever started it may give it up while it waits for a person.
    await givenUp(scope, signal)
    if (starter.over) return never()
  }
  if (on?.remember) scope.memories.end(task, plan.name, end.status === 'completed' ? [child.memory] : undefined)
  const outcome =
    end.status === 'paused' ? ({ ok: false, error: child.cancelled(signal?.reason) } as const) : outcomeOf(end)
  const written = entry?.settle(outcome)
  if (written !== undefined) await written
  return handBack(outcome)
}

/** Settles when the signal aborts; never when the run ends before. */
const givenUp = (scope: RunScope, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const then = () => {
      forget()
      resolve()
    }
    const forget = scope.onEnd(() => signal.removeEventListener('abort', then))
    signal.addEventListener('abort', then, { once: true })
    if (signal.aborted) then()
  })

const outcomeOf = ({ status, result, error }: RunEnd) =>
  status === 'completed' ? ({ ok: true, value: result } as const) : ({ ok: false, error } as const)

function placeOf(
  log: CallLog,
  entry: Entry,
  plan: GraphPlan,
  task: Task,
  { remember = false }: ChildOptions,
): OnThread {
  const within = [...log.within, entry.key]
  const records = log.inside(entry.key)
  const memory = remember ? task.scope.memories.take(task, plan.name) : []
  const before = memory.map((record) => placed(record, within))
  const known = before.length > 0 || records.some((record) => withinOf(record).length > 0)
  return {
    thread: log.thread,
    within,
    address: `${task.scope.address}/${task.taskId}.${task.execution}/${entry.key}`,
    prefix: log.prefixOf(entry),
    position: known ? Position.of(plan.state, [...before, ...records], within.length) : undefined,
    begun: records.some((record) => record.type === 'begin' && record.within?.length === within.length),
    remember,
  }
}

/** A run of a graph that remembers is handed back: what comes after it goes on from there. */
function rememberAgain(log: CallLog, { key }: Entry, { name }: GraphPlan, task: Task): void {
  const { scope } = task
  const before = scope.memories.take(task, name)
  scope.memories.end(task, name, [...before, ...asOutermost(log.inside(key), [...log.within, key])])
}

const placed = (record: ThreadRecord, within: Within): ThreadRecord =>
  ({ ...record, within: [...within, ...withinOf(record)] }) as ThreadRecord

/** Aborts with the first of them. */
export const eitherOf = (a: AbortSignal | undefined, b: AbortSignal | undefined): AbortSignal | undefined =>
  a === undefined || b === undefined ? (a ?? b) : AbortSignal.any([a, b])
