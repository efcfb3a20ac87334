import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Clock } from '../../../testing/clock.ts'
import { FailingStore } from '../../../testing/failing-store.ts'
import { noting, oneNode, type Shown, says, settle, Text } from '../../../testing/play.ts'
import { errorOf, setUp, together } from '../../../testing/threads.ts'
import {
  type Ask,
  append,
  type Consultation,
  command,
  createRuntime,
  END,
  graph,
  type HistoryEntry,
  MemoryStore,
  type Middleware,
  middleware,
  type NodeContext,
  node,
  type Policy,
  type RuntimeOptions,
  type Seam,
  START,
  scripted,
  send,
  state,
} from '../../index.ts'

const T = { thread: 't' }
const PROCEED = { action: 'proceed' }
type Asking = Extract<Seam, 'toolCall' | 'modelCall' | 'node' | 'run'>

/** A policy that asks at `before` of a seam and lets the step run on `true`; what it was answered goes to `answered`. */
function gate(seam: Asking, { name = 'Gate', ask = {} }: { name?: string; ask?: object } = {}) {
  const answered: unknown[] = []
  const judge = (_shown: Shown, ctx: Consultation) => {
    answered.push(ctx.answered)
    if (ctx.answered === undefined) return { action: 'suspend', ask }
    return ctx.answered === true ? PROCEED : { action: 'reject', reason: 'a person said no' }
  }
  return Object.assign(says(name, { [`${seam}.before`]: judge }), { answered })
}

/** A graph `one` whose node asks a model and then calls the tool, with what it did in `did`. */
function stage() {
  const did: string[] = []
  const act = noting(({ text }) => {
    did.push('tool')
    return `did ${text}`
  })
  const model = scripted(
    Array.from({ length: 9 }, () => () => {
      did.push('model')
      return 'said'
    }),
  )
  const one = oneNode(async ({ text }, ctx) => {
    did.push('node')
    const { content } = await ctx.callModel(model, { messages: [{ role: 'user', content: text }] })
    return { made: `${content}, ${await ctx.callTool(act, { text: 'x' })}` }
  })
  return { graph: one, did }
}

/** A thread on a store, and runtimes on it: each is another process that shares nothing but the store. */
function threads(options: RuntimeOptions = {}) {
  const store = new MemoryStore()
  const elsewhere = (policies: readonly Policy[], more: RuntimeOptions = {}) =>
    createRuntime({ ...options, ...more, store, policies })
  return { store, elsewhere }
}

/** Where each seam asks, what its question says of the step, and what has been done of the graph by then. */
const PLACES = [
  { seam: 'run', key: 'one@Gate', about: { graph: 'one' }, before: [], after: ['node', 'model', 'tool'] },
  { seam: 'node', key: 'step@Gate', about: { node: 'step' }, before: [], after: ['node', 'model', 'tool'] },
  {
    seam: 'modelCall',
    key: 'step:model@Gate',
    about: { model: 'scripted' },
    before: ['node'],
    after: ['node', 'model', 'tool'],
  },
  {
    seam: 'toolCall',
    key: 'step:act@Gate',
    about: { tool: 'act', arguments: { text: 'x' } },
    before: ['node', 'model'],
    after: ['node', 'tool'],
  },
] as const

const isBegin = ({ type }: HistoryEntry) => type === 'begin'

/** Whether a record says that what was asked about at a seam is through. */
const isThrough = (seam: Asking, record: HistoryEntry): boolean =>
  record.type === 'call'
    ? record.kind === { modelCall: 'model', toolCall: 'tool', run: '', node: '' }[seam]
    : seam === 'run'
      ? isBegin(record)
      : record.type === 'step'

