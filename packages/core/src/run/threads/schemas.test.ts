import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { chain, errorOf } from '../../../testing/threads.ts'
import { createRuntime, MemoryStore } from '../../index.ts'

/** A graph whose one node asks which of two letters it is; they come with the input. */
const asking = () =>
  chain({
    a: async ({ x }, ctx) => ({ log: [await ctx.ask('q', 'which?', { schema: z.enum(x.split('')) })] }),
  })

/** One that asks as many times at once as its input says, with a schema for each. */
const askingAll = () =>
  chain({
    a: async ({ i }, ctx) => {
      const all = Array.from({ length: i }, (_, n) => ctx.ask(`q${n}`, n, { schema: z.literal(n) }))
      return { log: (await Promise.all(all)).map(String) }
    },
  })

/** A wrong answer is refused before anything is written; nothing else checks it here. */
const refused = { code: 'ANSWER_INVALID', message: expect.stringContaining('Nothing was run') }

describe('the schema of a question that this process has put', () => {
  it('is that of its thread: others ask under the same key', async () => {
    const runtime = createRuntime()
    const g = asking()
    for (const x of ['xy', 'pq']) await runtime.run(g, { x }, { thread: x })
    const records = await runtime.history('xy')
    expect(await errorOf(runtime.resume(g, 'xy', 'p'))).toMatchObject(refused)
    expect(await runtime.history('xy')).toEqual(records)
    expect((await runtime.resume(g, 'xy', 'x')).state.log).toEqual(['x'])
    expect((await runtime.resume(g, 'pq', 'p')).state.log).toEqual(['p'])
  })

  it('is that of its branch', async () => {
    const runtime = createRuntime()
    const g = asking()
    await runtime.run(g, { x: 'xy' }, { thread: 't' })
    await runtime.resume(g, 't', 'x')
    await runtime.fork('t', { name: 'b' })
    await runtime.run(g, { x: 'xy' }, { thread: 't' })
    await runtime.run(g, { x: 'pq' }, { thread: 't', branch: 'b' })
    expect(await errorOf(runtime.resume(g, 't', 'p'))).toMatchObject(refused)
    expect((await runtime.resume(g, 't', 'p', { branch: 'b' })).state.log).toEqual(['x', 'p'])
  })

  it('is that of its store', async () => {
    const runtimes = ['xy', 'pq'].map((x) => ({ x, runtime: createRuntime({ store: new MemoryStore() }) }))
    const g = asking()
    for (const { x, runtime } of runtimes) await runtime.run(g, { x }, { thread: 't' })
    for (const { x, runtime } of runtimes) {
      expect((await runtime.resume(g, 't', x[0])).state.log).toEqual([x[0]])
    }
  })

  it('is there for the last thousand of them', async () => {
    const runtime = createRuntime()
    const g = askingAll()
    await runtime.run(g, { i: 1_001 }, { thread: 't' })
    const answer = (n: number, value: unknown) => runtime.resume(g, 't', { [`a:q${n}`]: value })
    expect(await errorOf(answer(1_000, 'wrong'))).toMatchObject(refused)
    expect(await errorOf(answer(1, 'wrong'))).toMatchObject(refused)
  })
})
