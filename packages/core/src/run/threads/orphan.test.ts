import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { noting, says } from '../../../testing/play.ts'
import { chain, errorOf, type LogGraph, setUp, together } from '../../../testing/threads.ts'
import { createRuntime, type NodeContext, type Policy, scripted, tool } from '../../index.ts'

const T = { thread: 't' }

/** A graph whose one node does `work` and appends what came of it to the log. */
const doing = (work: (ctx: NodeContext) => Promise<unknown>): LogGraph =>
  chain({ a: async (_s, ctx) => ({ log: [`${await work(ctx)}`] }) })

/**
 * Runs a graph on a thread, with the store failing as soon as the call has been made: its start is written, what came of it is
 * not. What goes on does so in another process.
 */
async function cutOff(g: LogGraph, policies: () => readonly Policy[] = () => []) {
  const { store } = setUp()
  store.fail('before', { type: 'call' })
  const runtime = () => createRuntime({ store, policies: policies() })
  expect(await errorOf(runtime().run(g, {}, T))).toMatchObject({ code: 'STORE_FAILED' })
  return { store, runtime }
}

/** Both calls that must not happen twice, and how the question about each speaks of it. */
const CALLS = [
  {
    kind: 'a tool call',
    key: 'a:act@engine',
    payload: {
      tool: 'act',
      arguments: { text: 'x' },
      question: expect.stringContaining('the call of tool "act" was cut off'),
    },
    make: (ran: unknown[]) => {
      const act = noting((args) => {
        ran.push(args)
        return 'done'
      })
      return (ctx: NodeContext) => ctx.callTool(act, { text: 'x' })
    },
  },
  {
    kind: 'a step done once',
    key: 'a:pay@engine',
    payload: { once: 'pay', question: expect.stringContaining('"pay" of node "a" was cut off') },
    make: (ran: unknown[]) => (ctx: NodeContext) =>
      ctx.once('pay', () => {
        ran.push('paid')
        return 'done'
      }),
  },
] as const

