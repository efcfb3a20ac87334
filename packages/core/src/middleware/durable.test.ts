import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  agentNode,
  append,
  createRuntime,
  END,
  graph,
  type Middleware,
  messages,
  middleware,
  node,
  policy,
  START,
  scripted,
  state,
  tool,
} from '../index.ts'

const Chat = state({ messages: messages(), log: append(z.string()) })
const ASKED = { messages: [{ role: 'user', content: 'go' }] } as const

const asksFor = (calls: number) =>
  scripted([{ tool_calls: Array.from({ length: calls }, (_, n) => ({ name: 'act', arguments: { n } })) }, 'done'])

/** An agent that asks for `calls` tool calls at once, and then says it is done. */
function agent(
  own: readonly Middleware[],
  { calls = 1, run = (n: number): unknown => n, model = asksFor(calls) } = {},
) {
  const act = tool('act', {
    description: 'Acts.',
    input: z.object({ n: z.number() }),
    run: ({ n }) => run(n) as number,
  })
  const think = agentNode('think', Chat, { model, tools: [act] })
  return { model, made: graph('agent', Chat, { middleware: own }).edge(START, think).edge(think, END).check() }
}

const results = (conversation: readonly { role: string; content: string }[]) =>
  conversation.filter(({ role }) => role === 'tool').map(({ content }) => content)

/** Lets so many tool calls through in a turn, or in a thread. */
const limit = (scope: 'turn' | 'thread', most: number, name = 'Limit') =>
  middleware({
    name,
    kept: { scope, schema: z.object({ calls: z.number().default(0) }) },
    beforeTool: (ctx) => {
      if (ctx.revisit) return undefined
      const { calls } = ctx.kept.update(({ calls }) => ({ calls: calls + 1 }))
      return calls > most ? ctx.reject(`${most} are enough`) : undefined
    },
  })

const asksFirst = middleware({
  name: 'Asks',
  beforeTool: (ctx) => (ctx.answered === undefined ? ctx.suspend({ question: 'may it?' }) : undefined),
})

describe('what own middleware keeps', () => {
  it('holds over the parallel calls of a round: none slips past', async () => {
    const { made } = agent([limit('turn', 2)], { calls: 5 })
    const { state: end } = await createRuntime().run(made, ASKED)
    expect(results(end.messages)).toEqual(['0', '1', ...Array(3).fill('Refused: 2 are enough')])
  })

  it('counts a call once, though a person is asked about it and another process goes on', async () => {
    const { made } = agent([limit('turn', 2), asksFirst], { calls: 3 })
    const here = createRuntime()
    const paused = await here.run(made, ASKED, { thread: 't' })
    expect(paused.asks).toHaveLength(2)
    const elsewhere = createRuntime({ store: here.store })
    const answers = new Map(paused.asks.map(({ key }) => [key, true]))
    const { state: end } = await elsewhere.resume(made, 't', answers)
    expect(results(end.messages)).toEqual(['0', '1', 'Refused: 2 are enough'])
  })

  it.each([
    { scope: 'turn', second: '0' },
    { scope: 'thread', second: 'Refused: 1 are enough' },
  ] as const)('is begun anew with each input, or holds for good: $scope', async ({ scope, second }) => {
    const runtime = createRuntime()
    for (const said of ['0', second]) {
      const { made } = agent([limit(scope, 1)])
      const { state: end } = await runtime.run(made, ASKED, { thread: 't' })
      expect(results(end.messages).at(-1)).toBe(said)
    }
  })

  it('is kept from onRunEnd too, however the run ended, and though that hook fails in the end', async () => {
    const seen: number[] = []
    const runs = middleware({
      name: 'Runs',
      kept: { scope: 'thread', schema: z.object({ ends: z.number().default(0) }) },
      beforeGraph: (ctx) => void seen.push(ctx.kept.value.ends),
      onRunEnd: (ctx) => {
        if (ctx.kept.update(({ ends }) => ({ ends: ends + 1 })).ends === 2) throw new Error('no more')
      },
    })
    const here = createRuntime()
    const { made } = agent([runs, asksFirst])
    await here.run(made, ASKED, { thread: 't' })
    const elsewhere = createRuntime({ store: here.store })
    expect(await elsewhere.resume(made, 't', true).catch(({ code }) => code)).toBe('MIDDLEWARE_FAILED')
    expect(await elsewhere.stateAt(made, 't')).toMatchObject({ status: 'completed' })
    await createRuntime({ store: here.store }).settle(agent([runs]).made, ASKED, { thread: 't' })
    expect(seen).toEqual([0, 1, 2])
  })

  it('is a revisit of the same hook, and not of another one of its half', async () => {
    const seen: [string, boolean][] = []
    const counts = middleware({
      name: 'Counts',
      kept: { scope: 'turn', schema: z.object({ n: z.number().default(0) }) },
      onModelError: (ctx) => {
        seen.push(['onModelError', ctx.revisit])
        ctx.kept.update(({ n }) => ({ n: n + 1 }))
        return { content: 'sorry', finish_reason: 'stop' }
      },
      afterModel: (ctx) => void seen.push(['afterModel', ctx.revisit]),
    })
    const { made } = agent([counts], { model: scripted([new Error('busy')]) })
    await createRuntime().run(made, ASKED, { thread: 't' })
    expect(seen).toEqual([
      ['onModelError', false],
      ['afterModel', false],
    ])
  })

  it('is its own: two middleware, and a policy of the same shape, do not share it', async () => {
    const { made } = agent([limit('turn', 1, 'A'), limit('turn', 1, 'B')])
    const { state: end } = await createRuntime().run(made, ASKED)
    expect(results(end.messages)).toEqual(['0'])
  })

  it('is not there for who declares nothing', async () => {
    const odd = middleware({ name: 'odd', beforeTool: (ctx) => void ctx.kept.value })
    const { error } = await createRuntime().settle(agent([odd]).made, ASKED)
    expect(error).toMatchObject({ code: 'MIDDLEWARE_FAILED', cause: { code: 'KEPT_MISSING' } })
  })

  it('may be read and changed in a wrap, and at the end of a run', async () => {
    const seen: unknown[] = []
    const counts = middleware({
      name: 'counts',
      kept: { scope: 'turn', schema: z.object({ trips: z.number().default(0) }) },
      wrapTool: async (args, next, ctx) => {
        ctx.kept.update(({ trips }) => ({ trips: trips + 1 }))
        return next(args)
      },
      onRunEnd: (ctx) => void seen.push(ctx.kept.value),
    })
    await createRuntime().run(agent([counts], { calls: 3 }).made, ASKED)
    expect(seen).toEqual([{ trips: 3 }])
  })
})

