import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { agentGraph, calls, contents, processes, strict, Talk, user } from '../../../testing/agent.ts'
import { says } from '../../../testing/play.ts'
import { faultsOf } from '../../../testing/transcript.ts'
import {
  type ChatMessage,
  type ChatRequest,
  createRuntime,
  END,
  graph,
  modelNode,
  PatchCallsMiddleware,
  type ScriptedReply,
  START,
  scripted,
  tool,
  toolNode,
} from '../../index.ts'
import { mended } from './mend.ts'

//#region use
const patch = new PatchCallsMiddleware()
//#endregion

//#region field
const patchStored = new PatchCallsMiddleware({
  field: 'messages',
  text: 'This call was lost. Make it again if need be.',
})
//#endregion

const T = { thread: 't' }
const NOT = 'Tool call was not executed.'

const asks = (...ids: readonly string[]): ChatMessage => ({
  role: 'assistant',
  content: `asks ${ids.join()}`,
  tool_calls: ids.map((id) => ({ id, name: 'act', arguments: '{}' })),
})
const answers = (id: string, content = `answer ${id}`): ChatMessage => ({ role: 'tool', tool_call_id: id, content })
const one: ChatMessage = { role: 'user', content: 'hi' }

describe('I13, I14: a conversation that providers refuse', () => {
  it.each([
    {
      name: 'a call that nobody answered',
      has: [one, asks('a'), one],
      sends: ['user: hi', 'assistant: asks a', `tool: ${NOT}`, 'user: hi'],
    },
    {
      name: 'one of two',
      has: [asks('a', 'b'), answers('b'), one],
      sends: ['assistant: asks a,b', 'tool: answer b', `tool: ${NOT}`, 'user: hi'],
    },
    { name: 'a call at the end', has: [one, asks('a')], sends: ['user: hi', 'assistant: asks a', `tool: ${NOT}`] },
    { name: 'an answer that nobody asked for', has: [one, answers('a'), one], sends: ['user: hi', 'user: hi'] },
    {
      name: 'an answer that came twice',
      has: [asks('a'), answers('a'), answers('a', 'again'), one],
      sends: ['assistant: asks a', 'tool: answer a', 'user: hi'],
    },
    {
      name: 'an answer that came late',
      has: [asks('a'), one, answers('a')],
      sends: ['assistant: asks a', 'tool: answer a', 'user: hi'],
    },
    {
      name: 'an id that is asked for again',
      has: [asks('a'), one, asks('a'), answers('a', 'second')],
      sends: ['assistant: asks a', `tool: ${NOT}`, 'user: hi', 'assistant: asks a', 'tool: second'],
    },
  ])('is sent mended: $name', async ({ has, sends }) => {
    const model = strict(['fine'])
    const { another } = processes()
    const chat = agentGraph({ middleware: [patch], model })
    const { state } = await another().run(chat, { messages: has })
    expect(contents(model.requests[0]?.messages ?? [])).toEqual(sends)
    expect(state.messages.slice(0, -1)).toEqual(has)
  })

  it('is refused without it, and says how it is mended', async () => {
    const chat = agentGraph({ middleware: [], model: strict(['fine']) })
    const { error } = await createRuntime().settle(chat, { messages: [asks('a'), one] })
    expect(error).toMatchObject({ code: 'CHAT_HISTORY' })
  })

  it('A2: is seen by the policies as it is sent', async () => {
    const gate = says('Gate', { 'modelCall.before': { action: 'proceed' } })
    const chat = agentGraph({ middleware: [patch], model: strict(['fine']) })
    await createRuntime({ policies: [gate] }).run(chat, { messages: [asks('a'), one] })
    const { messages = [] } = (gate.asked[0]?.input ?? {}) as Partial<ChatRequest>
    expect(contents(messages)).toContain(`tool: ${NOT}`)
  })
})

