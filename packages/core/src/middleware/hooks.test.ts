import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Clock } from '../../testing/clock.ts'
import {
  agentNode,
  append,
  type ChatRequest,
  command,
  createRuntime,
  END,
  GraphExecutionError,
  graph,
  graphNode,
  type Json,
  Middleware,
  MiddlewareError,
  messages,
  middleware,
  modelNode,
  type NodeMiddlewareContext,
  node,
  RefusedError,
  Replacement,
  Said,
  START,
  type StateOf,
  scripted,
  state,
  ToolDeniedError,
  tool,
} from '../index.ts'

const Chat = state({ messages: messages(), log: append(z.string()) })

const echo = tool('echo', {
  description: 'Says it again.',
  input: z.object({ text: z.string() }),
  run: ({ text }) => text,
})

const twoTurns = () => scripted([{ tool_calls: [{ name: 'echo', arguments: { text: 'hello' } }] }, 'done'])

function chat(own: readonly Middleware[], { model = twoTurns(), tools = [echo] } = {}) {
  const think = agentNode('think', Chat, { model, tools })
  return graph('chat', Chat, { middleware: own }).edge(START, think).edge(think, END).check()
}

const ASKED = { messages: [{ role: 'user', content: 'say hello' }] } as const

const Numbers = state({ n: z.number().default(0), log: append(z.string()) })

/** A graph of one node, `step`, which adds 1 and writes down what it saw. */
function step(own: readonly Middleware[], run?: (n: number) => object) {
  const add = node('step', Numbers, ({ n }) => (run?.(n) ?? { n: n + 1, log: [`saw ${n}`] }) as { n: number })
  return graph('numbers', Numbers, { middleware: own }).edge(START, add).edge(add, END).check()
}

const runtime = createRuntime()

const wordOf = (word: string) => new Said(word as 'replace', 'x')

const failing = () => {
  throw new Error('the step fails')
}

/** Every hook, in both forms the same: it is told which hook it is. */
const told = (name: string, tell: (said: string) => void) =>
  middleware({
    name,
    beforeGraph: () => void tell(`${name}.beforeGraph`),
    afterGraph: () => void tell(`${name}.afterGraph`),
    onRunEnd: () => void tell(`${name}.onRunEnd`),
    beforeNode: () => void tell(`${name}.beforeNode`),
    afterNode: () => void tell(`${name}.afterNode`),
    beforeRound: () => void tell(`${name}.beforeRound`),
    afterRound: () => void tell(`${name}.afterRound`),
    beforeModel: () => void tell(`${name}.beforeModel`),
    afterModel: () => void tell(`${name}.afterModel`),
    beforeTool: () => void tell(`${name}.beforeTool`),
    afterTool: () => void tell(`${name}.afterTool`),
  })

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

describe('graph hooks', () => {
  it('G6: see the state and cannot change it', async () => {
    const seen: unknown[] = []
    const watch = middleware({
      name: 'watch',
      state: Numbers,
      beforeGraph: (ctx) => {
        seen.push(ctx.state)
        expect(() => Object.assign(ctx.state as object, { n: 99 })).toThrow(TypeError)
      },
      afterGraph: (ctx) => void seen.push(ctx.state),
    })
    const { state: end } = await runtime.run(step([watch]), { n: 1 })
    expect(seen).toEqual([
      { n: 1, log: [] },
      { n: 2, log: ['saw 1'] },
    ])
    expect(end.n).toBe(2)
  })

  it('G7: on a resume beforeGraph is told, before the node runs again; afterGraph comes at completion', async () => {
    const seen: string[] = []
    const watch = middleware({
      name: 'watch',
      beforeGraph: (ctx) => void seen.push(`beforeGraph ${ctx.resuming}`),
      afterGraph: () => void seen.push('afterGraph'),
      beforeNode: () => void seen.push('beforeNode'),
    })
    const asks = node('asks', Numbers, async (_, ctx) => ({ n: (await ctx.ask('how', 'How many?')) as number }))
    const made = graph('asking', Numbers, { middleware: [watch] })
      .edge(START, asks)
      .edge(asks, END)
      .check()
    const own = createRuntime()
    expect((await own.run(made, {}, { thread: 't' })).status).toBe('paused')
    expect(seen).toEqual(['beforeGraph false', 'beforeNode'])
    await own.resume(made, 't', 3)
    expect(seen.slice(2)).toEqual(['beforeGraph true', 'beforeNode', 'afterGraph'])
  })
})

