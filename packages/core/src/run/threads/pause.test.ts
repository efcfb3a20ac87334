import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { open, quiet } from '../../../testing/clock.ts'
import { says as answering } from '../../../testing/play.ts'
import { chain, errorOf, fanOut, Log, logNode, type Run, setUp, together } from '../../../testing/threads.ts'
import {
  type AnyNode,
  command,
  createRuntime,
  END,
  type Graph,
  graph,
  graphNode,
  type NodeContext,
  type RunEvent,
  START,
  send,
  tool,
} from '../../index.ts'

const T = { thread: 't' }
const keysOf = ({ asks }: { readonly asks: readonly { readonly key: string }[] }) => asks.map(({ key }) => key)

/** Asks under this id and appends the answer to the log. */
const asks =
  (id: string): Run =>
  async (_s, ctx) => ({ log: [`${id}: ${await ctx.ask(id, `${id}?`)}`] })

describe('a node that asks', () => {
  it('F1: pauses the run, and the answer goes to the node', async () => {
    const { runtime } = setUp()
    const g = chain({ review: async (_s, ctx) => ({ x: await ctx.ask('approve', 'ok?', { schema: z.string() }) }) })
    const paused = await runtime.run(g, {}, T)
    expect(paused).toMatchObject({
      status: 'paused',
      asks: [{ key: 'review:approve', askedBy: 'graph', payload: 'ok?', nodeName: 'review', taskId: 'review' }],
    })
    expect(await runtime.history('t')).toContainEqual(
      expect.objectContaining({
        type: 'ask',
        id: 'approve',
        key: 'review:approve',
        nodeName: 'review',
        payload: 'ok?',
      }),
    )
    const done = await runtime.resume(g, 't', 'yes')
    expect(done).toMatchObject({ status: 'completed', state: { x: 'yes' } })
  })

  it.each(['', 'a b', 'a:b', 'a/b', 'ä'])(
    'F2: under the id %j fails: an id is letters, digits, "_", "." and "-"',
    async (id) => {
      const { runtime } = setUp()
      for (const options of [T, {}]) {
        const error = await errorOf(runtime.run(chain({ a: asks(id) }), {}, options))
        expect(error).toMatchObject({ code: 'ASK_INVALID', at: { node: 'a', ask: id } })
      }
    },
  )

  it('F3: twice under one id fails when it reaches the second one', async () => {
    const { runtime } = setUp()
    const g = chain({ a: async (_s, ctx) => ({ log: [`${await ctx.ask('q', 1)}`, `${await ctx.ask('q', 2)}`] }) })
    expect(keysOf(await runtime.run(g, {}, T))).toEqual(['a:q'])
    expect(await errorOf(runtime.resume(g, 't', 'yes'))).toMatchObject({ code: 'ASK_DUPLICATE', at: { ask: 'q' } })
  })

  it('F3: twice under one id fails too where a policy answers and there is no thread', async () => {
    const policies = [answering('Clerk', { 'ask.before': { action: 'replace', value: 'yes' } })]
    const g = chain({ a: async (_s, ctx) => ({ log: [`${await ctx.ask('q', 1)}`, `${await ctx.ask('q', 2)}`] }) })
    expect(await errorOf(createRuntime({ policies }).run(g, {}))).toMatchObject({ code: 'ASK_DUPLICATE' })
  })

  it('F8: pauses whatever it has around the question: nothing is thrown, so nothing can be caught', async () => {
    const { runtime, ran } = setUp()
    const g = chain({
      a: async (_s, ctx) => {
        try {
          return { log: [`${await ctx.ask('q', 1)}`] }
        } catch {
          ran.push('caught')
          return {}
        } finally {
          ran.push('left')
        }
      },
    })
    expect((await runtime.run(g, {}, T)).status).toBe('paused')
    expect(ran).toEqual([])
    expect((await runtime.resume(g, 't', 'yes')).state.log).toEqual(['yes'])
    expect(ran).toEqual(['left'])
  })

  it('F20: in a run without a thread ends it, for nobody could answer; that cannot be caught either', async () => {
    const { runtime, ran } = setUp()
    const g = chain({ a: (_s, ctx) => ctx.ask('q', 1).catch(() => void ran.push('caught')) })
    const outcome = await runtime.settle(g, {})
    expect(outcome).toMatchObject({
      status: 'failed',
      error: { code: 'ASK_NEEDS_THREAD', at: { node: 'a', ask: 'q' } },
    })
    expect(ran).toEqual([])
  })

  it('makes no settled call twice', async () => {
    const { runtime, store, ran } = setUp()
    const act = tool('act', {
      description: 'acts',
      input: z.object({ n: z.number() }),
      run: ({ n }) => {
        ran.push(`act ${n}`)
        return n
      },
    })
    const g = chain({
      a: async (_s, ctx) => {
        const one = await ctx.callTool(act, { n: 1 })
        const stamp = await ctx.once('stamp', () => ran.push('stamp'))
        const answer = await ctx.ask('go', 'go on?')
        const two = await ctx.callTool(act, { n: 2 })
        return { log: [one, stamp, answer, two].map(String) }
      },
    })
    await runtime.run(g, {}, T)
    const done = await createRuntime({ store }).resume(g, 't', 'yes')
    expect(done.state.log).toEqual(['1', '2', 'yes', '2'])
    expect(ran).toEqual(['act 1', 'stamp', 'act 2'])
  })
})

