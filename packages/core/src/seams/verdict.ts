import type { ChatRequest, ChatResponse } from '../chat/chat.ts'
import { isObject, type Json, type JsonObject } from '../json/json.ts'
import { own } from '../json/own.ts'
import { type Action, type Admitted, admits, type Half, type Seam } from './table.ts'

/** What each seam shows: the value that `before` is given as `input`, and the value of an outcome that went well. */
export interface Shown {
  run: { input: JsonObject; value: Json }
  node: { input: JsonObject; value: JsonObject }
  nodeError: { input: never; value: JsonObject }
  agentRound: { input: Round; value: RoundResult }
  modelCall: { input: ChatRequest; value: ChatResponse }
  toolCall: { input: JsonObject; value: Json }
  ask: { input: Json; value: Json }
}

/** `round` counts from 1; `maxRounds` is the ceiling of this agent, always a number. */
export interface Round {
  readonly round: number
  readonly maxRounds: number
}

/** The names of the tools that the round ran, in the order the model asked for them. */
export interface RoundResult {
  readonly round: number
  readonly toolCalls: readonly string[]
}

/** What any verdict may carry besides its action. */
export interface Remarks {
  /** For machines. Codes that begin with `sluice:` are the engine's. */
  readonly code?: string
  readonly warnings?: readonly string[]
  /** Join one set of the turn that only grows and stands in `ctx.labels`. */
  readonly labels?: readonly string[]
  readonly annotations?: Readonly<Record<string, string>>
}

interface Proceed extends Remarks {
  readonly action: 'proceed'
}
interface Modify<Input> extends Remarks {
  readonly action: 'modify'
  readonly input: Input
}
interface Replace<Value> extends Remarks {
  readonly action: 'replace'
  readonly value: Value
}
interface Reject extends Remarks {
  readonly action: 'reject'
  readonly reason: string
}
interface Suspend extends Remarks {
  readonly action: 'suspend'
  readonly ask: JsonObject
}
interface Pass extends Remarks {
  readonly action: 'pass'
}
export interface Retry extends Remarks {
  readonly action: 'retry'
  /** Milliseconds; clamped to 30,000. */
  readonly delayMs?: number
}
interface Fail extends Remarks {
  readonly action: 'fail'
  readonly reason: string
}

type VerdictOf<A extends Action, Input, Value> = Extract<
  Proceed | Modify<Input> | Replace<Value> | Reject | Suspend | Pass | Retry | Fail,
  { action: A }
>

/** At `modelCall` a modification is an edit: the fields to change. Elsewhere it is the whole new value. */
type Modified<S extends Seam> = S extends 'modelCall' ? Partial<ChatRequest> : Shown[S]['input']

/** The verdicts that `before` of a seam admits. */
export type BeforeVerdict<S extends Seam> = VerdictOf<Admitted<S, 'before'>, Modified<S>, Shown[S]['value']>
/** The verdicts that `after` of a seam admits. */
export type AfterVerdict<S extends Seam> = VerdictOf<Admitted<S, 'after'>, never, Shown[S]['value']>

/** A verdict as read: its shape is checked, the value it brings is not yet. */
export type Verdict = Proceed | Modify<Json> | Replace<Json> | Reject | Suspend | Pass | Retry | Fail

/** The verdict that changes nothing. */
export const plainAt = (half: Half): 'proceed' | 'pass' => (half === 'before' ? 'proceed' : 'pass')

const MAX_REMARKS = 16
const MAX_REMARK_BYTES = 1_024
const ENGINE_CODES = 'sluice:'

/** Why an answer is no verdict; the text continues a sentence that names the policy. */
export class NotAVerdict extends Error {}

/**
 * Reads what a policy answered at a half.
 *
 * @throws NotAVerdict saying what was received and what the half admits.
 */
export function readVerdict(seam: Seam, half: Half, answer: unknown): Verdict {
  const admitted = admits(seam, half)
  if (!isObject(answer) || typeof answer.action !== 'string') {
    throw new NotAVerdict(
      `answered ${brief(answer)}, which is no verdict; return { action } with one of: ${admitted.join(', ')}`,
    )
  }
  const action = answer.action as Action
  if (!admitted.includes(action)) {
    throw new NotAVerdict(
      `answered "${brief(action)}", which ${seam}.${half} does not admit; it admits: ${admitted.join(', ')}`,
    )
  }
  return { action, ...MEMBERS[action](answer, admitted), ...readRemarks(answer) } as Verdict
}

type Answer = { readonly [key: string]: unknown }

const nothing = () => ({})

