import { LLMock } from '@copilotkit/aimock'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { chain, fileOf, hostOf, pluginFolder, runOn, text } from '../testing/host.ts'
import { builtRuntime } from '../testing/runtime.ts'

const runtime = builtRuntime()
const judge = () =>
  pluginFolder(
    `serve({ Judge: { node: { before: async ({ subject, input }, ctx) => {
       if (subject.nodeType !== 'EndNode') return { action: 'proceed' }
       const { content } = await ctx.callModel({ messages: [{ role: 'user', content: 'Is this rude? ' + input.said }] })
       return content === 'yes' ? { action: 'reject', reason: 'rude' } : { action: 'proceed' }
     } } } })`,
    {
      capabilities: ['callModel'],
      components: [{ componentType: 'Judge', kind: 'middleware', seams: { node: ['before'] } }],
    },
  )

let server: LLMock
beforeEach(async () => {
  server = new LLMock({ port: 0 })
  await server.start()
  server.onMessage('Is this rude? dear sir', { content: 'no' })
  server.onMessage('Is this rude? you fool', { content: 'yes' })
})
afterEach(() => server.stop())

const flow = () => fileOf(chain({}, [text('said')]))
const settings = (more: object = {}) => [
  `Judge=${JSON.stringify({ llm_config: { component_type: 'OpenAiCompatibleConfig', model_id: 'small', url: `${server.url}/v1`, api_key: '$JUDGE_KEY', ...more } })}`,
]

describe("the llm_config in a policy's settings (E10)", () => {
  it('is the model that it asks, with its key from the environment of the host', async () => {
    const host = await hostOf({
      plugins: [judge().manifest],
      pluginConfig: settings(),
      env: { JUDGE_KEY: 'k-123' },
      runtime,
    })
    expect(await runOn(host, flow(), { said: 'dear sir' })).toMatchObject({ status: 'completed' })
    const { error } = await runOn(host, flow(), { said: 'you fool' })
    expect(error).toMatchObject({ message: expect.stringContaining('rude') })
    const [asked] = server.getRequests()
    expect(asked?.body).toMatchObject({ model: 'small' })
  })

  it('whose key is not set is named when the policy asks, and not before', async () => {
    const host = await hostOf({ plugins: [judge().manifest], pluginConfig: settings(), env: {}, runtime })
    const { error } = await runOn(host, flow(), { said: 'dear sir' })
    expect(error).toMatchObject({ name: 'MiddlewareError', message: expect.stringContaining('JUDGE_KEY') })
    expect(server.getRequests()).toEqual([])
  })

  it('has parameters that stand where the policy says nothing', async () => {
    const host = await hostOf({
      plugins: [judge().manifest],
      pluginConfig: settings({ default_generation_parameters: { temperature: 0, max_tokens: 5, seed: 1 } }),
      env: { JUDGE_KEY: 'k' },
      runtime,
    })
    await runOn(host, flow(), { said: 'dear sir' })
    expect(server.getRequests()[0]?.body).toMatchObject({ temperature: 0, max_tokens: 5 })
  })

  it.each([
    { name: 'names no model', more: { model_id: undefined }, says: 'needs a "model_id"' },
    {
      name: 'is of another type',
      more: { component_type: 'GeminiConfig' },
      says: 'has the component_type "GeminiConfig"',
    },
    { name: 'does not say where its own machine is', more: { url: undefined }, says: 'needs a "url"' },
  ])('is refused with the settings when it $name', async ({ more, says }) => {
    const options = { plugins: [judge().manifest], pluginConfig: settings(more), runtime }
    await expect(hostOf(options)).rejects.toMatchObject({
      code: 'MODEL_CONFIG',
      message: expect.stringContaining(says),
    })
  })

  it('a policy without one cannot ask', async () => {
    const host = await hostOf({ plugins: [judge().manifest], runtime })
    const { error } = await runOn(host, flow(), { said: 'dear sir' })
    expect(error).toMatchObject({ name: 'MiddlewareError', message: expect.stringContaining('llm_config') })
  })
})
