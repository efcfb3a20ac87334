import { SluiceError } from '../../errors/error.ts'
import type { JsonObject } from '../../json/json.ts'
import { own } from '../../json/own.ts'
import { ENGINE, isSkip } from '../../seams/asks.ts'
import { keyOf } from '../../seams/journal.ts'
import type { KeptRecord } from '../../seams/kept.ts'
import type { AnyState, Slots } from '../../state/state.ts'
import {
  type AnswerRecord,
  type Ask,
  type AskRecord,
  isBelow,
  type Ready,
  type ThreadRecord,
  type Within,
  withinOf,
} from '../../store/records.ts'

type Of<T extends ThreadRecord['type']> = Extract<ThreadRecord, { type: T }>

/** A task of the superstep that was not through, as it is written down. */
export interface TaskImage {
  readonly id: string
  readonly node: string
  readonly payload: JsonObject | undefined
  attempt: number
  done: Of<'task'> | undefined
  /** Whether its last execution failed, and how many calls that had made. */
  failed: { readonly started: number } | undefined
  /** What was written about its calls, and further in. */
  records: ThreadRecord[]
}

/** Where a run stands, read from its records: its state, and the tasks of its superstep. */
export class Position {
  readonly #state: AnyState
  readonly #depth: number
  slots: Slots | undefined
  tasks: TaskImage[] = []
  /** What runs that remember have come to, by {@link memoryOf}. */
  readonly stable: Memories = new Map()
  readonly labels = new Set<string>()
  readonly kept = new Map<string, KeptRecord>()
  /** How many decisions were written down. */
  decisions = 0
  /** Changes of what is kept since the last superstep: their consultations may come again. */
  keptSince: KeptRecord[] = []
  /** The last run's start; absent in a run within another. */
  start: { readonly graph: string; readonly turn: string; readonly input: JsonObject } | undefined
  /** Whether the input was let in. */
  begun = false
  /** How many supersteps are through since its input was let in. */
  supersteps = 0
  /** The nodes that the last superstep ended with. */
  ended: readonly string[] | undefined
  /** Asks at the door of the run, their answers, and which of these were handed over. */
  door: readonly ThreadRecord[] = []
  end: Of<'end'> | undefined

  /** @param depth how many steps the run is from the thread's outermost run. */
  constructor(state: AnyState, depth: number) {
    this.#state = state
    this.#depth = depth
  }

  /** @throws SluiceError `THREAD_STATE` for stored values that do not fit the state any more. */
  static of(state: AnyState, records: readonly ThreadRecord[], depth = 0): Position {
    const position = new Position(state, depth)
    for (const record of records) position.apply(record)
    if (position.slots !== undefined) state.checkStored(position.slots)
    return position
  }

  apply(record: ThreadRecord): void {
    for (const label of record.labels ?? []) this.labels.add(label)
    for (const change of record.kept ?? []) this.#keep(change)
    this.decisions = record.decisions ?? this.decisions
    const within = withinOf(record)
    if (within.length > this.#depth) this.#inner(within, record)
    else this.#own(record)
  }

  #keep({ by, scope, value, mark }: KeptRecord): void {
    const owned = { by, scope, value: own(value), ...(mark === undefined ? {} : { mark }) }
    if (scope !== 'principal') this.kept.set(by, owned)
    this.keptSince.push(owned)
  }