describe.each(CALLS)('$kind that was cut off after its start was written', ({ key, payload, make }) => {
  const play = async () => {
    const ran: unknown[] = []
    const g = doing(make(ran))
    return { ran, g, ...(await cutOff(g)) }
  }

  it('is not made again on its own: continue asks a person what became of it', async () => {
    const { ran, g, runtime } = await play()
    const paused = await runtime().continue(g, 't')
    expect(paused).toMatchObject({ status: 'paused', asks: [{ key, askedBy: 'engine', payload }] })
    expect(ran).toHaveLength(1)
  })

  it.each([
    { answer: 'retry', runs: 2, log: ['done'] },
    { answer: { result: 'by a person' }, runs: 1, log: ['by a person'] },
  ])('comes to $log when a person answers $answer', async ({ answer, runs, log }) => {
    const { ran, g, runtime } = await play()
    await runtime().continue(g, 't')
    expect((await runtime().resume(g, 't', answer)).state.log).toEqual(log)
    expect(ran).toHaveLength(runs)
  })

  it('fails when a person answers "skip", and the node may catch that', async () => {
    const { ran, g, runtime } = await play()
    await runtime().continue(g, 't')
    expect(await errorOf(runtime().resume(g, 't', 'skip'))).toMatchObject({ code: 'CALL_SKIPPED' })
    expect(ran).toHaveLength(1)
  })

  it('that was skipped, and whose node failed of it, is asked about again by continue', async () => {
    const { ran, g, runtime } = await play()
    await runtime().continue(g, 't')
    await errorOf(runtime().resume(g, 't', 'skip'))
    expect(await runtime().continue(g, 't')).toMatchObject({ status: 'paused', asks: [{ key, askedBy: 'engine' }] })
    expect(ran).toHaveLength(1)
    expect((await runtime().resume(g, 't', { result: 'by a person' })).state.log).toEqual(['by a person'])
    expect(ran).toHaveLength(1)
  })

  it('that was skipped, and made when it was asked about again, is not made once more by a later run', async () => {
    const { ran, g, runtime, store } = await play()
    await runtime().continue(g, 't')
    await errorOf(runtime().resume(g, 't', 'skip'))
    await runtime().continue(g, 't')
    store.fail('before', { type: 'step' })
    expect(await errorOf(runtime().resume(g, 't', 'retry'))).toMatchObject({ code: 'STORE_FAILED' })
    expect((await runtime().continue(g, 't')).state.log).toEqual(['done'])
    expect(ran).toHaveLength(2)
  })

  it('that was skipped, and cut off when it was made again, is asked about for that go too', async () => {
    const { ran, g, runtime, store } = await play()
    await runtime().continue(g, 't')
    await errorOf(runtime().resume(g, 't', 'skip'))
    await runtime().continue(g, 't')
    store.fail('before', { type: 'call', nth: 2 })
    expect(await errorOf(runtime().resume(g, 't', 'retry'))).toMatchObject({ code: 'STORE_FAILED' })
    expect(ran).toHaveLength(2)
    expect((await runtime().continue(g, 't')).asks).toMatchObject([{ key: `${key}.2`, askedBy: 'engine' }])
    expect(ran).toHaveLength(2)
  })

  it('that was skipped, and made after all, is settled: a failure that comes after does not open it again', async () => {
    const ran: unknown[] = []
    const work = make(ran)
    const failures = ['the node', 'the other call']
    const fail = (here: string) => {
      if (failures[0] === here) throw new Error(failures.shift())
      return 'through'
    }
    const other = noting(() => fail('the other call'), 'other')
    const g = doing(async (ctx) => {
      await work(ctx).catch(() => undefined)
      fail('the node')
      return ctx.callTool(other, { text: 'x' })
    })
    const { runtime } = await cutOff(g)
    await runtime().continue(g, 't')
    expect((await errorOf(runtime().resume(g, 't', 'skip')))?.message).toBe('the node')
    await runtime().continue(g, 't')
    expect((await errorOf(runtime().resume(g, 't', 'retry')))?.message).toBe('the other call')
    expect((await runtime().continue(g, 't')).state.log).toEqual(['through'])
    expect(ran).toHaveLength(2)
  })

  it.each(['yes', { result: 1, more: 2 }, null, ['retry']])(
    'takes no other answer, and nothing is written: %j',
    async (answer) => {
      const { g, runtime } = await play()
      await runtime().continue(g, 't')
      const before = await runtime().history('t')
      const refused = await errorOf(runtime().resume(g, 't', answer))
      expect(refused).toMatchObject({ code: 'ANSWER_INVALID', at: { ask: key } })
      expect(refused?.message).toContain('"retry" (make it again), "skip" (it fails), or { "result": … }')
      expect(await runtime().history('t')).toEqual(before)
    },
  )

  it('is asked about again when it is cut off again: an answer holds for one go', async () => {
    const { ran, g, runtime, store } = await play()
    await runtime().continue(g, 't')
    store.fail('before', { type: 'call', nth: 2 })
    expect(await errorOf(runtime().resume(g, 't', 'retry'))).toMatchObject({ code: 'STORE_FAILED' })
    expect(ran).toHaveLength(2)
    const again = await runtime().continue(g, 't')
    expect(again.asks).toMatchObject([{ key: `${key}.2`, askedBy: 'engine' }])
    expect(ran).toHaveLength(2)
    expect((await runtime().resume(g, 't', { result: 'by a person' })).state.log).toEqual(['by a person'])
  })
})

