import type { Selected, Selector } from './policy.ts'
import type { Subject } from './subject.ts'

/** One that cannot be evaluated, or answers with something else than `false`, matches. */
export function selects(selector: Selector, selected: Selected): boolean {
  try {
    return selector.matches(selected) !== false
  } catch {
    return true
  }
}

/** Whether a policy may be consulted at a call site at all; what its selector reads besides is decided at each call. */
export const selectsSite = ({ match }: { readonly match?: Selector }, subject: Subject): boolean =>
  match === undefined || match.reads === 'call' || selects(match, { subject, labels: [] })
