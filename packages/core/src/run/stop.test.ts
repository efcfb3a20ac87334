import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Clock, open, quiet } from '../../testing/clock.ts'
import { FailingStore } from '../../testing/failing-store.ts'
import {
  append,
  command,
  createRuntime,
  END,
  graph,
  type NodeContext,
  node,
  policy,
  type RunEvent,
  START,
  type StateOf,
  state,
  tool,
} from '../index.ts'

const S = state({ n: z.number().default(0), log: append(z.string()) })
type Run = (s: StateOf<typeof S>, ctx: NodeContext) => unknown
const single = (run: Run) => {
  const step = node('step', S, run as () => void)
  return graph('g', S).edge(START, step).edge(step, END).check()
}
const endless = (run: Run) => {
  const step = node('step', S, run as () => void)
  return graph('endless', S).edge(START, step).edge(step, step).check()
}
const runtime = createRuntime({ limits: { maxIterations: 1e9 } })

describe('a signal that aborts', () => {
  it('before the run keeps every node from running', async () => {
    let ran = 0
    const outcome = await runtime.settle(
      single(() => void ran++),
      {},
      { signal: AbortSignal.abort('no longer wanted') },
    )
    expect(outcome).toMatchObject({ status: 'cancelled', counts: { supersteps: 0 } })
    expect(outcome.error).toMatchObject({
      code: 'RUN_CANCELLED',
      cause: 'no longer wanted',
      message: 'the run of "g" was cancelled.',
    })
    expect(ran).toBe(0)
  })
  it('during the run ends it at once; the nodes are told with the same error', async () => {
    const controller = new AbortController()
    const reasons: unknown[] = []
    const running = runtime.settle(
      single((_, ctx) => {
        ctx.signal.addEventListener('abort', () => reasons.push(ctx.signal.reason))
        return new Promise(() => {})
      }),
      {},
      { signal: controller.signal },
    )
    await quiet()
    controller.abort()
    const outcome = await running
    expect(outcome.status).toBe('cancelled')
    expect(reasons).toEqual([outcome.error])
  })
  it.each([
    { name: 'without a thread', options: {} },
    { name: 'on a thread', options: { thread: 't' } },
  ])('D15: leaves nothing under way, $name: no timer, no node that was not told, no hold', async ({ options }) => {
    const clock = new Clock()
    const controller = new AbortController()
    const told: string[] = []
    const slow = tool('slow', {
      description: 'd',
      input: z.object({}),
      timeoutMs: 1_000,
      run: (_, { signal }) => {
        signal.addEventListener('abort', () => told.push('tool'))
        return new Promise(() => {})
      },
    })
    const nodes = ['a', 'b'].map((name) =>
      node(
        name,
        S,
        async (_, ctx) => {
          ctx.signal.addEventListener('abort', () => told.push(name))
          await ctx.callTool(slow, {})
        },
        { timeoutMs: 1_000 },
      ),
    )
    const split = node('split', S, () => command({ goto: nodes }), { goto: nodes })
    const builder = graph('g', S).edge(START, split)
    for (const each of nodes) builder.edge(each, END)
    const timed = createRuntime({ platform: clock })
    const running = timed.settle(builder.check(), {}, { ...options, signal: controller.signal })
    await quiet()
    controller.abort()
    expect((await running).status).toBe('cancelled')
    expect(told.toSorted()).toEqual(['a', 'b', 'tool', 'tool'])
    expect(clock.pending).toBe(0)
    expect((await timed.branches('t')).map(({ busy, status }) => ({ busy, status }))).toEqual(
      'thread' in options ? [{ busy: false, status: 'cancelled' }] : [],
    )
  })
  it('makes run() reject with that error', async () => {
    const controller = new AbortController()
    const running = runtime.run(
      single(() => new Promise(() => {})),
      {},
      { signal: controller.signal },
    )
    controller.abort()
    await expect(running).rejects.toMatchObject({ code: 'RUN_CANCELLED' })
  })
  it('after the run changes nothing, and the run no longer listens to it', async () => {
    const { signal } = new AbortController()
    const listening = new Set<unknown>()
    signal.addEventListener = (_: string, listener: unknown) => void listening.add(listener)
    signal.removeEventListener = (_: string, listener: unknown) => void listening.delete(listener)
    const sizes: number[] = []
    const graph = single(() => void sizes.push(listening.size))
    expect((await runtime.settle(graph, {}, { signal })).status).toBe('completed')
    expect([...sizes, listening.size]).toEqual([1, 0])
  })
  it('gets into an endless loop of quick nodes: timers of the process have their turn', async () => {
    const controller = new AbortController()
    const step: Run = ({ n }) => {
      if (n === 0) setTimeout(() => controller.abort(), 0)
      return { n: n + 1 }
    }
    const outcome = await runtime.settle(endless(step), {}, { signal: controller.signal })
    expect(outcome.status).toBe('cancelled')
  })
  it.each([
    { name: 'of 1/128 ms', ms: 1 / 128, late: 0.5 },
    { name: 'of 1 ms', ms: 1, late: 2 },
    { name: 'of 8 ms', ms: 8, late: 16 },
    { name: 'of 30 ms', ms: 30, late: 60 },
  ])(
    'gets in between nodes $name every 10 ms: the clock is looked at the more often the slower they are',
    async (row) => {
      const clock = new Clock()
      const controller = new AbortController()
      let now = 0
      let turns = 0
      clock.now = () => now
      clock.turn = async () => void (++turns === 3 && controller.abort())
      const step: Run = () => {
        now += row.ms
      }
      await createRuntime({ platform: clock, limits: { maxIterations: 10_000 } }).settle(
        endless(step),
        {},
        { signal: controller.signal },
      )
      expect(turns).toBe(3)
      expect(now).toBeGreaterThanOrEqual(3 * 10)
      expect(now).toBeLessThanOrEqual(3 * (10 + row.late))
    },
  )
  it('from inside a fan-out keeps the rest of it from starting', async () => {
    const controller = new AbortController()
    const started: string[] = []
    const nodes = ['a', 'b', 'c'].map((name) =>
      node(name, S, () => void (started.push(name) === 2 && controller.abort())),
    )
    const split = node('split', S, () => command({ goto: nodes }), { goto: nodes })
    const builder = graph('g', S).edge(START, split)
    for (const each of nodes) builder.edge(each, END)
    const outcome = await runtime.settle(builder.check(), {}, { signal: controller.signal })
    expect(outcome.status).toBe('cancelled')
    expect(started).toEqual(['a', 'b'])
  })
})