describe('a call that was cut off', () => {
  it('is made again without asking when doing it twice does no harm: an idempotent tool, and a model', async () => {
    const ran: string[] = []
    const look = tool('look', {
      description: 'Looks.',
      input: z.object({}),
      idempotent: true,
      run: () => ran.push('look'),
    })
    for (const call of [
      (ctx: NodeContext) => ctx.callTool(look, {}),
      async (ctx: NodeContext) =>
        (await ctx.callModel(scripted([() => `${ran.push('model')}`, () => `${ran.push('model')}`]), { messages: [] }))
          .content,
    ]) {
      const g = doing(call)
      const { runtime } = await cutOff(g)
      expect((await runtime().continue(g, 't')).status).toBe('completed')
    }
    expect(ran).toEqual(['look', 'look', 'model', 'model'])
  })

  it('and that failed when a person had it made after skipping it, is made again by continue, and nobody is asked', async () => {
    const ran: string[] = []
    const act = noting(() => {
      if (ran.push('act') === 2) throw new Error('act failed')
      return 'done'
    })
    const g = doing((ctx) => ctx.callTool(act, { text: 'x' }))
    const { runtime } = await cutOff(g)
    await runtime().continue(g, 't')
    await errorOf(runtime().resume(g, 't', 'skip'))
    await runtime().continue(g, 't')
    expect(await errorOf(runtime().resume(g, 't', 'retry'))).toMatchObject({ message: 'act failed' })
    expect((await runtime().continue(g, 't')).state.log).toEqual(['done'])
    expect(ran).toHaveLength(3)
  })

  it('and that was made after it was skipped, stands in the way of no further call of a node that then failed', async () => {
    const act = noting()
    let fails = true
    const g = doing(async (ctx) => {
      await ctx.callTool(act, { text: 'x' })
      if (fails) throw new Error('a failed')
      return ctx.callTool(act, { text: 'y' })
    })
    const { runtime } = await cutOff(g)
    await runtime().continue(g, 't')
    await errorOf(runtime().resume(g, 't', 'skip'))
    await runtime().continue(g, 't')
    expect(await errorOf(runtime().resume(g, 't', 'retry'))).toMatchObject({ message: 'a failed' })
    fails = false
    expect((await runtime().continue(g, 't')).state.log).toEqual(['done'])
    expect(act.ran).toMatchObject([{ text: 'x' }, { text: 'x' }, { text: 'y' }])
  })

  it('and that was skipped, keeps the next answer when its node fails before it could be made again', async () => {
    const act = noting()
    let fail = () => {}
    const work = (ctx: NodeContext) =>
      new Promise((resolve, reject) => {
        fail = () => reject(new Error('a failed'))
        ctx.callTool(act, { text: 'x' }).then(resolve, reject)
      })
    const g = doing(work)
    const { store, runtime } = await cutOff(g)
    await runtime().continue(g, 't')
    await errorOf(runtime().resume(g, 't', 'skip'))
    await runtime().continue(g, 't')
    const slow = says('Slow', { 'toolCall.before': () => new Promise(() => fail()) })
    const resumed = createRuntime({ store, policies: [slow] }).resume(g, 't', 'retry')
    expect(await errorOf(resumed)).toMatchObject({ message: 'a failed' })
    expect(act.ran).toHaveLength(1)
    expect((await runtime().continue(g, 't')).state.log).toEqual(['done'])
    expect(act.ran).toHaveLength(2)
  })

  it('was never made when its start could not be written: continue makes it', async () => {
    const { store } = setUp()
    const act = noting()
    const g = doing((ctx) => ctx.callTool(act, { text: 'x' }))
    store.fail('before', { nth: 2 })
    expect(await errorOf(createRuntime({ store }).run(g, {}, T))).toMatchObject({ code: 'STORE_FAILED' })
    expect(act.ran).toEqual([])
    expect((await createRuntime({ store }).continue(g, 't')).state.log).toEqual(['done'])
    expect(act.ran).toHaveLength(1)
  })

  it('is not asked about when its raw outcome was written: that is judged by the policies of the run that goes on', async () => {
    const act = noting()
    const g = doing((ctx) => ctx.callTool(act, { text: 'x' }))
    const judges = () =>
      says('Judge', { 'toolCall.before': { action: 'proceed' }, 'toolCall.after': { action: 'pass' } })
    const { store } = await cutOff(g, () => [judges()])
    const judge = judges()
    expect((await createRuntime({ store, policies: [judge] }).continue(g, 't')).state.log).toEqual(['done'])
    expect(act.ran).toHaveLength(1)
    expect(judge.asked.map(({ at }) => at)).toEqual(['toolCall.after'])
  })

  it('is known again by its arguments, also by such as look like what is written in their place', async () => {
    const ran: string[] = []
    const act = tool('act', {
      description: 'd',
      input: z.object({ digest: z.string() }),
      run: ({ digest }) => ran.push(digest),
    })
    const g = doing((ctx) => ctx.callTool(act, { digest: 'h1:0000000000000000' }))
    const judges = () => says('Judge', { 'toolCall.after': { action: 'pass' } })
    const { runtime } = await cutOff(g, () => [judges()])
    expect((await runtime().continue(g, 't')).status).toBe('completed')
    expect(ran).toHaveLength(1)
  })

  it('does not stop its siblings: they go on beside the question', async () => {
    const { store, says: noted, ran } = setUp()
    const act = noting(() => 'done')
    const g = together({
      a: async (_s, ctx) => ({ log: [`${await ctx.callTool(act, { text: 'x' })}`] }),
      b: async (s, ctx) => {
        await ctx.once('first', () => null)
        return noted('b')(s, ctx)
      },
    })
    store.fail('before', { type: 'call', nth: 1 })
    expect(await errorOf(createRuntime({ store }).run(g, {}, T))).toMatchObject({ code: 'STORE_FAILED' })
    ran.splice(0)
    const paused = await createRuntime({ store }).continue(g, 't')
    expect(paused.asks.map(({ askedBy }) => askedBy)).toEqual(paused.asks.map(() => 'engine'))
    const answers = new Map(paused.asks.map(({ key }) => [key, 'retry']))
    expect((await createRuntime({ store }).resume(g, 't', answers)).state.log).toEqual(['done', 'b'])
  })

  it('is seen by policies at the seam ask, and may be answered by one', async () => {
    const act = noting()
    const g = doing((ctx) => ctx.callTool(act, { text: 'x' }))
    const { store } = await cutOff(g)
    const answers = says('Answers', { 'ask.before': { action: 'replace', value: 'retry' } })
    expect((await createRuntime({ store, policies: [answers] }).continue(g, 't')).state.log).toEqual(['done'])
    expect(answers.asked).toMatchObject([{ subject: { askedBy: 'engine', key: 'a:act@engine', nodeName: 'a' } }])
    expect(act.ran).toHaveLength(2)
  })

  it('takes no answer of a policy that a person could not give: that policy has failed', async () => {
    const g = doing((ctx) => ctx.callTool(noting(), { text: 'x' }))
    const { store } = await cutOff(g)
    const answers = says('Answers', { 'ask.before': { action: 'replace', value: 'maybe' } })
    expect(await errorOf(createRuntime({ store, policies: [answers] }).continue(g, 't'))).toMatchObject({
      code: 'MIDDLEWARE_FAILED',
      at: { policy: 'Answers', seam: 'ask' },
    })
  })
})

