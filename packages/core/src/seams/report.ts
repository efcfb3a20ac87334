import { messageOf } from '../errors/error.ts'
import type { Call } from './call.ts'
import { type ConsultedAt, stepOf } from './failure.ts'
import type { Outcome } from './outcome.ts'
import type { Verdict } from './verdict.ts'

/** Tells of a verdict that changed something. */
export function report(call: Call, { policy, seam, half }: ConsultedAt, verdict: Verdict): void {
  const { reason, code } = verdict as { reason?: string; code?: string }
  call.site.decided({
    policy: policy.name,
    plugin: policy.plugin,
    seam,
    half,
    action: verdict.action,
    subject: call.subject,
    attempt: call.attempt,
    ...(reason === undefined ? {} : { reason }),
    ...(code === undefined ? {} : { code }),
  })
}

/** A verdict that comes too late to count is recorded; the policies after it are still consulted. */
export function overrule(call: Call, at: ConsultedAt, verdict: Verdict): void {
  report(call, at, verdict)
  warn(
    call,
    at,
    `policy "${at.policy.name}" answered "${verdict.action}" about ${stepOf(at)}, whose end is already settled; it does not count.`,
  )
}

export function warn(call: Call, { policy, seam, half }: ConsultedAt, message: string): void {
  const { nodeName } = call.subject
  call.site.warn({ message, policy: policy.name, seam, half, ...(nodeName === undefined ? {} : { nodeName }) })
}

/** What became of the step that a policy answered for, in words. */
export function whatBecame(from: Outcome<unknown> | undefined): string {
  if (from === undefined) return 'it did not run.'
  return from.ok ? 'its own result is not used.' : `it had failed: ${messageOf(from.error)}`
}