describe('a call that is entered anew', () => {
  it('runs own middleware again, and hands its trips back: neither the tool nor a policy’s before is met twice', async () => {
    const seen: string[] = []
    const retries = middleware({
      name: 'retries',
      wrapTool: async (args, next) => {
        seen.push('wrap')
        const first = await next(args)
        seen.push(`first ${first.ok}`)
        return first.ok ? first : next(args)
      },
    })
    let ran = 0
    const { made } = agent([retries], {
      run: () => {
        if (++ran === 1) throw new Error('not yet')
        return 'there'
      },
    })
    const guard = policy({
      name: 'Guard',
      seams: {
        toolCall: {
          before: () => {
            seen.push('policy before')
            return { action: 'proceed' }
          },
          after: (_, ctx) => {
            seen.push(`policy after ${ctx.half}`)
            throw new Error('the process breaks')
          },
        },
      },
    })
    const here = createRuntime({ policies: [guard] })
    await here.settle(made, ASKED, { thread: 't' })
    expect(seen.splice(0)).toEqual(['wrap', 'policy before', 'first false', 'policy before', 'policy after after'])
    const elsewhere = createRuntime({ store: here.store })
    const { state: end } = await elsewhere.continue(made, 't')
    expect(results(end.messages)).toEqual(['there'])
    expect(seen).toEqual(['wrap', 'first false'])
    expect(ran).toBe(2)
  })

  it('a trip that was given another input is a new one', async () => {
    let [ran, suffix] = [0, 1]
    const stamps = middleware({ name: 'stamps', wrapTool: (_, next) => next({ n: suffix++ }) })
    const { made } = agent([stamps], {
      run: (n) => {
        ran++
        return n
      },
    })
    const breaks = policy({
      name: 'Breaks',
      seams: {
        toolCall: {
          after: () => {
            throw new Error('the process breaks')
          },
        },
      },
    })
    const here = createRuntime({ policies: [breaks] })
    await here.settle(made, ASKED, { thread: 't' })
    const { state: end } = await createRuntime({ store: here.store }).continue(made, 't')
    expect(results(end.messages)).toEqual(['2'])
    expect(ran).toBe(2)
  })

  it('a tool call that settled is handed back: no hook is consulted about it again', async () => {
    const seen: string[] = []
    const watch = middleware({
      name: 'watch',
      beforeTool: (ctx) => void seen.push(`before ${(ctx.args as { n: number }).n}`),
      afterTool: (ctx) => void seen.push(`after ${ctx.value}`),
    })
    const asksOfOne = middleware({
      name: 'Asks',
      beforeTool: (ctx) =>
        (ctx.args as { n: number }).n === 1 && ctx.answered === undefined
          ? ctx.suspend({ question: 'may it?' })
          : undefined,
    })
    const { made } = agent([watch, asksOfOne], { calls: 2 })
    const here = createRuntime()
    await here.run(made, ASKED, { thread: 't' })
    expect(seen.splice(0).toSorted()).toEqual(['after 0', 'before 0', 'before 1'])
    await createRuntime({ store: here.store }).resume(made, 't', true)
    expect(seen).toEqual(['before 1', 'after 1'])
  })

  it('a middleware that is there now judges what was not settled, though it was not there before the pause', async () => {
    const { made, model } = agent([asksFirst])
    const here = createRuntime()
    await here.run(made, ASKED, { thread: 't' })
    const stamp = middleware({ name: 'stamp', afterTool: (ctx) => ctx.replace(`${ctx.value} stamped`) })
    const changed = agent([stamp, asksFirst], { model })
    const { state: end } = await createRuntime({ store: here.store }).resume(changed.made, 't', true)
    expect(results(end.messages)).toEqual(['0 stamped'])
  })
})

describe('a wrap around something that asks', () => {
  it('that catches everything does not catch the pause', async () => {
    const catches = middleware({
      name: 'catches',
      wrapNode: async (input, next) => {
        try {
          const outcome = await next(input)
          return outcome.ok ? outcome : { ok: true as const, value: {} }
        } catch {
          return { ok: true as const, value: {} }
        }
      },
    })
    const Numbers = state({ n: z.number().default(0) })
    const asks = node('asks', Numbers, async (_, ctx) => ({ n: (await ctx.ask('how', 'How many?')) as number }))
    const made = graph('g', Numbers, { middleware: [catches] })
      .edge(START, asks)
      .edge(asks, END)
      .check()
    const here = createRuntime()
    expect((await here.run(made, {}, { thread: 't' })).status).toBe('paused')
    expect((await createRuntime({ store: here.store }).resume(made, 't', 7)).state.n).toBe(7)
  })
})
