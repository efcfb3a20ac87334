import { isObject, type JsonObject } from '@sluice/core'
import type { Combined, Composition } from './compose.ts'
import type { AgentContext, Point } from './context.ts'
import type { Verdict, Warning } from './verdict.ts'

/** One emission, as an auditor reads it: who decided what, and nothing of what was shown. */
export interface InterceptionRecord {
  readonly interception_point: Point
  readonly mode: 'enforce' | 'evaluate_only'
  readonly verdict: JsonObject
  /** Of the context before anybody was asked, and as it counts afterwards. */
  readonly input_identity: string | null
  readonly enforced_identity: string | null
  readonly identity_provider: string | null
  readonly session_id: string
  readonly sequence: number
  readonly timestamp: string
  readonly decided_by: number | null
  readonly composition: Composition
  readonly verdicts: readonly {
    readonly index: number
    readonly decision: string
    readonly reason?: string
    readonly name?: string
  }[]
  readonly fold_truncated: boolean
  readonly resolved_by: 'approval' | 'rejection' | null
  readonly interceptors_registered: number
}

const MAX_MESSAGE_BYTES = 256

export interface Recorded {
  readonly context: AgentContext
  readonly combined: Combined
  readonly identities: readonly [input: string | null, enforced: string | null]
  readonly provider: string | null
  readonly composition: Composition
  readonly evaluatesOnly: boolean
  readonly names: readonly (string | undefined)[]
}

export function recordOf(recorded: Recorded): InterceptionRecord {
  const { context, combined, identities, provider, composition, evaluatesOnly, names } = recorded
  return {
    interception_point: context.interception_point,
    mode: evaluatesOnly ? 'evaluate_only' : 'enforce',
    verdict: projected(combined.verdict),
    input_identity: identities[0],
    enforced_identity: identities[1],
    identity_provider: provider,
    session_id: context.session.id,
    sequence: context.sequence,
    timestamp: context.timestamp,
    decided_by: combined.decidedBy,
    composition,
    verdicts: combined.slots.map(({ index, verdict: { decision, reason } }) => ({
      index,
      decision,
      ...(reason !== undefined && { reason }),
      ...(names[index] !== undefined && { name: names[index] }),
    })),
    fold_truncated: combined.truncated,
    resolved_by: combined.resolvedBy ?? null,
    interceptors_registered: names.length,
  }
}

/** A verdict without what it carries: no value of an edit, no parameters for whoever approves, messages cut. */
function projected({ transform, approval, warnings, ...rest }: Verdict): JsonObject {
  return {
    ...cut(rest),
    ...(transform !== undefined && { transform: { path: transform.path } }),
    ...(isObject(approval) && { approval: {} }),
    ...(warnings !== undefined && { warnings: warnings.map((warning) => cut(warning)) }),
  } as unknown as JsonObject
}

const cut = <Cut extends Warning>(said: Cut): Cut =>
  said.message === undefined ? said : { ...said, message: firstBytes(said.message) }

/** Whole characters of a text, at most so many bytes of them. */
const firstBytes = (text: string): string =>
  new TextDecoder().decode(Buffer.from(text).subarray(0, MAX_MESSAGE_BYTES), { stream: true })