describe('a run that pauses', () => {
  it('lets siblings finish: they are not run again', async () => {
    const { runtime, ran, says } = setUp()
    const g = together({
      a: (s, ctx) => {
        ran.push('a')
        return asks('q')(s, ctx)
      },
      b: says('b'),
    })
    expect(keysOf(await runtime.run(g, {}, T))).toEqual(['a:q'])
    expect((await runtime.resume(g, 't', 1)).state.log).toEqual(['q: 1', 'b'])
    expect(ran).toEqual(['a', 'b', 'a'])
  })

  it('F12: takes the way that a finished sibling chose once all are through, on the merged state', async () => {
    const { runtime, ran } = setUp()
    const seen: (readonly string[])[] = []
    const next = logNode('next', (s) => {
      seen.push(s.log)
      return {}
    })
    const b = logNode(
      'b',
      () => {
        ran.push('b')
        return command({ update: { log: ['b'] }, goto: [send(next, { i: 1 }), END] })
      },
      { goto: [next, END] },
    )
    const a = logNode('a', asks('q'))
    const split = logNode('split', () => command({ goto: [a, b] }), { goto: [a, b] })
    const g = graph('g', Log).edge(START, split).edge(a, END).edge(next, END).check()
    await runtime.run(g, {}, T)
    expect((await runtime.resume(g, 't', 1)).state.log).toEqual(['q: 1', 'b'])
    expect(seen).toEqual([['q: 1', 'b']])
    expect(ran).toEqual(['b'])
  })

  it('F21: reports the state before the superstep, without what siblings wrote in it', async () => {
    const { runtime, says } = setUp()
    const g = together({ a: asks('q'), b: says('b') })
    const paused = await runtime.run(g, { log: ['given'] }, T)
    expect(paused.state).toEqual({ x: '', i: 0, log: ['given'] })
    expect(await runtime.stateAt(g, 't')).toMatchObject({ status: 'paused', state: paused.state, next: ['a'] })
  })

  it('says so in the last event of its stream, with the questions', async () => {
    const { runtime } = setUp()
    const events: RunEvent[] = []
    for await (const event of runtime.stream(chain({ a: asks('q') }), {}, T)) events.push(event)
    expect(events.at(-1)).toMatchObject({ type: 'run_end', status: 'paused', asks: [{ key: 'a:q' }] })
    expect(events.map(({ type }) => type)).toEqual(['run_start', 'node_start', 'run_end'])
  })

  it('D5: and tasks of one node wrote one field: the last in the order of scheduling counts, paused or not', async () => {
    const { runtime } = setUp()
    const work: Run = async (s, ctx) => ({ x: s.i === 1 ? `${await ctx.ask('q', 1)}` : `${s.i}` })
    const g = fanOut(work, [{ i: 1 }, { i: 2 }])
    expect(keysOf(await runtime.run(g, {}, T))).toEqual(['work:q'])
    expect((await runtime.resume(g, 't', 'late')).state.x).toBe('2')
  })
})

