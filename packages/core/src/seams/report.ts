import { messageOf } from '../errors/error.ts'
import type { Call } from './call.ts'
import { type ConsultedAt, nameOf, placeOfConsulted, stepOf } from './failure.ts'
import type { Outcome } from './outcome.ts'
import type { Verdict } from './verdict.ts'

/** Tells of a verdict that changed something. */
export function report(call: Call, { who, seam, half }: ConsultedAt, verdict: Pick<Verdict, 'action'>): void {
  const { reason, code } = verdict as { reason?: string; code?: string }
  call.site.decided({
    ...placeOfConsulted(who),
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
    `${nameOf(at.who)} answered "${verdict.action}" about ${stepOf(at)}, whose end is already settled; it does not count.`,
  )
}

export function warn(call: Call, { who, seam, half }: ConsultedAt, message: string): void {
  const { nodeName } = call.subject
  call.site.warn({ message, ...warnedBy(who), seam, half, ...(nodeName === undefined ? {} : { nodeName }) })
}

const warnedBy = ({ name, plugin }: ConsultedAt['who']) =>
  plugin === undefined ? { middleware: name } : { policy: name }

/** What became of the step that a middleware answered for, in words. */
export function whatBecame(from: Outcome<unknown> | undefined): string {
  if (from === undefined) return 'it did not run.'
  return from.ok ? 'its own result is not used.' : `it had failed: ${messageOf(from.error)}`
}
