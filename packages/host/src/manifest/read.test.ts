import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { liveChildren } from '../child/child.ts'
import { folderOf } from '../testing/folder.ts'
import { readContent } from './check.ts'
import { Faults } from './faults.ts'
import { readManifest } from './read.ts'

const runtime = () => 'file:///runtime.mjs'
const PROGRAM = { 'p.mjs': '' }
const ENCODER = { componentType: 'E', kind: 'encoder', protocol: 'ag-ui', contentType: 'text/event-stream' }
const GATE = { componentType: 'Gate', kind: 'middleware', seams: { toolCall: ['before'] } }

const read = (manifest: unknown, files: Readonly<Record<string, string>> = PROGRAM) =>
  readManifest(join(folderOf({ 'p.json': JSON.stringify(manifest), ...files }), 'p.json'), runtime)
const withComponent = (component: object) => read({ name: 'p', version: '1', components: [component] })
const withTool = (tool: object, files?: Readonly<Record<string, string>>) =>
  read({ name: 'p', version: '1', components: [GATE], tools: [tool] }, { ...PROGRAM, ...files })

describe('a manifest', () => {
  it('is read, and nothing is started (M1)', async () => {
    const manifest = await read({ name: 'p', version: '1', capabilities: ['log'], components: [GATE] })
    expect(manifest).toMatchObject({ name: 'p', version: '1', capabilities: ['log'], components: [GATE], tools: [] })
    expect(liveChildren()).toBe(0)
  })

  it('takes a component without a kind for a node, and a transform without a phase for one before the model', async () => {
    const components = [{ componentType: 'A' }, { componentType: 'B', kind: 'transform' }]
    expect(await read({ name: 'p', version: '1', components })).toMatchObject({
      components: [{ kind: 'node' }, { kind: 'transform', phase: 'pre' }],
    })
  })

  it('is warned about for each field that is none; a slip must not look like a setting', async () => {
    const components = [{ ...GATE, timeoutMs: 100, shema: {} }]
    const tools = [{ name: 't', componentType: 'Gate', hidden: true }]
    const { warnings } = await read({ name: 'p', version: '1', autor: 'me', components, tools })
    expect(warnings.map((warning) => warning.split(' is no field')[0])).toEqual([
      'autor',
      'components[0].timeoutMs',
      'components[0].shema',
      'tools[0].hidden',
    ])
    expect(warnings[1]).toContain('fields are: componentType, kind, schema, description, seams, stream, kept')
  })

  it('that was checked is right when it is checked again (M6)', () => {
    const content = {
      name: 'p',
      version: '1',
      components: [
        GATE,
        { componentType: 'N', inputs: [{ title: 'a', type: 'string' }], branches: ['x'], schema: {} },
        { componentType: 'P', kind: 'provider', stream: true },
        { componentType: 'C', kind: 'component' },
        { componentType: 'T', kind: 'transform', phase: 'both' },
        ENCODER,
      ],
      tools: [{ name: 't', componentType: 'N', inputSchema: { type: 'object' } }],
      discoverTools: true,
    }
    const once = readContent(content, new Faults())
    const faults = new Faults()
    expect(readContent(JSON.parse(JSON.stringify(once)), faults)).toEqual(once)
    expect(faults.list).toEqual([])
  })

  it('nested too deep is refused before anything walks it', async () => {
    const deep = `{"name":"p","version":"1","tools":[{"inputSchema":{"x":${'['.repeat(200_000)}${']'.repeat(200_000)}}}]}`
    const file = join(folderOf({ 'p.json': deep }), 'p.json')
    await expect(readManifest(file, runtime)).rejects.toMatchObject({
      code: 'PLUGIN_MANIFEST_FILE',
      message: expect.stringContaining('is nested deeper than 128 levels'),
    })
  })

  it('says all that is wrong with it at once', async () => {
    const manifest = { version: 2, capabilities: ['shell'], components: [{ componentType: 'a b', kind: 'gate' }, 3] }
    await expect(read(manifest)).rejects.toMatchObject({
      code: 'PLUGIN_MANIFEST',
      message: expect.stringMatching(
        /p\.json has 6 faults:\n {2}- components\[0\]\.kind is "gate"; it may be: node, transform, provider, component, middleware, encoder\n/,
      ),
    })
  })
})

