import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Clock, open, quiet } from '../../../testing/clock.ts'
import { says } from '../../../testing/play.ts'
import { chain, errorOf, Log, type LogGraph, logNode, type Run, setUp, together } from '../../../testing/threads.ts'
import { createRuntime, END, graph, type NodeContext, policy, START, tool } from '../../index.ts'

const T = { thread: 't' }

/** A graph of this name whose nodes run one after another. */
function named(name: string, runs: Readonly<Record<string, Run>>): LogGraph {
  const nodes = Object.entries(runs).map(([id, run]) => logNode(id, run)) as [never, ...never[]]
  const builder = graph(name, Log).edge(START, nodes[0])
  for (const [i, each] of nodes.entries()) builder.edge(each, nodes[i + 1] ?? END)
  return builder.check()
}
/** A node that runs this graph and appends what it logged. */
const runs =
  (inner: LogGraph): Run =>
  async (_s, ctx) => ({ log: (await ctx.run(inner, {})).log })
/** A node that asks `q` and logs the answer. */
const asks: Run = async (_s, ctx) => ({ log: [`${await ctx.ask('q', 'well?')}`] })

const act = tool('act', { description: 'Acts.', input: z.object({}), idempotent: true, run: () => 'done' })

describe('a run inside another, on a thread', () => {
  it('B8: that waits goes on at its inner step; what was through above, inside and beside is not run again', async () => {
    const { store, ran, says: noting } = setUp()
    const noted =
      (name: string, run: Run): Run =>
      (s, ctx) => {
        ran.push(name)
        return run(s, ctx)
      }
    const a = named('a', { a1: noting('a1'), a2: noted('a2', asks), a3: noting('a3') })
    const b = named('b', { b1: noting('b1'), b2: noted('b2', asks) })
    const outer = chain({
      first: noting('first'),
      a: noted('a', runs(a)),
      b: noted('b', runs(b)),
      last: noting('last'),
    })
    const runtime = () => createRuntime({ store })
    expect((await runtime().run(outer, {}, T)).asks.map(({ key }) => key)).toEqual(['a/a2:q'])
    expect((await runtime().resume(outer, 't', 'A')).asks.map(({ key }) => key)).toEqual(['b/b2:q'])
    const { state } = await runtime().resume(outer, 't', 'B')
    expect(state.log).toEqual(['first', 'a1', 'A', 'a3', 'b1', 'B', 'last'])
    // A node that waited, or that ran what waited, is entered again; nothing else is.
    expect(ran).toEqual(['first', 'a', 'a1', 'a2', 'a', 'a2', 'a3', 'b', 'b1', 'b2', 'b', 'b2', 'last'])
  })

  it('that was cut off goes on where it was, in another process, as deep as it was', async () => {
    const { store, ran, says: noting } = setUp()
    const inner = named('inner', { i1: noting('i1'), i2: noting('i2'), i3: noting('i3') })
    const middle = named('middle', { m1: noting('m1'), m2: runs(inner) })
    const outer = chain({ o1: runs(middle), o2: noting('o2') })
    store.fail('before', { type: 'step', nth: 3 })
    expect(await errorOf(createRuntime({ store }).run(outer, {}, T))).toMatchObject({ code: 'STORE_FAILED' })
    expect(ran).toEqual(['m1', 'i1', 'i2'])
    const { state } = await createRuntime({ store }).continue(outer, 't')
    expect(state.log).toEqual(['m1', 'i1', 'i2', 'i3', 'o2'])
    expect(ran).toEqual(['m1', 'i1', 'i2', 'i2', 'i3', 'o2'])
  })

  it('that failed and was let out goes on at the node that failed', async () => {
    const { runtime, ran, says: noting } = setUp()
    let fails = true
    const inner = named('inner', {
      i1: noting('i1'),
      i2: (s, ctx) => {
        if (fails) throw new Error('no')
        return noting('i2')(s, ctx)
      },
    })
    const outer = chain({ o1: runs(inner) })
    expect(await errorOf(runtime.run(outer, {}, T))).toMatchObject({ message: 'no' })
    fails = false
    expect((await runtime.continue(outer, 't')).state.log).toEqual(['i1', 'i2'])
    expect(ran).toEqual(['i1', 'i2'])
  })

  it('that failed in a tool goes on at the node that failed, and what the tool had done before is handed back', async () => {
    const { runtime, ran, says: noting } = setUp()
    let fails = true
    const first = named('first', { f1: noting('f1') })
    const inner = named('inner', {
      i1: noting('i1'),
      i2: (s, ctx) => {
        if (fails) throw new Error('no')
        return noting('i2')(s, ctx)
      },
    })
    const research = tool('research', {
      description: 'Runs graphs.',
      input: z.object({}),
      run: async (_args, ctx) => [...(await ctx.run(first, {})).log, ...(await ctx.run(inner, {})).log],
    })
    const outer = chain({ o1: async (_s, ctx) => ({ log: await ctx.callTool(research, {}) }) })
    expect(await errorOf(runtime.run(outer, {}, T))).toMatchObject({ message: 'no' })
    expect(await errorOf(runtime.continue(outer, 't'))).toMatchObject({ message: 'no' })
    fails = false
    expect((await runtime.continue(outer, 't')).state.log).toEqual(['f1', 'i1', 'i2'])
    expect(ran).toEqual(['f1', 'i1', 'i2'])
  })

  it('that failed and was caught stays failed for its node, entered anew: the same error, and nothing runs', async () => {
    const { store } = setUp()
    let ran = 0
    const inner = named('inner', {
      i1: () => {
        ran++
        throw new TypeError('no')
      },
    })
    const outer = chain({
      o1: async (_s, ctx) => {
        const error = await errorOf(ctx.run(inner, {}))
        return { log: [`${error?.name}: ${error?.message}`, `${await ctx.ask('q', 'well?')}`] }
      },
    })
    await createRuntime({ store }).run(outer, {}, T)
    expect((await createRuntime({ store }).resume(outer, 't', 'yes')).state.log).toEqual(['TypeError: no', 'yes'])
    expect(ran).toBe(1)
  })

  it.each<{ name: string; ends: (stop: () => void, ctx: NodeContext) => unknown }>([
    { name: 'its own signal', ends: (stop) => stop() },
    { name: 'a policy inside it', ends: (_stop, ctx) => ctx.callTool(act, {}) },
  ])('that $name ended goes on without the tasks that were through in that very turn', async ({ ends }) => {
    const [controller, once] = [new AbortController(), { fails: true }]
    const judge = policy({
      name: 'Judge',
      seams: { toolCall: { after: () => (once.fails ? { action: 'fail', reason: 'no' } : { action: 'pass' }) } },
    })
    const { runtime, ran, says: noting } = setUp({ policies: [judge] })
    const inner = together({
      quick: noting('quick'),
      slow: async (s, ctx) => {
        if (once.fails) {
          await ends(() => controller.abort(), ctx)
          return new Promise(() => {})
        }
        return noting('slow')(s, ctx)
      },
    })
    const options = () => (once.fails ? { signal: controller.signal } : {})
    const outer = chain({ a: async (_s, ctx) => ({ log: (await ctx.run(inner, {}, options())).log }) })
    expect(await errorOf(runtime.run(outer, {}, T))).toBeDefined()
    once.fails = false
    expect((await runtime.continue(outer, 't')).state.log).toEqual(['quick', 'slow'])
    expect(ran).toEqual(['quick', 'slow'])
  })

  it('B4: beside others that wait too, each is answered by itself, and finished stays finished', async () => {
    const { store, ran } = setUp()
    const inner = (name: string) =>
      named(name, {
        work: async (_s, ctx) => {
          const answer = await ctx.ask('q', name)
          ran.push(name)
          return { log: [`${name} ${answer}`] }
        },
      })
    const g = together({ a: runs(inner('x')), b: runs(inner('y')), c: runs(inner('z')) })
    const runtime = () => createRuntime({ store })
    const keys = (await runtime().run(g, {}, T)).asks.map(({ key }) => key)
    expect(keys).toEqual(['a/work:q', 'b/work:q', 'c/work:q'])
    for (const [key, left] of [
      ['b/work:q', ['a/work:q', 'c/work:q']],
      ['c/work:q', ['a/work:q']],
    ] as const) {
      const { asks } = await runtime().resume(g, 't', new Map([[key, 1]]))
      expect(asks.map(({ key }) => key)).toEqual(left)
    }
    expect((await runtime().resume(g, 't', 1)).state.log).toEqual(['x 1', 'y 1', 'z 1'])
    expect(ran).toEqual(['y', 'z', 'x'])
  })

  it('goes on while another one of its node waits, and its node is entered for it', async () => {
    const { store, ran, says: noting } = setUp()
    const inner = (name: string) => named(name, { asks, then: noting(name) })
    const [x, y] = [inner('x'), inner('y')]
    const g = chain({
      a: async (_s, ctx) => ({ log: (await Promise.all([ctx.run(x, {}), ctx.run(y, {})])).flatMap(({ log }) => log) }),
    })
    const runtime = () => createRuntime({ store })
    const keys = (await runtime().run(g, {}, T)).asks.map(({ key }) => key)
    expect(new Set(keys).size).toBe(2)
    const half = await runtime().resume(g, 't', new Map([[keys[1], 'second']]))
    expect(half.asks.map(({ key }) => key)).toEqual([keys[0]])
    expect(ran).toEqual(['y'])
    expect((await runtime().resume(g, 't', 'first')).state.log).toEqual(['first', 'x', 'second', 'y'])
    expect(ran).toEqual(['y', 'x'])
  })

  it('is watched by its node only as long as it is awaited: what it still does afterwards comes to nothing', async () => {
    const { runtime, ran, says: noting } = setUp()
    const gate = open<void>()
    const inner = named('inner', { i1: () => gate.promise, i2: noting('i2') })
    const g = chain({
      a: (_s, ctx) => {
        void ctx.run(inner, {})
        return { log: ['a'] }
      },
      b: async () => {
        await quiet()
        gate.resolve()
        await quiet()
        return { log: ['b'] }
      },
    })
    expect((await runtime.run(g, {}, T)).state.log).toEqual(['a', 'b'])
    expect(ran).toEqual([])
    expect((await runtime.stateAt(g, 't')).status).toBe('completed')
  })
})