describe('any conversation', () => {
  const anyId = fc.constantFrom('a', 'b', 'c')
  const anyMessage: fc.Arbitrary<ChatMessage> = fc.oneof(
    fc.constant(one),
    fc
      .uniqueArray(anyId, { maxLength: 3 })
      .map((ids): ChatMessage => (ids.length === 0 ? { role: 'assistant', content: 'done' } : asks(...ids))),
    anyId.map((id) => answers(id)),
  )
  const anyConversation = fc.array(anyMessage, { maxLength: 12 })

  it('is one that a strict provider takes when it is mended, and mended once for all', () => {
    fc.assert(
      fc.property(anyConversation, (messages) => {
        const whole = mended(messages, NOT)
        expect(faultsOf(whole)).toEqual([])
        expect(mended(whole, NOT)).toBe(whole)
      }),
    )
  })

  it('keeps every message but results, in its order, and invents no result', () => {
    const spoken = (messages: readonly ChatMessage[]) => messages.filter(({ role }) => role !== 'tool')
    fc.assert(
      fc.property(anyConversation, (messages) => {
        const whole = mended(messages, NOT)
        expect(spoken(whole)).toEqual(spoken(messages))
        for (const message of whole)
          expect(message.content === NOT || messages.some(({ content }) => content === message.content)).toBe(true)
      }),
    )
  })

  it('is the very same when it is well', () => {
    fc.assert(
      fc.property(anyConversation, (messages) => {
        fc.pre(faultsOf(messages).length === 0)
        expect(mended(messages, NOT)).toBe(messages)
      }),
    )
  })
})

describe('C5: a thread whose turn failed between the model and its tools', () => {
  const breaks = tool('act', {
    description: 'Breaks once.',
    input: z.object({}),
    run: () => {
      throw new Error('the disk is full')
    },
  })
  /** An agent by hand: what the model said is committed before its tools run. */
  const byHand = (own: PatchCallsMiddleware, replies: readonly ScriptedReply[]) => {
    const model = strict(replies)
    const think = modelNode('think', Talk, { model, tools: [breaks] })
    const act = toolNode('act', Talk, { tools: [breaks], toolErrors: 'raise' })
    const g = graph('g', Talk, { middleware: [own] })
      .edge(START, think)
      .when(think, ({ messages }) => messages.at(-1)?.tool_calls !== undefined, { then: act, otherwise: END })
      .edge(act, think)
      .check()
    return { g, model }
  }

  it('goes on with a new input, in another process', async () => {
    const { another } = processes()
    expect((await another().settle(byHand(patch, [calls(['act', {}])]).g, user('one'), T)).status).toBe('failed')
    const { g, model } = byHand(patch, ['fine'])
    const { state } = await another().run(g, user('two'), T)
    expect(contents(model.requests[0]?.messages ?? [])).toEqual([
      'user: one',
      'assistant: ',
      `tool: ${NOT}`,
      'user: two',
    ])
    expect(contents(state.messages)).toEqual(['user: one', 'assistant: ', 'user: two', 'assistant: fine'])
  })

  it('has its conversation mended for good, where the field is named', async () => {
    const { another } = processes()
    await another().settle(byHand(patchStored, [calls(['act', {}])]).g, user('one'), T)
    const { state } = await another().run(byHand(patchStored, ['fine']).g, user('two'), T)
    expect(faultsOf(state.messages)).toEqual([])
    expect(contents(state.messages)).toEqual([
      'user: one',
      'assistant: ',
      'tool: This call was lost. Make it again if need be.',
      'user: two',
      'assistant: fine',
    ])
  })

  it('has calls that are about to be answered left alone', async () => {
    const fine = tool('act', { description: 'Acts.', input: z.object({}), run: () => 'done' })
    const model = strict([calls(['act', {}]), 'fine'])
    const think = modelNode('think', Talk, { model, tools: [fine] })
    const act = toolNode('act', Talk, { tools: [fine] })
    const g = graph('g', Talk, { middleware: [patchStored] })
      .edge(START, think)
      .when(think, ({ messages }) => messages.at(-1)?.tool_calls !== undefined, { then: act, otherwise: END })
      .edge(act, think)
      .check()
    const { state } = await createRuntime().run(g, { messages: [asks('x'), one] })
    expect(faultsOf(state.messages)).toEqual([])
    expect(contents(state.messages).slice(3)).toEqual(['assistant: ', 'tool: done', 'assistant: fine'])
  })
})

describe('where all is well', () => {
  it('it changes nothing', async () => {
    const runs = []
    for (const middleware of [[], [patchStored]]) {
      const model = scripted(['hi'])
      const { state, warnings } = await processes().another().run(agentGraph({ middleware, model }), user('hello'), T)
      runs.push({ state, warnings, requests: model.requests })
    }
    expect(runs[1]).toEqual(runs[0])
  })

  it.each([
    { name: 'a blank text', options: { text: ' ' }, error: 'text must be a text that is not blank, not " "' },
    { name: 'no name of a field', options: { field: 1 }, error: 'field must be a text that is not blank, not 1' },
    { name: 'one there is not', options: { repair: true }, error: 'PatchCallsMiddleware has no "repair"' },
  ])('an option that is wrong is refused: $name', ({ options, error }) => {
    expect(() => new PatchCallsMiddleware(options as never)).toThrow(error)
  })
})
