import { KeptValues, keptOfNobody, type OfPrincipal } from '../../seams/kept.ts'
import { KeptOfPrincipals } from '../../seams/kept-of-principals.ts'
import type { Policy } from '../../seams/policy.ts'
import type { Store } from '../../store/store.ts'
import type { OnThread, RunOptions } from '../scope.ts'
import type { Thread } from './thread.ts'

/** The labels of a branch; what joins them is written with the next record. */
class ThreadLabels extends Set<string> {
  readonly #thread: Thread

  constructor(thread: Thread, labels: Iterable<string>) {
    super(labels)
    this.#thread = thread
  }

  override add(label: string): this {
    // The constructor of Set calls this before there is a thread: those labels stand in it already.
    if (#thread in this && !this.has(label)) this.#thread.label(label)
    return super.add(label)
  }
}

/** The labels of a turn, as its thread has them. */
export const labelsOf = (on: OnThread | undefined): Set<string> =>
  on === undefined ? new Set() : new ThreadLabels(on.thread, on.position?.labels ?? [])

/** What middleware keeps over a turn, as its thread has it, and policies of the principal it is for. */
export function keptOf(on: OnThread | undefined, store: Store, principal: string | undefined): KeptValues {
  const ofPrincipal: OfPrincipal | undefined =
    principal === undefined
      ? undefined
      : (by, options, consulted) => KeptOfPrincipals.of(store.kept).keeper(by, principal, options, consulted)
  if (on === undefined) return new KeptValues([], [], undefined, ofPrincipal)
  const { thread, position } = on
  return new KeptValues(position?.kept.values(), position?.keptSince, (change) => thread.keep(change), ofPrincipal)
}

/** @throws SluiceError `KEPT_PRINCIPAL` for a policy that keeps by principal, where nobody says for whom the run is. */
export function requirePrincipal(
  policies: readonly Policy[],
  { principal, startedBy }: Pick<RunOptions, 'principal' | 'startedBy'>,
): void {
  const isNamed = typeof (startedBy ?? principal?.id) === 'string'
  const keeping = policies.find(({ kept, mode = 'enforce' }) => kept?.scope === 'principal' && mode === 'enforce')
  if (keeping !== undefined && !isNamed) throw keptOfNobody(keeping.name)
}
