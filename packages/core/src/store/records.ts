import { type Place, SluiceError, showError } from '../errors/error.ts'
import { isObject, type Json, type JsonObject } from '../json/json.ts'
import type { Principal } from '../seams/decision.ts'
import { RefusedError } from '../seams/failure.ts'
import type { CallKind } from '../seams/journal.ts'
import type { KeptRecord } from '../seams/kept.ts'
import type { Outcome } from '../seams/outcome.ts'
import type { Status } from './store.ts'

/**
 * Where in a thread something is written: the way down from the outermost run, task, call, task, call in turn. Empty for the
 * outermost run itself; `['sub', 'run:child:0']` is the run that node `sub` started, `['sub', 'run:child:0', 'a']` a task of it.
 * What a further trip of a node called, its wrap having come to `next` again, stands below `trip:2`, `trip:3` and so on.
 */
export type Within = readonly string[]

/** The way down to where a record was written; of the outermost run's own it is empty. */
export const withinOf = (record: ThreadRecord): Within => ('within' in record ? record.within : undefined) ?? []

/** Whether a place is another one, or further in below it. */
export const isBelow = (at: Within, within: Within): boolean => within.every((step, i) => step === at[i])

/** A task of the next superstep: the node's name, or the name and the values laid over the state for this task alone. */
export type Ready = string | { readonly node: string; readonly payload: JsonObject }

/** Where a node chose to go: tasks and `null` for END, or the label of an edge. */
export type StoredRoute = { readonly goto: readonly (Ready | null)[] } | { readonly branch: string }

/** An error as it is kept: never a stack, never a cause. */
export interface StoredError {
  readonly name: string
  readonly message: string
  readonly code?: string
  readonly at?: Place
  /** Of a refusal: what the policy said. */
  readonly reason?: string
}

export type StoredOutcome =
  | { readonly ok: true; readonly value?: Json }
  | { readonly ok: false; readonly error: StoredError }

/** A question put to a person. */
export interface Ask {
  /** Names it: `review:approve`, `agent:refund@ApprovalGate`, `sub/node:id` where it was asked further in. */
  readonly key: string
  /** `graph`, `policy:<Type>` or `engine`. */
  readonly askedBy: string
  /** The own middleware that asks, where `askedBy` is `graph` and it was no node. */
  readonly middleware?: string
  readonly payload: Json
  readonly nodeName: string
  readonly taskId: string
  /** Milliseconds since 1970. */
  readonly askedAt: number
  /** Milliseconds since 1970; nobody may answer after that. */
  readonly expiresAt?: number
  /** JSON Schema of the answer, where it can be told. */
  readonly schema?: JsonObject
  /** Who may answer: CEL over `principal`. It binds where it is known who answers: on a server. */
  readonly approvers?: string
  /** Of a question about a call of a tool: which call, as the events of it say. */
  readonly toolCallId?: string
}

/** One entry of a thread's history, by `type`; each has the time it was written. */
export type ThreadRecord = {
  readonly time: number
  /** Labels that joined the branch's before this was written. */
  readonly labels?: readonly string[]
  /** What middleware has come to keep before this was written. */
  readonly kept?: readonly KeptRecord[]
  /** How many decisions about this branch have been written to a log so far. */
  readonly decisions?: number
} & Payload

