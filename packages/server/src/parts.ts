import type { HostRuntime, RunLog } from '@sluice/host'
import type { Flows } from './flows/flows.ts'
import type { Runs } from './runs/runs.ts'
import type { Metrics } from './telemetry/metrics.ts'

/** Told whole of what callers are not told: what is answered with 500, and why a stream broke off. `at` is `request <id>` or `run <id>`. */
export type OnFault = (error: unknown, at: string) => void

/** What the routes of a server work with. */
export interface Parts {
  readonly version: string
  readonly runtime: HostRuntime
  readonly flows: Flows
  readonly log: RunLog
  readonly runs: Runs
  readonly metrics: Metrics
  /** Whether it takes no new runs because it is about to end. */
  readonly draining: () => boolean
  readonly onFault: OnFault
}
