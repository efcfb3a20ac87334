import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Clock, open, quiet } from '../../../testing/clock.ts'
import { eventsOf, says, settle } from '../../../testing/play.ts'
import {
  append,
  command,
  createRuntime,
  END,
  type Graph,
  graph,
  type NodeContext,
  node,
  policy,
  START,
  type StateOf,
  state,
  type UpdateFor,
} from '../../index.ts'

const S = state({ n: z.number().default(0), log: append(z.string()) })
type State = StateOf<typeof S>
type Plain = Graph<State, UpdateFor<typeof S>>
type Run = (s: State, ctx: NodeContext) => unknown

const single = (name: string, run: Run, timeoutMs?: number): Plain => {
  const step = node(`${name}'s node`, S, run as () => void, timeoutMs === undefined ? {} : { timeoutMs })
  return graph(name, S).edge(START, step).edge(step, END).check()
}
const endless = (run: Run = (s) => ({ n: s.n + 1 })): Plain => {
  const step = node('step', S, run as () => void)
  return graph('endless', S).edge(START, step).edge(step, step).check()
}
const never = () => new Promise<void>(() => {})

/** A parent whose node runs a child and notes what it caught, if anything. */
const catching = (child: Plain, caught: unknown[], options?: Parameters<NodeContext['run']>[2]): Plain =>
  single('parent', async (_, ctx) => {
    try {
      await ctx.run(child, {}, options)
    } catch (error) {
      caught.push(error)
    }
    return { log: ['went on'] }
  })

describe('a child run', () => {
  it('gives the node its final state', async () => {
    const child = single('child', (s) => ({ n: s.n + 1, log: ['child'] }))
    const parent = single('parent', async (s, ctx) => ({ n: (await ctx.run(child, { n: s.n * 10 })).n }))
    expect((await settle({ graph: parent, input: { n: 4 } })).state).toEqual({ n: 41, log: [] })
  })
  it('publishes its events under the way to it', async () => {
    const inner = single('inner', (_, ctx) => ctx.emit('hello'))
    const child = single('child', (_, ctx) => ctx.run(inner, {}).then(() => {}))
    const parent = single('parent', (_, ctx) => ctx.run(child, {}).then(() => {}))
    const events = await eventsOf({ graph: parent })
    expect(events.find(({ type }) => type === 'custom')?.path).toEqual([
      'parent',
      "parent's node",
      'child',
      "child's node",
      'inner',
    ])
    expect(events.filter(({ type }) => type === 'run_start' || type === 'run_end')).toHaveLength(2)
  })
  it('fails its node with the very error that ended it, which the node may catch', async () => {
    const error = new Error('child failed')
    const child = single('child', () => Promise.reject(error))
    const caught: unknown[] = []
    expect((await settle({ graph: catching(child, caught) })).state.log).toEqual(['went on'])
    expect(caught).toEqual([error])
    const outcome = await settle({ graph: single('parent', (_, ctx) => ctx.run(child, {})) })
    expect(outcome.error).toBe(error)
  })
  it('is refused an input that does not fit, as an error in the node', async () => {
    const caught: unknown[] = []
    const child = graph('child', state({ name: z.string() }))
    const look = node('look', state({ name: z.string() }), () => {})
    const parent = single('parent', async (_, ctx) => {
      await ctx.run(child.edge(START, look).edge(look, END).check(), {}).catch((error) => caught.push(error))
    })
    expect((await settle({ graph: parent })).status).toBe('completed')
    expect(caught).toMatchObject([{ code: 'STATE_UPDATE', at: { field: 'name' } }])
  })
  it('may be nested 16 deep; one more is an error in the node that starts it', async () => {
    const depths: number[] = []
    const nested: Plain = single('nested', async (s, ctx) => {
      depths.push(s.n + 1)
      await ctx.run(nested, { n: s.n + 1 })
    })
    const outcome = await settle({ graph: nested })
    expect(Math.max(...depths)).toBe(16)
    expect(outcome).toMatchObject({ status: 'failed', error: { code: 'RUNS_TOO_DEEP' } })
    expect((outcome.error as Error).message).toBe('node "nested\'s node" starts a run nested 17 deep; 16 is the most.')
  })
})

