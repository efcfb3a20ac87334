import { describe, expect, it } from 'vitest'
import { ECHO, ECHO_TOOL, flowOf, GATE, PAYING, toolNode } from '../testing/documents.ts'
import { served } from '../testing/served.ts'

const manifest = {
  name: 'mine',
  version: '1.0.0',
  capabilities: [],
  components: [{ componentType: 'Mine', kind: 'middleware', seams: { toolCall: ['before'] } }],
}
const source = "serve({ Mine: { toolCall: { before: () => ({ action: 'proceed' }) } } })"
const plugin = { name: 'mine', manifest, source }
const node = (component: object) => flowOf({ nodes: { mine: component } })

/** A server with a gate before the tool `pay`. */
const gated = () =>
  served({ 'tools/pay': ECHO_TOOL, 'gate.mjs': GATE, 'flows/paying.json': PAYING }, (at) => ({
    plugins: [at('gate.mjs')],
  }))

describe('code that comes with a request', () => {
  it.each([
    { name: 'tools', body: { tools: [{ name: 'mine', source: '#!/bin/sh' }] } },
    { name: 'plugins', body: { plugins: [plugin] } },
    { name: 'files', body: { files: [{ path: 'a', content: 'b' }] } },
    { name: 'an empty list of it', body: { plugins: [] } },
    { name: 'nothing, under its name', body: { tools: null } },
  ])('is refused with the reason, and nothing runs: $name (Q9)', async ({ body }) => {
    const { post, get } = await served({ 'flows/echo.json': ECHO })
    for (const path of ['/v1/runs', '/v1/validate']) {
      const answer = await post(path, { flow: 'echo', ...body })
      expect([answer.status, answer.body.error.code]).toEqual([400, 'REQUEST_CODE'])
      expect(answer.body.error.message).toContain(`"${Object.keys(body)[0]}" brings code`)
    }
    expect((await get('/v1/threads')).body).toEqual({ threads: [] })
  })

  it.each([
    { name: 'a plugin in the body', body: { flow: 'paying', plugins: [plugin] } },
    { name: 'a plugin under another name', body: { flow: 'paying', plugin } },
    { name: 'middleware in the body', body: { flow: 'paying', middleware: [plugin] } },
    { name: 'a policy in the body', body: { flow: 'paying', policies: 'sluice.yaml' } },
    { name: 'settings of an installed policy', body: { flow: 'paying', pluginConfig: { Gate: { off: true } } } },
    { name: 'a manifest for a flow', body: { flow: manifest } },
    { name: 'a manifest as the text of a flow', body: { flow: JSON.stringify(manifest), format: 'json' } },
    { name: 'an installed policy as a node', body: { flow: node({ component_type: 'Gate' }) } },
    {
      name: 'an installed policy as the tool of a node',
      body: { flow: node({ component_type: 'ToolNode', tool: { component_type: 'Gate', name: 'g' } }) },
    },
    { name: 'a policy of its own as a node', body: { flow: node({ component_type: 'Mine', ...manifest }) } },
    { name: 'middleware in a document', body: { flow: { ...ECHO, middleware: [plugin] } } },
    { name: 'plugins in a document', body: { flow: { ...ECHO, plugins: [plugin] } } },
    {
      name: 'a policy among the definitions of a document',
      body: {
        flow: {
          ...ECHO,
          $referenced_components: {
            ...(ECHO as never as { $referenced_components: object }).$referenced_components,
            mine: { component_type: 'Gate', id: 'mine', name: 'mine' },
          },
        },
      },
    },
  ])('is no policy in any disguise: $name', async ({ body }) => {
    const { post, get } = await gated()
    const installed = (await get('/v1/capabilities')).body.middleware
    const { status, body: said } = await post('/v1/runs', { inputs: {}, ...body })
    expect([status, said.error.code]).toEqual([400, expect.stringMatching(/^(REQUEST|FLOW)_/)])
    expect((await get('/v1/capabilities')).body.middleware).toEqual(installed)
    expect((await post('/v1/runs', { flow: 'paying', inputs: { said: 'x' } })).body.status).toBe('paused')
  })

  it('is no tool either: a document uses the tools that are installed, past the policies', async () => {
    const { post } = await gated()
    const { body } = await post('/v1/runs', { flow: PAYING, inputs: { said: 'x' } })
    expect(body).toMatchObject({ status: 'paused', asks: [{ askedBy: 'policy:Gate' }] })
    const unknown = await post('/v1/runs', { flow: node(toolNode('mine')) })
    expect(unknown.status).toBe(400)
  })
})
