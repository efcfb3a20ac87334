import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { flowOf, text, toolNode } from '../testing/documents.ts'
import { served } from '../testing/served.ts'

/** A model that says "Hi.", and notes what it was sent. */
async function model() {
  const asked: IncomingHttpHeaders[] = []
  const server = createServer((request, response) => {
    asked.push(request.headers)
    response.setHeader('content-type', 'text/event-stream')
    response.end('data: {"choices":[{"index":0,"delta":{"content":"Hi."},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  return { asked, host, url: `http://${host}/v1` }
}

const asking = (config: object) =>
  flowOf({
    nodes: {
      ask: {
        component_type: 'LlmNode',
        prompt_template: 'Hello.',
        llm_config: { component_type: 'OpenAiConfig', id: 'm', name: 'm', model_id: 'small', ...config },
      },
    },
    outputs: [text('generated_text')],
  })
const env = { PATH: process.env.PATH, OPENAI_API_KEY: 'sk-operator' }

describe('a model of a document that comes with a request', () => {
  it('is not asked at an address of this network, and the caller is told so before anything runs', async () => {
    const { asked, url } = await model()
    const { post } = await served()
    for (const path of ['/v1/runs', '/v1/validate']) {
      const { status, body } = await post(path, { flow: asking({ url }) })
      expect(status).toBe(400)
      expect(body.error).toMatchObject({ code: 'MODEL_ADDRESS' })
    }
    expect(asked).toEqual([])
  })

  it('is asked where the operator has opened that, and never with the operator’s key (Q11)', async () => {
    const { asked, host, url } = await model()
    const { post } = await served({}, () => ({ allowNet: [host], env }))
    const { body } = await post('/v1/runs', { flow: asking({ url }) })
    expect(body).toMatchObject({ status: 'completed', result: { generated_text: 'Hi.' } })
    await post('/v1/runs', { flow: asking({ url, api_key: 'sk-own-key' }) })
    expect(asked.map(({ authorization }) => authorization)).toEqual([undefined, 'Bearer sk-own-key'])
  })

  it('has no key of this machine’s environment, and is not told whether there is one (Q11)', async () => {
    const { host, url } = await model()
    const { post } = await served({}, () => ({ allowNet: [host], env }))
    const answers = await Promise.all(
      ['OPENAI_API_KEY', 'NO_SUCH_KEY'].map((name) => post('/v1/runs', { flow: asking({ url, api_key: `$${name}` }) })),
    )
    expect(answers.map(({ status, body }) => [status, body.error.code])).toEqual([
      [400, 'FLOW_ENVIRONMENT'],
      [400, 'FLOW_ENVIRONMENT'],
    ])
  })

  it('that does not fit this release is the caller’s to mend', async () => {
    const { post } = await served()
    const { status, body } = await post('/v1/runs', { flow: asking({ api_type: 'responses' }) })
    expect([status, body.error.code]).toEqual([400, 'MODEL_CONFIG'])
  })

  it('of the operator’s own flows is asked wherever it is, with the operator’s key', async () => {
    const { asked, url } = await model()
    const { post } = await served({ 'flows/asking.json': asking({ url }) }, () => ({ env }))
    expect((await post('/v1/runs', { flow: 'asking' })).body).toMatchObject({ status: 'completed' })
    expect(asked.map(({ authorization }) => authorization)).toEqual(['Bearer sk-operator'])
  })
})

describe('another way out of a document', () => {
  const request = { url: 'http://127.0.0.1/', http_method: 'GET' }
  const toolOf = (tool: object) => ({
    ...toolNode('out'),
    tool: { id: 'out', name: 'out', description: 'A way out.', inputs: [], outputs: [], ...tool },
  })
  const transport = { component_type: 'SSETransport', id: 't', name: 't', url: 'http://127.0.0.1/sse' }

  it.each([
    { name: 'ApiNode', node: { component_type: 'ApiNode', ...request } },
    { name: 'RemoteTool', node: toolOf({ component_type: 'RemoteTool', ...request }) },
    { name: 'MCPTool', node: toolOf({ component_type: 'MCPTool', client_transport: transport }) },
  ])('is not built yet, and refused: $name', async ({ name, node }) => {
    const { post } = await served()
    const { status, body } = await post('/v1/validate', { flow: flowOf({ nodes: { out: node } }) })
    expect(status).toBe(400)
    expect(JSON.stringify(body.error.faults)).toContain(name)
    expect(body.error.faults.map(({ code }: { code: string }) => code)).toContain('FLOW_TYPE_UNSUPPORTED')
  })
})
