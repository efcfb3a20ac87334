import type { RunEvent } from '@sluice/core'
import type { RunEntry } from '@sluice/host'

/** How one client protocol renders a run. One for each stream: it may keep what it has said. */
interface Rendering {
  /** Texts to send, whole frames, for one event. */
  event(event: RunEvent, seq: number): readonly string[] | Promise<readonly string[]>
  /** After the last event. */
  finish?(): readonly string[] | Promise<readonly string[]>
}

export interface ClientProtocol {
  readonly name: string
  /** Of the response, beside those of every event stream. */
  readonly headers?: Readonly<Record<string, string>>
  /** Whether a client that leaves has cancelled the run; where it may come back, it has not. */
  readonly leavingCancels: boolean
  start(run: RunEntry): Rendering
}
