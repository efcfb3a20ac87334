import type { RunEvent } from '@sluice/core'
import type { RunEntry } from '@sluice/host'

/** Told of every run of this process as it goes; must not throw. */
export interface RunWatcher {
  /** @param headers of the request that begins it, where there is one. */
  began?(entry: RunEntry, headers?: Readonly<Record<string, string>>): void
  event(entry: RunEntry, event: RunEvent): void
  ended(entry: RunEntry): void
}
