import { messageOf, SluiceError } from '../../errors/error.ts'
import { canonical } from '../../json/canonical.ts'
import { equal } from '../../json/equal.ts'
import { isObject, type Json, type JsonObject } from '../../json/json.ts'
import { own } from '../../json/own.ts'
import {
  type Asked,
  type Asking,
  type Closed,
  ENGINE,
  isOver,
  ORPHAN_ANSWERS,
  readOrphanAnswer,
} from '../../seams/asks.ts'
import { Call, type SeamSpec } from '../../seams/call.ts'
import { askerOf, type Consulted, type ConsultedAt, stepOf } from '../../seams/failure.ts'
import { Entry, ReadDigest } from '../../seams/journal.ts'
import type { Outcome } from '../../seams/outcome.ts'
import type { Policy } from '../../seams/policy.ts'
import { never } from '../../seams/site.ts'
import type { Subject } from '../../seams/subject.ts'
import { areApprovers } from '../../seams/verdict.ts'
import { jsonSchemaOf } from '../../state/json-schema.ts'
import { type Schema, validate } from '../../state/schema.ts'
import { type AskRecord, revivedOutcome, type Untimed } from '../../store/records.ts'
import type { AskOptions } from '../../tools/inside.ts'
import type { Runtime } from '../runtime.ts'
import type { RunScope } from '../scope.ts'
import type { Task } from '../task.ts'
import { checkBySchema } from '../threads/answer-schema.ts'
import { type CallLog, labelOf } from '../threads/call-log.ts'
import type { Flown } from '../threads/flight.ts'

/** What is asked, before it has a key. */
export interface Question {
  readonly id: string
  readonly askedBy: string
  /** The own middleware that asks. */
  readonly middleware?: string
  readonly payload: Json
  readonly schema?: Schema
  readonly jsonSchema?: JsonObject
  readonly expiresInMs?: number
  readonly approvers?: string
  readonly default?: { readonly value: Json }
  readonly about?: Pick<AskRecord, 'call' | 'digest' | 'asResult' | 'toolCallId'>
  /** What ends the run where nobody answers at once and there is no thread to wait on. */
  readonly unanswered?: SluiceError
}

/** A question on its way to a person. It opens when nobody answers it before. */
export class AskCall extends Call<Json> {
  declare readonly site: RunScope
  readonly question: Question
  readonly log: CallLog | undefined
  readonly opened: (() => void) | undefined
  /** The task in which it is asked; absent at the door of a run. */
  readonly task: Task | undefined

  constructor(
    scope: RunScope,
    task: Task | undefined,
    subject: Subject,
    question: Question,
    nestedIn: readonly Policy[],
    log?: CallLog,
    entry?: Entry,
    opened?: () => void,
  ) {
    super(scope, subject, question.payload, { entry, nestedIn })
    this.question = question
    this.task = task
    this.log = log
    this.opened = opened
  }

  override get taskId(): string | undefined {
    return this.task?.taskId
  }
}

export const askSpec: SeamSpec<Json, Json> = {
  seam: 'ask',
  perform: (call) => openAsk(call as AskCall),
  readValue: (value, call, what) => {
    const { site, question } = call as AskCall
    const { askedBy, middleware, schema, jsonSchema } = question
    if (askedBy === ENGINE) readOrphanAnswer(value)
    if (schema !== undefined) validate(schema, value, what)
    if (jsonSchema === undefined) return value
    return checkBySchema(site.runtime, jsonSchema, value, middleware !== undefined).then(() => value)
  },
}

/** Writes the question down, if it does not stand there, and waits for ever: the answer comes to a later run. */
async function openAsk({ log, question, subject, site, opened }: AskCall): Promise<never> {
  if (log === undefined) {
    site.stop(question.unanswered ?? askNeedsThread(question, subject))
    return never()
  }
  const { thread } = log
  const { ask: known, answer } = log.recordedAsk(question.id) ?? {}
  const same =
    known?.digest === question.about?.digest &&
    known?.approvers === question.approvers &&
    equal(known?.payload ?? null, question.payload)
  const stands = same && answer === undefined
  const record = known !== undefined && stands ? known : recordOf(log, question, subject)
  if (record !== known) await thread.write([record])
  thread.asks.set(record.key, record)
  opened?.()
  return never()
}

