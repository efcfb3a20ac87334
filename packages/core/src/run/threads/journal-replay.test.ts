import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Clock, open, patience, quiet } from '../../../testing/clock.ts'
import { FailingStore } from '../../../testing/failing-store.ts'
import { noting, says } from '../../../testing/play.ts'
import { chain, errorOf, Log, logNode, type Run, setUp, together } from '../../../testing/threads.ts'
import {
  agentLoop,
  createRuntime,
  END,
  graph,
  type Loaded,
  type NodeContext,
  SluiceError,
  START,
  scripted,
  showError,
  tool,
} from '../../index.ts'

const T = { thread: 't' }
const watches = () => says('Watch', { 'node.before': { action: 'proceed' }, 'node.after': { action: 'pass' } })

describe.each([
  { name: 'with nobody to consult', policies: () => [] },
  { name: 'with a policy at its node', policies: () => [watches()] },
])('continue after a failure, $name', ({ policies }) => {
  it('makes the failed calls again that the node did nothing about, and no other one', async () => {
    const { store } = setUp()
    let fails = true
    const act = noting(({ text }) => {
      if (fails && text !== 'fine') throw new Error(`${text} failed`)
      return text
    })
    const g = chain({
      a: async (_s, ctx) => {
        const caught = await ctx.callTool(act, { text: 'caught' }).catch(({ message }) => message)
        return {
          log: [caught, await ctx.callTool(act, { text: 'fine' }), await ctx.callTool(act, { text: 'let out' })],
        }
      },
    })
    const runtime = createRuntime({ store, policies: policies() })
    expect(await errorOf(runtime.run(g, {}, T))).toMatchObject({ message: 'let out failed' })
    fails = false
    const { state } = await createRuntime({ store, policies: policies() }).continue(g, 't')
    expect(state.log).toEqual(['caught failed', 'fine', 'let out'])
    expect(act.ran.map(({ text }) => text)).toEqual(['caught', 'fine', 'let out', 'let out'])
  })
})

describe('a failure that the node caught before it made another call', () => {
  const fails = () => Promise.reject(new Error('no'))
  const forever = () => new Promise<never>(() => {})
  it('stays settled, also where that call never did', async () => {
    const clock = new Clock()
    const { runtime } = setUp({ platform: clock })
    const made: string[] = []
    let hangs = true
    const once = (ctx: NodeContext, name: string, fn: () => Promise<unknown>) =>
      ctx.once(name, () => {
        made.push(name)
        return fn() as Promise<string>
      })
    const slow = tool('slow', {
      description: 'May hang.',
      input: z.object({}),
      idempotent: true,
      run: (): string | Promise<string> => (hangs ? forever() : 'slow'),
    })
    const a = logNode(
      'a',
      async (_s, ctx) => {
        const caught = await once(ctx, 'first', fails).catch(({ message }) => message)
        return { log: [caught, await ctx.callTool(slow, {})] as string[] }
      },
      { timeoutMs: 1_000 },
    )
    const g = graph('g', Log).edge(START, a).edge(a, END).check()
    const failed = errorOf(runtime.run(g, {}, T))
    await clock.pass(1_000)
    expect(await failed).toMatchObject({ code: 'NODE_TIMED_OUT' })
    hangs = false
    expect((await runtime.continue(g, 't')).state.log).toEqual(['no', 'slow'])
    expect(made).toEqual(['first'])
  })
})

