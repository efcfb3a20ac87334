import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { open, quiet } from '../../../testing/clock.ts'
import { FailingStore } from '../../../testing/failing-store.ts'
import { says as answering } from '../../../testing/play.ts'
import { chain, errorOf, type LogGraph, type Run, setUp, together } from '../../../testing/threads.ts'
import { append, createRuntime, END, graph, node, policy, replaceWith, START, state } from '../../index.ts'

const T = { thread: 't' }
const asks: Run = async (s, ctx) => ({ log: [`${await ctx.ask('q', 1)} ${s.x}`] })

describe('updateState', () => {
  it('changes a thread through the reducers, and says the number of the record that holds it', async () => {
    const { runtime, says } = setUp()
    const g = chain({ a: says('a') })
    const { at } = await runtime.run(g, {}, T)
    const updated = await runtime.updateState(g, 't', { x: 'by hand', log: ['by hand'] })
    expect(updated).toBe((at as number) + 1)
    expect((await runtime.history('t')).at(-1)).toMatchObject({
      seq: updated,
      type: 'update',
      values: { x: 'by hand', log: ['by hand'] },
    })
    expect((await runtime.stateAt(g, 't', { at })).state).toMatchObject({ x: '', log: ['a'] })
    expect((await runtime.stateAt(g, 't')).state).toMatchObject({ x: 'by hand', log: ['a', 'by hand'] })
    expect((await runtime.run(g, {}, T)).state).toMatchObject({ x: 'by hand', log: ['a', 'by hand', 'a'] })
  })

  it.each<{ name: string; values: object; code: string }>([
    { name: 'a key that is no field', values: { y: 1 }, code: 'STATE_UPDATE' },
    { name: 'a value that does not fit', values: { x: 1 }, code: 'STATE_UPDATE' },
    { name: 'a value that is no JSON', values: { x: 'ok', i: Number.NaN }, code: 'STATE_UPDATE' },
  ])('refuses $name, and writes nothing', async ({ values, code }) => {
    const { runtime, says } = setUp()
    const g = chain({ a: says('a') })
    await runtime.run(g, {}, T)
    const before = await runtime.history('t')
    expect(await errorOf(runtime.updateState(g, 't', values))).toMatchObject({ code })
    expect(await runtime.history('t')).toEqual(before)
  })

  it('takes nothing back of what a policy keeps, which no field can name', async () => {
    const { store } = setUp()
    const limit = policy({
      name: 'Limit',
      kept: { scope: 'thread', schema: z.object({ turns: z.number().default(0) }) },
      seams: {
        run: {
          before: (_shown, ctx) => {
            ctx.kept.update(({ turns }) => ({ turns: turns + 1 }))
            return ctx.kept.value.turns > 1 ? { action: 'reject', reason: 'one is enough' } : { action: 'proceed' }
          },
        },
      },
    })
    const runtime = createRuntime({ store, policies: [limit] })
    const Free = state({ turns: z.number().default(0), kept: z.looseObject({}).default({}) })
    const step = node('step', Free, () => ({ turns: 1 }))
    const g = graph('g', Free).edge(START, step).edge(step, END).check()
    await runtime.run(g, {}, T)
    await runtime.updateState(g, 't', { turns: 0, kept: { by: 'Limit', scope: 'thread', value: { turns: 0 } } })
    expect(await errorOf(runtime.run(g, {}, T))).toMatchObject({ code: 'REFUSED', reason: 'one is enough' })
  })

  it('E23: begins a thread where it is told to, from the defaults', async () => {
    const { runtime, says } = setUp()
    const g = chain({ a: says('a') })
    await runtime.updateState(g, 't', { log: ['by hand'] }, { create: true })
    expect(await runtime.stateAt(g, 't')).toMatchObject({
      state: { x: '', i: 0, log: ['by hand'] },
      status: 'completed',
      next: [],
    })
    expect((await runtime.run(g, {}, T)).state.log).toEqual(['by hand', 'a'])
  })

  it('E23: begins none without a value for a field that needs one, and stores nothing', async () => {
    const { runtime, store } = setUp()
    const Needs = state({ need: z.string(), log: append(z.string()) })
    const a = node('a', Needs, () => {})
    const g = graph('g', Needs).edge(START, a).edge(a, END).check()
    const refused = await errorOf(runtime.updateState(g, 't', { log: ['x'] }, { create: true }))
    expect(refused).toMatchObject({ code: 'STATE_UPDATE', at: { field: 'need' } })
    expect(store.lines()).toEqual([])
    expect(await errorOf(runtime.stateAt(g, 't'))).toMatchObject({ code: 'THREAD_UNKNOWN' })
    await runtime.updateState(g, 't', { need: 'given' }, { create: true })
    expect((await runtime.stateAt(g, 't')).state).toEqual({ need: 'given', log: [] })
  })

  it('E23: begins no thread with a blank name, and no branch', async () => {
    const { runtime, says } = setUp()
    const g = chain({ a: says('a') })
    expect(await errorOf(runtime.updateState(g, ' ', {}, { create: true }))).toMatchObject({ code: 'THREAD_NAME' })
    const branch = runtime.updateState(g, 't', {}, { create: true, branch: 'b' })
    expect(await errorOf(branch)).toMatchObject({ code: 'THREAD_UNKNOWN' })
  })

  it('changes nothing before the first input was let in', async () => {
    const door = answering('Door', { 'run.before': { action: 'suspend', ask: { question: 'in?' } } })
    const { runtime, says } = setUp({ policies: [door] })
    const g = chain({ a: says('a') })
    expect((await runtime.run(g, {}, T)).status).toBe('paused')
    expect(await errorOf(runtime.updateState(g, 't', { x: 'y' }))).toMatchObject({ code: 'STATE_UPDATE' })
    expect((await runtime.stateAt(g, 't')).asks).toHaveLength(1)
  })

  it('begins no thread that waits at its door: the question stays open', async () => {
    const door = answering('Door', { 'run.before': { action: 'suspend', ask: { question: 'in?' } } })
    const { runtime, says } = setUp({ policies: [door] })
    const g = chain({ a: says('a') })
    await runtime.run(g, {}, T)
    const before = await runtime.history('t')
    const refused = await errorOf(runtime.updateState(g, 't', { x: 'y' }, { create: true }))
    expect(refused).toMatchObject({ code: 'THREAD_PAUSED', at: T })
    expect(await runtime.history('t')).toEqual(before)
  })

  it('begins a thread whose input was turned away, with the labels it was given then and what policies keep of it', async () => {
    const calls = z.object({ calls: z.number().default(0) })
    const door = policy({
      name: 'Door',
      kept: { scope: 'thread', schema: calls },
      seams: {
        run: {
          before: (_shown, ctx) => {
            const { calls } = ctx.kept.update((kept) => ({ calls: kept.calls + 1 }))
            return calls === 1 ? { action: 'reject', reason: 'no', labels: ['tainted'] } : { action: 'proceed' }
          },
        },
      },
    })
    const { runtime, says } = setUp({ policies: [door] })
    const g = chain({ a: says('a') })
    expect(await runtime.settle(g, {}, T)).toMatchObject({ status: 'failed' })
    await runtime.updateState(g, 't', { x: 'by hand' }, { create: true })
    expect(await runtime.stateAt(g, 't')).toMatchObject({ state: { x: 'by hand' }, labels: ['tainted'] })
    expect((await runtime.run(g, {}, T)).state.log).toEqual(['a'])
  })

  it('E25: is refused while a run goes on: a thread has one writer', async () => {
    const { runtime } = setUp()
    const gate = open<void>()
    const g = chain({ a: () => gate.promise.then(() => ({ log: ['a'] })) })
    const running = runtime.run(g, {}, T)
    await quiet()
    expect(await errorOf(runtime.updateState(g, 't', { x: 'by hand' }))).toMatchObject({ code: 'THREAD_BUSY' })
    gate.resolve()
    expect((await running).state).toMatchObject({ x: '', log: ['a'] })
    await runtime.updateState(g, 't', { x: 'by hand' })
    const history = await runtime.history('t')
    expect(history.map(({ seq }) => seq)).toEqual(history.map((_, i) => i + 1))
    expect((await runtime.stateAt(g, 't')).state).toMatchObject({ x: 'by hand', log: ['a'] })
  })
})

