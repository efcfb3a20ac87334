import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Clock, open, quiet } from '../../../testing/clock.ts'
import { FailingStore } from '../../../testing/failing-store.ts'
import { says as answering } from '../../../testing/play.ts'
import { chain, errorOf, type LogGraph, setUp, together } from '../../../testing/threads.ts'
import {
  append,
  command,
  createRuntime,
  END,
  graph,
  merge,
  messages,
  type NodeContext,
  node,
  policy,
  type Runtime,
  type RuntimeOptions,
  replaceWith,
  SluiceError,
  START,
  state,
} from '../../index.ts'
import type { Fields } from '../../state/state.ts'

const T = { thread: 't' }

describe('a thread', () => {
  it('keeps its state: the next run goes on from it, and its input goes through the reducers', async () => {
    const { runtime, says } = setUp()
    const g = chain({ a: says('a') })
    const first = await runtime.run(g, { x: 'kept' }, T)
    expect(first).toMatchObject({ status: 'completed', thread: 't', branch: 'main', at: 4 })
    const second = await runtime.run(g, { log: ['given'] }, T)
    expect(second).toMatchObject({ state: { x: 'kept', log: ['a', 'given', 'a'] }, at: 8 })
    expect(second.runId).not.toBe(first.runId)
  })

  it('A3: takes no key that is no field, on a new thread and on one that is there', async () => {
    const { runtime, says } = setUp()
    const g = chain({ a: says('a') })
    const unknown = { y: 1 } as never
    expect(await errorOf(runtime.run(g, unknown, T))).toMatchObject({ code: 'STATE_UPDATE' })
    expect(await runtime.branches('t')).toEqual([])
    await runtime.run(g, {}, T)
    const before = await runtime.history('t')
    expect(await errorOf(runtime.run(g, unknown, T))).toMatchObject({ code: 'STATE_UPDATE' })
    expect(await runtime.history('t')).toEqual(before)
  })

  it('A22: needs a field without a default with its first input, and not with the next', async () => {
    const { runtime } = setUp()
    const Needs = state({ need: z.string(), log: append(z.string()) })
    const a = node('a', Needs, (s) => ({ log: [s.need] }))
    const g = graph('g', Needs).edge(START, a).edge(a, END).check()
    expect(await errorOf(runtime.run(g, {}, T))).toMatchObject({ code: 'STATE_UPDATE', at: { field: 'need' } })
    expect(await runtime.branches('t')).toEqual([])
    await runtime.run(g, { need: 'given' }, T)
    expect((await runtime.run(g, {}, T)).state.log).toEqual(['given', 'given'])
  })

  it('has a history: what began, what each superstep wrote, how it ended', async () => {
    const { runtime, says } = setUp()
    await runtime.run(chain({ a: says('a'), b: says('b') }), { x: 'given' }, T)
    const history = await runtime.history('t')
    expect(history.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5])
    expect(history).toMatchObject([
      { type: 'start', graph: 'g', input: { x: 'given' } },
      { type: 'begin', state: { x: 'given', i: 0, log: [] }, next: ['a'] },
      { type: 'step', writes: [{ task: 'a', update: { log: ['a'] } }], next: ['b'] },
      { type: 'step', writes: [{ task: 'b', update: { log: ['b'] } }], next: [], ended: ['b'] },
      { type: 'end', status: 'completed' },
    ])
  })

  it('has one writer at a time; the other one is refused, and nothing of it runs', async () => {
    const { runtime, ran } = setUp()
    const gate = open<void>()
    const g = chain({ a: () => gate.promise.then(() => void ran.push('a')) })
    const running = runtime.run(g, {}, T)
    await quiet()
    for (const second of [
      () => runtime.run(g, {}, T),
      () => runtime.continue(g, 't'),
      () => runtime.resume(g, 't', 1),
      () => runtime.compact(g, 't'),
    ]) {
      expect(await errorOf(second())).toMatchObject({ code: 'THREAD_BUSY', at: { thread: 't', branch: 'main' } })
    }
    expect((await runtime.branches('t'))[0]).toMatchObject({ busy: true })
    gate.resolve()
    expect((await running).status).toBe('completed')
    expect(ran).toEqual(['a'])
  })

  it('belongs to the graph that began it', async () => {
    const { runtime, says } = setUp()
    await runtime.run(chain({ a: says('a') }), {}, T)
    const Other = state({ n: z.number().default(0) })
    const b = node('b', Other, () => {})
    const other = graph('other', Other).edge(START, b).edge(b, END).check()
    for (const refused of [
      () => runtime.run(other, {}, T),
      () => runtime.stateAt(other, 't'),
      () => runtime.updateState(other, 't', {}),
    ])
      expect(await errorOf(refused())).toMatchObject({ code: 'THREAD_OF_OTHER_GRAPH', at: T })
    expect((await runtime.run(chain({ a: says('a') }), {}, T)).status).toBe('completed')
  })

  it('is let go of by a run that was refused', async () => {
    const { runtime, says } = setUp()
    const g = chain({ a: says('a') })
    await runtime.run(g, {}, T)
    expect(await errorOf(runtime.continue(g, 't'))).toMatchObject({ code: 'THREAD_FINISHED' })
    expect((await runtime.branches('t'))[0]).toMatchObject({ busy: false })
  })

  it('is read back from its last snapshot once much has been written, and from each place all the same', async () => {
    const { runtime, store } = setUp({ limits: { maxIterations: 300 } })
    const Big = state({ n: z.number().default(0), text: z.string().default('') })
    const step = node('step', Big, (s) => ({ n: s.n + 1, text: `${s.n}`.padEnd(1_000, '.') }))
    const g = graph('g', Big)
      .edge(START, step)
      .when(step, (s) => s.n % 100 !== 0, { then: step, otherwise: END })
      .check()
    await runtime.run(g, {}, T)
    const history = await runtime.history('t')
    const snapshot = history.findLast(({ type }) => type === 'snapshot')
    expect(snapshot).toBeDefined()
    expect(store.load({ thread: 't', branch: 'main' })).toMatchObject({ from: snapshot?.seq })
    for (const at of [10, snapshot?.seq as number, (snapshot?.seq as number) + 1]) {
      const steps = history.filter(({ type, seq }) => type === 'step' && seq <= at).length
      expect((await runtime.stateAt(g, 't', { at })).state?.n).toBe(steps)
    }
    expect((await runtime.run(g, {}, T)).state.n).toBe(200)
  })

  it('is read back from a snapshot, too, where much was written in many turns of which each is short', async () => {
    const { runtime, store } = setUp()
    const TURNS = 100
    const Talk = state({ messages: messages(), turns: z.number().default(0) })
    const says = node('says', Talk, (s) => ({
      messages: [{ role: 'assistant' as const, content: `${s.turns}`.padEnd(300, '.') }],
      turns: s.turns + 1,
    }))
    const g = graph('g', Talk).edge(START, says).edge(says, END).check()
    for (let i = 0; i < TURNS; i++) await runtime.run(g, { messages: [{ role: 'user', content: 'on'.repeat(100) }] }, T)
    const history = await runtime.history('t')
    const { from, records } = store.load({ thread: 't', branch: 'main' }) ?? { from: 0, records: [] }
    expect(history.find(({ seq }) => seq === from)).toMatchObject({ type: 'snapshot', status: 'completed' })
    expect(records.length).toBeLessThan(history.length)
    for (const { seq } of history.filter(({ type }) => type === 'end')) {
      const { state, status } = await runtime.stateAt(g, 't', { at: seq })
      const turns = history.filter((record) => record.type === 'end' && record.seq <= seq).length
      expect([status, state?.turns, state?.messages.length]).toEqual(['completed', turns, 2 * turns])
    }
  })

  it('keeps only its state when it is compacted, and goes on from there', async () => {
    const { runtime, says } = setUp()
    const g = chain({ a: says('a'), b: says('b') })
    await runtime.run(g, { x: 'kept' }, T)
    expect(await runtime.compact(g, 't')).toBe(5)
    expect((await runtime.history('t')).map(({ type, seq }) => [seq, type])).toEqual([[6, 'snapshot']])
    expect(await runtime.stateAt(g, 't')).toMatchObject({ status: 'completed', state: { x: 'kept', log: ['a', 'b'] } })
    expect(await errorOf(runtime.stateAt(g, 't', { at: 3 }))).toMatchObject({ code: 'HISTORY_UNKNOWN' })
    expect((await runtime.run(g, {}, T)).state.log).toEqual(['a', 'b', 'a', 'b'])
  })

  it('keeps what policies keep when it is compacted: a limit for good is none the less one', async () => {
    const once = policy({
      name: 'Once',
      kept: { scope: 'thread', schema: z.object({ runs: z.number().default(0) }) },
      seams: {
        run: {
          before: (_shown, ctx) => {
            const { runs } = ctx.kept.update((kept) => ({ runs: kept.runs + 1 }))
            return runs > 1 ? { action: 'reject', reason: 'once' } : { action: 'proceed' }
          },
        },
      },
    })
    const { runtime, says } = setUp({ policies: [once] })
    const g = chain({ a: says('a') })
    await runtime.run(g, {}, T)
    await runtime.compact(g, 't')
    await expect(runtime.run(g, {}, T)).rejects.toThrow('once')
  })

  it('is not compacted in the middle of something', async () => {
    const { runtime } = setUp()
    const g = chain({ a: async (_s, ctx) => ({ x: await ctx.ask('q', 1) }) })
    await runtime.run(g, {}, T)
    expect(await errorOf(runtime.compact(g, 't'))).toMatchObject({ code: 'THREAD_UNFINISHED' })
    expect((await runtime.resume(g, 't', 'yes')).state.x).toBe('yes')
  })
})