type Payload =
  /** A run began a turn with this input. */
  | {
      readonly type: 'start'
      readonly graph: string
      readonly runId: string
      readonly turn: string
      readonly input: JsonObject
    }
  | { readonly type: 'resume'; readonly runId: string; readonly turn: string }
  | { readonly type: 'continue'; readonly runId: string; readonly turn: string }
  /** The input was let in: the state a run begins with, or what changes in the one there is. */
  | {
      readonly type: 'begin'
      readonly within?: Within
      readonly state?: JsonObject
      readonly update?: JsonObject
      readonly next: readonly Ready[]
      /** Of a run that remembers: the next one of its node goes on from its state. */
      readonly stable?: true
    }
  /** A superstep is through. */
  | {
      readonly type: 'step'
      readonly within?: Within
      readonly writes: readonly { readonly task: string; readonly update: JsonObject }[]
      readonly next: readonly Ready[]
      /** Of the last one: the nodes that it ended with. */
      readonly ended?: readonly string[]
    }
  /** A task is through, and others of its superstep are not. */
  | {
      readonly type: 'task'
      readonly within?: Within
      readonly task: string
      readonly output: JsonObject
      readonly route?: StoredRoute
      readonly substituted?: string
    }
  /** A node is executed once more: the calls of its execution before are void. */
  | { readonly type: 'retry'; readonly within?: Within; readonly task: string; readonly attempt: number }
  | {
      readonly type: 'failed'
      readonly within?: Within
      readonly task: string
      readonly error: StoredError
      /** How many calls its last execution had made. */
      readonly started?: number
    }
  /** A call is settled. */
  | ({
      readonly type: 'call'
      readonly within: Within
      readonly kind: CallKind
      readonly name: string
      readonly ordinal: number
      readonly digest: string
      /** Which call of its task it was, and how many there were when it settled. */
      readonly order: number
      readonly started: number
      /** What whoever asked for it is told beside the outcome. */
      readonly told?: string
      /** Never written: what became of it is open again. */
      readonly cutOff?: true
    } & StoredOutcome)
  | AskRecord
  | AnswerRecord
  /** How a run ended. A pause names the keys of the asks it waits for. */
  | {
      readonly type: 'end'
      readonly status: Status
      readonly result?: JsonObject
      readonly error?: StoredError
      readonly asks?: readonly string[]
      /** The updates of the superstep cannot be merged, so it cannot be continued. */
      readonly stuck?: true
    }
  | { readonly type: 'update'; readonly values: JsonObject }
  /** Labels, and what middleware keeps, of a call that is not settled yet. */
  | { readonly type: 'kept' }
  /** All that is needed to go on from here. */
  | {
      readonly type: 'snapshot'
      readonly within?: Within
      readonly graph: string
      readonly runId: string
      readonly turn: string
      readonly state: JsonObject
      readonly next: readonly Ready[]
      readonly supersteps?: number
      /** Of a turn that goes on: its input, and who asked at its door. */
      readonly input?: JsonObject
      readonly door?: readonly ThreadRecord[]
      /** All labels of the branch, where `labels` has what joined them. */
      readonly allLabels: readonly string[]
      /** What runs that remember have come to, by the node that starts them and their graph; placed as if they were outermost. */
      readonly stable?: { readonly [of: string]: readonly ThreadRecord[] }
      readonly status?: Status
    }

export type AskRecord = {
  readonly type: 'ask'
  readonly within: Within
  /** Names it among the asks of its task. */
  readonly id: string
  /** Of a policy's ask: the key of the call it was put about; absent where that is the node itself. */
  readonly call?: string
  /** Of a policy's ask. */
  readonly digest?: string
  readonly asResult?: true
  /** The answer, where nobody gives one in time. */
  readonly default?: { readonly value: Json }
  /** Nobody waits for it any more; said of a record that was read, never written. */
  readonly withdrawn?: true
} & Ask

export interface AnswerRecord {
  readonly type: 'answer'
  readonly within: Within
  readonly id: string
  readonly key: string
  /** Absent where nobody answered in time and there is no default. */
  readonly value?: Json
  /** `person`, `expiry`, or the policy that answered. */
  readonly by: string
  /** The person, where it is known who. */
  readonly principal?: Principal
}

/** A record as it is handed to whoever writes it, and adds the time. */
export type Untimed = ThreadRecord extends infer R ? (R extends ThreadRecord ? Omit<R, 'time'> : never) : never

/** What of an error is kept. */
export function storedError(error: unknown): StoredError {
  const shown = showError(error)
  if (!(error instanceof SluiceError)) return shown
  const at = Object.keys(error.at).length === 0 ? {} : { at: error.at }
  return error instanceof RefusedError ? { ...shown, ...at, reason: error.reason } : { ...shown, ...at }
}

/** An error of the same name, message and code. Only our own classes come back, never one that the stored text names. */
function revivedError({ name, message, code, at, reason }: StoredError): Error {
  if (reason !== undefined) return new RefusedError(message, reason, at)
  if (code !== undefined && name === 'SluiceError') return new SluiceError(code, message, at)
  const error = new Error(message)
  Object.defineProperty(error, 'name', { value: name, configurable: true, writable: true })
  return code === undefined ? error : Object.assign(error, { code })
}