describe('a result that a person supplies for a call that was cut off', () => {
  const g = doing((ctx) =>
    ctx.callTool(tool('act', { description: 'd', input: z.object({}), output: z.string(), run: () => 'done' }), {}),
  )

  it('is judged by after, which is told that a person supplied it', async () => {
    const { store } = await cutOff(g)
    await createRuntime({ store }).continue(g, 't')
    const after = says('After', { 'toolCall.after': { action: 'pass' } })
    await createRuntime({ store, policies: [after] }).resume(g, 't', { result: 'by a person' })
    expect(after.asked).toMatchObject([{ substituted: 'person', outcome: { ok: true, value: 'by a person' } }])
  })

  it('is validated like the own result of the tool; one that does not fit is asked for again', async () => {
    const { runtime } = await cutOff(g)
    await runtime().continue(g, 't')
    const asked = await runtime().resume(g, 't', { result: 7 })
    expect(asked.asks).toMatchObject([
      { key: 'a:act@engine.2', payload: { refused: expect.stringContaining('expected string, received number') } },
    ])
    expect((await runtime().resume(g, 't', { result: 'by a person' })).state.log).toEqual(['by a person'])
  })
})

describe('a policy that answers for a person', () => {
  it('may misfit three times; then the call fails with what is wrong', async () => {
    const act = tool('act', { description: 'd', input: z.object({}), output: z.string(), run: () => 'done' })
    const g = doing((ctx) => ctx.callTool(act, {}))
    const { store } = await cutOff(g)
    const answers = says('Answers', { 'ask.before': { action: 'replace', value: { result: 7 } } })
    expect(await errorOf(createRuntime({ store, policies: [answers] }).continue(g, 't'))).toMatchObject({
      code: 'SCHEMA_MISMATCH',
    })
    expect(answers.asked).toHaveLength(3)
  })
})

