import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { agentGraph, numbered, Talk, user } from '../../../testing/agent.ts'
import { open } from '../../../testing/clock.ts'
import { FailingStore } from '../../../testing/failing-store.ts'
import { says } from '../../../testing/play.ts'
import {
  agentNode,
  BudgetMiddleware,
  type BudgetOptions,
  type BudgetSpend,
  type ChatModel,
  type ChatRequest,
  createRuntime,
  END,
  graph,
  MemoryStore,
  Middleware,
  MODEL_PRICES,
  middleware,
  node,
  PRICES_AS_OF,
  type ScriptedReply,
  START,
  scripted,
  type ToolMiddlewareContext,
  tool,
} from '../../index.ts'

const T = { thread: 't' }

/** A reply that took so many tokens. */
const took = (input: number, output: number, more: object = {}): ScriptedReply => ({
  content: 'ok',
  usage: { inputTokens: input, outputTokens: output, totalTokens: input + output },
  ...more,
})
const CALL = { content: '', tool_calls: [{ name: 'look', arguments: { n: 1 } }] }

/** A graph whose node asks the model so many times, one after another, until it is refused. */
function asking(times: number, model: ChatModel, own: readonly Middleware[]) {
  const made: string[] = []
  const work = node('work', Talk, async (_s, ctx) => {
    for (let i = 0; i < times; i++) {
      const call = ctx.callModel(model, { messages: [{ role: 'user', content: 'hello' }] })
      made.push(
        await call.then(
          ({ content }) => content,
          (error) => error.reason ?? error.message,
        ),
      )
    }
  })
  return { made, graph: graph('g', Talk, { middleware: own }).edge(START, work).edge(work, END).check() }
}

/** The budget, and what it was told was spent. */
function telling(options: BudgetOptions) {
  const spends: BudgetSpend[] = []
  return { spends, budget: new BudgetMiddleware({ ...options, onSpend: (spend) => spends.push(spend) }) }
}