describe('what a node does beside its open question', () => {
  const never = () => new Promise<never>(() => {})

  it.each([
    { name: 'at once', wait: () => Promise.resolve() },
    { name: 'before the run can pause', wait: () => Promise.resolve().then(() => Promise.resolve()) },
    { name: 'when it could only wait', wait: quiet },
  ])('makes no difference: what it returns $name is dropped, and it waits for the answer', async ({ wait }) => {
    const { runtime } = setUp()
    let entered = 0
    const sibling = open<void>()
    const g = together({
      a: async (_s, ctx) => {
        const timer = entered++ === 0 ? wait().then(() => 'in no time') : never()
        return { log: [`a ${await Promise.race([ctx.ask('q', 'well?'), timer])}`] }
      },
      b: async () => {
        await sibling.promise
        return { log: ['b'] }
      },
    })
    const running = runtime.run(g, {}, T)
    await quiet()
    await quiet()
    sibling.resolve()
    expect((await running).asks.map(({ key }) => key)).toEqual(['a:q'])
    expect((await runtime.resume(g, 't', 'answered')).state.log).toEqual(['a answered', 'b'])
  })

  it('F8: cannot catch that it waits, and its finally is not reached', async () => {
    const { runtime } = setUp()
    const reached: string[] = []
    const g = chain({
      a: async (_s, ctx) => {
        try {
          return { log: [`${await ctx.ask('q', 'well?')}`] }
        } catch (error) {
          reached.push(`caught ${error}`)
          return { log: ['caught'] }
        } finally {
          reached.push('left')
        }
      },
    })
    expect((await runtime.run(g, {}, T)).status).toBe('paused')
    expect(reached).toEqual([])
    expect((await runtime.resume(g, 't', 'answered')).state.log).toEqual(['answered'])
    expect(reached).toEqual(['left'])
  })

  it('goes on while it asks: its other calls are made, and are not made again', async () => {
    const { runtime } = setUp()
    const act = noting(({ text }) => quiet().then(() => text))
    const g = chain({
      a: async (_s, ctx) => {
        const calls = (async () => [await ctx.callTool(act, { text: '1' }), await ctx.callTool(act, { text: '2' })])()
        return { log: [`${await ctx.ask('q', 'well?')} ${await calls}`] }
      },
    })
    expect((await runtime.run(g, {}, T)).status).toBe('paused')
    expect(act.ran).toHaveLength(2)
    expect((await runtime.resume(g, 't', 'yes')).state.log).toEqual(['yes 1,2'])
    expect(act.ran).toHaveLength(2)
  })
})

describe('a question', () => {
  it('is under way while policies are consulted about it: another open one does not pause its node meanwhile', async () => {
    const { store } = setUp()
    const slow = says('Slow', {
      'ask.before': async ({ subject }) => {
        if (subject.key !== 'a:slow') return { action: 'proceed' }
        for (let i = 0; i < 5; i++) await quiet()
        return { action: 'replace', value: 'by policy' }
      },
    })
    const g = chain({
      a: async (_s, ctx) => ({ log: (await Promise.all([ctx.ask('slow', ''), ctx.ask('q', '')])).map(String) }),
    })
    const runtime = () => createRuntime({ store, policies: [slow] })
    expect((await runtime().run(g, {}, T)).asks.map(({ key }) => key)).toEqual(['a:q'])
    expect((await runtime().resume(g, 't', 'by a person')).state.log).toEqual(['by policy', 'by a person'])
    expect(slow.asked.map(({ subject }) => subject.key)).toEqual(['a:slow', 'a:q'])
  })

  it('that a node puts and does not wait for is answered before the node has come to its end', async () => {
    const { runtime, ran } = setUp()
    const g = chain({
      a: (_s, ctx) => {
        void ctx.ask('q', 'well?').then((answer) => ran.push(`${answer}`))
        return { log: ['a'] }
      },
      b: () => ({ log: ['b'] }),
    })
    expect((await runtime.run(g, {}, T)).asks.map(({ key }) => key)).toEqual(['a:q'])
    expect((await runtime.resume(g, 't', 'yes')).state.log).toEqual(['a', 'b'])
    expect(ran).toEqual(['yes'])
  })

  it('of a tool keeps the tool from coming to its end in the same way', async () => {
    const { runtime } = setUp()
    let entered = 0
    const asks = tool('asks', {
      description: 'Asks.',
      input: z.object({}),
      run: (_args, ctx) =>
        Promise.race([ctx.ask('q', 'well?'), ...(entered++ === 0 ? [quiet().then(() => 'late')] : [])]),
    })
    const g = chain({ a: async (_s, ctx) => ({ log: [`${await ctx.callTool(asks, {})}`] }) })
    expect((await runtime.run(g, {}, T)).asks.map(({ key }) => key)).toEqual(['a:asks:q'])
    expect((await runtime.resume(g, 't', 'answered')).state.log).toEqual(['answered'])
  })

  it.each([
    {
      name: 'of an execution that failed and was retried',
      work: async (ctx: NodeContext) => {
        if (ctx.attempt > 1) return ctx.ask('kept', 'well?')
        void ctx.ask('gone', 'well?')
        await ctx.once('step', () => null)
        throw new Error('again')
      },
    },
    {
      name: 'of a run that failed beside it',
      work: async (ctx: NodeContext) => {
        const child = together({
          asks: async (_s, { ask }) => void (await ask('gone', 'well?')),
          fails: async (_s, { once }) => {
            await once('step', () => null)
            throw new Error('no')
          },
        })
        await ctx.run(child, {}).catch(() => undefined)
        return ctx.ask('kept', 'well?')
      },
    },
    {
      name: 'of a tool that failed beside it',
      work: async (ctx: NodeContext) => {
        const act = tool('act', {
          description: 'd',
          input: z.object({}),
          run: async (_args, { ask }) => {
            void ask('gone', 'well?')
            await quiet()
            throw new Error('no')
          },
        })
        await Promise.all([
          ctx.callTool(act, {}).catch(() => undefined),
          ctx.once('step', () => quiet().then(() => null)),
        ])
        return ctx.ask('kept', 'well?')
      },
    },
  ])('$name is withdrawn: a pause later on does not name it', async ({ work }) => {
    const { store } = setUp()
    const retry = () => says('Retry', { 'nodeError.after': { action: 'retry' } })
    const g = chain({ a: async (_s, ctx) => ({ log: [`${await work(ctx)}`] }) })
    const runtime = () => createRuntime({ store, policies: [retry()] })
    expect((await runtime().run(g, {}, T)).asks.map(({ key }) => key)).toEqual(['a:kept'])
    expect((await runtime().stateAt(g, 't')).asks.map(({ key }) => key)).toEqual(['a:kept'])
    expect((await runtime().resume(g, 't', 'yes')).state.log).toEqual(['yes'])
  })
})