describe('a tool that asks', () => {
  const asking = (ran: string[]) =>
    tool('asking', {
      description: 'Asks.',
      input: z.object({}),
      run: async (_args, ctx) => {
        ran.push('began')
        const answer = await ctx.ask('sure', 'sure?')
        ran.push(`was answered ${answer}`)
        return answer
      },
    })

  it('was not cut off: it waits, and runs again from its beginning when the answer is there', async () => {
    const { store } = setUp()
    const ran: string[] = []
    const act = asking(ran)
    const g = doing((ctx) => ctx.callTool(act, {}))
    const paused = await createRuntime({ store }).run(g, {}, T)
    expect(paused.asks).toMatchObject([{ key: 'a:asking:sure', askedBy: 'graph', payload: 'sure?' }])
    expect((await createRuntime({ store }).resume(g, 't', 'yes')).state.log).toEqual(['yes'])
    expect(ran).toEqual(['began', 'began', 'was answered yes'])
  })

  it('waits too when its run failed beside it: continue puts its question again, under the same key', async () => {
    const { store } = setUp()
    const ran: string[] = []
    const act = asking(ran)
    let fails = true
    const g = together({
      a: async (_s, ctx) => ({ log: [`${await ctx.callTool(act, {})}`] }),
      b: async (_s, ctx) => {
        for (let i = 0; i < 3; i++) await ctx.once(`${i}`, () => null)
        if (fails) throw new Error('b failed')
      },
    })
    expect(await errorOf(createRuntime({ store }).run(g, {}, T))).toMatchObject({ message: 'b failed' })
    fails = false
    const paused = await createRuntime({ store }).continue(g, 't')
    expect(paused.asks.map(({ key }) => key)).toEqual(['a:asking:sure'])
    expect((await createRuntime({ store }).resume(g, 't', 'yes')).state.log).toEqual(['yes'])
  })

  it('was cut off when it had been handed its answer and had gone on: a person is asked', async () => {
    const { store } = setUp()
    const ran: string[] = []
    const act = asking(ran)
    const g = doing((ctx) => ctx.callTool(act, {}))
    await createRuntime({ store }).run(g, {}, T)
    store.fail('before', { type: 'call', nth: 2 })
    expect(await errorOf(createRuntime({ store }).resume(g, 't', 'yes'))).toMatchObject({ code: 'STORE_FAILED' })
    expect(ran).toEqual(['began', 'began', 'was answered yes'])
    const paused = await createRuntime({ store }).continue(g, 't')
    expect(paused.asks.map(({ key }) => key)).toEqual(['a:asking@engine'])
    expect(ran).toHaveLength(3)
  })
})

describe('a tool in which a call was cut off', () => {
  it('and that failed because a person skipped that call, was not cut off: continue asks about the call alone', async () => {
    const { store } = setUp()
    const ran: string[] = []
    const inside = chain({ c: async (_s, ctx) => ({ log: [await ctx.once('pay', () => `paid ${ran.push('paid')}`)] }) })
    const outer = tool('outer', {
      description: 'Runs a graph.',
      input: z.object({}),
      run: async (_args, ctx) => (await ctx.run(inside, {})).log.join(),
    })
    const g = doing((ctx) => ctx.callTool(outer, {}))
    const runtime = () => createRuntime({ store })
    store.fail('before', { type: 'call' })
    expect(await errorOf(runtime().run(g, {}, T))).toMatchObject({ code: 'STORE_FAILED' })
    expect((await runtime().continue(g, 't')).asks).toMatchObject([{ key: 'a:outer@engine' }])
    expect((await runtime().resume(g, 't', 'retry')).asks).toMatchObject([{ key: 'a:outer/c:pay@engine' }])
    expect(await errorOf(runtime().resume(g, 't', 'skip'))).toMatchObject({ code: 'CALL_SKIPPED' })
    expect((await runtime().continue(g, 't')).asks).toMatchObject([{ key: 'a:outer/c:pay@engine' }])
    expect((await runtime().resume(g, 't', 'retry')).state.log).toEqual(['paid 2'])
  })
})