describe('node hooks', () => {
  it('G8, G9: what beforeNode puts in place reaches the node alone; it is not stored', async () => {
    const inject = middleware({
      name: 'inject',
      state: Numbers,
      beforeNode: (ctx) => ctx.replace({ ...ctx.state, n: 100, log: [...ctx.state.log, 'injected'] }),
    })
    const { state: end } = await runtime.run(
      step([inject], (n) => ({ log: [`saw ${n}`] })),
      { n: 1 },
    )
    expect(end).toEqual({ n: 1, log: ['saw 100'] })
  })

  it('G9: an input cannot be changed in place', async () => {
    const odd = middleware({
      name: 'odd',
      beforeNode: (ctx) => {
        ctx.state.n = 5
      },
    })
    const { error } = await runtime.settle(step([odd]), { n: 1 })
    expect(error).toMatchObject({ code: 'MIDDLEWARE_FAILED', cause: expect.any(TypeError) })
  })

  it('G10: state shows the replacement, storedState what was stored', async () => {
    const seen: unknown[] = []
    const first = middleware({
      name: 'first',
      state: Numbers,
      beforeNode: (ctx) => ctx.replace({ ...ctx.state, n: 50 }),
    })
    const second = middleware({
      name: 'second',
      state: Numbers,
      beforeNode: (ctx) => void seen.push(ctx.state.n, ctx.storedState.n),
    })
    await runtime.run(step([first, second]), { n: 1 })
    expect(seen).toEqual([50, 1])
  })

  it('G11: scratch is shared by the hooks of one execution, of all middleware', async () => {
    const seen: unknown[] = []
    const writes = middleware({
      name: 'writes',
      beforeNode: (ctx) => void Object.assign(ctx.scratch, { at: ctx.taskId }),
    })
    const reads = middleware({ name: 'reads', afterNode: (ctx) => void seen.push({ ...ctx.scratch }) })
    await runtime.run(step([writes, reads]), { n: 1 })
    expect(seen).toEqual([{ at: 'step' }])
  })

  it('G12, G13: onError recovers with what a node may return; the first wins, and after hooks see it', async () => {
    const seen: unknown[] = []
    const passes = middleware({ name: 'passes', onError: (_, error) => void seen.push(error.message) })
    const saves = middleware({
      name: 'saves',
      state: Numbers,
      onError: (ctx) => ({ n: ctx.state.n + 10 }),
      afterNode: (ctx) => void seen.push(ctx.state),
    })
    const late = middleware({ name: 'late', onError: () => void seen.push('late') })
    const { state: end, warnings } = await runtime.run(step([passes, saves, late], failing), { n: 1 })
    expect(end).toEqual({ n: 11, log: [] })
    expect(seen).toEqual(['the step fails', { n: 11 }])
    expect(warnings).toMatchObject([
      {
        middleware: 'saves',
        seam: 'nodeError',
        message: 'middleware "saves" supplied a result for node "step"; it had failed: the step fails',
      },
    ])
  })

  it('G13: the state as it was received is no change', async () => {
    const same = middleware({ name: 'same', state: Numbers, onError: (ctx) => ctx.state })
    expect((await runtime.run(step([same], failing), { n: 1, log: ['once'] })).state).toEqual({ n: 1, log: ['once'] })
  })

  it('onError may route, as a node may', async () => {
    const other = node('other', Numbers, () => ({ log: ['other'] }))
    const breaks = node('breaks', Numbers, failing, { goto: [other] })
    const saves = middleware({ name: 'saves', onError: () => command({ update: { n: 5 }, goto: other }) })
    const made = graph('routes', Numbers, { middleware: [saves] })
      .edge(START, breaks)
      .edge(other, END)
      .check()
    expect((await runtime.run(made, {})).state).toEqual({ n: 5, log: ['other'] })
  })

  it('a node that chose its way keeps it when afterNode puts another update in place', async () => {
    const other = node('other', Numbers, ({ n }) => ({ log: [`other saw ${n}`] }))
    const chooses = node('chooses', Numbers, () => command({ update: { n: 1 }, goto: other }), { goto: [other, END] })
    const edits = middleware({
      name: 'edits',
      afterNode: (ctx) => (ctx.nodeName === 'chooses' ? ctx.replace({ n: 9 }) : undefined),
    })
    const made = graph('routes', Numbers, { middleware: [edits] })
      .edge(START, chooses)
      .edge(other, END)
      .check()
    expect((await runtime.run(made, {})).state.log).toEqual(['other saw 9'])
  })

  it('G15: a beforeNode that throws ends the run; the node does not run', async () => {
    const ran: number[] = []
    const boom = new Error('boom')
    const odd = middleware({
      name: 'Odd',
      beforeNode: () => {
        throw boom
      },
    })
    const { status, error } = await runtime.settle(
      step([odd], (n) => ({ n: ran.push(n) })),
      { n: 1 },
    )
    expect(status).toBe('failed')
    expect(error).toBeInstanceOf(MiddlewareError)
    expect(error).toMatchObject({
      message: 'middleware "Odd" failed at node.before of node "step": boom.',
      at: { middleware: 'Odd', hook: 'beforeNode', seam: 'node', half: 'before', node: 'step' },
    })
    expect((error as Error).cause).toBe(boom)
    expect(ran).toEqual([])
  })

  it('answer stands in for the node: later hooks on the way in do not run, its own and earlier ones on the way out do', async () => {
    const seen: string[] = []
    const ran: number[] = []
    const first = told('first', (said) => seen.push(said))
    const answers = middleware({
      name: 'answers',
      beforeNode: (ctx) => ctx.answer({ n: 40 }),
      afterNode: (ctx) => {
        seen.push('answers.afterNode')
        return ctx.replace({ n: ctx.state.n + 2 })
      },
    })
    const last = told('last', (said) => seen.push(said))
    const { state: end } = await runtime.run(
      step([first, answers, last], (n) => ({ n: ran.push(n) })),
      {},
    )
    expect(end.n).toBe(42)
    expect(ran).toEqual([])
    expect(seen.filter((said) => said.includes('Node'))).toEqual([
      'first.beforeNode',
      'answers.afterNode',
      'first.afterNode',
    ])
  })

  it('reject and fail end the run', async () => {
    for (const [hook, code] of [
      ['beforeNode', 'REFUSED'],
      ['afterNode', 'FAILED_BY_MIDDLEWARE'],
    ] as const) {
      const odd = middleware({
        name: 'Odd',
        [hook]: (ctx: { reject(why: string): unknown; fail(why: string): unknown }) =>
          hook === 'beforeNode' ? ctx.reject('not today') : ctx.fail('not today'),
      })
      const { status, error } = await runtime.settle(step([odd]), {})
      expect(status).toBe('failed')
      expect(error).toMatchObject({ code, at: { middleware: 'Odd', hook } })
      expect((error as Error).message).toContain('not today')
    }
  })

  it('onError may have the node run again, with a fresh scratch, as often as the runtime allows', async () => {
    const scratches: unknown[] = []
    let goes = 0
    const again = middleware({
      name: 'again',
      beforeNode: (ctx) => {
        scratches.push({ ...ctx.scratch, attempt: ctx.attempt })
        ctx.scratch.used = true
      },
      onError: (ctx) => ctx.retry(),
    })
    const { state: end, counts } = await runtime.run(
      step([again], (n) => (++goes < 3 ? failing() : { n: n + 1 })),
      { n: 1 },
    )
    expect(end.n).toBe(2)
    expect(scratches).toEqual([{ attempt: 1 }, { attempt: 2 }, { attempt: 3 }])
    expect(counts.retries).toBe(2)
    goes = -10
    const { error, warnings } = await runtime.settle(step([again], failing), {})
    expect((error as Error).message).toBe('the step fails')
    expect(warnings.at(-1)?.message).toContain('asked for a retry of node "step", which is refused: attempt 3 of 3')
  })

  it.each([
    {
      hook: 'onError',
      own: middleware({
        name: 'patient',
        onError: async (ctx) => {
          await ctx.wait(1_000)
          return { n: ctx.signal.aborted ? -1 : 5 }
        },
      }),
    },
    {
      hook: 'wrapNode, after a next that failed,',
      own: middleware({
        name: 'patient',
        wrapNode: async (_, next, ctx) => {
          await next()
          await ctx.wait(1_000)
          return { ok: true, value: { n: ctx.signal.aborted ? -1 : 5 } }
        },
      }),
    },
  ])('$hook may wait, though the execution that failed is over', async ({ own }) => {
    const clock = new Clock()
    const fails = node('step', Numbers, (_, ctx) => {
      expect(ctx.signal.aborted).toBe(false)
      throw new Error('no')
    })
    const made = graph('numbers', Numbers, { middleware: [own] })
      .edge(START, fails)
      .edge(fails, END)
      .check()
    const outcome = createRuntime({ platform: clock }).settle(made, {})
    await clock.pass(1_000)
    expect(await outcome).toMatchObject({ status: 'completed', state: { n: 5 } })
  })

  it('a node whose beforeNode asks, and is answered at once, is announced once', async () => {
    const asks = middleware({
      name: 'asks',
      beforeNode: (ctx) => (ctx.answered === undefined ? ctx.suspend({ question: 'may it?' }) : undefined),
    })
    const answers = middleware({ name: 'answers', onInterrupt: () => true })
    const seen: string[] = []
    for await (const { type } of runtime.stream(step([asks, answers]), {}, { thread: 'announced once' }))
      seen.push(type)
    expect(seen.filter((type) => type === 'node_start')).toHaveLength(1)
  })

  it('a result of a hook is no route: where no edge leads on, the error names the middleware', async () => {
    const other = node('other', Numbers, () => ({}))
    const routes = node('step', Numbers, () => command({ goto: other }), { goto: ['other'] })
    const own = middleware({
      name: 'own',
      beforeNode: (ctx) => (ctx.nodeName === 'step' ? ctx.answer({ n: 1 }) : undefined),
    })
    const made = graph('routes', Numbers, { middleware: [own] })
      .edge(START, routes)
      .edge(other, END)
      .check()
    const { error } = await runtime.settle(made, {})
    expect((error as Error).message).toContain('middleware "own" supplied its result, and a result is not a route')
  })

  it('onError recovers a node that had started sub-agents, which end with it', async () => {
    const seen: unknown[] = []
    const agent = step([], () => new Promise<object>(() => undefined))
    const fails = node('step', Numbers, (_, ctx) => {
      ctx.signal.addEventListener('abort', () => seen.push('over'))
      ctx.spawn([{ graph: agent, input: {} }])
      throw new Error('no')
    })
    const mends = middleware({ name: 'mends', onError: () => ({ n: 5 }) })
    const made = graph('spawns', Numbers, { middleware: [mends] })
      .edge(START, fails)
      .edge(fails, END)
      .check()
    expect(await runtime.settle(made, {})).toMatchObject({ status: 'completed', state: { n: 5 } })
    expect(seen).toEqual(['over'])
  })

  it('D13, D14: a time-out of the node, and an error of its own that is called so, reach onError as they are', async () => {
    const seen: unknown[] = []
    const watch = middleware({ name: 'watch', onError: (_, error) => void seen.push(error) })
    const own = Object.assign(new Error('timed out on its own'), { name: 'TimeoutError' })
    const { error: first } = await runtime.settle(
      step([watch], () => {
        throw own
      }),
      {},
    )
    const slow = node('slow', Numbers, () => new Promise<never>(() => undefined), { timeoutMs: 1 })
    const made = graph('slow', Numbers, { middleware: [watch] })
      .edge(START, slow)
      .edge(slow, END)
      .check()
    const { error: second } = await runtime.settle(made, {})
    expect(first).toBe(own)
    expect(second).toMatchObject({ code: 'NODE_TIMED_OUT' })
    expect(seen).toEqual([own, second])
  })
})

