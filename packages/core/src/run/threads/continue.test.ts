import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Clock, open, quiet } from '../../../testing/clock.ts'
import type { Cut } from '../../../testing/failing-store.ts'
import {
  chain,
  errorOf,
  fanOut,
  Log,
  type LogState,
  logNode,
  type Run,
  setUp,
  together,
} from '../../../testing/threads.ts'
import { append, command, createRuntime, END, graph, node, type RunEvent, START, state, tool } from '../../index.ts'

const T = { thread: 't' }
const never = () => new Promise(() => {})

/** Reads a stream up to and including the first event that fits, and leaves it. */
async function readUntil(stream: AsyncIterable<RunEvent>, fits: (event: RunEvent) => boolean) {
  for await (const event of stream) if (fits(event)) return
}

describe('continue goes on', () => {
  it('E3: after a run that spent its supersteps; each node runs once', async () => {
    const { store, ran, says } = setUp()
    const g = chain({ a: says('a'), b: says('b'), c: says('c'), d: says('d') })
    const short = createRuntime({ store, limits: { maxIterations: 2 } })
    expect(await errorOf(short.run(g, {}, T))).toMatchObject({ code: 'MAX_ITERATIONS' })
    expect(ran).toEqual(['a', 'b'])
    const done = await createRuntime({ store }).continue(g, 't')
    expect(done).toMatchObject({ status: 'completed', state: { log: ['a', 'b', 'c', 'd'] }, counts: { supersteps: 2 } })
    expect(ran).toEqual(['a', 'b', 'c', 'd'])
  })

  it('E4: after its stream was closed between two supersteps; what ran does not run again', async () => {
    const { ran, says, runtime } = setUp()
    let waits = true
    const c: Run = (s, ctx) => (waits ? never() : says('c')(s, ctx))
    const g = chain({ a: says('a'), b: says('b'), c })
    const stream = runtime.stream(g, {}, { ...T, mode: 'updates' })
    await readUntil(stream, (event) => event.type === 'update' && event.nodeName === 'b')
    waits = false
    const done = await runtime.continue(g, 't')
    expect(done.state.log).toEqual(['a', 'b', 'c'])
    expect(ran).toEqual(['a', 'b', 'c'])
  })

  it('E5: after its stream was closed inside a superstep; only tasks that were not through run again', async () => {
    const { ran, says, runtime } = setUp()
    const b = () => (ran.push('b') === 2 ? never() : { log: ['b'] })
    const g = together({ a: says('a'), b })
    const stream = runtime.stream(g, {}, T)
    await readUntil(stream, (event) => event.type === 'node_complete' && event.nodeName === 'a')
    const done = await runtime.continue(g, 't')
    expect(done.state.log).toEqual(['a', 'b'])
    expect(ran).toEqual(['a', 'b', 'b'])
  })

  it.each([
    { name: 'failed', fail: () => Promise.reject(new Error('no')), options: {} },
    { name: 'timed out', fail: never, options: { timeoutMs: 1_000 } },
  ])(
    'E6: after a task $name; a sibling that was through keeps its update and the way it chose',
    async ({ fail, options }) => {
      const clock = new Clock()
      const { ran, says, runtime } = setUp({ platform: clock })
      let fails = true
      const next = logNode('next', says('next'))
      const chooses = () => {
        ran.push('a')
        return command({ update: { log: ['a'] }, goto: next })
      }
      const a = logNode('a', chooses, { goto: [next] })
      const b = logNode(
        'b',
        async () => {
          ran.push('b')
          await quiet()
          if (fails) await fail()
          return { log: ['b'] }
        },
        options,
      )
      const split = logNode('split', () => command({ goto: [a, b] }), { goto: [a, b] })
      const g = graph('g', Log).edge(START, split).edge(b, END).edge(next, END).check()
      const failed = errorOf(runtime.run(g, {}, T))
      await clock.pass(1_000)
      expect(await failed).toBeDefined()
      expect(await runtime.stateAt(g, 't')).toMatchObject({ status: 'failed', state: { log: [] }, next: ['b'] })
      fails = false
      const done = await runtime.continue(g, 't')
      expect(done.state.log).toEqual(['a', 'b', 'next'])
      expect(ran).toEqual(['a', 'b', 'b', 'next'])
    },
  )

  it('after a predicate that failed: the way is chosen anew, and the node does not run again', async () => {
    const { ran, says, runtime } = setUp()
    let fails = true
    const a = logNode('a', says('a'))
    const b = logNode('b', says('b'))
    const chosen = (s: LogState) => {
      if (fails) throw new Error('no way')
      return s.log.length === 1
    }
    const g = graph('g', Log).edge(START, a).when(a, chosen, { then: b, otherwise: END }).edge(b, END).check()
    await expect(runtime.run(g, {}, T)).rejects.toThrow('no way')
    fails = false
    expect((await runtime.continue(g, 't')).state.log).toEqual(['a', 'b'])
    expect(ran).toEqual(['a', 'b'])
  })

  it('with the label that a finished sibling chose, and with the END that another did', async () => {
    const { ran, says, runtime } = setUp()
    let fails = true
    const chooses = (name: string, options: Parameters<typeof command>[0]) =>
      logNode(
        name,
        () => {
          ran.push(name)
          return command(options)
        },
        { goto: [END] },
      )
    const [a, b] = [chooses('a', { branch: 'yes' }), chooses('b', { goto: END })]
    const c = logNode('c', async () => {
      await quiet()
      if (fails) throw new Error('c failed')
    })
    const [yes, no] = [logNode('yes', says('yes')), logNode('no', says('no'))]
    const split = logNode('split', () => command({ goto: [a, b, c] }), { goto: [a, b, c] })
    const builder = graph('g', Log).edge(START, split).edge(a, yes, { branch: 'yes' }).edge(a, no).edge(b, no)
    const g = builder.edge(c, END).edge(yes, END).edge(no, END).check()
    await expect(runtime.run(g, {}, T)).rejects.toThrow('c failed')
    fails = false
    expect((await runtime.continue(g, 't')).state.log).toEqual(['yes'])
    expect(ran).toEqual(['a', 'b', 'yes'])
  })

  it('with two runs of one graph inside a node, each as itself', async () => {
    const { ran, runtime } = setUp()
    let hangs = true
    const inside = chain({
      first: (s) => void ran.push(`first ${s.x}`),
      second: async (s, ctx) => {
        ctx.emit(s.x)
        if (hangs) await never()
        return { log: [s.x] }
      },
    })
    const g = chain({
      a: async (_s, ctx) => {
        const results = await ctx.gather(ctx.spawn(['one', 'two'].map((x) => ({ graph: inside, input: { x } }))))
        return { log: results.flatMap(({ state }) => (state as LogState).log) }
      },
    })
    await readUntil(runtime.stream(g, {}, T), (event) => event.type === 'custom' && event.data === 'two')
    hangs = false
    expect((await runtime.continue(g, 't')).state.log).toEqual(['one', 'two'])
    expect(ran).toEqual(['first one', 'first two'])
  })

  it('inside the graph that failed in it: what was through there does not run again', async () => {
    const { ran, says, runtime } = setUp()
    let fails = true
    const second: Run = (s, ctx) => {
      if (fails) throw new Error('second failed')
      return says('second')(s, ctx)
    }
    const inside = chain({ first: says('first'), second })
    const g = chain({ a: (_s, ctx) => ctx.run(inside, {}).then(({ log }) => ({ log })) })
    await expect(runtime.run(g, {}, T)).rejects.toThrow('second failed')
    fails = false
    expect((await runtime.continue(g, 't')).state.log).toEqual(['first', 'second'])
    expect(ran).toEqual(['first', 'second'])
  })

  it('after its process was drained: the call that was under way is not made again', async () => {
    const { store, ran, says, runtime } = setUp()
    const gate = open<string>()
    const slow = tool('slow', {
      description: 'Takes its time.',
      input: z.object({}),
      run: () => {
        ran.push('slow')
        return gate.promise
      },
    })
    const g = chain({
      a: async (s, ctx) => {
        await ctx.callTool(slow, {})
        return says('a')(s, ctx)
      },
      b: says('b'),
    })
    const running = errorOf(runtime.run(g, {}, T))
    await quiet()
    const drained = runtime.drain()
    gate.resolve('done')
    await drained
    expect(await running).toMatchObject({ code: 'RUN_DRAINED' })
    expect((await createRuntime({ store }).continue(g, 't')).state.log).toEqual(['a', 'b'])
    expect(ran.filter((name) => name === 'slow')).toEqual(['slow'])
  })

  it('with a tool that failed, also when somebody was asked about that call in an earlier run: it is made again', async () => {
    const { store, ran, runtime } = setUp()
    const act = tool('act', {
      description: 'Fails at its second go.',
      input: z.object({}),
      run: () => {
        if (ran.push('act') === 2) throw new Error('act failed')
        return 'done'
      },
    })
    const g = chain({ a: async (_s, ctx) => ({ log: [`${await ctx.callTool(act, {})}`] }) })
    store.fail('before', { type: 'call' })
    expect(await errorOf(runtime.run(g, {}, T))).toMatchObject({ code: 'STORE_FAILED' })
    expect((await runtime.continue(g, 't')).asks).toMatchObject([{ key: 'a:act@engine' }])
    // The answer is handed over, and then the call cannot begin.
    store.fail('before', { nth: 3 })
    expect(await errorOf(runtime.resume(g, 't', 'retry'))).toMatchObject({ code: 'STORE_FAILED' })
    expect(ran).toEqual(['act'])
    await expect(runtime.continue(g, 't')).rejects.toThrow('act failed')
    expect((await runtime.continue(g, 't')).state.log).toEqual(['done'])
    expect(ran).toEqual(['act', 'act', 'act'])
  })

  it('as the same turn: nodes are told the id of its first run beside that of their own', async () => {
    const { runtime } = setUp()
    const ids: string[][] = []
    let fails = true
    const g = chain({
      a: (_s, ctx) => {
        ids.push([ctx.runId, ctx.rootRunId])
        if (fails) throw new Error('a failed')
      },
    })
    const first = await runtime.settle(g, {}, T)
    fails = false
    const second = await runtime.continue(g, 't')
    expect(second.runId).not.toBe(first.runId)
    expect(ids).toEqual([
      [first.runId, first.runId],
      [second.runId, first.runId],
    ])
  })

  it('A5: with a node that returned a bare value for a list, and returns a list now', async () => {
    const { runtime } = setUp()
    let update: unknown = 'bare'
    const g = chain({ a: () => ({ log: update }) })
    expect(await errorOf(runtime.run(g, {}, T))).toMatchObject({ code: 'STATE_UPDATE', at: { field: 'log' } })
    update = ['bare']
    expect((await runtime.continue(g, 't')).state.log).toEqual(['bare'])
  })

  it('D16: with a node whose send was refused: nothing of it was written, and it runs again', async () => {
    const { runtime, ran } = setUp()
    const payloads: Record<string, unknown>[] = [{ i: 'one' }]
    const g = fanOut(
      (s) => ({ log: [`work ${s.i}`] }),
      payloads,
      () => void ran.push('fan'),
    )
    const error = await errorOf(runtime.run(g, {}, T))
    expect(error).toMatchObject({ code: 'STATE_UPDATE', at: { field: 'i' } })
    expect(error?.message).toContain('the send from node "fan" to node "work"')
    expect(await runtime.stateAt(g, 't')).toMatchObject({ status: 'failed', next: ['fan'] })
    payloads[0] = { i: 1 }
    expect((await runtime.continue(g, 't')).state.log).toEqual(['work 1'])
    expect(ran).toEqual(['fan', 'fan'])
  })

  it('A4: from the state before a node that wrote a wrong type; history tells of the failure, and the thread may be changed by hand', async () => {
    const { runtime } = setUp()
    const g = chain({ a: () => ({ log: ['a'] }), b: (s) => ({ x: s.x === 'mended' ? s.x : 7 }) })
    const error = await errorOf(runtime.run(g, {}, T))
    expect(error).toMatchObject({ code: 'STATE_UPDATE', at: { field: 'x' }, cause: { code: 'SCHEMA_MISMATCH' } })
    expect(error?.message).toContain('node "b" wrote field "x"')
    const history = await runtime.history('t')
    expect(history.map(({ type }) => type)).toEqual(['start', 'begin', 'step', 'failed', 'end'])
    expect(history.find(({ type }) => type === 'failed')).toMatchObject({ task: 'b', error: { code: 'STATE_UPDATE' } })
    expect(await runtime.stateAt(g, 't')).toMatchObject({ status: 'failed', state: { x: '', log: ['a'] }, next: ['b'] })
    await runtime.updateState(g, 't', { x: 'mended' })
    expect((await runtime.continue(g, 't')).state).toMatchObject({ x: 'mended', log: ['a'] })
  })

  it('D8: after a failure beside a question: the failure ends the run, the question is withdrawn, and is put again under its key', async () => {
    const { runtime } = setUp()
    let fails = true
    const asks: Run = async (_s, ctx) => ({ log: [`${await ctx.ask('q', 'well?')}`] })
    const b = async () => {
      await quiet()
      if (fails) throw new Error('b failed')
      return { log: ['b'] }
    }
    const g = together({ a: asks, b })
    const outcome = await runtime.settle(g, {}, T)
    expect(outcome).toMatchObject({ status: 'failed', error: { message: 'b failed' }, asks: [] })
    expect((await runtime.stateAt(g, 't')).asks).toEqual([])
    expect((await runtime.branches('t'))[0]).toMatchObject({ status: 'failed', asks: '[]' })
    expect(await errorOf(runtime.resume(g, 't', 'yes'))).toMatchObject({ code: 'THREAD_NOT_PAUSED' })
    fails = false
    const paused = await runtime.continue(g, 't')
    expect(paused).toMatchObject({ status: 'paused', asks: [{ key: 'a:q' }] })
    expect((await runtime.resume(g, 't', 'yes')).state.log).toEqual(['yes', 'b'])
  })
})