describe('a budget', () => {
  it('C9: in tokens, refuses the next call once it is spent, and says how much was', async () => {
    const { ran, tools } = numbered('look')
    const model = scripted([took(400, 100, CALL), took(500, 104, CALL), took(1, 1)])
    //#region tokens
    const agent = agentNode('agent', Talk, { model, tools })
    const middleware = [new BudgetMiddleware({ tokensPerTurn: 1_000, tokensPerThread: 50_000 })]
    const support = graph('support', Talk, { middleware }).edge(START, agent).edge(agent, END).check()
    //#endregion
    const { error } = await createRuntime().settle(support, user('look around'))
    expect(error).toMatchObject({
      code: 'REFUSED',
      reason: 'the budget of 1000 tokens in a turn is spent (1104 tokens)',
    })
    expect(ran).toHaveLength(2)
    expect(model.requests).toHaveLength(2)
  })

  it('in dollars, counts by the price of the model', async () => {
    const { spends, budget } = telling({ usdPerTurn: 0.005 })
    const model = scripted([took(1_000, 200), took(1_000, 200)], { model: 'openai/gpt-5-2025-08-07' })
    const { made, graph } = asking(3, model, [budget])
    await createRuntime().run(graph, {})
    expect(made).toEqual(['ok', 'ok', 'the budget of 0.005 USD in a turn is spent (0.0065 USD)'])
    expect(spends.map(({ call }) => call.usd)).toEqual([0.00325, 0.00325])
    expect(spends[1]).toMatchObject({ model: 'openai/gpt-5-2025-08-07', turn: { tokens: 2_400, usd: 0.0065 } })
  })

  it.each([
    { name: 'its own name', model: 'gpt-5-mini', usd: 2.25 },
    { name: 'the name with its provider', model: 'openai/gpt-5-mini', usd: 2.25 },
    { name: 'a release of it', model: 'claude-haiku-4-5-20251001', usd: 6 },
    { name: 'the newest release', model: 'anthropic/claude-haiku-4-5-latest', usd: 6 },
    { name: 'a long input, which has a price of its own', model: 'gemini-2.5-pro', usd: 17.5 },
    { name: 'a price that was given', model: 'my-model', usd: 3 },
    { name: 'a price that was given in place of the listed one', model: 'gpt-4o', usd: 30 },
  ])('finds the price of a model by $name', async ({ model, usd }) => {
    //#region prices
    const prices = { 'my-model': { input: 1, output: 2 }, 'gpt-4o': { input: 10, output: 20 } }
    const budget = new BudgetMiddleware({ usdPerThread: 1_000, prices, onSpend: (spend) => spends.push(spend) })
    //#endregion
    const spends: BudgetSpend[] = []
    const { graph } = asking(1, scripted([took(1_000_000, 1_000_000)], { model }), [budget])
    await createRuntime().run(graph, {})
    expect(spends[0]?.call.usd).toBe(usd)
  })

  it('says of when its prices are, and from where', () => {
    expect(PRICES_AS_OF).toEqual({
      date: expect.stringMatching(/^\d{4}-\d\d-\d\d$/),
      source: expect.stringContaining('https://'),
    })
    for (const { input, output, long } of Object.values(MODEL_PRICES)) {
      expect(output).toBeGreaterThan(input)
      expect(long === undefined || long.input > input).toBe(true)
    }
  })

  it('refuses a model that has no price; one of tokens does not need it', async () => {
    const ask = async (options: BudgetOptions) => {
      const { made, graph } = asking(1, scripted([took(1, 1)], { model: 'home-made' }), [new BudgetMiddleware(options)])
      const { warnings } = await createRuntime().run(graph, {})
      return { said: made[0], warned: warnings.filter(({ message }) => message.includes('counts as free')).length }
    }
    const why = 'there is no price for model "home-made", and the budget is in dollars; give one in prices'
    expect(await ask({ usdPerTurn: 1 })).toEqual({ said: why, warned: 0 })
    expect(await ask({ usdPerTurn: 1, unknownModel: 'warn' })).toEqual({ said: 'ok', warned: 2 })
    expect(await ask({ tokensPerTurn: 1 })).toEqual({ said: 'ok', warned: 0 })
  })

  it('with mustFit, refuses a call that would not fit by its estimate', async () => {
    const budget = new BudgetMiddleware({ tokensPerTurn: 1_000, mustFit: true, outputTokens: 500 })
    const { made, graph } = asking(3, scripted([took(300, 100), took(100, 10), took(1, 1)]), [budget])
    await createRuntime().run(graph, {})
    expect(made).toEqual([
      'ok',
      'ok',
      'the budget of 1000 tokens in a turn has 490 tokens left, and this call is estimated at 502 tokens',
    ])
  })

  it('estimates by the most that a request allows its response', async () => {
    const budget = new BudgetMiddleware({ tokensPerTurn: 1_000, mustFit: true })
    const work = node('work', Talk, async (_s, ctx) => {
      await ctx.callModel(scripted([took(1, 1)]), { messages: [], maxTokens: 1_001 })
    })
    const g = graph('g', Talk, { middleware: [budget] })
      .edge(START, work)
      .edge(work, END)
      .check()
    await expect(createRuntime().run(g, {})).rejects.toMatchObject({ code: 'REFUSED' })
  })

  it('estimates what a provider does not count, and says so', async () => {
    const { spends, budget } = telling({ tokensPerTurn: 1_000 })
    const { graph } = asking(2, scripted(['12345678', took(1, 1)]), [budget])
    await createRuntime().run(graph, {})
    // 5 characters were said and 8 answered.
    expect(spends.map(({ call }) => call)).toEqual([
      { tokens: 4, usd: 0, estimated: true },
      { tokens: 2, usd: 0, estimated: false },
    ])
    expect(spends[1]?.turn).toEqual({ tokens: 6, usd: 0, estimated: true })
  })
})

