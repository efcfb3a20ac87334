import { messageOf, type Place, SluiceError } from '../errors/error.ts'
import type { Policy } from './policy.ts'
import type { Subject } from './subject.ts'
import type { Half, Seam } from './table.ts'

/** A middleware threw, timed out, died or answered nonsense. It ends the run; nothing inside can catch it. */
export class MiddlewareError extends SluiceError {
  override readonly name = 'MiddlewareError'
}

export interface ConsultedAt {
  readonly policy: Policy
  readonly seam: Seam
  readonly half: Half
  readonly subject: Subject
  /** What the step was given. */
  readonly input: unknown
  /** The agent's round in which the step is made; at `agentRound`, that round. */
  readonly round: number | undefined
}

const title = ({ name, plugin }: Policy) => `"${name}" (plugin ${plugin})`

const placeOf = ({ policy, seam, half, subject, round }: ConsultedAt) => ({
  policy: policy.name,
  plugin: policy.plugin,
  seam,
  half,
  ...(subject.nodeName === undefined ? {} : { node: subject.nodeName }),
  ...(subject.toolName === undefined ? {} : { tool: subject.toolName }),
  ...(round === undefined ? {} : { round }),
})

/**
 * The failure of a policy. When it came on top of a step that had itself failed, both messages are told and the step's
 * error is the cause.
 */
export function middlewareFailure(at: ConsultedAt, failure: unknown, stepError?: unknown): MiddlewareError {
  const where = `${at.seam}.${at.half}${at.subject.nodeName === undefined ? '' : ` of node "${at.subject.nodeName}"`}`
  const why = messageOf(failure).replace(/\.$/, '')
  const beside = stepError === undefined ? '' : ` The step itself had failed: ${messageOf(stepError)}`
  return new MiddlewareError(
    'MIDDLEWARE_FAILED',
    `policy ${title(at.policy)} failed at ${where}: ${why}.${beside}`,
    placeOf(at),
    stepError ?? failure,
  )
}

/** A policy's `reject`: the message says who refused what, `reason` is what the policy said. */
export class RefusedError extends SluiceError {
  override readonly name = 'RefusedError'
  readonly reason: string

  constructor(message: string, reason: string, at?: Place) {
    super('REFUSED', message, at)
    this.reason = reason
  }
}

export function refusal(at: ConsultedAt, reason: string): RefusedError {
  return new RefusedError(`policy "${at.policy.name}" refused ${stepOf(at)}: ${reason}`, reason, placeOf(at))
}

/** A policy's `fail`; the step's own error, if it had one, is the cause. */
export function failedBy(at: ConsultedAt, reason: string, stepError?: unknown): SluiceError {
  return new SluiceError(
    'FAILED_BY_POLICY',
    `policy "${at.policy.name}" failed ${stepOf(at)}: ${reason}`,
    placeOf(at),
    stepError,
  )
}

/** A policy's `suspend` in a run that has no thread to wait on. */
export function suspendNeedsThread(at: ConsultedAt): SluiceError {
  return new SluiceError(
    'SUSPEND_NEEDS_THREAD',
    `policy "${at.policy.name}" wants to ask a person about ${stepOf(at)}, and this run has no thread on which it could wait. ` +
      'Run it on a thread, or let the policy reject instead.',
    placeOf(at),
  )
}

/** The step in words, for example `the call of tool "search"`. */
export function stepOf({ seam, subject, round }: ConsultedAt): string {
  const node = subject.nodeName === undefined ? '' : ` of node "${subject.nodeName}"`
  if (seam === 'toolCall') return `the call of tool "${subject.toolName}"`
  if (seam === 'modelCall') return `the model call${round === undefined ? '' : ` of round ${round}`}${node}`
  if (seam === 'agentRound') return `round ${round}${node}`
  if (seam === 'run') return `the run of "${subject.graphName}"`
  return `node "${subject.nodeName}"`
}
