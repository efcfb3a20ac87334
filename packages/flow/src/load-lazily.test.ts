import { expect, it, vi } from 'vitest'
import { around, load, tool } from './document.fixture.ts'

const loaded = vi.hoisted(() => [] as string[])
vi.mock('yaml', () => (loaded.push('yaml'), {}))
vi.mock('ajv', () => (loaded.push('ajv'), {}))
vi.mock('ajv/dist/2020.js', () => (loaded.push('ajv'), {}))

it('a flow in JSON, of plain types, loads neither a YAML parser nor a validator', async () => {
  const inputs = [{ title: 'id', type: 'string', default: 'x' }]
  await load(around({ component_type: 'ToolNode', tool: tool('lookup', { inputs }) }))
  expect(loaded).toEqual([])
})