describe.each(PLACES)('a policy that suspends at $seam.before', ({ seam, key, about, before, after }) => {
  it('J1, J2: pauses the run before the step; the question says what the step is, and what the policy adds', async () => {
    const { elsewhere } = threads()
    const { graph, did } = stage()
    const paused = await elsewhere([gate(seam, { ask: { question: 'sure?' } })]).run(graph, {}, T)
    expect(paused).toMatchObject({ status: 'paused', asks: [{ key, askedBy: 'policy:Gate' }] })
    expect(paused.asks[0]?.payload).toEqual({ ...about, question: 'sure?' })
    expect(did).toEqual(before)
  })

  it('J3, B7: has the question durable before the pause is announced: another process finds it', async () => {
    const { elsewhere, store } = threads()
    const { graph } = stage()
    const found: unknown[] = []
    for await (const event of elsewhere([gate(seam)]).stream(graph, {}, T)) {
      if (event.type !== 'run_end') continue
      found.push(event.asks?.map(({ key }) => key))
      const stands = await createRuntime({ store }).stateAt(graph, 't')
      found.push(
        stands.status,
        stands.asks.map(({ key }) => key),
      )
    }
    expect(found).toEqual([[key], 'paused', [key]])
  })

  it('J7, Z5: is shown the answer in another process and may let the step run, with what it was given', async () => {
    const { elsewhere } = threads()
    const { graph, did } = stage()
    await elsewhere([gate(seam)]).run(graph, {}, T)
    did.splice(0)
    const asked = gate(seam)
    const done = await elsewhere([asked]).resume(graph, 't', true)
    expect(done).toMatchObject({ status: 'completed', state: { made: 'said, did x' } })
    expect(asked.answered).toEqual([true])
    expect(did).toEqual(after)
  })

  it('is answered once, wherever the thread is forked: no branch takes the step by an answer that another one was given', async () => {
    const { elsewhere } = threads()
    const { graph, did } = stage()
    await elsewhere([gate(seam)]).run(graph, {}, T)
    await elsewhere([gate(seam)]).resume(graph, 't', true)
    const runtime = elsewhere([gate(seam)])
    const history = await runtime.history('t')
    const became: string[] = []
    for (const { seq: at } of history) {
      did.splice(0)
      const branch = `at ${at}`
      const error = await errorOf(runtime.fork('t', { at, name: branch }))
      if (error === undefined) await errorOf(runtime.continue(graph, 't', { branch }))
      const begun = error === undefined && (await runtime.history('t', { branch })).slice(at).some(isBegin)
      const isTaken =
        seam === 'run' ? begun : did.includes({ node: 'node', modelCall: 'model', toolCall: 'tool' }[seam])
      became.push(error?.code ?? (isTaken ? 'taken' : 'not taken'))
    }
    const given = history.findIndex(({ type }) => type === 'answer')
    const through = history.findIndex((record, i) => i > given && isThrough(seam, record))
    expect(became).toEqual(history.map((_, i) => (i >= given && i < through ? 'FORK_ANSWERED' : 'not taken')))
  })

  it('may refuse the step on an answer', async () => {
    const { elsewhere } = threads()
    const { graph } = stage()
    await elsewhere([gate(seam)]).run(graph, {}, T)
    expect(await errorOf(elsewhere([gate(seam)]).resume(graph, 't', { approved: false }))).toMatchObject({
      code: 'REFUSED',
      reason: 'a person said no',
    })
  })

  it('J4: fails a run that has no thread, by its name', async () => {
    const { graph } = stage()
    const { error } = await settle({ graph, policies: [gate(seam)] })
    expect(error).toMatchObject({ code: 'SUSPEND_NEEDS_THREAD', at: { policy: 'Gate', seam } })
  })

  it('needs no thread where a policy at ask answers: its asker is shown that answer, and asks no more', async () => {
    const { graph, did } = stage()
    const asked = gate(seam, { ask: { question: 'may it?' } })
    const bot = says('Bot', { 'ask.before': { action: 'replace', value: true } })
    expect((await settle({ graph, policies: [asked, bot] })).status).toBe('completed')
    expect(asked.answered).toEqual([undefined, true])
    expect(bot.asked).toMatchObject([
      { subject: { key, askedBy: 'policy:Gate' }, input: { ...about, question: 'may it?' } },
    ])
    expect(did).toEqual([...new Set([...before, ...after])])
  })

  it('has asked three times at the most, with no thread as well', async () => {
    const { graph } = stage()
    const greedy = says('Gate', { [`${seam}.before`]: { action: 'suspend', ask: {} } })
    const bot = says('Bot', { 'ask.before': { action: 'replace', value: true } })
    const { error } = await settle({ graph, policies: [greedy, bot] })
    expect(error).toMatchObject({ code: 'MIDDLEWARE_FAILED', at: { policy: 'Gate', seam } })
    expect(bot.asked.map(({ subject }) => subject.key)).toEqual([key, `${key}.2`, `${key}.3`])
  })
})

describe('own middleware that suspends in a run without a thread', () => {
  const asks = middleware({
    name: 'asks',
    beforeNode: (ctx) => (ctx.answered === undefined ? ctx.suspend({ question: 'may it?' }) : undefined),
  })
  const run = (...all: Middleware[]) => {
    const work = node('work', Text, () => ({ made: 'made' }))
    const g = graph('g', Text, { middleware: all }).edge(START, work).edge(work, END).check()
    return createRuntime().settle(g, {})
  }

  it('is answered by onInterrupt of another one', async () => {
    const answers = middleware({ name: 'answers', onInterrupt: () => 'yes' })
    expect((await run(asks, answers)).state).toMatchObject({ made: 'made' })
  })

  it('ends the run where nobody answers', async () => {
    expect((await run(asks)).error).toMatchObject({ code: 'SUSPEND_NEEDS_THREAD', at: { middleware: 'asks' } })
  })
})