const MEMBERS: { readonly [A in Action]: (answer: Answer, admitted: readonly Action[]) => object } = {
  proceed: nothing,
  pass: nothing,
  modify: (answer) => ({ input: json(answer, 'modify', 'input') }),
  replace: (answer) => ({ value: json(answer, 'replace', 'value') }),
  reject: (answer) => ({ reason: text(answer, 'reject', 'reason') }),
  fail: (answer) => ({ reason: text(answer, 'fail', 'reason') }),
  suspend: (answer, admitted) => {
    if (!isObject(answer.ask)) throw new NotAVerdict('answered "suspend" without an object "ask"')
    checkAsk(answer.ask, admitted)
    return { ask: json(answer, 'suspend', 'ask') }
  },
  retry: ({ delayMs }) => {
    if (delayMs === undefined || delayMs === null) return {}
    if (typeof delayMs !== 'number' || !Number.isFinite(delayMs) || delayMs < 0) {
      throw new NotAVerdict(`answered "retry" with a "delayMs" of ${brief(delayMs)}; give milliseconds, 0 or more`)
    }
    return { delayMs }
  },
}

/** The most characters of an expression that says who may answer. */
const MAX_APPROVERS = 4_096

/** Whether this can say who may answer. What it says is for whoever knows who answers. */
export const areApprovers = (value: unknown): value is string =>
  typeof value === 'string' && value.trim() !== '' && value.length <= MAX_APPROVERS

/** The members of a question that the engine reads; all others are shown to the person. */
function checkAsk({ onAnswer, schema, expiresInMs, approvers }: Answer, admitted: readonly Action[]): void {
  const refuse = (what: string) => new NotAVerdict(`answered "suspend" with ${what}`)
  if (given(onAnswer) && onAnswer !== 'result') throw refuse('an "onAnswer" that is not "result"')
  if (given(onAnswer) && !admitted.includes('replace'))
    throw refuse('an answer that is to be the result, and nobody may supply the result here')
  if (given(schema) && !isObject(schema)) throw refuse(`a "schema" that is ${brief(schema)}; give a JSON Schema`)
  if (given(expiresInMs) && !(typeof expiresInMs === 'number' && expiresInMs > 0))
    throw refuse(`an "expiresInMs" of ${brief(expiresInMs)}; give milliseconds above 0`)
  if (given(approvers) && !areApprovers(approvers))
    throw refuse('"approvers" that are no text; give an expression over "principal"')
}

function json(answer: Answer, action: string, member: string): Json {
  if (answer[member] === undefined) throw new NotAVerdict(`answered "${action}" without "${member}"`)
  return own(answer[member], `the "${member}" of its "${action}"`)
}

function text(answer: Answer, action: string, member: string): string {
  const value = answer[member]
  if (typeof value === 'string' && value.trim() !== '') return value
  throw new NotAVerdict(`answered "${action}" without a "${member}" that says why`)
}

function readRemarks({ code, warnings, labels, annotations }: Answer): Remarks {
  const remarks: { -readonly [K in keyof Remarks]: Remarks[K] } = {}
  if (given(code)) remarks.code = readCode(code)
  if (given(warnings)) remarks.warnings = remarkList(warnings, 'warnings')
  if (given(labels)) remarks.labels = remarkList(labels, 'labels')
  if (given(annotations)) {
    if (!isObject(annotations)) throw new NotAVerdict('gave "annotations" that are no object')
    const entries = Object.entries(annotations)
    for (const side of [0, 1]) {
      remarkList(
        entries.map((entry) => entry[side]),
        'annotations',
      )
    }
    remarks.annotations = Object.freeze(Object.fromEntries(entries)) as Record<string, string>
  }
  return remarks
}

/** In some languages what is absent is written as null. */
const given = (member: unknown): boolean => member !== undefined && member !== null

function readCode(code: unknown): string {
  const read = remark(code, 'code')
  if (!read.startsWith(ENGINE_CODES)) return read
  throw new NotAVerdict(`gave a "code" that begins with "${ENGINE_CODES}"; those are the engine's`)
}

function remarkList(value: unknown, name: string): readonly string[] {
  if (!Array.isArray(value) || value.length > MAX_REMARKS) {
    throw new NotAVerdict(`gave "${name}" that are no list of at most ${MAX_REMARKS} entries`)
  }
  return Object.freeze(value.map((item) => remark(item, name)))
}

function remark(value: unknown, name: string): string {
  if (typeof value === 'string' && bytesOf(value) <= MAX_REMARK_BYTES) return value
  throw new NotAVerdict(`gave a "${name}" that is no text of at most ${MAX_REMARK_BYTES} bytes`)
}

/** Of its UTF-8 form; a text that is longer by characters alone is not counted. */
function bytesOf(text: string): number {
  if (text.length > MAX_REMARK_BYTES) return text.length
  let bytes = 0
  for (const character of text) {
    const code = character.codePointAt(0) as number
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4
  }
  return bytes
}

/** What was received, short enough for a message and without its values. */
function brief(value: unknown): string {
  if (typeof value === 'string') return value.length > 40 ? `${value.slice(0, 40)}…` : value
  if (isObject(value)) return `an object with the keys ${brief(Object.keys(value).join(', ') || 'none')}`
  return value === undefined || value === null ? String(value) : Array.isArray(value) ? 'a list' : `a ${typeof value}`
}
