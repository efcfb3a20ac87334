import { z } from 'zod'
import {
  type AnyNode,
  append,
  command,
  createRuntime,
  END,
  type Graph,
  graph,
  type NodeContext,
  type NodeOptions,
  node,
  type RuntimeOptions,
  type SluiceError,
  START,
  type StateOf,
  send,
  state,
  type Target,
  type UpdateFor,
} from '../src/index.ts'
import { FailingStore } from './failing-store.ts'

/** The state of most graphs that run on threads: a field that is replaced, one that a send fills, and a list that grows. */
export const Log = state({ x: z.string().default(''), i: z.number().default(0), log: append(z.string()) })
export type LogState = StateOf<typeof Log>
export type LogGraph = Graph<LogState, UpdateFor<typeof Log>>
export type Run = (s: LogState, ctx: NodeContext) => unknown
type Runs = Readonly<Record<string, Run>>

export const logNode = (name: string, run: Run, options?: NodeOptions) =>
  node(name, Log, run as () => undefined, options)

/** A graph `g` whose nodes run one after another. */
export function chain(runs: Runs): LogGraph {
  const nodes = Object.entries(runs).map(([name, run]) => logNode(name, run))
  const builder = graph('g', Log).edge(START, nodes[0] as AnyNode)
  for (const [i, each] of nodes.entries()) builder.edge(each, nodes[i + 1] ?? END)
  return builder.check()
}

/** A graph `g` in which `split` starts these nodes in one superstep; what they lead to runs after them. */
export function together(runs: Runs, then: Target = END): LogGraph {
  const nodes = Object.entries(runs).map(([name, run]) => logNode(name, run))
  const split = logNode('split', () => command({ goto: nodes }), { goto: nodes })
  const builder = graph('g', Log).edge(START, split)
  for (const each of nodes) builder.edge(each, then)
  return (then === END ? builder : builder.edge(then as AnyNode, END)).check()
}

/** A graph `g` in which `fan` sends the node `work` a task for each payload. */
export function fanOut(run: Run, payloads: readonly Record<string, unknown>[], fan: Run = () => ({})): LogGraph {
  const work = logNode('work', run)
  const spread: Run = async (s, ctx) =>
    command({
      update: (await fan(s, ctx)) as object,
      goto: payloads.map((payload) => send(work, payload)),
    })
  const first = logNode('fan', spread, { goto: [work] })
  return graph('g', Log).edge(START, first).edge(work, END).check()
}

/** A runtime on a store that can be made to fail, and a list to note in what ran. */
export function setUp(options: RuntimeOptions = {}) {
  const store = new FailingStore()
  const ran: string[] = []
  /** A node that notes its name, and appends it to the log. */
  const says =
    (name: string): Run =>
    () => {
      ran.push(name)
      return { log: [name] }
    }
  return { store, ran, says, runtime: createRuntime({ store, ...options }) }
}

/** The error a promise rejects with; `undefined` when it does not. */
export const errorOf = (promise: Promise<unknown>): Promise<SluiceError | undefined> =>
  promise.then(
    () => undefined,
    (error) => error,
  )
