import { GraphBuilder, type GraphOptions, type GraphPlan, type Runnable } from '../graph/graph.ts'
import { toMermaid } from '../graph/mermaid.ts'
import type { StateOf, StateType, UpdateFor } from '../state/state.ts'
import type { Line, LineSummary } from '../store/store.ts'
import { getDefaultRuntime, type RunOutcome, type RunStream, type StreamOptions } from './runtime.ts'
import type { RunOptions } from './scope.ts'
import type { ForkOptions } from './threads/fork.ts'
import type { HistoryEntry, LineOptions, StandsAt } from './threads/threads.ts'

/** A checked graph. It runs on the process's default runtime; `runtime.run(graph, …)` runs it on another. */
export class Graph<State, Update> implements Runnable<State, Update> {
  declare readonly '~state'?: State
  declare readonly '~update'?: (update: Update) => void
  readonly plan: GraphPlan

  constructor(plan: GraphPlan) {
    this.plan = Object.freeze(plan)
  }

  /** Runs to its end. Rejects with the very error that ended it, if one did. */
  run(input?: Update, options?: RunOptions): Promise<RunOutcome<State>> {
    return getDefaultRuntime().run<State, Update>(this, input, options)
  }

  /** Answers what a paused thread asks and goes on with it; see {@link Runtime.resume}. */
  resume(thread: string, answers: unknown, options?: RunOptions): Promise<RunOutcome<State>> {
    return getDefaultRuntime().resume<State, Update>(this, thread, answers, options)
  }

  /** Goes on with a thread whose last run failed or was cut off; see {@link Runtime.continue}. */
  continue(thread: string, options?: RunOptions): Promise<RunOutcome<State>> {
    return getDefaultRuntime().continue<State, Update>(this, thread, options)
  }

  /** Begins a branch of a thread; see {@link Runtime.fork}. */
  fork(thread: string, options?: ForkOptions): Promise<Line> {
    return getDefaultRuntime().fork(thread, options)
  }

  /** Every record of a thread's branch, the oldest first. */
  history(thread: string, options?: LineOptions): Promise<readonly HistoryEntry[]> {
    return getDefaultRuntime().history(thread, options)
  }

  /** The state of a thread, now or as of a record of its history; see {@link Runtime.stateAt}. */
  stateAt(thread: string, options?: LineOptions & { readonly at?: number }): Promise<StandsAt<State>> {
    return getDefaultRuntime().stateAt<State, Update>(this, thread, options)
  }

  /** Changes a thread's state by hand, through the reducers; see {@link Runtime.updateState}. */
  updateState(thread: string, values: Update, options?: LineOptions & { readonly create?: boolean }): Promise<number> {
    return getDefaultRuntime().updateState<State, Update>(this, thread, values, options)
  }

  /** Every branch of a thread, the last written first. */
  branches(thread: string): Promise<readonly LineSummary[]> {
    return getDefaultRuntime().branches(thread)
  }

  /** Runs and yields each event as it arises; the last one is `run_end`. Leaving the loop early cancels the run. */
  stream(input?: Update, options?: StreamOptions): RunStream<State> {
    return getDefaultRuntime().stream<State, Update>(this, input, options)
  }

  /** Who is consulted about its runs, seam by seam, in order: its own middleware, then the default runtime's policies. */
  explain(): string {
    return getDefaultRuntime().explain(this)
  }

  /** The graph as a Mermaid flowchart: solid edges, labelled ways, dashed arrows for what a node may choose itself. */
  toMermaid(): string {
    return toMermaid(this.plan)
  }
}

/** Begins a graph: add edges, then `check()`. */
export function graph<T extends StateType<never, never> | StateType>(
  name: string,
  state: T,
  options?: GraphOptions<StateOf<T>>,
): GraphBuilder<T, Graph<StateOf<T>, UpdateFor<T>>> {
  return new GraphBuilder(name, state, (plan) => new Graph<StateOf<T>, UpdateFor<T>>(plan), options)
}
