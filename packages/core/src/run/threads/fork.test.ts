import { describe, expect, it } from 'vitest'
import { Clock, quiet } from '../../../testing/clock.ts'
import { says as answering } from '../../../testing/play.ts'
import { chain, errorOf, fanOut, Log, type Run, setUp, together } from '../../../testing/threads.ts'
import { END, graph, graphNode, type Runtime, START } from '../../index.ts'

const T = { thread: 't' }
const F = { branch: 'fork-1' }

/** The sequence number of the `nth` record of that type, from 0. */
async function seqOf(runtime: Runtime, type: string, nth = 0): Promise<number> {
  const found = (await runtime.history('t')).filter((record) => record.type === type)[nth]
  return found?.seq ?? Number.NaN
}

describe('a fork', () => {
  it('E14: goes on from a place in a run that is over: only later nodes run, and the line it comes from stays as it is', async () => {
    const { runtime, ran, says } = setUp()
    const g = chain({ a: says('a'), b: says('b'), c: says('c') })
    const main = await runtime.run(g, {}, T)
    const before = await runtime.history('t')
    ran.length = 0
    const at = await seqOf(runtime, 'step')
    expect(await runtime.fork('t', { at })).toEqual({ thread: 't', branch: 'fork-1' })
    const fork = await runtime.continue(g, 't', F)
    expect(fork).toMatchObject({ status: 'completed', state: main.state, branch: 'fork-1' })
    expect(ran).toEqual(['b', 'c'])
    expect(await runtime.history('t')).toEqual(before)
  })

  it('shares the history before it, under the numbers of its origin, and goes on counting from there', async () => {
    const { runtime, says } = setUp()
    const g = chain({ a: says('a'), b: says('b') })
    await runtime.run(g, {}, T)
    const at = await seqOf(runtime, 'step')
    await runtime.fork('t', { at })
    const shared = (await runtime.history('t')).slice(0, at)
    expect(await runtime.history('t', F)).toEqual(shared)
    await runtime.continue(g, 't', F)
    const history = await runtime.history('t', F)
    expect(history.slice(0, at)).toEqual(shared)
    expect(history.map(({ seq }) => seq)).toEqual(history.map((_, i) => i + 1))
    expect(history.slice(at).map(({ type }) => type)).toEqual(['continue', 'step', 'end'])
  })

  it('E15: from between the end of a task and the merge of its superstep: the state is that before, and the task does not run again', async () => {
    const { runtime, ran, says } = setUp()
    const b: Run = async (s, ctx) => {
      await quiet()
      return says('b')(s, ctx)
    }
    const g = together({ a: says('a'), b })
    await runtime.run(g, {}, T)
    ran.length = 0
    await runtime.fork('t', { at: await seqOf(runtime, 'task') })
    expect(await runtime.stateAt(g, 't', F)).toMatchObject({ state: { log: [] }, next: ['b'] })
    expect((await runtime.continue(g, 't', F)).state.log).toEqual(['a', 'b'])
    expect(ran).toEqual(['b'])
  })

  it('E16: from inside a fan-out: only payloads that were not through run', async () => {
    const { runtime, ran } = setUp()
    const work: Run = async (s) => {
      for (let i = 1; i < s.i; i++) await quiet()
      ran.push(`work ${s.i}`)
      return { log: [`work ${s.i}`] }
    }
    const g = fanOut(work, [{ i: 1 }, { i: 2 }, { i: 3 }])
    await runtime.run(g, {}, T)
    ran.length = 0
    await runtime.fork('t', { at: await seqOf(runtime, 'task', 1) })
    expect(await runtime.stateAt(g, 't', F)).toMatchObject({ next: ['work[2]'] })
    expect((await runtime.continue(g, 't', F)).state.log).toEqual(['work 1', 'work 2', 'work 3'])
    expect(ran).toEqual(['work 3'])
  })

  it.each([
    { name: 'while it waits', late: false },
    { name: 'after it has gone on', late: true },
  ])(
    'E17: of a paused thread, $name, takes an answer of its own; what was done before the question counts on both',
    async ({ late }) => {
      const { runtime, ran } = setUp()
      const g = chain({
        a: async (_s, ctx) => {
          const stamp = await ctx.once('stamp', () => ran.push('stamp'))
          return { log: [`${stamp} ${await ctx.ask('q', 1)}`] }
        },
      })
      const { at } = await runtime.run(g, {}, T)
      const resume = async () => expect((await runtime.resume(g, 't', 'main')).state.log).toEqual(['1 main'])
      if (late) await resume()
      await runtime.fork('t', { at })
      expect(await runtime.stateAt(g, 't', F)).toMatchObject({ status: 'paused', asks: [{ key: 'a:q' }] })
      expect((await runtime.resume(g, 't', 'fork', F)).state.log).toEqual(['1 fork'])
      if (!late) await resume()
      expect(ran).toEqual(['stamp'])
    },
  )

  it('is there with the way it stands or not at all, and counts as written when it was made', async () => {
    const clock = new Clock()
    const { runtime, store } = setUp({ platform: clock })
    const g = chain({ a: async (_s, ctx) => ({ log: [`${await ctx.ask('q', 1)}`] }) })
    const { at } = await runtime.run(g, {}, T)
    await runtime.resume(g, 't', 'yes')
    const before = store.appends
    await clock.pass(1_000)
    await runtime.fork('t', { at, name: 'before' })
    await runtime.fork('t', { name: 'head' })
    expect(store.appends).toBe(before)
    const lines = (await runtime.branches('t')).map(({ branch, status, at, asks }) => ({ branch, status, at, asks }))
    expect(lines).toMatchObject([
      { branch: 'before', status: 'paused', at: clock.time(), asks: expect.stringContaining('"key":"a:q"') },
      { branch: 'head', status: 'completed', at: clock.time(), asks: '[]' },
      { branch: 'main', status: 'completed', at: clock.time() - 1_000 },
    ])
  })

  it('of a paused thread refuses an input, as its origin does; from a place before the question it takes one', async () => {
    const { runtime } = setUp()
    const g = chain({ a: async (_s, ctx) => ({ log: [`${await ctx.ask('q', 1)}`] }) })
    await runtime.run(g, {}, T)
    await runtime.fork('t')
    expect(await errorOf(runtime.run(g, {}, { ...T, ...F }))).toMatchObject({ code: 'THREAD_PAUSED' })
    await runtime.fork('t', { at: await seqOf(runtime, 'begin') })
    const paused = await runtime.run(g, { x: 'other' }, { ...T, branch: 'fork-2' })
    expect(paused).toMatchObject({ status: 'paused', state: { x: 'other' } })
  })

  it.each([
    { name: 'that begins afresh, while it waits', remember: false, late: false },
    { name: 'that begins afresh, after it has gone on', remember: false, late: true },
    { name: 'that remembers, while it waits', remember: true, late: false },
    { name: 'that remembers, after it has gone on', remember: true, late: true },
  ])(
    'E18: of a thread paused inside a graph $name: each branch goes on with a run of its own',
    async ({ remember, late }) => {
      const { runtime, ran, says } = setUp()
      const inside = chain({ first: says('first'), ask: async (_s, ctx) => ({ log: [`${await ctx.ask('q', 1)}`] }) })
      const sub = graphNode('sub', Log, inside, { in: () => ({}), out: ({ log }) => ({ log }), remember })
      const g = graph('outer', Log).edge(START, sub).edge(sub, END).check()
      const { at } = await runtime.run(g, {}, T)
      const inner = (answer: string) => ['first', answer]
      const resume = async () => expect((await runtime.resume(g, 't', 'main')).state.log).toEqual(inner('main'))
      if (late) await resume()
      await runtime.fork('t', { at })
      expect((await runtime.resume(g, 't', 'fork', F)).state.log).toEqual(inner('fork'))
      if (!late) await resume()
      expect(ran).toEqual(['first'])
      for (const [branch, answer] of Object.entries({ main: 'main', 'fork-1': 'fork' })) {
        await runtime.run(g, {}, { ...T, branch })
        const { state } = await runtime.resume(g, 't', 'again', { branch })
        const next = remember ? [...inner(answer), ...inner('again')] : inner('again')
        expect(state.log).toEqual([...inner(answer), ...next])
      }
    },
  )

  it('of a fork goes on from there', async () => {
    const { runtime, says } = setUp()
    const g = chain({ a: says('a'), b: says('b'), c: says('c') })
    await runtime.run(g, {}, T)
    await runtime.fork('t', { at: await seqOf(runtime, 'step') })
    await runtime.continue(g, 't', F)
    const at = await seqOf(runtime, 'step', 1)
    await runtime.fork('t', { ...F, at: at + 1, name: 'deeper' })
    expect((await runtime.continue(g, 't', { branch: 'deeper' })).state.log).toEqual(['a', 'b', 'c'])
    expect((await runtime.branches('t')).find(({ branch }) => branch === 'deeper')).toMatchObject({
      forkedFrom: { branch: 'fork-1', at: at + 1 },
    })
  })

  it('has the labels that were given before it, and shares none that come after', async () => {
    const labels = answering('Labels', {
      'node.before': ({ subject }) => ({ action: 'proceed', labels: [`${subject.nodeName}`] }),
    })
    const { runtime, says } = setUp({ policies: [labels] })
    const g = chain({ a: says('a'), b: says('b') })
    await runtime.run(g, {}, T)
    await runtime.fork('t', { at: await seqOf(runtime, 'step') })
    expect((await runtime.stateAt(g, 't', F)).labels).toEqual(['a'])
    expect((await runtime.stateAt(g, 't')).labels).toEqual(['a', 'b'])
  })
})

