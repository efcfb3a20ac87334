import { describe, expect, it } from 'vitest'
import { Clock } from '../../testing/clock.ts'
import { failing, Numbers, runtime, step, told } from '../../testing/hooks.ts'
import { command, createRuntime, END, graph, MiddlewareError, middleware, node, START } from '../index.ts'

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
      message: 'middleware "Odd" failed at node.before (beforeNode) of node "step": boom.',
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
