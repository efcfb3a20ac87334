import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { agentGraph, calls, contents, numbered, processes, strict, Talk, user } from '../../../testing/agent.ts'
import { eventsOf, says } from '../../../testing/play.ts'
import { faultsOf } from '../../../testing/transcript.ts'
import {
  agentNode,
  approximateTokens,
  type ChatMessage,
  type ChatModel,
  command,
  createRuntime,
  END,
  fixedTokens,
  graph,
  type Middleware,
  messageCount,
  messages,
  middleware,
  modelNode,
  node,
  recentMessages,
  recentTokens,
  type ScriptedModel,
  type ScriptedReply,
  START,
  SummarizationMiddleware,
  type SummarizationOptions,
  scripted,
  state,
  type Tool,
  ToolInterruptMiddleware,
  tokenLimit,
  tool,
} from '../../index.ts'

const T = { thread: 't' }

//#region summarize
/** An agent whose conversation may be as long as it likes. */
const chatty = (model: ChatModel, tools: readonly Tool[]) => {
  const agent = agentNode('agent', Talk, { model, tools })
  const summarize = new SummarizationMiddleware({
    model: 'small',
    trigger: tokenLimit(128_000),
    recent: recentMessages(20),
  })
  return graph('chatty', Talk, { middleware: [summarize] })
    .edge(START, agent)
    .edge(agent, END)
    .check()
}
//#endregion

/** So many messages, of a user and an assistant in turns. */
const talk = (length: number): readonly ChatMessage[] =>
  Array.from({ length }, (_, i) => ({ role: i % 2 === 0 ? 'user' : 'assistant', content: `message ${i}` }))

const SUMMARY = 'user: Summary of the conversation so far:\n\nall of it'
const summing = (replies: readonly ScriptedReply[] = Array(9).fill('all of it')) =>
  scripted(replies, { model: 'small' })

/** Summarizes above 10 messages and keeps 3, with what a test says otherwise. */
const shortens = (model: ChatModel, options: Partial<SummarizationOptions> = {}) =>
  new SummarizationMiddleware({ model, trigger: messageCount(10), recent: recentMessages(3), ...options })

/** A graph with one node that asks the model once. */
function asking(model: ChatModel, own: readonly Middleware[], options: { readonly system?: string } = {}) {
  const ask = modelNode('ask', Talk, { model, ...options })
  return graph('g', Talk, { middleware: own }).edge(START, ask).edge(ask, END).check()
}

const sent = (model: ScriptedModel, nth = 0) => contents(model.requests[nth]?.messages ?? [])

