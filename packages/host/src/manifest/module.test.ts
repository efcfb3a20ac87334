import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { folderOf } from '../testing/folder.ts'
import { readModule } from './module.ts'

const GATE = { componentType: 'Gate', kind: 'middleware', seams: { toolCall: ['before'] } }
const MANIFEST = { name: 'p', version: '1', components: [GATE] }

const read = (text: string, files: Readonly<Record<string, string>> = {}) =>
  readModule(join(folderOf({ 'p.mjs': text, ...files }), 'p.mjs'))
const exporting = (manifest: object, rest = 'handlers: {}') =>
  `export default { manifest: ${JSON.stringify(manifest)}, ${rest} }`

describe('a plugin in a module', () => {
  it('has the manifest and the handlers of its default export, and no process to start', async () => {
    const read1 = await read(exporting(MANIFEST, 'handlers: { Gate: { toolCall: { before() {} } } }'))
    expect(read1).toMatchObject({ name: 'p', components: [GATE], module: { handlers: { Gate: expect.anything() } } })
    expect(read1.start).toBeUndefined()
  })

  it('may have tools that are programs of its folder, and is warned about slips', async () => {
    const tools = [{ name: 't', path: './t.sh' }]
    const { folder, ...manifest } = await read(exporting({ ...MANIFEST, tools, autor: 'me' }), {
      't.sh': '#!/bin/sh\n',
    })
    expect(manifest.tools[0]?.path).toBe(join(folder, 't.sh'))
    expect(manifest.warnings).toEqual([expect.stringContaining('autor is no field')])
  })

  it.each([
    { name: 'middleware without seams (E1)', manifest: { components: [{ ...GATE, seams: undefined }] }, why: 'seams' },
    {
      name: 'seams on a node (E2)',
      manifest: { components: [{ ...GATE, kind: 'node' }] },
      why: 'seams does not belong to a node',
    },
    {
      name: 'an unknown seam (E3)',
      manifest: { components: [{ ...GATE, seams: { toolResult: ['after'] } }] },
      why: 'subscribes to "toolResult", a seam that does not exist; seams are: run, node, nodeError',
    },
    {
      name: 'before of nodeError (E4)',
      manifest: { components: [{ ...GATE, seams: { nodeError: ['before'] } }] },
      why: 'subscribes to nodeError.before, a half that does not exist; nodeError has: after',
    },
    {
      name: 'a type named like a member of every object (E11)',
      manifest: { components: [{ ...GATE, componentType: 'constructor' }] },
      why: 'a name that every JavaScript object has',
    },
    { name: 'an unknown capability (L11)', manifest: { capabilities: ['shell'] }, why: 'capabilities[0] is "shell"' },
    { name: 'files (M7)', manifest: { files: [] }, why: 'files are not supported' },
    {
      name: 'a command',
      manifest: { command: ['node'] },
      why: 'command is for a program; a module runs in this process',
    },
  ])('is refused like any manifest (E5, M6): $name', async ({ manifest, why }) => {
    await expect(read(exporting({ ...MANIFEST, ...manifest }))).rejects.toMatchObject({
      name: 'PluginError',
      code: 'PLUGIN_MANIFEST',
      message: expect.stringContaining(why),
    })
  })

  it.each([
    {
      name: 'handlers that are no object',
      rest: 'handlers: []',
      why: '"handlers" beside the manifest must be an object',
    },
    { name: 'tools that are a list', rest: 'tools: []', why: '"tools" beside the manifest must be an object' },
    { name: 'a listTools that is a list', rest: 'listTools: []', why: '"listTools" must be a function' },
    { name: 'a shutdown that is none', rest: 'shutdown: 1', why: '"shutdown" must be a function' },
  ])('is refused with $name', async ({ rest, why }) => {
    await expect(read(exporting(MANIFEST, rest))).rejects.toMatchObject({
      code: 'PLUGIN_MANIFEST',
      message: expect.stringContaining(why),
    })
  })

  it.each([
    { name: 'no default export', text: 'export const manifest = {}', why: 'exports no plugin' },
    { name: 'a manifest alone', text: 'export default { name: "p" }', why: 'exports no plugin' },
    { name: 'a manifest with a function', text: exporting({}).replace('{}', '{ schema() {} }'), why: 'no file could' },
    { name: 'what is no program', text: 'export default {', why: 'cannot be imported: ' },
    { name: 'what throws', text: 'throw new Error("no licence")', why: 'cannot be imported: no licence' },
  ])('is refused when it has $name', async ({ text, why }) => {
    const refused = read(text)
    await expect(refused).rejects.toMatchObject({ code: 'PLUGIN_MODULE', message: expect.stringContaining(why) })
  })

  it('is refused when it is not there', async () => {
    await expect(readModule(join(folderOf({}), 'gone.mjs'))).rejects.toThrow('gone.mjs does not exist')
  })

  it('is not run when it is the program of a manifest: that would take the stdin of the host for its wire', async () => {
    const program = read('globalThis.ran = true', { 'p.json': '{}' })
    await expect(program).rejects.toThrow(/is the program of .*p\.json; name that/)
    expect(globalThis).not.toHaveProperty('ran')
  })
})