describe('a manifest that cannot be read', () => {
  const code = 'PLUGIN_MANIFEST_FILE'
  it('is a folder', async () => {
    const folder = folderOf({})
    mkdirSync(join(folder, 'p.json'))
    await expect(readManifest(join(folder, 'p.json'), runtime)).rejects.toMatchObject({
      code,
      message: expect.stringContaining('is a folder'),
    })
  })
  it('is missing', async () => {
    await expect(readManifest('/nowhere/p.json', runtime)).rejects.toMatchObject({
      code,
      message: expect.stringContaining('does not exist'),
    })
  })
  it('is over 1 MiB', async () => {
    const file = join(folderOf({ 'p.json': ' '.repeat(2 ** 20 + 1) }), 'p.json')
    await expect(readManifest(file, runtime)).rejects.toMatchObject({
      code,
      message: expect.stringContaining('has 1048577 bytes; 1048576 is the most'),
    })
  })
  it('is not JSON', async () => {
    const file = join(folderOf({ 'p.json': '{ name: 1 }' }), 'p.json')
    await expect(readManifest(file, runtime)).rejects.toMatchObject({
      code,
      message: expect.stringContaining('is not JSON'),
    })
  })
  it('is a program', async () => {
    await expect(readManifest('/plugins/p.mjs', runtime)).rejects.toMatchObject({
      code,
      message: expect.stringContaining('name the manifest'),
    })
  })
})

describe('what a manifest may not say', () => {
  const base = { name: 'p', version: '1', components: [GATE] }
  it.each([
    { name: 'a list', manifest: [], why: 'must be an object' },
    { name: 'no name', manifest: { ...base, name: undefined }, why: 'name must be a text, not absent' },
    { name: 'an empty version', manifest: { ...base, version: ' ' }, why: 'version must be a text' },
    { name: 'nothing', manifest: { name: 'p', version: '1' }, why: 'it provides nothing' },
    { name: 'an empty command', manifest: { ...base, command: [] }, why: 'must name at least a program' },
    { name: 'a command that is a text', manifest: { ...base, command: 'node x' }, why: 'command must be a list' },
    {
      name: 'an unknown capability (L11)',
      manifest: { ...base, capabilities: ['shell'] },
      why: 'capabilities[0] is "shell"; capabilities are: runTool, emitEvent, log, callModel',
    },
    { name: 'files (M7)', manifest: { ...base, files: [{ path: 'a' }] }, why: 'files are not supported' },
    {
      name: 'a discoverTools that is a text',
      manifest: { ...base, discoverTools: 'yes' },
      why: 'discoverTools must be true or false',
    },
    {
      name: 'a type twice',
      manifest: { ...base, components: [GATE, GATE] },
      why: 'components declares "Gate" more than once',
    },
    { name: 'components that are no list', manifest: { ...base, components: GATE }, why: 'components must be a list' },
  ])('$name', async ({ manifest, why }) => {
    await expect(read(manifest)).rejects.toMatchObject({
      code: 'PLUGIN_MANIFEST',
      message: expect.stringContaining(why),
    })
  })
})

