import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Clock, open, quiet } from '../../testing/clock.ts'
import { says } from '../../testing/play.ts'
import {
  command,
  createRuntime,
  DEFAULT_LIMITS,
  END,
  graph,
  type NodeContext,
  type NodeOptions,
  node,
  type Runnable,
  type RunOptions,
  type RuntimeOptions,
  START,
  type StateOf,
  send,
  state,
  tool,
} from '../index.ts'

const S = state({ n: z.number().default(0), stopAt: z.number().default(Number.MAX_SAFE_INTEGER) })
type Run = (s: StateOf<typeof S>, ctx: NodeContext) => unknown

/** One node that runs until `stopAt`. */
const loop = (run: Run = (s) => ({ n: s.n + 1 })) => {
  const step = node('step', S, run as () => void)
  return graph('loop', S)
    .edge(START, step)
    .when(step, (s) => s.n < s.stopAt, { then: step, otherwise: END })
    .check()
}
const single = (run: Run, options?: NodeOptions) => {
  const step = node('step', S, run as () => void, options)
  return graph('single', S).edge(START, step).edge(step, END).check()
}

/** Starts a run on a clock of its own, lets `ms` go by, and says how it ended. */
async function after<State, Update>(
  ms: number,
  graph: Runnable<State, Update>,
  { limits, policies, ...options }: RunOptions & RuntimeOptions = {},
) {
  const clock = new Clock()
  const running = createRuntime({ platform: clock, limits, policies }).settle(graph, {} as Update, options)
  await clock.pass(ms)
  return { outcome: await running, clock }
}

const never = () => new Promise<void>(() => {})

describe('maxIterations', () => {
  it('D10: is the number of supersteps a run may have; one more ends it, and the error names the limit', async () => {
    const runtime = createRuntime({ limits: { maxIterations: 3 } })
    const done = await runtime.settle(loop(), { stopAt: 3 })
    expect(done).toMatchObject({ status: 'completed', counts: { supersteps: 3 } })
    const spent = await runtime.settle(loop(), { stopAt: 4 })
    expect(spent).toMatchObject({
      status: 'failed',
      error: { code: 'MAX_ITERATIONS', at: { graph: 'loop' } },
      counts: { supersteps: 3 },
    })
    expect((spent.error as Error).message).toBe(
      'the run of "loop" exceeded max iterations: 3. Look for a loop that never ends, or raise maxIterations.',
    )
  })
  it('is 50 where nobody says otherwise', async () => {
    const runtime = createRuntime()
    expect((await runtime.settle(loop(), { stopAt: 50 })).status).toBe('completed')
    expect((await runtime.settle(loop(), { stopAt: 51 })).error).toMatchObject({ code: 'MAX_ITERATIONS' })
  })
  it('is counted by a child run for itself', async () => {
    const runtime = createRuntime({ limits: { maxIterations: 3 } })
    const parent = loop(async (s, ctx) => {
      await ctx.run(loop(), { stopAt: 3 })
      return { n: s.n + 1 }
    })
    expect(await runtime.settle(parent, { stopAt: 3 })).toMatchObject({
      status: 'completed',
      counts: { supersteps: 3 },
    })
  })
})

describe('maxTasks', () => {
  const fan = (count: number) => {
    const work = node('work', S, () => {})
    const sends = Array.from({ length: count }, (_, n) => send(work, { n }))
    const split = node('split', S, () => command({ goto: sends }), { goto: [work] })
    return graph('fan', S).edge(START, split).edge(work, END).check()
  }
  it('is the number of tasks a superstep may have; one more fails the run before any of them starts', async () => {
    const runtime = createRuntime({ limits: { maxTasks: 5 } })
    expect((await runtime.settle(fan(5))).status).toBe('completed')
    const outcome = await runtime.settle(fan(6))
    expect(outcome).toMatchObject({ status: 'failed', error: { code: 'MAX_TASKS', at: { graph: 'fan' } } })
    expect((outcome.error as Error).message).toBe(
      'a superstep of "fan" would have 6 tasks, and maxTasks is 5. Send in smaller batches, or raise it.',
    )
  })
  it('is 10,000 where nobody says otherwise', async () => {
    expect((await createRuntime().settle(fan(10_001))).error).toMatchObject({ code: 'MAX_TASKS' })
  })
})