describe('an answer', () => {
  const two = () => together({ a: asks('q'), b: asks('r') })

  it('F4: by itself is refused where several questions are open, and nothing is written', async () => {
    const { runtime } = setUp()
    const g = two()
    await runtime.run(g, {}, T)
    const before = await runtime.history('t')
    const error = await errorOf(runtime.resume(g, 't', 'yes'))
    expect(error).toMatchObject({ code: 'ANSWER_AMBIGUOUS' })
    expect(error?.message).toContain('"a:q", "b:r"')
    expect(await runtime.history('t')).toEqual(before)
  })

  it('F5: to some of several questions is taken: their nodes go on, and the rest stays open', async () => {
    const { runtime, ran } = setUp()
    const noting =
      (name: string, then: Run): Run =>
      (s, ctx) => {
        ran.push(name)
        return then(s, ctx)
      }
    const g = together({ a: noting('a', asks('q')), b: noting('b', asks('r')) })
    await runtime.run(g, {}, T)
    const paused = await runtime.resume(g, 't', { 'b:r': 2 })
    expect(paused).toMatchObject({ status: 'paused', asks: [{ key: 'a:q' }] })
    expect((await runtime.resume(g, 't', { 'a:q': 1 })).state.log).toEqual(['q: 1', 'r: 2'])
    expect(ran).toEqual(['a', 'b', 'b', 'a'])
  })

  it('F5: to one of two questions of one node waits with it for the other', async () => {
    const { runtime, ran } = setUp()
    const g = chain({
      a: async (_s, ctx) => {
        ran.push('a')
        return { log: (await Promise.all([ctx.ask('q', 1), ctx.ask('r', 2)])).map(String) }
      },
    })
    expect(keysOf(await runtime.run(g, {}, T))).toEqual(['a:q', 'a:r'])
    expect(keysOf(await runtime.resume(g, 't', { 'a:r': 'second' }))).toEqual(['a:q'])
    expect(ran).toEqual(['a'])
    expect((await runtime.resume(g, 't', 'first')).state.log).toEqual(['first', 'second'])
  })

  it('F5: to a question that nobody put is refused, and names it', async () => {
    const { runtime } = setUp()
    const g = two()
    await runtime.run(g, {}, T)
    const before = await runtime.history('t')
    const error = await errorOf(runtime.resume(g, 't', { 'a:q': 1, 'b:r': 2, 'c:s': 3 }))
    expect(error).toMatchObject({ code: 'ASK_UNKNOWN' })
    expect(error?.message).toContain('"c:s"')
    expect(await runtime.history('t')).toEqual(before)
  })

  it('F6: is found by the id of its question, so that another way through the node asks the next one', async () => {
    const { runtime } = setUp()
    const g = chain({
      a: async (s, ctx) => {
        if (s.x === 'shorter') return { log: [`${await ctx.ask('r', 2)}`] }
        return { log: [`${await ctx.ask('q', 1)}`, `${await ctx.ask('r', 2)}`] }
      },
    })
    await runtime.run(g, {}, T)
    await runtime.updateState(g, 't', { x: 'shorter' })
    const paused = await runtime.resume(g, 't', { 'a:q': 'first' })
    expect(keysOf(paused)).toEqual(['a:r'])
    await runtime.updateState(g, 't', { x: 'as before' })
    expect((await runtime.resume(g, 't', 'second')).state.log).toEqual(['first', 'second'])
  })

  it('F7: is kept over the next pause, and where another process goes on', async () => {
    const { store } = setUp()
    const g = () =>
      chain({ a: async (_s, ctx) => ({ log: [await ctx.ask('q', 1), await ctx.ask('r', 2)].map(String) }) })
    const process = () => createRuntime({ store })
    expect(keysOf(await process().run(g(), {}, T))).toEqual(['a:q'])
    expect(keysOf(await process().resume(g(), 't', 'first'))).toEqual(['a:r'])
    expect((await process().resume(g(), 't', 'second')).state.log).toEqual(['first', 'second'])
  })

  it.each([
    { name: 'null', answer: null },
    { name: 'false', answer: false },
    { name: 'an object', answer: { approved: true } },
    { name: 'a list', answer: [1, { two: 2 }] },
  ])('F11: may be any JSON: $name, and is the same on every later entry', async ({ answer }) => {
    const { runtime } = setUp()
    const got: unknown[] = []
    const g = chain({
      a: async (_s, ctx) => {
        got.push(await ctx.ask('q', 1))
        await ctx.ask('r', 2)
      },
    })
    await runtime.run(g, {}, T)
    await runtime.resume(g, 't', answer)
    await runtime.resume(g, 't', 'done')
    expect(got).toEqual([answer, answer])
  })

  it('F11: that is no JSON is refused, and nothing is written', async () => {
    const { runtime } = setUp()
    class Answer {
      approved = true
    }
    const g = chain({ a: asks('q') })
    await runtime.run(g, {}, T)
    const before = await runtime.history('t')
    expect(await errorOf(runtime.resume(g, 't', new Answer()))).toMatchObject({ code: 'JSON_VALUE' })
    expect(await runtime.history('t')).toEqual(before)
  })

  it('F13: is kept when its node fails afterwards: nobody is asked again, and continue goes on with it', async () => {
    const { runtime } = setUp()
    let fails = true
    const g = chain({
      a: async (_s, ctx) => {
        const answer = await ctx.ask('q', 1)
        if (fails) throw new Error('after the answer')
        return { log: [`${answer}`] }
      },
    })
    await runtime.run(g, {}, T)
    await expect(runtime.resume(g, 't', 'yes')).rejects.toThrow('after the answer')
    expect(await errorOf(runtime.resume(g, 't', 'no'))).toMatchObject({ code: 'THREAD_NOT_PAUSED' })
    fails = false
    expect((await runtime.continue(g, 't')).state.log).toEqual(['yes'])
  })

  it('F14: is kept when the run that took it is cut off, as are the calls made before', async () => {
    const { runtime, ran } = setUp()
    let hangs = true
    const g = chain({
      a: async (_s, ctx) => {
        await ctx.once('before', () => void ran.push('before'))
        const answer = await ctx.ask('q', 1)
        await ctx.once('after', () => void ran.push('after'))
        ctx.emit('answered')
        if (hangs) await new Promise(() => {})
        return { log: [`${answer}`] }
      },
    })
    await runtime.run(g, {}, T)
    for await (const { type } of runtime.stream(g, undefined, { ...T, resume: 'yes' })) if (type === 'custom') break
    hangs = false
    expect((await runtime.continue(g, 't')).state.log).toEqual(['yes'])
    expect(ran).toEqual(['before', 'after'])
  })
})

