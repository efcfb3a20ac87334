import type { RunEvent } from '@sluice/core'
import type { RunEntry } from '@sluice/host'
import type { Parts } from '../parts.ts'

/** Renders the events of one run, in order; it may keep what it has said. */
export interface Rendering {
  /** Texts to send, whole frames, for one event. */
  event(event: RunEvent, seq: number): readonly string[] | Promise<readonly string[]>
  /** After the last event. */
  finish?(): readonly string[] | Promise<readonly string[]>
}

/** How one client protocol renders a run. */
export interface ClientProtocol {
  readonly name: string
  /** `text/event-stream` unless told. */
  readonly contentType?: string
  /** Of the response, beside those of every stream. */
  readonly headers?: Readonly<Record<string, string>>
  /** Whether the client that began a run has cancelled it by leaving; where it may come back, it has not. */
  readonly leavingCancels: boolean
  /** @param signal aborts when nobody reads any more. */
  start(run: RunEntry, parts: Parts, signal: AbortSignal): Rendering | Promise<Rendering>
}
