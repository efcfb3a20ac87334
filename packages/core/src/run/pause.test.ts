import { describe, expect, it } from 'vitest'
import { z } from 'zod'
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
  type StateOf,
  state,
  tool,
} from '../index.ts'

const S = state({ approved: z.boolean().default(false), log: append(z.string()) })
type State = StateOf<typeof S>

const setUp = () => {
  const store = new MemoryStore()
  return { store, runtime: createRuntime({ store }) }
}

function alone(run: (s: State, ctx: NodeContext) => unknown) {
  const review = node('review', S, run as () => void)
  return graph('g', S).edge(START, review).edge(review, END).check()
}

describe('a node that asks', () => {
  it('F1: pauses the run, and the answer goes to the node', async () => {
    const { runtime } = setUp()
    const g = alone(async (_s, ctx) => ({ approved: await ctx.ask('approve', 'ok?', { schema: z.boolean() }) }))
    const paused = await runtime.run(g, {}, { thread: 't' })
    expect(paused).toMatchObject({
      status: 'paused',
      asks: [{ key: 'review:approve', askedBy: 'graph', payload: 'ok?', nodeName: 'review', taskId: 'review' }],
    })
    const done = await runtime.resume(g, 't', true)
    expect(done).toMatchObject({ status: 'completed', state: { approved: true } })
  })

  it('makes no settled call twice', async () => {
    const { runtime, store } = setUp()
    const calls: string[] = []
    const act = tool('act', {
      description: 'acts',
      input: z.object({ n: z.number() }),
      run: ({ n }) => {
        calls.push(`act ${n}`)
        return n
      },
    })
    const g = alone(async (_s, ctx) => {
      const one = await ctx.callTool(act, { n: 1 })
      const once = await ctx.once('stamp', () => {
        calls.push('stamp')
        return 7
      })
      const answer = await ctx.ask('go', 'go on?')
      const two = await ctx.callTool(act, { n: 2 })
      return { log: [String(one), String(once), String(answer), String(two)] }
    })
    await runtime.run(g, {}, { thread: 't' })
    const done = await createRuntime({ store }).resume(g, 't', 'yes')
    expect(done.state.log).toEqual(['1', '7', 'yes', '2'])
    expect(calls).toEqual(['act 1', 'stamp', 'act 2'])
  })

  it('in parallel with another: finished siblings are not run again', async () => {
    const { runtime } = setUp()
    const ran: string[] = []
    const a = node('a', S, async (_s, ctx) => {
      ran.push('a')
      return { log: [`a ${await ctx.ask('q', 'A?')}`] }
    })
    const b = node('b', S, () => {
      ran.push('b')
      return { log: ['b'] }
    })
    const split = node('split', S, () => command({ goto: [a, b] }), { goto: [a, b] })
    const g = graph('g', S).edge(START, split).edge(a, END).edge(b, END).check()
    const paused = await runtime.run(g, {}, { thread: 't' })
    expect(paused.asks.map(({ key }) => key)).toEqual(['a:q'])
    const done = await runtime.resume(g, 't', 1)
    expect(done.state.log).toEqual(['a 1', 'b'])
    expect(ran).toEqual(['a', 'b', 'a'])
  })
})
