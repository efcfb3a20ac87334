import { expect, it, vi } from 'vitest'
import { around, load, tool } from './document.fixture.ts'

const loaded = vi.hoisted(() => new Set<string>())
const note = (name: string) => () => {
  loaded.add(name)
  return {}
}
vi.mock('yaml', note('yaml'))
vi.mock('ajv', note('ajv'))
vi.mock('ajv/dist/2020.js', note('ajv'))

it('a flow in JSON, of plain types, loads neither a YAML parser nor a validator', async () => {
  const inputs = [{ title: 'id', type: 'string', default: 'x' }]
  await load(around({ component_type: 'ToolNode', tool: tool('lookup', { inputs }) }))
  expect(loaded).toEqual(new Set())
})
