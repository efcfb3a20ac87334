import { SluiceError } from '../../errors/error.ts'
import type { GraphPlan } from '../../graph/graph.ts'
import { isObject, type Json, type JsonObject } from '../../json/json.ts'
import { own } from '../../json/own.ts'
import { ENGINE, PERSON, readOrphanAnswer } from '../../seams/asks.ts'
import type { Principal } from '../../seams/decision.ts'
import { validate } from '../../state/schema.ts'
import {
  type AnswerRecord,
  type Ask,
  type AskRecord,
  readRecord,
  storedError,
  type ThreadRecord,
  type Untimed,
} from '../../store/records.ts'
import { type Lease, type Line, type Loaded, MAIN, type Standing } from '../../store/store.ts'
import { conduct, readInput } from '../engine.ts'
import type { Sink } from '../event.ts'
import { requireTime } from '../limits.ts'
import type { Runtime } from '../runtime.ts'
import { type RunEnd, RunScope, type StartOptions } from '../scope.ts'
import { checkBySchema } from './answer-schema.ts'
import { requirePrincipal } from './labels-kept.ts'
import { askOf, inOrder, nodeGone, Position } from './position.ts'
import { rememberedSchema } from './schemas.ts'
import { Thread } from './thread.ts'

/** How a run takes a thread up: with a new input, with answers to what it asks, or where it was cut off. */
export type Taking =
  | { readonly kind: 'start'; readonly input: unknown }
  | { readonly kind: 'resume'; readonly answers: unknown }
  | { readonly kind: 'continue' }

/** A run on a thread that was asked for. */
export interface Wanted {
  readonly runtime: Runtime
  readonly plan: GraphPlan
  readonly taking: Taking
  readonly options: StartOptions
  readonly sink: Sink | null
}

/** How it ended. */
export interface ThreadEnd {
  readonly end: RunEnd
  /** Absent when it was refused. */
  readonly scope?: RunScope
  /** The open questions, after a pause. */
  readonly asks: readonly Ask[]
  /** The sequence number of the line's last record; 0 when there is none. */
  readonly at: number
}

/** A line as it was read to be gone on with. */
interface Taken {
  readonly lease: Lease
  /** Renews the lease from now on. */
  readonly thread: Thread
  readonly loaded: Loaded | undefined
  readonly position: Position | undefined
}

/** @throws SluiceError `THREAD_NAME` for a thread or branch that is no name. */
export function lineOf({ thread, branch = MAIN }: StartOptions): Line {
  for (const [what, name] of [
    ['thread', thread],
    ['branch', branch],
  ] as const) {
    if (typeof name !== 'string' || name.trim() === '')
      throw new SluiceError(
        'THREAD_NAME',
        `a ${what} is named by a text that is not blank, not ${JSON.stringify(name)}.`,
      )
  }
  return { thread: thread as string, branch }
}

/** Runs a graph on a thread until it ends or can only wait; never rejects. What is refused has written nothing. */
export async function runOnThread(wanted: Wanted): Promise<ThreadEnd> {
  const { runtime, plan, taking, options } = wanted
  let taken: Taken | undefined
  try {
    requireTime(options.timeoutMs ?? runtime.limits.timeoutMs)
    requirePrincipal(runtime.gates.policies, options)
    const input = taking.kind === 'start' ? readInput(plan, taking.input ?? {}) : undefined
    taken = await take(runtime, plan, lineOf(options), taking.kind === 'start')
    if (taking.kind !== 'start') requireNodes(plan, taken)
    const answers = signed(await admit(runtime, plan, taking, taken.position, taken.lease), options.principal)
    return await carryOn(wanted, taken, input, answers)
  } catch (error) {
    // Where it cannot be given back, whoever takes it next waits until it has run out; the run's own error is the one to tell.
    await taken?.thread.leave().catch(() => undefined)
    return { end: { status: 'failed', error, stop: true }, asks: [], at: taken?.loaded?.head ?? 0 }
  }
}

/** Takes the lease and reads where the line stands. */
export async function take(runtime: Runtime, plan: GraphPlan, line: Line, create: boolean): Promise<Taken> {
  const { store } = runtime
  const lease = await store.acquire(line, { create })
  try {
    const loaded = await store.load(line)
    const position = loaded === undefined ? undefined : positionOf(plan, loaded, line)
    return { lease, thread: new Thread(store, lease, runtime.platform, loaded), loaded, position }
  } catch (error) {
    await store.release(lease)
    throw error
  }
}

