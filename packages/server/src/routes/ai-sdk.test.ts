import {
  DefaultChatTransport,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  readUIMessageStream,
  type UIMessage,
} from 'ai'
import { describe, expect, it } from 'vitest'
import { ECHO, ECHO_TOOL, GATE, PAYING } from '../testing/documents.ts'
import { helped, SAID } from '../testing/helped.ts'
import { framesOf, served } from '../testing/served.ts'

const said = (text: string): UIMessage => ({ id: `u-${text}`, role: 'user', parts: [{ type: 'text', text }] })

/** Sends a chat as the AI SDK does, and hands back the message that came of it. */
async function send(url: string, messages: UIMessage[]): Promise<UIMessage> {
  const transport = new DefaultChatTransport({ api: `${url}/v1/ai-sdk/helper` })
  const request = {
    chatId: 'chat-1',
    messages,
    messageId: undefined,
    abortSignal: undefined,
    trigger: 'submit-message' as const,
  }
  const stream = await transport.sendMessages(request)
  const last = messages.at(-1)
  const message = last?.role === 'assistant' ? structuredClone(last) : undefined
  let whole: UIMessage | undefined
  for await (const each of readUIMessageStream({
    stream,
    ...(message === undefined ? {} : { message }),
    terminateOnError: true,
  }))
    whole = each
  return whole as UIMessage
}

const toolPart = ({ parts }: UIMessage) => parts.find(isToolUIPart)
const textIn = ({ parts }: UIMessage) => parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('')

describe('a DefaultChatTransport of the AI SDK', () => {
  it('hears what an agent says and which tools it calls', async () => {
    const { url } = await helped()
    const message = await send(url, [said('Pay ten.')])
    expect(textIn(message)).toBe(SAID)
    expect(toolPart(message)).toMatchObject({
      type: 'dynamic-tool',
      toolName: 'pay',
      toolCallId: 'call_7',
      state: 'output-available',
      input: { said: 'ten' },
      output: { said: 'ten' },
    })
  })

  it.each([
    { approved: true, state: 'output-available' },
    { approved: false, state: 'output-denied' },
  ])('is asked for an approval, and goes on when it is $approved', async ({ approved, state }) => {
    const { url, get } = await helped({ isGated: true })
    const asked = await send(url, [said('Pay ten.')])
    const [ask] = (await get('/v1/asks')).body.asks
    expect(toolPart(asked)).toMatchObject({
      state: 'approval-requested',
      toolCallId: 'call_7',
      approval: { id: ask.id },
    })
    const answered = structuredClone(asked)
    Object.assign(toolPart(answered) as object, { state: 'approval-responded', approval: { id: ask.id, approved } })
    expect(lastAssistantMessageIsCompleteWithApprovalResponses({ messages: [answered] })).toBe(true)

    const done = await send(url, [said('Pay ten.'), answered])
    expect(done.id).toBe(asked.id)
    expect(done.parts.filter(isToolUIPart)).toMatchObject([{ state, toolCallId: 'call_7' }])
    expect(textIn(done)).toBe(SAID)
    expect(lastAssistantMessageIsCompleteWithApprovalResponses({ messages: [done] })).toBe(false)
    expect((await get('/v1/asks')).body.asks).toEqual([])
  })
})

describe('POST /v1/ai-sdk/:flow', () => {
  const chat = (more: object = {}) => ({ id: 'c', messages: [said('ten')], trigger: 'submit-message', ...more })
  const chunksOf = (body: string) => framesOf(body).map(({ data }) => data)

  it('streams with the header of the protocol, and ends with [DONE]', async () => {
    const { post } = await served({ 'flows/echo.json': ECHO })
    const { headers, text } = await post('/v1/ai-sdk/echo', chat())
    expect(headers.get('x-vercel-ai-ui-message-stream')).toBe('v1')
    expect(chunksOf(text).at(-1)).toBe('[DONE]')
    expect(text).toContain('{"type":"text-delta","id":')
  })

  it('takes an answer that is none of yes and no by the id of its question', async () => {
    const files = { 'flows/paying.json': PAYING, 'tools/pay': ECHO_TOOL, 'gate.mjs': GATE }
    const { post, get } = await served(files, (at) => ({ plugins: [at('gate.mjs')] }))
    await post('/v1/ai-sdk/paying', chat())
    const [ask] = (await get('/v1/asks')).body.asks
    const { text } = await post('/v1/ai-sdk/paying', chat({ answers: { [ask.id]: { approved: true } } }))
    expect(chunksOf(text).at(-2)).toBe('{"type":"finish","finishReason":"stop"}')
  })

  it('does not take a question of another chat for its own', async () => {
    const files = { 'flows/paying.json': PAYING, 'tools/pay': ECHO_TOOL, 'gate.mjs': GATE }
    const { post, get } = await served(files, (at) => ({ plugins: [at('gate.mjs')] }))
    await post('/v1/ai-sdk/paying', chat())
    const [ask] = (await get('/v1/asks')).body.asks
    const { status } = await post('/v1/ai-sdk/paying', chat({ id: 'd', answers: { [ask.id]: { approved: true } } }))
    expect(status).toBe(400)
  })
})
