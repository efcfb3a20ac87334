import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Clock, quiet } from '../../../testing/clock.ts'
import { says } from '../../../testing/play.ts'
import { chain, errorOf, type Run, setUp, together } from '../../../testing/threads.ts'
import { type Ask, type AskOptions, createRuntime, type Schema, tool } from '../../index.ts'

const T = { thread: 't' }

describe('several questions at once', () => {
  it('B1: of parallel nodes: none is entered before all its own are answered, and none that was answered is put again', async () => {
    const { store, ran } = setUp()
    const asksTwice =
      (name: string): Run =>
      async (_s, ctx) => {
        ran.push(name)
        const [one, two] = await Promise.all([ctx.ask('one', `${name} 1`), ctx.ask('two', `${name} 2`)])
        await ctx.once('effect', () => void ran.push(`effect of ${name}`))
        return { log: [`${name} ${one} ${two}`] }
      }
    const g = together({ a: asksTwice('a'), b: asksTwice('b'), c: asksTwice('c') })
    const runtime = () => createRuntime({ store })
    const put = [(await runtime().run(g, {}, T)).asks.map(({ key }) => key)]
    for (const [answered, entered] of [
      [['c:two'], []],
      [
        ['a:one', 'c:one'],
        ['c', 'effect of c'],
      ],
      [
        ['b:two', 'a:two'],
        ['a', 'effect of a'],
      ],
      [['b:one'], ['b', 'effect of b']],
    ] as const) {
      ran.splice(0)
      const { asks } = await runtime().resume(g, 't', new Map(answered.map((key) => [key, key])))
      put.push(asks.map(({ key }) => key))
      expect(ran).toEqual(entered)
    }
    expect(put).toEqual([
      ['a:one', 'a:two', 'b:one', 'b:two', 'c:one', 'c:two'],
      ['a:one', 'a:two', 'b:one', 'b:two', 'c:one'],
      ['a:two', 'b:one', 'b:two'],
      ['b:one'],
      [],
    ])
    expect((await runtime().stateAt(g, 't')).state?.log).toEqual(['a a:one a:two', 'b b:one b:two', 'c c:one c:two'])
  })

  it('B2: of parallel tools: each has a key of its own, and is answered by it, in any order', async () => {
    const { store } = setUp()
    const ask = tool('ask', {
      description: 'Asks.',
      input: z.object({ n: z.number() }),
      run: async ({ n }, ctx) => `${n} ${await ctx.ask('q', { n })}`,
    })
    const g = chain({
      a: async (_s, ctx) => ({ log: (await Promise.all([1, 2, 3].map((n) => ctx.callTool(ask, { n })))) as string[] }),
    })
    const runtime = () => createRuntime({ store })
    const { asks } = await runtime().run(g, {}, T)
    expect(asks.map(({ key, payload }) => [key, payload])).toEqual([
      ['a:ask:q', { n: 1 }],
      ['a:ask[1]:q', { n: 2 }],
      ['a:ask[2]:q', { n: 3 }],
    ])
    const left = await runtime().resume(g, 't', new Map([['a:ask[2]:q', 'third']]))
    expect(left.asks.map(({ key }) => key)).toEqual(['a:ask:q', 'a:ask[1]:q'])
    const answers = new Map([
      ['a:ask[1]:q', 'second'],
      ['a:ask:q', 'first'],
    ])
    expect((await runtime().resume(g, 't', answers)).state.log).toEqual(['1 first', '2 second', '3 third'])
  })

  it.each([
    { where: 'in the process that asked', elsewhere: false },
    { where: 'in another one, by the schema that was written down', elsewhere: true },
  ])('B5: take answers that fit the question they are for, $where; else nothing changes', async ({ elsewhere }) => {
    const { store } = setUp()
    const checkJson = (schema: { readonly type?: unknown }, value: unknown) => {
      if (typeof value !== schema.type) throw new Error(`it is no ${schema.type}.`)
    }
    const make = () =>
      together({
        a: async (_s, ctx) => ({ log: [`${await ctx.ask('q', 'a number', { schema: z.number() })}`] }),
        b: async (_s, ctx) => ({ log: [`${await ctx.ask('q', 'a text', { schema: z.string() })}`] }),
      })
    const g = make()
    await createRuntime({ store }).run(g, {}, T)
    const [again, runtime] = [elsewhere ? make() : g, createRuntime({ store, checkJson: checkJson as never })]
    const before = await runtime.history('t')
    const swapped = new Map<string, unknown>([
      ['a:q', 'text'],
      ['b:q', 7],
    ])
    expect(await errorOf(runtime.resume(again, 't', swapped))).toMatchObject({
      code: 'ANSWER_INVALID',
      at: { thread: 't', ask: 'a:q' },
    })
    expect(await runtime.history('t')).toEqual(before)
    const right = new Map<string, unknown>([
      ['b:q', 'text'],
      ['a:q', 7],
    ])
    expect((await runtime.resume(again, 't', right)).state.log).toEqual(['7', 'text'])
  })

  it('B5: are put again where an answer misfits that nobody could check before: continue asks under the same key', async () => {
    const { store } = setUp()
    const even: Schema<number> = {
      '~standard': {
        version: 1,
        vendor: 'own',
        validate: (value) =>
          typeof value === 'number' && value % 2 === 0 ? { value } : { issues: [{ message: 'odd' }] },
      },
    }
    const make = () => chain({ a: async (_s, ctx) => ({ log: [`${await ctx.ask('q', 'even?', { schema: even })}`] }) })
    const paused = await createRuntime({ store }).run(make(), {}, T)
    expect(paused.asks[0]?.schema).toBeUndefined()
    expect(await errorOf(createRuntime({ store }).resume(make(), 't', 7))).toMatchObject({
      code: 'ANSWER_INVALID',
      at: { node: 'a', ask: 'q' },
    })
    expect((await createRuntime({ store }).continue(make(), 't')).asks.map(({ key }) => key)).toEqual(['a:q'])
    expect((await createRuntime({ store }).resume(make(), 't', 8)).state.log).toEqual(['8'])
  })

  it.each([{ digest: 'h1:0000000000000000' }, { digest: 7 }, null, 'text', [1]])(
    'may say anything that is JSON: %j',
    async (payload) => {
      const { store } = setUp()
      const g = chain({ a: async (_s, ctx) => ({ log: [`${await ctx.ask('q', payload)}`] }) })
      expect((await createRuntime({ store }).run(g, {}, T)).asks[0]?.payload).toEqual(payload)
      expect((await createRuntime({ store }).resume(g, 't', 'yes')).state.log).toEqual(['yes'])
    },
  )

  it('B6: are found by the name of the thread alone, in a process that knows nothing else', async () => {
    const { store } = setUp()
    const make = () => chain({ a: async (_s, ctx) => ({ log: [`${await ctx.ask('q', 'well?')}`] }) })
    await createRuntime({ store }).run(make(), {}, T)
    const [line] = await createRuntime({ store }).branches('t')
    expect(line).toMatchObject({ thread: 't', status: 'paused', graph: 'g', busy: false })
    expect(JSON.parse(line?.asks ?? '')).toMatchObject([{ key: 'a:q', payload: 'well?' }])
    expect((await createRuntime({ store }).resume(make(), 't', 'yes')).state.log).toEqual(['yes'])
  })
})

