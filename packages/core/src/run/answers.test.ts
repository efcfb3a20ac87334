import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createRuntime, END, graph, type JsonObject, MemoryStore, node, START, state } from '../index.ts'

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
})