describe('the name of a thread', () => {
  it('E1: is a text that is not blank; nothing runs under another', async () => {
    const { runtime, ran, says } = setUp()
    const g = chain({ a: says('a') })
    for (const thread of ['', '  ', 7 as never, null as never])
      expect(await errorOf(runtime.run(g, {}, { thread }))).toMatchObject({ code: 'THREAD_NAME' })
    expect(await errorOf(runtime.run(g, {}, { ...T, branch: ' ' }))).toMatchObject({ code: 'THREAD_NAME' })
    expect(ran).toEqual([])
  })

  it('E1: may be left out, also where there is a store: that run leaves nothing behind', async () => {
    const { runtime, store, says } = setUp()
    const done = await runtime.run(chain({ a: says('a') }), {})
    expect(done).toMatchObject({ status: 'completed', state: { log: ['a'] } })
    expect([done.thread, done.branch, done.at]).toEqual([undefined, undefined, undefined])
    expect(store.lines()).toEqual([])
  })

  it('E2: is never made up: two runs without one are two runs, and no threads', async () => {
    const { runtime, says } = setUp()
    const g = chain({ a: says('a') })
    const [first, second] = [await runtime.run(g, {}), await runtime.run(g, {})]
    expect(first.runId).not.toBe(second.runId)
    expect([first.thread, second.thread]).toEqual([undefined, undefined])
  })

  it('E12: that nobody has begun is unknown to all that goes on with a thread', async () => {
    const { runtime, ran, says } = setUp()
    const g = chain({ a: says('a') })
    await runtime.run(g, {}, { thread: 'known' })
    ran.length = 0
    for (const at of [{ thread: 'unknown' }, { thread: 'known', branch: 'unknown' }]) {
      const { thread, ...options } = at
      for (const refused of [
        () => runtime.continue(g, thread, options),
        () => runtime.resume(g, thread, 1, options),
        () => runtime.stateAt(g, thread, options),
        () => runtime.fork(thread, options),
        () => runtime.updateState(g, thread, { x: 'y' }, options),
        () => runtime.compact(g, thread, options),
      ])
        expect(await errorOf(refused())).toMatchObject({ code: 'THREAD_UNKNOWN', at })
    }
    const onBranch = { thread: 'known', branch: 'unknown' }
    expect(await errorOf(runtime.run(g, {}, onBranch))).toMatchObject({ code: 'THREAD_UNKNOWN', at: onBranch })
    expect(await errorOf(runtime.history('known', onBranch))).toMatchObject({ code: 'THREAD_UNKNOWN' })
    expect(await runtime.history('unknown')).toEqual([])
    expect(await runtime.branches('unknown')).toEqual([])
    expect(ran).toEqual([])
  })
})