describe('a paused thread', () => {
  it('F9: refuses a new input, naming the questions; it can be resumed all the same', async () => {
    const { runtime } = setUp()
    const g = chain({ a: asks('q') })
    await runtime.run(g, {}, T)
    const before = await runtime.history('t')
    const error = await errorOf(runtime.run(g, { x: 'more' }, T))
    expect(error).toMatchObject({ code: 'THREAD_PAUSED', at: T })
    expect(error?.message).toContain('"a:q"')
    expect(await runtime.history('t')).toEqual(before)
    expect((await runtime.resume(g, 't', 1)).state.log).toEqual(['q: 1'])
  })

  it.each([
    { name: 'an input and answers', input: {}, options: { resume: 1 } },
    { name: 'an input and continue', input: {}, options: { continue: true } },
    { name: 'answers and continue', input: undefined, options: { resume: 1, continue: true } },
  ])('F10: is streamed by one of input, answers and continue: $name are refused', async ({ input, options }) => {
    const { runtime } = setUp()
    const g = chain({ a: asks('q') })
    await runtime.run(g, {}, T)
    const before = await runtime.history('t')
    expect(() => runtime.stream(g, input, { ...T, ...options })).toThrow(
      expect.objectContaining({ code: 'STREAM_INPUT' }),
    )
    expect(await runtime.history('t')).toEqual(before)
  })

  it('F10: takes what looks like a route for the value it is', async () => {
    const { runtime } = setUp()
    const g = chain({ a: asks('q') })
    await runtime.run(g, {}, T)
    expect(await errorOf(runtime.resume(g, 't', command({ goto: [] })))).toMatchObject({ code: 'JSON_VALUE' })
  })
})

