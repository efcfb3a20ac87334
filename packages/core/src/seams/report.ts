import { messageOf } from '../errors/error.ts'
import type { Call } from './call.ts'
import { type ConsultedAt, nameOf, placeOfConsulted, stepOf } from './failure.ts'
import type { Outcome } from './outcome.ts'
import type { Decision } from './site.ts'
import type { Subject } from './subject.ts'
import type { Verdict } from './verdict.ts'

/** Tells of a verdict that changed something. */
export function report(call: Call, at: ConsultedAt, verdict: Pick<Verdict, 'action'>): void {
  call.site.decided(decisionOf(call, at, verdict))
}

export function decisionOf(
  { subject, attempt }: { readonly subject: Subject; readonly attempt: number },
  { who, seam, half }: ConsultedAt,
  verdict: Pick<Verdict, 'action'>,
): Decision {
  const { action, reason, code, warnings, labels, annotations } = verdict as Verdict & { readonly reason?: string }
  return {
    ...placeOfConsulted(who),
    seam,
    half,
    action,
    subject,
    attempt,
    ...(reason === undefined ? {} : { reason }),
    ...(code === undefined ? {} : { code }),
    ...(warnings === undefined ? {} : { warnings }),
    ...(labels === undefined ? {} : { labels }),
    ...(annotations === undefined ? {} : { annotations }),
  }
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

export function warn(call: Pick<Call, 'site' | 'subject'>, { who, seam, half }: ConsultedAt, message: string): void {
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
