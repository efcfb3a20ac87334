import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { open, quiet } from '../../../testing/clock.ts'
import {
  append,
  command,
  createRuntime,
  END,
  graph,
  MemoryStore,
  type NodeContext,
  node,
  START,
  state,
  tool,
} from '../../index.ts'

const S = state({ log: append(z.string()) })

const graphOf = (name: string, run: (ctx: NodeContext) => Promise<readonly string[]>) => {
  const work = node('work', S, async (_s, ctx) => ({ log: await run(ctx) }))
  return graph(name, S).edge(START, work).edge(work, END).check()
}

/** A tool whose first call waits for `gate`; the second would be made after the drain. */
function slow() {
  const gate = open<void>()
  const ran: number[] = []
  const act = tool('act', {
    description: 'acts',
    input: z.object({ n: z.number() }),
    run: async ({ n }) => {
      ran.push(n)
      if (n === 1) await gate.promise
      return n
    },
  })
  const twice = async (ctx: NodeContext) => [
    String(await ctx.callTool(act, { n: 1 })),
    String(await ctx.callTool(act, { n: 2 })),
  ]
  return { gate, ran, twice }
}

/** Ways in which a node comes to call a tool. */
const ways = [
  { name: 'a node', wrap: (twice: ReturnType<typeof slow>['twice']) => graphOf('g', twice) },
  {
    name: 'a run inside a node',
    wrap: (twice: ReturnType<typeof slow>['twice']) =>
      graphOf('g', async (ctx) => (await ctx.run(graphOf('inner', twice), {})).log),
  },
  {
    name: 'a run inside a tool',
    wrap: (twice: ReturnType<typeof slow>['twice']) => {
      const inner = graphOf('inner', twice)
      const helper = tool('helper', {
        description: 'runs a graph',
        input: z.object({}),
        idempotent: true,
        run: async (_args, ctx) => (await ctx.run(inner, {})).log,
      })
      return graphOf('g', async (ctx) => (await ctx.callTool(helper, {})) as string[])
    },
  },
]

describe.each(ways)('a drain while $name calls a tool', ({ wrap }) => {
  it('lets the call end, begins no other, and the thread goes on elsewhere without making it again', async () => {
    const { gate, ran, twice } = slow()
    const [g, store] = [wrap(twice), new MemoryStore()]
    const runtime = createRuntime({ store })
    const run = runtime.settle(g, {}, { thread: 't' })
    await quiet()
    const drained = runtime.drain()
    gate.resolve()
    await drained
    expect(await run).toMatchObject({ status: 'cancelled', error: { code: 'RUN_DRAINED' } })
    expect(ran).toEqual([1])
    expect((await createRuntime({ store }).continue(g, 't')).state.log).toEqual(['1', '2'])
    expect(ran).toEqual([1, 2])
  })
})

describe('a drain beside a tool whose graphs wait for people', () => {
  it.each([{ graphs: 1 }, { graphs: 2 }])('lets a call of another node end ($graphs at once)', async ({ graphs }) => {
    const { gate, ran, twice } = slow()
    const inner = graphOf('inner', async (ctx) => [String(await ctx.ask('q', 'well?'))])
    const research = tool('research', {
      description: 'runs graphs',
      input: z.object({}),
      run: async (_args, ctx) => {
        await Promise.all(Array.from({ length: graphs }, () => ctx.run(inner, {})))
        return 'found'
      },
    })
    const asks = node('asks', S, async (_s, ctx) => ({ log: [`${await ctx.callTool(research, {})}`] }))
    const acts = node('acts', S, async (_s, ctx) => ({ log: await twice(ctx) }))
    const both = [asks, acts]
    const split = node('split', S, () => command({ goto: both }), { goto: both })
    const g = graph('g', S).edge(START, split).edge(asks, END).edge(acts, END).check()
    const runtime = createRuntime()
    let ended = false
    const run = runtime.settle(g, {}, { thread: 't' }).finally(() => {
      ended = true
    })
    await quiet()
    runtime.drain()
    await quiet()
    expect(ended).toBe(false)
    gate.resolve()
    expect((await run).error).toMatchObject({ code: 'RUN_DRAINED' })
    const { asks: open } = await createRuntime({ store: runtime.store }).continue(g, 't')
    expect(open).toHaveLength(graphs)
    expect(open.every(({ askedBy }) => askedBy === 'graph')).toBe(true)
    expect(ran).toEqual([1, 2])
  })
})
