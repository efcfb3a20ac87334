import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { LLMock } from '@copilotkit/aimock'
import { createRuntime } from '@sluice/core'
import { compileFlow, type FlowParts, type LlmConfig, loadFlow } from '@sluice/flow'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { chain } from '../testing/host.ts'
import { configuredModel } from './configured.ts'

let server: LLMock
beforeEach(async () => {
  server = new LLMock({ port: 0 })
  await server.start()
})
afterEach(() => server.stop())

const config = (more: Partial<LlmConfig> = {}): LlmConfig => ({
  type: 'OpenAiCompatibleConfig',
  id: 'm',
  name: 'mine',
  modelId: 'small',
  url: server.url,
  parameters: {},
  tls: {},
  ...more,
})
const ask = (model: LlmConfig, env: Readonly<Record<string, string | undefined>>) =>
  configuredModel(model, env).chat(
    { model: model.modelId, messages: [{ role: 'user', content: 'hello' }] },
    { signal: AbortSignal.timeout(10_000) },
  )

/** A server that says what key it was sent; the other one does not tell. */
async function keyServer(): Promise<{ readonly url: string; readonly keys: readonly unknown[] }> {
  const keys: unknown[] = []
  const http = createServer((request, response) => {
    keys.push(request.headers.authorization)
    response.setHeader('content-type', 'application/json')
    response.end(
      JSON.stringify({ choices: [{ message: { role: 'assistant', content: 'Hi.' }, finish_reason: 'stop' }] }),
    )
  })
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    http.close()
  })
  return { url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`, keys }
}

describe('the model of a document', () => {
  it('is asked at its url, which needs neither a path nor a scheme', async () => {
    server.onMessage('hello', { content: 'Hi.' })
    const { content } = await ask(config({ url: server.url.replace('http://', '') }), {})
    expect(content).toBe('Hi.')
  })

  it.each([
    { name: 'as written', more: { apiKey: 'k-1' }, sent: 'Bearer k-1' },
    { name: 'from the environment', more: { apiKey: '$MY_KEY' }, sent: 'Bearer k-2' },
    { name: 'OPENAI_API_KEY, where an OpenAiConfig has none', more: { type: 'OpenAiConfig' }, sent: 'Bearer k-3' },
    { name: 'none, where another has none', more: {}, sent: undefined },
  ])('is sent its key: $name', async ({ more, sent }) => {
    const { url, keys } = await keyServer()
    await ask(config({ url, ...more }), { MY_KEY: 'k-2', OPENAI_API_KEY: 'k-3' })
    expect(keys).toEqual([sent])
  })

  it.each([
    { name: 'not set', env: {} },
    { name: 'empty', env: { MY_KEY: '' } },
  ])('names the variable of its key when it is asked and that is $name, never before', async ({ env }) => {
    const model = config({ apiKey: '$MY_KEY' })
    expect(() => configuredModel(model, env)).not.toThrow()
    await expect(ask(model, env)).rejects.toMatchObject({
      code: 'MODEL_KEY_MISSING',
      message: 'model "mine" needs a key, and the environment variable MY_KEY is not set.',
    })
    expect(server.getRequests()).toEqual([])
  })

  it.each([
    { name: 'the responses API', more: { apiType: 'responses' as const }, says: 'asks for the responses API' },
    { name: 'a TLS file', more: { tls: { caFile: '/ca.pem' } }, says: 'names TLS files' },
    { name: 'an address that is none', more: { url: 'http://[bad' }, says: 'is no address' },
  ])('is refused before it is asked for what this release does not do: $name', async ({ more, says }) => {
    const refused = async () => ask(config(more), {})
    await expect(refused()).rejects.toMatchObject({ code: 'MODEL_CONFIG', message: expect.stringContaining(says) })
    expect(server.getRequests()).toEqual([])
  })

  it('is told the form of what a flow wants of it, in a way that lets outputs be left out', async () => {
    server.onMessage('How many', { content: '{"n":3}' })
    const document = chain({
      count: {
        component_type: 'LlmNode',
        prompt_template: 'How many?',
        llm_config: { component_type: 'OpenAiCompatibleConfig', name: 'mine', model_id: 'small', url: server.url },
        outputs: [
          { title: 'n', type: 'integer' },
          { title: 'why', type: 'string', default: 'none' },
        ],
      },
    })
    const parts = { model: (model: LlmConfig) => configuredModel(model, {}) } as FlowParts
    const { state } = await createRuntime().run(await compileFlow(await loadFlow(document), parts))
    expect(state).toEqual({ n: 3, why: 'none' })
    expect(server.getRequests()[0]?.body).toMatchObject({
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'count', strict: false, schema: { required: ['n'] } },
      },
    })
  })
})
