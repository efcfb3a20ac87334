import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { append, createRuntime, END, graph, graphNode, MemoryStore, node, START, state, tool } from '../../index.ts'

const S = state({ log: append(z.string()) })

/** A graph whose nodes call a tool that writes down its callId; the last one fails while `fails` says so. */
function calling(fails: () => boolean) {
  const note = tool('note', { description: 'notes its id', input: z.object({}), run: (_args, ctx) => ctx.callId })
  const call = (name: string, last = false) =>
    node(name, S, async (_s, ctx) => {
      const ids = [await ctx.callTool(note, {}), await ctx.callTool(note, {})] as string[]
      if (last && fails()) throw new Error('not yet')
      return { log: ids }
    })
  const inner = call('inner')
  const sub = graphNode('sub', S, graph('child', S).edge(START, inner).edge(inner, END).check(), { share: ['log'] })
  const [first, last] = [call('first'), call('last', true)]
  return graph('g', S).edge(START, first).edge(first, sub).edge(sub, last).edge(last, END).check()
}

describe('the id of a tool call that no model asked for', () => {
  it('is the same when the node is entered anew, so that it can be a key of what is done', async () => {
    const store = new MemoryStore()
    let fails = true
    const g = calling(() => fails)
    const ids = async () => (await createRuntime({ store }).stateAt(g, 't')).state?.log
    await createRuntime({ store })
      .run(g, {}, { thread: 't' })
      .catch(() => undefined)
    const before = await ids()
    fails = false
    const { state } = await createRuntime({ store }).continue(g, 't')
    expect(state.log.slice(0, 4)).toEqual(before)
    expect(new Set(state.log).size).toBe(6)
  })

  it('is of no other call: not of another turn, thread or branch', async () => {
    const runtime = createRuntime()
    const g = calling(() => false)
    await runtime.run(g, {}, { thread: 't' })
    await runtime.run(g, {}, { thread: 't' })
    await runtime.run(g, {}, { thread: 'u' })
    await runtime.fork('t', { at: 2, name: 'b' })
    await runtime.continue(g, 't', { branch: 'b' })
    const logs = await Promise.all(
      [{ thread: 't' }, { thread: 'u' }, { thread: 't', branch: 'b' }].map(
        async ({ thread, ...line }) => (await runtime.stateAt(g, thread, line)).state?.log ?? [],
      ),
    )
    expect(logs.map((log) => log.length)).toEqual([12, 6, 6])
    expect(new Set(logs.flat()).size).toBe(24)
  })

  it('says nothing of the thread', async () => {
    const { state } = await createRuntime().run(
      calling(() => false),
      {},
      { thread: 'customer-42' },
    )
    for (const id of state.log) expect(id).toMatch(/^call-[0-9a-f]{16}$/)
  })
})
