import {
  agentNode,
  type ChatModel,
  createRuntime,
  END,
  graph,
  type Middleware,
  messages,
  type ScriptedReply,
  START,
  scripted,
  state,
  tool,
} from '@sluice/core'
import { defaultSettingsMiddleware, extractReasoningMiddleware, simulateStreamingMiddleware } from 'ai'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { fromLanguageModelMiddleware, type LanguageModelMiddleware } from '../index.ts'

const Chat = state({ messages: messages() })
const ASKED = { messages: [{ role: 'user', content: 'hello' }] } as const
const look = tool('look', { description: 'Looks.', input: z.object({ n: z.number() }), run: ({ n }) => `saw ${n}` })

function chat(model: ChatModel, middleware: readonly Middleware[]) {
  const agent = agentNode('agent', Chat, { model, tools: [look], system: 'be kind' })
  return graph('chat', Chat, { middleware }).edge(START, agent).edge(agent, END).check()
}

/** One run under an AI SDK middleware. */
async function under(wrapped: unknown, replies: readonly ScriptedReply[]) {
  const model = scripted(replies)
  const own = fromLanguageModelMiddleware(wrapped as LanguageModelMiddleware, { name: 'bridged' })
  const { state: end, error } = await createRuntime().settle(chat(model, [own]), ASKED)
  return { model, error, said: end?.messages?.at(-1)?.content }
}

describe('AI SDK middleware around model calls', () => {
  it('extractReasoningMiddleware: what stands in its tags is no part of the answer', async () => {
    //#region bridge
    const own = fromLanguageModelMiddleware(extractReasoningMiddleware({ tagName: 'think' }))
    //#endregion
    const model = scripted(['<think>hm, what to say</think>Hello!'])
    const { state: end } = await createRuntime().run(chat(model, [own]), ASKED)
    expect(end.messages.at(-1)?.content).toBe('Hello!')
  })

  it('extractReasoningMiddleware: nor does it stand in the stream', async () => {
    const own = fromLanguageModelMiddleware(extractReasoningMiddleware({ tagName: 'think' }))
    const tokens: string[] = []
    for await (const event of createRuntime().stream(chat(scripted(['<think>hm</think>Hello!']), [own]), ASKED)) {
      if (event.type === 'token') tokens.push(event.text)
    }
    expect(tokens.join('')).toBe('Hello!')
  })

  it('defaultSettingsMiddleware: what it sets is sent, and the call’s own settings go before it', async () => {
    const { model } = await under(defaultSettingsMiddleware({ settings: { temperature: 0.3, maxOutputTokens: 99 } }), [
      'hi',
    ])
    expect(model.requests[0]).toMatchObject({ temperature: 0.3, maxTokens: 99 })
  })

  it('defaultSettingsMiddleware: a setting that a chat request has no place for is refused, with its name', async () => {
    const { model, error } = await under(defaultSettingsMiddleware({ settings: { topK: 5 } }), ['hi'])
    expect(error).toMatchObject({ code: 'MIDDLEWARE_FAILED', cause: { code: 'MODEL_MIDDLEWARE' } })
    expect((error as Error).message).toContain('sets topK, which a chat request has no place for')
    expect(model.requests).toEqual([])
  })

  it('simulateStreamingMiddleware: the response comes to the same', async () => {
    const { said, model } = await under(simulateStreamingMiddleware(), [
      { tool_calls: [{ name: 'look', arguments: { n: 1 } }] },
      'done',
    ])
    expect(said).toBe('done')
    expect(model.requests[1]?.messages.at(-1)?.content).toBe('saw 1')
  })

  it('that does nothing changes nothing: the response is the very one', async () => {
    const usage = { inputTokens: 1, outputTokens: 2, totalTokens: 3, estimated: true }
    const passing = {
      specificationVersion: 'v3',
      wrapGenerate: ({ doGenerate }: { doGenerate(): unknown }) => doGenerate(),
    }
    const seen: unknown[] = []
    const bridged = fromLanguageModelMiddleware(passing as LanguageModelMiddleware)
    const model = scripted([{ content: 'hi', usage }])
    const agent = chat(model, [bridged])
    for await (const event of createRuntime().stream(agent, ASKED)) if (event.type === 'warning') seen.push(event)
    expect(seen).toEqual([])
    expect(model.requests[0]?.messages).toEqual([{ role: 'system', content: 'be kind' }, ASKED.messages[0]])
  })

  it('may change the prompt, calls and results of tools included', async () => {
    const shout = {
      specificationVersion: 'v3',
      transformParams: async ({ params }: { params: { prompt: { role: string; content: unknown }[] } }) => ({
        ...params,
        prompt: [{ role: 'system', content: 'SHOUT' }, ...params.prompt.slice(1)],
      }),
    }
    const { model } = await under(shout, [{ tool_calls: [{ name: 'look', arguments: { n: 1 } }] }, 'DONE'])
    expect(model.requests[1]?.messages).toEqual([
      { role: 'system', content: 'SHOUT' },
      { role: 'user', content: 'hello' },
      { role: 'assistant', content: '', tool_calls: [{ id: 'call-1-1', name: 'look', arguments: '{"n":1}' }] },
      { role: 'tool', tool_call_id: 'call-1-1', content: 'saw 1' },
    ])
  })

  it('may answer without the model, as a cache does', async () => {
    const cached = {
      content: [{ type: 'text', text: 'known' }],
      finishReason: { unified: 'stop' },
      usage: {},
      warnings: [],
    }
    const { said, model } = await under({ specificationVersion: 'v3', wrapGenerate: async () => cached }, [])
    expect(said).toBe('known')
    expect(model.requests).toEqual([])
  })

  it('is given the model’s own error, and one that it throws fails the call', async () => {
    const cause = new Error('503')
    const passing = {
      specificationVersion: 'v3',
      wrapGenerate: ({ doGenerate }: { doGenerate(): unknown }) => doGenerate(),
    }
    expect((await under(passing, [cause])).error).toBe(cause)
    const own = new Error('no')
    expect((await under({ specificationVersion: 'v3', wrapGenerate: () => Promise.reject(own) }, ['hi'])).error).toBe(
      own,
    )
  })

  it.each([
    {
      name: 'another version',
      wrapped: { specificationVersion: 'v9' },
      says: 'has version v9; versions read here are: v2, v3, v4',
    },
    { name: 'another model’s name', wrapped: { overrideModelId: () => 'other' }, says: 'has overrideModelId' },
  ])('is refused with $name', ({ wrapped, says }) => {
    expect(() => fromLanguageModelMiddleware(wrapped as LanguageModelMiddleware)).toThrow(says)
  })

  it.each([
    {
      name: 'a file',
      wrapped: { wrapGenerate: async () => ({ content: [{ type: 'file' }], finishReason: 'stop', usage: {} }) },
      says: 'answers with a file',
    },
    {
      name: 'a tool of its own',
      wrapped: { transformParams: async ({ params }: { params: object }) => ({ ...params, tools: [{ name: 'pay' }] }) },
      says: 'adds a tool "pay"',
    },
    {
      name: 'a setting taken away',
      wrapped: { transformParams: async ({ params }: { params: object }) => ({ ...params, tools: undefined }) },
      says: 'takes tools away',
    },
  ])('fails the run with $name', async ({ wrapped, says }) => {
    expect(((await under(wrapped, ['hi'])).error as Error).message).toContain(says)
  })
})