/** @throws SluiceError `THREAD_DAMAGED`, `THREAD_STATE`, `THREAD_OF_OTHER_GRAPH`. */
export function positionOf(
  plan: GraphPlan,
  { records, from }: Pick<Loaded, 'records' | 'from'>,
  { thread }: Line,
): Position {
  const read = records.map((text, i) => readRecord(text, from + i, thread))
  const graph = read.find((record): record is ThreadRecord & { graph: string } => 'graph' in record)?.graph
  if (graph !== undefined && graph !== plan.name) {
    throw new SluiceError(
      'THREAD_OF_OTHER_GRAPH',
      `thread "${thread}" belongs to graph "${graph}", not to "${plan.name}". Name another thread.`,
      { thread, graph: plan.name },
    )
  }
  try {
    return Position.of(plan.state, read)
  } catch (cause) {
    if (cause instanceof SluiceError && cause.code === 'THREAD_STATE') throw cause
    throw new SluiceError(
      'THREAD_DAMAGED',
      `thread "${thread}" cannot be read: ${(cause as Error).message} Nothing was run.`,
      { thread },
      cause,
    )
  }
}

/** Whether the thread stands so that this may be done to it, and the answers that it comes with. */
async function admit(
  runtime: Runtime,
  plan: GraphPlan,
  taking: Taking,
  position: Position | undefined,
  { thread, branch }: Line,
): Promise<readonly AnswerRecord[]> {
  const status = position?.end?.status
  const asks = status === 'paused' ? (position?.asks ?? []) : []
  const now = runtime.platform.time()
  const expired = asks.filter(({ expiresAt }) => expiresAt !== undefined && expiresAt <= now)
  const keys = asks.map(({ key }) => `"${key}"`).join(', ')
  const refuse = (code: string, why: string) => new SluiceError(code, `thread "${thread}" ${why}`, { thread })
  if (taking.kind === 'start') {
    if (status !== 'paused') return []
    throw refuse(
      'THREAD_PAUSED',
      `waits for an answer to ${keys}. Answer it with resume, or fork the thread from before.`,
    )
  }
  if (taking.kind === 'resume') {
    if (status !== 'paused') throw refuse('THREAD_NOT_PAUSED', notPaused(status))
    requireAskers(runtime, asks, thread)
    return [...(await readAnswers(runtime, plan, asks, taking.answers, { thread, branch }, now)), ...expiries(expired)]
  }
  if (status === 'paused') {
    if (expired.length === 0) throw refuse('THREAD_PAUSED', `waits for an answer to ${keys}. Answer it with resume.`)
    requireAskers(runtime, asks, thread)
    return expiries(expired)
  }
  if (status === 'completed' || position?.start === undefined)
    throw refuse('THREAD_FINISHED', 'has nothing to continue: its last run completed. Give it an input.')
  if (position.end?.stuck) {
    throw refuse(
      'THREAD_STUCK',
      `cannot be continued: ${position.end.error?.message ?? 'its updates cannot be merged.'} Fork it from before, or give it an input.`,
    )
  }
  return []
}

const notPaused = (status: string | undefined): string =>
  status === 'completed'
    ? 'does not wait for an answer: its last run completed. Give it an input.'
    : 'does not wait for an answer: its last run did not come to its end. Continue it.'

/** What a person answered is kept with who that was, where it is known. */
function signed(answers: readonly AnswerRecord[], principal: Principal | undefined): readonly AnswerRecord[] {
  if (principal === undefined) return answers
  const { kind, id } = principal
  return answers.map((answer) => (answer.by === PERSON ? { ...answer, principal: { kind, id } } : answer))
}

const expiries = (asks: readonly AskRecord[]): readonly AnswerRecord[] =>
  asks.map((ask) => ({
    type: 'answer',
    within: ask.within,
    id: ask.id,
    key: ask.key,
    by: 'expiry',
    ...(ask.default === undefined ? {} : { value: ask.default.value }),
  }))