describe('after a stop', () => {
  it('nothing in a node can catch it, retry it or hide it: pending calls never settle', async () => {
    const controller = new AbortController()
    const gate = open<string>()
    const slow = tool('slow', { description: 'd', input: z.object({}), run: () => gate.promise })
    const seen: string[] = []
    const running = runtime.settle(
      single(async (_, ctx) => {
        try {
          await ctx.callTool(slow, {})
          seen.push('went on')
        } catch {
          seen.push('caught')
        } finally {
          seen.push('left')
        }
        return { log: ['survived'] }
      }),
      {},
      { signal: controller.signal },
    )
    await quiet()
    controller.abort()
    gate.resolve('done')
    expect((await running).status).toBe('cancelled')
    await quiet()
    expect(seen).toEqual([])
  })
  it('what a node still returns or throws is dropped', async () => {
    const ends: ((gate: ReturnType<typeof open<object>>) => void)[] = [
      (gate) => gate.resolve({ log: ['late'] }),
      (gate) => gate.reject(new Error('late')),
    ]
    for (const end of ends) {
      const controller = new AbortController()
      const gate = open<object>()
      const events: RunEvent[] = []
      const reading = (async () => {
        for await (const event of runtime.stream(
          single(() => gate.promise),
          {},
          { signal: controller.signal },
        ))
          events.push(event)
      })()
      await quiet()
      controller.abort()
      end(gate)
      await reading
      await quiet()
      expect(events.map(({ type }) => type)).toEqual(['run_start', 'node_start', 'run_end'])
      expect(events.at(-1)).toMatchObject({ status: 'cancelled', error: { code: 'RUN_CANCELLED' } })
    }
  })
  it('the signal a node asks for only then has aborted already', async () => {
    const controller = new AbortController()
    const gate = open<void>()
    let aborted: boolean | undefined
    const running = runtime.settle(
      single(async (_, ctx) => {
        await gate.promise
        aborted = ctx.signal.aborted
      }),
      {},
      { signal: controller.signal },
    )
    await quiet()
    controller.abort()
    await running
    gate.resolve()
    await quiet()
    expect(aborted).toBe(true)
  })
})