describe("what ends a child by itself is an error in the parent's node", () => {
  it('its iterations, which it counts for itself', async () => {
    const caught: unknown[] = []
    const outcome = await settle({ graph: catching(endless(), caught), limits: { maxIterations: 5 } })
    expect(outcome).toMatchObject({ status: 'completed', state: { log: ['went on'] }, counts: { supersteps: 1 } })
    expect(caught).toMatchObject([{ code: 'MAX_ITERATIONS', at: { graph: 'endless' } }])
  })
  it('its tasks', async () => {
    const [left, right] = [node('left', S, () => {}), node('right', S, () => {})]
    const split = node('split', S, () => command({ goto: [left, right] }), { goto: [left, right] })
    const caught: unknown[] = []
    const child = graph('wide', S).edge(START, split).edge(left, END).edge(right, END).check()
    await settle({ graph: catching(child, caught), limits: { maxTasks: 1 } })
    expect(caught).toMatchObject([{ code: 'MAX_TASKS', at: { graph: 'wide' } }])
  })
  it('its time, where it was given one of its own', async () => {
    const clock = new Clock()
    const caught: unknown[] = []
    const running = createRuntime({ platform: clock }).settle(catching(endless(never), caught, { timeoutMs: 100 }), {})
    await clock.pass(100)
    expect((await running).status).toBe('completed')
    expect(caught).toMatchObject([
      { code: 'RUN_TIMED_OUT', message: expect.stringContaining('"endless" timed out after 100 ms') },
    ])
  })
  it('its cancel, where it was given a signal of its own', async () => {
    const controller = new AbortController()
    const caught: unknown[] = []
    const running = createRuntime().settle(catching(endless(never), caught, { signal: controller.signal }), {})
    await quiet()
    controller.abort()
    expect((await running).status).toBe('completed')
    expect(caught).toMatchObject([{ code: 'RUN_CANCELLED', at: { graph: 'endless' } }])
  })
})