describe('B13: a fork from before a question further in', () => {
  const play = async () => {
    const { store } = setUp()
    const given: unknown[] = []
    const inner = named('inner', {
      i1: () => ({ log: ['i1'] }),
      i2: async (s, ctx) => {
        given.push(s.log)
        return { log: [`${await ctx.ask('q', 'well?')}`] }
      },
      i3: () => ({ log: ['i3'] }),
    })
    const g = chain({ a: runs(inner), b: () => ({ log: ['b'] }) })
    const runtime = createRuntime({ store })
    await runtime.run(g, {}, T)
    const [asked] = (await runtime.history('t')).filter(({ type }) => type === 'ask')
    expect((await runtime.resume(g, 't', 'first')).state.log).toEqual(['i1', 'first', 'i3', 'b'])
    given.splice(0)
    return { runtime, g, given, before: (asked?.seq ?? 0) - 1 }
  }

  it('asks again, on the inner state as it was then', async () => {
    const { runtime, g, given, before } = await play()
    const { branch } = await runtime.fork('t', { at: before })
    const paused = await runtime.continue(g, 't', { branch })
    expect(paused.asks.map(({ key }) => key)).toEqual(['a/i2:q'])
    expect(given).toEqual([['i1']])
    const { state } = await runtime.resume(g, 't', 'second', { branch })
    expect(state.log).toEqual(['i1', 'second', 'i3', 'b'])
    expect((await runtime.stateAt(g, 't')).state?.log).toEqual(['i1', 'first', 'i3', 'b'])
  })

  it('at the pause may be answered differently on each branch', async () => {
    const { runtime, g, before } = await play()
    const pause = (await runtime.history('t')).find(({ seq, type }) => seq > before && type === 'end')
    const { branch } = await runtime.fork('t', { at: pause?.seq })
    expect((await runtime.resume(g, 't', 'second', { branch })).state.log).toEqual(['i1', 'second', 'i3', 'b'])
    expect((await runtime.stateAt(g, 't')).state?.log).toEqual(['i1', 'first', 'i3', 'b'])
  })
})

