import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Clock } from '../../testing/clock.ts'
import { FailingStore } from '../../testing/failing-store.ts'
import { noting, oneNode, type Shown, says, settle } from '../../testing/play.ts'
import { errorOf } from '../../testing/threads.ts'
import { createRuntime, MemoryStore, type Policy, type RuntimeOptions, tool } from '../index.ts'

const T = { thread: 't' }
const PROCEED = { action: 'proceed' }
const PASS = { action: 'pass' }

/** A node that asks `q` and keeps the answer. */
const asking = oneNode(async (_s, ctx) => ({ made: `${await ctx.ask('q', { well: '?' })}` }))
/** A node that calls a tool, which `Gate` asks about. */
const gated = () => {
  const act = noting()
  return { act, graph: oneNode(async (_s, ctx) => void (await ctx.callTool(act, { text: 'x' }))) }
}
const gate = () =>
  says('Gate', {
    'toolCall.before': (_shown, { answered }) =>
      answered === undefined ? { action: 'suspend', ask: { question: 'sure?' } } : PROCEED,
    'ask.before': PROCEED,
    'ask.after': PASS,
  })

function threads(options: RuntimeOptions = {}) {
  const store = new MemoryStore()
  return (...policies: readonly Policy[]) => createRuntime({ store, ...options, policies })
}
const atBoth = (before: unknown = PROCEED) => says('Watch', { 'ask.before': before as object, 'ask.after': PASS })

describe('a question on its way to a person', () => {
  it('is shown to the policies, with its key and who asks', async () => {
    const watch = atBoth()
    await threads()(watch).run(asking, {}, T)
    expect(watch.asked).toMatchObject([
      {
        at: 'ask.before',
        subject: { nodeName: 'step', nodeType: 'Node', key: 'step:q', askedBy: 'graph' },
        input: { well: '?' },
      },
    ])
  })

  it('is answered by a policy that replaces it: the run does not pause, and needs no thread', async () => {
    const watch = says('Watch', { 'ask.after': PASS })
    const answers = says('Answers', { 'ask.before': { action: 'replace', value: 'by policy' } })
    const { state, warnings } = await settle({ graph: asking, policies: [answers, watch] })
    expect(state.made).toBe('by policy')
    expect(watch.asked).toMatchObject([{ outcome: { ok: true, value: 'by policy' }, substituted: 'Answers' }])
    expect(warnings).toMatchObject([{ policy: 'Answers', seam: 'ask', half: 'before' }])
  })

  it('takes no answer from a policy that does not fit: that policy has failed', async () => {
    const g = oneNode(async (_s, ctx) => ({ made: `${await ctx.ask('q', 'n?', { schema: z.number() })}` }))
    const answers = says('Answers', { 'ask.before': { action: 'replace', value: 'seven' } })
    const { error } = await settle({ graph: g, policies: [answers] })
    expect(error).toMatchObject({ code: 'MIDDLEWARE_FAILED', at: { policy: 'Answers', seam: 'ask' } })
  })

  it('is not put to the policies again when its node is entered anew for another one', async () => {
    const g = oneNode(async (_s, ctx) => ({ made: `${await ctx.ask('a', 'A?')} ${await ctx.ask('b', 'B?')}` }))
    const elsewhere = threads()
    const answers = says('Answers', {
      'ask.before': ({ subject }: Shown) =>
        subject.key === 'step:a' ? { action: 'replace', value: 'by policy' } : PROCEED,
    })
    expect((await elsewhere(answers).run(g, {}, T)).asks).toMatchObject([{ key: 'step:b' }])
    const watch = atBoth()
    expect((await elsewhere(watch).resume(g, 't', 'by a person')).state.made).toBe('by policy by a person')
    expect(watch.asked.map(({ at, subject }) => [at, subject.key])).toEqual([['ask.after', 'step:b']])
  })
})