const askNeedsThread = ({ id }: Question, { nodeName }: Subject) =>
  new SluiceError(
    'ASK_NEEDS_THREAD',
    `node "${nodeName}" asks "${id}", and this run has no thread on which it could wait for an answer. Run it on a thread, or answer it with a middleware.`,
    { node: nodeName, ask: id },
  )

/** The digest that binds an answer to what was shown. */
export const digestFor = ({ runtime }: RunScope, input: Json): string | Promise<string> =>
  runtime.platform.sha256(canonical(input))

/**
 * What a middleware asks about a call, of which the question says `about`.
 *
 * @throws what is wrong with its default, or with who may answer.
 */
export async function questionOf(
  runtime: Runtime,
  who: Consulted,
  ask: JsonObject,
  about: JsonObject,
  digest: string,
): Promise<Omit<Question, 'id'>> {
  const { onAnswer, schema, expiresInMs, approvers, default: fallback, ...payload } = ask
  if (fallback !== undefined && isObject(schema)) {
    await checkBySchema(runtime, schema as JsonObject, fallback, !isPolicy(who)).catch((misfit) => {
      throw new Error(`the default of its question does not fit the schema: ${messageOf(misfit)}`)
    })
  }
  if (typeof approvers === 'string') await runtime.checkApprovers?.(approvers)
  return {
    ...(isPolicy(who) ? { askedBy: `policy:${who.name}` } : { askedBy: 'graph', middleware: who.name }),
    payload: own({ ...about, ...payload }),
    ...(isObject(schema) ? { jsonSchema: schema as JsonObject } : {}),
    ...(typeof expiresInMs === 'number' && expiresInMs > 0 ? { expiresInMs } : {}),
    ...(typeof approvers === 'string' ? { approvers } : {}),
    ...(fallback === undefined ? {} : { default: { value: fallback } }),
    about: { digest, ...(onAnswer === 'result' ? { asResult: true } : {}) },
  }
}

/** The same question once more: its answer was to be the result and did not fit. */
export const refusedQuestion = (question: Question, why: string): Question => ({
  ...question,
  payload: own({ ...(question.payload as JsonObject), refused: why }),
})

function recordOf(log: CallLog, question: Question, subject: Subject): AskRecord {
  const { id, askedBy, middleware, payload, about = {}, expiresInMs, approvers, schema } = question
  const { jsonSchema = schemaOf(schema) } = question
  const askedAt = log.thread.platform.time()
  return {
    type: 'ask',
    within: log.within,
    id,
    key: log.keyOf(id),
    askedBy,
    ...(middleware === undefined ? {} : { middleware }),
    payload,
    nodeName: subject.nodeName ?? '',
    taskId: log.prefix,
    askedAt,
    ...(expiresInMs === undefined ? {} : { expiresAt: askedAt + expiresInMs }),
    ...(jsonSchema === undefined ? {} : { schema: jsonSchema }),
    ...(approvers === undefined ? {} : { approvers }),
    ...(question.default === undefined ? {} : { default: question.default }),
    ...about,
  }
}

/** How a question was over before it opened: somebody else answered it. */
export const closedAtOnce = ({ site, substituted = '' }: AskCall): Closed => ({
  by: substituted,
  at: site.runtime.platform.time(),
})

/** What a policy answered before the question opened, written as if a person had been asked: it is bound and spent in the same way. */
function answeredAtOnce(log: CallLog, { question, subject, entry, substituted = '' }: AskCall): readonly Untimed[] {
  if (!entry?.settled?.ok) return []
  const ask = recordOf(log, question, subject)
  const value = entry.settled.value as Json
  return [ask, { type: 'answer', within: ask.within, id: ask.id, key: ask.key, value, by: substituted }]
}

/** The JSON Schema of the answers that a validator takes, where it can tell it. */
function schemaOf(schema: Schema | undefined): JsonObject | undefined {
  try {
    return schema && jsonSchemaOf(schema, 'the JSON Schema of an answer')
  } catch {
    return undefined
  }
}

const ASK_ID = /^[A-Za-z0-9_.-]+$/

