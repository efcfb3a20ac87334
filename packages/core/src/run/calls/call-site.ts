import type { Site } from '../../seams/site.ts'
import type { Sink, Unplaced } from '../event.ts'
import type { Runtime } from '../runtime.ts'

/** Where a model or a tool is called from: a run, or the edge of one. */
export interface CallSite extends Site {
  readonly runtime: Runtime
  readonly sink: Sink | null
  readonly path: readonly string[]
  readonly context: unknown
  emit(event: Unplaced): void
  /** An id for a tool call that no model asked for. */
  nextCallId(): string
}
