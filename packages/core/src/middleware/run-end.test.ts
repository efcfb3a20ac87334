import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Clock } from '../../testing/clock.ts'
import {
  command,
  createRuntime,
  END,
  graph,
  graphNode,
  Middleware,
  type MiddlewareError,
  middleware,
  type NodeContext,
  node,
  policy,
  type RunOutcomeTold,
  type Runtime,
  START,
  state,
} from '../index.ts'

const Numbers = state({ n: z.number().default(0) })

/** Notes each end that it is told, with the state as of then. */
class Ends extends Middleware {
  readonly told: { readonly outcome: RunOutcomeTold; readonly state: unknown }[] = []
  override onRunEnd(ctx: { readonly state: unknown }, outcome: RunOutcomeTold) {
    this.told.push({ outcome, state: ctx.state })
  }
}

/** Two nodes one after the other; `second` does what the case is about. */
function twoSteps(own: readonly Middleware[], second: Parameters<typeof node<typeof Numbers>>[2]) {
  const one = node('one', Numbers, () => ({ n: 1 }))
  const two = node('two', Numbers, second)
  return graph('two steps', Numbers, { middleware: own }).edge(START, one).edge(one, two).edge(two, END).check()
}

const boom = new Error('boom')

interface Ending {
  readonly name: string
  readonly status: string
  /** What happens in the second node; `undefined` where it is simply waited for. */
  readonly second: (stop: AbortController, runtime: Runtime, ctx: NodeContext) => unknown
  readonly policies?: Parameters<typeof policy>[0]['seams']
  readonly timeoutMs?: number
}

const never = () => new Promise<never>(() => undefined)

const endings: readonly Ending[] = [
  { name: 'completes', status: 'completed', second: () => ({ n: 2 }) },
  {
    name: 'fails',
    status: 'failed',
    second: () => {
      throw boom
    },
  },
  {
    name: 'is failed by a policy',
    status: 'failed',
    second: () => ({ n: 2 }),
    policies: {
      node: {
        after: ({ subject }) => (subject.nodeName === 'two' ? { action: 'fail', reason: 'no' } : { action: 'pass' }),
      },
    },
  },
  {
    name: 'is refused by a policy at its door',
    status: 'failed',
    second: () => ({}),
    policies: { run: { before: () => ({ action: 'reject', reason: 'not here' }) } },
  },
  { name: 'takes too long', status: 'failed', timeoutMs: 5, second: never },
  {
    name: 'is cancelled',
    status: 'cancelled',
    second: (stop) => {
      stop.abort(new Error('enough'))
      return never()
    },
  },
  {
    name: 'is drained',
    status: 'cancelled',
    second: (_, runtime, ctx) => {
      runtime.drain()
      return ctx.once('late', () => 2)
    },
  },
]

describe('G28: onRunEnd is told once how a run ended that', () => {
  it.each(endings)('$name', async ({ status, second, policies, timeoutMs }) => {
    const [ends, others] = [new Ends(), new Ends()]
    Object.assign(others, { name: 'Others' })
    const runtime = createRuntime({ policies: policies === undefined ? [] : [policy({ name: 'P', seams: policies })] })
    for (const thread of [undefined, 't']) {
      const stop = new AbortController()
      const made = twoSteps([ends, others], (_, ctx) => second(stop, runtime, ctx) as never)
      const outcome = await runtime.settle(made, {}, { signal: stop.signal, timeoutMs, thread })
      expect(outcome.status).toBe(status)
      for (const { told } of [ends, others]) {
        expect(told).toHaveLength(1)
        const { outcome: end } = told.splice(0)[0] as (typeof told)[0]
        expect(end).toEqual({ status, interrupts: {}, error: status === 'failed' ? outcome.error : undefined })
        if (status === 'failed') expect(end.error).toBe(outcome.error)
      }
    }
  })

  it('pauses, with the open questions by key, which cannot be changed (G35)', async () => {
    const ends = new Ends()
    const made = twoSteps([ends], async (_, ctx) => ({ n: (await ctx.ask('how', 'How many?')) as number }))
    const runtime = createRuntime()
    await runtime.run(made, {}, { thread: 't' })
    const [{ outcome } = { outcome: undefined }] = ends.told
    expect(outcome).toMatchObject({
      status: 'paused',
      interrupts: { 'two:how': { payload: 'How many?' } },
      error: undefined,
    })
    expect(() => Object.assign(outcome?.interrupts as object, { x: 1 })).toThrow(TypeError)
    await runtime.resume(made, 't', 5)
    expect(ends.told.map((told) => told.outcome.status)).toEqual(['paused', 'completed'])
  })

  it('is cancelled before it began: nobody’s beforeGraph was reached, so nobody is told', async () => {
    const ends = new Ends()
    const { status } = await createRuntime().settle(
      twoSteps([ends], () => ({})),
      {},
      { signal: AbortSignal.abort(boom) },
    )
    expect(status).toBe('cancelled')
    expect(ends.told).toEqual([])
  })

  it('has its stream closed before the last event, and after it (G29)', async () => {
    for (const [last, status] of [
      ['node_complete', 'cancelled'],
      ['run_end', 'completed'],
    ] as const) {
      const ends = new Ends()
      const gone = new Promise<void>((resolve) => {
        ends.told.push = (told) => {
          Array.prototype.push.call(ends.told, told)
          resolve()
          return 1
        }
      })
      for await (const { type } of createRuntime().stream(
        twoSteps([ends], () => ({ n: 2 })),
        {},
      ))
        if (type === last) break
      await gone
      expect(ends.told.map(({ outcome }) => outcome.status)).toEqual([status])
    }
  })
})