describe('a retried execution', () => {
  const retry = () => says('Retry', { 'nodeError.after': { action: 'retry', delayMs: 1_000 } })

  it('has a journal of its own: calls that were made are made again', async () => {
    const { store } = setUp()
    const act = noting()
    const g = chain({
      a: async (_s, ctx) => {
        await ctx.callTool(act, { text: `${ctx.attempt}` })
        await ctx.callTool(act, { text: 'same' })
        if (ctx.attempt === 1) throw new Error('once')
        return { log: [`${ctx.attempt}`] }
      },
    })
    const platform = new Clock()
    const running = createRuntime({ store, platform, policies: [retry()] }).run(g, {}, T)
    await platform.pass(1_000)
    expect((await running).state.log).toEqual(['2'])
    expect(act.ran.map(({ text }) => text)).toEqual(['1', 'same', '2', 'same'])
  })

  it('that was granted and cut off while it waited is gone on with: at the new attempt, and without the wait', async () => {
    const { store } = setUp()
    const attempts: number[] = []
    const act = noting()
    const g = chain({
      a: async (_s, ctx) => {
        attempts.push(ctx.attempt)
        await ctx.callTool(act, { text: 'x' })
        if (ctx.attempt < 3) throw new Error(`attempt ${ctx.attempt}`)
        return { log: [`${ctx.attempt}`] }
      },
    })
    const [platform, cut] = [new Clock(), new AbortController()]
    const running = createRuntime({ store, platform, policies: [retry()] }).settle(g, {}, { ...T, signal: cut.signal })
    await platform.pass(999)
    cut.abort()
    expect((await running).status).toBe('cancelled')
    expect(attempts).toEqual([1])
    const goingOn = createRuntime({ store, platform, policies: [retry()] }).continue(g, 't')
    await platform.pass(0)
    expect(attempts).toEqual([1, 2])
    await platform.pass(1_000)
    expect((await goingOn).state.log).toEqual(['3'])
    expect(act.ran).toHaveLength(3)
  })

  it('counts on from the attempt it was cut off at: no attempt is had twice', async () => {
    const { store } = setUp()
    const platform = new Clock()
    const g = chain({
      a: (_s, ctx) => {
        throw new Error(`attempt ${ctx.attempt}`)
      },
    })
    const cut = new AbortController()
    const running = createRuntime({ store, platform, policies: [retry()] }).settle(g, {}, { ...T, signal: cut.signal })
    await platform.pass(500)
    cut.abort()
    await running
    const goingOn = errorOf(createRuntime({ store, platform, policies: [retry()] }).continue(g, 't'))
    await platform.pass(5_000)
    expect(await goingOn).toMatchObject({ message: 'attempt 3' })
  })

  it('asks again what the abandoned one had been answered', async () => {
    const { store } = setUp()
    const again = () => says('Retry', { 'nodeError.after': { action: 'retry' } })
    const g = chain({
      a: async (_s, ctx) => {
        const answer = await ctx.ask('q', ctx.attempt)
        if (ctx.attempt === 1) throw new Error('once')
        return { log: [`${answer}`] }
      },
    })
    const runtime = () => createRuntime({ store, policies: [again()] })
    await runtime().run(g, {}, T)
    const paused = await runtime().resume(g, 't', 'first')
    expect(paused.asks).toMatchObject([{ key: 'a:q', payload: 2 }])
    expect((await runtime().resume(g, 't', 'second')).state.log).toEqual(['second'])
  })
})