  #inner(within: Within, record: ThreadRecord): void {
    this.#task(within[this.#depth] as string)?.records.push(record)
  }

  #own(record: ThreadRecord): void {
    switch (record.type) {
      case 'start':
        for (const { by, scope } of [...this.kept.values()]) if (scope === 'turn') this.kept.delete(by)
        this.keptSince = []
        this.start = { graph: record.graph, turn: record.turn, input: own(record.input) as JsonObject }
        this.begun = false
        this.tasks = []
        this.door = []
        this.end = undefined
        return
      case 'begin':
        this.#begin(record)
        return
      case 'step':
        this.#step(record)
        return
      case 'snapshot':
        this.#snapshot(record)
        return
      case 'update':
        if (this.slots !== undefined) this.#state.applyStored(this.slots, [own(record.values) as JsonObject])
        return
      case 'resume':
      case 'continue':
        this.end = undefined
        this.#goOn(record)
        return
      case 'end':
        this.end = record
        this.#withdraw(record)
        return
      case 'kept':
        return
      case 'ask':
      case 'answer':
      case 'call':
        this.door = [...this.door, record]
        return
      default:
        this.#ofTask(record)
    }
  }

  #begin({ state, update, next }: Of<'begin'>): void {
    if (state !== undefined) this.slots = this.#state.restore(own(state) as JsonObject)
    else if (update !== undefined && this.slots !== undefined) {
      this.#state.applyStored(this.slots, [own(update) as JsonObject])
    }
    this.begun = true
    this.supersteps = 0
    this.tasks = imagesOf(next)
  }

  #step({ writes, next, ended }: Of<'step'>): void {
    this.supersteps++
    this.ended = ended
    if (this.#depth === 0) this.keptSince = []
    const slots = this.slots
    if (slots === undefined) return
    const updates = writes.map(({ update }) => own(update) as JsonObject)
    this.#state.applyStored(slots, updates)
    for (const task of this.tasks) addMemories(this.stable, remembered(task, this.#depth))
    this.tasks = imagesOf(next)
  }

  #snapshot(record: Of<'snapshot'>): void {
    const { graph, turn, input = {}, door = [], state, next, allLabels, stable, status, supersteps = 0 } = record
    this.supersteps = supersteps
    this.start = { graph, turn, input: own(input) as JsonObject }
    this.door = door
    this.begun = true
    this.slots = this.#state.restore(own(state) as JsonObject)
    this.tasks = imagesOf(next)
    for (const label of allLabels) this.labels.add(label)
    for (const [of, records] of Object.entries(stable ?? {})) this.stable.set(of, records)
    this.end = status === undefined ? undefined : { type: 'end', time: 0, status }
  }

  #ofTask(record: Of<'task' | 'retry' | 'failed'>): void {
    const task = this.#task(record.task)
    if (task === undefined) return
    if (record.type === 'task') task.done = record
    else if (record.type === 'failed') task.failed = { started: record.started ?? 0 }
    else {
      task.attempt = record.attempt
      task.records = task.records.filter((kept) => isAboutNode(kept, this.#depth + 1))
    }
  }

  /** A failed task is arrived at anew: failures that its code did nothing about are tried again. */
  #goOn(record: Of<'resume' | 'continue'>): void {
    if (record.type === 'continue') this.keptSince = this.keptSince.filter((change) => !mayBePerformedAgain(change))
    for (const task of this.tasks) {
      if (task.done !== undefined) continue
      task.records = withoutOvertaken(task.records)
      if (task.failed !== undefined) {
        task.records = withoutLastFailures(task.records, this.#depth + 1, task.failed.started)
        this.#forgetMarksIn(task)
      }
      task.attempt = task.failed === undefined ? task.attempt : 1
      task.failed = undefined
      task.records.push(record)
    }
  }

  /** Its calls that are made again are other calls, and whoever counts counts them too. */
  #forgetMarksIn({ id }: TaskImage): void {
    if (this.#depth > 0) return
    const isWithin = ({ mark }: KeptRecord) => mark !== undefined && (JSON.parse(mark) as readonly string[])[1] === id
    this.keptSince = this.keptSince.filter((change) => !isWithin(change))
  }

  /** An ask that nobody waits for any more is open no longer. */
  #withdraw({ status, asks }: Of<'end'>): void {
    if (status === 'completed') return
    const waiting = new Set(status === 'paused' ? asks : [])
    const open = (records: readonly ThreadRecord[]) => {
      const answered = answersIn(records)
      return records.map((record) =>
        record.type !== 'ask' || answered.has(idOf(record)) || waiting.has(record.key)
          ? record
          : ({ ...record, withdrawn: true } as const),
      )
    }
    this.door = open(this.door)
    for (const task of this.tasks) task.records = open(task.records)
  }

  #task(id: string): TaskImage | undefined {
    return this.tasks.find((task) => task.id === id)
  }

  /** What a run that goes on is shown at its door; absent where it is nothing. */
  get atDoor(): { readonly input?: JsonObject; readonly door?: readonly ThreadRecord[] } {
    const { input = {} } = this.start ?? {}
    return {
      ...(Object.keys(input).length === 0 ? {} : { input }),
      ...(this.door.length === 0 ? {} : { door: this.door }),
    }
  }

  /** The questions that wait for an answer. */
  get asks(): readonly AskRecord[] {
    const records = [...this.door, ...this.tasks.flatMap((task) => (task.done === undefined ? task.records : []))]
    return inOrder(openAsks(records), ({ key }) => key, this.end?.asks ?? [])
  }
}