describe('timeoutMs of a run', () => {
  it('Z18: ends a run that takes longer, and the error says that the run timed out', async () => {
    const { outcome } = await after(1_000, single(never), { timeoutMs: 1_000 })
    expect(outcome).toMatchObject({ status: 'failed', error: { code: 'RUN_TIMED_OUT', at: { graph: 'single' } } })
    expect((outcome.error as Error).message).toBe(
      'the run of "single" timed out after 1000 ms. Raise timeoutMs (--timeout).',
    )
  })
  it('is at most what the runtime allows', async () => {
    const { outcome } = await after(50, single(never), { limits: { timeoutMs: 50 }, timeoutMs: 1_000 })
    expect((outcome.error as Error).message).toContain('timed out after 50 ms')
  })
  it('D11: goes by the clock of the platform, and a run that ends in time leaves no timer behind', async () => {
    const { outcome, clock } = await after(
      0,
      loop((s) => ({ n: s.n + 1, stopAt: 20 })),
      { timeoutMs: 10 },
    )
    expect(outcome.status).toBe('completed')
    expect(clock.pending).toBe(0)
  })
  it('D12: adds up over the nodes of a run', async () => {
    const clock = new Clock()
    clock.turn = async () => {}
    const wait: Run = (s) => new Promise((done) => clock.set(100, () => done({ n: s.n + 1 })))
    const running = createRuntime({ platform: clock }).settle(loop(wait), { stopAt: 3 }, { timeoutMs: 250 })
    await clock.pass(1_000)
    expect(await running).toMatchObject({
      status: 'failed',
      error: { code: 'RUN_TIMED_OUT' },
      counts: { supersteps: 3 },
    })
  })
  it('ends a run of quick nodes that never lets a timer fire', async () => {
    const clock = new Clock()
    let ms = 0
    clock.now = () => ms
    const step: Run = (s) => {
      ms += 3
      return { n: s.n + 1 }
    }
    const runtime = createRuntime({ platform: clock, limits: { maxIterations: 1_000 } })
    const outcome = await runtime.settle(loop(step), {}, { timeoutMs: 100 })
    expect(outcome.error).toMatchObject({ code: 'RUN_TIMED_OUT' })
    expect(ms).toBeLessThan(110)
  })
  it.each([Number.NaN, 0, -1])('is refused when it is %d', async (timeoutMs) => {
    const outcome = await createRuntime().settle(single(never), {}, { timeoutMs })
    expect(outcome).toMatchObject({
      status: 'failed',
      error: { code: 'LIMIT_INVALID', message: `timeoutMs must be milliseconds above 0, not ${timeoutMs}.` },
    })
  })
  it('may be longer than a timer of the language can be', async () => {
    const outcome = await createRuntime({ limits: { timeoutMs: 2 ** 40 } }).settle(
      single(() => quiet()),
      {},
    )
    expect(outcome.status).toBe('completed')
  })
})

