import { SluiceError } from '../errors/error.ts'
import { isObject, type Json, type JsonObject } from '../json/json.ts'
import type { Principal } from './decision.ts'
import type { ConsultedAt } from './failure.ts'
import type { Subject } from './subject.ts'
import type { Verdict } from './verdict.ts'

/** Who asks about a call that was cut off, and who supplied a result where a person did. */
export const ENGINE = 'engine'
export const PERSON = 'person'

/** Questions that one middleware may put about one call, and the engine about one go at it. */
export const MAX_ASKS = 3

/** A question about a call that was put to a person. */
export interface Asked {
  /** Names it among the questions of its task. */
  readonly id: string
  /** Who asked: a policy's type, or `engine`. */
  readonly by: string
  /** SHA-256 of what the asker was shown: the answer holds for nothing else. */
  readonly digest: string
  /** The answer itself is the call's result. */
  readonly asResult: boolean
  answer?: { readonly value: Json }
  /** Nobody answered in time, and the question had no default. */
  expired?: boolean
  /** Of one that is over: who closed it, and when. */
  closed?: Closed
}

/** How a question came to be over. */
export interface Closed {
  /** `person`, `expiry`, or who answered it before it opened. */
  readonly by: string
  /** Milliseconds since 1970. */
  readonly at: number
  /** Of a person who is known. */
  readonly principal?: Principal
}

/** How a call asks people. */
export interface Asking {
  /** The way down to where the call is made, from its very superstep; absent where it is never entered anew. */
  readonly within?: readonly string[]
  /** What was asked about this call so far. */
  readonly asked: readonly Asked[]
  /** The digest that binds an answer to what was shown. */
  digest(input: Json): string | Promise<string>
  /** Lets whoever is subscribed to `ask` know of the answers that are handed over now. */
  handOver(): Promise<void>
  /**
   * Reads a question. What it hands back writes it down and lets the call wait: it settles in a later run, and resolves only
   * when a policy answered at once.
   *
   * Throws for a question whose own default does not fit its schema.
   */
  prepare(at: ConsultedAt, ask: JsonObject): Promise<() => Promise<void>>
  /** Puts that question once more: its answer was to be the result and did not fit; `why` says so. */
  again(at: ConsultedAt, asked: Asked, why: string): Promise<void>
  /**
   * Nobody knows whether this call did its work before it was cut off: a person says. The answer holds for this go at it; `why`
   * says what was wrong with an earlier one.
   */
  orphaned(go: string, why?: string): Promise<void>
}

/** Whether a question is open no longer: it was answered, or its time is over. */
export const isOver = ({ answer, expired }: Asked): boolean => answer !== undefined || expired === true

/** What became of this policy's question about this very input, if it put one. */
export async function answerTo(asking: Asking, policy: string, input: Json): Promise<Asked | undefined> {
  const own = asking.asked.filter((asked) => asked.by === policy && isOver(asked))
  if (own.length === 0) return undefined
  const digest = await asking.digest(input)
  return own.findLast((asked) => asked.digest === digest)
}

/** The verdict that an answer is by itself; an answer that its asker reads is none. */
export function verdictIn({ answer, asResult, expired }: Asked): Verdict | undefined {
  if (answer === undefined) return expired ? { action: 'reject', reason: 'nobody answered in time' } : undefined
  return asResult ? { action: 'replace', value: answer.value } : undefined
}

/** What a person says about a call that was cut off. */
type OrphanAnswer =
  | { readonly action: 'retry' }
  | { readonly action: 'skip' }
  | { readonly action: 'result'; readonly result: Json }

export const ORPHAN_ANSWERS = '"retry" (make it again), "skip" (it fails), or { "result": … } (what it came to)'

/** @throws SluiceError `ANSWER_INVALID` for anything but the three. */
export function readOrphanAnswer(answer: Json): OrphanAnswer {
  if (answer === 'retry' || answer === 'skip') return { action: answer }
  if (isObject(answer) && Object.keys(answer).length === 1 && 'result' in answer)
    return { action: 'result', result: answer.result as Json }
  throw new SluiceError('ANSWER_INVALID', `a call that was cut off is answered with ${ORPHAN_ANSWERS}.`)
}

/** Whether an error says that a person chose to skip a call. */
export const isSkip = ({ code }: { readonly code?: string }): boolean => code === 'CALL_SKIPPED'

export const skipped = ({ toolName }: Subject): SluiceError =>
  new SluiceError('CALL_SKIPPED', 'it was cut off before its result was known, and a person chose to skip it.', {
    ...(toolName === undefined ? {} : { tool: toolName }),
  })
