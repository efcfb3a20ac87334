import type { Json } from '../json/json.ts'
import type { Schema } from '../state/schema.ts'

/** A checked graph, as far as whoever starts it needs to know it. */
export interface Startable<State = unknown, Update = unknown> {
  readonly plan: object
  /** Types only. */
  readonly '~state'?: State
  readonly '~update'?: (update: Update) => void
}

export interface ChildOptions {
  /** Cancels the child alone. */
  readonly signal?: AbortSignal
  /** Milliseconds; at most what this run has left. */
  readonly timeoutMs?: number
  /** Goes on from the state in which the last run that this node started in this thread ended; without it, it starts afresh. */
  readonly remember?: boolean
  /** `inherit`: the middleware of this run's graph stands around the child's too, before its own. Policies always do. */
  readonly middleware?: 'inherit'
  /** What the nodes and tools of the child get as `ctx.context`; this run's own without it. */
  readonly context?: unknown
  /** Told after each superstep; when it throws, the run ends with that error. */
  readonly onProgress?: (progress: { readonly step: number; readonly nodes: readonly string[] }) => void
}

export interface AskOptions<S extends Schema = Schema> {
  /** What an answer must be. It is checked before anything runs, and the node gets what the schema makes of it. */
  readonly schema?: S
  /** Milliseconds after which nobody may answer any more: the default stands, or the ask throws `ASK_EXPIRED`. */
  readonly expiresInMs?: number
  readonly default?: Json
  /** Who may answer: CEL over `principal`, as `'finance' in principal.claims.teams`, for a server that knows who answers. */
  readonly approvers?: string
}

/** A middleware, as far as a tool that it provides needs to know it. */
export interface Keeping<Value = unknown> {
  readonly name: string
  readonly kept?: { readonly scope: 'turn' | 'thread'; readonly schema: Schema<unknown, Value> }
}

/** What that middleware keeps. */
export interface KeptInTool<Value> {
  readonly value: Value
  /** True when this very call has changed it before it was cut off. */
  readonly revisit: boolean
  /** Makes a new value of the old one, at once. Throws `KEPT_VALUE` for one that may not be kept. */
  update(change: (value: Value) => unknown): Value
}
