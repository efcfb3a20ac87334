import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Clock } from '../../testing/clock.ts'
import { ASKED, chat, Numbers, runtime, step, told, twoTurns } from '../../testing/hooks.ts'
import {
  createRuntime,
  END,
  GraphExecutionError,
  graph,
  type Json,
  Middleware,
  MiddlewareError,
  middleware,
  type NodeMiddlewareContext,
  node,
  Replacement,
  Said,
  START,
  type StateOf,
  scripted,
  state,
  tool,
} from '../index.ts'

const wordOf = (word: string) => new Said(word as 'replace', 'x')

describe('the order of hooks', () => {
  it('G2, G17: before hooks run in list order, after hooks in reverse, at every place of an agent', async () => {
    const seen: string[] = []
    await runtime.run(chat([told('a', (said) => seen.push(said)), told('b', (said) => seen.push(said))]), ASKED)
    expect(seen).toEqual([
      ...['a.beforeGraph', 'b.beforeGraph', 'a.beforeNode', 'b.beforeNode', 'a.beforeRound', 'b.beforeRound'],
      ...['a.beforeModel', 'b.beforeModel', 'b.afterModel', 'a.afterModel'],
      ...['a.beforeTool', 'b.beforeTool', 'b.afterTool', 'a.afterTool', 'b.afterRound', 'a.afterRound'],
      ...['a.beforeRound', 'b.beforeRound', 'a.beforeModel', 'b.beforeModel', 'b.afterModel', 'a.afterModel'],
      ...['b.afterNode', 'a.afterNode', 'b.afterGraph', 'a.afterGraph', 'b.onRunEnd', 'a.onRunEnd'],
    ])
  })

  it('G2: each hook sees what the ones before it left', async () => {
    const doubled = middleware({
      name: 'double',
      state: Numbers,
      beforeNode: (ctx) => ctx.replace({ ...ctx.state, n: ctx.state.n * 2 }),
      afterNode: (ctx) => ctx.replace({ n: (ctx.state.n as number) * 2 }),
    })
    const plusOne = middleware({
      name: 'plus one',
      state: Numbers,
      beforeNode: (ctx) => ctx.replace({ ...ctx.state, n: ctx.state.n + 1 }),
      afterNode: (ctx) => ctx.replace({ n: (ctx.state.n as number) + 1 }),
    })
    const { state: end } = await runtime.run(step([doubled, plusOne]), { n: 5 })
    expect(end.n).toBe(((5 * 2 + 1 + 1 + 1) as number) * 2)
  })

  it('hooks may promise', async () => {
    const slow = middleware({
      name: 'slow',
      state: Numbers,
      beforeNode: async (ctx) => ctx.replace({ ...ctx.state, n: 10 }),
      afterNode: async (ctx) => ctx.replace({ n: (ctx.state.n as number) * 2 }),
    })
    expect((await runtime.run(step([slow]), { n: 1 })).state.n).toBe(22)
  })
})

describe('a class in TypeScript', () => {
  it('says its state and the run’s context once, and annotates what a hook is given', async () => {
    // #region typed
    const Refund = state({ amount: z.number().default(0) })
    type RefundState = StateOf<typeof Refund>
    interface Caller {
      readonly ceiling: number
    }

    class Ceiling extends Middleware<RefundState, Caller> {
      override beforeNode(ctx: NodeMiddlewareContext<RefundState, Caller>) {
        const { ceiling } = ctx.context
        return ctx.state.amount > ceiling ? ctx.reject(`no refund above ${ceiling}`) : undefined
      }
    }
    // #endregion
    const pay = node('pay', Refund, ({ amount }) => ({ amount: amount + 1 }))
    const refunds = graph('refunds', Refund, { middleware: [new Ceiling()] })
      .edge(START, pay)
      .edge(pay, END)
      .check()
    const run = (amount: number) => runtime.settle(refunds, { amount }, { context: { ceiling: 100 } satisfies Caller })
    expect((await run(50)).state.amount).toBe(51)
    expect((await run(500)).error).toMatchObject({ code: 'REFUSED', reason: 'no refund above 100' })
  })
})