describe.each<{
  pending: string
  b: Run
  goOn: (runtime: ReturnType<typeof setUp>['runtime'], g: LogGraph) => Promise<{ state: unknown }>
}>([
  { pending: 'paused', b: asks, goOn: (runtime, g) => runtime.resume(g, 't', 'yes') },
  {
    pending: 'unfinished',
    b: async (s, ctx) => {
      await quiet()
      if (ctx.attempt === 1 && (ctx.context as { fails: boolean }).fails) throw new Error('no')
      return { log: [`yes ${s.x}`] }
    },
    goOn: (runtime, g) => runtime.continue(g, 't', { context: { fails: false } }),
  },
])('updateState on a thread whose superstep is $pending', ({ pending, b, goOn }) => {
  async function begun(a: Run) {
    const { runtime } = setUp()
    const g = together({ a, b })
    await runtime.settle(g, {}, { ...T, context: { fails: true } })
    expect((await runtime.stateAt(g, 't')).next).toEqual(['b'])
    return { runtime, g }
  }

  it('E20: is refused for a field that a finished task wrote, naming it; what that wrote counts', async () => {
    const { runtime, g } = await begun(() => ({ x: 'of a' }))
    const error = await errorOf(runtime.updateState(g, 't', { x: 'by hand' }))
    expect(error).toMatchObject({ code: 'UPDATE_CONFLICT', at: { field: 'x', node: 'a' } })
    expect(error?.message).toContain(`node "a" has written field "x" in the ${pending} superstep`)
    expect((await goOn(runtime, g)).state).toMatchObject({ x: 'of a', log: ['yes '] })
  })

  it('E21: is merged before what a finished task adds to a list', async () => {
    const { runtime, g } = await begun(() => ({ log: ['of a'] }))
    await runtime.updateState(g, 't', { log: ['by hand'] })
    expect((await goOn(runtime, g)).state).toMatchObject({ log: ['by hand', 'of a', 'yes '] })
  })

  it('E21: is refused where it replaces what a finished task adds to, or adds to what one replaces', async () => {
    const adding = await begun(() => ({ log: ['of a'] }))
    expect(await errorOf(adding.runtime.updateState(adding.g, 't', { log: replaceWith([]) }))).toMatchObject({
      code: 'UPDATE_CONFLICT',
      at: { field: 'log' },
    })
    const replacing = await begun(() => ({ log: replaceWith(['of a']) }))
    expect(await errorOf(replacing.runtime.updateState(replacing.g, 't', { log: ['by hand'] }))).toMatchObject({
      code: 'UPDATE_CONFLICT',
    })
  })

  it('E22: is what the waiting node reads when it goes on', async () => {
    const { runtime, g } = await begun(() => ({}))
    await runtime.updateState(g, 't', { x: 'by hand' })
    expect((await goOn(runtime, g)).state).toMatchObject({ x: 'by hand', log: ['yes by hand'] })
  })
})

