import { HttpAgent } from '@ag-ui/client'
import { describe, expect, it, vi } from 'vitest'
import { ECHO, ECHO_TOOL, GATE, PAYING } from '../testing/documents.ts'
import { helped, SAID } from '../testing/helped.ts'
import { framesOf, served } from '../testing/served.ts'

const input = (more: object = {}) => ({
  threadId: 't',
  runId: 'r',
  messages: [{ id: 'm', role: 'user', content: 'ten' }],
  tools: [],
  context: [],
  ...more,
})

const eventsOf = (body: string) => framesOf(body).map(({ data }) => JSON.parse(data))
const endOf = (body: string) => eventsOf(body).at(-1)

describe('an HttpAgent of @ag-ui/client', () => {
  it('hears what an agent says and which tools it calls, and holds the state', async () => {
    const { url } = await helped()
    const agent = new HttpAgent({ url: `${url}/v1/ag-ui/helper`, threadId: 'chat-1' })
    agent.addMessage({ id: 'u1', role: 'user', content: 'Pay ten.' })
    const { result, newMessages } = await agent.runAgent()
    expect(result).toEqual({ answer: SAID })
    expect(newMessages).toMatchObject([
      { role: 'assistant', toolCalls: [{ id: 'call_7', function: { name: 'pay', arguments: '{"said":"ten"}' } }] },
      { role: 'tool', toolCallId: 'call_7', content: '{"said":"ten"}' },
      { role: 'assistant', content: SAID },
    ])
    expect(agent.state).toEqual({ said: 'Pay ten.', answer: SAID })
  })

  it('is interrupted by a question, and goes on with its answer', async () => {
    const { url, get } = await helped({ isGated: true })
    const agent = new HttpAgent({ url: `${url}/v1/ag-ui/helper`, threadId: 'chat-1' })
    agent.addMessage({ id: 'u1', role: 'user', content: 'Pay ten.' })
    const ended: unknown[] = []
    const subscriber = { onRunFinishedEvent: ({ event }: { event: object }) => void ended.push(event) }
    await agent.runAgent({}, subscriber)
    const [ask] = (await get('/v1/asks')).body.asks
    expect(ended).toMatchObject([
      {
        outcome: {
          type: 'interrupt',
          interrupts: [{ id: ask.id, reason: 'tool_call', toolCallId: 'call_7', responseSchema: ask.schema }],
        },
      },
    ])
    const { result, newMessages } = await agent.runAgent(
      { resume: [{ interruptId: ask.id, status: 'resolved', payload: { approved: true } }] },
      subscriber,
    )
    expect(result).toEqual({ answer: SAID })
    expect(newMessages.map(({ role }) => role)).toEqual(['tool', 'assistant'])
    expect(ended[1]).toMatchObject({ threadId: 'chat-1', outcome: { type: 'success' } })
  })

  it('is told of an error before the stream with the status of it', async () => {
    const { url } = await helped()
    vi.spyOn(console, 'error').mockImplementation(() => {})
    const agent = new HttpAgent({ url: `${url}/v1/ag-ui/nobody`, threadId: 'chat-1' })
    await expect(agent.runAgent()).rejects.toMatchObject({ status: 404 })
  })
})

describe('POST /v1/ag-ui/:flow', () => {
  const files = { 'flows/paying.json': PAYING, 'tools/pay': ECHO_TOOL, 'gate.mjs': GATE }
  const gated = () => served(files, (at) => ({ plugins: [at('gate.mjs')] }))

  it.each([
    { name: 'the last text of the user', body: {}, said: 'ten' },
    { name: 'an input by name before that', body: { forwardedProps: { inputs: { said: 'named' } } }, said: 'named' },
    {
      name: 'the state where nothing else says it',
      body: { messages: [], state: { said: 'state', other: 1 } },
      said: 'state',
    },
  ])('gives the flow $name', async ({ body, said }) => {
    const { post } = await served({ 'flows/echo.json': ECHO })
    const { text } = await post('/v1/ag-ui/echo', input(body))
    expect(endOf(text)).toMatchObject({ type: 'RUN_FINISHED', threadId: 't', runId: 'r', result: { said } })
  })

  it('refuses a message of the user that has more than text', async () => {
    const { post } = await served({ 'flows/echo.json': ECHO })
    const content = [{ type: 'image', source: { type: 'url', value: 'https://example.com/a.png' } }]
    const { status, body } = await post('/v1/ag-ui/echo', input({ messages: [{ id: 'm', role: 'user', content }] }))
    expect([status, body.error.code]).toEqual([400, 'REQUEST_INVALID'])
    expect(body.error.message).toContain('image')
  })

  it('takes a cancelled interrupt for a no where its schema has one', async () => {
    const { post } = await gated()
    const { outcome } = endOf((await post('/v1/ag-ui/paying', input())).text)
    const [{ id: interruptId }] = outcome.interrupts
    const { text } = await post('/v1/ag-ui/paying', input({ resume: [{ interruptId, status: 'cancelled' }] }))
    expect(endOf(text)).toMatchObject({ type: 'RUN_ERROR', message: expect.stringContaining('a person said no') })
  })

  it('takes several answers at once', async () => {
    const { post, get } = await helped({ isGated: true, calls: ['call_7', 'call_8'] })
    const { interrupts } = endOf((await post('/v1/ag-ui/helper', input())).text).outcome
    expect(interrupts).toHaveLength(2)
    const [one, other] = interrupts.map(({ id }: { id: string }) => id)
    const resume = [
      { interruptId: one, status: 'resolved', payload: { approved: true } },
      { interruptId: other, status: 'cancelled' },
    ]
    const { text } = await post('/v1/ag-ui/helper', input({ resume }))
    const results = eventsOf(text).filter(({ type }) => type === 'TOOL_CALL_RESULT')
    expect(results.map(({ content }) => content).sort()).toEqual(['Refused: a person said no', '{"said":"ten"}'])
    expect(endOf(text)).toMatchObject({ type: 'RUN_FINISHED', result: { answer: SAID } })
    expect((await get('/v1/asks')).body.asks).toEqual([])
    const again = await post('/v1/ag-ui/helper', input({ resume }))
    expect([again.status, again.body.error.code]).toEqual([409, 'ASK_ANSWERED'])
  })

  it.each([
    {
      name: 'an unknown interrupt',
      resume: { interruptId: 'x', status: 'resolved' },
      status: 404,
      code: 'ASK_UNKNOWN',
    },
    { name: 'an answer that does not fit', payload: { approved: 'yes' }, status: 422, code: 'ANSWER_INVALID' },
    {
      name: 'an interrupt of another thread',
      threadId: 'other',
      payload: { approved: true },
      status: 400,
      code: 'REQUEST_INVALID',
    },
  ])('refuses $name', async ({ resume, payload, threadId = 't', status, code }) => {
    const { post } = await gated()
    const { outcome } = endOf((await post('/v1/ag-ui/paying', input())).text)
    const answer = resume ?? { interruptId: outcome.interrupts[0].id, status: 'resolved', payload }
    const refused = await post('/v1/ag-ui/paying', input({ threadId, resume: [answer] }))
    expect([refused.status, refused.body.error.code]).toEqual([status, code])
  })
})