describe('code that was changed before the pause', () => {
  const act = noting(({ text }) => text)
  const code = (...texts: readonly string[]) =>
    chain({
      a: async (_s, ctx) => {
        const log: string[] = []
        for (const text of texts) log.push(`${await ctx.callTool(act, { text })}`)
        return { log: [...log, `${await ctx.ask('q', 'well?')}`] }
      },
    })

  it.each([
    { name: 'makes a call with another input', changed: code('1', 'changed'), call: 'tool "act"' },
    {
      name: 'makes another call in its place',
      changed: chain({ a: async (_s, ctx) => void (await ctx.once('other', () => 1)) }),
      call: 'once "other"',
    },
  ])(
    '$name: the run ends and names the call, nothing is made, and the thread goes on once the code is back',
    async ({ changed, call }) => {
      const { store } = setUp()
      const platform = new Clock()
      const runtime = () => createRuntime({ store, platform })
      await runtime().run(code('1', '2'), {}, T)
      const made = act.ran.length
      const ended = errorOf(runtime().resume(changed, 't', 'yes'))
      await patience(platform)
      const error = await ended
      expect(error).toMatchObject({ code: 'CODE_CHANGED', at: { node: 'a' } })
      expect(error?.message).toContain(`a: the call of ${call} is not one that was made before the pause`)
      expect(act.ran).toHaveLength(made)
      expect((await runtime().continue(code('1', '2'), 't')).state.log).toEqual(['1', '2', 'yes'])
      expect(act.ran).toHaveLength(made)
    },
  )

  it('may make calls in another order, fewer, and more after those it made', async () => {
    for (const changed of [code('2', '1'), code('1'), code('1', '2', '3')]) {
      const { store } = setUp()
      const platform = new Clock()
      await createRuntime({ store, platform }).run(code('1', '2'), {}, T)
      const resumed = createRuntime({ store, platform }).resume(changed, 't', 'yes')
      await patience(platform)
      expect((await resumed).status).toBe('completed')
    }
  })
})

describe('branches of a node that are entered anew', () => {
  it('make their next calls in the order in which they made them: each has the key that it had', async () => {
    const { store } = setUp()
    const gates = { a: open<void>(), b: open<void>() }
    const look = tool('look', {
      description: 'd',
      input: z.object({ id: z.enum(['a', 'b']) }),
      run: async ({ id }) => {
        await gates[id].promise
        return id
      },
    })
    const paid: string[] = []
    const pay = noting(({ text }) => {
      paid.push(text)
      return text
    }, 'pay')
    let keys = 0
    const g = chain({
      a: async (_s, ctx) => {
        const branches = (['a', 'b'] as const).map(async (id) => {
          await ctx.callTool(look, { id })
          const key = await ctx.once('key', () => ++keys)
          return ctx.callTool(pay, { text: `${id} with key ${key}` })
        })
        const log = (await Promise.all(branches)).map(String)
        return { log: [...log, `${await ctx.ask('q', 'sure?')}`] }
      },
    })
    const run = createRuntime({ store }).run(g, {}, T)
    await quiet()
    gates.b.resolve()
    await quiet()
    gates.a.resolve()
    expect((await run).status).toBe('paused')
    const { state } = await createRuntime({ store }).resume(g, 't', 'yes')
    expect(state.log).toEqual(['a with key 2', 'b with key 1', 'yes'])
    expect(paid).toEqual(['b with key 1', 'a with key 2'])
  })

  it('keep the keys that they had where another one goes on with an answer that is new', async () => {
    const { store } = setUp()
    const act = noting(({ text }) => text)
    let keys = 0
    const g = chain({
      a: async (_s, ctx) => {
        const key = () => ctx.once('key', () => ++keys)
        const asks = ctx.ask('q', 'sure?').then(async (answer) => `${answer}, key ${await key()}`)
        const acts = ctx.callTool(act, { text: 'done' }).then(async (done) => `${done}, key ${await key()}`)
        const log = await Promise.all([asks, acts])
        return { log: [...log, `${await ctx.ask('end', 'really?')}`] }
      },
    })
    await createRuntime({ store }).run(g, {}, T)
    await createRuntime({ store }).resume(g, 't', 'yes')
    expect((await createRuntime({ store }).resume(g, 't', 'yes')).state.log).toEqual([
      'yes, key 2',
      'done, key 1',
      'yes',
    ])
  })

  it('may be late by a timer of their own: a new call waits a second before the code counts as changed', async () => {
    const { store } = setUp()
    const platform = new Clock()
    const act = noting(({ text }) => text)
    const sleep = (ms: number) => new Promise<void>((resolve) => void platform.set(ms, resolve))
    const g = chain({
      a: async (_s, ctx) => {
        const late = sleep(900).then(() => ctx.callTool(act, { text: 'late' }))
        const asking = async () => {
          await ctx.once('slow', () => sleep(1_000).then(() => 'slept'))
          await ctx.ask('q', 'sure?')
          return ctx.callTool(act, { text: 'new' })
        }
        return { log: (await Promise.all([late, asking()])).map(String) }
      },
    })
    const run = createRuntime({ store, platform }).run(g, {}, T)
    await platform.pass(1_000)
    expect((await run).status).toBe('paused')
    const resumed = createRuntime({ store, platform }).resume(g, 't', 'yes')
    for (const _ of [1, 2, 3]) await quiet()
    await platform.pass(1_000)
    expect((await resumed).state.log).toEqual(['late', 'new'])
    expect(act.ran).toEqual([{ text: 'late' }, { text: 'new' }])
    expect(platform.pending).toBe(0)
  })
})

