import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Clock, open, quiet } from '../../testing/clock.ts'
import { eventsOf, ofType, oneNode, settle } from '../../testing/play.ts'
import { faultsOf } from '../../testing/transcript.ts'
import {
  type AgentLoopOptions,
  agentLoop,
  agentNode,
  type ChatChunk,
  type ChatMessage,
  type ChatModel,
  createRuntime,
  END,
  graph,
  messages,
  type RunOptions,
  type RuntimeOptions,
  type ScriptedReply,
  START,
  scripted,
  state,
  type Tool,
  tool,
} from '../index.ts'

const Conversation = state({ messages: messages() })
const text = z.object({ text: z.string() })
const echo = tool('echo', { description: 'Says it again.', input: text, run: ({ text }) => text })
const calls = (...texts: string[]): ScriptedReply => ({
  tool_calls: texts.map((text) => ({ name: 'echo', arguments: { text } })),
})

type Options = Omit<AgentLoopOptions, 'messages'> & { readonly timeoutMs?: number }
const agentGraph = (options: Options) => {
  const agent = agentNode('agent', Conversation, options)
  return graph('g', Conversation).edge(START, agent).edge(agent, END).check()
}
const hello = { messages: [{ role: 'user', content: 'hello' }] } as const

/** What an agent said and was told after "hello". */
async function said(
  replies: readonly ScriptedReply[],
  tools: readonly Tool[] = [echo],
  rest: RunOptions & RuntimeOptions = {},
) {
  const outcome = await settle({ graph: agentGraph({ model: scripted(replies), tools }), input: hello, ...rest })
  if (outcome.status === 'failed') throw outcome.error
  return outcome.state.messages.slice(1)
}
const contents = (messages: readonly ChatMessage[]) => messages.map(({ role, content }) => `${role}: ${content}`)

describe('an agent', () => {
  it('asks its model, runs the tools it asks for, and asks again until an answer asks for none', async () => {
    const model = scripted([calls('a'), calls('b'), 'done'])
    const { state } = await settle({ graph: agentGraph({ model, tools: [echo] }), input: hello })
    expect(contents(state.messages)).toEqual([
      'user: hello',
      'assistant: ',
      'tool: a',
      'assistant: ',
      'tool: b',
      'assistant: done',
    ])
    expect(model.requests.map(({ messages }) => messages.length)).toEqual([1, 3, 5])
  })
  it('runs all calls of a round at once, and answers each once, in the order of the calls', async () => {
    const gates = { a: open<string>(), b: open<string>(), c: open<string>() }
    const started: string[] = []
    const slow = tool('echo', {
      description: 'd',
      input: z.object({ text: z.enum(['a', 'b', 'c']) }),
      run: ({ text }) => {
        started.push(text)
        return gates[text].promise
      },
    })
    const running = said([calls('a', 'b', 'c'), 'done'], [slow])
    await quiet()
    expect(started).toEqual(['a', 'b', 'c'])
    for (const name of ['c', 'a', 'b'] as const) {
      gates[name].resolve(`${name} done`)
      await quiet()
    }
    expect((await running).slice(1, 4).map(({ tool_call_id, content }) => [tool_call_id, content])).toEqual([
      ['call-1-1', 'a done'],
      ['call-1-2', 'b done'],
      ['call-1-3', 'c done'],
    ])
  })
  it('runs tools when calls are there, whatever the finish reason says, and ends when none are', async () => {
    const calling = { ...(calls('a') as object), finish_reason: 'stop' }
    expect(contents(await said([calling, { content: 'done', finish_reason: 'tool_calls' }]))).toEqual([
      'assistant: ',
      'tool: a',
      'assistant: done',
    ])
  })
  it('gives its model a result that is no text as JSON', async () => {
    const table = tool('echo', { description: 'd', input: text, run: () => ({ rows: [1, null] }) })
    expect((await said([calls('a'), 'done'], [table]))[1]?.content).toBe('{"rows":[1,null]}')
  })
  it('offers its tools with every request, and passes its parameters on', async () => {
    const model = scripted([calls('a'), 'done'])
    const parameters = { temperature: 0, maxTokens: 9, responseFormat: { type: 'json_object' } }
    await settle({ graph: agentGraph({ model, tools: [echo], parameters }), input: hello })
    expect(model.requests).toMatchObject([parameters, parameters])
    expect(model.requests[1]?.tools).toEqual([
      { name: 'echo', description: 'Says it again.', parameters: echo.parameters },
    ])
  })
  it('runs inside a node only, by the ctx that the node was given', async () => {
    const foreign = { nodeName: 'x' } as never
    await expect(agentLoop(foreign, { model: scripted([]), messages: [] })).rejects.toMatchObject({
      code: 'CONTEXT_FOREIGN',
    })
  })
  it('may be started by a node of your own, which is given the answer, the conversation and the rounds', async () => {
    let result: unknown
    await settle({
      graph: oneNode(async (_, ctx) => {
        result = await agentLoop(ctx, {
          model: scripted([calls('a'), 'done']),
          tools: [echo],
          messages: hello.messages,
        })
      }),
    })
    expect(result).toMatchObject({ content: 'done', rounds: 2, messages: { length: 4 } })
  })
})