describe('a run on a thread inside a node', () => {
  it('E33: may go on another thread of the same store', async () => {
    const { runtime, says } = setUp()
    const inside = chain({ inner: says('inner') })
    const outer = chain({
      a: () => runtime.run(inside, {}, { thread: 'other' }).then(({ state }) => ({ log: state.log })),
    })
    expect((await runtime.run(outer, {}, T)).state.log).toEqual(['inner'])
    expect((await runtime.branches('other'))[0]).toMatchObject({ status: 'completed' })
  })

  it('E33: is refused the thread of the run it is in, and never waits for it', async () => {
    const { runtime, says } = setUp()
    const inside = chain({ inner: says('inner') })
    const outer = chain({ a: () => runtime.run(inside, {}, T).then(({ state }) => ({ log: state.log })) })
    expect(await errorOf(runtime.run(outer, {}, T))).toMatchObject({ code: 'THREAD_BUSY' })
  })
})

describe('the state of a thread', () => {
  /** A graph that asks and then copies every field, over these fields. */
  function asking<F extends Fields>(fields: F, run: (s: never, ctx: NodeContext) => unknown = () => ({})) {
    const S = state(fields)
    const a = node('a', S, async (s, ctx) => {
      await ctx.ask('q', 'well?')
      return (await run(s as never, ctx)) as object
    })
    return graph('g', S).edge(START, a).edge(a, END).check()
  }

  it('A25: has the defaults with which it began: a random one is the same after a pause', async () => {
    const { runtime } = setUp()
    let made = 0
    const token = z.string().default(() => `token ${++made}`)
    const seen: string[] = []
    const g = asking({ token }, (s: { token: string }) => void seen.push(s.token))
    const paused = await runtime.run(g, {}, T)
    const done = await runtime.resume(g, 't', 'yes')
    expect(done.state.token).toBe(paused.state.token)
    expect(seen).toEqual([paused.state.token])
  })

  it('A26: gets the default of a field that was added meanwhile', async () => {
    const { runtime } = setUp()
    await runtime.run(asking({ x: z.string().default('old') }), {}, T)
    const later = asking({ x: z.string().default('new'), y: z.number().default(7), z: append(z.string()) })
    expect((await runtime.stateAt(later, 't')).state).toEqual({ x: 'old', y: 7, z: [] })
    expect((await runtime.resume(later, 't', 'yes')).state).toEqual({ x: 'old', y: 7, z: [] })
  })

  it('A26: is refused where a field was added that has no default, naming it', async () => {
    const { runtime } = setUp()
    await runtime.run(asking({ x: z.string().default('old') }), {}, T)
    const later = asking({ x: z.string().default('new'), y: z.number() })
    expect(await errorOf(runtime.resume(later, 't', 'yes'))).toMatchObject({ code: 'THREAD_STATE', at: { field: 'y' } })
  })

  it.each([
    { name: 'of its beginning', input: { gone: 'given' } },
    { name: 'of a default that it began with', input: {} },
  ])('A27: is refused where a field $name was taken away, naming it; nothing runs', async ({ input }) => {
    const { runtime } = setUp()
    await runtime.run(asking({ x: z.string().default(''), gone: z.string().default('') }), input, T)
    const later = asking({ x: z.string().default('') })
    for (const refused of [() => runtime.resume(later, 't', 'yes'), () => runtime.stateAt(later, 't')]) {
      const error = await errorOf(refused())
      expect(error).toMatchObject({ code: 'THREAD_STATE', at: { field: 'gone' } })
      expect(error?.message).toContain('"gone"')
    }
    expect((await runtime.branches('t'))[0]).toMatchObject({ status: 'paused', busy: false })
  })

  const x = { text: z.string().default('text'), list: append(z.string()), keys: merge(z.string()) }
  const tight = append(z.string(), { whole: z.array(z.string()).max(1) })
  it.each<{ name: string; was: Fields[string]; is: Fields[string]; wrote?: unknown }>([
    { name: 'a default of another type', was: x.text, is: z.number().default(0) },
    { name: 'a text where a list is now', was: x.text, is: x.list },
    { name: 'texts that were written where a list is now', was: x.text, is: x.list, wrote: 'more' },
    { name: 'a text where keys are now', was: x.text, is: x.keys },
    { name: 'a list where messages are now', was: x.list, is: messages(), wrote: ['one'] },
    { name: 'a list where a text is now', was: x.list, is: x.text },
    { name: 'a list longer than it may be now', was: x.list, is: tight, wrote: ['one', 'two'] },
  ])(
    'A28: is refused where what is stored does not fit its field any more, naming it: $name',
    async ({ was, is, wrote }) => {
      const { runtime } = setUp()
      const before = asking({ x: was })
      await runtime.run(before, {}, T)
      if (wrote !== undefined) await runtime.updateState(before, 't', { x: wrote } as never)
      const later = asking({ x: is })
      const history = await runtime.history('t')
      for (const refused of [() => runtime.resume(later, 't', 'yes'), () => runtime.stateAt(later, 't')]) {
        const error = await errorOf(refused())
        expect(error).toMatchObject({ code: 'THREAD_STATE', at: { field: 'x' } })
        expect(error?.message).toMatch(
          /^field "x" does not take what a thread holds of it: .*[^.]\. A schema must take/,
        )
      }
      expect(await runtime.history('t')).toEqual(history)
    },
  )

  it('A28: fits again when what did not fit was replaced in the end', async () => {
    const { runtime } = setUp()
    const before = asking({ x: x.list })
    await runtime.run(before, { x: ['one', 'two'] }, T)
    await runtime.updateState(before, 't', { x: replaceWith(['one']) })
    expect((await runtime.resume(asking({ x: tight }), 't', 'yes')).state).toEqual({ x: ['one'] })
  })

  it('A28: fits when its schema was widened', async () => {
    const { runtime } = setUp()
    await runtime.run(asking({ x: z.string().default('text') }), {}, T)
    const later = asking({ x: z.union([z.string(), z.number()]).default(0) })
    expect((await runtime.resume(later, 't', 'yes')).state.x).toBe('text')
  })

  it('is refused where the graph has the node no more at which the thread stands, naming it; nothing is written', async () => {
    const { runtime, says } = setUp()
    await runtime.run(chain({ a: async (_s, ctx) => ({ x: await ctx.ask('q', 1) }) }), {}, T)
    const before = await runtime.history('t')
    const error = await errorOf(runtime.resume(chain({ b: says('b') }), 't', 'yes'))
    expect(error).toMatchObject({ code: 'THREAD_NODE_GONE', at: { thread: 't', node: 'a' } })
    expect(await runtime.history('t')).toEqual(before)
    expect((await runtime.resume(chain({ a: says('a') }), 't', 'yes')).state.log).toEqual(['a'])
  })

  it('is read as it was written: where two writes of a superstep fit a field together, and one alone does not', async () => {
    const { runtime } = setUp()
    const even = z.array(z.string()).refine((list) => list.length % 2 === 0, 'an even number of them')
    const Even = state({ list: append(z.string(), { whole: even }) })
    const [a, b] = [node('a', Even, () => ({ list: ['a'] })), node('b', Even, () => ({ list: ['b'] }))]
    const split = node('split', Even, () => command({ goto: [a, b] }), { goto: [a, b] })
    const g = graph('g', Even).edge(START, split).edge(a, END).edge(b, END).check()
    await runtime.run(g, {}, T)
    expect((await runtime.stateAt(g, 't')).state).toEqual({ list: ['a', 'b'] })
  })
})