describe('a conversation that is too long', () => {
  it('H16: is sent as a summary and its last messages, and is stored like that, with the reply', async () => {
    const [model, small] = [strict(['done']), summing()]
    const { state } = await createRuntime().run(asking(model, [shortens(small)]), { messages: talk(15) })
    expect(sent(model)).toEqual([SUMMARY, ...contents(talk(15)).slice(-3)])
    expect(contents(state.messages)).toEqual([SUMMARY, ...contents(talk(15)).slice(-3), 'assistant: done'])
    expect(small.requests).toHaveLength(1)
  })

  it('is sent and stored as it is until then', async () => {
    const [model, small] = [strict(['done']), summing()]
    const { state } = await createRuntime().run(asking(model, [shortens(small)]), { messages: talk(10) })
    expect(sent(model)).toEqual(contents(talk(10)))
    expect(state.messages).toHaveLength(11)
    expect(small.requests).toEqual([])
  })

  it('is told to the summarizing model as a text, calls and results included', async () => {
    const small = summing()
    const conversation: readonly ChatMessage[] = [
      { role: 'user', content: 'pay ann' },
      { role: 'assistant', content: 'I will.', tool_calls: [{ id: 'c1', name: 'pay', arguments: '{"to":"ann"}' }] },
      { role: 'tool', tool_call_id: 'c1', content: 'paid' },
      ...talk(9),
    ]
    const own = [shortens(small, { prompt: 'Be brief.', recent: recentMessages(9) })]
    await createRuntime().run(asking(strict(['done']), own), { messages: conversation })
    expect(small.requests[0]).toEqual({
      model: 'small',
      messages: [
        { role: 'system', content: 'Be brief.' },
        {
          role: 'user',
          content: 'user: pay ann\n\nassistant: I will.\n\nassistant calls pay: {"to":"ann"}\n\nresult of pay: paid',
        },
      ],
    })
  })

  it('H17: keeps the prompt of its node first; that is neither summarized nor stored', async () => {
    const [model, small] = [strict(['done']), summing()]
    const g = asking(model, [shortens(small)], { system: 'You are kind.' })
    const { state } = await createRuntime().run(g, { messages: talk(15) })
    expect(sent(model).slice(0, 2)).toEqual(['system: You are kind.', SUMMARY])
    expect(small.requests[0]?.messages[1]?.content).not.toContain('kind')
    expect(contents(state.messages)[0]).toBe(SUMMARY)
  })

  it.each([
    { name: 'nothing', reply: '  ' },
    { name: 'more than it may', reply: 'x'.repeat(24_001) },
  ])(
    'H18: ends the run where its summary is $name: the model is not asked, and the history stays',
    async ({ reply }) => {
      const [model, { another }] = [strict(['done']), processes()]
      const g = asking(model, [shortens(summing([reply]))])
      await expect(another().run(g, { messages: talk(15) }, T)).rejects.toMatchObject({
        code: 'MIDDLEWARE_FAILED',
        cause: { code: 'SUMMARY_UNUSABLE' },
      })
      expect(model.requests).toEqual([])
      expect((await another().stateAt(g, 't')).state?.messages).toEqual(talk(15))
    },
  )

  it('H19: is never cut between a call and its results', async () => {
    const [model, small] = [strict(['done']), summing()]
    const ids = ['c1', 'c2']
    const conversation: readonly ChatMessage[] = [
      ...talk(9),
      { role: 'assistant', content: '', tool_calls: ids.map((id) => ({ id, name: 'look', arguments: '{}' })) },
      ...ids.map((id) => ({ role: 'tool', tool_call_id: id, content: id }) as const),
      { role: 'user', content: 'and?' },
    ]
    const g = asking(model, [shortens(small, { recent: recentMessages(2) })])
    const { state } = await createRuntime().run(g, { messages: conversation })
    expect(sent(model)).toEqual([SUMMARY, ...contents(conversation).slice(9)])
    expect(faultsOf(state.messages)).toEqual([])
  })

  it('H24: keeps its newest message, however few tokens may stay', async () => {
    const model = strict(['done'])
    await createRuntime().run(asking(model, [shortens(summing(), { recent: recentTokens(1) })]), { messages: talk(15) })
    expect(sent(model)).toEqual([SUMMARY, 'user: message 14'])
  })

  it('is sent as it is where nothing is older than what stays', async () => {
    const [model, small] = [strict(['done']), summing()]
    const g = asking(model, [shortens(small, { recent: recentMessages(20) })])
    const { state } = await createRuntime().run(g, { messages: talk(15) })
    expect(sent(model)).toEqual(contents(talk(15)))
    expect([state.messages.length, small.requests.length]).toEqual([16, 0])
  })

  it('is summarized again with the summary that stands for what was before', async () => {
    const { another } = processes()
    const [model, small] = [strict(['one', 'two']), summing(['first', 'second'])]
    const g = asking(model, [shortens(small)])
    await another().run(g, { messages: talk(15) }, T)
    const { state } = await another().run(g, { messages: talk(9) }, T)
    expect(small.requests[1]?.messages[1]?.content).toContain('user: Summary of the conversation so far:\n\nfirst')
    expect(contents(state.messages)[0]).toContain('second')
    expect(state.messages).toHaveLength(5)
  })

  it('may be summarized in a message of your own, which has the id of the first it stands for', async () => {
    const [model, small] = [strict(['done']), summing()]
    const withIds = talk(15).map((message, i) => ({ ...message, id: `m${i}` }))
    const summaryMessage = (content: string) => ({ role: 'system', content }) as const
    const g = asking(model, [shortens(small, { summaryMessage })])
    const { state } = await createRuntime().run(g, { messages: withIds })
    expect(state.messages[0]).toEqual({ id: 'm0', role: 'system', content: 'all of it' })
    expect(state.messages.map(({ id }) => id)).toEqual(['m0', 'm12', 'm13', 'm14', undefined])
  })

  it('D1: leaves no token of its summary in the user’s stream', async () => {
    const g = asking(strict(['done now']), [shortens(summing())])
    const events = await eventsOf({ graph: g, input: { messages: talk(15) } })
    const tokens = events.flatMap((event) => (event.type === 'token' ? [event.text] : []))
    expect(tokens.join('')).toBe('done now')
  })

  it('passes the policies with the summarizing call too', async () => {
    const gate = says('Gate', { 'modelCall.before': { action: 'proceed' } })
    const g = asking(strict(['done']), [shortens(summing())])
    await createRuntime({ policies: [gate] }).run(g, { messages: talk(15) })
    expect(gate.asked.map(({ input }) => (input as { model: string }).model)).toEqual(['small', 'scripted'])
  })
})

