import { describe, expect, it } from 'vitest'
import golden from '../../golden/verdict-pairs.json' with { type: 'json' }
import { quiet } from '../../testing/clock.ts'
import { playEnding } from '../../testing/ending.ts'
import { aborted, noting, oneNode, says, settle, Text, trying } from '../../testing/play.ts'
import { END, graph, MiddlewareError, node, START } from '../index.ts'

describe('what a verdict comes to, and whether nodeError and node.after are consulted about it', () => {
  it.each(golden.endings)('%s %s, %s: %s; %s; %s', async (seam, verdict, of, ...expected) => {
    const { comesTo, nodeError, nodeAfter, error } = await playEnding(seam ?? '', verdict ?? '', of ?? '')
    const found = [comesTo, nodeError, nodeAfter].map((word, i) => (expected[i] === '–' ? '–' : word))
    expect(found).toEqual(expected)
    if (verdict === 'its policy throws') expect(error).toBeInstanceOf(MiddlewareError)
  })
})

const broken = says('broken', {
  'toolCall.before': () => {
    throw new Error('it broke')
  },
})

describe('a stop', () => {
  it('reaches no catch and no finally of the node that made the call', async () => {
    const { graph, seen } = trying((ctx) => ctx.callTool(noting(), { text: 'x' }))
    const { status, error } = await settle({ graph, policies: [broken] })
    expect(status).toBe('failed')
    expect(error).toBeInstanceOf(MiddlewareError)
    expect(seen).toEqual({})
  })

  it('aborts the signal of the node with the reason', async () => {
    let signal: AbortSignal | undefined
    const graph = oneNode(async (_state, ctx) => {
      signal = ctx.signal
      await ctx.callTool(noting(), { text: 'x' })
    })
    const { error } = await settle({ graph, policies: [broken] })
    expect(signal?.aborted).toBe(true)
    expect(signal?.reason).toBe(error)
  })

  it('leaves later calls of the node pending, and nothing of them runs', async () => {
    const later = noting(undefined, 'later')
    let settled = false
    const graph = oneNode(async (_state, ctx) => {
      ctx.callTool(noting(), { text: 'x' })
      await aborted(ctx.signal)
      ctx.callTool(later, { text: 'x' }).finally(() => {
        settled = true
      })
    })
    await settle({ graph, policies: [broken] })
    await quiet()
    expect(later.ran).toEqual([])
    expect(settled).toBe(false)
  })

  it('drops what the node still returns', async () => {
    let returned = false
    const graph = oneNode(async (_state, ctx) => {
      ctx.callTool(noting(), { text: 'x' })
      await aborted(ctx.signal)
      returned = true
      return { made: 'after all' }
    })
    const { status, state } = await settle({ graph, policies: [broken] })
    await quiet()
    expect({ returned, status, state }).toEqual({ returned: true, status: 'failed', state: undefined })
  })

  it('Z9: is not replaced by a nodeError policy, which is not even consulted', async () => {
    const rescue = says('rescue', { 'nodeError.after': { action: 'replace', value: {} } })
    const { graph } = trying((ctx) => ctx.callTool(noting(), { text: 'x' }))
    const { error } = await settle({ graph, policies: [broken, rescue] })
    expect(error).toBeInstanceOf(MiddlewareError)
    expect(rescue.asked).toEqual([])
  })

  it('in a child run stops every run above it, whatever their nodes catch', async () => {
    const inside = trying((ctx) => ctx.callTool(noting(), { text: 'x' }))
    const between = trying((ctx) => ctx.run(inside.graph, {}))
    const outside = trying((ctx) => ctx.run(between.graph, {}))
    const { error } = await settle({ graph: outside.graph, policies: [broken] })
    expect(error).toBeInstanceOf(MiddlewareError)
    expect([inside.seen, between.seen, outside.seen]).toEqual([{}, {}, {}])
  })

  it('is not what a spent budget of a child run is: that is an error in the node that started it', async () => {
    const loop = node('loop', Text, () => ({}))
    const endless = graph('endless', Text)
      .when(loop, () => true, { then: loop, otherwise: END })
      .edge(START, loop)
      .check()
    const { graph: outside, seen } = trying((ctx) => ctx.run(endless, {}))
    const { status } = await settle({ graph: outside, limits: { maxIterations: 5 } })
    expect(status).toBe('completed')
    expect(seen.error).toMatchObject({ code: 'MAX_ITERATIONS' })
  })
})