describe('a question of a policy', () => {
  it('J1: is no failure of the node, and no call of the tool', async () => {
    const { graph } = stage()
    const { elsewhere } = threads()
    const types: string[] = []
    for await (const { type } of elsewhere([gate('toolCall')]).stream(graph, {}, T)) types.push(type)
    expect(types).toEqual(['run_start', 'node_start', 'model_call', 'token', 'model_result', 'decision', 'run_end'])
  })

  it('J2: says of the step what the policy says of it, where the two differ', async () => {
    const { graph } = stage()
    const { elsewhere } = threads()
    const { asks } = await elsewhere([gate('toolCall', { ask: { arguments: '(hidden)' } })]).run(graph, {}, T)
    expect(asks[0]?.payload).toEqual({ tool: 'act', arguments: '(hidden)' })
  })

  it('S6: is put about the calls that its policy guards, and about no others', async () => {
    const listed = says('ApprovalGate', {
      'toolCall.before': ({ subject }, { component, answered }) =>
        (component.tools as string[]).includes(subject.toolName ?? '') && answered === undefined
          ? { action: 'suspend', ask: { question: `run ${subject.toolName}?` } }
          : PROCEED,
    })
    const guards = (tools: string[]) => Object.assign(listed, { component: { tools } })
    const g = oneNode(async (_s, ctx) => ({
      made: `${await ctx.callTool(noting(undefined, 'look'), { text: 'x' })} ${await ctx.callTool(noting(), { text: 'x' })}`,
    }))
    const { elsewhere } = threads()
    const paused = await elsewhere([guards(['act', 'shell'])]).run(g, {}, T)
    expect(paused.asks).toMatchObject([{ key: 'step:act@ApprovalGate', payload: { question: 'run act?' } }])
    expect((await elsewhere([guards([])]).run(g, {}, { thread: 'unguarded' })).state.made).toBe('done done')
  })

  it.each([
    { what: 'onAnswer that is not "result"', ask: { onAnswer: 'run' } },
    { what: 'schema that is no object', ask: { schema: true } },
    { what: 'time that is not above 0', ask: { expiresInMs: 0 } },
    { what: 'time that is no number', ask: { expiresInMs: '1 h' } },
  ])('is refused with an $what: its policy has failed, and nobody is asked', async ({ ask }) => {
    const { graph } = stage()
    const { elsewhere } = threads()
    const outcome = await elsewhere([gate('toolCall', { ask })]).settle(graph, {}, T)
    expect(outcome).toMatchObject({ status: 'failed', error: { code: 'MIDDLEWARE_FAILED', at: { policy: 'Gate' } } })
    expect(outcome.asks).toEqual([])
  })
})

/** How each seam uses an answer that is itself the result. */
const RESULTS = [
  { seam: 'toolCall', answer: 'from a person', made: 'said, from a person', never: 'tool', bad: undefined },
  {
    seam: 'modelCall',
    answer: { content: 'from a person' },
    made: 'from a person, did x',
    never: 'model',
    bad: { text: 'no content' },
  },
  { seam: 'node', answer: { made: 'from a person' }, made: 'from a person', never: 'node', bad: { made: 7 } },
] as const

describe.each(RESULTS)('an answer that is to be the result at $seam (onAnswer: "result")', (row) => {
  const { seam, answer, made, never, bad } = row
  const ask = { ask: { onAnswer: 'result' } }

  it('J5: is what the step came to; the step itself never runs, and the asker is not asked again', async () => {
    const { graph, did } = stage()
    const { elsewhere } = threads()
    await elsewhere([gate(seam, ask)]).run(graph, {}, T)
    did.splice(0)
    const asked = gate(seam, ask)
    expect((await elsewhere([asked]).resume(graph, 't', answer)).state.made).toBe(made)
    expect(did).not.toContain(never)
    expect(asked.answered).toEqual([])
  })

  it('is judged by after, which is told who supplied it, and reported as a substitution', async () => {
    const { graph } = stage()
    const { elsewhere } = threads()
    await elsewhere([gate(seam, ask)]).run(graph, {}, T)
    const after = says('After', { [`${seam}.after`]: { action: 'pass' } })
    const { warnings } = await elsewhere([gate(seam, ask), after]).resume(graph, 't', answer)
    expect(after.asked).toMatchObject([{ substituted: 'Gate', outcome: { ok: true } }])
    expect(warnings).toMatchObject([{ policy: 'Gate', message: expect.stringContaining('supplied a result') }])
  })

  if (bad === undefined) return
  it('is validated like the own result of the step; where it does not fit, the question comes again and says why', async () => {
    const { graph, did } = stage()
    const { elsewhere } = threads()
    const [first] = (await elsewhere([gate(seam, ask)]).run(graph, {}, T)).asks
    did.splice(0)
    const { status, asks } = await elsewhere([gate(seam, ask)]).resume(graph, 't', bad)
    expect(status).toBe('paused')
    const payload = { ...(first?.payload as object), refused: expect.any(String) }
    expect(asks).toMatchObject([{ key: `${first?.key}.2`, askedBy: 'policy:Gate', payload }])
    expect((await elsewhere([gate(seam, ask)]).resume(graph, 't', answer)).state.made).toBe(made)
    expect(did).not.toContain(never)
  })

  it('is an error of the call when none of three fits; continued, it is asked about anew', async () => {
    const { graph } = stage()
    const { elsewhere } = threads()
    const [first] = (await elsewhere([gate(seam, ask)]).run(graph, {}, T)).asks
    const resume = () => elsewhere([gate(seam, ask)]).resume(graph, 't', bad)
    for (const _ of [1, 2]) expect((await resume()).status).toBe('paused')
    expect((await errorOf(resume()))?.code).not.toBe('MIDDLEWARE_FAILED')
    const { asks } = await elsewhere([gate(seam, ask)]).continue(graph, 't')
    expect(asks).toEqual([{ ...first, askedAt: expect.any(Number) }])
    expect((await elsewhere([gate(seam, ask)]).resume(graph, 't', answer)).state.made).toBe(made)
  })

  it('is asked for again in the same run where another policy answers, and is then an error of the call', async () => {
    const { graph } = stage()
    const bot = says('Bot', { 'ask.before': { action: 'replace', value: bad } })
    const error = await errorOf(
      threads()
        .elsewhere([gate(seam, ask), bot])
        .run(graph, {}, T),
    )
    expect(error?.code).not.toBe('MIDDLEWARE_FAILED')
    expect(bot.asked).toHaveLength(3)
  })
})

