import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { says } from '../../../testing/play.ts'
import { append, createRuntime, END, graph, MemoryStore, node, START, state } from '../../index.ts'

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

  it('is shown the same, and its answer at the door is kept, where it is read from a snapshot', async () => {
    const Long = state({ n: z.number().default(0), text: z.string().default(''), log: append(z.string()) })
    const step = node('step', Long, (s) => ({ n: s.n + 1, text: `${s.n}`.padEnd(2_000) }))
    const last = node('last', Long, async (_s, ctx) => ({ log: [String(await ctx.ask('q', 'go on?'))] }))
    const long = graph('long', Long)
      .edge(START, step)
      .when(step, (s) => s.n < 100, { then: step, otherwise: last })
      .edge(last, END)
      .check()
    const store = new MemoryStore()
    const seen: unknown[] = []
    const runtime = () => {
      const gate = says('Gate', {
        'run.before': ({ input, subject }, { answered }) => {
          seen.push([subject.resuming, input, answered])
          return answered === undefined ? { action: 'suspend', ask: {} } : { action: 'proceed' }
        },
      })
      const watch = says('Watch', {
        'ask.after': ({ subject }) => {
          seen.push(subject.askedBy)
          return { action: 'pass' }
        },
      })
      return createRuntime({ store, policies: [gate, watch], limits: { maxIterations: 1_000 } })
    }
    await runtime().run(long, { log: ['given'] }, { thread: 't' })
    await runtime().resume(long, 't', 'let in')
    const types = (await runtime().history('t')).map(({ type }) => type)
    expect(types).toContain('snapshot')
    expect((await runtime().resume(long, 't', 'yes')).state.log).toEqual(['given', 'yes'])
    const input = { log: ['given'] }
    expect(seen).toEqual([
      [false, input, undefined],
      'policy:Gate',
      [false, input, 'let in'],
      [true, input, 'let in'],
      'graph',
    ])
  })
})
