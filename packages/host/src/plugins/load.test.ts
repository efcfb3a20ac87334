import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { liveChildren } from '../child/child.ts'
import { folderOf } from '../testing/folder.ts'
import { toolContext } from '../testing/tool-context.ts'
import { type LoadOptions, loadPlugins } from './load.ts'

const gate = (componentType: string, schema?: object) => ({
  componentType,
  kind: 'middleware',
  seams: { toolCall: ['before'] },
  schema,
})
const manifest = (name: string, parts: object = {}) =>
  JSON.stringify({ name, version: '1.2.3', components: [gate('Gate')], ...parts })

/** Loads manifests of one folder, each with an empty program beside it. */
function load(manifests: Readonly<Record<string, string>>, options: LoadOptions = {}) {
  const programs = Object.keys(manifests).map((file) => [file.replace('.json', '.mjs'), ''])
  const cwd = folderOf({ ...Object.fromEntries(programs), ...manifests })
  return loadPlugins(Object.keys(manifests), { cwd, runtime: 'file:///none', ...options })
}

describe('loaded plugins', () => {
  it('have their policies in load order, within a manifest in listed order, and start nothing (M1)', async () => {
    const plugins = await load({
      'b.json': manifest('b', { components: [gate('Second'), gate('First')] }),
      'a.json': manifest('a', { components: [gate('Third')] }),
    })
    expect(plugins.policies.map(({ name, plugin }) => [name, plugin])).toEqual([
      ['Second', 'b'],
      ['First', 'b'],
      ['Third', 'a'],
    ])
    expect(liveChildren()).toBe(0)
  })

  it('tell what types they provide', async () => {
    const components = [
      gate('Gate'),
      { componentType: 'Match', branches: ['hit'], inputs: [{ title: 'text' }], schema: { type: 'object' } },
    ]
    const { types } = await load({ 'a.json': manifest('a', { components }) })
    expect(types.types()).toEqual(['Gate', 'Match'])
    expect(types.get('Match')).toEqual({
      kind: 'node',
      plugin: 'a',
      version: '1.2.3',
      branches: ['hit'],
      inputs: [{ title: 'text' }],
      schema: { type: 'object' },
    })
    expect(types.get('Gate')?.kind).toBe('middleware')
    expect([types.get('Other'), types.get('constructor')]).toEqual([undefined, undefined])
  })

  it('say for a policy whether streams are held for it', async () => {
    const components = [{ ...gate('Gate'), stream: 'pass' }, gate('Other')]
    const { policies } = await load({ 'a.json': manifest('a', { components }) })
    expect(policies.map(({ stream }) => stream)).toEqual(['pass', undefined])
  })

  it('give a policy the time that the operator gives it, or 5 s', async () => {
    const time = async (options?: LoadOptions) =>
      (await load({ 'a.json': manifest('a') }, options)).policies[0]?.timeoutMs
    expect([await time(), await time({ timeoutMs: 250 })]).toEqual([5_000, 250])
  })
})

describe('plugins that cannot be loaded together', () => {
  it('have one name', async () => {
    const other = manifest('same', { components: [gate('Other')] })
    await expect(load({ 'a.json': manifest('same'), 'b.json': other })).rejects.toMatchObject({
      code: 'PLUGIN_TAKEN',
      message: expect.stringMatching(/two plugins are named "same", by .*a\.json and .*b\.json/),
    })
  })
  it('provide one type (M8)', async () => {
    await expect(load({ 'a.json': manifest('a'), 'b.json': manifest('b') })).rejects.toThrow(
      'component type "Gate" is provided twice, by plugin "a" and plugin "b"',
    )
  })
  it('provide one tool, in either order (M4)', async () => {
    const tools = (type: string) => ({
      components: [gate(type)],
      tools: [{ name: 'search', componentType: type, shadows: true }],
    })
    const [a, b] = [{ 'a.json': manifest('a', tools('A')) }, { 'b.json': manifest('b', tools('B')) }]
    await expect(load({ ...a, ...b })).rejects.toThrow('tool "search" is provided twice, by plugin "a" and plugin "b"')
    await expect(load({ ...b, ...a })).rejects.toThrow('tool "search" is provided twice, by plugin "b" and plugin "a"')
  })
  it('render one protocol (M9)', async () => {
    const renders = (name: string) =>
      manifest(name, {
        components: [{ componentType: name, kind: 'encoder', protocol: 'ag-ui', contentType: 'text/event-stream' }],
      })
    await expect(load({ 'a.json': renders('a'), 'b.json': renders('b') })).rejects.toMatchObject({
      code: 'PLUGIN_TAKEN',
      message: expect.stringMatching(/protocol "ag-ui" is rendered twice, by plugin "a" and plugin "b"/),
    })
  })

  it('are told by the first that is wrong, in load order', async () => {
    await expect(load({ 'a.json': manifest('a'), 'b.json': '{', 'c.json': '[' })).rejects.toThrow('b.json')
  })
})

