import { isObject, type Json, type JsonObject, SluiceError } from '@sluice/core'
import { endingText, type Once } from '../../child/run-once.ts'
import { EVENTS, type EventName } from './events.ts'

/** The strongest counts. */
export const DECISIONS = ['allow', 'ask', 'defer', 'deny'] as const
export type Decision = (typeof DECISIONS)[number]

/** What one hook said. */
export interface Said {
  readonly decision?: Decision
  readonly reason?: string
  /** The arguments, or the result, as the hook wants them. */
  readonly changed?: Json
  /** For the model. */
  readonly context?: string
  /** For people. */
  readonly message?: string
}

/** Characters of a reason: it goes to the model. */
const MAX_REASON = 4096
const BLOCKS = 2

const COMMON = ['continue', 'stopReason', 'suppressOutput', 'systemMessage', 'decision', 'reason', 'hookSpecificOutput']

/**
 * Reads what a hook came to. Exit code 2 is a "no" with stderr as the reason, whatever stands on stdout; 0 is what stdout
 * says, and nothing there is no objection. A "no" counts whatever else is said beside it; any other answer is understood in
 * full or is a failure.
 *
 * @throws SluiceError `COMMAND_HOOK_TIMED_OUT`, `COMMAND_HOOK_FAILED` for another exit code, `COMMAND_HOOK_ANSWER`.
 */
export function readOnce(event: EventName, hook: string, { cut, ending, stdout, stderr }: Once): Said {
  const fail = (code: string, why: string) => new SluiceError(code, `${event} hook "${hook}" ${why}.`, { hook })
  if (cut === 'time') throw fail('COMMAND_HOOK_TIMED_OUT', 'timed out')
  if (cut === 'output') throw fail('COMMAND_HOOK_ANSWER', 'printed more than a hook may')
  if (ending.error !== undefined) throw fail('COMMAND_HOOK_FAILED', `could not be started: ${ending.error.message}`)
  if (ending.code === BLOCKS) return no(event, stderr || `refused by hook "${hook}"`)
  if (ending.code !== 0)
    throw fail('COMMAND_HOOK_FAILED', `${endingText(ending)}: ${stderr || 'it said nothing on stderr'}`)
  return readAnswer(event, stdout, (why) => fail('COMMAND_HOOK_ANSWER', why))
}

/** A "no" where nothing can be stopped is told to people. */
const no = (event: EventName, reason: string): Said =>
  EVENTS[event].blocks ? { decision: 'deny', reason: reason.slice(0, MAX_REASON) } : { message: reason }

function readAnswer(event: EventName, stdout: string, fail: (why: string) => Error): Said {
  const text = stdout.trim()
  if (text === '') return {}
  const answer = parse(text)
  if (!isObject(answer)) {
    // Plain text of these two is for the model; elsewhere it would be an answer that nobody understood.
    if (answer === undefined && EVENTS[event].matchedBy !== 'tool') return { context: text }
    throw fail('printed what is no answer; print a JSON object, or nothing where there is no objection')
  }
  const special = isObject(answer.hookSpecificOutput) ? answer.hookSpecificOutput : {}
  const denied = readNo(event, answer, special)
  if (denied !== undefined) return denied
  refuseUnknown(event, answer, special, fail)
  return readYes(answer, special, fail)
}

function readNo(event: EventName, answer: Answer, special: Answer): Said | undefined {
  const textOf = (...texts: readonly unknown[]) => texts.find((text): text is string => isText(text)) ?? 'refused'
  const said = ({ systemMessage }: Answer) => (isText(systemMessage) ? { message: systemMessage } : {})
  if (answer.continue === false) return { ...said(answer), ...no(event, textOf(answer.stopReason, answer.reason)) }
  if (special.permissionDecision !== 'deny' && answer.decision !== 'block') return undefined
  return { ...said(answer), ...no(event, textOf(special.permissionDecisionReason, answer.reason)) }
}

type Answer = { readonly [field: string]: unknown }

function refuseUnknown(event: EventName, answer: Answer, special: Answer, fail: (why: string) => Error): void {
  const { fields } = EVENTS[event]
  const known = ['hookEventName', ...fields]
  const other =
    Object.keys(answer).find((field) => !COMMON.includes(field)) ??
    Object.keys(special).find((field) => !known.includes(field))
  if (other !== undefined) {
    const places = `${COMMON.join(', ')}; in hookSpecificOutput: ${known.join(', ')}`
    throw fail(`answered with "${other}", which does nothing here; understood are: ${places}`)
  }
  if (answer.hookSpecificOutput !== undefined && !isObject(answer.hookSpecificOutput))
    throw fail('answered with a hookSpecificOutput that is no object')
  if (special.hookEventName !== undefined && special.hookEventName !== event)
    throw fail(`answered for the event ${JSON.stringify(special.hookEventName)}`)
}

function readYes(answer: Answer, special: Answer, fail: (why: string) => Error): Said {
  const said: { -readonly [K in keyof Said]: Said[K] } = {}
  if (answer.decision !== undefined && answer.decision !== 'approve')
    throw fail(`answered the decision ${JSON.stringify(answer.decision)}; it is "approve" or "block"`)
  const decision = special.permissionDecision ?? (answer.decision && 'allow')
  if (decision !== undefined) {
    if (!DECISIONS.includes(decision as Decision))
      throw fail(`answered ${JSON.stringify(decision)}; a permissionDecision is one of: ${DECISIONS.join(', ')}`)
    said.decision = decision as Decision
  }
  const reason = special.permissionDecisionReason ?? answer.reason
  if (isText(reason)) said.reason = reason.slice(0, MAX_REASON)
  if (special.updatedInput !== undefined) {
    if (!isObject(special.updatedInput)) throw fail('answered with an updatedInput that is no object')
    said.changed = special.updatedInput as JsonObject
  }
  if (special.updatedToolOutput !== undefined) said.changed = special.updatedToolOutput as Json
  if (isText(special.additionalContext)) said.context = special.additionalContext
  if (isText(answer.systemMessage)) said.message = answer.systemMessage
  return said
}

const isText = (value: unknown): value is string => typeof value === 'string' && value.trim() !== ''

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