describe('the platform of the runtime', () => {
  it('gives hooks time, chance and hashes', async () => {
    const platform = new Clock()
    const seen: unknown[] = []
    const looks = middleware({
      name: 'looks',
      beforeModel: async (ctx) => void seen.push(ctx.platform.time(), await ctx.platform.sha256('')),
    })
    await createRuntime({ platform }).run(chat([looks], { model: scripted(['done']) }), ASKED)
    expect(seen).toEqual([platform.time(), expect.stringMatching(/^e3b0c442/)])
  })
})

describe('a class whose methods look like hooks', () => {
  it('G1: is refused when its first instance is made, with the nearest hook', () => {
    class Misspelt extends Middleware {
      afterTools() {}
    }
    expect(() => new Misspelt()).toThrow(
      /^Misspelt defines afterTools, which is no hook; did you mean afterTool\? Hooks are: beforeGraph, /,
    )
    expect(() => new Misspelt()).toThrow(TypeError)
  })
  it.each([
    {
      name: 'a static method',
      make: () =>
        class extends Middleware {
          static onErorr() {}
        },
    },
    {
      name: 'a method of a class between',
      make: () => {
        class Between extends Middleware {
          wrapTools() {}
        }
        return class extends Between {}
      },
    },
  ])('G1: $name is looked at too', ({ make }) => {
    const Made = make()
    expect(() => new Made()).toThrow(TypeError)
  })
  it('G1: what is no method, and a helper with another name, is nobody’s business', async () => {
    class Fine extends Middleware {
      readonly onSale = true
      _before_x() {}
      once() {}
    }
    expect((await runtime.run(step([new Fine()]), { n: 1 })).state.n).toBe(2)
  })
  it.each([
    ['before_node', 'beforeNode'],
    ['wrapToolCall', 'wrapTool'],
    ['wrapModelCall', 'wrapModel'],
    ['beforeAgent', 'beforeGraph'],
    ['onNodeError', 'onError'],
  ])('%s, as it is called elsewhere, leads to %s', (there, here) => {
    expect(() => middleware({ name: 'm', ...{ [there]() {} } })).toThrow(`did you mean ${here}?`)
  })
  it('in the function form a misspelt hook is refused as well', () => {
    expect(() => middleware({ name: 'm', ...{ beforeTols() {} } })).toThrow(
      /^m defines beforeTols, which is no hook; did you mean beforeTool\?/,
    )
    expect(() => middleware({ name: 'm', ...{ beforeTool: 1 as never } })).toThrow(
      'middleware "m" gives a beforeTool that is no function.',
    )
  })
  it('a hook may be an arrow function of the class', async () => {
    class Arrow extends Middleware<{ n: number }> {
      override beforeNode = (ctx: NodeMiddlewareContext<{ n: number }>) => ctx.replace({ ...ctx.state, n: 7 })
    }
    expect((await runtime.run(step([new Arrow()]), { n: 1 })).state.n).toBe(8)
  })
  it('G36: what is no middleware is refused where the graph is made', () => {
    expect(() => graph('g', Numbers, { middleware: [{ beforeNode() {} } as never] })).toThrow(
      new TypeError('middleware 0 is an object and no middleware; extend Middleware, or use middleware({ … }).'),
    )
  })

  it.each([
    {
      name: 'a scope of what is kept',
      says: 'keeps for "run"; kept.scope is one of: turn, thread',
      it: { kept: { scope: 'run', schema: z.object({}) } },
    },
    {
      name: 'what is kept, without a schema,',
      says: 'declares kept without a schema',
      it: { kept: { scope: 'turn' } },
    },
    { name: 'a stream gate', says: 'declares stream: "block"; give', it: { stream: 'block' } },
    { name: 'a stream gate, a number,', says: 'declares stream: a number', it: { stream: 200 } },
  ])(
    '$name that is none is refused where it is made, and a field of a class where a graph takes it',
    ({ says, it }) => {
      expect(() => middleware({ name: 'odd', ...(it as object) })).toThrow(says)
      expect(() => middleware({ name: 'odd', ...(it as object) })).toThrow(TypeError)
      class Odd extends Middleware {}
      expect(() => step([Object.assign(new Odd(), it)])).toThrow(says)
    },
  )

  it('is looked at once more where a graph takes it: a field may look like a hook, too', () => {
    class Odd extends Middleware {
      afterTools = () => undefined
    }
    expect(() => step([new Odd()])).toThrow('Odd defines afterTools, which is no hook; did you mean afterTool?')
  })
})