describe('a tool that runs a graph', () => {
  const asTool = (inner: LogGraph, ran: string[]) =>
    tool('act', {
      description: 'Runs a graph.',
      input: z.object({}),
      run: async (_args, ctx) => {
        ran.push('act')
        return (await ctx.run(inner, {})).log
      },
    })
  const calling = (act: ReturnType<typeof asTool>): LogGraph =>
    chain({ a: async (_s, ctx: NodeContext) => ({ log: (await ctx.callTool(act, {})) as string[] }) })

  it('waits where that waits, and goes on inside', async () => {
    const { store, ran, says: noting } = setUp()
    const inner = named('inner', { i1: noting('i1'), i2: asks, i3: noting('i3') })
    const g = calling(asTool(inner, ran))
    const paused = await createRuntime({ store }).run(g, {}, T)
    expect(paused.asks).toMatchObject([{ key: 'a:act/i2:q', nodeName: 'i2' }])
    expect((await createRuntime({ store }).resume(g, 't', 'yes')).state.log).toEqual(['i1', 'yes', 'i3'])
    expect(ran).toEqual(['act', 'i1', 'act', 'i3'])
  })

  it('hands a run back that was through when it asks something itself afterwards', async () => {
    const { store, ran, says: noting } = setUp()
    const inner = named('inner', { i1: noting('i1') })
    const act = tool('act', {
      description: 'Runs a graph and asks.',
      input: z.object({}),
      run: async (_args, ctx) => [...(await ctx.run(inner, {})).log, `${await ctx.ask('sure', 'sure?')}`],
    })
    const g = calling(act)
    expect((await createRuntime({ store }).run(g, {}, T)).asks).toMatchObject([{ key: 'a:act:sure' }])
    expect((await createRuntime({ store }).resume(g, 't', 'yes')).state.log).toEqual(['i1', 'yes'])
    expect(ran).toEqual(['i1'])
  })

  it('may be watched by the same policies as everything else, each step with its own subject', async () => {
    const { store, ran } = setUp()
    const watch = says('Watch', { 'node.before': { action: 'proceed' }, 'toolCall.before': { action: 'proceed' } })
    const g = calling(asTool(named('inner', { i1: () => ({}) }), ran))
    await createRuntime({ store, policies: [watch] }).run(g, {}, T)
    expect(watch.asked.map(({ at, subject }) => [at, subject.toolName ?? subject.nodeName])).toEqual([
      ['node.before', 'a'],
      ['toolCall.before', 'act'],
      ['node.before', 'i1'],
    ])
  })
})

