import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { loadPlugins } from '../plugins/load.ts'
import { folderOf } from '../testing/folder.ts'
import { load } from '../testing/plugin.ts'
import { RAW } from '../testing/raw.ts'
import { builtRuntime } from '../testing/runtime.ts'

const runtime = builtRuntime()
const GATE = { componentType: 'Gate', kind: 'middleware', seams: { toolCall: ['before'] } }
const node = [process.execPath, 'tested.mjs']

/** What a plugin with this program says of its only component. */
async function checked(program: string, manifest: object = {}, config: Readonly<Record<string, object>> = {}) {
  const plugins = await load(
    { program, manifest: { components: [GATE], ...manifest } },
    { runtime, config: config as never },
  )
  const [first] = await plugins.check()
  return first
}

const serving = (more: string) => `serve({ Gate: { toolCall: { before: () => ({ action: 'proceed' }) }, ${more} } })`

describe('a plugin that is checked', () => {
  it('has a handler for each half that its manifest subscribes to', async () => {
    expect(await checked(serving(''))).toEqual({
      plugin: 'tested',
      version: '1.0.0',
      componentType: 'Gate',
      kind: 'middleware',
      result: 'passed',
    })
  })
  it('has none: the reason says which to write', async () => {
    const { result, reason } = (await checked('serve({ Gate: { toolCall: {} } })')) ?? {}
    expect({ result, reason }).toEqual({
      result: 'failed',
      reason: expect.stringMatching(/no handler for toolCall\.before of Gate; write: /),
    })
  })
  it('consults no handler', async () => {
    const program = `serve({ Gate: { toolCall: { before() { throw new Error('consulted') } } } })`
    expect(await checked(program)).toMatchObject({ result: 'passed' })
  })
  it.each([
    { name: 'does the work of its kind', program: 'serve({ Do: { execute: () => ({}) } })', result: 'passed' },
    { name: 'does not do the work of its kind', program: 'serve({ Do: {} })', result: 'failed' },
  ])('a node $name', async ({ program, result }) => {
    const components = [{ componentType: 'Do', kind: 'node', inputs: [], outputs: [] }]
    expect(await checked(program, { components })).toMatchObject({ result })
  })
})

describe('a self-test', () => {
  it.each([
    { name: 'that returns nothing has passed', test: 'selfTest() {}', result: 'passed' },
    { name: 'may take its time', test: 'selfTest: async () => true', result: 'passed' },
    {
      name: 'that throws has failed',
      test: `selfTest() { throw new Error('no list') }`,
      result: 'failed',
      reason: 'no list',
    },
    {
      name: 'A8: that answers something else has failed',
      test: 'selfTest: () => "fine"',
      result: 'failed',
      reason: expect.stringContaining('returned "fine"'),
    },
  ])('$name', async ({ test, result, reason }) => {
    const { result: came, reason: why } = (await checked(serving(test))) ?? {}
    expect({ came, why }).toEqual({ came: result, why: reason })
  })
  it('is shown the settings', async () => {
    const program = serving(`selfTest({ component }) { if (component.words.length === 0) throw new Error('no words') }`)
    expect(await checked(program, {}, { Gate: { words: [] } })).toMatchObject({ result: 'failed', reason: 'no words' })
    expect(await checked(program, {}, { Gate: { words: ['a'] } })).toMatchObject({ result: 'passed' })
  })
})

describe('a program that speaks the protocol by hand', () => {
  const byHand = (on: string) => `${RAW}\nlisten(({ id, method }) => { ${on} })`
  it.each([
    {
      name: 'answers init and has no self-test',
      on: `if (method === 'init') say({ id, result: { protocol: 1 } })`,
      result: 'none',
    },
    {
      name: 'refuses init, which counts as version 1',
      on: `say({ id, error: { code: -32601, message: 'what?' } })`,
      result: 'none',
    },
    {
      name: 'A8: answers the self-test with nonsense',
      on: `say({ id, result: method === 'init' ? { protocol: 1, selfTest: true } : { ok: 1 } })`,
      result: 'failed',
    },
    { name: 'speaks another version', on: `say({ id, result: { protocol: 2 } })`, result: 'failed' },
    { name: 'dies', on: 'process.exit(3)', result: 'failed' },
  ])('$name: $result', async ({ on, result }) => {
    expect(await checked(byHand(on), { command: node })).toMatchObject({ result })
  })
})

describe('a plugin in a module of this process', () => {
  it('tests itself the same way', async () => {
    const module = `export default {
      manifest: { name: 'tested', version: '1.0.0', capabilities: [], components: [${JSON.stringify(GATE)}] },
      handlers: { Gate: { toolCall: { before: () => ({ action: 'proceed' }) }, selfTest() { throw new Error('no list') } } },
    }`
    const plugins = await loadPlugins([join(folderOf({ 'gate.mjs': module }), 'gate.mjs')])
    onTestFinished(() => plugins.close())
    expect(await plugins.check()).toMatchObject([{ componentType: 'Gate', result: 'failed', reason: 'no list' }])
  })
})
