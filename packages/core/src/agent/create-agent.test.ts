import { describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { numbered } from '../../testing/agent.ts'
import { eventsOf, noting, ofType, settle } from '../../testing/play.ts'
import { errorOf, setUp } from '../../testing/threads.ts'
import { faultsOf } from '../../testing/transcript.ts'
import {
  type AgentState,
  agentFields,
  append,
  CallTimeoutMiddleware,
  type ChatMessage,
  type ChatModel,
  type ChatResponse,
  ContextEditingMiddleware,
  createAgent,
  createRuntime,
  END,
  field,
  type Graph,
  graph,
  graphNode,
  Middleware,
  messages,
  middleware,
  modelNode,
  node,
  RateLimitMiddleware,
  RunInterruptedError,
  runAgent,
  type ScriptedReply,
  START,
  type StateOf,
  scripted,
  state,
  TodoListMiddleware,
  type Tool,
  ToolEmulationMiddleware,
  ToolErrorMiddleware,
  ToolInterruptMiddleware,
  ToolLimitMiddleware,
  ToolRetryMiddleware,
  ToolSelectionMiddleware,
  tool,
  toolNode,
} from '../index.ts'

const T = { thread: 't' }
const text = z.object({ text: z.string() })
const echo = tool('echo', { description: 'Says it again.', input: text, run: ({ text }) => text })
const calls = (...texts: string[]): ScriptedReply => ({
  tool_calls: texts.map((text) => ({ name: 'echo', arguments: { text } })),
})
const contents = (messages: readonly ChatMessage[]) => messages.map(({ role, content }) => `${role}: ${content}`)
const named = (name: string): Tool => ({ ...echo, name })
/** Answers the calls of this tool by asking a person. */
const asksAbout = (name: string) =>
  middleware({
    name: `asks about ${name}`,
    beforeTool: (ctx) => {
      if (ctx.toolName !== name || ctx.answered === true) return undefined
      return ctx.answered === undefined ? ctx.suspend({}) : ctx.reject('a person said no')
    },
  })

describe('an agent', () => {
  it('is told a text, and answers: what was said is in messages, the answer in finalText', async () => {
    const agent = createAgent({ model: scripted([calls('a'), 'done']), tools: [echo] })
    const { status, state } = await agent.run('hello')
    expect(status).toBe('completed')
    expect(contents(state.messages)).toEqual(['user: hello', 'assistant: ', 'tool: a', 'assistant: done'])
    expect([state.finalText, state.finalOutput]).toEqual(['done', null])
  })
  it.each([
    { name: 'a text', input: 'hello' },
    { name: 'messages', input: [{ role: 'user', content: 'hello' }] as const },
    { name: 'an update of its state', input: { messages: [{ role: 'user', content: 'hello' }] } as const },
  ])('may be told $name, by itself, on a runtime, and inside a node', async ({ input }) => {
    const agent = () => createAgent({ model: scripted(['done']) })
    const outcomes = [await agent().run(input), await createRuntime().run(agent(), input)]
    const Talk = state({ messages: messages() })
    const inside = node('inside', Talk, async (_s, ctx) => ({ messages: (await ctx.run(agent(), input)).messages }))
    const around = await createRuntime().run(graph('around', Talk).edge(START, inside).edge(inside, END).check())
    for (const { state } of [...outcomes, around]) {
      expect(contents(state.messages)).toEqual(['user: hello', 'assistant: done'])
    }
  })
  it('refuses what is none of these', async () => {
    const agent = createAgent({ model: scripted([]) })
    await expect(agent.run(7 as never)).rejects.toMatchObject({ code: 'STATE_UPDATE' })
  })
  it('is one node, whatever it does: its rounds are no supersteps', async () => {
    const agent = createAgent({ name: 'helper', model: scripted([calls('a'), calls('b'), 'done']), tools: [echo] })
    const { counts } = await agent.run('hello')
    expect(counts.supersteps).toBe(1)
    expect([...agent.plan.nodes.values()].map(({ name, type }) => [name, type])).toEqual([['helper', 'AgentNode']])
  })
  it('goes on with the conversation of its thread, turn by turn', async () => {
    const { runtime } = setUp()
    const agent = createAgent({ model: scripted(['one', 'two']) })
    await runtime.run(agent, 'a', T)
    const { state } = await runtime.run(agent, 'b', T)
    expect(contents(state.messages)).toEqual(['user: a', 'assistant: one', 'user: b', 'assistant: two'])
    expect((await runtime.stateAt(agent, 't')).state).toMatchObject({ finalText: 'two' })
  })
  it('I17: puts the answer before it aside when it is told something new', async () => {
    const { runtime } = setUp()
    const model = scripted(['{"n":1}', { tool_calls: [{ name: 'echo', arguments: { text: 'x' } }] }])
    const options = { tools: [echo], middleware: [asksAbout('echo')], output: z.object({ n: z.number() }) }
    const agent = createAgent({ model, ...options })
    expect((await runtime.run(agent, 'a', T)).state).toMatchObject({ finalText: '{"n":1}', finalOutput: { n: 1 } })
    const { status, state } = await runtime.run(agent, 'b', T)
    expect([status, state.finalText, state.finalOutput]).toEqual(['paused', null, null])
  })
  it('I16: has no final text where the model would not answer; what it said stays in the conversation', async () => {
    for (const finish_reason of ['refusal', 'content-filter', 'content_filter']) {
      const model = scripted([{ content: 'I will not.', finish_reason }])
      const { state } = await createAgent({ model, output: z.object({ n: z.number() }) }).run('hello')
      expect([state.finalText, state.finalOutput, state.messages.at(-1)?.content]).toEqual([null, null, 'I will not.'])
    }
  })
  it('may have more in its state, which its prompt, its middleware and its caller read', async () => {
    const Support = state({ ...agentFields, customer: z.string().default('nobody'), notes: append(z.string()) })
    const model = scripted(['done'])
    const agent = createAgent({ model, state: Support, system: (s) => `You serve ${s.customer}.` })
    const { state: end } = await agent.run({ messages: [{ role: 'user', content: 'hello' }], customer: 'Ada' })
    expect([end.customer, end.finalText]).toEqual(['Ada', 'done'])
    expect(model.requests[0]?.messages[0]).toEqual({ role: 'system', content: 'You serve Ada.' })
  })
  it('may be a node of another graph', async () => {
    const Desk = state({ question: z.string().default('why?'), answer: z.string().default('') })
    const ask = graphNode('ask', Desk, createAgent({ model: scripted(['because']) }), {
      in: ({ question }) => question,
      out: ({ finalText }) => ({ answer: finalText ?? '' }),
    })
    const { state: end } = await settle({ graph: graph('desk', Desk).edge(START, ask).edge(ask, END).check() })
    expect(end.answer).toBe('because')
  })
  it('may share its conversation with the graph around it', async () => {
    const Desk = state({ messages: messages() })
    const ask = graphNode('ask', Desk, createAgent({ model: scripted(['because']) }), { share: ['messages'] })
    const desk = graph('desk', Desk).edge(START, ask).edge(ask, END).check()
    const { state: end } = await settle({ graph: desk, input: { messages: [{ role: 'user', content: 'why?' }] } })
    expect(contents(end.messages)).toEqual(['user: why?', 'assistant: because'])
  })
  it('may have its state changed by hand, but not by a text', async () => {
    const { runtime } = setUp()
    const agent = createAgent({ model: scripted(['one', 'two']) })
    await runtime.run(agent, 'a', T)
    await runtime.updateState(agent, 't', { messages: [{ role: 'user', content: 'by hand' }] })
    expect((await runtime.run(agent, 'b', T)).state.messages.map(({ content }) => content)).toEqual([
      'a',
      'one',
      'by hand',
      'b',
      'two',
    ])
    await expect(runtime.updateState(agent, 't', 'text')).rejects.toMatchObject({ code: 'STATE_UPDATE' })
  })
})

describe('the system prompt of an agent', () => {
  it('goes first in every request and is never stored', async () => {
    const model = scripted([calls('a'), 'done'])
    const { state } = await createAgent({ model, tools: [echo], system: 'Be brief.' }).run('hello')
    expect(model.requests.map(({ messages }) => messages[0]?.content)).toEqual(['Be brief.', 'Be brief.'])
    expect(state.messages.some(({ role }) => role === 'system')).toBe(false)
  })
  it('may be made of state and context, with time', async () => {
    const model = scripted(['done'])
    const system = async (s: AgentState, { user }: { readonly user: string }) =>
      `${user} said ${s.messages[0]?.content}`
    await createAgent({ model, system }).run('hello', { context: { user: 'Ada' } })
    expect(model.requests[0]?.messages[0]).toEqual({ role: 'system', content: 'Ada said hello' })
  })
  it('is made once for a turn: whoever goes on in another process says the same', async () => {
    const { store } = setUp()
    let made = 0
    const process = (replies: readonly ScriptedReply[]) => {
      const model = scripted(replies)
      const options = { tools: [echo], middleware: [asksAbout('echo')], system: () => `Prompt ${++made}.` }
      return { model, agent: createAgent({ model, ...options }), runtime: createRuntime({ store }) }
    }
    const first = process([calls('a')])
    const { asks } = await first.runtime.run(first.agent, 'hello', T)
    const second = process(['done'])
    const { state } = await second.runtime.resume(second.agent, 't', { [asks[0]?.key ?? '']: true })
    expect(state.finalText).toBe('done')
    expect(second.model.requests[0]?.messages[0]?.content).toBe('Prompt 1.')
    expect(made).toBe(1)
  })
  it('must be a text', async () => {
    const agent = createAgent({ model: scripted([]), system: (() => 7) as never })
    await expect(agent.run('hello')).rejects.toThrow(
      new TypeError('the system prompt of node "agent" is a number; its function must make a text.'),
    )
  })
})

describe('the tools of an agent', () => {
  class Brings extends Middleware {
    readonly #tools: readonly Tool[]
    override readonly name: string
    constructor(name: string, ...tools: string[]) {
      super()
      this.name = name
      this.#tools = tools.map(named)
    }
    override tools() {
      return this.#tools
    }
  }
  it('are its own, then those of each middleware, in list order', async () => {
    const model = scripted(['done'])
    const middleware = [new Brings('x', 'c', 'b'), new Brings('y', 'a')]
    await createAgent({ model, tools: [named('z')], middleware }).run('hello')
    expect(model.requests[0]?.tools?.map(({ name }) => name)).toEqual(['z', 'c', 'b', 'a'])
  })
  it.each([
    {
      name: 'given twice',
      tools: [echo, echo],
      own: [],
      says: 'agent "agent" gets a tool "echo" twice from its tools; take one away, or rename it.',
    },
    {
      name: 'given, and brought by middleware',
      tools: [echo],
      own: [new Brings('x', 'echo')],
      says: 'agent "agent" gets a tool "echo" from its tools and from middleware "x"; take one away, or rename it.',
    },
    {
      name: 'brought by two middleware',
      tools: [],
      own: [new Brings('x', 'a', 'b'), new Brings('y', 'b')],
      says: 'agent "agent" gets a tool "b" from middleware "x" and from middleware "y"; take one away, or rename it.',
    },
  ])('I8: of one name are refused where they are $name', ({ tools, own, says }) => {
    expect(() => createAgent({ model: scripted([]), tools, middleware: own })).toThrow(
      expect.objectContaining({ code: 'TOOL_DUPLICATE', message: says }),
    )
  })
})

describe('an agent is refused where it is made', () => {
  it('for an option that there is not, with what it is called here', () => {
    expect(() => createAgent({ model: scripted([]), ...{ systemPrompt: 'Be brief.' } })).toThrow(
      /^agent "agent" has no option "systemPrompt"; did you mean "system"\? options are: model, tools, /,
    )
    expect(() => createAgent({ model: scripted([]), ...{ colour: 1 } })).toThrow(
      expect.objectContaining({ code: 'AGENT_CONFIG' }),
    )
  })
  const model = scripted([])
  it('G36: with middleware that is none', () => {
    expect(() => createAgent({ model, middleware: [{ name: 'x', beforeTool: () => undefined } as never] })).toThrow(
      TypeError,
    )
  })
  it.each([
    {
      name: 'I15: with a state whose messages do not grow',
      options: { state: state({ ...agentFields, messages: field([]) }) },
      code: 'GRAPH_INVALID',
      says: 'createAgent "agent" needs a state with the field messages: messages()',
    },
    {
      name: 'I15: with a state that lacks a field it writes',
      options: { state: state({ messages: messages() }) },
      code: 'GRAPH_INVALID',
      says: 'createAgent "agent" needs a state with the field finalText; make it with state({ ...agentFields, … }).',
    },
    {
      name: 'without a model',
      options: { model: undefined },
      code: 'AGENT_CONFIG',
      says: 'agent "agent" needs a model',
    },
    {
      name: 'with no rounds',
      options: { maxRounds: 0 },
      code: 'LIMIT_INVALID',
      says: 'maxRounds must be a whole number',
    },
    {
      name: 'with an output whose JSON Schema cannot be told',
      options: { output: { '~standard': { version: 1, vendor: 'mine', validate: (value: unknown) => ({ value }) } } },
      code: 'AGENT_CONFIG',
      says: 'the output schema of agent "agent" cannot be told as JSON Schema; give parameters.responseFormat too.',
    },
    {
      name: 'with a word on invalid outputs, and none asked for',
      options: { invalidOutput: 'repair' },
      code: 'AGENT_CONFIG',
      says: 'agent "agent" says what becomes of an invalid output and asks for none; give it an output schema.',
    },
  ])('$name', ({ options, code, says }) => {
    expect(() => createAgent({ model, ...options } as never)).toThrow(
      expect.objectContaining({ code, message: expect.stringContaining(says) }),
    )
  })
  it.each([
    {
      name: 'toolErrors',
      options: { toolErrors: 'ignore' },
      says: `has toolErrors "ignore"; give 'return', 'raise' or`,
    },
    {
      name: 'invalidOutput',
      options: { output: z.object({}), invalidOutput: 'ignore' },
      says: `has invalidOutput "ignore"; give 'fail', 'repair' or 'emit'.`,
    },
  ])('with a word that $name does not know', ({ options, says }) => {
    expect(() => createAgent({ model, ...options } as never)).toThrow(new RegExp(`^agent "agent" ${says}`))
  })
})

describe('the rounds of an agent', () => {
  const loops = () => scripted(Array.from({ length: 20 }, (_, i) => calls(`${i}`)))
  it('I20: are bounded by what it asks for', async () => {
    const model = loops()
    const agent = createAgent({ model, tools: [echo], maxRounds: 3 })
    expect(await errorOf(agent.run('hello'))).toMatchObject({ code: 'ROUNDS_SPENT', at: { node: 'agent' } })
    expect(model.requests).toHaveLength(3)
  })
  it('and by what the runtime allows, whatever it asks for', async () => {
    const model = loops()
    const runtime = createRuntime({ limits: { maxToolRounds: 2 } })
    const { error } = await runtime.settle(createAgent({ model, tools: [echo], maxRounds: 9 }), 'hello')
    expect([error, model.requests.length]).toMatchObject([{ code: 'ROUNDS_SPENT' }, 2])
  })
  it('C4: also where a model makes tools up: what it is told is bounded by them', async () => {
    const wrong = { tool_calls: [{ name: 'ehco', arguments: {} }] }
    const model = scripted([wrong, { tool_calls: [{ name: 'echo', arguments: '{' }] }, calls('a'), 'done'])
    const { state } = await createAgent({ model, tools: [echo], maxRounds: 4 }).run('hello')
    expect(state.finalText).toBe('done')
    const stubborn = createAgent({ model: scripted([wrong, wrong, wrong]), tools: [echo], maxRounds: 3 })
    expect(await errorOf(stubborn.run('hello'))).toMatchObject({ code: 'ROUNDS_SPENT' })
  })
  it.each([0, 10])('C9: are as many with %i middleware: hooks are no steps', async (count) => {
    const silent = (i: number) =>
      middleware({
        name: `silent ${i}`,
        beforeNode: () => undefined,
        beforeRound: () => undefined,
        beforeModel: () => undefined,
        afterModel: () => undefined,
        wrapTool: (_args, next) => next(),
      })
    const model = scripted([...Array.from({ length: 9 }, (_, i) => calls(`${i}`)), 'done'])
    const own = Array.from({ length: count }, (_, i) => silent(i))
    const outcome = await createRuntime({ limits: { maxIterations: 1 } }).run(
      createAgent({ model, tools: [echo], middleware: own, maxRounds: 10 }),
      'hello',
    )
    expect([outcome.state.finalText, outcome.counts.supersteps]).toEqual(['done', 1])
  })
})

describe('middleware around an agent', () => {
  const noop = (i: number) =>
    middleware({
      name: `noop ${i}`,
      beforeModel: () => undefined,
      afterModel: () => undefined,
      wrapModel: (_request, next) => next(),
      beforeTool: () => undefined,
      afterTool: () => undefined,
      onToolError: () => undefined,
      wrapTool: (_args, next) => next(),
    })
  const noops = (count: number) => Array.from({ length: count }, (_, i) => noop(i))

  it('C1: that does nothing changes nothing, also where a model sends arguments that do not fit', async () => {
    const cause = new Error('on fire')
    const burns = tool('burns', {
      description: 'd',
      input: text,
      run: () => {
        throw cause
      },
    })
    const bad: ScriptedReply = {
      tool_calls: [
        { name: 'echo', arguments: { text: 7 } },
        { name: 'burns', arguments: { text: 'x' } },
      ],
    }
    const play = async (count: number, toolErrors: 'return' | 'raise') => {
      const model = scripted([bad, 'done'])
      const tools = [echo, burns]
      const agent = createAgent({ model, tools, toolErrors, middleware: noops(count) })
      const { status, state, error } = await settle({ graph: agent, input: 'hello' })
      return { status, messages: state?.messages, errors: (error as { errors?: unknown } | undefined)?.errors }
    }
    for (const count of [1, 5]) {
      expect(await play(count, 'return')).toEqual(await play(0, 'return'))
      const { errors } = await play(count, 'raise')
      expect(errors).toMatchObject([{ code: 'TOOL_ARGUMENTS' }, cause])
      expect((errors as unknown[])[1]).toBe(cause)
    }
  })
  it('C2: takes the plain object of a model for what it is, and says which field is wrong where one is', async () => {
    class Reply {
      readonly content = 'done'
      readonly finish_reason = 'stop'
    }
    const replies: unknown[] = [{ content: 'plain' }, new Reply(), { content: ['no', 'text'] }]
    const model: ChatModel = { model: 'bare', chat: async () => replies.shift() as ChatResponse }
    const agent = createAgent({ model, middleware: noops(3) })
    expect((await agent.run('hello')).state.finalText).toBe('plain')
    expect((await agent.run('hello')).state.finalText).toBe('done')
    expect(await errorOf(agent.run('hello'))).toMatchObject({
      code: 'CHAT_SHAPE',
      message: 'the response of model "bare" needs a string "content".',
    })
  })
  it('A3: that refuses one call of a batch leaves the others: each call gets one result, in order', async () => {
    const { runtime } = setUp()
    const tools = ['approved', 'free', 'rejected'].map((name) => noting(({ text }) => `${name} ${text}`, name))
    const batch = { tool_calls: tools.map(({ name }) => ({ name, arguments: { text: 'x' } })) }
    const own = [asksAbout('approved'), asksAbout('rejected')]
    const agent = createAgent({ model: scripted([batch, 'done']), tools, middleware: own })
    const { asks } = await runtime.run(agent, 'hello', T)
    // Two questions at once come as their digests are there.
    expect(asks.map(({ key }) => key).sort()).toEqual([
      expect.stringContaining('approved'),
      expect.stringContaining('rejected'),
    ])
    const answers = Object.fromEntries(asks.map(({ key }) => [key, key.includes('approved')]))
    const { state } = await runtime.resume(agent, 't', answers)
    expect(contents(state.messages).slice(2)).toEqual([
      'tool: approved x',
      'tool: free x',
      'tool: Refused: a person said no',
      'assistant: done',
    ])
    expect(tools.map(({ ran }) => ran.length)).toEqual([1, 1, 0])
    expect(faultsOf(state.messages)).toEqual([])
  })
  describe('A11: that asks about a tool asks whichever way it came in:', () => {
    const gated = noting(() => 'ran', 'gated')
    const model = () => scripted([{ tool_calls: [{ name: 'gated', arguments: { text: 'x' } }] }])
    const gate = asksAbout('gated')
    const inner = createAgent({ name: 'inner', model: model(), tools: [gated] })
    const delegates = scripted([{ tool_calls: [{ name: 'inner', arguments: { task: 'do it' } }] }])
    const Talk = state({ messages: messages() })
    const byHand = () => {
      const think = modelNode('think', Talk, { model: model(), tools: [gated] })
      const act = toolNode('act', Talk, { tools: [gated] })
      return graph('by hand', Talk, { middleware: [gate] })
        .edge(START, think)
        .edge(think, act)
        .edge(act, END)
        .check()
    }
    const byName = () => {
      const step = node('step', Talk, async (_s, ctx) => void (await ctx.callTool('gated', { text: 'x' })))
      return graph('by name', Talk, { middleware: [gate] })
        .edge(START, step)
        .edge(step, END)
        .check()
    }
    const Empty = { messages: [] }
    it.each([
      { name: 'given', graph: createAgent({ model: model(), tools: [gated], middleware: [gate] }) },
      {
        name: 'brought by middleware',
        graph: createAgent({
          model: model(),
          middleware: [gate, middleware({ name: 'brings', tools: () => [gated] })],
        }),
      },
      {
        name: 'of an agent that is a tool and inherits',
        graph: createAgent({
          model: delegates,
          tools: [inner.asTool({ description: 'd', middleware: 'inherit' })],
          middleware: [gate],
        }),
      },
      { name: 'of a toolNode', graph: byHand() },
      { name: 'of the runtime, by its name', graph: byName() },
    ])('$name', async ({ graph }) => {
      const { status } = await createRuntime({ tools: [gated] }).run(graph as Graph<unknown, object>, Empty, T)
      expect([status, gated.ran]).toEqual(['paused', []])
    })
  })
})

describe('tokens of an agent', () => {
  it('I19: leave as they come where somebody listens; `stream: false` asks for whole responses', async () => {
    const tokens = async (stream?: boolean) =>
      ofType(await eventsOf({ graph: createAgent({ model: scripted(['one two']), stream }), input: 'hello' }), 'token')
    expect((await tokens()).map(({ text, path }) => [text, path])).toEqual([
      ['one ', ['agent']],
      ['two', ['agent']],
    ])
    expect(await tokens(false)).toEqual([])
  })
  it('may be read from a stream of its own, which begins with a text', async () => {
    const said: string[] = []
    for await (const event of createAgent({ model: scripted(['one two']) }).stream('hello')) {
      if (event.type === 'token') said.push(event.text)
    }
    expect(said.join('')).toBe('one two')
  })
})

describe('C5: the conversation of an agent whose tool ended the run', () => {
  function failed() {
    const { runtime } = setUp()
    let burns = true
    const act = tool('act', {
      description: 'd',
      input: z.object({}),
      run: () => {
        if (burns) throw new Error('on fire')
        return 'acted'
      },
    })
    const model = scripted([{ tool_calls: [{ name: 'act' }] }, 'done'])
    const agent = createAgent({ model, tools: [act], toolErrors: 'raise' })
    const mend = () => {
      burns = false
    }
    return { runtime, agent, mend, failure: runtime.run(agent, 'hello', T) }
  }
  it('goes on where it was: no call is left without a result', async () => {
    const { runtime, agent, mend, failure } = failed()
    expect(await errorOf(failure)).toMatchObject({ message: 'on fire' })
    mend()
    const { state } = await runtime.continue(agent, 't')
    expect(contents(state.messages)).toEqual(['user: hello', 'assistant: ', 'tool: acted', 'assistant: done'])
  })
  it('takes new input on the same thread', async () => {
    const { runtime, agent, failure } = failed()
    await errorOf(failure)
    const { state } = await runtime.run(agent, 'never mind', T)
    expect(contents(state.messages)).toEqual(['user: hello', 'user: never mind', 'assistant: done'])
  })
})

describe('runAgent', () => {
  it('tells an agent one thing and hands back its answer', async () => {
    expect(await runAgent(createAgent({ model: scripted(['done']) }), 'hello')).toBe('done')
  })
  it('hands back nothing where the model would not answer', async () => {
    const model = scripted([{ content: 'no', finish_reason: 'refusal' }])
    expect(await runAgent(createAgent({ model }), 'hello')).toBe('')
  })
  it('I21: throws a RunInterruptedError with thread and asks when the agent waits for people', async () => {
    const { runtime } = setUp()
    const agent = createAgent({ model: scripted([calls('a'), 'done']), tools: [echo], middleware: [asksAbout('echo')] })
    const error = await errorOf(runAgent(agent, 'hello', { runtime, ...T }))
    expect(error).toBeInstanceOf(RunInterruptedError)
    expect(error).toMatchObject({
      code: 'RUN_INTERRUPTED',
      thread: 't',
      asks: [{ key: expect.stringContaining('echo') }],
    })
    expect((await runtime.resume(agent, 't', true)).state.finalText).toBe('done')
  })
  it('throws the very error of a run that failed', async () => {
    const cause = new Error('on fire')
    expect(await errorOf(runAgent(createAgent({ model: scripted([cause]) }), 'hello'))).toBe(cause)
  })
})

describe('an agent whose middleware is about a tool that it does not have', () => {
  const model = scripted([])
  const [pay, mail] = numbered('pay', 'send_mail').tools as [Tool, Tool]
  it.each<{ name: string; own: Middleware }>([
    { name: 'a rule of approvals', own: new ToolInterruptMiddleware({ rules: [{ tool: 'pya' }] }) },
    { name: 'a limit', own: new ToolLimitMiddleware({ perTool: { pya: 1 } }) },
    { name: 'a retry', own: new ToolRetryMiddleware({ tools: ['pay', 'pya'] }) },
    { name: 'an emulation', own: new ToolEmulationMiddleware({ model, tools: ['pya'] }) },
    { name: 'a selection', own: new ToolSelectionMiddleware({ model, always: ['pya'] }) },
    { name: 'a time', own: new CallTimeoutMiddleware({ perTool: { pya: 1 } }) },
    { name: 'a text for errors', own: new ToolErrorMiddleware({ perTool: { pya: {} } }) },
    { name: 'a result that is kept', own: new ContextEditingMiddleware({ excludeTools: ['pya'] }) },
    { name: 'a rate', own: new RateLimitMiddleware({ limiter: { take: () => undefined }, tools: ['pya'] }) },
    { name: 'one of your own', own: middleware({ name: 'mine', aboutTools: ['pya'] }) },
  ])('is refused, with the name that is meant: $name', ({ own }) => {
    expect(() => createAgent({ model, tools: [pay, mail], middleware: [own] })).toThrow(
      expect.objectContaining({
        code: 'AGENT_CONFIG',
        message: `agent "agent" has no tool "pya", which middleware "${own.name}" is about; did you mean "pay"? its tools are: pay, send_mail.`,
      }),
    )
  })
  it('is told its tools where none is near', () => {
    const approvals = new ToolInterruptMiddleware({ rules: [{ tool: 'refund' }] })
    expect(() => createAgent({ model, middleware: [approvals] })).toThrow('is about; its tools are: none.')
  })
  it('has those that its middleware brings, may be given a rule for every tool, and one for a tool that another agent has', () => {
    const rules = [{ tool: 'write_todos' }, { tool: '*' }, { tool: mail }]
    const own = [new ToolInterruptMiddleware({ rules }), new TodoListMiddleware()]
    expect(createAgent({ model, tools: [pay], middleware: own }).plan.middleware).toHaveLength(2)
  })
  it('has those of agents inside it that inherit its middleware, and of no others', () => {
    const agent = (inherit?: 'inherit') => {
      const inner = createAgent({ name: 'inner', model, tools: [pay] })
      const middle = createAgent({
        name: 'middle',
        model,
        tools: [inner.asTool({ description: 'd', middleware: 'inherit' })],
      })
      return createAgent({
        model,
        tools: [middle.asTool({ description: 'd', ...(inherit && { middleware: inherit }) })],
        middleware: [new ToolLimitMiddleware({ perTool: { pay: 1 } })],
      })
    }
    expect(agent('inherit').plan.name).toBe('agent')
    expect(() => agent()).toThrow('has no tool "pay"')
  })
  it('is refused for a list of them that is none', () => {
    const own = middleware({ name: 'mine', aboutTools: 'pay' as never })
    expect(() => createAgent({ model, tools: [pay], middleware: [own] })).toThrow('aboutTools must be a list of names')
  })
})

describe('types of an agent', () => {
  const model = scripted([])
  it('its output is what the schema makes of the answer', () => {
    const agent = createAgent({ model, output: z.object({ n: z.number() }) })
    type End = Awaited<ReturnType<typeof agent.run>>['state']
    expectTypeOf<End['finalOutput']>().toEqualTypeOf<{ n: number } | null>()
    expectTypeOf<End['finalText']>().toEqualTypeOf<string | null>()
    const plain = createAgent({ model })
    expectTypeOf<Awaited<ReturnType<typeof plain.run>>['state']['finalOutput']>().toEqualTypeOf<null>()
  })
  it('it takes a text, messages, or an update of its state', () => {
    const Support = state({ ...agentFields, customer: z.string().default('') })
    const agent = createAgent({
      model,
      state: Support,
      system: (s) => {
        expectTypeOf(s).toEqualTypeOf<StateOf<typeof Support>>()
        return s.customer
      },
    })
    expectTypeOf<{ customer: string }>().toExtend<Parameters<typeof agent.run>[0]>()
    // @ts-expect-error customer is a text
    const wrong: Parameters<typeof agent.run>[0] = { customer: 7 }
    // @ts-expect-error a text is no update of a state
    const update: Parameters<typeof agent.updateState>[1] = 'text'
    expect([wrong, update]).toHaveLength(2)
  })
})
