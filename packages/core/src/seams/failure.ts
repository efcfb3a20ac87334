import { messageOf, type Place, SluiceError } from '../errors/error.ts'
import type { FailureCause } from './decision.ts'
import type { Subject } from './subject.ts'
import type { Half, Seam } from './table.ts'
import { NotAVerdict, plainAt } from './verdict.ts'

/** A middleware threw, timed out, died or answered nonsense. It ends the run; nothing inside can catch it. */
export class MiddlewareError extends SluiceError {
  override readonly name = 'MiddlewareError'
}

/** Who is consulted: a policy, or, where there is no `plugin`, middleware of the graph's author. */
export interface Consulted {
  readonly name: string
  readonly plugin?: string
}

export interface ConsultedAt {
  readonly who: Consulted
  readonly seam: Seam
  readonly half: Half
  readonly subject: Subject
  /** What the step was given. */
  readonly input: unknown
  /** The agent's round in which the step is made; at `agentRound`, that round. */
  readonly round: number | undefined
  /** The hook, where it is own middleware. */
  readonly hook?: string
}

/** The policy, or the own middleware, in words. */
export const nameOf = ({ name, plugin }: Consulted): string =>
  plugin === undefined ? `middleware "${name}"` : `policy "${name}"`

/** The same as plain data. */
export const placeOfConsulted = ({ name, plugin }: Consulted) =>
  plugin === undefined ? { middleware: name } : { policy: name, plugin }

/** Names whoever asks among those who ask about one call. */
export const askerOf = ({ name, plugin }: Consulted): string => (plugin === undefined ? `middleware:${name}` : name)

/** Wraps stand around both halves. */
const isWrap = (hook: string | undefined): boolean => hook?.startsWith('wrap') ?? false

const placeOf = ({ who, seam, half, subject, round, hook }: ConsultedAt) => ({
  ...placeOfConsulted(who),
  ...(hook === undefined ? {} : { hook }),
  seam,
  ...(isWrap(hook) ? {} : { half }),
  ...(subject.nodeName === undefined ? {} : { node: subject.nodeName }),
  ...(subject.toolName === undefined ? {} : { tool: subject.toolName }),
  ...(round === undefined ? {} : { round }),
})

/**
 * The failure of a middleware. When it came on top of a step that had itself failed, both messages are told and the step's
 * error is the cause.
 */
export function middlewareFailure(at: ConsultedAt, failure: unknown, stepError?: unknown): MiddlewareError {
  const beside = stepError === undefined ? '' : ` The step itself had failed: ${messageOf(stepError)}`
  return new MiddlewareError(
    'MIDDLEWARE_FAILED',
    `${nameOf(at.who)}${pluginOf(at.who)} failed at ${whereOf(at)}: ${whyOf(failure)}.${beside}`,
    placeOf(at),
    stepError ?? failure,
  )
}

export const failureInShadow = (at: ConsultedAt, failure: unknown): string =>
  `${nameOf(at.who)}${pluginOf(at.who)}, which is in shadow, failed at ${whereOf(at)}: ${whyOf(failure)}.`

function whereOf({ seam, half, hook, subject: { nodeName } }: ConsultedAt): string {
  const stands = `${isWrap(hook) ? seam : `${seam}.${half}`}${hook === undefined ? '' : ` (${hook})`}`
  return `${stands}${nodeName === undefined ? '' : ` of node "${nodeName}"`}`
}

const whyOf = (failure: unknown) => messageOf(failure).replace(/\.$/, '')

/** How a policy failed, for the decision log. An error that knows says so in `at.failed`. */
export function causeOf(failure: unknown): FailureCause {
  if (failure instanceof NotAVerdict) return 'nonsense'
  const { code, at } = (failure ?? {}) as { readonly code?: unknown; readonly at?: { readonly failed?: unknown } }
  if (code === 'POLICY_TIMED_OUT') return 'timeout'
  if (code === 'JSON_VALUE') return 'nonsense'
  return CAUSES.find((cause) => cause === at?.failed) ?? 'threw'
}
const CAUSES: readonly FailureCause[] = ['threw', 'timeout', 'died', 'nonsense']

/** A policy's failure under the rule `pass`, in words. */
export const failurePassed = (at: ConsultedAt, failure: unknown): string =>
  `${nameOf(at.who)}${pluginOf(at.who)} failed at ${whereOf(at)}: ${whyOf(failure)}. By its failure rule that counts as ${plainAt(at.half)}.`

const pluginOf = ({ plugin }: Consulted) => (plugin === undefined ? '' : ` (plugin ${plugin})`)

/** A middleware's `reject`: the message says who refused what, `reason` is what the policy said. */
export class RefusedError extends SluiceError {
  override readonly name = 'RefusedError'
  readonly reason: string

  constructor(message: string, reason: string, at?: Place) {
    super('REFUSED', message, at)
    this.reason = reason
  }
}

/** Thrown by `beforeTool`, or by a tool itself, to refuse a call: the model is told the reason, whatever becomes of errors. */
export class ToolDeniedError extends SluiceError {
  override readonly name = 'ToolDeniedError'
  readonly toolName: string
  readonly reason: string

  constructor(toolName: string, reason = 'denied') {
    super('TOOL_DENIED', `tool "${toolName}" was denied: ${reason}`, { tool: toolName })
    this.toolName = toolName
    this.reason = reason
  }
}

/** A tool failed, and this is what a model that asked for the call reads of it, whatever becomes of errors. */
export class ToolReplyError extends SluiceError {
  override readonly name = 'ToolReplyError'
  readonly reply: string

  /** @param cause what the tool failed with; the message is its message. */
  constructor(toolName: string, reply: string, cause: unknown) {
    super('TOOL_REPLY', messageOf(cause), { tool: toolName }, cause)
    this.reply = reply
  }
}

export function refusal(at: ConsultedAt, reason: string): RefusedError {
  return new RefusedError(`${nameOf(at.who)} refused ${stepOf(at)}: ${reason}`, reason, placeOf(at))
}

/** A middleware's `fail`; the step's own error, if it had one, is the cause. */
export function failedBy(at: ConsultedAt, reason: string, stepError?: unknown): SluiceError {
  return new SluiceError(
    'FAILED_BY_MIDDLEWARE',
    `${nameOf(at.who)} failed ${stepOf(at)}: ${reason}`,
    placeOf(at),
    stepError,
  )
}

/** A middleware's `suspend` in a run that has no thread to wait on. */
export function suspendNeedsThread(at: ConsultedAt): SluiceError {
  return new SluiceError(
    'SUSPEND_NEEDS_THREAD',
    `${nameOf(at.who)} wants to ask a person about ${stepOf(at)}, and this run has no thread on which it could wait. ` +
      'Run it on a thread, or let it reject instead.',
    placeOf(at),
  )
}

/** The step in words, for example `the call of tool "search"`. */
export function stepOf({ seam, subject, round }: ConsultedAt): string {
  const node = subject.nodeName === undefined ? '' : ` of node "${subject.nodeName}"`
  if (seam === 'toolCall') return `the call of tool "${subject.toolName}"`
  if (seam === 'modelCall') return `the model call${round === undefined ? '' : ` of round ${round}`}${node}`
  if (seam === 'agentRound') return `round ${round}${node}`
  if (seam === 'ask') return `a question${node}`
  if (seam === 'run') return `the run of "${subject.graphName}"`
  return `node "${subject.nodeName}"`
}
