import { KeptValues } from '../../seams/kept.ts'
import type { OnThread } from '../scope.ts'
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

/** What middleware keeps over a turn, as its thread has it. */
export const keptOf = (on: OnThread | undefined): KeptValues =>
  on === undefined
    ? new KeptValues()
    : new KeptValues(on.position?.kept.values(), on.position?.keptSince, (change) => on.thread.keep(change))