it('E22: what a node writes after it was resumed wins over a change by hand', async () => {
  const { runtime } = setUp()
  const g = chain({ a: async (s, ctx) => ({ log: [`${await ctx.ask('q', 1)} ${s.x}`], x: 'of a' }) })
  await runtime.run(g, {}, T)
  await runtime.updateState(g, 't', { x: 'by hand' })
  expect((await runtime.resume(g, 't', 'yes')).state).toEqual({ x: 'of a', i: 0, log: ['yes by hand'] })
})

describe('stateAt', () => {
  /** A store in which somebody else changes the thread right after it was read. */
  class Growing extends FailingStore {
    override read(...args: Parameters<FailingStore['read']>) {
      const records = super.read(...args)
      const update = JSON.stringify({ type: 'update', values: { log: ['meanwhile'] }, time: 0 })
      this.append(this.acquire(args[0]), { seq: records.length + 1, records: [update], release: true })
      return records
    }
  }

  it('E24: is of one record, which it names, though the thread grows while it is read', async () => {
    const runtime = createRuntime({ store: new Growing() })
    const g = chain({ a: () => ({ log: ['a'] }) })
    const { at = 0 } = await runtime.run(g, {}, T)
    expect(await runtime.stateAt(g, 't')).toMatchObject({ at, state: { log: ['a'] } })
    expect(await runtime.stateAt(g, 't')).toMatchObject({ at: at + 1, state: { log: ['a', 'meanwhile'] } })
  })
})
