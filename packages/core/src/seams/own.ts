import type { Json } from '../json/json.ts'
import type { Tool } from '../tools/tool.ts'
import type { StreamBlocks } from './blocks.ts'
import type { Call } from './call.ts'
import type { HookName } from './hook-table.ts'
import type { Keeper, Kept, KeptOptions, OwnKeptScope } from './kept.ts'
import type { Outcome } from './outcome.ts'
import type { Seam } from './table.ts'

/** How parts of a streamed response leave while own middleware may still judge the whole: at once, after it, or block by block. */
export type StreamGate = 'pass' | 'hold' | StreamBlocks

/** Where a middleware wants to stand among those of its graph, by name. */
export interface Constraints {
  /** Names that it must stand before, where they are there. */
  readonly before?: readonly string[]
  /** Names that it must stand after, where they are there. */
  readonly after?: readonly string[]
  /** Names without which it is refused. */
  readonly requires?: readonly string[]
  /** Names beside which it is refused. */
  readonly conflicts?: readonly string[]
}

/** How the engine reaches a middleware's hooks. */
export const LAYER = Symbol('sluice.layer')

/** Middleware of a graph's author, as the engine sees it; make it with `class … extends Middleware` or `middleware({ … })`. */
// biome-ignore lint/suspicious/noExplicitAny: what does not say for which state it is stands in every graph
export interface OwnMiddleware<S = any> {
  /** Types only: the state whose fields its hooks read. */
  readonly '~reads'?: (state: S) => void
  /** The fields of that state, where it was named by value. */
  readonly '~fields'?: readonly string[]
  readonly name: string
  readonly order?: Constraints
  readonly kept?: KeptOptions<unknown, OwnKeptScope>
  readonly stream?: StreamGate
  /** Tools that come with it, for an agent. */
  tools?(): Iterable<Tool>
  /** Names of tools that it treats in a way of their own: an agent that has no such tool is refused. */
  readonly aboutTools?: readonly string[]
  /** Its hooks at a seam; absent where it has none there. */
  [LAYER](seam: Seam): Layer | undefined
}

/** What is consulted under the name of one hook. */
export interface Hook<Told> {
  readonly name: HookName
  /** Calls it. What it returns is read by the gate, so it may be anything. */
  run(call: Call, told: Told, consulted: HookConsulted): unknown
}

/** What a hook is given beside the step itself. */
export interface HookConsulted {
  /** What a person answered to this middleware's own question about this very input. */
  readonly answered?: Json
  readonly revisit: boolean
  readonly kept: Kept | undefined
  /** Its turn at that, where it has one: while it waits for a person, others have theirs. */
  readonly keeper?: Keeper
  /** Aborts when a wrap around this one gives up the trip that it is part of. */
  readonly until?: AbortSignal
}

/**
 * What a wrap exchanges with what is around it: `error` is the very object that was thrown, and `substituted` who supplied the
 * value, if the step itself did not.
 */
export type WrapOutcome<Value = unknown> =
  | { readonly ok: true; readonly value: Value; readonly substituted?: string }
  | { readonly ok: false; readonly error: unknown; readonly refused?: true }

/** Of one `next`. */
export interface NextOptions {
  /** Aborts this trip alone: `next` then gives a failure with the signal's reason. */
  readonly signal?: AbortSignal
  /** At a model call: who is asked instead. */
  readonly model?: unknown
}

/** Goes on with the call, or with another input; gives an outcome and never throws. */
export type Next = (input?: unknown, options?: NextOptions) => Promise<WrapOutcome>

/** The hooks of one middleware at one seam: its `before`, its wrap around the rest, its `after` on the way out. */
export interface Layer {
  readonly middleware: OwnMiddleware
  readonly before?: Hook<undefined>
  readonly wrap?: Hook<Next>
  /** Consulted on outcomes that went well only. */
  readonly after?: Hook<{ readonly value: unknown }>
  /** Consulted on a failed trip, in list order; the first that returns something wins. */
  readonly rescue?: Hook<{ readonly error: unknown }>
  /** Told of a failed trip, in reverse order; what it says is a note. */
  readonly observe?: Hook<{ readonly error: unknown }>
  /** Told once how a run ended. */
  readonly end?: Hook<never>
}

/** The layers of a list at one seam, in its order. */
export const layersAt = (middleware: readonly OwnMiddleware[], seam: Seam): readonly Layer[] =>
  middleware.flatMap((own) => {
    const layer = own[LAYER](seam)
    return layer === undefined ? [] : [layer]
  })

export const isOwnMiddleware = (value: unknown): value is OwnMiddleware =>
  typeof value === 'object' && value !== null && typeof (value as Partial<OwnMiddleware>)[LAYER] === 'function'

/** What went through a trip, and who supplied it if the step itself did not. */
export interface Passed<Value> {
  readonly outcome: Outcome<Value>
  readonly substituted: string | undefined
  readonly refused: boolean
  /** The arguments that it came of, where it came of a trip. */
  readonly input?: Json
  /** Of a refusal: the step was made, and its result withheld. */
  readonly performed?: true
}
