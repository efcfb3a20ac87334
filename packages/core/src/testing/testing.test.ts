import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { agentNode, END, graph, type Middleware, messages, middleware, node, START, state, tool } from '../index.ts'
import { chaos, expectNeutral, play, recorder, scripted, silent } from './index.ts'

const Chat = state({ messages: messages(), n: z.number().default(0) })
const input = { messages: [{ role: 'user', content: 'go' }] } as const
const echo = tool('echo', { description: 'x', input: z.object({ text: z.string() }), run: ({ text }) => text })

const agent = (own: readonly Middleware[], replies = turns(1)) => {
  const think = agentNode('think', Chat, { model: scripted(replies), tools: [echo] })
  return graph('agent', Chat, { middleware: own }).edge(START, think).edge(think, END).check()
}
const turns = (count: number) => [
  ...Array.from({ length: count }, (_, i) => ({
    tool_calls: [{ id: `c${i}`, name: 'echo', arguments: { text: `${i}` } }],
  })),
  'all done',
]

describe('play', () => {
  it('says how a run went, in plain values', async () => {
    const { status, text, messages: said, toolMessages, events } = await play(agent([]), { input })
    expect(status).toBe('completed')
    expect(text).toBe('all done')
    expect(said.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant'])
    expect(toolMessages).toEqual([{ id: 'c0', content: '0' }])
    expect(events.at(-1)?.type).toBe('run_end')
  })
  it('answers what is asked, until nothing is', async () => {
    const asks = node('asks', Chat, async (_, ctx) => {
      const first = (await ctx.ask('first', 1)) as number
      return { n: first + ((await ctx.ask('second', 2)) as number) }
    })
    const made = graph('asks', Chat).edge(START, asks).edge(asks, END).check()
    expect((await play(made)).status).toBe('paused')
    const { state: end, asked } = await play(made, { answer: ({ payload }) => (payload as number) * 10 })
    expect(end.n).toBe(30)
    expect(asked.map(({ key }) => key)).toEqual(['asks:first', 'asks:second'])
  })
  it('does not reject, and has the very error', async () => {
    const boom = new Error('boom')
    const fails = node('fails', Chat, () => {
      throw boom
    })
    const { status, error } = await play(graph('fails', Chat).edge(START, fails).edge(fails, END).check())
    expect([status, error]).toEqual(['failed', boom])
  })
  it('leaves out of the text what was called back', async () => {
    const again = middleware({ name: 'again', afterModel: (ctx) => (ctx.attempt === 1 ? ctx.retry() : undefined) })
    expect((await play(agent([again], ['no good', 'good']), { input })).text).toBe('good')
  })
})

describe('the recorder', () => {
  it('notes every hook in order, with what it was shown', async () => {
    const notes = recorder()
    await play(agent([notes]), { input })
    expect(notes.trace).toEqual([
      ...['beforeGraph at agent', 'beforeNode at think', 'wrapNode at think'],
      ...['beforeRound at think', 'beforeModel at think', 'wrapModel at think', 'afterModel at think'],
      ...['beforeTool at think', 'wrapTool at think', 'afterTool at think', 'afterRound at think'],
      ...['beforeRound at think', 'beforeModel at think', 'wrapModel at think', 'afterModel at think'],
      ...['afterNode at think', 'afterGraph at agent', 'onRunEnd at agent'],
    ])
    expect(notes.recorded.find(({ hook }) => hook === 'beforeTool')?.shown).toEqual({ text: '0' })
  })
})

describe('chaos', () => {
  const disturbed = async (seed: number) => {
    const bad = chaos({ seed, rate: 0.5 })
    await play(agent([bad], turns(8)), { input })
    return bad.disturbed
  }
  it('disturbs the same calls for the same seed, and others for another', async () => {
    expect(await disturbed(7)).toEqual(await disturbed(7))
    expect(
      new Set(await Promise.all([1, 2, 3, 4].map(async (seed) => (await disturbed(seed)).join()))).size,
    ).toBeGreaterThan(1)
  })
  it('makes a call fail before it is made, or loses what it came to', async () => {
    for (const [how, ran] of [
      ['fails', 0],
      ['loses', 1],
    ] as const) {
      let count = 0
      const counts = tool('echo', { description: 'x', input: z.object({ text: z.string() }), run: () => ++count })
      const think = agentNode('think', Chat, { model: scripted(turns(1)), tools: [counts] })
      const made = graph('agent', Chat, { middleware: [chaos({ seed: 1, rate: 1, where: ['tool'], how: [how] })] })
        .edge(START, think)
        .edge(think, END)
        .check()
      const { toolMessages } = await play(made, { input })
      expect(toolMessages[0]?.content).toMatch(/^Error: .*chaos$/)
      expect(count).toBe(ran)
    }
  })
  it('needs a rate between 0 and 1', () => expect(() => chaos({ seed: 1, rate: 2 })).toThrow(RangeError))
})

describe('expectNeutral', () => {
  const make = (own: readonly Middleware[]) => ({ graph: agent(own), input })
  it('is content with middleware that says nothing', () => expectNeutral(make))
  it.each([
    { name: 'a result', own: middleware({ name: 'odd', afterTool: (ctx) => ctx.replace('other') }), part: 'outcome' },
    { name: 'a warning', own: middleware({ name: 'odd', beforeTool: (ctx) => ctx.warn('look') }), part: 'warnings' },
    {
      name: 'a record',
      own: middleware({
        name: 'odd',
        kept: { scope: 'thread', schema: z.number().default(0) },
        beforeTool: (ctx) => void ctx.kept.update((n) => n + 1),
      }),
      part: 'records',
    },
  ])('finds $name that differs', async ({ own, part }) => {
    await expect(expectNeutral(make, [[silent()], [own]])).rejects.toThrow(
      `with 1 middleware (odd, …) the ${part} of the run differ`,
    )
  })
  it('is told what it needs, where it is given the graph itself', async () => {
    await expect(expectNeutral(agent as never)).rejects.toThrow(
      new TypeError('expectNeutral: what is made needs a graph: give { graph, input }.'),
    )
  })
  it('finds another error object that looks the same, where the case throws one and the same each time', async () => {
    const error = new Error('boom')
    const throws = (own: readonly Middleware[]) => {
      const act = tool('act', { description: 'x', input: z.object({}), run: () => Promise.reject(error) })
      const work = node('work', Chat, async (_s, ctx) => void (await ctx.callTool(act, {})))
      return { graph: graph('g', Chat, { middleware: own }).edge(START, work).edge(work, END).check() }
    }
    const copies = middleware({
      name: 'copies',
      wrapTool: async (_args, next) => {
        await next()
        return { ok: false, error: new Error('boom') }
      },
    })
    await expectNeutral(throws)
    await expect(expectNeutral(throws, [[copies]])).rejects.toThrow('ends with another error object')
  })
})