describe('an answer to own middleware that is to be the result', () => {
  const Count = state({ n: z.number().default(0) })
  /** A node that own middleware asks a person to stand in for. */
  const play = () => {
    const own = middleware({
      name: 'own',
      beforeNode: (ctx) => ctx.suspend({ question: 'how many?', onAnswer: 'result', expiresInMs: 60_000 }),
    })
    const work = node('work', Count, () => ({ n: 1 }))
    return graph('g', Count, { middleware: [own] })
      .edge(START, work)
      .edge(work, END)
      .check()
  }

  it('is asked for again where it does not fit, with all that the question had', async () => {
    const { elsewhere } = threads()
    const [first] = (await elsewhere([]).run(play(), {}, T)).asks
    const { asks } = await elsewhere([]).resume(play(), 't', { n: 'many' })
    expect(asks).toMatchObject([{ key: 'work@own.2', middleware: 'own', payload: { question: 'how many?' } }])
    expect((asks[0]?.expiresAt ?? 0) - (asks[0]?.askedAt ?? 0)).toBe(60_000)
    expect(first?.key).toBe('work@own')
    expect((await elsewhere([]).resume(play(), 't', { n: 7 })).state.n).toBe(7)
  })
})

describe('an answer that is to be the result of a run', () => {
  it('is no verdict: run.before admits no replace, so the policy that asks for it has failed', async () => {
    const { graph, did } = stage()
    const { elsewhere } = threads()
    const outcome = await elsewhere([gate('run', { ask: { onAnswer: 'result' } })]).settle(graph, {}, T)
    expect(outcome).toMatchObject({ status: 'failed', error: { code: 'MIDDLEWARE_FAILED', at: { seam: 'run' } } })
    expect(did).toEqual([])
  })
})

describe.each(PLACES)('a question at $seam.before that nobody answers in time', ({ seam, key }) => {
  const setUp = async (ask: object) => {
    const platform = new Clock()
    const { graph, did } = stage()
    const { elsewhere } = threads({ platform })
    const paused = await elsewhere([gate(seam, { ask: { expiresInMs: 1_000, ...ask } })]).run(graph, {}, T)
    did.splice(0)
    const runtime = (asked = gate(seam)) => elsewhere([asked])
    return { platform, graph, did, paused, runtime }
  }

  it('says until when it may be answered, and is answered until then', async () => {
    const { platform, graph, paused, runtime } = await setUp({})
    expect((paused.asks[0]?.expiresAt ?? 0) - (paused.asks[0]?.askedAt ?? 0)).toBe(1_000)
    await platform.pass(999)
    expect(await errorOf(runtime().continue(graph, 't'))).toMatchObject({ code: 'THREAD_PAUSED' })
    expect((await runtime().resume(graph, 't', true)).status).toBe('completed')
  })

  it('takes no answer any more: continue goes on, and what it asked about is refused', async () => {
    const { platform, graph, did, runtime } = await setUp({})
    await platform.pass(1_000)
    expect(await errorOf(runtime().resume(graph, 't', true))).toMatchObject({
      code: 'ASK_EXPIRED',
      at: { thread: 't' },
    })
    const asked = gate(seam)
    const error = await errorOf(runtime(asked).continue(graph, 't'))
    expect(error).toMatchObject({ code: 'REFUSED', reason: 'nobody answered in time', at: { policy: 'Gate' } })
    expect(asked.answered).toEqual([])
    expect(did).not.toContain(seam === 'toolCall' ? 'tool' : seam === 'modelCall' ? 'model' : 'node')
  })

  it('is answered with its default, if it has one', async () => {
    const { platform, graph, runtime } = await setUp({ default: true })
    await platform.pass(1_000)
    const asked = gate(seam)
    expect((await runtime(asked).continue(graph, 't')).status).toBe('completed')
    expect(asked.answered).toEqual([true])
    expect((await runtime().history('t')).filter(({ type }) => type === 'answer')).toMatchObject([
      { key, value: true, by: 'expiry' },
    ])
  })
})