describe('model hooks', () => {
  it('G18: the model gets the request that beforeModel put in place; nothing of it is stored', async () => {
    const model = scripted(['hello'])
    const think = modelNode('think', Chat, { model })
    const prompt = middleware({
      name: 'prompt',
      beforeModel: (ctx) =>
        ctx.replace({ messages: [{ role: 'system', content: 'Be brief.' }, ...ctx.request.messages] }),
    })
    const made = graph('one', Chat, { middleware: [prompt] })
      .edge(START, think)
      .edge(think, END)
      .check()
    const { state: end } = await runtime.run(made, ASKED)
    expect(model.requests[0]?.messages.map(({ role }) => role)).toEqual(['system', 'user'])
    expect(end.messages.map(({ role }) => role)).toEqual(['user', 'assistant'])
  })

  it('G20: ctx.model is the name that was asked for; afterModel sees what was sent and what came', async () => {
    const seen: unknown[] = []
    const watch = middleware({
      name: 'watch',
      beforeModel: (ctx) => void seen.push([ctx.model, ctx.response]),
      afterModel: (ctx) => void seen.push([ctx.model, ctx.request.messages.length, ctx.response.content, ctx.round]),
    })
    await runtime.run(chat([watch], { model: scripted(['hi'], { model: 'gpt-x' }) }), ASKED)
    expect(seen).toEqual([
      ['gpt-x', undefined],
      ['gpt-x', 1, 'hi', 1],
    ])
  })

  it('a response is put in place after the call, or instead of it', async () => {
    const model = scripted(['secret'])
    const hides = middleware({
      name: 'hides',
      afterModel: (ctx) => ctx.replace({ ...ctx.response, content: ctx.response.content.replace('secret', '…') }),
    })
    expect((await runtime.run(chat([hides], { model }), ASKED)).state.messages.at(-1)?.content).toBe('…')
    const answers = middleware({ name: 'answers', beforeModel: (ctx) => ctx.answer({ content: 'from the cache' }) })
    const unasked = scripted([])
    expect((await runtime.run(chat([answers], { model: unasked }), ASKED)).state.messages.at(-1)?.content).toBe(
      'from the cache',
    )
    expect(unasked.requests).toEqual([])
  })

  it('a refused call fails the node, which may catch that', async () => {
    const refuses = middleware({ name: 'refuses', beforeModel: (ctx) => ctx.reject('the budget is spent') })
    const { error } = await runtime.settle(chat([refuses]), ASKED)
    expect(error).toBeInstanceOf(RefusedError)
    expect(error).toMatchObject({ reason: 'the budget is spent', at: { middleware: 'refuses', seam: 'modelCall' } })
  })

  it('onModelError recovers a call, or has it made again', async () => {
    const down = new Error('503 Service Unavailable: later')
    const recovers = middleware({ name: 'recovers', onModelError: () => ({ content: 'sorry', finish_reason: 'stop' }) })
    expect(
      (await runtime.run(chat([recovers], { model: scripted([down]) }), ASKED)).state.messages.at(-1)?.content,
    ).toBe('sorry')
    const attempts: number[] = []
    const again = middleware({
      name: 'again',
      beforeModel: (ctx) => void attempts.push(ctx.attempt),
      onModelError: (ctx) => ctx.retry(),
    })
    const model = scripted([down, down, 'there'])
    expect((await runtime.run(chat([again], { model }), ASKED)).state.messages.at(-1)?.content).toBe('there')
    expect(attempts).toEqual([1, 2, 3])
  })

  it('afterModel may have an answer that will not do made again', async () => {
    const strict = middleware({
      name: 'strict',
      afterModel: (ctx) => (ctx.response.content === 'good' ? undefined : ctx.retry()),
    })
    const { state: end } = await runtime.run(chat([strict], { model: scripted(['bad', 'good']) }), ASKED)
    expect(end.messages.at(-1)?.content).toBe('good')
  })
})