describe('a policy that answers at `ask`', () => {
  const clerk = (answer: unknown = { action: 'replace', value: 'by policy' }) =>
    answering('Clerk', { 'ask.before': answer as object })

  it.each([
    { name: 'without a thread', options: {} },
    { name: 'on a thread', options: T },
  ])('F15: lets the node go on at once, $name: the run does not pause, and the node runs once', async ({ options }) => {
    const policy = clerk()
    const { runtime, ran } = setUp({ policies: [policy] })
    const g = chain({
      a: (s, ctx) => {
        ran.push('a')
        return asks('q')(s, ctx)
      },
    })
    const done = await runtime.run(g, {}, options)
    expect(done).toMatchObject({ status: 'completed', state: { log: ['q: by policy'] } })
    expect(ran).toEqual(['a'])
    expect(policy.asked).toMatchObject([
      { at: 'ask.before', input: 'q?', subject: { nodeName: 'a', askedBy: 'graph', key: 'a:q' } },
    ])
  })

  it('F15: is remembered with the node: after a pause further on it is not asked again', async () => {
    const policy = clerk(({ subject }: { subject: { key: string } }) =>
      subject.key === 'a:q' ? { action: 'replace', value: 'by policy' } : { action: 'proceed' },
    )
    const { runtime } = setUp({ policies: [policy] })
    const g = chain({ a: async (_s, ctx) => ({ log: [await ctx.ask('q', 1), await ctx.ask('r', 2)].map(String) }) })
    expect(keysOf(await runtime.run(g, {}, T))).toEqual(['a:r'])
    expect((await runtime.resume(g, 't', 'by person')).state.log).toEqual(['by policy', 'by person'])
    expect(policy.asked.map(({ subject }) => (subject as { key?: string }).key)).toEqual(['a:q', 'a:r'])
  })

  it('F16: may take its time', async () => {
    const gate = open<void>()
    const { runtime } = setUp({
      policies: [clerk(() => gate.promise.then(() => ({ action: 'replace', value: 'late' })))],
    })
    const running = runtime.run(chain({ a: asks('q') }), {}, T)
    await quiet()
    gate.resolve()
    expect((await running).state.log).toEqual(['q: late'])
  })

  it.each([
    { name: 'without a thread', options: {} },
    { name: 'on a thread', options: T },
  ])('F19: is consulted once about a question further in, with the node that asks, $name', async ({ options }) => {
    const policy = clerk()
    const { runtime } = setUp({ policies: [policy] })
    const sub = graphNode('sub', Log, chain({ inner: asks('q') }), { share: ['log'] })
    const g = graph('outer', Log).edge(START, sub).edge(sub, END).check()
    expect((await runtime.run(g, {}, options)).state.log).toEqual(['q: by policy'])
    expect(policy.asked.map(({ subject }) => subject)).toMatchObject([{ nodeName: 'inner', key: 'sub/inner:q' }])
  })
})