describe('a run on a thread', () => {
  it('J8: stands before the next node with all that was made so far; at the end before none, after a failure where it failed', async () => {
    const { store, says: noted } = setUp()
    const runtime = createRuntime({ store })
    const stands: unknown[] = []
    const look = async () => {
      const { state, next } = await createRuntime({ store }).stateAt(g, 't')
      stands.push([state?.log, next])
    }
    let fails = true
    const g = chain({
      a: noted('a'),
      b: async (s, ctx) => {
        await look()
        return noted('b')(s, ctx)
      },
      c: () => {
        if (fails) throw new Error('no')
        return { log: ['c'] }
      },
    })
    await errorOf(runtime.run(g, {}, T))
    await look()
    fails = false
    await runtime.continue(g, 't')
    await look()
    expect(stands).toEqual([
      [['a'], ['b']],
      [['a', 'b'], ['c']],
      [['a', 'b', 'c'], []],
    ])
  })

  it('J8: costs nothing where there is no thread: the store is not asked', async () => {
    const { store, runtime, says: noted } = setUp()
    await runtime.run(chain({ a: noted('a') }))
    expect([store.appends, store.lines()]).toEqual([0, []])
  })

  it('J9: goes on at the node where it stood and runs nothing before; a graph without that node is refused', async () => {
    const { store, ran, says: noted } = setUp()
    let fails = true
    const b: Run = (s, ctx) => {
      if (fails) throw new Error('no')
      return noted('b')(s, ctx)
    }
    const g = chain({ a: noted('a'), b })
    await errorOf(createRuntime({ store }).run(g, {}, T))
    const before = await createRuntime({ store }).history('t')
    const renamed = chain({ a: noted('a'), renamed: b })
    expect(await errorOf(createRuntime({ store }).continue(renamed, 't'))).toMatchObject({
      code: 'THREAD_NODE_GONE',
      at: { thread: 't', node: 'b' },
    })
    expect(await createRuntime({ store }).history('t')).toEqual(before)
    fails = false
    expect((await createRuntime({ store }).continue(g, 't')).state.log).toEqual(['a', 'b'])
    expect(ran).toEqual(['a', 'b'])
  })

  it('J6: whose record was damaged is refused by its number; nothing runs, and nothing is written', async () => {
    const { store, ran, says: noted } = setUp()
    const g = chain({ a: async (_s, ctx) => void (await ctx.ask('q', 'well?')), b: noted('b') })
    await createRuntime({ store }).run(g, {}, T)
    const { head, records, beside } = store.load({ thread: 't', branch: 'main' }) as Loaded
    const broken = new FailingStore()
    const lease = broken.acquire({ thread: 't', branch: 'main' }, { create: true })
    const damaged = records.map((text) => text.replace('"type":"begin","state":{', '"type":"begin","state":"{'))
    broken.append(lease, { seq: 1, records: damaged, beside, release: true })
    const error = await errorOf(createRuntime({ store: broken }).resume(g, 't', 'yes'))
    expect(error).toMatchObject({ code: 'THREAD_DAMAGED', at: T })
    expect(error?.message).toContain('record 2 of thread "t"')
    expect(broken.load({ thread: 't', branch: 'main' })?.head).toBe(head)
    expect(ran).toEqual([])
  })

  it('J10: stores JSON alone: what is none is refused where it is written, by node and path', async () => {
    const { runtime } = setUp()
    const g = chain({ a: (_s, ctx) => ctx.once('made', () => ({ at: new Date(0) }) as never) })
    const error = await errorOf(runtime.run(g, {}, T))
    expect(error).toMatchObject({ code: 'JSON_VALUE' })
    expect(error?.message).toContain('at')
  })

  it('J25: hands back an error that was stored as one of the same name, text, code and place', async () => {
    const { store } = setUp()
    const caught: unknown[] = []
    class OwnError extends Error {
      override readonly name = 'OwnError'
    }
    const fail = (error: Error) => () => {
      throw error
    }
    const errors = [
      new OwnError('of the author'),
      new TypeError('of the language'),
      Object.assign(new Error('of the system'), { code: 'ENOENT' }),
      new SluiceError('TOOL_FAILED', 'of ours.', { tool: 'act' }),
    ]
    const refuses = () => says('Gate', { 'toolCall.before': { action: 'reject', reason: 'not here' } })
    const g = chain({
      a: async (_s, ctx) => {
        const seen: unknown[] = []
        for (const [i, error] of errors.entries()) seen.push(await errorOf(ctx.once(`${i}`, fail(error))))
        seen.push(await errorOf(ctx.callTool(noting(), { text: 'x' })))
        caught.push(seen.map((error) => Object.assign({}, showError(error), pick(error as SluiceError))))
        await ctx.ask('q', 'well?')
      },
    })
    const pick = ({ at, ...rest }: SluiceError) => ({ at, reason: (rest as { reason?: string }).reason })
    const runtime = () => createRuntime({ store, policies: [refuses()] })
    await runtime().run(g, {}, T)
    await runtime().resume(g, 't', 'yes')
    expect(caught).toHaveLength(2)
    expect(caught[1]).toEqual(caught[0])
    expect(caught[0]).toMatchObject([
      { name: 'OwnError', message: 'of the author' },
      { name: 'TypeError', message: 'of the language' },
      { name: 'Error', message: 'of the system', code: 'ENOENT' },
      { name: 'SluiceError', message: 'of ours.', code: 'TOOL_FAILED', at: { tool: 'act' } },
      { name: 'RefusedError', code: 'REFUSED', reason: 'not here', at: { policy: 'Gate', tool: 'act' } },
    ])
  })
})