describe('tool hooks', () => {
  it('G21: arguments that do not fit are the call’s error, and the tool does not run', async () => {
    const ran: string[] = []
    const logs = tool('echo', {
      description: 'x',
      input: z.object({ text: z.string() }),
      run: ({ text }) => void ran.push(text),
    })
    const odd = middleware({ name: 'odd', beforeTool: (ctx) => ctx.replace({ text: 5 }) })
    const model = twoTurns()
    await runtime.run(chat([odd], { model, tools: [logs] }), ASKED)
    expect(model.requests[1]?.messages.at(-1)?.content).toMatch(/^Error: invalid arguments for tool "echo"/)
    expect(ran).toEqual([])
  })

  it('G22: the tool runs with the arguments that were put in place; what the model asked for stands as it was', async () => {
    const model = twoTurns()
    const shouts = middleware({
      name: 'shouts',
      beforeTool: (ctx) => ctx.replace({ text: String((ctx.value as { text: string }).text).toUpperCase() }),
    })
    const { state: end } = await runtime.run(chat([shouts], { model }), ASKED)
    expect(end.messages.find(({ role }) => role === 'tool')?.content).toBe('HELLO')
    expect(end.messages.find(({ tool_calls }) => tool_calls)?.tool_calls?.[0]?.arguments).toBe('{"text":"hello"}')
  })

  it.each([
    { name: 'ctx.reject', beforeTool: (ctx: { reject(why: string): never }) => ctx.reject('no mail at night') },
    {
      name: 'ToolDeniedError',
      beforeTool: () => {
        throw new ToolDeniedError('echo', 'no mail at night')
      },
    },
  ])('G25: a call denied by $name is answered with the reason, and no observer is told', async ({ beforeTool }) => {
    const model = twoTurns()
    const observed: unknown[] = []
    const denies = middleware({
      name: 'denies',
      beforeTool: beforeTool as never,
      onToolError: (_, error) => void observed.push(error),
    })
    await runtime.run(chat([denies], { model }), ASKED)
    expect(model.requests[1]?.messages.at(-1)).toMatchObject({ role: 'tool', content: 'Refused: no mail at night' })
    expect(observed).toEqual([])
  })

  it('G23, G24, G26: observers are told of a failure in reverse order; what they throw or return is a note', async () => {
    const seen: string[] = []
    const breaks = tool('echo', { description: 'x', input: z.object({ text: z.string() }), run: () => failing() })
    const watch = (name: string, then: () => unknown) =>
      middleware({
        name,
        onToolError: ((_: unknown, error: Error) => {
          seen.push(`${name}: ${error.message}`)
          return then()
        }) as never,
      })
    const {
      notes,
      warnings,
      state: end,
    } = await runtime.run(
      chat(
        [
          watch('a', () => undefined),
          watch('b', () => 5),
          watch('c', () => new Replacement('x')),
          watch('d', () => {
            throw new Error('it breaks too')
          }),
        ],
        { tools: [breaks] },
      ),
      ASKED,
    )
    expect(seen).toEqual(['d', 'c', 'b', 'a'].map((name) => `${name}: the step fails`))
    expect(notes).toEqual([
      'd.onToolError raised Error: it breaks too',
      'c.onToolError raised GraphExecutionError: c.onToolError returned ctx.replace(…); it may return nothing.',
      'b.onToolError raised TypeError: b.onToolError returned a number; it may return nothing.',
    ])
    expect(warnings).toHaveLength(3)
    expect(end.messages.find(({ role }) => role === 'tool')?.content).toBe('Error: the step fails')
  })

  it('a result is put in place, refused to the model, or ends the run', async () => {
    const asked = (own: Middleware) => {
      const model = twoTurns()
      return runtime.settle(chat([own], { model }), ASKED).then(({ status, error }) => ({
        said: model.requests[1]?.messages.at(-1)?.content,
        status,
        error,
      }))
    }
    expect(await asked(middleware({ name: 'm', afterTool: (ctx) => ctx.replace('[redacted]') }))).toMatchObject({
      said: '[redacted]',
    })
    expect(await asked(middleware({ name: 'm', afterTool: (ctx) => ctx.reject('it has a secret') }))).toMatchObject({
      said: 'Refused: it has a secret',
    })
    expect(await asked(middleware({ name: 'm', afterTool: (ctx) => ctx.fail('it has a secret') }))).toMatchObject({
      said: undefined,
      status: 'failed',
      error: { code: 'FAILED_BY_MIDDLEWARE' },
    })
    expect(await asked(middleware({ name: 'm', beforeTool: (ctx) => ctx.answer('played') }))).toMatchObject({
      said: 'played',
    })
  })
})