describe('a write that the store fails', () => {
  const lost: readonly { readonly cut: Cut; readonly again: readonly string[] }[] = [
    { cut: 'before', again: ['b'] },
    { cut: 'after', again: [] },
  ]

  it('ends the run with the error of the store', async () => {
    const { runtime, says, store } = setUp()
    store.fail('before', { type: 'step' })
    const outcome = await runtime.settle(chain({ a: says('a') }), {}, T)
    expect(outcome).toMatchObject({ status: 'failed', error: { code: 'STORE_FAILED' } })
  })

  it.each(lost)(
    'E7: $cut a superstep was written is mended by continue: its writes count once',
    async ({ cut, again }) => {
      const { ran, says, runtime, store } = setUp()
      const g = chain({ a: says('a'), b: says('b'), c: says('c') })
      store.fail(cut, { type: 'step', nth: 2 })
      expect(await errorOf(runtime.run(g, {}, T))).toMatchObject({ code: 'STORE_FAILED' })
      const done = await runtime.continue(g, 't')
      expect(done.state.log).toEqual(['a', 'b', 'c'])
      expect(ran).toEqual(['a', 'b', ...again, 'c'])
    },
  )

  it.each(lost)('E8: $cut a superstep of two tasks was written leaves both writes or none', async ({ cut }) => {
    const { ran, says, runtime, store } = setUp()
    const gate = open<void>()
    const b: Run = (s, ctx) => gate.promise.then(() => says('b')(s, ctx))
    const g = together({ a: says('a'), b })
    const failed = errorOf(runtime.run(g, {}, T))
    await quiet()
    store.fail(cut, { type: 'step' })
    gate.resolve()
    expect(await failed).toMatchObject({ code: 'STORE_FAILED' })
    expect((await runtime.stateAt(g, 't')).state?.log).toEqual(cut === 'before' ? [] : ['a', 'b'])
    expect((await runtime.continue(g, 't')).state.log).toEqual(['a', 'b'])
    expect(ran).toEqual(cut === 'before' ? ['a', 'b', 'b'] : ['a', 'b'])
  })

  it.each([
    { cut: 'before', again: ['fan'] },
    { cut: 'after', again: [] },
  ] as const)(
    'E9: $cut the sends of a superstep were written: the next one runs with its payloads',
    async ({ cut, again }) => {
      const { ran, runtime, store } = setUp()
      const work: Run = (s) => {
        ran.push(`work ${s.i}`)
        return { log: [`work ${s.i}`] }
      }
      const g = fanOut(work, [{ i: 1 }, { i: 2 }], () => {
        ran.push('fan')
        return { log: ['fan'] }
      })
      store.fail(cut, { type: 'step' })
      expect(await errorOf(runtime.run(g, {}, T))).toMatchObject({ code: 'STORE_FAILED' })
      expect((await runtime.continue(g, 't')).state.log).toEqual(['fan', 'work 1', 'work 2'])
      expect(ran).toEqual(['fan', ...again, 'work 1', 'work 2'])
    },
  )

  it('at its beginning leaves no trace, and no hold on the thread', async () => {
    const { ran, says, runtime, store } = setUp()
    const g = chain({ a: says('a') })
    store.fail('before')
    expect(await errorOf(runtime.run(g, {}, T))).toMatchObject({ code: 'STORE_FAILED' })
    expect(await runtime.branches('t')).toEqual([])
    expect((await runtime.run(g, {}, T)).state.log).toEqual(['a'])
    expect(ran).toEqual(['a'])
  })

  it.each([
    { cut: 'before', then: 'continue' },
    { cut: 'after', then: 'nothing' },
  ] as const)('$cut the end of a run was written fails it, though every node is through', async ({ cut, then }) => {
    const { ran, says, runtime, store } = setUp()
    const g = chain({ a: says('a'), b: says('b') })
    store.fail(cut, { type: 'end' })
    expect(await errorOf(runtime.run(g, {}, T))).toMatchObject({ code: 'STORE_FAILED' })
    const going = runtime.continue(g, 't')
    if (then === 'continue') expect((await going).state.log).toEqual(['a', 'b'])
    else expect(await errorOf(going)).toMatchObject({ code: 'THREAD_FINISHED' })
    expect(ran).toEqual(['a', 'b'])
    expect((await runtime.stateAt(g, 't')).state?.log).toEqual(['a', 'b'])
  })
})