describe('what becomes of a tool call that goes wrong is a result that the model can read', () => {
  const throws = tool('throws', {
    description: 'd',
    input: text,
    run: () => {
      throw new Error('no such order')
    },
  })
  const rejects = { ...throws, name: 'rejects', run: () => Promise.reject('just text') }
  const stuck = tool('stuck', { description: 'd', input: text, timeoutMs: 100, run: () => new Promise(() => {}) })
  const nonsense = tool('nonsense', { description: 'd', input: text, output: z.number(), run: () => 'x' as never })
  const dated = tool('dated', { description: 'd', input: text, run: () => new Date(0) })
  const tools = [echo, throws, rejects, stuck, nonsense, dated]

  it.each([
    {
      name: 'C3: a tool that throws',
      call: { name: 'throws', arguments: { text: 'x' } },
      result: /^Error: no such order$/,
    },
    {
      name: 'C3: a tool that rejects with something else',
      call: { name: 'rejects', arguments: { text: 'x' } },
      result: /^Error: just text$/,
    },
    {
      name: 'C3: a tool that takes too long',
      call: { name: 'stuck', arguments: { text: 'x' } },
      result: /^Error: tool "stuck" timed out after 100 ms$/,
    },
    {
      name: 'C3: a result that does not fit its schema',
      call: { name: 'nonsense', arguments: { text: 'x' } },
      result: /^Error: the result of tool "nonsense" does not fit its schema/,
    },
    {
      name: 'C3: a result that is no JSON',
      call: { name: 'dated', arguments: { text: 'x' } },
      result: /^Error: the result of tool "dated" is not JSON: it is an instance of Date/,
    },
    {
      name: 'C3: arguments that do not fit',
      call: { name: 'echo', arguments: { text: 7 } },
      result: /^Error: invalid arguments for tool "echo": .*text: Invalid input/,
    },
    {
      name: 'C4: arguments that are broken JSON',
      call: { name: 'echo', arguments: '{"text":' },
      result: /^Error: the arguments are no JSON \(.+\): \{"text":$/,
    },
    {
      name: 'O1: arguments that are no object',
      call: { name: 'echo', arguments: '["x"]' },
      result: /^Error: the arguments are no JSON object: \["x"\]$/,
    },
    {
      name: 'C4: a tool that does not exist',
      call: { name: 'ehco', arguments: { text: 'x' } },
      result: /^Error: there is no tool "ehco"; tools are: echo, throws, rejects, stuck, nonsense, dated\.$/,
    },
  ])('$name', async ({ call, result }) => {
    const clock = new Clock()
    const replies = [{ tool_calls: [call, { name: 'echo', arguments: { text: 'beside it' } }] }, 'done']
    const running = said(replies, tools, { platform: clock })
    await clock.pass(100)
    const [, first, second, last] = await running
    expect(first).toMatchObject({ role: 'tool', tool_call_id: 'call-1-1', content: expect.stringMatching(result) })
    expect(second).toMatchObject({ role: 'tool', tool_call_id: 'call-1-2', content: 'beside it' })
    expect(last?.content).toBe('done')

    const events = await eventsOf({
      graph: agentGraph({ model: scripted([{ tool_calls: [call] }, 'done']), tools: tools.filter((t) => t !== stuck) }),
      input: hello,
    })
    expect([ofType(events, 'tool_call').length, ofType(events, 'tool_result').length]).toEqual([1, 1])
  })
  it('C4: so a model may find the right tool in the end, within its rounds', async () => {
    const wrong: ScriptedReply = { tool_calls: [{ name: 'ehco', arguments: { text: 'x' } }] }
    const replies = [wrong, wrong, calls('found'), 'done']
    expect((await said(replies)).at(-1)?.content).toBe('done')
    await expect(said(replies, [echo], { limits: { maxToolRounds: 3 } })).rejects.toMatchObject({
      code: 'ROUNDS_SPENT',
    })
  })
})

describe('the rounds of an agent', () => {
  const looping = (turns: number) => [...Array.from({ length: turns }, () => calls('again')), 'done']
  const rounds = async (turns: number, maxRounds: number | undefined, limits?: RuntimeOptions['limits']) =>
    settle({ graph: agentGraph({ model: scripted(looping(turns)), tools: [echo], maxRounds }), input: hello, limits })

  it('are 10 at most; the error names the flag that raises it', async () => {
    expect((await rounds(9, undefined)).status).toBe('completed')
    const { error } = await rounds(10, undefined)
    expect(error).toMatchObject({ code: 'ROUNDS_SPENT', at: { node: 'agent' } })
    expect((error as Error).message).toBe(
      'node "agent": the agent has spent its 10 rounds and still asks for tools. Raise --max-tool-rounds, or give it less to do.',
    )
  })
  it('I7: are what the operator says: fewer, or more', async () => {
    expect(((await rounds(3, undefined, { maxToolRounds: 3 })).error as Error).message).toContain('its 3 rounds')
    expect((await rounds(20, undefined, { maxToolRounds: 21 })).status).toBe('completed')
  })
  it('are fewer where the agent says so, and never more than the operator says', async () => {
    expect(((await rounds(2, 2)).error as Error).message).toContain('its 2 rounds')
    expect(((await rounds(10, 1_000)).error as Error).message).toContain('its 10 rounds')
  })
  it.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])(
    'are a whole number: %d is refused',
    async (maxRounds) => {
      expect((await rounds(1, maxRounds)).error).toMatchObject({
        code: 'LIMIT_INVALID',
        message: expect.stringContaining('maxRounds must be a whole number'),
      })
    },
  )
})

