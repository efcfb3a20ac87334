import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { quiet } from '../../testing/clock.ts'
import { chain, errorOf, setUp, together } from '../../testing/threads.ts'
import { createRuntime, type NodeContext, type ToolContext, tool } from '../index.ts'

const T = { thread: 't' }
const noted = (seen: unknown[]) => (_s: unknown, ctx: NodeContext) => void seen.push(ctx.context)

describe('J26: the context of a run', () => {
  const context = { user: 'miss lovelace', call: () => 'not JSON' }

  it('is the very object in nodes, tools, runs inside and sub-agents', async () => {
    const seen: unknown[] = []
    const look = tool('look', {
      description: 'd',
      input: z.object({}),
      run: async (_args, ctx: ToolContext) => {
        seen.push(ctx.context)
        await ctx.run(inner, {})
      },
    })
    const inner = chain({ i: noted(seen) })
    const g = chain({
      a: async (s, ctx) => {
        noted(seen)(s, ctx)
        await ctx.callTool(look, {})
        await ctx.run(inner, {})
        await ctx.gather(ctx.spawn([{ graph: inner }]))
      },
    })
    await createRuntime().run(g, {}, { context })
    expect(seen).toHaveLength(5)
    expect(new Set(seen)).toEqual(new Set([context]))
    expect(seen[0]).toBe(context)
  })

  it('is an error for a node that reads it where none was given, and `undefined` for a tool', async () => {
    const seen: unknown[] = []
    const look = tool('look', {
      description: 'd',
      input: z.object({}),
      run: (_args, ctx) => void seen.push(ctx.context),
    })
    const g = chain({ a: (_s, ctx) => ctx.callTool(look, {}).then(() => void ctx.context) })
    expect(await errorOf(createRuntime().run(g))).toMatchObject({ code: 'CONTEXT_MISSING', at: { node: 'a' } })
    expect(seen).toEqual([undefined])
  })

  it('is never stored: it is given again with every resume and continue, and its absence is an error then', async () => {
    const { store } = setUp()
    const seen: unknown[] = []
    const g = chain({
      a: async (_s, ctx) => {
        await ctx.ask('q', 'well?')
        seen.push(ctx.context)
      },
    })
    const runtime = () => createRuntime({ store })
    await runtime().run(g, {}, { ...T, context })
    expect(JSON.stringify(store.load({ thread: 't', branch: 'main' }))).not.toContain('lovelace')
    expect(await errorOf(runtime().resume(g, 't', 'yes'))).toMatchObject({ code: 'CONTEXT_MISSING' })
    await runtime().continue(g, 't', { context })
    expect(seen).toEqual([context])
  })

  it('E4: of one run is never seen by another, however many of one graph run between each other on threads of their own', async () => {
    const { store } = setUp()
    const marks: (readonly [unknown, unknown])[] = []
    const mark = async (s: { readonly i: number }, ctx: NodeContext) => {
      await quiet()
      marks.push([s.i, ctx.context])
      return { log: [`${s.i} ${ctx.context}`] }
    }
    const inner = chain({ i: mark })
    const g = together({
      a: mark,
      b: async (s, ctx) => ({ log: (await ctx.run(inner, { i: s.i })).log }),
    })
    const runtime = createRuntime({ store })
    const runs = Array.from({ length: 200 }, (_, i) => runtime.run(g, { i }, { thread: `t${i}`, context: i }))
    const outcomes = await Promise.all(runs)
    for (const [i, { state }] of outcomes.entries()) expect(state.log).toEqual([`${i} ${i}`, `${i} ${i}`])
    expect(marks).toHaveLength(400)
    expect(marks.filter(([given, context]) => given !== context)).toEqual([])
  })
})
