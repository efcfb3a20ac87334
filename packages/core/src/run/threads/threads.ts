import { SluiceError } from '../../errors/error.ts'
import type { GraphPlan } from '../../graph/graph.ts'
import type { JsonObject } from '../../json/json.ts'
import { isReplacement, type Slots } from '../../state/state.ts'
import { type Ask, readRecord, type ThreadRecord, type Within } from '../../store/records.ts'
import { type Loaded, MAIN, notInHistory, type Status } from '../../store/store.ts'
import type { Runtime } from '../runtime.ts'
import { SAID } from './call-log.ts'
import { askOf, type Position } from './position.ts'
import { snapshotOf } from './snapshot.ts'
import { lineOf, positionOf, take } from './thread-run.ts'

/** A record of a thread's history with its sequence number. */
export type HistoryEntry = { readonly seq: number } & ThreadRecord

/** Where a line stands, or stood. */
export interface StandsAt<State> {
  /** The state; absent where its first input was not let in yet. */
  readonly state: State | undefined
  /** The sequence number of the record up to which this is true. */
  readonly at: number
  /** How the last run ended; absent while one is under way, and where one was cut off. */
  readonly status?: Status
  readonly asks: readonly Ask[]
  /** The tasks of the superstep that is not through, as `ctx.taskId` names them. */
  readonly next: readonly string[]
  readonly labels: readonly string[]
  /** What models are saying in calls that are under way, or were cut off; of the present only, and at most 100 ms behind. */
  readonly saying: readonly { readonly within: Within; readonly text: string }[]
}

export interface LineOptions {
  /** `main` without it. */
  readonly branch?: string
}

/** Every record of a line that is still there, the oldest first; empty for an unknown thread. */
export async function historyOf(
  { store }: Runtime,
  thread: string,
  { branch = MAIN }: LineOptions = {},
): Promise<readonly HistoryEntry[]> {
  const line = lineOf({ thread, branch })
  if (branch === MAIN && (await store.load(line)) === undefined) return []
  const records = await store.read(line)
  return records.map(({ seq, text }) => ({ seq, ...readRecord(text, seq, thread) }))
}

/** @throws SluiceError `THREAD_UNKNOWN`, `HISTORY_UNKNOWN` for a place that the line does not have or has dropped. */
export async function stateAt<State>(
  { store }: Runtime,
  plan: GraphPlan,
  thread: string,
  { branch, at }: LineOptions & { readonly at?: number } = {},
): Promise<StandsAt<State>> {
  const line = lineOf({ thread, branch })
  const records = await store.read(line, at === undefined ? undefined : { to: at })
  const last = records.at(-1)?.seq ?? 0
  if (at !== undefined && last !== at) throw notInHistory(line, at, last)
  const from = Math.max(
    0,
    records.findLastIndex(({ text, seq }) => readRecord(text, seq, thread).type === 'snapshot'),
  )
  const first = records[from]
  if (first === undefined || (first.seq !== 1 && readRecord(first.text, first.seq, thread).type !== 'snapshot')) {
    throw notInHistory(line, at ?? last, last)
  }
  const position = positionOf(plan, { records: records.slice(from).map(({ text }) => text), from: first.seq }, line)
  const saying = at === undefined ? sayingOf((await store.load(line))?.beside ?? []) : []
  return { ...standsAt<State>(plan, position, last), saying }
}

function sayingOf(beside: Loaded['beside']): StandsAt<unknown>['saying'] {
  return beside.flatMap(([key, text]) => {
    const place = JSON.parse(key) as Within
    return place.at(-1) === SAID ? [{ within: place.slice(0, -2), text: JSON.parse(text) as string }] : []
  })
}

function standsAt<State>(plan: GraphPlan, position: Position, at: number): Omit<StandsAt<State>, 'saying'> {
  const { slots, end, tasks, asks, labels } = position
  return {
    state: slots === undefined ? undefined : (plan.state.view(slots) as State),
    at,
    ...(end === undefined ? {} : { status: end.status }),
    asks: asks.map(askOf),
    next: tasks.filter(({ done }) => done === undefined).map(({ id }) => id),
    labels: [...labels],
  }
}

/**
 * Changes a thread's state by hand, through the reducers. With `create`, begins a thread that has run nothing yet.
 *
 * @throws SluiceError `STATE_UPDATE` for values that do not fit; `UPDATE_CONFLICT` for a field that a finished task of the
 *   superstep under way has written, where the two cannot be merged; `THREAD_PAUSED` for one to be begun that waits at its
 *   door; `THREAD_UNKNOWN`, `THREAD_BUSY`.
 */