describe('continue is refused', () => {
  const Short = state({ list: append(z.string(), { whole: z.array(z.string()).max(3) }) })
  const twice = (name: string) => node(name, Short, () => ({ list: [name, name] }))

  it.each([
    { name: 'now', branch: undefined },
    { name: 'on a fork too', branch: 'fork-1' },
  ])('E10: after a superstep whose updates cannot be merged, with the reason, $name', async ({ branch }) => {
    const { runtime } = setUp()
    const [a, b] = [twice('a'), twice('b')]
    const split = node('split', Short, () => command({ goto: [a, b] }), { goto: [a, b] })
    const g = graph('g', Short).edge(START, split).edge(a, END).edge(b, END).check()
    const error = await errorOf(runtime.run(g, {}, T))
    expect(error).toMatchObject({ code: 'STATE_UPDATE', at: { field: 'list' } })
    if (branch !== undefined) await runtime.fork('t')
    const refused = await errorOf(runtime.continue(g, 't', { branch }))
    expect(refused).toMatchObject({ code: 'THREAD_STUCK' })
    expect(refused?.message).toContain(error?.message)
    expect(await errorOf(runtime.resume(g, 't', 1, { branch }))).toMatchObject({ code: 'THREAD_NOT_PAUSED' })
    expect((await runtime.stateAt(g, 't', { branch })).state?.list).toEqual([])
  })

  it('E11: on a thread whose last run completed; nothing runs, and nothing is written', async () => {
    const { ran, says, runtime } = setUp()
    const g = chain({ a: says('a') })
    await runtime.run(g, {}, T)
    const before = await runtime.history('t')
    expect(await errorOf(runtime.continue(g, 't'))).toMatchObject({ code: 'THREAD_FINISHED', at: T })
    expect(ran).toEqual(['a'])
    expect(await runtime.history('t')).toEqual(before)
  })

  it('on a thread that was only begun by hand, which has nothing to go on with', async () => {
    const { says, runtime } = setUp()
    const g = chain({ a: says('a') })
    await runtime.updateState(g, 't', { x: 'given' }, { create: true })
    expect(await errorOf(runtime.continue(g, 't'))).toMatchObject({ code: 'THREAD_FINISHED' })
    expect((await runtime.run(g, {}, T)).state).toMatchObject({ x: 'given', log: ['a'] })
  })

  it('on a thread that waits for an answer, with the keys', async () => {
    const { runtime } = setUp()
    const g = chain({ a: async (_s, ctx) => ({ x: await ctx.ask('q', 'well?') }) })
    await runtime.run(g, {}, T)
    const refused = await errorOf(runtime.continue(g, 't'))
    expect(refused).toMatchObject({ code: 'THREAD_PAUSED' })
    expect(refused?.message).toContain('"a:q"')
  })
})