describe('a lease that wants to be renewed', () => {
  class Renewed extends FailingStore {
    readonly renewEveryMs = 1_000
    renewed = 0
    /** How many renewals find the file locked. */
    locked = 0
    override renew(lease: Parameters<FailingStore['renew']>[0]): void {
      this.renewed++
      if (this.locked-- > 0) throw new SluiceError('STORE_BUSY', 'locked by another process')
      super.renew(lease)
    }
  }
  const renewing = (options: RuntimeOptions = {}) => {
    const store = new Renewed()
    const clock = new Clock()
    return { store, clock, runtime: createRuntime({ store, platform: clock, ...options }) }
  }

  it('is renewed while its run goes on', async () => {
    const { store, clock, runtime } = renewing()
    const gate = open<void>()
    const running = runtime.run(chain({ a: () => gate.promise.then(() => ({ log: ['a'] })) }), {}, T)
    await clock.pass(3_500)
    expect(store.renewed).toBe(3)
    gate.resolve()
    await running
    expect(clock.pending).toBe(0)
  })

  it('is renewed while an answer is checked, however long that takes', async () => {
    const gate = open<void>()
    const { store, clock, runtime } = renewing({ checkJson: () => gate.promise })
    const make = () => chain({ a: async (_s, ctx) => ({ log: [await ctx.ask('q', 1, { schema: z.string() })] }) })
    await runtime.run(make(), {}, T)
    const before = store.renewed
    const resumed = runtime.resume(make(), 't', 'yes')
    await clock.pass(3_500)
    expect(store.renewed - before).toBe(3)
    gate.resolve()
    expect((await resumed).state.log).toEqual(['yes'])
    expect(clock.pending).toBe(0)
  })

  it('lets no run begin that lost it while an answer was checked', async () => {
    const gate = open<void>()
    const { store, clock, runtime } = renewing({ checkJson: () => gate.promise })
    const make = () => chain({ a: async (_s, ctx) => ({ log: [await ctx.ask('q', 1, { schema: z.string() })] }) })
    await runtime.run(make(), {}, T)
    const before = await runtime.history('t')
    const resumed = errorOf(runtime.resume(make(), 't', 'yes'))
    await quiet()
    store.release({ thread: 't', branch: 'main', epoch: 2 })
    store.acquire({ thread: 't', branch: 'main' })
    await clock.pass(1_000)
    gate.resolve()
    expect(await resumed).toMatchObject({ code: 'LEASE_LOST' })
    expect(await runtime.history('t')).toEqual(before)
    expect(clock.pending).toBe(0)
  })

  it.each([
    { name: 'keeps its run where it could not be renewed at first, and then could', failures: 2, status: 'completed' },
    { name: 'ends its run when it could not be renewed for as long as it lasts', failures: 3, status: 'failed' },
  ])('$name', async ({ failures, status }) => {
    const { store, clock, runtime } = renewing()
    const gate = open<void>()
    const running = runtime.settle(chain({ a: () => gate.promise.then(() => ({ log: ['a'] })) }), {}, T)
    await clock.pass(500)
    store.locked = failures
    await clock.pass(4_000)
    gate.resolve()
    expect((await running).status).toBe(status)
    expect(clock.pending).toBe(0)
  })

  it('ends its run when it was lost', async () => {
    const { store, clock, runtime } = renewing()
    const running = runtime.settle(chain({ a: () => new Promise(() => {}) }), {}, T)
    await quiet()
    store.release({ thread: 't', branch: 'main', epoch: 1 })
    store.acquire({ thread: 't', branch: 'main' }, { create: true })
    await clock.pass(1_000)
    expect(await running).toMatchObject({ status: 'failed', error: { code: 'LEASE_LOST' } })
    expect(clock.pending).toBe(0)
  })

  const g = chain({ a: async (s, ctx) => ({ log: [s.x === '' ? 'a' : `${await ctx.ask('q', 1)}`] }) })
  const clashing = together({
    a: () => ({ x: 'mine' }),
    b: async (_s, ctx) => ({ log: [`${await ctx.ask('q', 1)}`] }),
  })
  it.each<{ name: string; before?: LogGraph; fails?: string; act: (runtime: Runtime) => Promise<unknown> }>([
    { name: 'a run', act: (runtime) => runtime.run(g, {}, T) },
    { name: 'a run that pauses', act: (runtime) => runtime.run(g, { x: 'asks' }, T) },
    { name: 'a run that is refused', act: (runtime) => runtime.continue(g, 'known') },
    { name: 'a run whose first write fails', fails: 'start', act: (runtime) => runtime.run(g, {}, T) },
    { name: 'a run whose last write fails', fails: 'end', act: (runtime) => runtime.run(g, {}, T) },
    {
      name: 'a resume whose first write fails',
      before: g,
      fails: 'resume',
      act: (runtime) => runtime.resume(g, 't', 'yes'),
    },
    { name: 'updateState', act: (runtime) => runtime.updateState(g, 'known', { x: 'y' }) },
    { name: 'updateState that is refused', act: (runtime) => runtime.updateState(g, 'new', {}) },
    {
      name: 'updateState in conflict with what a task wrote',
      before: clashing,
      act: (runtime) => runtime.updateState(clashing, 't', { x: 'y' }),
    },
    {
      name: 'updateState whose write fails',
      fails: 'update',
      act: (runtime) => runtime.updateState(g, 'known', { x: 'y' }),
    },
    { name: 'compact', act: (runtime) => runtime.compact(g, 'known') },
    { name: 'compact that is refused', before: g, act: (runtime) => runtime.compact(g, 't') },
    { name: 'compact whose write fails', fails: 'snapshot', act: (runtime) => runtime.compact(g, 'known') },
  ])('leaves no timer and no hold behind after $name', async ({ before, fails, act }) => {
    const { clock, runtime, store } = renewing({
      policies: [answering('Door', { 'run.before': { action: 'proceed' } })],
    })
    await runtime.run(g, {}, { thread: 'known' })
    if (before !== undefined) await runtime.run(before, { x: 'asks' }, T)
    if (fails !== undefined) store.fail('before', { type: fails })
    const error = await errorOf(act(runtime))
    if (fails !== undefined) expect(error).toMatchObject({ code: 'STORE_FAILED' })
    expect(clock.pending).toBe(0)
    expect(store.lines().filter(({ busy }) => busy)).toEqual([])
  })
})

describe('a state whose schema does not take what it makes itself', () => {
  it('is refused while nothing is written, for it could not be read back', async () => {
    const { runtime } = setUp()
    const Dated = state({ at: z.date().transform((date) => date.toISOString()) })
    const work = node('work', Dated, () => ({}))
    const g = graph('dated', Dated).edge(START, work).edge(work, END).check()
    const error = await runtime.run(g, { at: new Date(0) }, T).catch((thrown) => thrown)
    expect(error).toMatchObject({ code: 'THREAD_STATE', at: { field: 'at' } })
    expect(await runtime.history('t')).toEqual([])
    expect((await runtime.run(g, { at: new Date(0) })).state.at).toBe('1970-01-01T00:00:00.000Z')
  })
})