describe('when a conversation is too long', () => {
  const count = (tokens: number) => () => tokens
  it.each([
    { tokens: 800, too: false },
    { tokens: 801, too: true },
  ])('H23: is told of a part of what the model takes: 0.8 of 1,000 at $tokens', ({ tokens, too }) => {
    const own = shortens(summing(), { trigger: tokenLimit(1_000), counter: count(tokens) })
    expect(own.shouldSummarize({ messages: [] })).toEqual({
      summarize: too,
      reason: too ? `token_limit:${tokens}>800` : '',
    })
  })

  it.each([
    { name: 'tokenLimit', trigger: tokenLimit(10, { thresholdRatio: 1 }), tokens: 11, reason: 'token_limit:11>10' },
    {
      name: 'tokenLimit, cut down',
      trigger: tokenLimit(11, { thresholdRatio: 0.5 }),
      tokens: 6,
      reason: 'token_limit:6>5',
    },
    { name: 'fixedTokens', trigger: fixedTokens(10), tokens: 11, reason: 'fixed_tokens:11>10' },
    { name: 'any of several', trigger: [fixedTokens(99), fixedTokens(10)], tokens: 11, reason: 'fixed_tokens:11>10' },
    { name: 'none of several', trigger: [fixedTokens(99), fixedTokens(11)], tokens: 11, reason: '' },
  ])('is said by triggers: $name', ({ trigger, tokens, reason }) => {
    expect(shortens(summing(), { trigger, counter: count(tokens) }).shouldSummarize({ messages: [] }).reason).toBe(
      reason,
    )
  })

  it.each([
    { name: 'a message has 4 at least', request: { messages: [{ role: 'user', content: '' }] }, tokens: 4 },
    { name: 'a text a quarter', request: { messages: [{ role: 'user', content: '12345' }] }, tokens: 6 },
    {
      name: 'calls count',
      request: {
        messages: [{ role: 'assistant', content: '', tool_calls: [{ id: 'x', name: 'look', arguments: '{"a":1}' }] }],
      },
      tokens: 7,
    },
    {
      name: 'results count',
      request: { messages: [{ role: 'tool', content: '12345678', tool_call_id: 'abcd' }] },
      tokens: 7,
    },
    {
      name: 'tools count',
      request: { messages: [], tools: [{ name: 'look', description: 'x'.repeat(400), parameters: {} }] },
      tokens: 112,
    },
  ])('tokens are counted approximately: $name', ({ request, tokens }) =>
    expect(approximateTokens(request as never)).toBe(tokens),
  )

  it('C7: counts what is sent: large tools and a long prompt make it so', async () => {
    const large = tool('large', { description: 'x'.repeat(2_000), input: z.object({}), run: () => '' })
    const trigger = fixedTokens(400)
    for (const parts of [{ tools: [large] }, { system: 'x'.repeat(2_000) }, {}]) {
      const small = summing()
      const own = [shortens(small, { trigger })]
      const g = agentGraph({ model: strict(['done']), middleware: own, ...parts })
      await createRuntime().run(g, { messages: talk(15) })
      expect(small.requests).toHaveLength(Object.keys(parts).length)
    }
  })

  it.each([
    { name: 'messages', policy: recentMessages(3), stays: 3 },
    { name: 'none', policy: recentMessages(0), stays: 0 },
    { name: '20 without a number', policy: recentMessages(), stays: 8 },
    { name: 'tokens', policy: recentTokens(14), stays: 2 },
    { name: 'as many tokens as it has', policy: recentTokens(56), stays: 8 },
  ])('what stays is said by a policy: $name', ({ policy, stays }) => {
    expect(8 - policy(talk(8), approximateTokens)).toBe(stays)
  })
})

