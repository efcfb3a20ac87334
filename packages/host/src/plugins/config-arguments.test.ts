import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { folderOf } from '../testing/folder.ts'
import { parsePluginConfig } from './config-arguments.ts'

describe('--plugin-config', () => {
  it('takes JSON, or a file with it', () => {
    const file = join(folderOf({ 'limit.json': '{"usd":1}' }), 'limit.json')
    expect(parsePluginConfig(['Retry={"max":3,"mark":"a=b"}', `Limit=@${file}`])).toEqual({
      Retry: { max: 3, mark: 'a=b' },
      Limit: { usd: 1 },
    })
    expect(parsePluginConfig([])).toEqual({})
  })

  it.each([
    { name: 'no =', args: ['Retry'], why: '"Retry" is no setting; write <ComponentType>=<json>' },
    { name: 'no type', args: ['={}'], why: '"={}" is no setting' },
    { name: 'a type twice', args: ['A={}', 'A={}'], why: '"A" is given twice' },
    { name: 'a file that cannot be read', args: ['A=@/nowhere'], why: /settings of "A" cannot be read: ENOENT/ },
    { name: 'text that is not JSON', args: ['A={x}'], why: 'the setting of "A" is not JSON' },
    { name: 'JSON that is no object', args: ['A=[1]'], why: 'the setting of "A" is no JSON object' },
  ])('is refused with $name', ({ args, why }) => {
    expect(() => parsePluginConfig(args)).toThrow(why)
  })
})