/** A node, or a tool, that asks. */
export interface Asker {
  readonly scope: RunScope
  readonly task: Task
  readonly at: { readonly nodeName: string; readonly nodeType: string }
  /** Absent in a run without a thread. */
  readonly log: CallLog | undefined
  /** What the keys of its asks begin with. */
  readonly keyPrefix: string
  /** What it has asked so far, by id. */
  readonly askIds: Set<string>
}

/** A node's, or a tool's, `ctx.ask`. */
export async function askPerson(
  { scope, task, at, log, keyPrefix, askIds }: Asker,
  id: string,
  payload: Json,
  { schema, expiresInMs, approvers, ...rest }: AskOptions = {},
  flown: Flown,
): Promise<Json> {
  const refuse = (code: string, why: string) =>
    new SluiceError(code, `node "${at.nodeName}" ${why}.`, { node: at.nodeName, ask: id })
  if (typeof id !== 'string' || !ASK_ID.test(id)) {
    throw refuse('ASK_INVALID', `asks under the id ${JSON.stringify(id)}; an id is letters, digits, "_", "." and "-"`)
  }
  if (expiresInMs !== undefined && !(expiresInMs > 0)) {
    throw refuse('ASK_INVALID', `asks "${id}" with an expiresInMs of ${expiresInMs}; give milliseconds above 0`)
  }
  if (approvers !== undefined)
    await readApprovers(scope.runtime, approvers, (why) => refuse('ASK_INVALID', `asks "${id}" ${why}`))
  if (askIds.has(id)) throw refuse('ASK_DUPLICATE', `asks "${id}" twice; give each question an id of its own`)
  askIds.add(id)
  const key = `${keyPrefix}:${id}`
  const question: Question = {
    id,
    askedBy: 'graph',
    payload: own(payload, `the question "${id}" of node "${at.nodeName}"`),
    schema,
    expiresInMs,
    approvers,
    ...('default' in rest ? { default: { value: own(rest.default, `the default of question "${id}"`) } } : {}),
  }
  if (schema !== undefined && log !== undefined) scope.remember(key, schema)
  const { nodeName, nodeType } = at
  const subject = { nodeName, nodeType, key, askedBy: 'graph' }
  const entry = log && askEntry(log, question)
  const turn = entry?.recorded ? log?.turnOf(id) : undefined
  if (turn !== undefined) await turn
  const call = new AskCall(scope, task, subject, question, scope.nestedIn, log, entry, flown.waits)
  const answer = await scope.gates.ask(call)
  return schema === undefined ? answer : (checked(schema, answer, id, at.nodeName) as Json)
}

/** @throws what `refuse` makes of what is wrong with them. */
async function readApprovers(
  { checkApprovers }: Runtime,
  text: unknown,
  refuse: (why: string) => Error,
): Promise<void> {
  if (!areApprovers(text)) throw refuse('with "approvers" that are no text; give an expression over "principal"')
  try {
    await checkApprovers?.(text)
  } catch (error) {
    throw refuse(`with "approvers" that are none: ${messageOf(error).replace(/\.$/, '')}`)
  }
}

/** Where nobody could check it before anything ran, an answer that does not fit fails the question, which is then put again. */
function checked(schema: Schema, answer: Json, id: string, node: string): unknown {
  try {
    return validate(schema, answer, `the answer to "${id}"`)
  } catch (cause) {
    throw new SluiceError(
      'ANSWER_INVALID',
      `node "${node}": the answer to "${id}" does not fit what was asked: ${(cause as Error).message}. Continue the thread, and it is asked again.`,
      { node, ask: id },
      cause,
    )
  }
}