describe('messages that another middleware puts into a request', () => {
  const hint = (id: string | undefined) =>
    ({ role: 'system', content: 'hint', ...(id === undefined ? {} : { id }) }) as const
  const inModel = (id?: string) =>
    middleware({
      name: 'hints',
      beforeModel: (ctx) =>
        ctx.replace({ messages: [...ctx.request.messages.slice(0, -1), hint(id), ...ctx.request.messages.slice(-1)] }),
    })
  const inNode = (id?: string) =>
    middleware({
      name: 'hints',
      beforeNode: (ctx) => ctx.replace({ ...ctx.state, messages: [hint(id), ...ctx.state.messages] }),
    })
  const orders = [
    { name: 'before it', place: (own: Middleware, other: Middleware) => [other, own] },
    { name: 'after it', place: (own: Middleware, other: Middleware) => [own, other] },
  ]
  const ways = [
    { way: 'beforeModel', other: inModel() },
    { way: 'beforeModel, with an id', other: inModel('h') },
    { way: 'beforeNode', other: inNode() },
    { way: 'beforeNode, with an id', other: inNode('h') },
  ]
  it.each(orders.flatMap((order) => ways.map((way) => ({ ...order, ...way }))))(
    'H20: are sent and never stored: put in by $way, $name',
    async ({ place, other }) => {
      const [model, small] = [strict(['done']), summing()]
      const { state } = await createRuntime().run(asking(model, place(shortens(small), other)), { messages: talk(15) })
      expect(small.requests).toHaveLength(1)
      expect(sent(model)).toContain('system: hint')
      expect(sent(model)).toHaveLength(5)
      expect(contents(state.messages)).toEqual([SUMMARY, ...contents(talk(15)).slice(-3), 'assistant: done'])
    },
  )

  it('are summarized along with what they stand between', async () => {
    const small = summing()
    const between = middleware({
      name: 'between',
      beforeModel: ({ request: { messages: all }, replace }) =>
        replace({ messages: [...all.slice(0, 5), hint(undefined), ...all.slice(5)] }),
    })
    await createRuntime().run(asking(strict(['done']), [between, shortens(small)]), { messages: talk(15) })
    expect(small.requests[0]?.messages[1]?.content).toContain('message 4\n\nsystem: hint\n\nassistant: message 5')
  })

  it('and what it changes there is what the summarizing model gets to see', async () => {
    const [model, small] = [strict(['done']), summing()]
    const redact = middleware({
      name: 'redact',
      beforeModel: (ctx) =>
        ctx.replace({
          messages: ctx.request.messages.map((each) => ({ ...each, content: each.content.replace(/\d+/, '#') })),
        }),
    })
    const { state } = await createRuntime().run(asking(model, [redact, shortens(small)]), { messages: talk(15) })
    expect(small.requests[0]?.messages[1]?.content).not.toMatch(/\d/)
    expect(sent(model)).toEqual([SUMMARY, 'user: message #', 'assistant: message #', 'user: message #'])
    expect(contents(state.messages).slice(1, 4)).toEqual(contents(talk(15)).slice(-3))
  })

  it('and what it leaves out there is not lost: it stays in the state', async () => {
    const small = summing()
    const trim = middleware({
      name: 'trim',
      beforeModel: (ctx) => ctx.replace({ messages: ctx.request.messages.slice(-12) }),
    })
    const { state } = await createRuntime().run(asking(strict(['done']), [trim, shortens(small)]), {
      messages: talk(15),
    })
    expect(small.requests).toEqual([])
    expect(state.messages).toHaveLength(16)
  })
})