describe('a new input on a thread', () => {
  it('E13: whose run failed begins a new turn at the start; what was committed stays, and what was not is dropped', async () => {
    const { ran, says, runtime } = setUp()
    let fails = true
    const c = async () => {
      await quiet()
      if (fails) throw new Error('c failed')
      return { log: ['c'] }
    }
    const last = together({ b: says('b'), c })
    await expect(runtime.run(last, { log: ['given'] }, T)).rejects.toThrow('c failed')
    fails = false
    const done = await runtime.run(last, { log: ['again'] }, T)
    expect(done.state.log).toEqual(['given', 'again', 'b', 'c'])
    expect(ran).toEqual(['b', 'b'])
    expect(done.runId).not.toBe('')
  })

  it('forgets a call that was cut off: nobody is asked what became of it, while continuing a fork asks', async () => {
    const { runtime, ran } = setUp()
    let hangs = true
    const act = tool('act', {
      description: 'Hangs at first.',
      input: z.object({}),
      run: () => {
        ran.push('act')
        return hangs ? never() : 'done'
      },
    })
    const g = chain({ a: async (_s, ctx) => ({ log: [`${await ctx.callTool(act, {})}`] }) })
    await readUntil(runtime.stream(g, {}, T), ({ type }) => type === 'tool_call')
    await quiet()
    hangs = false
    await runtime.fork('t')
    expect(await runtime.run(g, {}, T)).toMatchObject({ status: 'completed', state: { log: ['done'] } })
    expect(ran).toEqual(['act', 'act'])
    const asked = await runtime.continue(g, 't', { branch: 'fork-1' })
    expect(asked).toMatchObject({ status: 'paused', asks: [{ key: 'a:act@engine' }] })
  })

  it('whose superstep could not be merged begins a new turn too', async () => {
    const { runtime } = setUp()
    const clash: Run = (s) => ({ x: s.i === 0 ? 'mine' : undefined })
    const g = together({ a: clash, b: clash })
    expect(await errorOf(runtime.run(g, {}, T))).toMatchObject({ code: 'UPDATE_CONFLICT' })
    expect((await runtime.run(g, { i: 1 }, T)).state).toMatchObject({ x: '', i: 1 })
  })
})
