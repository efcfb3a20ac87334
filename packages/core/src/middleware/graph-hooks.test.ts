import { describe, expect, it } from 'vitest'
import { Numbers, runtime, step } from '../../testing/hooks.ts'
import { createRuntime, END, graph, middleware, node, START } from '../index.ts'

describe('graph hooks', () => {
  it('G6: see the state and cannot change it', async () => {
    const seen: unknown[] = []
    const watch = middleware({
      name: 'watch',
      state: Numbers,
      beforeGraph: (ctx) => {
        seen.push(ctx.state)
        expect(() => Object.assign(ctx.state as object, { n: 99 })).toThrow(TypeError)
      },
      afterGraph: (ctx) => void seen.push(ctx.state),
    })
    const { state: end } = await runtime.run(step([watch]), { n: 1 })
    expect(seen).toEqual([
      { n: 1, log: [] },
      { n: 2, log: ['saw 1'] },
    ])
    expect(end.n).toBe(2)
  })

  it('G7: on a resume beforeGraph is told, before the node runs again; afterGraph comes at completion', async () => {
    const seen: string[] = []
    const watch = middleware({
      name: 'watch',
      beforeGraph: (ctx) => void seen.push(`beforeGraph ${ctx.resuming}`),
      afterGraph: () => void seen.push('afterGraph'),
      beforeNode: () => void seen.push('beforeNode'),
    })
    const asks = node('asks', Numbers, async (_, ctx) => ({ n: (await ctx.ask('how', 'How many?')) as number }))
    const made = graph('asking', Numbers, { middleware: [watch] })
      .edge(START, asks)
      .edge(asks, END)
      .check()
    const own = createRuntime()
    expect((await own.run(made, {}, { thread: 't' })).status).toBe('paused')
    expect(seen).toEqual(['beforeGraph false', 'beforeNode'])
    await own.resume(made, 't', 3)
    expect(seen.slice(2)).toEqual(['beforeGraph true', 'beforeNode', 'afterGraph'])
  })
})