/** What a thread goes on with must be there before anything is written. */
function requireNodes({ nodes }: GraphPlan, { lease, position }: Taken): void {
  for (const { node } of position?.tasks ?? []) if (!nodes.has(node)) throw nodeGone(lease.thread, node)
}

/** A policy that asked must be there to judge the answer; without it nobody would stand at that gate. */
function requireAskers(runtime: Runtime, asks: readonly AskRecord[], thread: string): void {
  for (const { askedBy, key } of asks) {
    const name = askedBy.startsWith('policy:') ? askedBy.slice('policy:'.length) : undefined
    if (name === undefined) continue
    const there = runtime.gates.policies.filter((policy) => policy.name === name)
    if (there.some(({ mode = 'enforce' }) => mode === 'enforce')) continue
    const [found] = there
    const why =
      found === undefined
        ? 'is not installed here. Install it'
        : `is ${MODE_WORDS[found.mode as 'off']} here. Let it enforce`
    throw new SluiceError(
      'ASKER_MISSING',
      `thread "${thread}" waits for an answer to "${key}", which policy "${name}" asked, and that policy ${why} and resume again.`,
      { thread, policy: name, ask: key },
    )
  }
}

const MODE_WORDS = { off: 'off', shadow: 'in shadow' } as const

/** Reads what a person answered: a value for the only question, or values by key. A Map is always by key. */
async function readAnswers(
  runtime: Runtime,
  plan: GraphPlan,
  asks: readonly AskRecord[],
  answers: unknown,
  line: Line,
  now: number,
): Promise<readonly AnswerRecord[]> {
  const { thread } = line
  if (asks.length === 0) {
    throw new SluiceError('THREAD_DAMAGED', `thread "${thread}" is paused, and none of its questions can be found.`, {
      thread,
    })
  }
  const mapped = answers instanceof Map
  const given = own(mapped ? Object.fromEntries(answers) : answers, 'the answer')
  const keys = asks.map(({ key }) => key)
  const named = isObject(given) ? Object.keys(given) : []
  const known = named.filter((key) => keys.includes(key))
  const listed = keys.map((key) => `"${key}"`).join(', ')
  const refuse = (code: string, why: string) => new SluiceError(code, `thread "${thread}": ${why}`, { thread })
  if ((mapped || known.length > 0) && known.length < named.length) {
    const unknown = named.filter((key) => !keys.includes(key)).map((key) => `"${key}"`)
    throw refuse('ASK_UNKNOWN', `nobody asks ${unknown.join(', ')}; open are: ${listed}.`)
  }
  const byKey = mapped || known.length > 0 ? (given as JsonObject) : undefined
  if (byKey === undefined && asks.length > 1) {
    throw refuse('ANSWER_AMBIGUOUS', `${asks.length} questions are open, so say which one is answered: ${listed}.`)
  }
  const pairs = byKey === undefined ? [[keys[0] as string, given] as const] : Object.entries(byKey)
  const records: AnswerRecord[] = []
  for (const [key, value] of pairs) {
    const ask = asks.find((open) => open.key === key) as AskRecord
    if (ask.expiresAt !== undefined && ask.expiresAt <= now) {
      throw refuse('ASK_EXPIRED', `the time in which "${key}" could be answered is over. Continue the thread.`)
    }
    await checkAnswer(runtime, plan, ask, value, line)
    records.push({ type: 'answer', within: ask.within, id: ask.id, key, value, by: PERSON })
  }
  return records
}

/** Checks an answer before anything runs, as far as this process can: by the schema itself, or by what was written down of it. */
async function checkAnswer(runtime: Runtime, plan: GraphPlan, ask: AskRecord, value: Json, line: Line): Promise<void> {
  const { key, askedBy, middleware, schema } = ask
  try {
    if (askedBy === ENGINE) readOrphanAnswer(value)
    const known = rememberedSchema({ plan, store: runtime.store, line, key })
    if (known !== undefined) validate(known, value, 'it')
    else if (schema !== undefined) {
      // What a node or a tool asked, it checks once more; an answer to a middleware is checked here and nowhere else.
      if (askedBy === 'graph' && middleware === undefined) await checkEarly(runtime, schema, value)
      else await checkBySchema(runtime, schema, value, middleware !== undefined)
    }
  } catch (cause) {
    throw new SluiceError(
      'ANSWER_INVALID',
      `thread "${line.thread}": the answer to "${key}" does not fit what was asked: ${(cause as Error).message.replace(/\.$/, '')}. Nothing was run; answer again.`,
      { thread: line.thread, ask: key },
      cause,
    )
  }
}