describe('where a fork stands', () => {
  const standing = async (runtime: Runtime) => {
    const found = (await runtime.branches('t')).find(({ branch }) => branch === 'fork-1')
    return { status: found?.status, asks: JSON.parse(found?.asks ?? '').map(({ key }: { key: string }) => key) }
  }

  it.each([
    { name: 'in the middle of a run', type: 'step', nth: 0, status: undefined, asks: [] },
    { name: 'where it waits', type: 'end', nth: 0, status: 'paused', asks: ['b:q'] },
    { name: 'after it was changed by hand there', type: 'update', nth: 0, status: 'paused', asks: ['b:q'] },
    { name: 'where it goes on', type: 'resume', nth: 0, status: undefined, asks: [] },
    { name: 'at its end', type: 'end', nth: 1, status: 'completed', asks: [] },
  ])('is told by the list of branches as of its place: $name', async ({ type, nth, status, asks }) => {
    const { runtime, says } = setUp()
    const g = chain({ a: says('a'), b: async (_s, ctx) => ({ log: [`${await ctx.ask('q', 1)}`] }) })
    await runtime.run(g, {}, T)
    await runtime.updateState(g, 't', { x: 'by hand' })
    await runtime.resume(g, 't', 'yes')
    await runtime.fork('t', { at: await seqOf(runtime, type, nth) })
    expect(await standing(runtime)).toEqual({ status, asks })
  })
})