describe('over the rounds of an agent', () => {
  const rounds = (n: number) => Array.from({ length: n }, (_, i) => calls(['look', i]))

  it('a summary is paid for once, sent in each round that follows, and stands in the state at the end', async () => {
    const { tools } = numbered('look')
    const [model, small] = [strict([...rounds(3), 'done']), summing()]
    const g = agentGraph({
      model,
      tools,
      middleware: [shortens(small, { recent: recentMessages(4) })],
      system: 'Be kind.',
    })
    const { state } = await createRuntime().run(g, { messages: talk(9) })
    expect(small.requests).toHaveLength(1)
    // A prompt and nine, then: a prompt, a summary and four, and two more in each round.
    expect(model.requests.map(({ messages: all }) => all.length)).toEqual([10, 6, 8, 10])
    expect(contents(state.messages)[0]).toBe(SUMMARY)
    expect(faultsOf(state.messages)).toEqual([])
    expect(state.messages.at(-1)?.content).toBe('done')
  })

  it('what was said in it is summarized too', async () => {
    const { tools } = numbered('look')
    const [model, small] = [strict([...rounds(8), 'done']), summing()]
    const g = agentGraph({ model, tools, middleware: [shortens(small)] })
    const { state } = await createRuntime().run(g, user('go'))
    expect(small.requests.length).toBeGreaterThan(0)
    for (const { messages: all } of model.requests) {
      expect(all.length).toBeLessThanOrEqual(10)
      expect(faultsOf(all)).toEqual([])
    }
    expect(contents(state.messages)[0]).toBe(SUMMARY)
    expect(state.messages.length).toBeLessThan(12)
  })

  it('a pause, and another process, go on with it', async () => {
    const { tools } = numbered('look', 'pay')
    const { another } = processes()
    const [model, small] = [strict([calls(['look', 1]), calls(['pay', 2]), 'done']), summing(['all of it'])]
    const make = () => {
      const gate = new ToolInterruptMiddleware({ rules: [{ tool: 'pay' }] })
      return agentGraph({ model, tools, middleware: [shortens(small), gate] })
    }
    await another().run(make(), { messages: talk(9) }, T)
    expect(small.requests).toHaveLength(1)
    const { state } = await another().resume(make(), 't', true)
    expect(small.requests).toHaveLength(1)
    expect(sent(model, 2)[0]).toBe(SUMMARY)
    expect(contents(state.messages)[0]).toBe(SUMMARY)
    expect(faultsOf(state.messages)).toEqual([])
  })

  it('a failure after it does not pay again: not a retry, and not who continues', async () => {
    const small = summing(['all of it'])
    const model = strict([new Error('503'), new Error('503'), 'done'])
    const g = asking(model, [shortens(small)])
    const { another } = processes({
      policies: [
        says('Retry', { 'nodeError.after': (_s, { attempt }) => ({ action: attempt === 1 ? 'retry' : 'pass' }) }),
      ],
    })
    await expect(another().run(g, { messages: talk(15) }, T)).rejects.toThrow('503')
    const { state } = await another().continue(g, 't')
    expect(small.requests).toHaveLength(1)
    expect(state.messages).toHaveLength(5)
  })

  it('a sub-agent has summaries of its own', async () => {
    const [model, small] = [strict(['one', 'two']), summing()]
    const inner = asking(model, [shortens(small)])
    const both = node('both', Talk, async (_s, ctx) => {
      const ended = await Promise.all(
        [15, 12].map((length) =>
          ctx.run(inner, { messages: talk(length).map((each, i) => ({ ...each, content: `${length}-${i}` })) }),
        ),
      )
      return { messages: ended.flatMap((each) => each.messages) }
    })
    const g = graph('outer', Talk).edge(START, both).edge(both, END).check()
    const { state } = await createRuntime().run(g, {}, T)
    expect(small.requests).toHaveLength(2)
    expect(contents(state.messages).filter((each) => each === SUMMARY)).toHaveLength(2)
    expect(state.messages).toHaveLength(10)
  })

  it('H21: two nodes that write the state at once are sent a summary, and the state has one when a node is alone', async () => {
    const { another } = processes()
    const small = summing(['all of it', 'all of it'])
    const [one, two, later] = [strict(['one']), strict(['two']), strict(['later'])]
    const a = modelNode('a', Talk, { model: one })
    const b = modelNode('b', Talk, { model: two })
    const c = modelNode('c', Talk, { model: later })
    const split = node('split', Talk, () => command({ goto: [a, b] }), { goto: [a, b] })
    const g = graph('g', Talk, { middleware: [shortens(small)] })
      .edge(START, split)
      .edge(a, c)
      .edge(b, c)
      .edge(c, END)
      .check()
    const { state } = await another().run(g, { messages: talk(15) }, T)
    expect([sent(one)[0], sent(two)[0]]).toEqual([SUMMARY, SUMMARY])
    expect(sent(later)).toEqual([SUMMARY, ...contents(talk(15)).slice(-3), 'assistant: one', 'assistant: two'])
    expect(contents(state.messages)).toEqual([...sent(later), 'assistant: later'])
    expect(small.requests).toHaveLength(2)
  })

  it('H22: a state without messages is none of its business', async () => {
    const S = state({ text: messages(), note: z.string().default('') })
    const model = strict(['done'])
    const small = summing()
    const ask = node('ask', S, async (_s, ctx) => {
      const { content } = await ctx.callModel(model, { messages: talk(15) })
      return { note: content }
    })
    const g = graph('g', S, { middleware: [shortens(small)] })
      .edge(START, ask)
      .edge(ask, END)
      .check()
    const { state: ended } = await createRuntime().run(g, {})
    expect(ended).toEqual({ text: [], note: 'done' })
    expect(sent(model)).toEqual([SUMMARY, ...contents(talk(15)).slice(-3)])
  })
})