describe('settings', () => {
  const schema = {
    type: 'object',
    properties: { max: { type: 'integer' } },
    required: ['max'],
    additionalProperties: false,
  }
  const strict = { 'a.json': manifest('a', { components: [gate('Gate', schema)] }) }

  it('reach their policy', async () => {
    const { policies } = await load(strict, { config: { Gate: { max: 3 } } })
    expect(policies[0]?.component).toEqual({ max: 3 })
  })
  it('are {} where none are given (E9), and no default of the schema is put in', async () => {
    const defaults = { properties: { max: { default: 3 } } }
    const { policies } = await load({ 'a.json': manifest('a', { components: [gate('Gate', defaults)] }) })
    expect(policies[0]?.component).toEqual({})
  })
  it.each([
    { name: 'of the wrong type (E6)', config: { Gate: { max: 'three' } }, why: 'max: must be integer' },
    { name: 'that are missing (E7)', config: {}, why: "must have required property 'max'" },
    { name: 'that are unknown', config: { Gate: { max: 1, min: 2 } }, why: 'additional properties: "min"' },
  ])('$name are refused, naming policy, plugin and the way to give them', async ({ config, why }) => {
    const refused = load(strict, { config: config as NonNullable<LoadOptions['config']> })
    await expect(refused).rejects.toMatchObject({ code: 'PLUGIN_CONFIG' })
    for (const part of ['the settings of "Gate" (plugin a)', why, 'give them with --plugin-config Gate=<json>.']) {
      await expect(refused).rejects.toThrow(part)
    }
  })
  it.each([
    { name: 'of the wrong type (E6)', given: { max: 'three' }, why: 'max: must be integer' },
    { name: 'that are missing (E7)', given: undefined, why: "must have required property 'max'" },
  ])('$name are refused in the same way for a module', async ({ given, why }) => {
    const module = `export default { manifest: ${manifest('a', { components: [gate('Gate', schema)] })}, handlers: {} }`
    const file = join(folderOf({ 'a.mjs': module }), 'a.mjs')
    const refused = loadPlugins([file], { config: given === undefined ? {} : { Gate: given } })
    await expect(refused).rejects.toMatchObject({ code: 'PLUGIN_CONFIG', message: expect.stringContaining(why) })
  })
  it('of a type that nobody provides are refused, with those that are loaded, or none (E8)', async () => {
    const config = { Gaet: {} }
    await expect(load(strict, { config: { Gaet: {}, Gate: { max: 1 } } })).rejects.toMatchObject({
      code: 'PLUGIN_CONFIG_TYPE',
      message: 'there are settings for "Gaet", which no plugin provides; loaded are: Gate.',
    })
    await expect(load({}, { config })).rejects.toThrow('no middleware is loaded')
  })
  it('are for middleware only; a node has its own in the document', async () => {
    const node = { 'a.json': manifest('a', { components: [{ componentType: 'Match' }] }) }
    await expect(load(node, { config: { Match: {} } })).rejects.toMatchObject({ code: 'PLUGIN_CONFIG_TYPE' })
  })
  it('that are not JSON are refused', async () => {
    const config = { Gate: { max: 1n } } as never
    await expect(load({ 'a.json': manifest('a') }, { config })).rejects.toThrow(
      /settings of "Gate".*is not JSON at max/,
    )
  })
  it('cannot be checked against a schema that is none', async () => {
    const broken = { 'a.json': manifest('a', { components: [gate('Gate', { type: 'thing' })] }) }
    await expect(load(broken)).rejects.toMatchObject({ code: 'JSON_SCHEMA' })
  })
})

describe('a plugin tool that is a program', () => {
  it('runs with the environment and the folder of its plugin', async () => {
    const cwd = folderOf({
      'p.json': JSON.stringify({ name: 'p', version: '1', tools: [{ name: 'where', path: 'where.sh' }] }),
      'where.sh': '#!/bin/sh\nprintf \'{"folder":"%s","token":"%s","home":"%s"}\' "$PWD" "$TOKEN" "$HOME"\n',
    })
    const { tools } = await loadPlugins([join(cwd, 'p.json')], { env: { TOKEN: 't' } })
    const ctx = toolContext()
    expect(tools[0]?.source).toBe('plugin:p')
    expect(await tools[0]?.run({}, ctx)).toEqual({ folder: cwd, token: 't', home: '' })
  })
})