describe('branches of a node that is entered anew', () => {
  it('wait for each other while one of them is under way: a new call beside it is no change of the code', async () => {
    const { store } = setUp()
    const act = noting(({ text }) => text)
    const slow = () =>
      says('Slow', {
        'agentRound.before': async () => {
          for (let i = 0; i < 5; i++) await quiet()
          return { action: 'proceed' }
        },
      })
    const model = scripted([{ tool_calls: [{ name: 'act', arguments: { text: 'in a round' } }] }, 'done'])
    const gate = () =>
      says('Gate', {
        'toolCall.before': ({ input }, { answered }) =>
          input.text === 'in a round' && answered === undefined
            ? { action: 'suspend', ask: {} }
            : { action: 'proceed' },
      })
    const g = chain({
      a: async (_s, ctx) => {
        const agent = async () => (await agentLoop(ctx, { model, messages: [], tools: [act] })).content
        const direct = async () => {
          await ctx.ask('go', 'go on?')
          return ctx.callTool(act, { text: 'new' })
        }
        return { log: (await Promise.all([agent(), direct()])) as string[] }
      },
    })
    const runtime = () => createRuntime({ store, policies: [slow(), gate()] })
    const { asks } = await runtime().run(g, {}, T)
    expect(asks.map(({ key }) => key)).toEqual(['a:go', 'a:act@Gate'])
    const answers = new Map(asks.map(({ key }) => [key, 'yes']))
    expect((await runtime().resume(g, 't', answers)).state.log).toEqual(['done', 'new'])
    expect(act.ran.map(({ text }) => text).toSorted()).toEqual(['in a round', 'new'])
    expect(model.requests).toHaveLength(2)
  })
})