describe('the tool summarize_context', () => {
  const own = (small: ChatModel) => shortens(small, { provideTool: true, trigger: messageCount(99) })
  const results = (said: readonly ChatMessage[]) =>
    said.flatMap(({ role, content }) => (role === 'tool' ? [JSON.parse(content)] : []))

  it('sums up what is older, and changes nothing', async () => {
    const small = summing()
    const sums = own(small)
    const model = strict([calls(['summarize_context', {}]), 'done'])
    const g = agentGraph({ model, tools: [...sums.tools()], middleware: [sums] })
    const { state } = await createRuntime().run(g, { messages: talk(9) }, T)
    expect(results(state.messages)).toEqual([
      {
        summary: 'all of it',
        originalMessageCount: 9,
        summarizedMessageCount: 6,
        keptMessageCount: 3,
        tokenCount: 63,
        reason: 'requested',
      },
    ])
    expect(state.messages).toHaveLength(12)
  })

  it('has nothing to sum up where nothing is older', async () => {
    const small = summing()
    const sums = own(small)
    const model = strict([calls(['summarize_context', {}]), 'done'])
    const g = agentGraph({ model, tools: [...sums.tools()], middleware: [sums] })
    const { state } = await createRuntime().run(g, user('hello'))
    expect(results(state.messages)).toMatchObject([{ summary: '', reason: 'no_older_messages' }])
    expect(small.requests).toEqual([])
  })

  it('may be refused by a policy, and then nobody is paid', async () => {
    const small = summing()
    const sums = own(small)
    const model = strict([calls(['summarize_context', {}]), 'done'])
    const g = agentGraph({ model, tools: [...sums.tools()], middleware: [sums] })
    const no = says('No', { 'toolCall.before': { action: 'reject', reason: 'no' } })
    const { state } = await createRuntime({ policies: [no] }).run(g, { messages: talk(9) })
    expect(contents(state.messages).at(-2)).toBe('tool: Refused: no')
    expect(small.requests).toEqual([])
  })

  it('is there only where it was asked for', () => {
    expect([...shortens(summing()).tools()]).toEqual([])
  })
})

