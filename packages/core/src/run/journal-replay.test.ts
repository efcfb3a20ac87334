import { describe, expect, it } from 'vitest'
import { open, quiet } from '../../testing/clock.ts'
import { noting, says } from '../../testing/play.ts'
import { chain, errorOf, setUp, together } from '../../testing/threads.ts'
import { createRuntime } from '../index.ts'

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

  it.each([{ name: 'when it could only wait', wait: quiet }])(
    'makes no difference: what it returns $name is dropped, and it waits for the answer',
    async ({ wait }) => {
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
    },
  )

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