/**
 * Whether a change says that a call was counted for a principal that was cut off since, and may be made again. Of a thread's own
 * count that is one call; a principal could have it made again and again, by cancelling it each time.
 */
function mayBePerformedAgain({ scope, mark }: KeptRecord): boolean {
  if (scope !== 'principal' || mark === undefined) return false
  return (JSON.parse(mark) as readonly (string | number)[]).findLast((part) => typeof part === 'string') === 'before'
}

/** What runs that remember have come to: their records, placed as if each were an outermost run. */
export type Memories = Map<string, readonly ThreadRecord[]>

/** Whose memory it is: each node remembers each graph for itself. */
export const memoryOf = (node: string, graph: string): string => `${node}/${graph}`

export function addMemories(to: Memories, more: ReadonlyMap<string, readonly ThreadRecord[]>): void {
  for (const [of, records] of more) to.set(of, [...(to.get(of) ?? []), ...records])
}

/** What runs that remember came to in a task: those that completed, in the order they began. */
export function remembered({ node, records }: TaskImage, depth: number): Memories {
  const memories: Memories = new Map()
  const done = new Set(records.flatMap((record) => (record.type === 'call' && record.ok ? [pathOf(record)] : [])))
  for (const record of records) {
    if (record.type !== 'begin' || !record.stable || record.within === undefined) continue
    const root = record.within
    if (ownerOf(root.slice(0, -1)).length !== depth + 1 || !done.has(JSON.stringify(root))) continue
    const graph = (root.at(-1) as string).replace(/^run:|:\d+$/g, '')
    addMemories(memories, new Map([[memoryOf(node, graph), asOutermost(records, root)]]))
  }
  return memories
}

const pathOf = ({ within, kind, name, ordinal }: Of<'call'>): string =>
  JSON.stringify([...within, keyOf(kind, name, ordinal)])

/** The records of a run inside another, placed as if it were outermost; who asked at its door is not to be remembered. */
export function asOutermost(records: readonly ThreadRecord[], root: Within): readonly ThreadRecord[] {
  return records.flatMap((record) => {
    const within = withinOf(record)
    if (!isBelow(within, root)) return []
    const atDoor = within.length === root.length && ['ask', 'answer', 'call'].includes(record.type)
    return atDoor ? [] : [{ ...record, within: within.slice(root.length) } as ThreadRecord]
  })
}

/** The questions that nobody has answered; one that was put again counts as it was put last. */
export const openAsks = (records: readonly ThreadRecord[]): readonly AskRecord[] => {
  const open = new Map<string, AskRecord>()
  for (const record of records) {
    if (record.type === 'ask' && !record.withdrawn) open.set(idOf(record), record)
    else if (record.type === 'ask' || record.type === 'answer') open.delete(idOf(record))
  }
  return [...open.values()]
}

/** Questions in the order that these names have, whatever it is in them that is named; others come first. */
export function inOrder(
  asks: Iterable<AskRecord>,
  nameOf: (ask: AskRecord) => string | undefined,
  names: readonly string[],
): readonly AskRecord[] {
  const places = new Map(names.map((name, i) => [name, i]))
  const placeOf = (ask: AskRecord) => places.get(nameOf(ask) ?? '') ?? -1
  return [...asks].sort((a, b) => placeOf(a) - placeOf(b))
}

const answersIn = (records: readonly ThreadRecord[]): ReadonlySet<string> =>
  new Set(records.flatMap((record) => (record.type === 'answer' ? [idOf(record)] : [])))

/** Names a question among all of a line, whether it is put, answered or put again. */
export const idOf = ({ within, id }: AskRecord | AnswerRecord): string => JSON.stringify([...within, id])

