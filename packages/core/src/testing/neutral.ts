import { showError } from '../errors/error.ts'
import type { Runnable } from '../graph/graph.ts'
import { equal } from '../json/equal.ts'
import type { Json } from '../json/json.ts'
import { type Middleware, middleware } from '../middleware/middleware.ts'
import type { RunEvent } from '../run/event.ts'
import type { RuntimeOptions } from '../run/runtime.ts'
import { MemoryStore } from '../store/memory.ts'
import type { Ask } from '../store/records.ts'
import { play } from './play.ts'

/** A middleware that has every hook but wraps, and says nothing in any. */
export const silent = (name = 'silent'): Middleware =>
  middleware({
    name,
    beforeGraph: () => undefined,
    afterGraph: () => undefined,
    onRunEnd: () => undefined,
    beforeNode: () => undefined,
    afterNode: () => undefined,
    onError: () => undefined,
    beforeRound: () => undefined,
    afterRound: () => undefined,
    beforeModel: () => undefined,
    afterModel: () => undefined,
    onModelError: () => undefined,
    beforeTool: () => undefined,
    afterTool: () => undefined,
    onToolError: () => undefined,
    onInterrupt: () => undefined,
  })

/** A middleware that has wraps only, and hands on what is inside. */
export const transparent = (name = 'transparent'): Middleware =>
  middleware({
    name,
    wrapNode: (_, next) => next(),
    wrapModel: (_, next) => next(),
    wrapTool: (_, next) => next(),
  })

/** What is played: made anew for each run, so that no run sees what another has left. */
export interface NeutralCase<State, Update> extends Omit<RuntimeOptions, 'store' | 'platform'> {
  readonly graph: Runnable<State, Update>
  readonly input?: Update
  readonly answer?: (ask: Ask) => unknown
}

/**
 * Plays a case without middleware and with it, and compares what came of them: status, state, the error, asks, warnings, notes,
 * counts, the user’s text, what each task and run published, and every record of the thread. A case that throws one and the same
 * error object each time has to end with that very object.
 *
 * @param make makes the case with these middleware, anew each time.
 * @param more lists of middleware that must change nothing: 1, 5 and 20 that say nothing, and 1 and 5 that only wrap, without it.
 * @throws Error that says what differs, and with which of the lists; TypeError when what `make` gives has no `graph`.
 */
export async function expectNeutral<State, Update>(
  make: (middleware: readonly Middleware[]) => NeutralCase<State, Update>,
  more: readonly (readonly Middleware[])[] = NOTHING_SAID(),
): Promise<void> {
  const { error, seen: bare } = await played(make([]))
  const same = error !== undefined && (await played(make([]))).error === error
  for (const list of more) {
    const { error: thrown, seen: with_ } = await played(make(list))
    if (same && thrown !== error) throw new Error(`with ${named(list)} the run ends with another error object`)
    for (const part of Object.keys(bare) as (keyof typeof bare)[]) {
      if (equal(bare[part], with_[part])) continue
      throw new Error(
        `with ${named(list)} the ${part} of the run differ:\n` +
          `without: ${JSON.stringify(bare[part])}\nwith:    ${JSON.stringify(with_[part])}`,
      )
    }
  }
}

const NOTHING_SAID = () => [
  ...[1, 5, 20].map((count) => Array.from({ length: count }, (_, i) => silent(`silent-${i}`))),
  ...[1, 5].map((count) => Array.from({ length: count }, (_, i) => transparent(`transparent-${i}`))),
]

const named = (list: readonly Middleware[]): string => `${list.length} middleware (${list[0]?.name}, …)`

async function played<State, Update>({ graph, input, answer, ...options }: NeutralCase<State, Update>) {
  if (graph === undefined) throw new TypeError('expectNeutral: what is made needs a graph: give { graph, input }.')
  const store = new MemoryStore()
  const { status, state, error, asks, asked, warnings, notes, counts, text, events } = await play(graph, {
    input,
    answer,
    store,
    ...options,
  })
  const loaded = await store.load({ thread: 'play', branch: 'main' })
  const seen = plain({
    outcome: { status, state, error: error === undefined ? null : showError(error), counts },
    asks: { asks, asked },
    warnings: { warnings, notes },
    text,
    events: byPlace(events),
    records: sortedWithin(loaded?.records ?? []),
  })
  return { error, seen }
}

const plain = <Value>(value: Value): { readonly [K in keyof Value]: Json } => JSON.parse(JSON.stringify(value))

/** Events of tasks, and of tool calls, that run beside each other come as they come; those of one place have an order. */
function byPlace(events: readonly RunEvent[]): Record<string, RunEvent[]> {
  const places: Record<string, RunEvent[]> = {}
  for (const event of events) {
    const { nodeName = '', toolCallId = '' } = event as { readonly nodeName?: string; readonly toolCallId?: string }
    const at = [...event.path, nodeName, toolCallId].join('/')
    places[at] = [...(places[at] ?? []), event]
  }
  return places
}

/**
 * The same for records: what is written between two supersteps has no order. That a round was judged is written where somebody
 * stands at rounds; it says nothing else.
 */
const sortedWithin = (records: readonly string[]): readonly string[] =>
  records.filter((record) => JSON.parse(record).kind !== 'round').toSorted()