describe('what a budget counts over', () => {
  it('a turn begins anew with the next input, a thread does not', async () => {
    const { spends, budget } = telling({ tokensPerTurn: 100, tokensPerThread: 150 })
    const model = scripted(Array.from({ length: 4 }, () => took(40, 40)))
    const runtime = createRuntime({ store: new MemoryStore() })
    const { made, graph } = asking(1, model, [budget])
    for (const _ of [1, 2, 3]) await runtime.run(graph, {}, T)
    expect(spends.map(({ turn, thread }) => [turn.tokens, thread.tokens])).toEqual([
      [80, 80],
      [80, 160],
    ])
    expect(made[2]).toBe('the budget of 150 tokens in a thread is spent (160 tokens)')
  })

  it('pauses, and another process that has not seen the start', async () => {
    class Gate extends Middleware {
      override beforeTool(ctx: ToolMiddlewareContext) {
        return ctx.answered === undefined ? ctx.suspend({}) : undefined
      }
    }
    const { tools } = numbered('look')
    const store = new MemoryStore()
    const part = (replies: readonly ScriptedReply[]) => {
      const model = scripted(replies)
      return agentGraph({ model, tools, middleware: [new BudgetMiddleware({ tokensPerTurn: 100 }), new Gate()] })
    }
    const { status } = await createRuntime({ store }).run(part([took(60, 60, CALL)]), user('look'), T)
    expect(status).toBe('paused')
    const resumed = createRuntime({ store }).resume(part([took(1, 1)]), 't', true)
    await expect(resumed).rejects.toThrow('the budget of 100 tokens in a turn is spent (120 tokens)')
  })

  it('sub-agents that stand under a budget of the same name', async () => {
    const budget = new BudgetMiddleware({ tokensPerTurn: 100 })
    const agent = agentGraph({ model: scripted([took(60, 60), took(1, 1)]), middleware: [budget] })
    const both = node('both', Talk, async (_s, ctx) => {
      await ctx.run(agent, user('one'))
      await ctx.run(agent, user('two'))
    })
    const g = graph('g', Talk).edge(START, both).edge(both, END).check()
    await expect(createRuntime().run(g, {}, T)).rejects.toThrow('is spent (120 tokens)')
  })

  it('each go at a call: of a wrap around it, of a policy’s retry', async () => {
    const again = middleware({
      name: 'again',
      wrapModel: async (_request, next) => {
        await next()
        return next()
      },
    })
    const wrapped = telling({ tokensPerTurn: 1_000 })
    const one = asking(1, scripted([took(1, 1), took(2, 2)]), [again, wrapped.budget])
    await createRuntime().run(one.graph, {}, T)
    expect(wrapped.spends.at(-1)?.turn.tokens).toBe(6)

    const retried = telling({ tokensPerTurn: 1_000 })
    let left = 1
    const retry = says('Retry', { 'modelCall.after': () => ({ action: left-- > 0 ? 'retry' : 'pass' }) })
    const two = asking(1, scripted([took(1, 1), took(2, 2)]), [retried.budget])
    await createRuntime({ policies: [retry] }).run(two.graph, {}, T)
    expect(retried.spends.at(-1)?.turn.tokens).toBe(6)
  })

  it('a go that a hook after it gave up counts as estimated; a call that failed counts nothing', async () => {
    let left = 1
    const fussy = middleware({ name: 'fussy', afterModel: (ctx) => (left-- > 0 ? ctx.retry() : undefined) })
    const { spends, budget } = telling({ tokensPerTurn: 10_000, outputTokens: 98 })
    const { graph } = asking(1, scripted([took(1, 1), took(2, 2)]), [budget, fussy])
    await createRuntime().run(graph, {}, T)
    expect(spends.at(-1)?.turn).toEqual({ tokens: 104, usd: 0, estimated: true })

    const failed = telling({ tokensPerTurn: 10_000 })
    const calls = asking(2, scripted([new Error('503'), took(2, 2)]), [failed.budget])
    await createRuntime().run(calls.graph, {}, T)
    expect(failed.spends.at(-1)?.turn).toEqual({ tokens: 4, usd: 0, estimated: false })
  })

  it('what a model that a wrap asked instead took, at its own price', async () => {
    const other = scripted([took(1_000_000, 0)], { model: 'gpt-5-mini' })
    const fallback = middleware({ name: 'fallback', wrapModel: (_request, next) => next(undefined, { model: other }) })
    const { spends, budget } = telling({ usdPerTurn: 10 })
    const { graph } = asking(1, scripted([], { model: 'gpt-5' }), [fallback, budget])
    await createRuntime().run(graph, {})
    expect(spends[0]).toMatchObject({ model: 'gpt-5-mini', call: { usd: 0.25 } })
  })

  it('nothing for what was answered without a model', async () => {
    const cached = middleware({
      name: 'cached',
      beforeModel: (ctx) => ctx.answer({ content: 'known', finish_reason: 'stop' }),
    })
    const { spends, budget } = telling({ tokensPerTurn: 10 })
    const { made, graph } = asking(2, scripted([]), [budget, cached])
    await createRuntime().run(graph, {})
    expect(made).toEqual(['known', 'known'])
    expect(spends.at(-1)?.turn.tokens).toBe(0)
  })

  it('what a streamed response took', async () => {
    const { spends, budget } = telling({ tokensPerTurn: 1_000 })
    const agent = agentGraph({ model: scripted([took(3, 4)]), middleware: [budget] })
    for await (const _ of createRuntime().stream(agent, user('hello')));
    expect(spends[0]?.turn.tokens).toBe(7)
  })
})

