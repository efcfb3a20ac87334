import { createRuntime, END, type Field, graph, type Node, node, START, state } from '../src/index.ts'

const runtime = createRuntime()

/** The value of the one field `f` after nodes wrote these values one after another. */
export async function after(f: Field, ...updates: unknown[]): Promise<unknown> {
  const State = state({ f })
  const writers = updates.map((update, i) => node(`w${i}`, State, () => ({ f: update })))
  const builder = graph('g', State)
  for (const [i, writer] of writers.entries()) builder.edge(i === 0 ? START : (writers[i - 1] as Node), writer)
  builder.edge(writers.at(-1) as Node, END)
  return ((await runtime.run(builder.check(), {})).state as { f: unknown }).f
}