describe('what a component may not say', () => {
  it.each([
    {
      name: 'a middleware without seams (E1)',
      component: { ...GATE, seams: undefined },
      why: 'must say which seams the middleware subscribes to',
    },
    { name: 'an empty seams', component: { ...GATE, seams: {} }, why: 'must say which seams' },
    { name: 'seams that are a list', component: { ...GATE, seams: ['toolCall'] }, why: 'must say which seams' },
    {
      name: 'seams on a node (E2)',
      component: { componentType: 'N', seams: GATE.seams },
      why: 'components[0].seams does not belong to a node; it belongs to: middleware',
    },
    {
      name: 'an unknown seam (E3)',
      component: { ...GATE, seams: { toolcal: ['before'] } },
      why: '"toolcal", a seam that does not exist; seams are: run, node, nodeError, agentRound, modelCall, toolCall, ask',
    },
    {
      name: 'toolResult (E3)',
      component: { ...GATE, seams: { toolResult: ['after'] } },
      why: '"toolResult", a seam that does not exist',
    },
    {
      name: 'before of nodeError (E4)',
      component: { ...GATE, seams: { nodeError: ['before'] } },
      why: 'nodeError.before, a half that does not exist; nodeError has: after',
    },
    { name: 'no half', component: { ...GATE, seams: { toolCall: [] } }, why: 'must say which halves of toolCall' },
    {
      name: 'kept on a node (E2)',
      component: { componentType: 'N', kept: { scope: 'turn', schema: {} } },
      why: 'components[0].kept does not belong to a node; it belongs to: middleware',
    },
    {
      name: 'kept with an unknown scope',
      component: { ...GATE, kept: { scope: 'run', schema: {} } },
      why: 'components[0].kept.scope is "run"; it may be: turn, thread, principal',
    },
    {
      name: 'kept without a schema',
      component: { ...GATE, kept: { scope: 'turn' } },
      why: 'components[0].kept.schema must be an object',
    },
    {
      name: 'an unknown kind',
      component: { componentType: 'N', kind: 'gate' },
      why: 'components[0].kind is "gate"; it may be: node, transform, provider, component, middleware, encoder',
    },
    {
      name: 'the kind store',
      component: { componentType: 'N', kind: 'store' },
      why: 'threads are kept by the host',
    },
    ...['constructor', 'toString', 'valueOf', 'hasOwnProperty'].map((type) => ({
      name: `the type ${type} (E11)`,
      component: { componentType: type },
      why: 'a name that every JavaScript object has',
    })),
    {
      name: 'a builtin type (M8)',
      component: { componentType: 'AgentNode' },
      why: '"AgentNode", a builtin type of Agent Spec',
    },
    { name: 'a type that is no identifier', component: { componentType: 'my-node' }, why: 'a component type matches' },
    {
      name: 'a phase on a provider (M6)',
      component: { componentType: 'P', kind: 'provider', phase: 'pre' },
      why: 'phase does not belong to a provider',
    },
    {
      name: 'stream on a node (M6)',
      component: { componentType: 'N', stream: true },
      why: 'it belongs to: provider, middleware',
    },
    {
      name: 'seams on an encoder (M6)',
      component: { ...ENCODER, seams: {} },
      why: 'seams does not belong to an encoder; it belongs to: middleware',
    },
    ...Object.entries({ phase: 'pre', stream: true, protocol: 'x', contentType: 'y', branches: [], inputs: [] }).map(
      ([field, value]) => ({
        name: `${field} on a component that is read by another (M6)`,
        component: { componentType: 'N', kind: 'component', [field]: value },
        why: `${field} does not belong to a component`,
      }),
    ),
    ...['node', 'transform', 'provider', 'component', 'middleware', 'encoder'].map((kind) => ({
      name: `files on a ${kind} (M6, M7)`,
      component: { componentType: 'N', kind, files: [] },
      why: 'files are not supported: nothing is copied into a working folder',
    })),
    {
      name: "an encoder of the host's own protocol (M9)",
      component: { ...ENCODER, protocol: 'sluice' },
      why: `protocol is "sluice", the host's own protocol`,
    },
    ...['AG-UI', 'ag_ui', '-ag', ''].map((protocol) => ({
      name: `an encoder of a protocol named "${protocol}" (M9)`,
      component: { ...ENCODER, protocol },
      why: protocol === '' ? 'protocol must be a text' : "a protocol's name matches ^[a-z0-9][a-z0-9-]*$",
    })),
    {
      name: 'an encoder without a content type (M9)',
      component: { ...ENCODER, contentType: undefined },
      why: 'contentType must be a text, not absent',
    },
    {
      name: 'an unknown phase',
      component: { componentType: 'T', kind: 'transform', phase: 'mid' },
      why: 'it may be: pre, post, both',
    },
    {
      name: 'a stream of a provider that is a text',
      component: { componentType: 'P', kind: 'provider', stream: 'yes' },
      why: 'must be true or false',
    },
    { name: 'a schema that is a text', component: { ...GATE, schema: 'object' }, why: 'schema must be an object' },
    {
      name: 'an input without a title',
      component: { componentType: 'N', inputs: [{ type: 'string' }] },
      why: 'inputs[0].title must be a text',
    },
    {
      name: 'a branch that is a number',
      component: { componentType: 'N', branches: [1] },
      why: 'branches[0] must be a text',
    },
  ])('$name', async ({ component, why }) => {
    await expect(withComponent(component)).rejects.toMatchObject({
      code: 'PLUGIN_MANIFEST',
      message: expect.stringContaining(why),
    })
  })
})