describe('a question further in that nobody answers in time', () => {
  it('fails its node inside, with the way to it in the record; continue asks again', async () => {
    const platform = new Clock()
    const { store } = setUp()
    const inner = named('inner', {
      i1: async (_s, ctx) => ({ log: [`${await ctx.ask('q', 'well?', { expiresInMs: 10 })}`] }),
    })
    const g = chain({ a: runs(inner) })
    const runtime = () => createRuntime({ store, platform })
    await runtime().run(g, {}, T)
    await platform.pass(10)
    expect(await errorOf(runtime().continue(g, 't'))).toMatchObject({
      code: 'ASK_EXPIRED',
      at: { node: 'i1', ask: 'q' },
    })
    const again = await runtime().continue(g, 't')
    expect(again.asks.map(({ key }) => key)).toEqual(['a/i1:q'])
    expect((await runtime().resume(g, 't', 'yes')).state.log).toEqual(['yes'])
  })

  it('goes on beside others that are open still: those are not put again, and their nodes are not entered', async () => {
    const platform = new Clock()
    const { store, ran } = setUp()
    const waits =
      (name: string, expiresInMs?: number): Run =>
      async (_s, ctx) => {
        ran.push(name)
        return { log: [`${await ctx.ask('q', 'well?', { expiresInMs, default: `${name} by default` })}`] }
      }
    const g = together({ a: waits('a', 10), b: waits('b') })
    const runtime = () => createRuntime({ store, platform })
    await runtime().run(g, {}, T)
    await platform.pass(10)
    const paused = await runtime().continue(g, 't')
    expect(paused.asks.map(({ key }) => key)).toEqual(['b:q'])
    expect(ran).toEqual(['a', 'b', 'a'])
    expect((await runtime().resume(g, 't', 'yes')).state.log).toEqual(['a by default', 'yes'])
  })
})