export const storedOutcome = (outcome: Outcome<unknown>): StoredOutcome =>
  outcome.ok
    ? outcome.value === undefined
      ? { ok: true }
      : { ok: true, value: outcome.value as Json }
    : { ok: false, error: storedError(outcome.error) }

export const revivedOutcome = (stored: StoredOutcome): Outcome<unknown> =>
  stored.ok ? { ok: true, value: stored.value } : { ok: false, error: revivedError(stored.error) }

/**
 * Reads a record's text.
 *
 * @throws SluiceError `THREAD_DAMAGED` for a text that is no record; the message says which one, and nothing was run.
 */
export function readRecord(text: string, seq: number, thread: string): ThreadRecord {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw damaged(seq, thread, 'it is no JSON', cause)
  }
  // Six letters: V8 looks for a longer text many times more slowly, and looking would take as long as reading.
  if (text.includes('__prot') && hasProto(value)) throw damaged(seq, thread, 'it has a member named __proto__')
  if (!isObject(value) || typeof value.type !== 'string' || !Object.hasOwn(SHAPES, value.type))
    throw damaged(seq, thread, 'it is of no known type')
  for (const { member, kind, optional } of membersOf(value.type as ThreadRecord['type'])) {
    const given = value[member]
    if (given === undefined ? !optional : kindOf(given) !== kind)
      throw damaged(seq, thread, `its "${member}" is ${given === undefined ? 'missing' : `a ${kindOf(given)}`}`)
  }
  return value as ThreadRecord
}

const damaged = (seq: number, thread: string, why: string, cause?: unknown) =>
  new SluiceError(
    'THREAD_DAMAGED',
    `record ${seq} of thread "${thread}" cannot be read: ${why}. Nothing was run. Fork the thread before it, or restore the store from a copy.`,
    { thread },
    cause,
  )

function hasProto(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(hasProto)
  return isObject(value) && (Object.hasOwn(value, '__proto__') || Object.values(value).some(hasProto))
}

interface Member {
  readonly member: string
  readonly kind: string
  readonly optional: boolean
}

const members = new Map<string, readonly Member[]>()

function membersOf(type: ThreadRecord['type']): readonly Member[] {
  let known = members.get(type)
  if (known === undefined) {
    known = Object.entries({ ...COMMON, ...SHAPES[type] }).map(([member, kind]) => ({
      member,
      kind: kind.replace('?', ''),
      optional: kind.endsWith('?'),
    }))
    members.set(type, known)
  }
  return known
}

const kindOf = (value: unknown): string => (value === null ? 'null' : Array.isArray(value) ? 'list' : typeof value)

/** The members that reading relies on; a file may have been edited by hand. */
const COMMON = { time: 'number', labels: 'list?', kept: 'list?', decisions: 'number?', within: 'list?' } as const
const SHAPES: { readonly [T in ThreadRecord['type']]: { readonly [member: string]: string } } = {
  start: { graph: 'string', runId: 'string', turn: 'string', input: 'object' },
  resume: { runId: 'string', turn: 'string' },
  continue: { runId: 'string', turn: 'string' },
  begin: { state: 'object?', update: 'object?', next: 'list' },
  step: { writes: 'list', next: 'list' },
  task: { task: 'string', output: 'object', route: 'object?' },
  retry: { task: 'string', attempt: 'number' },
  failed: { task: 'string', error: 'object' },
  call: {
    within: 'list',
    kind: 'string',
    name: 'string',
    ordinal: 'number',
    digest: 'string',
    order: 'number',
    told: 'string?',
    ok: 'boolean',
  },
  ask: {
    within: 'list',
    id: 'string',
    key: 'string',
    askedBy: 'string',
    askedAt: 'number',
    taskId: 'string',
    approvers: 'string?',
    toolCallId: 'string?',
  },
  answer: { within: 'list', id: 'string', key: 'string', by: 'string', principal: 'object?' },
  end: { status: 'string', result: 'object?', error: 'object?', asks: 'list?' },
  update: { values: 'object' },
  kept: {},
  snapshot: {
    graph: 'string',
    runId: 'string',
    turn: 'string',
    state: 'object',
    next: 'list',
    input: 'object?',
    door: 'list?',
    allLabels: 'list',
    stable: 'object?',
  },
}