describe('ask.after', () => {
  it('comes in the run that hands the answer over, once, and in no later one', async () => {
    const g = oneNode(async (_s, ctx) => ({ made: `${await ctx.ask('a', 'A?')} ${await ctx.ask('b', 'B?')}` }))
    const elsewhere = threads()
    const seen: unknown[] = []
    const run = async (answer?: string) => {
      const watch = atBoth()
      const runtime = elsewhere(watch)
      await (answer === undefined ? runtime.run(g, {}, T) : runtime.resume(g, 't', answer))
      seen.push(watch.asked.map(({ at, subject, outcome }) => [at, subject.key, outcome?.ok && outcome.value]))
    }
    await run()
    await run('yes')
    await run('no')
    expect(seen).toEqual([
      [['ask.before', 'step:a', undefined]],
      [
        ['ask.after', 'step:a', 'yes'],
        ['ask.before', 'step:b', undefined],
      ],
      [['ask.after', 'step:b', 'no']],
    ])
  })

  it('is told of a question that expired as a failure, and of its default as an answer', async () => {
    const outcomes: unknown[] = []
    for (const rest of [{}, { default: 'by default' }]) {
      const platform = new Clock()
      const g = oneNode(async (_s, ctx) => ({ made: `${await ctx.ask('q', 'well?', { expiresInMs: 10, ...rest })}` }))
      const elsewhere = threads({ platform })
      await elsewhere().run(g, {}, T)
      await platform.pass(10)
      const watch = atBoth()
      await elsewhere(watch)
        .settle(g, undefined as never, T)
        .catch(() => undefined)
      for await (const _ of elsewhere(watch).stream(g, undefined, { ...T, continue: true }));
      outcomes.push(watch.asked.map(({ at, outcome }) => [at, outcome]))
    }
    expect(outcomes).toMatchObject([
      [['ask.after', { ok: false, error: { code: 'ASK_EXPIRED' } }]],
      [['ask.after', { ok: true, value: 'by default' }]],
    ])
  })
})