describe('onRunEnd', () => {
  it('G30: sees the state as of the last superstep', async () => {
    const ends = new Ends()
    await createRuntime().settle(
      twoSteps([ends], () => {
        throw boom
      }),
      {},
    )
    expect(ends.told[0]?.state).toEqual({ n: 1 })
  })

  it('G31: is told to those whose beforeGraph was reached, the one that failed among them', async () => {
    const seen: string[] = []
    const watch = (name: string, beforeGraph: () => void = () => undefined) =>
      middleware({ name, beforeGraph, onRunEnd: () => void seen.push(name) })
    const own = [
      watch('first'),
      watch('second', () => {
        throw boom
      }),
      watch('third'),
    ]
    const { error } = await createRuntime().settle(
      twoSteps(own, () => ({})),
      {},
    )
    expect(error).toMatchObject({
      code: 'MIDDLEWARE_FAILED',
      at: { middleware: 'second', hook: 'beforeGraph' },
      cause: boom,
    })
    expect(seen).toEqual(['second', 'first'])
  })

  it('G32: is not told of a call that was refused', async () => {
    const ends = new Ends()
    const made = twoSteps([ends], async (_, ctx) => ({ n: (await ctx.ask('how', 'How many?')) as number }))
    const runtime = createRuntime()
    await runtime.run(made, {}, { thread: 't' })
    await expect(runtime.run(made, {}, { thread: 't' })).rejects.toMatchObject({ code: 'THREAD_PAUSED' })
    expect(ends.told).toHaveLength(1)
  })

  it.each([
    { name: 'completed', second: () => ({ n: 2 }), status: 'failed', noted: false },
    {
      name: 'failed',
      second: () => {
        throw boom
      },
      status: 'failed',
      noted: true,
    },
  ])(
    'G33: its own failure is what the caller of a run gets that $name, else a note',
    async ({ second, status, noted }) => {
      const late = new Error('too late')
      const odd = middleware({
        name: 'Odd',
        onRunEnd: () => {
          throw late
        },
      })
      const runtime = createRuntime()
      const outcome = await runtime.settle(twoSteps([odd], second as never), {}, { thread: 't' })
      expect(outcome.status).toBe(status)
      if (noted) {
        expect(outcome.error).toBe(boom)
        expect(outcome.notes).toEqual([
          'Odd.onRunEnd raised MiddlewareError: middleware "Odd" failed at run.after (onRunEnd): too late.',
        ])
        return
      }
      expect((outcome.error as MiddlewareError).cause).toBe(late)
      expect(
        await runtime.stateAt(
          twoSteps([], () => ({})),
          't',
        ),
      ).toMatchObject({ status: 'completed', state: { n: 2 } })
    },
  )

  it('G34: of two that fail, the first to be told is what the caller gets, the other a note', async () => {
    const fails = (name: string) =>
      middleware({
        name,
        onRunEnd: () => {
          throw new Error(`${name} fails`)
        },
      })
    const { error, notes } = await createRuntime().settle(
      twoSteps([fails('a'), fails('b')], () => ({})),
      {},
    )
    expect((error as Error).message).toContain('b fails')
    expect(notes).toHaveLength(1)
    expect(notes[0]).toContain('a fails')
  })

  it('G38: of a child run and of the run around it each is told once', async () => {
    const [inner, outer] = [new Ends(), new Ends()]
    const sub = graphNode(
      'sub',
      Numbers,
      twoSteps([inner], () => ({ n: 5 })),
      { share: ['n'] },
    )
    const made = graph('outer', Numbers, { middleware: [outer] })
      .edge(START, sub)
      .edge(sub, END)
      .check()
    await createRuntime().run(made, {})
    expect(inner.told.map(({ state }) => state)).toEqual([{ n: 5 }])
    expect(outer.told).toHaveLength(1)
  })

  it('of a child that ends because a sibling of its node failed comes before that of the run around it', async () => {
    const clock = new Clock()
    const order: string[] = []
    const slow = middleware({
      name: 'inner',
      onRunEnd: async (ctx, { status }) => {
        await ctx.wait(1_000)
        order.push(`inner ${status}`)
        throw new Error('cannot flush')
      },
    })
    const outer = middleware({ name: 'outer', onRunEnd: (_, { status }) => void order.push(`outer ${status}`) })
    let begun: () => void = () => undefined
    const inside = new Promise<void>((resolve) => {
      begun = resolve
    })
    const child = twoSteps([slow], () => {
      begun()
      return never()
    })
    const between = node('between', Numbers, (_, ctx) => ctx.run(child, {}))
    const hookless = graph('hookless', Numbers).edge(START, between).edge(between, END).check()
    const forks = node('forks', Numbers, () => command({ goto: [waits, fails] }), { goto: ['waits', 'fails'] })
    const waits = node('waits', Numbers, (_, ctx) => ctx.run(hookless, {}))
    const fails = node('fails', Numbers, async () => {
      await inside
      throw boom
    })
    const made = graph('outer', Numbers, { middleware: [outer] })
      .edge(START, forks)
      .edge(waits, END)
      .edge(fails, END)
      .check()
    const running = createRuntime({ platform: clock }).settle(made, {})
    await clock.pass(1_000)
    const { error, notes } = await running
    expect(error).toBe(boom)
    expect(order).toEqual(['inner failed', 'outer failed'])
    expect(notes).toEqual([
      'inner.onRunEnd raised MiddlewareError: middleware "inner" failed at run.after (onRunEnd): cannot flush.',
    ])
  })

  it.each(['paused', 'cancelled'] as const)(
    'a child that is %s with the run around it is told once, before it',
    async (status) => {
      const order: string[] = []
      const watch = (name: string) =>
        middleware({
          name,
          onRunEnd: (_, outcome) => void order.push(`${name} ${outcome.status} ${Object.keys(outcome.interrupts)}`),
        })
      const stop = new AbortController()
      const child = twoSteps([watch('inner')], async (_, ctx) => {
        if (status === 'paused') return { n: (await ctx.ask('how', 'How many?')) as number }
        stop.abort(new Error('enough'))
        return never()
      })
      const sub = graphNode('sub', Numbers, child, { share: ['n'] })
      const made = graph('outer', Numbers, { middleware: [watch('outer')] })
        .edge(START, sub)
        .edge(sub, END)
        .check()
      const outcome = await createRuntime().settle(made, {}, { thread: 't', signal: stop.signal })
      expect(outcome.status).toBe(status)
      const keys = status === 'paused' ? 'sub/two:how' : ''
      expect(order).toEqual([`inner ${status} ${keys}`, `outer ${status} ${keys}`])
    },
  )
})