describe('any conversation', () => {
  type Turn = { readonly calls: number; readonly text: string }
  const turn = fc.record({ calls: fc.nat(3), text: fc.string({ maxLength: 30 }) })
  const said = (turns: readonly Turn[], prefix: string): readonly ChatMessage[] =>
    turns.flatMap(({ calls: n, text }, i): readonly ChatMessage[] => {
      if (n === 0) return [{ role: i % 2 === 0 ? 'user' : 'assistant', content: text }]
      // Some providers use their ids again in every response.
      const ids = Array.from({ length: n }, (_, k) => (i % 2 === 0 ? `${prefix}${i}-${k}` : `call_${k}`))
      return [
        { role: 'assistant', content: text, tool_calls: ids.map((id) => ({ id, name: 'look', arguments: '{}' })) },
        ...ids.toReversed().map((id) => ({ role: 'tool', tool_call_id: id, content: text }) as const),
      ]
    })
  const recents = fc.oneof(
    fc.nat(12).map((n) => recentMessages(n)),
    fc.integer({ min: 1, max: 80 }).map((n) => recentTokens(n)),
  )
  const triggers = fc.oneof(
    fc.integer({ min: 1, max: 15 }).map((n) => messageCount(n)),
    fc.integer({ min: 1, max: 150 }).map((n) => fixedTokens(n)),
  )

  it('C6: is valid in the request and in the state, wherever it is cut, over rounds and turns', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(turn, { maxLength: 8 }), { minLength: 1, maxLength: 3 }),
        fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: 4 }),
        recents,
        triggers,
        async (turns, rounds, recent, trigger) => {
          const { tools } = numbered('look')
          const small = scripted(
            Array.from({ length: 99 }, (_, i) => `summary ${i}`),
            { model: 'small' },
          )
          const oneTurn = [
            ...rounds.map((n, i) => calls(...Array.from({ length: n }, (_, k) => ['look', 10 * i + k] as const))),
            'done',
          ]
          const model = strict(turns.flatMap(() => oneTurn))
          const { another } = processes()
          const g = agentGraph({ model, tools, middleware: [shortens(small, { recent, trigger })], system: 'Be kind.' })
          for (const [i, made] of turns.entries()) {
            const { state } = await another().run(g, { messages: said(made, `t${i}-`) }, T)
            expect(faultsOf(state.messages)).toEqual([])
            expect(state.messages.at(-1)?.content).toBe('done')
          }
          for (const request of model.requests) expect(request.messages[0]?.content).toBe('Be kind.')
        },
      ),
      { numRuns: 60 },
    )
  })
})

describe('the options of a summary', () => {
  const right = { model: 'small', trigger: messageCount(1), recent: recentMessages(1) }
  it.each([
    { name: 'no model', options: { ...right, model: undefined }, says: 'model must be' },
    { name: 'no trigger', options: { ...right, trigger: [] }, says: 'trigger must be' },
    { name: 'a number as a trigger', options: { ...right, trigger: 10 }, says: 'trigger must be' },
    { name: 'no policy', options: { ...right, recent: undefined }, says: 'recent must be' },
    { name: 'a misspelt option', options: { ...right, keep: 3 }, says: 'has no "keep"' },
  ])('are refused where they are none: $name', ({ options, says: why }) => {
    expect(() => new SummarizationMiddleware(options as never)).toThrow(TypeError)
    expect(() => new SummarizationMiddleware(options as never)).toThrow(why)
  })

  it.each([
    { name: 'no tokens', make: () => tokenLimit(0) },
    { name: 'a part above 1', make: () => tokenLimit(10, { thresholdRatio: 1.1 }) },
    { name: 'no part', make: () => tokenLimit(10, { thresholdRatio: 0 }) },
    { name: 'fewer than no tokens', make: () => fixedTokens(-1) },
    { name: 'no messages', make: () => messageCount(0) },
    { name: 'NaN', make: () => messageCount(Number.NaN) },
    { name: 'half a message', make: () => recentMessages(0.5) },
    { name: 'no tokens to keep', make: () => recentTokens(0) },
  ])('are refused where they are out of range: $name', ({ make }) => expect(make).toThrow(RangeError))

  it('may name a model of the runtime', async () => {
    const small = summing()
    const g = chatty(strict(['done']), [])
    const long = talk(15).map((each) => ({ ...each, content: 'x'.repeat(40_000) }))
    const runtime = createRuntime({ models: (name) => (name === 'small' ? small : undefined) })
    const more = [...long, ...talk(20)]
    const { state: ended } = await runtime.run(g, { messages: more })
    expect(small.requests).toHaveLength(1)
    expect(ended.messages).toHaveLength(22)
  })
})
