import type { JsonObject } from '../../json/json.ts'
import type { KeptRecord } from '../../seams/kept.ts'
import type { Ready, ThreadRecord, Untimed } from '../../store/records.ts'
import type { Status } from '../../store/store.ts'
import type { Memories } from './position.ts'

/** What is known of a run, or of a thread that nobody runs. */
interface Standpoint {
  readonly graph: string
  readonly runId?: string
  readonly turn?: string
  readonly state: JsonObject
  readonly supersteps?: number
  readonly next?: readonly Ready[]
  readonly labels: Iterable<string>
  readonly kept: Iterable<KeptRecord>
  readonly decisions: number
  readonly stable: Memories
  /** What the run is shown at its door when it goes on. */
  readonly atDoor?: { readonly input?: JsonObject; readonly door?: readonly ThreadRecord[] }
  /** Of a thread that has come to its end. */
  readonly status?: Status | undefined
}

/** The one record from which a thread goes on as from all that is before it. Which consultation kept what is over by then. */
export function snapshotOf(at: Standpoint): Untimed & { type: 'snapshot' } {
  const kept = [...at.kept].map(({ by, scope, value }) => ({ by, scope, value }))
  return {
    type: 'snapshot',
    graph: at.graph,
    runId: at.runId ?? '',
    turn: at.turn ?? '',
    state: at.state,
    ...(at.supersteps === undefined ? {} : { supersteps: at.supersteps }),
    next: at.next ?? [],
    allLabels: [...at.labels],
    ...(kept.length === 0 ? {} : { kept }),
    ...(at.decisions === 0 ? {} : { decisions: at.decisions }),
    ...at.atDoor,
    ...(at.status === undefined ? {} : { status: at.status }),
    ...(at.stable.size === 0 ? {} : { stable: Object.fromEntries(at.stable) }),
  }
}
