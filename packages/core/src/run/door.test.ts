import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { says } from '../../testing/play.ts'
import { append, createRuntime, END, graph, node, START, state } from '../index.ts'

const S = state({ log: append(z.string()) })
const asks = node('asks', S, async (_s, ctx) => ({ log: [String(await ctx.ask('q', 'go on?'))] }))
const g = graph('g', S).edge(START, asks).edge(asks, END).check()

describe('a run that goes on', () => {
  it('is shown to run.before as one that does, with the input of its turn', async () => {
    const watch = says('Watch', { 'run.before': { action: 'proceed' } })
    const runtime = createRuntime({ policies: [watch] })
    await runtime.run(g, { log: ['first'] }, { thread: 't' })
    await runtime.resume(g, 't', 'yes')
    expect(watch.asked.map(({ subject, input }) => [subject.resuming, input])).toEqual([
      [false, { log: ['first'] }],
      [true, { log: ['first'] }],
    ])
  })

  it('has no input that a policy could modify: one that does has failed', async () => {
    const change = says('Change', { 'run.before': { action: 'modify', input: { log: ['changed'] } } })
    const runtime = createRuntime({ policies: [change] })
    const paused = await runtime.run(g, {}, { thread: 't' })
    expect(paused.state.log).toEqual(['changed'])
    await expect(runtime.resume(g, 't', 'yes')).rejects.toMatchObject({ code: 'MIDDLEWARE_FAILED' })
  })
})