describe('a tool of a manifest', () => {
  it('is a program inside the folder', async () => {
    const manifest = await read(
      { name: 'p', version: '1', tools: [{ name: 't', path: 'run.sh' }] },
      { 'run.sh': '#!/bin/sh\n' },
    )
    expect(manifest.tools[0]?.path).toBe(join(manifest.folder, 'run.sh'))
    expect(manifest.start).toBeUndefined()
  })

  it.each([
    {
      name: 'both path and componentType (M3)',
      tool: { name: 't', path: 'x', componentType: 'Gate' },
      why: 'must have either "path"',
    },
    { name: 'neither (M3)', tool: { name: 't' }, why: 'must have either "path"' },
    { name: 'a bad name (M3)', tool: { name: 'my tool', componentType: 'Gate' }, why: 'tools[0].name is "my tool"' },
    {
      name: 'a type of nobody',
      tool: { name: 't', componentType: 'Other' },
      why: '"Other"; this manifest declares: Gate',
    },
    {
      name: 'a schema over 64 KiB (M3)',
      tool: { name: 't', componentType: 'Gate', inputSchema: { description: 'x'.repeat(65_600) } },
      why: '65536 is the most',
    },
    {
      name: 'a schema nested too deep',
      tool: { name: 't', componentType: 'Gate', inputSchema: nested(17) },
      why: 'deeper than 16 levels',
    },
    {
      name: 'a schema of a list',
      tool: { name: 't', componentType: 'Gate', inputSchema: { type: 'array' } },
      why: 'a tool takes and gives objects',
    },
    {
      name: 'a path that leaves the folder (M2)',
      tool: { name: 't', path: '../run.sh' },
      why: "leaves the manifest's folder",
    },
    { name: 'a path to nothing (M2)', tool: { name: 't', path: 'gone.sh' }, why: 'which does not exist' },
    { name: 'a path to a folder (M2)', tool: { name: 't', path: '.' }, why: 'which is no file' },
    {
      name: 'a path to what is not executable (M2)',
      tool: { name: 't', path: 'p.mjs' },
      why: 'which is not executable; chmod +x it',
    },
  ])('is refused with $name', async ({ tool, why }) => {
    await expect(withTool(tool)).rejects.toMatchObject({ message: expect.stringContaining(why) })
  })

  it('is refused when it is a link that leaves the folder (M2)', async () => {
    const outside = folderOf({ 'run.sh': '#!/bin/sh\n' })
    const folder = folderOf({
      'p.json': JSON.stringify({ name: 'p', version: '1', tools: [{ name: 't', path: 'run.sh' }] }),
    })
    symlinkSync(join(outside, 'run.sh'), join(folder, 'run.sh'))
    await expect(readManifest(join(folder, 'p.json'), runtime)).rejects.toThrow('a link that leaves')
  })

  it('is refused twice (M3)', async () => {
    const tool = { name: 't', componentType: 'Gate' }
    await expect(read({ name: 'p', version: '1', components: [GATE], tools: [tool, tool] })).rejects.toThrow(
      'tools declares "t" more than once',
    )
  })
})

describe('the program of a plugin', () => {
  const content = { name: 'p', version: '1', components: [GATE] }

  it('is the .mjs or .js file of the same name, run by node with the global serve', async () => {
    for (const entry of ['p.mjs', 'p.js']) {
      const { start, folder } = await read(content, { [entry]: '' })
      expect(start).toEqual([process.execPath, '--import', 'file:///runtime.mjs', join(folder, entry)])
    }
  })

  it('is started as it is when it is executable and says by what', async () => {
    const { start, folder } = await read(content, { 'p.mjs': '#!/usr/bin/env node\n' })
    expect(start).toEqual([join(folder, 'p.mjs')])
  })

  it('is run by node when an execute bit is all it has, as many a copy gives it', async () => {
    const folder = folderOf({ 'p.json': JSON.stringify(content), 'p.mjs': 'serve({})' })
    chmodSync(join(folder, 'p.mjs'), 0o755)
    expect((await readManifest(join(folder, 'p.json'), runtime)).start?.[0]).toBe(process.execPath)
  })

  it('is the command, where the manifest has one: a path from its folder, or a name on the PATH of the host', async () => {
    const { start, folder } = await read({ ...content, command: ['./bin/gate', '--config', 'a/b'] })
    expect(start).toEqual([join(folder, 'bin/gate'), '--config', 'a/b'])
    expect((await read({ ...content, command: ['node', 'x.mjs'] })).start).toEqual([process.execPath, 'x.mjs'])
    expect((await read({ ...content, command: ['sh', 'x'] })).start?.[0]).toMatch(/^\/.*\/sh$/)
  })

  it('is needed by nobody where all tools are programs, and all components are read by others', async () => {
    const components = [{ componentType: 'C', kind: 'component' }]
    expect((await read({ ...content, components }, {})).start).toBeUndefined()
    const tools = [{ name: 't', componentType: 'C' }]
    await expect(read({ ...content, components, tools }, {})).rejects.toThrow('there is no program to start')
    await expect(read({ name: 'p', version: '1', discoverTools: true }, {})).rejects.toThrow('there is no program')
  })

  it('is missed with both names that it could have', async () => {
    await expect(read(content, {})).rejects.toThrow('put p.mjs or p.js beside it, or name one in "command"')
    const folder = folderOf({})
    writeFileSync(join(folder, 'p.json'), JSON.stringify(content))
    mkdirSync(join(folder, 'p.mjs'))
    await expect(readManifest(join(folder, 'p.json'), runtime)).rejects.toThrow('there is no program to start')
  })
})

function nested(levels: number): object {
  return levels === 1 ? {} : { properties: nested(levels - 1) }
}