describe('questions about calls that are called the same', () => {
  it('have keys of their own: calls of two models at once', async () => {
    const { elsewhere } = threads({ platform: new Clock() })
    const ask = async (ctx: NodeContext, model: string) =>
      (await ctx.callModel(scripted([`said by ${model}`], { model }), { messages: [] })).content
    const g = oneNode(async (_s, ctx) => ({ made: (await Promise.all([ask(ctx, 'small'), ask(ctx, 'large')])).join() }))
    const { asks } = await elsewhere([gate('modelCall')]).run(g, {}, T)
    expect(asks.map(({ payload }) => payload)).toEqual([{ model: 'small' }, { model: 'large' }])
    const [first, second] = asks.map(({ key }) => key)
    expect([first, second]).toEqual(['step:model@Gate', 'step:model:large:0@Gate'])
    const half = await elsewhere([gate('modelCall')]).resume(g, 't', new Map([[first, true]]))
    expect(half.asks.map(({ key }) => key)).toEqual([second])
    const { state } = await elsewhere([gate('modelCall')]).resume(g, 't', true)
    expect(state.made).toBe('said by small,said by large')
  })

  it('say which call they are about, by the id that its events have when it is made', async () => {
    const { elsewhere } = threads()
    const act = noting(({ text }) => `did ${text}`)
    const both = (ctx: NodeContext) => Promise.all(['x', 'y'].map((text) => ctx.callTool(act, { text })))
    const g = oneNode(async (_s, ctx) => ({ made: (await both(ctx)).join() }))
    const { asks } = await elsewhere([gate('toolCall')]).run(g, {}, T)
    const made: unknown[] = []
    const answers = new Map(asks.map(({ key }) => [key, true]))
    for await (const event of elsewhere([gate('toolCall')]).stream(g, undefined, { ...T, resume: answers }))
      if (event.type === 'tool_result') made.push([event.toolCallId, event.toolResult])
    const said = (ask: Ask) => (ask.payload as { arguments: { text: string } }).arguments.text
    expect(made.toSorted()).toEqual(asks.map((ask) => [ask.toolCallId, `did ${said(ask)}`]).toSorted())
    expect(new Set(asks.map(({ toolCallId }) => toolCallId)).size).toBe(2)
  })

  it('have keys of their own: a node further in, and one whose name looks like the way to it', async () => {
    const { elsewhere } = threads()
    const Texts = state({ made: append(z.string()) })
    const asks = (name: string) => node(name, Texts, async (_s, ctx) => ({ made: [`${await ctx.ask('q', name)}`] }))
    const [inside, lookalike, named] = [asks('x'), asks('a/x'), asks('100 % a:b@c')]
    const inner = graph('inner', Texts).edge(START, inside).edge(inside, END).check()
    const a = node('a', Texts, async (_s, ctx) => ({ made: [...(await ctx.run(inner, {})).made] }))
    const all = [a, lookalike, named]
    const split = node('split', Texts, () => command({ goto: all }), { goto: all })
    const g = graph('g', Texts).edge(START, split).edge(a, END).edge(lookalike, END).edge(named, END).check()
    const { asks: put } = await elsewhere([]).run(g, {}, T)
    expect(put.map(({ key, payload }) => [key, payload]).toSorted()).toEqual([
      ['100 %25 a%3ab%40c:q', '100 % a:b@c'],
      ['a%2fx:q', 'a/x'],
      ['a/x:q', 'x'],
    ])
    const answers = new Map(put.map(({ key, payload }) => [key, `answers ${payload}`]))
    expect((await elsewhere([]).resume(g, 't', answers)).state.made).toEqual([
      'answers 100 % a:b@c',
      'answers x',
      'answers a/x',
    ])
  })

  it('have keys of their own: tasks of a node, and a node whose name looks like one of them', async () => {
    const { elsewhere } = threads()
    const Texts = state({ text: z.string().default('given'), made: append(z.string()) })
    const each = (name: string) =>
      node(name, Texts, async (s, ctx) => ({ made: [`${s.text} ${await ctx.ask('q', s.text)}`] }))
    const [a, lookalike] = [each('a'), each('a[1]')]
    const fan = node(
      'fan',
      Texts,
      () => command({ goto: [send(a, { text: 'one' }), send(a, { text: 'two' }), send(lookalike, { text: 'three' })] }),
      { goto: [a, lookalike] },
    )
    const g = graph('fans', Texts).edge(START, fan).edge(a, END).edge(lookalike, END).check()
    const paused = await elsewhere([]).run(g, {}, T)
    expect(paused.asks.map(({ key, payload }) => [key, payload])).toEqual([
      ['a:q', 'one'],
      ['a[1]:q', 'two'],
      ['a[1][0]:q', 'three'],
    ])
    const answers = new Map(paused.asks.map(({ key, payload }) => [key, `answers ${payload}`]))
    const { state: left } = await elsewhere([]).resume(g, 't', answers)
    expect(left.made).toEqual(['one answers one', 'two answers two', 'three answers three'])
  })
})