it('questions of several tasks come in the order of the tasks, wherever one looks and whoever asked first', async () => {
  const { runtime } = setUp()
  const asks =
    (turns: number): Run =>
    async (_s, ctx) => {
      for (let i = 0; i < turns; i++) await ctx.once(`wait ${i}`, () => quiet().then(() => null))
      return { log: [`${await ctx.ask('q', 'well?')}`] }
    }
  const g = together({ a: asks(2), b: asks(0), c: asks(1) })
  const seen = async (branch = 'main') => {
    const line = (await runtime.branches('t')).find((each) => each.branch === branch)
    const lists = [(await runtime.stateAt(g, 't', { branch })).asks, JSON.parse(line?.asks ?? '') as Ask[]]
    return lists.map((asks) => asks.map(({ key }) => key))
  }
  const { asks: first, at } = await runtime.run(g, {}, T)
  const all = ['a:q', 'b:q', 'c:q']
  expect(first.map(({ key }) => key)).toEqual(all)
  expect(await seen()).toEqual([all, all])
  const { asks: left } = await runtime.resume(g, 't', { 'b:q': 'yes' })
  const open = ['a:q', 'c:q']
  expect(left.map(({ key }) => key)).toEqual(open)
  expect(await seen()).toEqual([open, open])
  await runtime.fork('t', { at, name: 'before' })
  expect(await seen('before')).toEqual([all, all])
})