describe('round hooks', () => {
  it('afterRound knows the tools that ran; beforeRound may end the agent', async () => {
    const seen: unknown[] = []
    const counts = middleware({
      name: 'counts',
      beforeRound: (ctx) => (ctx.round > 1 ? ctx.reject(`${ctx.maxRounds} are too many`) : undefined),
      afterRound: (ctx) => void seen.push([ctx.round, ctx.toolCalls]),
    })
    const { error } = await runtime.settle(chat([counts]), ASKED)
    expect(seen).toEqual([[1, ['echo']]])
    expect(error).toMatchObject({ code: 'REFUSED', reason: '10 are too many', at: { seam: 'agentRound', round: 2 } })
  })
})

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

describe('wraps', () => {
  it('exchange outcomes: an error is the very object, a result may be another', async () => {
    const seen: unknown[] = []
    const boom = new Error('boom')
    const watch = middleware({
      name: 'watch',
      wrapNode: async (input, next) => {
        const outcome = await next(input)
        seen.push(outcome)
        return outcome
      },
    })
    const { error } = await runtime.settle(
      step([watch], () => {
        throw boom
      }),
      {},
    )
    expect(error).toBe(boom)
    expect(seen).toEqual([{ ok: false, error: boom }])
    const other = middleware({
      name: 'other',
      wrapTool: async (args, next) => {
        const outcome = await next({ ...args, text: 'changed' })
        return outcome.ok ? { ok: true, value: `${outcome.value}!` } : outcome
      },
    })
    const model = twoTurns()
    await runtime.run(chat([other], { model }), ASKED)
    expect(model.requests[1]?.messages.at(-1)?.content).toBe('changed!')
  })

  it('what is no outcome ends the run with a TypeError', async () => {
    const odd = middleware({ name: 'odd', wrapModel: (async () => 'hello') as never })
    const { error } = await runtime.settle(chat([odd]), ASKED)
    expect(error).toBeInstanceOf(TypeError)
    expect((error as Error).message).toBe(
      'odd.wrapModel returned a string; a wrap returns an outcome: what next() gave, { ok: true, value } or { ok: false, error }.',
    )
  })

  it('next may name another model, and another one again', async () => {
    const [first, second] = [scripted([new Error('down')]), scripted(['hi from the second'], { model: 'second' })]
    const third = scripted(['hi from the third'], { model: 'third' })
    const here = createRuntime({ models: (name) => (name === 'third' ? third : undefined) })
    const falls = (to: Partial<ChatRequest>, options?: { model: typeof second }) =>
      middleware({
        name: 'falls',
        wrapModel: async (request, next) => {
          const outcome = await next(request)
          return outcome.ok ? outcome : next(to, options)
        },
      })
    const said = async (own: Middleware, model = first) =>
      (await here.run(chat([own], { model }), ASKED)).state.messages.at(-1)?.content
    expect(await said(falls({}, { model: second }))).toBe('hi from the second')
    expect(second.requests[0]?.model).toBe('second')
    expect(await said(falls({ model: 'third' }), scripted([new Error('down')]))).toBe('hi from the third')
  })

  it('a signal ends that trip alone', async () => {
    const hangs = tool('echo', {
      description: 'x',
      input: z.object({ text: z.string() }),
      run: ({ text }) => (text === 'hello' ? new Promise<string>(() => undefined) : text),
    })
    const limits = middleware({
      name: 'limits',
      wrapTool: async (args, next) => {
        const controller = new AbortController()
        const first = next(args, { signal: controller.signal })
        controller.abort(new Error('timed out'))
        const outcome = await first
        expect(outcome).toEqual({ ok: false, error: new Error('timed out') })
        return next({ text: 'shorter' })
      },
    })
    const model = twoTurns()
    await runtime.run(chat([limits], { model, tools: [hangs] }), ASKED)
    expect(model.requests[1]?.messages.at(-1)?.content).toBe('shorter')
  })

  it.each([
    { ended: 'by the signal of its trip', bound: {}, own: true },
    { ended: 'by its own time', bound: { timeoutMs: 1_000 }, own: false },
  ])('a run that a tool has started ends with the tool: $ended', async ({ bound, own }) => {
    const clock = new Clock()
    const ends: string[] = []
    const watch = middleware({ name: 'watch', onRunEnd: (_, { status }) => void ends.push(status) })
    const child = step([watch], () => new Promise<object>(() => undefined))
    const starts = tool('echo', {
      description: 'x',
      input: z.object({ text: z.string() }),
      ...bound,
      run: async (_, ctx) => String((await ctx.run(child, {})).n),
    })
    const limits = middleware({
      name: 'limits',
      wrapTool: (args, next, ctx) =>
        own ? ctx.within(1_000, 'the tool', (signal) => next(args, { signal })) : next(args),
    })
    const model = twoTurns()
    const running = createRuntime({ platform: clock }).run(chat([limits], { model, tools: [starts] }), ASKED)
    await clock.pass(1_000)
    await running
    expect(model.requests[1]?.messages.at(-1)?.content).toMatch(/timed out after 1000 ms/)
    expect(ends).toEqual(['cancelled'])
  })

  it('only a model call may be sent to another model, and the compiler knows', async () => {
    const odd = middleware({
      name: 'odd',
      // @ts-expect-error a tool call has no model
      wrapTool: (args, next) => next(args, { model: scripted([]) }),
    })
    const { status } = await runtime.settle(chat([odd]), ASKED)
    expect(status).toBe('completed')
  })
})
