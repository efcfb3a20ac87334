import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  createRuntime,
  END,
  graph,
  type JsonObject,
  MemoryStore,
  node,
  SluiceError,
  START,
  state,
  tool,
} from '../../index.ts'

const S = state({ answer: z.unknown().default(null) })
const ask = node('ask', S, async (_s, ctx) => ({ answer: await ctx.ask('q', 'well?', { schema: z.json() }) }))
const asking = graph('g', S).edge(START, ask).edge(ask, END).check()

/** A thread that waits for an answer to `ask:q`, put by another process. */
async function paused(checkJson?: (schema: JsonObject, value: unknown) => Promise<void>) {
  const store = new MemoryStore()
  await createRuntime({ store }).run(asking, {}, { thread: 't' })
  const again = node('ask', S, async (_s, ctx) => ({ answer: await ctx.ask('q', 'well?') }))
  const elsewhere = graph('g', S).edge(START, again).edge(again, END).check()
  const runtime = createRuntime({ store, checkJson })
  return { resume: (answers: unknown) => runtime.resume(elsewhere, 't', answers), history: () => runtime.history('t') }
}

describe('answers to a paused thread', () => {
  it('may be one value, which may be an object', async () => {
    const { resume } = await paused()
    expect((await resume({ approved: true })).state.answer).toEqual({ approved: true })
  })

  it('given as a Map are by key', async () => {
    const { resume } = await paused()
    expect((await resume(new Map([['ask:q', 7]]))).state.answer).toBe(7)
  })

  it('given as a Map are refused where nobody asks that, and never taken for the value itself', async () => {
    const { resume } = await paused()
    await expect(resume(new Map([['ask:p', 7]]))).rejects.toMatchObject({ code: 'ASK_UNKNOWN' })
  })

  it('are checked by the schema that was written down, which may take its time, before anything is written', async () => {
    const { resume, history } = await paused(async (_schema, value) => {
      await null
      if (value !== 7) throw new Error('it is not 7')
    })
    const before = await history()
    await expect(resume(8)).rejects.toMatchObject({
      code: 'ANSWER_INVALID',
      message: expect.stringContaining('it is not 7. Nothing was run'),
    })
    expect(await history()).toEqual(before)
    expect((await resume(7)).status).toBe('completed')
  })

  it('are left to the validator of whoever asked where the schema that was written down cannot be used', async () => {
    const cannot = async () => {
      throw new SluiceError('JSON_SCHEMA', 'it looks ahead')
    }
    const asks = () => {
      const schema = z.string().regex(/^(?!no)/)
      const strict = node('ask', S, async (_s, ctx) => ({ answer: await ctx.ask('q', 'well?', { schema }) }))
      return graph('g', S).edge(START, strict).edge(strict, END).check()
    }
    const store = new MemoryStore()
    await createRuntime({ store }).run(asks(), {}, { thread: 't' })
    const runtime = createRuntime({ store, checkJson: cannot })
    const resume = (answer: string) => runtime.resume(asks(), 't', answer)
    await expect(resume('no')).rejects.toMatchObject({ code: 'ANSWER_INVALID' })
    await runtime.continue(asks(), 't')
    expect((await resume('yes')).state.answer).toBe('yes')
  })
})

describe('an answer that does not fit, which nobody could tell before', () => {
  it('fails the node, and continue puts the question again under its key', async () => {
    const strict = () => {
      const asks = node('ask', S, async (_s, ctx) => ({ answer: await ctx.ask('q', 'well?', { schema: z.string() }) }))
      return graph('g', S).edge(START, asks).edge(asks, END).check()
    }
    const store = new MemoryStore()
    await createRuntime({ store }).run(strict(), {}, { thread: 't' })
    const elsewhere = strict()
    const runtime = createRuntime({ store })
    await expect(runtime.resume(elsewhere, 't', 5)).rejects.toMatchObject({ code: 'ANSWER_INVALID' })
    expect(await runtime.continue(elsewhere, 't')).toMatchObject({ status: 'paused', asks: [{ key: 'ask:q' }] })
    expect((await runtime.resume(elsewhere, 't', 'five')).state.answer).toBe('five')
  })
})

describe('the keys of questions', () => {
  it('tell a tool that asks from a run within that does, whatever both are called', async () => {
    const asks = tool('check', {
      description: 'asks',
      input: z.object({}),
      run: (_args, ctx) => ctx.ask('fine', 'of the tool'),
    })
    const check = node('check', S, async (_s, ctx) => ({ answer: await ctx.ask('fine', 'of the run') }))
    const inner = graph('inner', S).edge(START, check).edge(check, END).check()
    const both = node('both', S, async (_s, ctx) => {
      const [run, call] = await Promise.all([ctx.run(inner, {}), ctx.callTool(asks, {})])
      return { answer: [run.answer, call] }
    })
    const g = graph('g', S).edge(START, both).edge(both, END).check()
    const runtime = createRuntime()
    const paused = await runtime.run(g, {}, { thread: 't' })
    expect(paused.asks.map(({ key }) => key).sort()).toEqual(['both/check:fine', 'both:check:fine'])
    const done = await runtime.resume(g, 't', { 'both/check:fine': 1, 'both:check:fine': 2 })
    expect(done.state.answer).toEqual([1, 2])
  })
})
