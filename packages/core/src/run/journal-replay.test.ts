import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { open, quiet } from '../../testing/clock.ts'
import { noting, says } from '../../testing/play.ts'
import { chain, errorOf, setUp, together } from '../../testing/threads.ts'
import { createRuntime, type NodeContext, tool } from '../index.ts'

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
    expect((await runtime.run(g, {}, T)).asks.map(({ key }) => key)).toEqual(['a/asks:q'])
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
