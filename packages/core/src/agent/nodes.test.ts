import { describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { settle } from '../../testing/play.ts'
import { faultsOf } from '../../testing/transcript.ts'
import {
  agentNode,
  append,
  type ChatMessage,
  END,
  graph,
  messages,
  modelNode,
  node,
  START,
  type StateOf,
  scripted,
  state,
  tool,
  toolNode,
  type UpdateFor,
} from '../index.ts'

const Conversation = state({ messages: messages(), notes: append(z.string()) })
const echo = tool('echo', {
  description: 'Says it again.',
  input: z.object({ text: z.string() }),
  run: ({ text }) => text,
})
const hello: ChatMessage = { role: 'user', content: 'hello' }

const asksForTools = (s: StateOf<typeof Conversation>) => s.messages.at(-1)?.tool_calls !== undefined

/** An agent by hand: think, act while there are calls, think again. */
const byHand = (
  model = scripted([{ tool_calls: [{ name: 'echo', arguments: { text: 'a' } }, { name: 'ehco' }] }, 'done']),
) => {
  const think = modelNode('think', Conversation, { model, tools: [echo], system: 'Be brief.' })
  const act = toolNode('act', Conversation, { tools: [echo] })
  return graph('by hand', Conversation)
    .edge(START, think)
    .when(think, asksForTools, { then: act, otherwise: END })
    .edge(act, think)
    .check()
}

describe('modelNode', () => {
  it('asks once and appends the answer; its system message goes first in every request and is never stored', async () => {
    const model = scripted(['done'])
    const think = modelNode('think', Conversation, { model, system: 'Be brief.', parameters: { temperature: 0 } })
    const { state } = await settle({
      graph: graph('g', Conversation).edge(START, think).edge(think, END).check(),
      input: { messages: [hello] },
    })
    expect(state.messages).toEqual([hello, { role: 'assistant', content: 'done' }])
    expect(model.requests).toEqual([
      { model: 'scripted', messages: [{ role: 'system', content: 'Be brief.' }, hello], temperature: 0 },
    ])
  })
  it('may ask a model of the runtime by its name', async () => {
    const think = modelNode('think', Conversation, { model: 'small' })
    const g = graph('g', Conversation).edge(START, think).edge(think, END).check()
    const { state } = await settle({
      graph: g,
      input: { messages: [hello] },
      models: () => scripted(['hi'], { model: 'small' }),
    })
    expect(state.messages.at(-1)?.content).toBe('hi')
  })
  it('offers each tool once: two of one name are refused where the node is made', () => {
    expect(() => modelNode('think', Conversation, { model: 'm', tools: [echo, { ...echo }] })).toThrow(
      expect.objectContaining({ code: 'TOOL_DUPLICATE' }),
    )
  })
})

describe('toolNode', () => {
  it('C5: answers every call of the last message, at once and in order, whatever becomes of each', async () => {
    const { state } = await settle({ graph: byHand(), input: { messages: [hello] } })
    expect(state.messages.map(({ role, content }) => `${role}: ${content}`)).toEqual([
      'user: hello',
      'assistant: ',
      'tool: a',
      'tool: Error: there is no tool "ehco"; tools are: echo.',
      'assistant: done',
    ])
    expect(faultsOf(state.messages)).toEqual([])
  })
  it('does nothing where the last message asks for none', async () => {
    const act = toolNode('act', Conversation, { tools: [echo] })
    const { state } = await settle({
      graph: graph('g', Conversation).edge(START, act).edge(act, END).check(),
      input: { messages: [hello] },
    })
    expect(state.messages).toEqual([hello])
  })
  it('and modelNode by hand come to what agentNode comes to', async () => {
    const script = () => scripted([{ tool_calls: [{ name: 'echo', arguments: { text: 'a' } }] }, 'done'])
    const agent = agentNode('agent', Conversation, { model: script(), tools: [echo], system: 'Be brief.' })
    const whole = graph('g', Conversation).edge(START, agent).edge(agent, END).check()
    const outcomes = await Promise.all(
      [byHand(script()), whole].map((graph) => settle({ graph, input: { messages: [hello] } })),
    )
    expect(outcomes[0]?.state).toEqual(outcomes[1]?.state)
  })
})

describe('a node of a conversation', () => {
  const Bare = state({ notes: append(z.string()) })
  it.each([
    { name: 'modelNode', make: () => modelNode('n', Bare as never, { model: 'm' }) },
    { name: 'toolNode', make: () => toolNode('n', Bare as never, { tools: [] }) },
    { name: 'agentNode', make: () => agentNode('n', Bare as never, { model: 'm' }) },
  ])('$name needs a state with messages', ({ name, make }) => {
    expect(make).toThrow(
      expect.objectContaining({
        code: 'GRAPH_INVALID',
        message: `${name} "n" needs a state with the field messages: messages(); it has: notes.`,
      }),
    )
  })
  it('is seen by policies under its own type', () => {
    const options = { model: 'm', tools: [] }
    const types = [
      modelNode('n', Conversation, options),
      toolNode('n', Conversation, options),
      agentNode('n', Conversation, options),
      node('n', Conversation, () => {}),
    ]
    expect(types.map(({ type }) => type)).toEqual(['ModelNode', 'ToolNode', 'AgentNode', 'Node'])
  })
  it('types: fits into a graph of its state, and needs messages in it', () => {
    const agent = agentNode('agent', Conversation, { model: 'm' })
    expectTypeOf(agent.run).parameter(0).toEqualTypeOf<StateOf<typeof Conversation>>()
    expectTypeOf<{ messages: ChatMessage[] }>().toExtend<UpdateFor<typeof Conversation>>()
    // @ts-expect-error the state has no messages
    expect(() => agentNode('agent', Bare, { model: 'm' })).toThrow()
  })
})

describe.each([
  { maker: 'modelNode', make: modelNode },
  { maker: 'agentNode', make: agentNode },
])('$maker', ({ make }) => {
  const cut: ChatMessage = { role: 'assistant', content: '', tool_calls: [{ id: 'x', name: 'echo', arguments: '{}' }] }
  const play = (options: Omit<Parameters<typeof modelNode<typeof Conversation>>[2], 'model'>, input = [hello]) => {
    const model = scripted(['done'])
    const only = make('only', Conversation, { ...options, model })
    const whole = graph('g', Conversation).edge(START, only).edge(only, END).check()
    return settle({ graph: whole, input: { messages: input, notes: ['be brief'] } }).then((end) => ({ ...end, model }))
  }
  it('may make its system prompt of the state', async () => {
    const { model } = await play({ system: async (s) => s.notes.join() })
    expect(model.requests[0]?.messages[0]).toEqual({ role: 'system', content: 'be brief' })
  })
  it('I13: refuses a conversation that providers refuse, or mends it in the request where it says so', async () => {
    expect((await play({}, [cut])).error).toMatchObject({ code: 'CHAT_HISTORY', positions: [0] })
    const { model, state } = await play({ repairHistory: true }, [cut, hello])
    expect(faultsOf(model.requests[0]?.messages ?? [])).toEqual([])
    expect(state.messages).toEqual([cut, hello, { role: 'assistant', content: 'done' }])
  })
})
