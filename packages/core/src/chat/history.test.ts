import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { settle } from '../../testing/play.ts'
import { faultsOf } from '../../testing/transcript.ts'
import {
  ChatHistoryError,
  type ChatMessage,
  createAgent,
  historyFaults,
  middleware,
  repairHistory,
  type ScriptedModel,
  scripted,
} from '../index.ts'
import { requireHistory } from './history.ts'

const user = (content: string): ChatMessage => ({ role: 'user', content })
const asks = (...ids: string[]): ChatMessage => ({
  role: 'assistant',
  content: '',
  tool_calls: ids.map((id) => ({ id, name: 'act', arguments: '{}' })),
})
const answers = (id: string, content = `${id} done`): ChatMessage => ({ role: 'tool', tool_call_id: id, content })
const filled = (id: string) => answers(id, 'Tool call was not executed.')

const CASES: readonly {
  readonly name: string
  readonly history: readonly ChatMessage[]
  readonly positions: readonly number[]
  readonly repaired: readonly ChatMessage[]
}[] = [
  {
    name: 'an orphan, a result without a call',
    history: [user('a'), answers('x'), user('b')],
    positions: [1],
    repaired: [user('a'), user('b')],
  },
  {
    name: 'a call that nobody answered',
    history: [user('a'), asks('x', 'y'), answers('y'), user('b')],
    positions: [1],
    repaired: [user('a'), asks('x', 'y'), answers('y'), filled('x'), user('b')],
  },
  {
    name: 'a result that comes late',
    history: [user('a'), asks('x'), user('b'), answers('x'), user('c')],
    positions: [1, 3],
    repaired: [user('a'), asks('x'), filled('x'), user('b'), user('c')],
  },
  {
    name: 'a call that is answered twice',
    history: [user('a'), asks('x'), answers('x'), answers('x', 'again'), user('b')],
    positions: [3],
    repaired: [user('a'), asks('x'), answers('x'), user('b')],
  },
  {
    name: 'a cut turn at the end',
    history: [user('a'), asks('x', 'y'), answers('x')],
    positions: [1],
    repaired: [user('a'), asks('x', 'y'), answers('x'), filled('y')],
  },
]

const told = async (model: ScriptedModel, history: readonly ChatMessage[], repair: boolean) =>
  settle({ graph: createAgent({ model, repairHistory: repair }), input: history })

describe('a history that providers refuse', () => {
  it.each(CASES)(
    'I13: $name is an error that tells where, and the model is not asked',
    async ({ history, positions }) => {
      const model = scripted(['done'])
      const { status, error } = await told(model, history, false)
      expect([status, error]).toMatchObject(['failed', { name: 'ChatHistoryError', code: 'CHAT_HISTORY', positions }])
      expect(model.requests).toEqual([])
    },
  )
  it.each(CASES)(
    'I14: $name is mended in the request alone, where the agent says so',
    async ({ history, repaired }) => {
      const model = scripted(['done'])
      const { state } = await told(model, history, true)
      expect(model.requests[0]?.messages).toEqual(repaired)
      expect(state.messages).toEqual([...history, { role: 'assistant', content: 'done' }])
    },
  )
  it('says of each message what is wrong with it', () => {
    expect(historyFaults([user('a'), asks('x', 'y'), user('b'), answers('x')])).toEqual([
      { position: 1, why: 'nothing answers calls "x", "y" of message 1' },
      { position: 3, why: 'message 3 answers call "x", which is not open there' },
    ])
  })
  it('may be mended by middleware, for what counts is what is sent', async () => {
    const patch = middleware({
      name: 'patch',
      beforeModel: (ctx) => ctx.replace({ messages: repairHistory(ctx.request.messages) }),
    })
    const model = scripted(['done'])
    const { state } = await settle({ graph: createAgent({ model, middleware: [patch] }), input: [asks('x')] })
    expect(state.finalText).toBe('done')
    expect(faultsOf(model.requests[0]?.messages ?? [])).toEqual([])
  })
  it('C6: is refused too where middleware made it so', async () => {
    const cut = middleware({
      name: 'cut',
      beforeModel: (ctx) => ctx.replace({ messages: ctx.request.messages.slice(1) }),
    })
    const model = scripted(['done'])
    const history = [asks('x'), answers('x')]
    const { error } = await settle({ graph: createAgent({ model, middleware: [cut] }), input: history })
    expect(error).toMatchObject({ code: 'CHAT_HISTORY', positions: [0] })
    expect(model.requests).toEqual([])
  })
})

describe('a history that providers take', () => {
  it('may have its results in any order, and two calls under one id where each is answered', () => {
    expect(
      historyFaults([asks('x', 'y'), answers('y'), answers('x'), asks('z', 'z'), answers('z'), answers('z')]),
    ).toEqual([])
  })
  it('is left as it is: the very list', () => {
    const history = [user('a'), asks('x'), answers('x')]
    expect(repairHistory(history)).toBe(history)
  })
  it('is what every repair comes to, whatever there was, and nothing but results is added or taken out', () => {
    const id = fc.constantFrom('x', 'y', 'z')
    const message = fc.oneof(
      id.map(user),
      id.map((id) => answers(id)),
      fc.uniqueArray(id, { maxLength: 3 }).map((ids) => asks(...ids)),
    )
    fc.assert(
      fc.property(fc.array(message, { maxLength: 12 }), (history) => {
        const repaired = repairHistory(history)
        const rest = (messages: readonly ChatMessage[]) => messages.filter(({ role }) => role !== 'tool')
        expect(faultsOf(repaired)).toEqual([])
        expect(historyFaults(repaired)).toEqual([])
        expect(rest(repaired)).toEqual(rest(history))
        expect(faultsOf(history).length === 0).toBe(historyFaults(history).length === 0)
        const refused = () => requireHistory(history, 'it')
        if (faultsOf(history).length === 0) expect(refused).not.toThrow()
        else expect(refused).toThrow(ChatHistoryError)
      }),
    )
  })
})