export async function updateState(
  runtime: Runtime,
  plan: GraphPlan,
  thread: string,
  values: unknown,
  { branch, create = false }: LineOptions & { readonly create?: boolean } = {},
): Promise<number> {
  const { platform } = runtime
  const line = lineOf({ thread, branch })
  const update = plan.state.check(values, 'updateState')
  const { thread: writer, position } = await take(runtime, plan, line, create)
  try {
    const at = platform.time()
    if (position === undefined || position.slots === undefined) {
      if (!create) throw nothingToUpdate(thread)
      if (position?.end?.status === 'paused') throw waitsAtDoor(thread, position)
      await writer.close([completedAt(plan, plan.state.start(update), position)], {
        snapshot: true,
        standing: { graph: plan.name, status: 'completed', asks: '[]', at },
      })
      return writer.head
    }
    refuseConflict(plan, position, update)
    plan.state.apply(position.slots.slice(), update, { writer: 'updateState' })
    const status = position.end?.status
    const asks = JSON.stringify(status === 'paused' ? position.asks.map(askOf) : [])
    await writer.close([{ type: 'update', values: update }], {
      standing: { graph: plan.name, ...(status === undefined ? {} : { status }), asks, at },
    })
    return writer.head
  } catch (error) {
    await writer.leave().catch(() => undefined)
    throw error
  }
}

const waitsAtDoor = (thread: string, { asks }: Position) =>
  new SluiceError(
    'THREAD_PAUSED',
    `thread "${thread}" waits for an answer to ${asks.map(({ key }) => `"${key}"`).join(', ')} before its first input is let in. Answer it with resume, or begin another thread.`,
    { thread },
  )

const nothingToUpdate = (thread: string) =>
  new SluiceError('STATE_UPDATE', `thread "${thread}" has no state yet: its first input was not let in.`, { thread })

/** A snapshot of a thread that has come to its end with this state, and to nothing else than `position` where there is one. */
const completedAt = (plan: GraphPlan, slots: Slots, position: Position | undefined) =>
  snapshotOf({
    graph: plan.name,
    turn: position?.start?.turn,
    state: plan.state.view(slots) as JsonObject,
    labels: position?.labels ?? [],
    kept: position?.kept.values() ?? [],
    decisions: position?.decisions ?? 0,
    stable: position?.stable ?? new Map(),
    status: 'completed',
  })

/** What a finished task of the superstep wrote waits to be merged; a change by hand may not come between. */
function refuseConflict({ nodes, state }: GraphPlan, { tasks, end }: Position, update: JsonObject): void {
  for (const { node, done } of tasks) {
    if (done === undefined) continue
    const { output } = done
    const written = nodes.get(node)?.ports?.update(output) ?? output
    for (const field of Object.keys(update)) {
      if (!Object.hasOwn(written, field)) continue
      if (state.merges(field) && !isReplacement(update[field]) && !isReplacement(written[field])) continue
      const pending = end?.status === 'paused' ? 'paused' : 'unfinished'
      throw new SluiceError(
        'UPDATE_CONFLICT',
        `node "${node}" has written field "${field}" in the ${pending} superstep, and it has no reducer that merges the two. Go on with the thread first, or change another field.`,
        { field, node },
      )
    }
  }
}

/**
 * Begins a thread's history anew with a snapshot and drops what is before, as far as no fork needs it; says how many records
 * were dropped.
 *
 * @throws SluiceError `THREAD_UNFINISHED` for a thread that is in the middle of something; `THREAD_UNKNOWN`, `THREAD_BUSY`.
 */
export async function compactThread(
  runtime: Runtime,
  plan: GraphPlan,
  thread: string,
  { branch }: LineOptions = {},
): Promise<number> {
  const line = lineOf({ thread, branch })
  const { lease, thread: writer, position } = await take(runtime, plan, line, false)
  try {
    if (position?.slots === undefined || position.end?.status !== 'completed') {
      throw new SluiceError('THREAD_UNFINISHED', `thread "${thread}" is in the middle of something; end it first.`, {
        thread,
      })
    }
    await writer.open([completedAt(plan, position.slots, position)], { snapshot: true })
    return await runtime.store.trim(lease, writer.head)
  } finally {
    await writer.leave().catch(() => undefined)
  }
}