describe('onRunEnd takes its time', () => {
  const timed = (clock: Clock, onRunEnd: NonNullable<Middleware['onRunEnd']>) => {
    const runtime = createRuntime({ platform: clock })
    const made = twoSteps([middleware({ name: 'flush', onRunEnd })], () => ({ n: 2 }))
    return { runtime, outcome: runtime.settle(made, {}) }
  }

  it('and may wait: its signal is not aborted by the end it is told of', async () => {
    const clock = new Clock()
    const aborted: boolean[] = []
    const { outcome } = timed(clock, async (ctx) => {
      aborted.push(ctx.signal.aborted)
      await ctx.wait(5_000)
      aborted.push(ctx.signal.aborted)
    })
    await clock.pass(5_000)
    expect(await outcome).toMatchObject({ status: 'completed' })
    expect(aborted).toEqual([false, false])
    expect(clock.pending).toBe(0)
  })

  it('and may bound what it does: what takes too long is its failure', async () => {
    const clock = new Clock()
    const { outcome } = timed(clock, (ctx) =>
      ctx.within(
        1_000,
        'the flush',
        (signal) => new Promise<void>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
      ),
    )
    await clock.pass(1_000)
    expect((await outcome).error).toMatchObject({ cause: { code: 'CALL_TIMED_OUT' } })
  })

  it('and is given up after 15 s, so that nobody waits for ever, a drain included', async () => {
    const clock = new Clock()
    const late: unknown[] = []
    const { runtime, outcome } = timed(clock, async (ctx) => {
      ctx.signal.addEventListener('abort', () => late.push(ctx.signal.reason))
      await never()
    })
    const drained = runtime.drain()
    await clock.pass(15_000)
    const { status, error } = await outcome
    await drained
    expect(status).toBe('failed')
    expect((error as Error).message).toBe(
      'middleware "flush" failed at run.after (onRunEnd): it took longer than 15000 ms.',
    )
    expect(late).toEqual([error])
  })
})

describe('afterGraph', () => {
  it('of others is not reached once one of them has ended the run', async () => {
    const stop = new AbortController()
    const seen: string[] = []
    const watch = (name: string, then: () => void = () => undefined) =>
      middleware({
        name,
        afterGraph: async () => {
          seen.push(name)
          then()
        },
      })
    const own = [watch('a'), watch('b', () => stop.abort(boom))]
    const { status } = await createRuntime().settle(
      twoSteps(own, () => ({ n: 2 })),
      {},
      { signal: stop.signal },
    )
    expect([status, ...seen]).toEqual(['cancelled', 'b'])
  })
})