/** The journal's entry of a question: settled where it was handed over, with a raw outcome where it was answered. */
function askEntry(log: CallLog, question: Question): Entry {
  const { id, payload, askedBy, middleware, about } = question
  const read = log.recordedAsk(id)
  // What was asked about a call holds for what was asked about, and for nothing else.
  const holds = about === undefined || read?.ask.digest === about.digest
  const settled = holds ? log.recordedOutcome(id) : undefined
  // What others ask about a call is no call of the task's own: it is not there again when the call is settled in a later run.
  const order =
    askedBy === 'graph' && middleware === undefined ? log.journal.asked(settled?.order) : log.journal.askedAbout()
  // The code has become stricter since the answer was handed over: the question is put once more.
  if (settled?.ok && !takes(question, settled.value)) return new Entry('ask', id, payload, 0, order, log)
  if (settled !== undefined) {
    return new Entry('ask', id, payload, 0, order, log, {
      digest: settled.digest,
      order,
      settled: revivedOutcome(settled),
    })
  }
  if (read?.answer === undefined || !holds) return new Entry('ask', id, payload, 0, order, log)
  const digest = log.digest('ask', payload)
  const outcome = outcomeOf(question, read.ask.nodeName, read.answer.value)
  const trips = [{ attempt: 1, number: 1, given: new ReadDigest(digest), input: payload, outcome }]
  const entry = new Entry('ask', id, payload, 0, order, log, { digest, order, trips })
  entry.noted = false
  return entry
}

function takes({ id, schema }: Question, answer: Json | undefined): boolean {
  try {
    if (schema !== undefined) validate(schema, answer, id)
    return true
  } catch {
    return false
  }
}

function outcomeOf({ id, schema }: Question, node: string, answer: Json | undefined): Outcome<unknown> {
  if (answer === undefined) return { ok: false, error: askExpired(id, node) }
  const value = own(answer)
  try {
    if (schema !== undefined) checked(schema, value, id, node)
    return { ok: true, value }
  } catch (error) {
    return { ok: false, error }
  }
}

const askExpired = (id: string, node: string) =>
  new SluiceError('ASK_EXPIRED', `node "${node}": nobody answered "${id}" in time.`, { node, ask: id })

/** Where a call that a policy suspends, or that was cut off, is written down and waits. */
export interface AskedAt {
  readonly scope: RunScope
  /** Absent at the door of a run. */
  readonly task?: Task
  /** Made when first read: most calls ask nobody. */
  readonly log: CallLog
  /** Nothing was written about it yet. */
  readonly fresh?: boolean
  readonly subject: Subject
  /** The call; absent where it is the node itself, or the run. */
  readonly entry?: Entry
  /** What the question says of the call, before what its asker says: `input` is what the asker was shown. */
  about(input: Json): JsonObject
  waits(): void
}

/** A question as it was put in an earlier run. */
const questionIn = (record: AskRecord): Question => {
  const { id, askedBy, middleware, payload, schema, askedAt, expiresAt, approvers } = record
  const { call, digest, asResult, toolCallId } = record
  return {
    id,
    askedBy,
    middleware,
    payload,
    jsonSchema: schema,
    default: record.default,
    ...(expiresAt === undefined ? {} : { expiresInMs: expiresAt - askedAt }),
    approvers,
    about: { call, digest, asResult, toolCallId },
  }
}

export const isPolicy = (who: Consulted): who is Policy => who.plugin !== undefined

/** How the calls of a thread ask people. */
export class CallAsking implements Asking {
  readonly #at: AskedAt
  #asked: Asked[] | undefined
  #handedOver: Set<string> | undefined
  /** The questions of this run, by id. */
  #put: Map<string, Question> | undefined

  constructor(at: AskedAt) {
    this.#at = at
  }

  get within(): readonly string[] {
    const { scope, log, task, entry } = this.#at
    return entry === undefined || task === undefined ? [scope.address, ...log.within] : task.place
  }

  get asked(): Asked[] {
    this.#asked ??= this.#at.fresh ? [] : this.#at.log.askedAbout(this.#at.entry?.key)
    return this.#asked
  }