describe('B9: a node that asks again and again', () => {
  it('pauses each time with a reason, is entered for each answer, and keeps them all', async () => {
    const { store, ran } = setUp()
    const g = chain({
      a: async (_s, ctx) => {
        ran.push('a')
        const log: string[] = []
        for (let i = 1; i <= 5; i++) log.push(`${await ctx.ask(`q${i}`, i)}`)
        return { log }
      },
    })
    let outcome = await createRuntime({ store }).run(g, {}, T)
    for (let i = 1; i <= 5; i++) {
      expect(outcome).toMatchObject({ status: 'paused', asks: [{ key: `a:q${i}`, payload: i }] })
      outcome = await createRuntime({ store }).resume(g, 't', i * 10)
    }
    expect(outcome.state.log).toEqual(['10', '20', '30', '40', '50'])
    expect(ran).toHaveLength(6)
  })
})

describe('a question of a node that nobody answers in time', () => {
  const play = async (options: AskOptions, caught: unknown[] = []) => {
    const { store } = setUp()
    const platform = new Clock()
    const runtime = () => createRuntime({ store, platform })
    const g = chain({
      a: async (_s, ctx) => {
        try {
          return { log: [`${await ctx.ask('q', 'well?', options)}`] }
        } catch (error) {
          caught.push(error)
          throw error
        }
      },
    })
    const paused = await runtime().run(g, {}, T)
    return { g, platform, runtime, paused, caught }
  }

  it('says until when, and takes an answer until then', async () => {
    const { g, platform, runtime, paused } = await play({ expiresInMs: 1_000 })
    const [{ askedAt = 0, expiresAt = 0 } = {}] = paused.asks
    expect(expiresAt - askedAt).toBe(1_000)
    await platform.pass(999)
    expect(await errorOf(runtime().continue(g, 't'))).toMatchObject({ code: 'THREAD_PAUSED' })
    expect((await runtime().resume(g, 't', 'just in time')).state.log).toEqual(['just in time'])
  })

  it('throws where it was asked, which the node may catch; let out, continue asks again with a time of its own', async () => {
    const { g, platform, runtime, caught } = await play({ expiresInMs: 1_000 })
    await platform.pass(1_000)
    expect(await errorOf(runtime().resume(g, 't', 'too late'))).toMatchObject({ code: 'ASK_EXPIRED', at: T })
    expect(await errorOf(runtime().continue(g, 't'))).toMatchObject({
      code: 'ASK_EXPIRED',
      at: { node: 'a', ask: 'q' },
    })
    expect(caught).toHaveLength(1)
    const [{ key, expiresAt = 0 } = {}] = (await runtime().continue(g, 't')).asks
    expect([key, expiresAt - platform.time()]).toEqual(['a:q', 1_000])
    expect((await runtime().resume(g, 't', 'in time')).state.log).toEqual(['in time'])
  })

  it('is asked again by continue also where a tool asked it', async () => {
    const { store } = setUp()
    const platform = new Clock()
    const runtime = () => createRuntime({ store, platform })
    const wonder = tool('wonder', {
      description: 'Asks.',
      input: z.object({}),
      run: async (_args, ctx) => `${await ctx.ask('q', 'well?', { expiresInMs: 1_000 })}`,
    })
    const g = chain({ a: async (_s, ctx) => ({ log: [await ctx.callTool(wonder, {})] }) })
    await runtime().run(g, {}, T)
    await platform.pass(1_000)
    expect(await errorOf(runtime().continue(g, 't'))).toMatchObject({ code: 'ASK_EXPIRED' })
    expect((await runtime().continue(g, 't')).asks.map(({ key }) => key)).toEqual(['a:wonder:q'])
    expect((await runtime().resume(g, 't', 'in time')).state.log).toEqual(['in time'])
  })

  it.each([false, null, { by: 'default' }])('comes to its default, whatever that is: %j', async (value) => {
    const { g, platform, runtime } = await play({ expiresInMs: 1_000, default: value })
    await platform.pass(1_000)
    expect((await runtime().continue(g, 't')).state.log).toEqual([`${value}`])
    expect((await runtime().history('t')).filter(({ type }) => type === 'answer')).toMatchObject([
      { key: 'a:q', by: 'expiry', value },
    ])
  })

  it('and has a default that does not fit its schema fails, and is asked again', async () => {
    const options = { expiresInMs: 1_000, default: 'seven', schema: z.number() }
    const { g, platform, runtime } = await play(options)
    await platform.pass(1_000)
    expect(await errorOf(runtime().continue(g, 't'))).toMatchObject({ code: 'ANSWER_INVALID', at: { node: 'a' } })
    expect((await runtime().continue(g, 't')).asks.map(({ key }) => key)).toEqual(['a:q'])
    expect((await runtime().resume(g, 't', 7)).state.log).toEqual(['7'])
  })
})