describe('an answer to a policy', () => {
  /** A graph whose node calls `act` with each text in turn, and what it ran with. */
  const calling = (...texts: string[]) => {
    const act = noting()
    const g = oneNode(async (_s, ctx) => {
      for (const text of texts) await ctx.callTool(act, { text })
    })
    return { graph: g, act }
  }

  it('Z3: is shown to the policy that asked, and to no other one, at no other seam', async () => {
    const { graph } = calling('x')
    const { elsewhere } = threads()
    const policies = () => [gate('node', { name: 'AtNode' }), gate('toolCall'), gate('toolCall', { name: 'Second' })]
    expect((await elsewhere(policies()).run(graph, {}, T)).asks).toMatchObject([{ key: 'step@AtNode' }])
    const second = policies()
    expect((await elsewhere(second).resume(graph, 't', true)).asks).toMatchObject([{ key: 'step:act@Gate' }])
    expect(second.map(({ answered }) => answered)).toEqual([[true], [undefined], []])
    const third = policies()
    expect((await elsewhere(third).resume(graph, 't', true)).asks).toMatchObject([{ key: 'step:act@Second' }])
    expect(third.map(({ answered }) => answered)).toEqual([[true], [true], [undefined]])
    const fourth = policies()
    expect((await elsewhere(fourth).resume(graph, 't', true)).status).toBe('completed')
    expect(fourth.map(({ answered }) => answered)).toEqual([[true], [true], [true]])
  })

  it('Z3: about a tool call does not open the node that comes after it', async () => {
    const call = node('call', Text, async (_s, ctx) => {
      await ctx.callTool(noting(), { text: 'x' })
    })
    const behind = node('behind', Text, () => ({ made: 'behind the gate' }))
    const g = graph('g', Text).edge(START, call).edge(call, behind).edge(behind, END).check()
    const match: Policy['match'] = { reads: 'subject', matches: ({ subject }) => subject.nodeName === 'behind' }
    const atNode = () => ({ ...gate('node', { name: 'AtNode' }), match })
    const { elsewhere } = threads()
    expect((await elsewhere([gate('toolCall'), atNode()]).run(g, {}, T)).asks).toMatchObject([{ key: 'call:act@Gate' }])
    const guard = atNode()
    const paused = await elsewhere([gate('toolCall'), guard]).resume(g, 't', true)
    expect(paused.asks).toMatchObject([{ key: 'behind@AtNode' }])
    expect(guard.answered).toEqual([undefined])
    const last = await elsewhere([gate('toolCall'), atNode()]).resume(g, 't', true)
    expect(last.state.made).toBe('behind the gate')
  })

  it('Z4: holds for one call: the next one of the same tool, with the same arguments, is asked about anew', async () => {
    const { graph, act } = calling('x', 'x')
    const { elsewhere } = threads()
    await elsewhere([gate('toolCall')]).run(graph, {}, T)
    const paused = await elsewhere([gate('toolCall')]).resume(graph, 't', true)
    expect(paused.asks.map(({ key }) => key)).toEqual(['step:act[1]@Gate'])
    expect(act.ran).toHaveLength(1)
    const asked = gate('toolCall')
    expect((await elsewhere([asked]).resume(graph, 't', true)).status).toBe('completed')
    expect(asked.answered).toEqual([true])
    expect(act.ran).toHaveLength(2)
  })

  it('Z4: holds for one arrival at a node: a loop that comes by again is asked about anew', async () => {
    let ran = 0
    const step = node('step', Text, () => ({ made: `${++ran}` }))
    const loop = graph('loop', Text)
      .edge(START, step)
      .when(step, ({ made }) => made === '3', { then: END, otherwise: step })
      .check()
    const { elsewhere } = threads()
    const counts = [(await elsewhere([gate('node')]).run(loop, {}, T)).asks.length]
    for (let i = 0; i < 3; i++) {
      const { asks } = await elsewhere([gate('node')]).resume(loop, 't', true)
      counts.push(asks.length, ran)
    }
    expect(counts).toEqual([1, 1, 1, 1, 2, 0, 3])
  })

  it('stays with its call until that settles: a retry of the node is let run by it', async () => {
    let ran = 0
    const g = oneNode(() => {
      if (++ran === 1) throw new Error('once')
    })
    const { elsewhere } = threads()
    const retry = says('Retry', { 'nodeError.after': { action: 'retry' } })
    await elsewhere([gate('node'), retry]).run(g, {}, T)
    const asked = gate('node')
    expect((await elsewhere([asked, retry]).resume(g, 't', true)).status).toBe('completed')
    expect([asked.answered, ran]).toEqual([[true, true], 2])
  })

  it.each([
    { at: 'a tool call', seam: 'toolCall', key: 'step:act@Gate' },
    { at: 'a model call', seam: 'modelCall', key: 'step:model@Gate' },
    { at: 'a node', seam: 'node', key: 'step@Gate' },
  ] as const)('is spent when $at that it let run has failed: continue asks again', async ({ seam, key }) => {
    let fails = true
    const run = () => {
      if (fails) throw new Error('no')
      return 'done'
    }
    const model = scripted([run, run])
    const g = oneNode(async (_s, ctx) => {
      if (seam === 'node') run()
      else if (seam === 'toolCall') await ctx.callTool(noting(run), { text: 'x' })
      else await ctx.callModel(model, { messages: [] })
    })
    const { elsewhere } = threads()
    await elsewhere([gate(seam)]).run(g, {}, T)
    expect(await errorOf(elsewhere([gate(seam)]).resume(g, 't', true))).toMatchObject({ message: 'no' })
    fails = false
    const asked = gate(seam)
    expect((await elsewhere([asked]).continue(g, 't')).asks.map(({ key }) => key)).toEqual([key])
    expect(asked.answered).toEqual([undefined])
    expect((await elsewhere([gate(seam)]).resume(g, 't', true)).status).toBe('completed')
  })

  it('is not spent when the run was cut off before its call had settled: continue lets it run', async () => {
    const store = new FailingStore()
    const { graph, act } = calling('x')
    const run = (asked = gate('toolCall')) => createRuntime({ store, policies: [asked] })
    await run().run(graph, {}, T)
    store.fail('before', { nth: 3 })
    expect(await errorOf(run().resume(graph, 't', true))).toMatchObject({ code: 'STORE_FAILED' })
    const ran = act.ran.length
    const asked = gate('toolCall')
    expect((await run(asked).continue(graph, 't')).status).toBe('completed')
    expect([asked.answered, ran, act.ran.length]).toEqual([[true], 0, 1])
  })

  it('is checked by the schema of the question before anything is written', async () => {
    const { graph, act } = calling('x')
    const checked: unknown[] = []
    const { elsewhere } = threads({
      checkJson: (schema, value) => {
        checked.push([schema, value])
        if (typeof value !== 'boolean') throw new Error('it is no boolean.')
      },
    })
    const policies = [gate('toolCall', { ask: { schema: { type: 'boolean' } } })]
    const { asks } = await elsewhere(policies).run(graph, {}, T)
    expect(asks[0]?.schema).toEqual({ type: 'boolean' })
    const before = await elsewhere([]).history('t')
    expect(await errorOf(elsewhere(policies).resume(graph, 't', 'yes'))).toMatchObject({ code: 'ANSWER_INVALID' })
    expect(await elsewhere([]).history('t')).toEqual(before)
    expect((await elsewhere(policies).resume(graph, 't', true)).status).toBe('completed')
    expect(checked).toEqual([
      [{ type: 'boolean' }, 'yes'],
      [{ type: 'boolean' }, true],
    ])
    expect(act.ran).toHaveLength(1)
  })
})

