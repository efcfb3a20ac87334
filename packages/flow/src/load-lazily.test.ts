import { expect, it, vi } from 'vitest'
import { around, load, tool } from './document.fixture.ts'

const { loaded, note } = vi.hoisted(() => {
  const loaded = new Set<string>()
  const note = (name: string) => () => {
    loaded.add(name)
    return {}
  }
  return { loaded, note }
})
vi.mock('yaml', note('yaml'))
vi.mock('re2js', note('re2js'))
vi.mock('ajv', note('ajv'))
vi.mock('ajv/dist/2020.js', note('ajv'))

const document = around({
  component_type: 'ToolNode',
  tool: tool('lookup', { inputs: [{ title: 'id', type: 'string', default: 'x' }] }),
})

it('a flow in JSON, of plain types, loads neither a YAML parser nor a validator', async () => {
  await load(document)
  expect(loaded).toEqual(new Set())
})

it('a flow in YAML loads the parser', async () => {
  await expect(load(document, { format: 'yaml' })).rejects.toThrow()
  expect(loaded).toEqual(new Set(['yaml']))
})