/** What an ask says to people. */
export const askOf = ({
  key,
  askedBy,
  middleware,
  payload,
  nodeName,
  taskId,
  askedAt,
  expiresAt,
  schema,
  approvers,
  toolCallId,
}: AskRecord): Ask => ({
  key,
  askedBy,
  ...(middleware === undefined ? {} : { middleware }),
  payload,
  nodeName,
  taskId,
  askedAt,
  ...(expiresAt === undefined ? {} : { expiresAt }),
  ...(schema === undefined ? {} : { schema }),
  ...(approvers === undefined ? {} : { approvers }),
  ...(toolCallId === undefined ? {} : { toolCallId }),
})

function imagesOf(next: readonly Ready[]): TaskImage[] {
  const counts = new Map<string, number>()
  return next.map((ready) => {
    const node = typeof ready === 'string' ? ready : ready.node
    const ordinal = counts.get(node) ?? 0
    counts.set(node, ordinal + 1)
    const payload = typeof ready === 'string' ? undefined : (own(ready.payload) as JsonObject)
    return { id: taskIdOf(node, ordinal), node, payload, attempt: 1, done: undefined, failed: undefined, records: [] }
  })
}

/** A name as a key has it: what divides the parts of a key stands in it as %xx. */
export const inKey = (name: string): string => name.replace(/[%/:@#]/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`)

/** The first task of a node is called as the node is, unless that looks like the name of a further task of another one. */
export const taskIdOf = (node: string, ordinal: number): string =>
  ordinal === 0 && !/\[\d+\]$/.test(node) ? node : `${node}[${ordinal}]`

/** What stands on the way down to the calls of a further trip of a task; no call is named like it. */
export const tripStep = (trip: number): string => `trip:${trip}`

const tripOf = (step = ''): number => Number(/^trip:(\d+)$/.exec(step)?.[1] ?? 1)

/** What was written at a place and further in; how a run went on concerns every place. */
export const recordsAt = (place: Within, records: readonly ThreadRecord[] = []): readonly ThreadRecord[] =>
  records.filter((record) => record.type === 'continue' || record.type === 'resume' || isBelow(withinOf(record), place))

/** The question that a record is about: put, answered, or handed over. */
function questionIn(record: ThreadRecord): string | undefined {
  if (record.type === 'ask' || record.type === 'answer') return record.id
  return record.type === 'call' && record.kind === 'ask' ? record.name : undefined
}

/** Whether a record is about the node itself and not about a call of one execution of it. */
const isAboutNode = (record: ThreadRecord, depth: number): boolean =>
  withinOf(record).length === depth && questionIn(record)?.startsWith('@') === true

/**
 * Without the failed calls at the end of a task: what it went on from stays. A call that a person skipped may have done its work
 * all the same, so that it stands as one that was cut off until it settles again, and a person is asked.
 */
function withoutLastFailures(records: readonly ThreadRecord[], depth: number, started: number): ThreadRecord[] {
  const failures = failuresOfLastTrip(records, depth, started)
  const gone = new Set(failures)
  return records.flatMap((record) => {
    if (!gone.has(record)) return [record]
    return record.type === 'call' && wasSkipped(record, failures) ? [{ ...record, cutOff: true as const }] : []
  })
}

/** Without the calls that stand as cut off and have settled since. */
function withoutOvertaken(records: ThreadRecord[]): ThreadRecord[] {
  if (!records.some(isCutOff)) return records
  const settled = new Set(
    records.flatMap((record) => (record.type === 'call' && !isCutOff(record) ? [pathOf(record)] : [])),
  )
  return records.filter((record) => !isCutOff(record) || !settled.has(pathOf(record)))
}

const isCutOff = (record: ThreadRecord): record is Of<'call'> => record.type === 'call' && record.cutOff === true

/** Whether a person chose to skip this very call: it may also have failed because they skipped one further in. */
function wasSkipped(call: Of<'call'>, spent: readonly ThreadRecord[]): boolean {
  if (call.ok || !isSkip(call.error)) return false
  const path = pathOf(call)
  const skips = new Set(
    spent.flatMap((record) =>
      record.type === 'call' && record.kind === 'ask' && record.ok && record.value === 'skip'
        ? [JSON.stringify([...record.within, record.name])]
        : [],
    ),
  )
  return spent.some(
    (record) =>
      record.type === 'ask' &&
      record.askedBy === ENGINE &&
      JSON.stringify([...record.within, record.call]) === path &&
      skips.has(idOf(record)),
  )
}

/** Those of the last trip: of the trips before, the task went on from what they had come to. */
function failuresOfLastTrip(records: readonly ThreadRecord[], depth: number, started: number): readonly ThreadRecord[] {
  const trips = records.map((record) => tripOf(withinOf(record)[depth]))
  const last = Math.max(1, ...trips)
  if (last === 1) return lastFailures(records, depth, started)
  const ofLast = records.filter((_, i) => trips[i] === last)
  return [...records.filter((record) => isAboutNode(record, depth)), ...lastFailures(ofLast, depth + 1, started)]
}

/**
 * The failed calls at the end of a task: those after whose settling it made no other call. With them go the questions about
 * these calls, and about the node: their answers were spent on what has failed. A tool runs again from its top, so of a failed
 * one the same is true of the calls that it made itself.
 *
 * @param made how many calls there were at the end, with those that have not settled.
 */
function lastFailures(records: readonly ThreadRecord[], depth: number, made = 0): readonly ThreadRecord[] {
  const own = records.filter((record) => withinOf(record).length === depth)
  const calls = own.filter((record): record is Of<'call'> => record.type === 'call' && !isAboutNode(record, depth))
  const started = Math.max(made, ...calls.map((call) => Math.max(call.order, call.started)))
  const failed = new Set<ThreadRecord>()
  const [keys, tools] = [new Set<string>(), new Set<string>()]
  for (const call of calls) {
    if (call.ok || call.cutOff || call.started !== started) continue
    const key = keyOf(call.kind, call.name, call.ordinal)
    failed.add(call)
    keys.add(key)
    if (call.kind === 'tool') tools.add(key)
  }
  const isSpent = (record: ThreadRecord) =>
    failed.has(record) || (record.type === 'ask' && record.call !== undefined && keys.has(record.call))
  const spent = new Set(own.filter(isSpent).map(questionIn))
  spent.delete(undefined)
  const gone = own.filter((record) => failed.has(record) || isAboutNode(record, depth) || spent.has(questionIn(record)))
  const inside = [...tools].flatMap((tool) =>
    lastFailures(
      records.filter((record) => withinOf(record)[depth] === tool),
      depth + 1,
    ),
  )
  return [...gone, ...inside]
}

/**
 * Whether a paused task is executed again, now that these keys were answered: when no question of its own is open, and, where
 * runs inside it have open ones, when one of their tasks can go on.
 */
export function canGoOn({ records }: TaskImage, depth: number, answered: ReadonlySet<string>): boolean {
  const open = openAsks(records)
  if (open.length === 0) return true
  const owners = new Map(open.map(({ within }) => [JSON.stringify(ownerOf(within)), ownerOf(within)]))
  if ([...owners.values()].some((owner) => owner.length === depth + 1)) return false
  return records.some(
    (record) =>
      record.type === 'answer' && answered.has(record.key) && !owners.has(JSON.stringify(ownerOf(record.within))),
  )
}

/** The task that a question belongs to, as the way down to it: below a task are calls, and below the call of a run its tasks. */
function ownerOf(within: Within): Within {
  let owner = 0
  let atTask = true
  for (const [i, step] of within.entries()) {
    if (atTask) owner = i + 1
    atTask = !atTask && step.startsWith('run:')
  }
  return within.slice(0, owner)
}

/** A stored thread goes on at a node that is not there. */
export const nodeGone = (thread: string, node: string, within: Within = []): SluiceError =>
  new SluiceError(
    'THREAD_NODE_GONE',
    `thread "${thread}" stands at node "${node}", and the graph${within.length === 0 ? '' : ` further in (${within.join(' / ')})`} has no such node any more. A node's name is its identity in stored threads: bring it back, or fork the thread from before it.`,
    { thread, node },
  )