describe('a conversation can always be continued', () => {
  const throws = tool('throws', { description: 'd', input: text, run: () => Promise.reject(new Error('no')) })
  const call = fc.record({
    name: fc.constantFrom('echo', 'throws', 'unknown'),
    arguments: fc.oneof(fc.constant({ text: 'x' }), fc.constant({ text: 7 }), fc.string(), fc.constant('{"text":')),
  })
  const reply = fc.record({
    content: fc.string(),
    tool_calls: fc.array(call, { minLength: 1, maxLength: 4 }),
    finish_reason: fc.constantFrom('stop', 'tool_calls', 'length'),
  })
  const script = fc.array(reply, { maxLength: 6 }).map((replies): ScriptedReply[] => [...replies, 'done'])

  it('C5: each call in it is answered once, by a tool message right after it, whatever went wrong', async () => {
    await fc.assert(
      fc.asyncProperty(script, async (replies) => {
        const messages = await said(replies, [echo, throws])
        expect(faultsOf([...hello.messages, ...messages])).toEqual([])
        expect(messages.at(-1)).toEqual({ role: 'assistant', content: 'done' })
      }),
    )
  })
  it('C5: after a run that failed, for of an answer that was not finished nothing was said', async () => {
    const first = await settle({
      graph: agentGraph({ model: scripted([calls('a'), new Error('500 Internal Server Error')]), tools: [echo] }),
      input: hello,
    })
    expect(first).toMatchObject({ status: 'failed', state: undefined })
    const model = scripted(['done'])
    await settle({
      graph: agentGraph({ model, tools: [echo] }),
      input: { messages: [...hello.messages, { role: 'user', content: 'still there?' }] },
    })
    expect(faultsOf(model.requests[0]?.messages ?? [])).toEqual([])
  })
  it('O2: and is the same whether it was streamed or not', async () => {
    await fc.assert(
      fc.asyncProperty(script, async (replies) => {
        const make = () => agentGraph({ model: scripted(replies), tools: [echo, throws] })
        const whole = await settle({ graph: make(), input: hello })
        for (const streams of [true, false]) {
          const end = (await eventsOf({ graph: make(), input: hello, streams })).at(-1)
          expect(end).toMatchObject({ status: 'completed', result: whole.state })
        }
      }),
      { numRuns: 50 },
    )
  })
})

