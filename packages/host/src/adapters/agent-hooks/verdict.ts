import { canonical, isObject, type Json, type JsonObject } from '@sluice/core'

/** What an interceptor answers, as read. */
export interface Verdict {
  readonly decision: 'allow' | 'deny' | 'transform'
  readonly reason?: string
  readonly message?: string
  readonly warnings?: readonly Warning[]
  /** On a deny: a person may lift it. */
  readonly approval?: JsonObject
  readonly transform?: { readonly path: string; readonly value: Json }
  readonly evidence?: JsonObject
  readonly result_labels?: readonly string[]
}

export interface Warning {
  readonly reason?: string
  readonly message?: string
}

/** What the host itself finds; an interceptor may not say so. */
export type HostReason =
  | 'context_invalid'
  | 'interceptor_failed'
  | 'interceptor_timeout'
  | 'verdict_invalid'
  | 'transform_invalid'
  | 'transform_target_forbidden'
  | 'transform_conflict'
  | 'composition_disagreement'
  | 'approval_resolver_failed'
  | 'approval_unresolved'
  | 'approval_identity_mismatch'
  | 'no_interceptor'

const HOST = 'host_error:'

/** A denial of the host's own. */
export const hostDeny = (reason: HostReason, message?: string): Verdict => ({
  decision: 'deny',
  reason: `${HOST}${reason}`,
  ...(message !== undefined && { message }),
})

export const isOfHost = ({ reason }: Verdict): boolean => reason?.startsWith(HOST) ?? false

/** Why an answer is no verdict. It names types and members, never content. */
export class NotAVerdict extends Error {}

const MEMBERS = ['decision', 'reason', 'message', 'warnings', 'approval', 'transform', 'evidence', 'result_labels']
const MAX_EVIDENCE_BYTES = 10_240
const PATH = /^\$(?:target|policy_target)(?:\.|\[|$)/

/** @throws NotAVerdict */
export function readVerdict(answer: unknown): Verdict {
  const { decision, reason, message, warnings, approval, transform, evidence, result_labels } = only(
    answer,
    MEMBERS,
    'a verdict',
  )
  if (decision !== 'allow' && decision !== 'deny' && decision !== 'transform')
    throw new NotAVerdict('"decision" is allow, deny or transform')
  if (approval !== undefined && (decision !== 'deny' || !isObject(approval)))
    throw new NotAVerdict('"approval" is an object, and stands on a deny only')
  if ((transform !== undefined) !== (decision === 'transform'))
    throw new NotAVerdict('"transform" stands on a transform, and only there')
  return {
    decision,
    ...reasons({ reason, message }),
    ...(warnings != null && { warnings: listOf(warnings, 'warnings').map(readWarning) }),
    ...(approval !== undefined && { approval: approval as JsonObject }),
    ...(transform !== undefined && { transform: readTransform(transform) }),
    ...(evidence !== undefined && { evidence: readEvidence(evidence) }),
    ...(result_labels != null && { result_labels: listOf(result_labels, 'result_labels').map(readLabel) }),
  }
}

type Members = { readonly [member: string]: unknown }

function only(value: unknown, members: readonly string[], what: string): Members {
  if (!isObject(value)) throw new NotAVerdict(`${what} is an object`)
  const other = Object.keys(value).find((member) => !members.includes(member))
  if (other !== undefined) throw new NotAVerdict(`${what} has no member of that name; it has: ${members.join(', ')}`)
  return value
}

function reasons({ reason, message }: Members): Warning {
  if (reason != null && (typeof reason !== 'string' || reason.startsWith(HOST)))
    throw new NotAVerdict(`"reason" is a text that does not begin with ${HOST}`)
  if (message != null && typeof message !== 'string') throw new NotAVerdict('"message" is a text')
  return { ...(reason != null && { reason: reason as string }), ...(message != null && { message }) }
}

const readWarning = (warning: unknown): Warning => reasons(only(warning, ['reason', 'message'], 'a warning'))

function readLabel(label: unknown): string {
  if (typeof label === 'string') return label
  throw new NotAVerdict('"result_labels" are texts')
}

function listOf(value: unknown, name: string): readonly unknown[] {
  if (Array.isArray(value)) return value
  throw new NotAVerdict(`"${name}" is a list`)
}

function readTransform(transform: unknown): { path: string; value: Json } {
  const { path, value = null } = only(transform, ['path', 'value'], 'a transform')
  if (typeof path !== 'string' || !PATH.test(path)) throw new NotAVerdict('"path" begins at $target')
  return { path, value: value as Json }
}

function readEvidence(evidence: unknown): JsonObject {
  const { artefact, verification_pointers } = only(evidence, ['artefact', 'verification_pointers'], 'evidence')
  const areTexts = (value: unknown) =>
    isObject(value) && Object.values(value).every((pointer) => typeof pointer === 'string')
  if (artefact != null && typeof artefact !== 'string') throw new NotAVerdict('"artefact" is a text')
  if (verification_pointers !== undefined && !areTexts(verification_pointers))
    throw new NotAVerdict('"verification_pointers" are texts by name')
  if (Buffer.byteLength(canonical(evidence as Json)) > MAX_EVIDENCE_BYTES)
    throw new NotAVerdict(`evidence has at most ${MAX_EVIDENCE_BYTES} bytes`)
  return evidence as JsonObject
}
