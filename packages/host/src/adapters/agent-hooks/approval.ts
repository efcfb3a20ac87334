import { isObject, type Json, type JsonObject } from '@sluice/core'
import type { AgentContext, Point } from './context.ts'
import { type HostReason, hostDeny, readVerdict, type Verdict } from './verdict.ts'

/** What whoever approves is asked. */
export interface ApprovalRequest {
  readonly context_identity: string | null
  readonly interception_point: Point
  /** The denial that may be lifted. */
  readonly verdict: Verdict
  readonly context: AgentContext
}

/** What became of a denial that may be lifted. */
export interface Resolved {
  readonly by: 'approval' | 'rejection'
  /** An allow or a transform that takes the denial's place, or the denial that stands. */
  readonly verdict: Verdict
}

/** Reads the answer to a request: the identity that it quotes, its shape, its verdict, and whether the three go together. */
export function resolve(answer: Json, { context_identity }: ApprovalRequest): Resolved {
  if (!isObject(answer)) return rejection('approval_resolver_failed', 'an answer is an object with an "outcome"')
  if (answer.context_identity !== context_identity) return rejection('approval_identity_mismatch')
  const { outcome, verdict } = answer as JsonObject
  if (outcome === 'unresolved' && verdict === undefined) return rejection('approval_unresolved')
  if (outcome !== 'approve' && outcome !== 'reject')
    return rejection('approval_resolver_failed', '"outcome" is approve, reject, or unresolved without a verdict')
  let read: Verdict
  try {
    read = readVerdict(verdict)
  } catch (misfit) {
    return rejection('verdict_invalid', (misfit as Error).message)
  }
  if ((read.decision === 'deny') !== (outcome === 'reject'))
    return rejection('verdict_invalid', `${outcome} does not go with the decision ${read.decision}`)
  return { by: outcome === 'approve' ? 'approval' : 'rejection', verdict: read }
}

const rejection = (reason: HostReason, message?: string): Resolved => ({
  by: 'rejection',
  verdict: hostDeny(reason, message),
})