describe('timeoutMs of a node', () => {
  it('D14: fails the node that takes longer, and its error says so', async () => {
    const { outcome, clock } = await after(100, single(never, { timeoutMs: 100 }))
    expect(outcome).toMatchObject({ status: 'failed', error: { code: 'NODE_TIMED_OUT', at: { node: 'step' } } })
    expect((outcome.error as Error).message).toBe('node "step" timed out after 100 ms')
    expect(clock.pending).toBe(0)
  })
  it('D14: is told to the policies at nodeError as the error it is', async () => {
    const watch = says('Watch', { 'nodeError.after': { action: 'pass' } })
    await after(100, single(never, { timeoutMs: 100 }), { policies: [watch] })
    expect(watch.asked.map(({ outcome }) => outcome)).toEqual([
      {
        ok: false,
        error: { name: 'SluiceError', code: 'NODE_TIMED_OUT', message: 'node "step" timed out after 100 ms' },
      },
    ])
  })
  it.each([
    { name: 'a node with a time', options: { timeoutMs: 100 } },
    { name: 'a node without one', options: {} },
  ])('D13: leaves alone an error of its own that $name throws, and policies see it as it is', async ({ options }) => {
    const error = new Error('the database timed out')
    const watch = says('Watch', { 'nodeError.after': { action: 'pass' } })
    const { outcome } = await after(
      0,
      single(() => Promise.reject(error), options),
      { policies: [watch] },
    )
    expect(outcome.error).toBe(error)
    expect(watch.asked.map(({ outcome }) => outcome)).toMatchObject([
      { ok: false, error: { name: 'Error', message: 'the database timed out' } },
    ])
  })
  it('aborts the signal of that node, with the error as the reason', async () => {
    let signal: AbortSignal | undefined
    const { outcome } = await after(
      100,
      single(
        (_, ctx) => {
          signal = ctx.signal
          return never()
        },
        { timeoutMs: 100 },
      ),
    )
    expect(signal?.reason).toBe(outcome.error)
  })
  it('gives the execution up: calls it makes or has made from then on neither start nor settle', async () => {
    const calls: string[] = []
    const gate = open<string>()
    const slow = tool('slow', { description: 'd', input: z.object({}), run: () => gate.promise })
    const late = tool('late', { description: 'd', input: z.object({}), run: () => calls.push('late started') })
    const settled = (name: string) => () => calls.push(`${name} settled`)
    const step: Run = async (_, ctx) => {
      ctx.signal.addEventListener('abort', () => ctx.callTool(late, {}).then(settled('late'), settled('late')))
      await ctx.callTool(slow, {}).finally(settled('slow'))
    }
    const clock = new Clock()
    const events: string[] = []
    const rescued = node('step', S, step as () => void, { timeoutMs: 100 })
    const stream = createRuntime({ platform: clock }).stream(
      graph('g', S).edge(START, rescued).edge(rescued, END).check(),
      {},
    )
    const reading = (async () => {
      for await (const { type } of stream) events.push(type)
    })()
    await clock.pass(100)
    gate.resolve('too late')
    await reading
    await quiet()
    expect(calls).toEqual([])
    expect(events).toEqual(['run_start', 'node_start', 'tool_call', 'node_error', 'run_end'])
  })
  it('does not keep the process waiting once the run has been ended otherwise', async () => {
    const clock = new Clock()
    const controller = new AbortController()
    const running = createRuntime({ platform: clock }).settle(
      single(never, { timeoutMs: 100 }),
      {},
      { signal: controller.signal },
    )
    await quiet()
    controller.abort()
    expect((await running).status).toBe('cancelled')
    expect(clock.pending).toBe(0)
  })
})

describe('limits', () => {
  it('are these where nobody says otherwise', () => {
    expect(createRuntime().limits).toEqual({
      maxIterations: 50,
      maxTasks: 10_000,
      maxNodeAttempts: 3,
      maxToolRounds: 10,
      timeoutMs: 300_000,
    })
    expect(createRuntime({ limits: { maxTasks: 7, maxIterations: undefined } }).limits).toEqual({
      ...DEFAULT_LIMITS,
      maxTasks: 7,
    })
  })
  it.each([
    { limits: { maxIterations: 0 }, says: 'maxIterations must be a whole number of 1 or more, not 0.' },
    { limits: { maxTasks: 1.5 }, says: 'maxTasks must be a whole number of 1 or more, not 1.5.' },
    {
      limits: { maxToolRounds: Number.POSITIVE_INFINITY },
      says: 'maxToolRounds must be a whole number of 1 or more, not Infinity.',
    },
    {
      limits: { maxSteps: 3 },
      says: 'there is no limit "maxSteps"; limits are: maxIterations, maxTasks, maxNodeAttempts, maxToolRounds, timeoutMs.',
    },
  ])('are whole numbers under known names: $limits is refused', ({ limits, says }) => {
    expect(() => createRuntime({ limits })).toThrow(expect.objectContaining({ code: 'LIMIT_INVALID', message: says }))
  })
})