describe('calls at the same time', () => {
  it('do not slip past: what each may take is set aside before it is made', async () => {
    const gate = open<void>()
    let [asked, most] = [0, 0]
    const model: ChatModel = {
      model: 'slow',
      chat: async () => {
        most = Math.max(most, ++asked)
        await gate.promise
        return { content: 'ok', finish_reason: 'stop', usage: { inputTokens: 1, outputTokens: 99, totalTokens: 100 } }
      },
    }
    const results: string[] = []
    const work = node('work', Talk, async (_s, ctx) => {
      const all = Array.from({ length: 10 }, () =>
        ctx.callModel(model, { messages: [], maxTokens: 100 }).then(
          () => 'ok',
          () => 'refused',
        ),
      )
      while (asked < 3) await new Promise((resolve) => setImmediate(resolve))
      gate.resolve()
      results.push(...(await Promise.all(all)))
    })
    const middleware = [new BudgetMiddleware({ tokensPerTurn: 300, mustFit: true })]
    const g = graph('g', Talk, { middleware }).edge(START, work).edge(work, END).check()
    await createRuntime().run(g, {}, T)
    expect(results.filter((result) => result === 'ok')).toHaveLength(3)
    expect(most).toBe(3)
  })

  it('take no more than the budget, over random calls of known size', async () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 12 })
    await fc.assert(
      fc.asyncProperty(sizes, fc.integer({ min: 1, max: 200 }), async (asks, tokensPerTurn) => {
        const model: ChatModel = {
          model: 'm',
          chat: async ({ maxTokens = 0 }) => {
            await Promise.resolve()
            return {
              content: '',
              finish_reason: 'stop',
              usage: { inputTokens: 0, outputTokens: maxTokens, totalTokens: maxTokens },
            }
          },
        }
        const { spends, budget } = telling({ tokensPerTurn, mustFit: true })
        const work = node('work', Talk, async (_s, ctx) => {
          await Promise.allSettled(asks.map((maxTokens) => ctx.callModel(model, { messages: [], maxTokens })))
        })
        const g = graph('g', Talk, { middleware: [budget] })
          .edge(START, work)
          .edge(work, END)
          .check()
        await createRuntime().run(g, {}, T)
        const spent = spends.at(-1)?.turn.tokens ?? 0
        expect(spent).toBeLessThanOrEqual(tokensPerTurn)
        expect(spent).toBe(spends.reduce((sum, { call }) => sum + call.tokens, 0))
      }),
      { numRuns: 60 },
    )
  })
})

describe('a crash', () => {
  it('forgets nothing that is used and counts it once, whichever write is lost', async () => {
    const look = tool('look', {
      description: 'Looks.',
      input: z.object({ n: z.number() }),
      idempotent: true,
      run: ({ n }) => `looked ${n}`,
    })
    const play = async (nth: number, cut: 'before' | 'after') => {
      const store = new FailingStore({ late: true }).fail(cut, { nth })
      // It answers by what it is asked, for after a crash it may be asked again.
      const rounds = [took(10, 10, CALL), took(20, 20, CALL), took(30, 30)]
      const said = ({ messages }: ChatRequest) => messages.filter(({ role }) => role === 'assistant').length
      const model = scripted(Array.from({ length: 12 }, () => (request) => rounds[said(request)] as ScriptedReply))
      const { spends, budget } = telling({ tokensPerTurn: 100_000 })
      const agent = agentGraph({ model, tools: [look], middleware: [budget] })
      const { status } = await createRuntime({ store }).settle(agent, user('look'), T)
      if (status === 'failed') {
        const { error } = await createRuntime({ store })
          .continue(agent, 't')
          .catch((error) => ({ error }))
        if (error?.code === 'THREAD_UNKNOWN') await createRuntime({ store }).run(agent, user('look'), T)
      }
      return { status, spent: spends.at(-1)?.turn }
    }
    for (const cut of ['before', 'after'] as const) {
      for (let nth = 1; ; nth++) {
        const { status, spent } = await play(nth, cut)
        expect({ cut, nth, spent }).toEqual({ cut, nth, spent: { tokens: 120, usd: 0, estimated: false } })
        if (status !== 'completed') continue
        expect(nth).toBeGreaterThan(8)
        break
      }
    }
  })
})

describe('the options of a budget', () => {
  it.each([
    { name: 'no budget', options: { mustFit: true }, says: 'give a budget, one of tokensPerTurn' },
    { name: 'a budget of nothing', options: { usdPerTurn: 0 }, says: 'usdPerTurn is 0' },
    { name: 'a budget that is no number', options: { tokensPerTurn: '5' }, says: 'tokensPerTurn is 5' },
    {
      name: 'a price below 0',
      options: { usdPerTurn: 1, prices: { m: { input: -1, output: 1 } } },
      says: 'prices["m"].input is -1',
    },
    { name: 'another word', options: { usdPerTurn: 1, unknownModel: 'free' }, says: 'unknownModel is "free"' },
    { name: 'another option', options: { tokens: 5 }, says: 'has no "tokens"' },
  ])('are refused where they are none: $name', ({ options, says: why }) => {
    expect(() => new BudgetMiddleware(options as never)).toThrow(why)
  })
})