describe("a policy's question", () => {
  it('is shown to the other policies and not to its asker, when it is put and when its answer is handed over', async () => {
    const { graph } = gated()
    const elsewhere = threads()
    const [asker, watch] = [gate(), atBoth()]
    await elsewhere(asker, watch).run(graph, {}, T)
    await elsewhere(asker, watch).resume(graph, 't', 'yes')
    expect(asker.asked.filter(({ at }) => at.startsWith('ask.'))).toEqual([])
    const subject = { key: 'step:act@Gate', askedBy: 'policy:Gate' }
    expect(watch.asked).toMatchObject([
      { at: 'ask.before', subject, input: { tool: 'act', arguments: { text: 'x' }, question: 'sure?' } },
      { at: 'ask.after', subject, outcome: { ok: true, value: 'yes' } },
    ])
  })

  it('may be answered by another policy: its asker is shown that answer at once, and the run goes on', async () => {
    const { graph, act } = gated()
    const answered: unknown[] = []
    const asker = says('Gate', {
      'toolCall.before': (_shown, ctx) => {
        answered.push(ctx.answered)
        return ctx.answered === undefined ? { action: 'suspend', ask: {} } : PROCEED
      },
    })
    const answers = atBoth({ action: 'replace', value: 'by policy' })
    expect((await threads()(asker, answers).run(graph, {}, T)).status).toBe('completed')
    expect(answered).toEqual([undefined, 'by policy'])
    expect(answers.asked.map(({ at }) => at)).toEqual(['ask.before', 'ask.after'])
    expect(act.ran).toHaveLength(1)
  })

  describe('that another policy answers', () => {
    /** Makes it cost so much, asks about that, and has a policy say yes to what is cheap. */
    const paying = (amount: string) => {
      const bot = says('Bot', {
        'ask.before': ({ input }: Shown) => ({ action: 'replace', value: JSON.stringify(input).includes('"5"') }),
      })
      const sets = says('Sets', { 'toolCall.before': { action: 'modify', input: { text: amount } } })
      const judges = says('Judges', {
        'toolCall.before': (_shown, { answered }) =>
          answered === undefined
            ? { action: 'suspend', ask: { question: 'may it cost that?' } }
            : answered
              ? PROCEED
              : { action: 'reject', reason: 'too much' },
      })
      return { bot, all: [sets, judges, bot] }
    }
    /** A node that pays once the network is there. */
    const network = { down: true }
    const pays = () => {
      const act = tool('act', {
        description: 'pays',
        input: z.object({ text: z.string() }),
        idempotent: true,
        run: () => {
          if (network.down) throw new Error('no network')
          return 'paid'
        },
      })
      return oneNode(async (_s, ctx) => ({ made: `${await ctx.callTool(act, { text: 'x' })}` }))
    }

    it.each([
      { name: 'is answered for that input alone: another one in a later run is asked about', then: '1000000' },
      { name: 'is spent with a call that failed: it is asked again when that is made again', then: '5' },
    ])('$name', async ({ then }) => {
      const elsewhere = threads()
      network.down = true
      const g = pays()
      await errorOf(elsewhere(...paying('5').all).run(g, {}, T))
      network.down = false
      const { bot, all } = paying(then)
      const outcome = await elsewhere(...all)
        .continue(g, 't')
        .catch((error) => error)
      expect(bot.asked).toHaveLength(1)
      expect(outcome).toMatchObject(then === '5' ? { state: { made: 'paid' } } : { code: 'REFUSED' })
    })

    it('is known of in a later run that enters the call anew: it is not put again', async () => {
      const store = new MemoryStore()
      const run = (...policies: readonly Policy[]) => createRuntime({ store, policies })
      const { act, graph } = gated()
      const answers = () => says('Answers', { 'ask.before': { action: 'replace', value: 'yes' } })
      const broken = says('Broken', {
        'toolCall.after': () => {
          throw new Error('it broke')
        },
      })
      await errorOf(run(gate(), answers(), broken).run(graph, {}, T))
      const again = answers()
      expect((await run(gate(), again).continue(graph, 't')).status).toBe('completed')
      expect([again.asked.length, act.ran.length]).toEqual([0, 1])
      const records = await run().history('t')
      expect(records.flatMap((record) => (record.type === 'answer' ? [record.by] : []))).toEqual(['Answers'])
    })
  })

  it('is not told of twice when the run that was handed its answer is cut off before the call settles', async () => {
    const { graph } = gated()
    const elsewhere = threads()
    await elsewhere(gate()).run(graph, {}, T)
    const broken = says('Broken', {
      'toolCall.after': () => {
        throw new Error('it broke')
      },
    })
    const [first, second] = [atBoth(), atBoth()]
    expect(await errorOf(elsewhere(gate(), broken, first).resume(graph, 't', 'yes'))).toMatchObject({
      code: 'MIDDLEWARE_FAILED',
    })
    expect((await elsewhere(gate(), second).continue(graph, 't')).status).toBe('completed')
    expect(first.asked.map(({ at }) => at)).toEqual(['ask.after'])
    expect(second.asked).toEqual([])
  })

  it.each([
    { name: 'the door of a run', at: 'run.before' as const },
    { name: 'a node', at: 'node.before' as const },
  ])('about $name is told of once, however often the run is resumed', async ({ at }) => {
    const elsewhere = threads()
    const asker = says('Gate', {
      [at]: (_shown: Shown, { answered }: { answered: unknown }) =>
        answered === undefined ? { action: 'suspend', ask: {} } : PROCEED,
    })
    const watch = atBoth()
    await elsewhere(asker, watch).run(asking, {}, T)
    const paused = await elsewhere(asker, watch).resume(asking, 't', 'let in')
    expect(paused.asks).toMatchObject([{ key: 'step:q' }])
    expect((await elsewhere(asker, watch).resume(asking, 't', 'yes')).state.made).toBe('yes')
    expect(watch.asked.map((each) => `${each.at} ${each.subject.askedBy}`)).toEqual([
      'ask.before policy:Gate',
      'ask.after policy:Gate',
      'ask.before graph',
      'ask.after graph',
    ])
  })

  it('about a node is told of once when the node is retried, the run cut off and gone on with', async () => {
    const store = new FailingStore()
    const elsewhere = threads({ store })
    const attempts: number[] = []
    const g = oneNode((_s, { attempt }) => {
      attempts.push(attempt)
      if (attempt === 1) throw new Error('no')
    })
    const asker = says('Gate', {
      'node.before': (_shown, { answered }) => (answered === undefined ? { action: 'suspend', ask: {} } : PROCEED),
      'nodeError.after': { action: 'retry' },
    })
    const watch = atBoth()
    await elsewhere(asker, watch).run(g, {}, T)
    store.fail('before', { type: 'step' })
    expect(await errorOf(elsewhere(asker, watch).resume(g, 't', 'yes'))).toMatchObject({ code: 'STORE_FAILED' })
    expect((await elsewhere(asker, watch).continue(g, 't')).status).toBe('completed')
    expect(attempts).toEqual([1, 2, 2])
    expect(watch.asked.map(({ at }) => at)).toEqual(['ask.before', 'ask.after'])
  })
})