describe('a streamed answer', () => {
  /** A model that streams these chunks, or throws where one is an error, and counts how often it is asked. */
  const streaming = (chunks: readonly (ChatChunk | Error)[]) => {
    const asked = { chat: 0, stream: 0 }
    const model: ChatModel = {
      model: 'm',
      chat: async () => {
        asked.chat++
        return { content: 'whole', finish_reason: 'stop' }
      },
      stream: async function* () {
        asked.stream++
        for (const chunk of chunks) {
          if (chunk instanceof Error) throw chunk
          yield chunk
        }
      },
    }
    return { asked, model }
  }
  const broken = new Error('503 Service Unavailable: overloaded')
  const words = [{ content: 'one ' }, { content: 'two' }, { finish_reason: 'stop' }]

  it('leaves part by part as it comes', async () => {
    const { model } = streaming(words)
    const events = await eventsOf({ graph: agentGraph({ model }), input: hello })
    expect(ofType(events, 'token').map(({ text, nodeName }) => [nodeName, text])).toEqual([
      ['agent', 'one '],
      ['agent', 'two'],
    ])
  })
  it('O3: that fails midway fails the node, calls back the parts that have left, and is not sent again by itself', async () => {
    const { asked, model } = streaming([...words.slice(0, 2), broken])
    const events = await eventsOf({ graph: agentGraph({ model }), input: hello })
    expect(events.map(({ type }) => type).slice(2)).toEqual([
      'model_call',
      'token',
      'token',
      'model_result',
      'retracted',
      'node_error',
      'run_end',
    ])
    expect(ofType(events, 'retracted')).toMatchObject([{ tokens: 2 }])
    expect(events.at(-1)).toMatchObject({ error: { message: broken.message } })
    expect(asked).toEqual({ chat: 0, stream: 1 })
  })
  it('O3: that fails before its first part has nothing to call back', async () => {
    const events = await eventsOf({ graph: agentGraph({ model: streaming([broken]).model }), input: hello })
    expect(events.map(({ type }) => type).slice(2)).toEqual(['model_call', 'model_result', 'node_error', 'run_end'])
  })
  it('of a node whose time is over is called back as well, and what still comes is dropped', async () => {
    const clock = new Clock()
    const gate = open<void>()
    const model: ChatModel = {
      ...streaming([]).model,
      stream: async function* () {
        yield { content: 'one ' }
        await gate.promise
        yield { content: 'too late' }
      },
    }
    const types: string[] = []
    const reading = (async () => {
      const runtime = createRuntime({ platform: clock })
      for await (const { type } of runtime.stream(agentGraph({ model, timeoutMs: 100 }), hello)) types.push(type)
    })()
    await clock.pass(100)
    gate.resolve()
    await reading
    await quiet()
    expect(types.slice(2)).toEqual(['model_call', 'token', 'retracted', 'node_error', 'run_end'])
  })
  it.each([
    { name: 'stream: false of the agent', options: { stream: false }, runtime: {} },
    { name: 'streams: false of the runtime', options: {}, runtime: { streams: false } },
  ])('O4: is asked for as a whole by $name', async ({ options, runtime }) => {
    const { asked, model } = streaming(words)
    const events = await eventsOf({ graph: agentGraph({ model, ...options }), input: hello, ...runtime })
    expect(asked).toEqual({ chat: 1, stream: 0 })
    expect(ofType(events, 'token')).toEqual([])
    expect(events.at(-1)).toMatchObject({
      status: 'completed',
      result: { messages: [hello.messages[0], { content: 'whole' }] },
    })
  })
  it('is asked for as a whole where nobody listens, and where the model cannot stream', async () => {
    const { asked, model } = streaming(words)
    await settle({ graph: agentGraph({ model }), input: hello })
    await eventsOf({ graph: agentGraph({ model: { model: 'm', chat: model.chat } }), input: hello })
    expect(asked).toEqual({ chat: 2, stream: 0 })
  })
})
