import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { ASKED, chat, failing, Numbers, runtime, step, twoTurns } from '../../testing/hooks.ts'
import { createRuntime, END, graph, graphNode, type Middleware, middleware, node, START, tool } from '../index.ts'

describe('onInterrupt', () => {
  const asks = node('asks', Numbers, async ({ n }, ctx) => ({ n: n + ((await ctx.ask('how', { many: n })) as number) }))
  const asking = (own: readonly Middleware[]) =>
    graph('asking', Numbers, { middleware: own }).edge(START, asks).edge(asks, END).check()

  it('F15: answers without a store or a thread, and the node runs once', async () => {
    const answers = middleware({
      name: 'answers',
      onInterrupt: (ctx, payload) => (payload as { many: number }).many + ctx.state.n,
    })
    expect((await runtime.run(asking([answers]), { n: 5 })).state.n).toBe(15)
  })
  it('the first answer wins; undefined leaves it to the next', async () => {
    const seen: string[] = []
    const say = (name: string, answer: unknown) =>
      middleware({
        name,
        onInterrupt: () => {
          seen.push(name)
          return answer
        },
      })
    expect((await runtime.run(asking([say('a', undefined), say('b', 0), say('c', 7)]), { n: 1 })).state.n).toBe(1)
    expect(seen).toEqual(['a', 'b'])
  })
  it('F16: an answer that is promised ends the run with a TypeError', async () => {
    const later = middleware({ name: 'later', onInterrupt: async () => 5 })
    const { error } = await runtime.settle(asking([later]), {})
    expect(error).toEqual(new TypeError('later.onInterrupt returned a promise; it answers at once or not at all.'))
  })
  it('G16: sees the input that beforeNode put in place', async () => {
    const seen: unknown[] = []
    const both = middleware({
      name: 'both',
      state: Numbers,
      beforeNode: (ctx) => ctx.replace({ ...ctx.state, n: 100 }),
      onInterrupt: (ctx) => {
        seen.push(ctx.state.n, ctx.storedState.n, ctx.nodeName)
        return 1
      },
    })
    await runtime.run(asking([both]), { n: 5 })
    expect(seen).toEqual([100, 5, 'asks'])
  })
  it('F19: the graph that asks is first, then the graphs around it, with the node that runs it', async () => {
    const seen: string[] = []
    const answer = (name: string, value: unknown) =>
      middleware({
        name,
        onInterrupt: (ctx) => {
          seen.push(`${name} at ${ctx.nodeName} of ${ctx.graphName}`)
          return value
        },
      })
    const nested = (inner: unknown, outer: unknown) => {
      const sub = graphNode('sub', Numbers, asking([answer('inner', inner)]), { share: ['n'] })
      return graph('outer', Numbers, { middleware: [answer('outer', outer)] })
        .edge(START, sub)
        .edge(sub, END)
        .check()
    }
    expect((await runtime.run(nested(1, 2), { n: 0 })).state.n).toBe(1)
    expect(seen.splice(0)).toEqual(['inner at asks of asking'])
    expect((await runtime.run(nested(undefined, 2), { n: 0 })).state.n).toBe(2)
    expect(seen).toEqual(['inner at asks of asking', 'outer at sub of outer'])
  })
})

describe('a question that a hook asks', () => {
  it.each([
    {
      name: 'onError',
      own: middleware({
        name: 'asks',
        onError: async (ctx, error) => ({ n: (await ctx.ask('how', error.message)) as number }),
      }),
      run: failing,
    },
    {
      name: 'afterNode',
      own: middleware({
        name: 'asks',
        afterNode: async (ctx) => ctx.replace({ n: (await ctx.ask('how', 'the step fails')) as number }),
      }),
      run: () => ({ n: 1 }),
    },
    {
      name: 'beforeNode',
      own: middleware({
        name: 'asks',
        beforeNode: async (ctx) => ctx.answer({ n: (await ctx.ask('how', 'the step fails')) as number }),
      }),
      run: () => ({ n: 1 }),
    },
  ])('F17: in $name pauses the run, and it goes on there', async ({ own, run }) => {
    const here = createRuntime()
    const made = step([own], run)
    const paused = await here.run(made, {}, { thread: 't' })
    expect(paused.status).toBe('paused')
    expect(paused.asks).toMatchObject([{ key: 'step:how', askedBy: 'graph', payload: 'the step fails' }])
    const elsewhere = createRuntime({ store: here.store })
    expect((await elsewhere.resume(made, 't', 42)).state.n).toBe(42)
  })

  it('suspend asks about the very call; its answer comes back as ctx.answered', async () => {
    const ran: string[] = []
    const pay = tool('echo', {
      description: 'x',
      input: z.object({ text: z.string() }),
      run: ({ text }) => {
        ran.push(text)
        return text
      },
    })
    const gate = middleware({
      name: 'Gate',
      beforeTool: (ctx) => {
        if (ctx.answered === undefined) return ctx.suspend({ question: `Say ${(ctx.args as { text: string }).text}?` })
        return ctx.answered === 'yes' ? undefined : ctx.reject('a person said no')
      },
    })
    for (const [answer, said] of [
      ['yes', 'hello'],
      ['no', 'Refused: a person said no'],
    ]) {
      const model = twoTurns()
      const made = chat([gate], { model, tools: [pay] })
      const here = createRuntime()
      const paused = await here.run(made, ASKED, { thread: 't' })
      expect(paused.asks).toMatchObject([
        {
          key: 'think:echo@Gate',
          askedBy: 'graph',
          middleware: 'Gate',
          payload: { tool: 'echo', arguments: { text: 'hello' }, question: 'Say hello?' },
        },
      ])
      const elsewhere = createRuntime({ store: here.store })
      const { state: end } = await elsewhere.resume(made, 't', answer)
      expect(end.messages.find(({ role }) => role === 'tool')?.content).toBe(said)
      expect(model.requests).toHaveLength(2)
    }
    expect(ran).toEqual(['hello'])
  })
})