describe('what hooks may return', () => {
  it.each([
    { hook: 'beforeNode', returned: { n: 1 }, says: 'an object' },
    { hook: 'afterNode', returned: 5, says: 'a number' },
    { hook: 'beforeModel', returned: null, says: 'null' },
    { hook: 'afterModel', returned: [], says: 'a list' },
    { hook: 'beforeTool', returned: 'no', says: 'a string' },
    { hook: 'afterTool', returned: true, says: 'a boolean' },
    { hook: 'beforeGraph', returned: 1, says: 'a number' },
    { hook: 'afterGraph', returned: {}, says: 'an object' },
    { hook: 'onRunEnd', returned: 'x', says: 'a string' },
  ])('G3: $hook that returns $says ends the run with a TypeError', async ({ hook, returned, says }) => {
    for (const value of [returned, Promise.resolve(returned)]) {
      const { status, error } = await runtime.settle(chat([middleware({ name: 'Odd', [hook]: () => value })]), ASKED)
      expect(status).toBe('failed')
      expect(error).toBeInstanceOf(TypeError)
      expect((error as Error).message).toContain(`Odd.${hook} returned ${says}; it may return `)
    }
  })

  it('G5: a graph hook that says something ends the run with a GraphExecutionError, and no node has run', async () => {
    const seen: number[] = []
    const odd = middleware({ name: 'Odd', beforeGraph: () => new Replacement({ n: 1 }) as never })
    const { status, error } = await runtime.settle(
      step([odd], (n) => ({ n: seen.push(n) })),
      { n: 1 },
      { thread: 'g5' },
    )
    expect(status).toBe('failed')
    expect(error).toBeInstanceOf(GraphExecutionError)
    expect(error).toMatchObject({
      code: 'HOOK_RETURN',
      message: 'Odd.beforeGraph returned ctx.replace(…); it may return nothing.',
    })
    expect(seen).toEqual([])
    expect(await runtime.store.lines('g5')).toEqual([])
  })

  it('G4: null is a value like any other', async () => {
    const nullish = middleware({ name: 'nullish', afterTool: (ctx) => ctx.replace(null) })
    const model = twoTurns()
    const any = tool('echo', { description: 'x', input: z.object({ text: z.string() }), run: ({ text }): Json => text })
    await runtime.run(chat([nullish], { model, tools: [any] }), ASKED)
    expect(model.requests[1]?.messages.at(-1)).toMatchObject({ role: 'tool', content: 'null' })
  })

  it.each([
    { hook: 'afterTool', word: 'answer' },
    { hook: 'beforeRound', word: 'replace' },
    { hook: 'beforeTool', word: 'retry' },
    { hook: 'afterNode', word: 'reject' },
  ])('a word that $hook may not say, $word, is refused by name', async ({ hook, word }) => {
    const odd = middleware({
      name: 'Odd',
      [hook]: (ctx: { [word: string]: (with_: unknown) => unknown }) =>
        ctx[word] === undefined ? wordOf(word) : ctx[word](word === 'retry' ? {} : 'x'),
    })
    const { error } = await runtime.settle(chat([odd]), ASKED)
    expect(error).toBeInstanceOf(GraphExecutionError)
    expect((error as Error).message).toMatch(new RegExp(`^Odd\\.${hook} returned ctx\\.${word}\\(…\\); it may return `))
  })

  it('G19: a value in place of a request or a response is checked, and the failure is the middleware’s', async () => {
    for (const hook of ['beforeModel', 'afterModel'] as const) {
      const odd = middleware({
        name: 'Odd',
        [hook]: (ctx: { replace(v: unknown): unknown }) => ctx.replace({ nonsense: 1 }),
      })
      const { error } = await runtime.settle(chat([odd]), ASKED)
      expect(error).toBeInstanceOf(MiddlewareError)
      expect(error).toMatchObject({ code: 'MIDDLEWARE_FAILED', at: { middleware: 'Odd', hook } })
    }
  })
})
