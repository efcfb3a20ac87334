import { LLMock } from '@copilotkit/aimock'
import {
  agentNode,
  createRuntime,
  END,
  graph,
  messages,
  modelNode,
  policy,
  type RunEvent,
  START,
  state,
  tool,
} from '@sluice/core'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { openAiCompatible } from './provider.ts'

const Conversation = state({ messages: messages() })
const ask = (content: string) => ({ messages: [{ role: 'user' as const, content }] })

let server: LLMock
beforeEach(async () => {
  server = new LLMock({ port: 0 })
  await server.start()
})
afterEach(() => server.stop())

const model = () => openAiCompatible({ model: 'gpt-test', url: `${server.url}/v1`, apiKey: 'key' })
const requests = () => server.getRequests()

function oneModel() {
  const answer = modelNode('answer', Conversation, { model: model() })
  return graph('plain', Conversation).edge(START, answer).edge(answer, END).check()
}

const retryOn429 = policy({
  name: 'RateLimit',
  seams: {
    modelCall: {
      after: ({ outcome }) =>
        !outcome.ok && /^429 Too Many Requests/.test(outcome.error.message) ? { action: 'retry' } : { action: 'pass' },
    },
  },
})

describe('a model behind an OpenAI-compatible API', () => {
  it('answers, and says what it used', async () => {
    server.onMessage('hello', { content: 'Hi there.' })
    const response = await model().chat({ model: 'gpt-test', ...ask('hello') }, { signal: AbortSignal.timeout(10_000) })
    expect(response).toMatchObject({ content: 'Hi there.', finish_reason: 'stop' })
    expect(response.usage?.totalTokens).toBeGreaterThan(0)
  })

  it('streams to whoever listens, and the pieces are the whole', async () => {
    server.onMessage('hello', { content: 'One two three four five six seven eight nine ten.' })
    const events: RunEvent[] = []
    for await (const event of createRuntime().stream(oneModel(), ask('hello'))) events.push(event)
    const tokens = events.filter((event) => event.type === 'token').map((event) => event.text)
    expect(tokens.length).toBeGreaterThan(1)
    expect(tokens.join('')).toBe('One two three four five six seven eight nine ten.')
    expect(events.at(-1)).toMatchObject({ type: 'run_end', status: 'completed' })
  })

  it('is given the results of the tools it asked for, in one conversation that the provider accepts', async () => {
    server.addFixture({
      match: { userMessage: 'weather', hasToolResult: false },
      response: { toolCalls: [{ name: 'weather', arguments: '{"city":"Bern"}' }] },
    })
    server.addFixture({
      match: { userMessage: 'weather', hasToolResult: true },
      response: { content: 'Sunny in Bern.' },
    })
    const weather = tool('weather', {
      description: 'The weather.',
      input: z.object({ city: z.string() }),
      run: ({ city }) => ({ city, sky: 'sunny' }),
    })
    const agent = agentNode('agent', Conversation, { model: model(), tools: [weather] })
    const { state: end } = await createRuntime().run(
      graph('agent', Conversation).edge(START, agent).edge(agent, END).check(),
      ask('weather in Bern?'),
    )
    expect(end.messages.map((message) => [message.role, message.content])).toEqual([
      ['user', 'weather in Bern?'],
      ['assistant', ''],
      ['tool', '{"city":"Bern","sky":"sunny"}'],
      ['assistant', 'Sunny in Bern.'],
    ])
  })

  it('fails with the status first, and asks once for one call: no retry is hidden (Z21)', async () => {
    server.nextRequestError(429, { message: 'slow down' })
    await expect(createRuntime().run(oneModel(), ask('hello'))).rejects.toMatchObject({
      code: 'MODEL_HTTP',
      message: expect.stringMatching(/^429 Too Many Requests: .*slow down/),
    })
    expect(requests()).toHaveLength(1)
  })

  it('has no key in its errors, though the provider quotes it', async () => {
    const keyed = openAiCompatible({ model: 'gpt-test', url: `${server.url}/v1`, apiKey: 'sk-MARKER-1' })
    const request = { model: 'gpt-test', ...ask('hello') }
    const said = { code: 'MODEL_HTTP', message: expect.stringMatching(/^401 .*wrong key \[key\]/) }
    const signal = AbortSignal.timeout(10_000)
    server.nextRequestError(401, { message: 'wrong key sk-MARKER-1' })
    await expect(keyed.chat(request, { signal })).rejects.toMatchObject(said)
    server.nextRequestError(401, { message: 'wrong key sk-MARKER-1' })
    const parts = keyed.stream?.(request, { signal })[Symbol.asyncIterator]()
    await expect(parts?.next()).rejects.toMatchObject(said)
  })

  it('is asked again by a policy that retries a 429', async () => {
    server.nextRequestError(429, { message: 'slow down' })
    server.onMessage('hello', { content: 'Here you are.' })
    const runtime = createRuntime({ policies: [retryOn429] })
    const outcome = await runtime.run(oneModel(), ask('hello'))
    expect(outcome.state.messages.at(-1)?.content).toBe('Here you are.')
    expect(outcome.warnings[0]?.message).toContain('attempt 1 of 3')
    expect(requests()).toHaveLength(2)
  })

  it('that cannot be reached says so', async () => {
    const url = server.url
    await server.stop()
    const gone = openAiCompatible({ model: 'gpt-test', url })
    await expect(
      gone.chat({ model: 'gpt-test', ...ask('hello') }, { signal: AbortSignal.timeout(10_000) }),
    ).rejects.toMatchObject({ code: 'MODEL_UNREACHABLE' })
    await server.start()
  })

  it('is the model that the request names, after policies have had their say', async () => {
    server.onMessage('hello', { content: 'Hi.' })
    const cheaper = policy({
      name: 'Cheaper',
      seams: { modelCall: { before: () => ({ action: 'modify', input: { model: 'small' } }) } },
    })
    await createRuntime({ policies: [cheaper] }).run(oneModel(), ask('hello'))
    expect(requests().map(({ body }) => (body as { model?: string } | null)?.model)).toEqual(['small'])
  })

  it('refuses an address with a password in it, and does not quote it', () => {
    const secret = () => openAiCompatible({ model: 'gpt-test', url: 'http://user:secretpw@localhost/v1' })
    expect(secret).toThrow(/give the key as api_key/)
    expect(secret).not.toThrow(/secretpw/)
  })

  it.each(['http://', 'http://[bad'])('refuses the address %s at once', (url) => {
    expect(() => openAiCompatible({ model: 'gpt-test', url })).toThrow(/is no address/)
  })
})