describe('what ends the parent ends its children, and nothing in between can catch it', () => {
  it('the time of the parent, within which a child lives', async () => {
    const clock = new Clock()
    const caught: unknown[] = []
    const running = createRuntime({ platform: clock }).settle(
      catching(endless(never), caught, { timeoutMs: 1_000 }),
      {},
      { timeoutMs: 100 },
    )
    await clock.pass(1_000)
    expect(await running).toMatchObject({ status: 'failed', error: { code: 'RUN_TIMED_OUT', at: { graph: 'parent' } } })
    expect(caught).toEqual([])
    expect(clock.pending).toBe(0)
  })
  it('the time of the parent, noticed in a child of quick nodes that never lets a timer fire', async () => {
    const clock = new Clock()
    let ms = 0
    clock.now = () => ms
    clock.turn = async () => {}
    const caught: unknown[] = []
    const step: Run = () => {
      ms += 5
    }
    const runtime = createRuntime({ platform: clock, limits: { maxIterations: 1e6 } })
    const outcome = await runtime.settle(catching(endless(step), caught), {}, { timeoutMs: 100 })
    expect(outcome).toMatchObject({ status: 'failed', error: { code: 'RUN_TIMED_OUT', at: { graph: 'parent' } } })
    expect(caught).toEqual([])
  })
  it('a cancel of the parent', async () => {
    const controller = new AbortController()
    const caught: unknown[] = []
    const reasons: unknown[] = []
    const child = single('child', (_, ctx) => {
      ctx.signal.addEventListener('abort', () => reasons.push(ctx.signal.reason))
      return never()
    })
    const running = createRuntime().settle(catching(child, caught), {}, { signal: controller.signal })
    await quiet()
    controller.abort()
    const outcome = await running
    expect(outcome.status).toBe('cancelled')
    expect(caught).toEqual([])
    expect(reasons).toEqual([outcome.error])
  })
  it.each([
    { name: 'a cancel of the parent', twice: false },
    { name: 'the failure of the node that started it, which is tried again', twice: true },
  ])('$name, in the very moment it was started: nothing of it runs', async ({ twice }) => {
    const controller = new AbortController()
    const clock = new Clock()
    let ran = 0
    const child = single('child', () => void ran++)
    const parent = single('parent', (_, ctx) => {
      if (ctx.attempt > 1) return
      void ctx.run(child, {})
      if (twice) throw new Error('no')
      controller.abort()
    })
    const policies = [says('Again', { 'nodeError.after': { action: 'retry' } })]
    const runtime = createRuntime({ policies, platform: clock })
    const { status } = await runtime.settle(parent, {}, { signal: controller.signal })
    await quiet()
    expect(status).toBe(twice ? 'completed' : 'cancelled')
    expect([ran, clock.pending]).toEqual([0, 0])
  })
  it('the end of the parent, which does not wait for it: what it wanted to do next is not done', async () => {
    const gate = open<void>()
    const clock = new Clock()
    let ran = 0
    const first = node('first', S, () => gate.promise)
    const second = node('second', S, () => void ran++)
    const child = graph('child', S).edge(START, first).edge(first, second).edge(second, END).check()
    const parent = single('parent', (_, ctx) => Promise.race([ctx.run(child, {}).then(() => {}), quiet()]))
    expect((await createRuntime({ platform: clock }).settle(parent, {})).status).toBe('completed')
    gate.resolve()
    await quiet()
    expect([ran, clock.pending]).toEqual([0, 0])
  })
  it('the time of the node that started it', async () => {
    const clock = new Clock()
    const reasons: unknown[] = []
    const child = single('child', (_, ctx) => {
      ctx.signal.addEventListener('abort', () => reasons.push(ctx.signal.reason))
      return never()
    })
    const parent = single('parent', (_, ctx) => ctx.run(child, {}), 100)
    const running = createRuntime({ platform: clock }).settle(parent, {})
    await clock.pass(100)
    expect((await running).error).toMatchObject({ code: 'NODE_TIMED_OUT' })
    expect(reasons).toMatchObject([{ code: 'RUN_CANCELLED', at: { graph: 'child' } }])
    expect(clock.pending).toBe(0)
  })
  it('the failure of a sibling of the node that started it', async () => {
    const reasons: unknown[] = []
    const child = single('child', (_, ctx) => {
      ctx.signal.addEventListener('abort', () => reasons.push(ctx.signal.reason))
      return never()
    })
    const error = new Error('sibling failed')
    const a = node('a', S, (_, ctx) => ctx.run(child, {}).then(() => {}))
    const b = node('b', S, () => quiet().then(() => Promise.reject(error)))
    const split = node('split', S, () => command({ goto: [a, b] }), { goto: [a, b] })
    const outcome = await settle({ graph: graph('g', S).edge(START, split).edge(a, END).edge(b, END).check() })
    expect(outcome.error).toBe(error)
    expect(reasons).toEqual([error])
  })
})

describe('a stop in a child stops every run above it', () => {
  const reject = says('Gate', {
    'node.before': ({ subject }) =>
      subject.nodeName === "child's node" ? { action: 'reject', reason: 'not here' } : { action: 'proceed' },
  })
  it('and no node above can catch it', async () => {
    const caught: unknown[] = []
    const middle = catching(
      single('child', () => {}),
      caught,
    )
    const outcome = await settle({ graph: catching(middle, caught), policies: [reject] })
    expect(outcome).toMatchObject({ status: 'failed', error: { name: 'RefusedError', reason: 'not here' } })
    expect(caught).toEqual([])
  })
})

describe('a child run that has ended and is being judged', () => {
  it('is given up with the run above it: the policy is told, and makes no more calls', async () => {
    const controller = new AbortController()
    const reasons: boolean[] = []
    const late = policy({
      name: 'Late',
      seams: {
        run: {
          after: async ({ subject }, ctx) => {
            if (!subject.nested) return { action: 'pass' }
            controller.abort()
            await quiet()
            reasons.push(ctx.signal.aborted)
            return { action: 'pass' }
          },
        },
      },
    })
    const parent = catching(
      single('child', () => {}),
      [],
    )
    const outcome = await settle({ graph: parent, policies: [late], signal: controller.signal })
    expect(outcome.status).toBe('cancelled')
    await quiet()
    expect(reasons).toEqual([true])
  })
})