describe('the name of a fork', () => {
  it('is the next one that is free where none is given', async () => {
    const { runtime, says } = setUp()
    await runtime.run(chain({ a: says('a') }), {}, T)
    await runtime.fork('t', { name: 'fork-2' })
    expect([await runtime.fork('t'), await runtime.fork('t')]).toMatchObject([
      { branch: 'fork-1' },
      { branch: 'fork-3' },
    ])
  })

  it.each([
    { name: 'taken', fork: { name: 'taken' }, code: 'BRANCH_EXISTS' },
    { name: 'that of the main line', fork: { name: 'main' }, code: 'BRANCH_EXISTS' },
    { name: 'blank', fork: { name: ' ' }, code: 'THREAD_NAME' },
    { name: 'empty', fork: { name: '' }, code: 'THREAD_NAME' },
  ])('E19: is refused when it is $name, and nothing is written', async ({ fork, code }) => {
    const { runtime, says } = setUp()
    await runtime.run(chain({ a: says('a') }), {}, T)
    await runtime.fork('t', { name: 'taken' })
    const before = await runtime.branches('t')
    expect(await errorOf(runtime.fork('t', fork))).toMatchObject({ code })
    expect(await runtime.branches('t')).toEqual(before)
  })

  it.each([0, 99, 1.5])('E19: is not given to a fork from record %d, which is not there', async (at) => {
    const { runtime, says } = setUp()
    await runtime.run(chain({ a: says('a') }), {}, T)
    expect(await errorOf(runtime.fork('t', { at }))).toMatchObject({ code: 'HISTORY_UNKNOWN' })
    expect(await runtime.branches('t')).toHaveLength(1)
  })
})
