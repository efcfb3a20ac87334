import { describe, expect, it } from 'vitest'
import { agent, llm, pluginTypes, ref, tool } from '../document.fixture.ts'
import { loadDocument } from '../load.ts'
import { environmentName } from './environment.ts'

const plugins = pluginTypes({ Stub: { kind: 'provider', plugin: 'stub', version: '1.0.0' } })

async function environmentOf(document: unknown) {
  return (await loadDocument(JSON.stringify(document), { plugins })).environment
}

describe('O7: a variable of the environment', () => {
  it('is named by "api_key", once each, with the first place', async () => {
    const document = {
      ...agent({ llm_config: llm({ api_key: '$A' }) }),
      $referenced_components: { other: llm({ api_key: '$A' }), third: llm({ api_key: '$B' }) },
    }
    expect(await environmentOf(document)).toEqual([
      { name: 'A', path: '$.llm_config.api_key' },
      { name: 'B', path: '$.$referenced_components.third.api_key' },
    ])
  })

  it('is named by "apiKey" anywhere inside a plugin\'s component', async () => {
    const document = agent({ llm_config: { component_type: 'Stub', name: 's', deep: [{ apiKey: '$DEEP' }] } })
    expect(await environmentOf(document)).toEqual([{ name: 'DEEP', path: '$.llm_config.deep[0].apiKey' }])
  })

  it('is named through a reference', async () => {
    const document = {
      ...agent({ llm_config: llm({ api_key: ref('key') }) }),
      $referenced_components: { key: '$SHARED' },
    }
    expect(await environmentOf(document)).toMatchObject([{ name: 'SHARED' }])
  })

  it('is named nowhere else', async () => {
    const document = agent({
      system_prompt: '$HOME',
      llm_config: llm({ url: '$URL', api_key: 'sk-literal', metadata: { api_key: '$META' } }),
      tools: [tool('$TOOL', { inputs: [{ title: 'api_key', type: 'string', default: '$DEFAULT' }] })],
    })
    expect(await environmentOf(document)).toEqual([])
  })

  it.each([
    { value: '$NAME', name: 'NAME' },
    { value: '$_a1', name: '_a1' },
    { value: 'NAME', name: undefined },
    { value: '$1', name: undefined },
    { value: '$NAME ', name: undefined },
    { value: 'x$NAME', name: undefined },
    { value: 5, name: undefined },
  ])('is written $value -> $name', ({ value, name }) => expect(environmentName(value)).toBe(name))
})