/** A schema that cannot be used here refuses nothing yet: whoever asked has the validator that it was told by. */
async function checkEarly({ checkJson }: Runtime, schema: JsonObject, value: Json): Promise<void> {
  try {
    await checkJson?.(schema, value)
  } catch (error) {
    if ((error as { code?: unknown } | null)?.code !== 'JSON_SCHEMA') throw error
  }
}

/** Writes down that the run begins, runs it, and writes down how it ended, in the write that gives the lease back. */
async function carryOn(
  { runtime, plan, taking, options, sink }: Wanted,
  { lease, thread, loaded, position: read }: Taken,
  input: JsonObject | undefined,
  answers: readonly AnswerRecord[],
): Promise<ThreadEnd> {
  const { platform } = runtime
  const position = read ?? new Position(plan.state, 0)
  // What is answered, or expired, on a paused thread leaves the rest of it waiting.
  if (taking.kind === 'resume' || answers.length > 0) thread.answered = new Set(answers.map(({ key }) => key))
  const runId = options.runId ?? platform.uuid()
  const turn = input === undefined ? (position.start?.turn ?? runId) : runId
  const opening: readonly Untimed[] =
    input === undefined
      ? [{ type: taking.kind as 'resume' | 'continue', runId, turn }, ...answers]
      : [{ type: 'start', graph: plan.name, runId, turn, input }]
  const time = platform.time()
  for (const record of opening) position.apply({ ...record, time })
  const begun = position.begun
  const scope = new RunScope(runtime, plan, options, sink, undefined, {
    thread,
    within: [],
    prefix: '',
    position,
    begun,
    ids: { runId, turn },
    address: `${turn}/${lease.branch}`,
  })
  thread.onFailure((error) => scope.stop(error))
  const standing = { graph: plan.name, asks: '[]', at: time }
  // A new input drops what a turn that was cut off left beside the log.
  const beside = input === undefined ? [] : (loaded?.beside ?? []).map(([key]) => [key, null] as const)
  if (input !== undefined && runtime.gates.runStart === undefined) thread.openLater(opening, { standing, beside })
  else await thread.open(opening, { standing, beside })
  if (sink !== null) scope.emit({ type: 'run_start', graphName: plan.name, runId })
  const end = await conduct(scope, input ?? position.start?.input ?? {})
  return close(scope, thread, end)
}

async function close(scope: RunScope, thread: Thread, conducted: RunEnd): Promise<ThreadEnd> {
  const { status, result, error } = conducted
  const open = status === 'paused' ? inOrder(thread.asks.values(), ({ within }) => within[0], scope.waiting) : []
  const asks = open.map(askOf)
  // Before the end is written, so that what hooks keep goes with it. What they fail with is for the caller, and not for the thread.
  const end = (await scope.hooks?.end(conducted, asks)) ?? conducted
  // What was refused before anything was written leaves no trace.
  if (thread.untouched && status !== 'completed' && status !== 'paused') {
    await thread.leave()
    return { end, scope, asks, at: thread.head }
  }
  const record: Untimed = {
    type: 'end',
    status,
    // Where a graph has no results of its own they are the state, which stands there already.
    ...(result === undefined || scope.plan.boundary === undefined ? {} : { result }),
    ...(error === undefined ? {} : { error: storedError(error) }),
    ...(status === 'paused' ? { asks: open.map(({ key }) => key) } : {}),
    ...(scope.stuck && status === 'failed' ? { stuck: true } : {}),
  }
  const standing: Standing = { graph: scope.plan.name, status, asks: JSON.stringify(asks), at: thread.platform.time() }
  try {
    const snapshot = status === 'completed' ? () => scope.snapshot([], status) : undefined
    await thread.close([...scope.left, record], { standing }, snapshot)
    return { end, scope, asks, at: thread.head }
  } catch (failure) {
    await thread.leave().catch(() => undefined)
    const ended: RunEnd = status === 'failed' ? end : { status: 'failed', error: failure, stop: true }
    return { end: ended, scope, asks: [], at: thread.head }
  }
}