describe('an answer holds for what its policy was shown', () => {
  /** Rewrites the text to `to`, before or behind the gate. */
  const rewrites = (to: string) => says('Rewrites', { 'toolCall.before': { action: 'modify', input: { text: to } } })
  const act = noting()
  const g = oneNode(async (_s, ctx) => void (await ctx.callTool(act, { text: 'given' })))

  it('and counts while that stays the same, whatever runs in between', async () => {
    const { elsewhere } = threads()
    await elsewhere([rewrites('a'), gate('toolCall')]).run(g, {}, T)
    const asked = gate('toolCall')
    expect((await elsewhere([rewrites('a'), asked]).resume(g, 't', true)).status).toBe('completed')
    expect(asked.answered).toEqual([true])
    expect(act.ran.at(-1)).toEqual({ text: 'a' })
  })

  it('and not for an input that another policy changes after it: the policy asks about that one', async () => {
    const { elsewhere } = threads()
    const ran = act.ran.length
    await elsewhere([gate('toolCall'), rewrites('b')]).run(g, {}, T)
    const asked = gate('toolCall')
    const paused = await elsewhere([asked, rewrites('b')]).resume(g, 't', true)
    expect(asked.answered).toEqual([true, undefined])
    expect(paused.asks.map(({ key }) => key)).toEqual(['step:act@Gate.2'])
    expect((await elsewhere([gate('toolCall'), rewrites('b')]).resume(g, 't', true)).status).toBe('completed')
    expect(act.ran.slice(ran)).toEqual([{ text: 'b' }])
  })

  it('and not for another input in a later run: the policy asks again, and its fourth question is its failure', async () => {
    const { elsewhere } = threads()
    const ran = act.ran.length
    const keys: unknown[] = []
    let { asks, error, status } = await elsewhere([rewrites('0'), gate('toolCall')]).settle(g, {}, T)
    for (let i = 1; status === 'paused' && i < 9; i++) {
      keys.push(asks[0]?.key)
      const runtime = elsewhere([rewrites(`${i}`), gate('toolCall')])
      const events = []
      for await (const event of runtime.stream(g, undefined, { ...T, resume: true })) events.push(event)
      const end = events.at(-1)
      if (end?.type !== 'run_end') throw new Error('no end')
      ;({ status, asks = [], error } = end)
    }
    expect(keys).toEqual(['step:act@Gate', 'step:act@Gate.2', 'step:act@Gate.3'])
    expect(error).toMatchObject({ code: 'MIDDLEWARE_FAILED', message: expect.stringContaining('asked 3 times') })
    expect(act.ran.length).toBe(ran)
  })

  it('and not for a node whose state was changed by hand in between', async () => {
    const { elsewhere } = threads()
    const one = oneNode(() => ({ made: 'ran' }))
    await elsewhere([gate('node')]).run(one, {}, T)
    await elsewhere([]).updateState(one, 't', { text: 'changed' })
    const asked = gate('node')
    expect((await elsewhere([asked]).resume(one, 't', true)).asks.map(({ key }) => key)).toEqual(['step@Gate.2'])
    expect((await elsewhere([gate('node')]).resume(one, 't', true)).state.made).toBe('ran')
  })
})