describe('a question whose schema has become stricter since its answer was handed over', () => {
  /** A node that asks for a number up to `most`, calls a tool once it has it, and asks again. */
  const make = (most: number) => {
    const act = tool('act', { description: 'd', input: z.object({}), run: () => 'done' })
    return chain({
      a: async (_s, ctx) => {
        const x = await ctx.ask('x', 'how many?', { schema: z.number().max(most) })
        await ctx.callTool(act, {})
        return { log: [`${x} ${await ctx.ask('y', 'sure?')}`] }
      },
    })
  }

  it('is put once more, and the thread goes on with the new answer', async () => {
    const { runtime } = setUp()
    await runtime.run(make(100), {}, T)
    expect((await runtime.resume(make(100), 't', 50)).asks.map(({ key }) => key)).toEqual(['a:y'])
    const strict = make(10)
    const again = await runtime.resume(strict, 't', 'yes')
    expect(again.asks.map(({ key }) => key)).toEqual(['a:x'])
    expect(await errorOf(runtime.resume(strict, 't', 50))).toMatchObject({ code: 'ANSWER_INVALID' })
    expect((await runtime.resume(strict, 't', 7)).state.log).toEqual(['7 yes'])
  })

  it('is put once more inside a tool too, which was not cut off', async () => {
    const { runtime } = setUp()
    const asking = (most: number) => {
      const pick = tool('pick', {
        description: 'asks',
        input: z.object({}),
        run: async (_args, ctx) => {
          const x = await ctx.ask('x', 'how many?', { schema: z.number().max(most) })
          return `${x} ${await ctx.ask('y', 'sure?')}`
        },
      })
      return chain({ a: async (_s, ctx) => ({ log: [`${await ctx.callTool(pick, {})}`] }) })
    }
    await runtime.run(asking(100), {}, T)
    await runtime.resume(asking(100), 't', 50)
    const again = await runtime.resume(asking(10), 't', 'yes')
    expect(again.asks.map(({ key, askedBy }) => [key, askedBy])).toEqual([['a:pick:x', 'graph']])
    const { status } = await runtime.resume(asking(10), 't', 7)
    expect(status).toBe('completed')
  })
})

describe('labels', () => {
  const labels = (label: string) =>
    says('Labels', { 'toolCall.before': { action: 'proceed', labels: [label] }, 'node.before': { action: 'proceed' } })
  const seen = (log: unknown[]) =>
    says('Sees', {
      'node.before': (_shown, ctx) => {
        log.push([...ctx.labels])
        return { action: 'proceed' }
      },
    })

  it('survive a pause and later turns, from the verdict that gave them on; a fork has those given before it', async () => {
    const { store } = setUp()
    const act = tool('act', { description: 'd', input: z.object({}), run: () => 'done' })
    const g = chain({
      a: async (_s, ctx) => {
        await ctx.callTool(act, {})
        return { log: [`${await ctx.ask('q', 'well?')}`] }
      },
    })
    await createRuntime({ store, policies: [labels('first')] }).run(g, {}, T)
    const log: unknown[] = []
    const runtime = (...more: Parameters<typeof seen>) => createRuntime({ store, policies: [seen(...more)] })
    await runtime(log).resume(g, 't', 'yes')
    const { branch } = await runtime(log).fork('t')
    await createRuntime({ store, policies: [labels('second')] }).run(g, {}, T)
    await runtime(log).resume(g, 't', 'yes')
    await runtime(log).run(g, {}, { ...T, branch })
    expect(log).toEqual([['first'], ['first', 'second'], ['first']])
    expect((await runtime(log).stateAt(g, 't')).labels).toEqual(['first', 'second'])
    expect((await runtime(log).stateAt(g, 't', { branch })).labels).toEqual(['first'])
  })

  it('that are given with a question hold while it waits', async () => {
    const { store } = setUp()
    const g = chain({ a: () => ({ log: ['a'] }) })
    const gate = () =>
      says('Gate', {
        'node.before': (_shown, { answered }) =>
          answered === undefined ? { action: 'suspend', ask: {}, labels: ['asked'] } : { action: 'proceed' },
      })
    await createRuntime({ store, policies: [gate()] }).run(g, {}, T)
    expect((await createRuntime({ store }).stateAt(g, 't')).labels).toEqual(['asked'])
    const log: unknown[] = []
    await createRuntime({ store, policies: [seen(log), gate()] }).resume(g, 't', 'yes')
    expect(log).toEqual([['asked']])
  })
})