  /** The call that its questions are about. */
  get #which(): Pick<AskRecord, 'call' | 'toolCallId'> {
    const { entry, subject } = this.#at
    const { toolCallId } = subject
    return {
      ...(entry === undefined ? {} : { call: entry.key }),
      ...(toolCallId === undefined ? {} : { toolCallId }),
    }
  }

  digest(input: Json): string | Promise<string> {
    return digestFor(this.#at.scope, input)
  }

  async handOver(): Promise<void> {
    const { log } = this.#at
    for (const asked of this.asked) {
      const { id, by } = asked
      if (!isOver(asked) || this.#handedOver?.has(id) || log.recordedOutcome(id) !== undefined) continue
      this.#isHandedOver(id)
      const { ask } = log.recordedAsk(id) as { ask: AskRecord }
      const { askedBy, middleware, payload } = ask
      const call = this.#call({ id, askedBy, middleware, payload: own(payload) }, by)
      await Promise.resolve(call.site.gates.ask(call)).catch(() => undefined)
    }
  }

  async prepare({ who, input: shown }: ConsultedAt, ask: JsonObject): Promise<() => Promise<void>> {
    const { scope } = this.#at
    const input = shown as Json
    const digest = await this.digest(input)
    const question = await questionOf(scope.runtime, who, ask, this.#at.about(input), digest)
    const by = askerOf(who)
    const id = this.#idOf(by, who.name)
    const about = { ...this.#which, ...question.about }
    const asResult = question.about?.asResult ?? false
    return () => this.#ask({ ...question, id, about }, { id, by, digest, asResult }, isPolicy(who) ? who : undefined)
  }

  async again({ who }: ConsultedAt, { id: before, by, digest, asResult }: Asked, why: string): Promise<void> {
    const put = this.#put?.get(before) ?? questionIn((this.#at.log.recordedAsk(before) as { ask: AskRecord }).ask)
    const id = this.#idOf(by, who.name)
    await this.#ask({ ...refusedQuestion(put, why), id }, { id, by, digest, asResult }, isPolicy(who) ? who : undefined)
  }

  /** The first question of somebody about a call, the next one once that was answered, and so on. */
  #idOf(asker: string, name = asker): string {
    const { entry, log } = this.#at
    const before = this.asked.filter(({ by }) => by === asker)
    const open = before.find((asked) => !isOver(asked))
    if (open !== undefined) return open.id
    const which = `@${name}${before.length === 0 ? '' : `.${before.length + 1}`}`
    if (entry === undefined) return which
    const short = `${labelOf(entry)}${which}`
    return log.takeAskId(short, entry.key) ? short : `${entry.key}${which}`
  }

  async orphaned(go: string, why?: string): Promise<void> {
    const { entry, scope } = this.#at
    const id = this.#idOf(ENGINE)
    const subject = this.#at.subject
    const step = stepOf({ seam: entry?.kind === 'tool' ? 'toolCall' : 'node', subject } as ConsultedAt)
    await this.#ask(
      {
        id,
        askedBy: ENGINE,
        payload: own({
          ...this.#at.about(entry?.trips.at(-1)?.input ?? null),
          ...(why === undefined ? {} : { refused: why }),
          question: `${entry?.kind === 'once' ? `"${entry.name}" of ${step}` : step} was cut off, and nobody knows whether it did its work. Answer ${ORPHAN_ANSWERS}.`,
        }),
        about: { ...this.#which, digest: go },
      },
      { id, by: ENGINE, digest: go, asResult: false },
    )
    if (scope.stopped) await never()
  }

  /** Resolves when a policy has answered; else the question is open, and this stays pending. */
  async #ask(question: Question, asked: Asked, asker?: Policy): Promise<void> {
    const { entry, log } = this.#at
    if (entry !== undefined && !entry.noted) await log.note(entry)
    this.#put ??= new Map()
    this.#put.set(asked.id, question)
    const call = this.#call(question, asked.by, asker)
    const value = await call.site.gates.ask(call)
    this.#isHandedOver(asked.id)
    this.asked.push({ ...asked, answer: { value }, closed: closedAtOnce(call) })
  }

  #isHandedOver(id: string): void {
    this.#handedOver ??= new Set()
    this.#handedOver.add(id)
  }

  /** What goes past the policies that are subscribed to `ask`, without the asker. */
  #call(question: Question, by: string, asker?: Policy): AskCall {
    const { scope, task, log, subject, waits } = this.#at
    const { nodeName, nodeType } = subject
    const about = { nodeName, nodeType, key: log.keyOf(question.id), askedBy: question.askedBy }
    const nestedIn = asker === undefined ? scope.policiesNamed(by) : [...scope.nestedIn, asker]
    const entry = askEntry(log, question)
    const call = new AskCall(scope, task, about, question, nestedIn, log, entry, waits)
    if (!entry.recorded) log.along.set(entry, () => answeredAtOnce(log, call))
    return call
  }
}