describe('a question of a policy whose run did not get to its pause', () => {
  it('is put again under its key by continue, and answered once, when the run was cut off', async () => {
    const store = new FailingStore()
    const act = noting()
    const g = oneNode(async (_s, ctx) => void (await ctx.callTool(act, { text: 'x' })))
    const runtime = (asked = gate('toolCall')) => createRuntime({ store, policies: [asked] })
    store.fail('before', { type: 'end' })
    expect(await errorOf(runtime().run(g, {}, T))).toMatchObject({ code: 'STORE_FAILED' })
    const paused = await runtime().continue(g, 't')
    expect(paused.asks.map(({ key }) => key)).toEqual(['step:act@Gate'])
    expect((await runtime().history('t')).filter(({ type }) => type === 'ask')).toHaveLength(1)
    expect((await runtime().resume(g, 't', true)).status).toBe('completed')
    expect(act.ran).toHaveLength(1)
  })

  it('is withdrawn when a sibling fails, and put again under its key by continue', async () => {
    const { store } = setUp()
    const act = noting()
    let fails = true
    const g = together({
      a: async (_s, ctx) => ({ log: [`${await ctx.callTool(act, { text: 'x' })}`] }),
      b: async (_s, ctx) => {
        await ctx.once('first', () => null)
        if (fails) throw new Error('b failed')
      },
    })
    const runtime = (asked = gate('toolCall')) => createRuntime({ store, policies: [asked] })
    const failed = await runtime().settle(g, {}, T)
    expect(failed).toMatchObject({ status: 'failed', error: { message: 'b failed' }, asks: [] })
    expect((await runtime().stateAt(g, 't')).asks).toEqual([])
    fails = false
    const paused = await runtime().continue(g, 't')
    expect(paused.asks.map(({ key }) => key)).toEqual(['a:act@Gate'])
    expect((await runtime().resume(g, 't', true)).state.log).toEqual(['done'])
    expect(act.ran).toHaveLength(1)
  })
})

describe('a thread that waits for an answer to a policy', () => {
  const act = noting()
  const g = oneNode(async (_s, ctx) => void (await ctx.callTool(act, { text: 'x' })))

  it('is refused where that policy is not installed, and nothing is written', async () => {
    const { elsewhere, store } = threads()
    await elsewhere([gate('toolCall')]).run(g, {}, T)
    const [before, [line]] = [await elsewhere([]).history('t'), store.lines()]
    const refused = await errorOf(elsewhere([gate('toolCall', { name: 'Other' })]).resume(g, 't', true))
    expect(refused).toMatchObject({ code: 'ASKER_MISSING', at: { policy: 'Gate', ask: 'step:act@Gate' } })
    expect([await elsewhere([]).history('t'), store.lines()]).toEqual([before, [line]])
    expect((await elsewhere([gate('toolCall')]).resume(g, 't', true)).status).toBe('completed')
  })

  it.each([
    { mode: 'off', says: 'is off here' },
    { mode: 'shadow', says: 'is in shadow here' },
  ] as const)('is refused where that policy is $mode', async ({ mode, says: why }) => {
    const { elsewhere } = threads()
    await elsewhere([gate('toolCall')]).run(g, {}, T)
    const refused = await errorOf(elsewhere([{ ...gate('toolCall'), mode }]).resume(g, 't', true))
    expect(refused).toMatchObject({ code: 'ASKER_MISSING', message: expect.stringContaining(why) })
  })

  it('goes on past a policy that was added meanwhile, which is consulted as if it had always been there', async () => {
    const { elsewhere } = threads()
    await elsewhere([gate('toolCall')]).run(g, {}, T)
    const added = says('Added', { 'toolCall.before': { action: 'reject', reason: 'not any more' } })
    const ran = act.ran.length
    const error = await errorOf(elsewhere([added, gate('toolCall')]).resume(g, 't', true))
    expect(error).toMatchObject({ code: 'REFUSED', at: { policy: 'Added' } })
    expect(act.ran.length).toBe(ran)
  })

  it('goes on without a policy that asked nothing and was removed meanwhile', async () => {
    const { elsewhere } = threads()
    const bystander = says('Bystander', { 'toolCall.before': PROCEED, 'node.before': PROCEED })
    await elsewhere([bystander, gate('toolCall')]).run(g, {}, T)
    expect((await elsewhere([gate('toolCall')]).resume(g, 't', true)).status).toBe('completed')
  })

  it('goes on with its policies in another order', async () => {
    const { elsewhere } = threads()
    const order: string[] = []
    const first = () => gate('toolCall', { name: 'First' })
    const second = () =>
      says('Second', {
        'toolCall.before': () => {
          order.push('Second')
          return PROCEED
        },
      })
    await elsewhere([first(), second()]).run(g, {}, T)
    expect(order).toEqual([])
    expect((await elsewhere([second(), first()]).resume(g, 't', true)).status).toBe('completed')
    expect(order).toEqual(['Second'])
  })
})

describe('what a policy asks about', () => {
  it('is what it was shown: the arguments that would run, and not those that the code gave', async () => {
    const cut = says('Cut', { 'toolCall.before': { action: 'modify', input: { text: 'more' } } })
    const { graph: work } = stage()
    const { elsewhere } = threads()
    const paused = await elsewhere([cut, gate('toolCall')]).run(work, {}, T)
    expect(paused.asks[0]?.payload).toMatchObject({ tool: 'act', arguments: { text: 'more' } })
    const done = await elsewhere([cut, gate('toolCall')]).resume(work, 't', true)
    expect(done.state.made).toBe('said, did more')
  })
})