describe('a graph inside another that asks', () => {
  /** A graph whose one node runs this one, and shares the log with it. */
  function around(name: string, inside: Graph<never, never>) {
    const sub = graphNode(name, Log, inside as never, { share: ['log'] } as never) as AnyNode
    return graph(`around ${name}`, Log).edge(START, sub).edge(sub, END).check() as unknown as Graph<never, never>
  }

  it('F18: pauses all around it; the key of the question leads down to it', async () => {
    const { runtime } = setUp()
    const g = around('sub', chain({ inner: asks('q') }) as never)
    expect(keysOf(await runtime.run(g, {} as never, T))).toEqual(['sub/inner:q'])
    expect((await runtime.resume(g, 't', 1)).state).toMatchObject({ log: ['q: 1'] })
  })

  it('F18: several levels down has a key with every level', async () => {
    const { runtime } = setUp()
    const g = around('outer', around('middle', chain({ inner: asks('q') }) as never))
    expect(keysOf(await runtime.run(g, {} as never, T))).toEqual(['outer/middle/inner:q'])
    expect((await runtime.resume(g, 't', 1)).state).toMatchObject({ log: ['q: 1'] })
  })

  it('F18: in the second of two tasks of one node has the id of that task in its key', async () => {
    const { runtime, ran } = setUp()
    const inside = chain({
      inner: async (s, ctx) => {
        ran.push(`inner ${s.i}`)
        return asks('q')(s, ctx)
      },
    })
    const sub = graphNode('sub', Log, inside, { in: ({ i }) => ({ i }), out: ({ log }) => ({ log }) })
    const fan = logNode('fan', () => command({ goto: [send(sub, { i: 1 }), send(sub, { i: 2 })] }), { goto: [sub] })
    const g = graph('g', Log).edge(START, fan).edge(sub, END).check()
    expect(keysOf(await runtime.run(g, {}, T))).toEqual(['sub/inner:q', 'sub[1]/inner:q'])
    expect(keysOf(await runtime.resume(g, 't', { 'sub[1]/inner:q': 2 }))).toEqual(['sub/inner:q'])
    expect((await runtime.resume(g, 't', 1)).state.log).toEqual(['q: 1', 'q: 2'])
    expect(ran).toEqual(['inner 1', 'inner 2', 'inner 2', 'inner 1'])
  })

  it('goes on where it was: what was through in it does not run again', async () => {
    const { runtime, ran, says } = setUp()
    const inside = chain({ first: says('first'), inner: asks('q'), last: says('last') })
    const call = (_s: unknown, ctx: NodeContext) => ctx.run(inside, {}).then(({ log }) => ({ log }))
    const g = chain({ sub: call })
    expect(keysOf(await runtime.run(g, {}, T))).toEqual(['sub/inner:q'])
    expect((await runtime.resume(g, 't', 1)).state.log).toEqual(['first', 'q: 1', 'last'])
    expect(ran).toEqual(['first', 'last'])
  })
})

describe('a question that was open when its process died', () => {
  it('is put again by continue, and counts as it is put then', async () => {
    const { store, runtime } = setUp()
    let payload = 'first'
    const g = chain({ a: async (_s, ctx) => ({ log: [`${await ctx.ask('q', payload)}`] }) })
    // The question is written, and then nothing any more.
    store.fail('after', { type: 'ask' }).fail('before', { type: 'end' })
    expect(await errorOf(runtime.run(g, {}, T))).toMatchObject({ code: 'STORE_FAILED' })
    payload = 'second'
    const paused = await runtime.continue(g, 't')
    expect(paused.asks.map((ask) => ask.payload)).toEqual(['second'])
    expect((await runtime.stateAt(g, 't')).asks).toEqual(paused.asks)
    expect((await runtime.resume(g, 't', 'yes')).state.log).toEqual(['yes'])
  })
})
