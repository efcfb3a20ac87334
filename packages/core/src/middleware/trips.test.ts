import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { says } from '../../testing/play.ts'
import {
  agentNode,
  command,
  createRuntime,
  END,
  field,
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
import { play } from '../testing/index.ts'

const Chat = state({ messages: messages() })
const input = { messages: [{ role: 'user', content: 'go' }] } as const
const never = () => new Promise<never>(() => undefined)

/** An agent that calls `act` once, with n: 0; what ran is noted. */
function acting(own: readonly Middleware[], run: (n: number) => unknown = (n) => `r${n}`) {
  const ran: number[] = []
  const act = tool('act', {
    description: 'Acts.',
    input: z.object({ n: z.number() }),
    run: ({ n }) => {
      ran.push(n)
      return run(n) as string
    },
  })
  const model = scripted([{ tool_calls: [{ name: 'act', arguments: { n: 0 } }] }, 'done'])
  const think = agentNode('think', Chat, { model, tools: [act] })
  return { ran, made: graph('agent', Chat, { middleware: own }).edge(START, think).edge(think, END).check() }
}

const said = async (own: readonly Middleware[], policies: Parameters<typeof policy>[0][] = []) => {
  const { made, ran } = acting(own)
  const { toolMessages, ...rest } = await play(made, { input, policies: policies.map((each) => policy(each)) })
  return { content: toolMessages[0]?.content, ran, ...rest }
}

describe('a trip that has been made', () => {
  const twice = middleware({
    name: 'twice',
    wrapTool: async (_args, next) => {
      await next()
      return next()
    },
    wrapNode: async (_state, next) => {
      await next()
      return next()
    },
  })
  /** Asks about the second of them, when it comes to that for the first time. */
  const asksAtSecond = (hook: 'beforeTool' | 'beforeNode') => {
    let consulted = 0
    const ask = (ctx: { suspend(ask: object): unknown }) =>
      ++consulted === 2 ? ctx.suspend({ question: '?' }) : undefined
    return middleware({ name: 'asks', [hook]: ask })
  }
  const answers = says('Answers', { 'ask.before': { action: 'replace', value: 'yes' } })

  it.each(['in memory', 'on a thread'])(
    'is not made again when a question about a later one is answered at once: a tool, %s',
    async (where) => {
      const { made, ran } = acting([
        middleware({ name: 'once', wrapTool: twice.wrapTool as never }),
        asksAtSecond('beforeTool'),
      ])
      const { status } = await createRuntime({ policies: [answers] }).run(
        made,
        input,
        where === 'in memory' ? {} : { thread: 't' },
      )
      expect({ status, ran }).toEqual({ status: 'completed', ran: [0, 0] })
    },
  )

  it.each(['in memory', 'on a thread'])(
    'is not made again when a question about a later one is answered at once: a node, %s',
    async (where) => {
      const ran: string[] = []
      const act = tool('act', { description: 'Acts.', input: z.object({}), run: () => void ran.push('act') })
      const S = state({ n: z.number().default(0) })
      const work = node('work', S, async (_s, ctx) => {
        ran.push('work')
        await ctx.callTool(act, {})
        return { n: 1 }
      })
      const own = [middleware({ name: 'once', wrapNode: twice.wrapNode as never }), asksAtSecond('beforeNode')]
      const made = graph('g', S, { middleware: own }).edge(START, work).edge(work, END).check()
      const { status } = await createRuntime({ policies: [answers] }).run(
        made,
        {},
        where === 'in memory' ? {} : { thread: 't' },
      )
      expect({ status, ran }).toEqual({ status: 'completed', ran: ['work', 'act', 'work', 'act'] })
    },
  )
})

describe('a trip that a wrap has abandoned', () => {
  const givesUp = () =>
    middleware({
      name: 'gives up',
      wrapTool: async (args, next) => {
        next(args)
        // Far enough in for whoever stands there to be asked.
        await new Promise((then) => setImmediate(then))
        return { ok: true, value: 'fallback' }
      },
    })

  it('is not made, where a policy was still to judge it', async () => {
    let judge = () => {}
    const slow = {
      name: 'Slow',
      seams: {
        toolCall: {
          before: () =>
            new Promise<never>((go) => {
              judge = () => go({ action: 'proceed' } as never)
            }),
        },
      },
    }
    const { content, ran } = await said([givesUp()], [slow as never])
    judge()
    await new Promise((done) => setImmediate(done))
    expect([content, ran]).toEqual(['fallback', []])
  })

  it('is not made, where a hook inside was still to speak', async () => {
    let speak = () => {}
    const slow = middleware({
      name: 'slow',
      beforeTool: () =>
        new Promise<undefined>((go) => {
          speak = () => go(undefined)
        }),
    })
    const { content, ran } = await said([givesUp(), slow])
    speak()
    await new Promise((done) => setImmediate(done))
    expect([content, ran]).toEqual(['fallback', []])
  })

  it('lets others be consulted who keep something, though a hook of it never answers', async () => {
    let consulted = 0
    const keeps = middleware({
      name: 'keeps',
      kept: { scope: 'turn', schema: z.number().default(0) },
      beforeTool: () => {
        consulted++
        return never()
      },
      onRunEnd: (ctx) => void ctx.kept.value,
    })
    const { status } = await said([givesUp(), keeps])
    expect([status, consulted]).toEqual(['completed', 1])
  })
})

describe('a signal of next', () => {
  it('ends the trip while a hook inside is still to speak', async () => {
    const slow = middleware({ name: 'slow', beforeTool: never })
    const limits = middleware({
      name: 'limits',
      wrapTool: async (args, next) => {
        const controller = new AbortController()
        const going = next(args, { signal: controller.signal })
        await Promise.resolve()
        controller.abort(new Error('timed out'))
        return going
      },
    })
    expect(await said([limits, slow])).toMatchObject({ content: 'Error: timed out', ran: [], status: 'completed' })
  })
})

describe('after several trips', () => {
  it('hooks and policies are shown the arguments of the one whose outcome is used', async () => {
    const seen: unknown[] = []
    const after = middleware({ name: 'own', afterTool: (ctx) => void seen.push(['own', ctx.args, ctx.value]) })
    const twice = middleware({
      name: 'twice',
      wrapTool: async (_, next) => {
        const first = await next({ n: 1 })
        await next({ n: 2 })
        return first
      },
    })
    const judge = {
      name: 'Judge',
      seams: {
        toolCall: {
          after: ({ input: args, outcome }: { input: unknown; outcome: { ok: boolean; value?: unknown } }) => {
            seen.push(['policy', args, outcome.value])
            return { action: 'pass' }
          },
        },
      },
    }
    await said([after, twice], [judge as never])
    expect(seen).toEqual([
      ['own', { n: 1 }, 'r1'],
      ['policy', { n: 1 }, 'r1'],
    ])
  })

  it('one that was cut off is asked about, and one that was not is handed back', async () => {
    const twice = middleware({
      name: 'twice',
      wrapTool: async (_, next) => {
        const [first, second] = [await next({ n: 1 }), await next({ n: 2 })]
        return { ok: true, value: [first, second].map((outcome) => outcome.ok && outcome.value).join(' ') }
      },
    })
    const here = createRuntime()
    const stop = new AbortController()
    const { made } = acting([twice], (n) => {
      if (n === 1) return 'one'
      stop.abort(new Error('the process ends'))
      return never()
    })
    await here.settle(made, input, { thread: 't', signal: stop.signal })
    const elsewhere = createRuntime({ store: here.store })
    const asked = await elsewhere.continue(made, 't')
    expect(asked.asks).toMatchObject([{ askedBy: 'engine' }])
    const { state: end } = await elsewhere.resume(made, 't', { result: 'two' })
    expect(end.messages.find(({ role }) => role === 'tool')?.content).toBe('one two')
  })
})

describe('what a hook says', () => {
  it.each([
    { name: 'a question that is no JSON', own: { beforeTool: (ctx: Words) => ctx.suspend({ at: new Date(0) }) } },
    { name: 'a delay that is no number', own: { afterModel: (ctx: Words) => ctx.retry({ delayMs: 'soon' }) } },
    { name: 'a refusal without a reason', own: { beforeTool: (ctx: Words) => ctx.reject(undefined) } },
    {
      name: 'another model that is none',
      own: {
        wrapModel: (request: object, next: (request: object, options: object) => unknown) =>
          next(request, { model: null }),
      },
    },
    { name: 'a failure without an error', own: { wrapTool: () => ({ ok: false }) } },
  ])('is read like a verdict: $name ends the run, and its middleware is named', async ({ own }) => {
    const odd = middleware({ name: 'odd', ...own } as never)
    const silent = middleware({ name: 'innocent', wrapTool: (args, next) => next(args) })
    const { status, error } = await said([silent, odd])
    expect(status).toBe('failed')
    expect((error as Error).message).toContain('odd')
    expect((error as Error).message).not.toContain('innocent')
  })

  it.each([
    { name: 'a name that the runtime does not have', model: 'slow', says: 'there is no model "slow" in the runtime' },
    {
      name: 'null',
      model: null,
      says: 'next was given null as model; give a model, or the name of one in the runtime',
    },
    { name: 'an object that is none', model: { model: 'x' }, says: 'next was given an object as model' },
  ])('next asks no model that is none: $name ends the run, and the wrap is named', async ({ model, says }) => {
    const odd = middleware({ name: 'odd', wrapModel: (_request, next) => next(undefined, { model: model as never }) })
    const innocent = middleware({ name: 'innocent', wrapModel: (_request, next) => next() })
    const { status, error } = await said([odd, innocent])
    expect([status, (error as Error).message]).toEqual(['failed', expect.stringContaining(says)])
    expect((error as Error).message).toContain('middleware "odd" failed at modelCall')
  })

  it('a value that leaves things as they were is no decision', async () => {
    const same = middleware({
      name: 'same',
      beforeTool: (ctx) => ctx.replace({ ...ctx.args }),
      afterTool: (ctx) => ctx.replace(ctx.value),
    })
    const { events } = await said([same])
    expect(events.filter(({ type }) => type === 'decision')).toEqual([])
  })

  it('an answer to a node is a result, and never a route', async () => {
    const Text = state({ went: field<string>() })
    const c = node('c', Text, () => ({ went: 'c' }))
    const a = node('a', Text, () => ({}), { goto: [c, END] })
    const routes = middleware({
      name: 'routes',
      beforeNode: (ctx) => (ctx.nodeName === 'a' ? ctx.answer(command({ goto: c })) : undefined),
    })
    const { status, error } = await play(
      graph('g', Text, { middleware: [routes] })
        .edge(START, a)
        .edge(c, END)
        .check(),
    )
    expect([status, (error as Error).message]).toEqual(['failed', expect.stringContaining('is not JSON')])
  })

  it('a node that onError fails is told to the policies before the run ends', async () => {
    const Text = state({ went: field<string>() })
    const a = node('a', Text, () => {
      throw new Error('no')
    })
    const fails = middleware({ name: 'fails', onError: (ctx) => ctx.fail('no more') })
    const seen: unknown[] = []
    const watch = policy({
      name: 'Watch',
      seams: {
        node: {
          after: ({ outcome }) => {
            seen.push(outcome.ok)
            return { action: 'pass' }
          },
        },
      },
    })
    const made = graph('g', Text, { middleware: [fails] })
      .edge(START, a)
      .edge(a, END)
      .check()
    const { error } = await play(made, { policies: [watch] })
    expect(error).toMatchObject({ code: 'FAILED_BY_MIDDLEWARE' })
    expect(seen).toEqual([false])
  })

  it('what afterTool refuses is judged by the policies: they have the last word on what is said in its place', async () => {
    const tells = middleware({ name: 'tells', afterTool: (ctx) => ctx.reject(`it was ${ctx.value}`) })
    const redacts = {
      name: 'Redacts',
      seams: { toolCall: { after: () => ({ action: 'replace', value: 'redacted' }) } },
    }
    expect((await said([tells], [redacts as never])).content).toBe('redacted')
    expect((await said([tells])).content).toBe('Refused: it was r0')
  })

  it('a result in place of a failure is told as that, and not as a call that was not made', async () => {
    const saves = middleware({
      name: 'saves',
      wrapTool: async (args, next) => {
        const outcome = await next(args)
        return outcome.ok ? outcome : { ok: true, value: 'sorry' }
      },
    })
    const { made } = acting([saves], () => {
      throw new Error('boom')
    })
    const { warnings } = await play(made, { input })
    expect(warnings.map(({ message }) => message)).toEqual([
      'middleware "saves" supplied a result for the call of tool "act"; it had failed: boom',
    ])
  })
})

interface Words {
  suspend(ask: unknown): unknown
  retry(options: unknown): unknown
  reject(reason: unknown): unknown
}