it('the end of a run tells the calls that are still under way, such as the loser of a race', async () => {
  const told: unknown[] = []
  const slow = tool('slow', {
    description: 'Never answers.',
    input: z.object({}),
    run: (_, { signal }) => {
      signal.addEventListener('abort', () => told.push(signal.aborted))
      return new Promise(() => {})
    },
  })
  const { status } = await runtime.settle(
    single((_, ctx) => Promise.race([ctx.callTool(slow, {}).then(() => {}), quiet()])),
  )
  expect([status, told]).toEqual(['completed', [true]])
})

describe('leaving a stream early', () => {
  it('cancels the run, and the node is told', async () => {
    let reason: unknown
    const graph = single((_, ctx) => {
      ctx.signal.addEventListener('abort', () => {
        reason = ctx.signal.reason
      })
      return new Promise(() => {})
    })
    for await (const event of runtime.stream(graph, {})) if (event.type === 'node_start') break
    await quiet()
    expect(reason).toMatchObject({ code: 'RUN_CANCELLED', cause: { code: 'STREAM_CLOSED' } })
  })
  it('settles a read that is still waiting', async () => {
    const stream = runtime.stream(
      single(() => new Promise(() => {})),
      {},
    )
    await stream.next()
    await stream.next()
    const waiting = stream.next()
    await stream.return?.()
    expect(await waiting).toEqual({ done: true, value: undefined })
    expect(await stream.next()).toEqual({ done: true, value: undefined })
  })
  it.each([
    { name: 'in memory', late: false },
    { name: 'in a file', late: true },
  ])('is over when the run has let go of its thread, kept $name: it can be continued at once', async ({ late }) => {
    const runtime = createRuntime({ store: new FailingStore({ late }) })
    let hangs = true
    const graph = single(() => (hangs ? new Promise(() => {}) : { n: 7 }))
    for await (const event of runtime.stream(graph, {}, { thread: 't' })) if (event.type === 'node_start') break
    hangs = false
    expect((await runtime.continue(graph, 't')).state.n).toBe(7)
  })
  it('after its last event changes nothing', async () => {
    const stream = runtime.stream(
      single(() => {}),
      {},
    )
    const events: RunEvent[] = []
    for await (const event of stream) events.push(event)
    await stream.return?.()
    expect(events.at(-1)).toMatchObject({ type: 'run_end', status: 'completed' })
  })
})

describe('an execution that failed and is tried again', () => {
  it('aborts what it left under way, so that nothing of it runs beside the next one', async () => {
    const signals: AbortSignal[] = []
    const slow = tool('slow', {
      description: 'Takes its time.',
      input: z.object({}),
      run: (_, { signal }) => new Promise(() => signals.push(signal)),
    })
    const again = policy({
      name: 'Again',
      seams: { nodeError: { after: (_, ctx) => ({ action: ctx.attempt === 1 ? 'retry' : 'pass' }) } },
    })
    const beside = single(async (_, ctx) => {
      if (ctx.attempt === 2) return {}
      void ctx.callTool(slow, {})
      await quiet()
      throw new Error('beside it')
    })
    const outcome = await createRuntime({ policies: [again] }).run(beside, {})
    expect(signals.map(({ aborted }) => aborted)).toEqual([true])
    expect(outcome.status).toBe('completed')
  })
})
