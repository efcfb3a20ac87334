import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ChatModel, JsonObject } from '@sluice/core'
import { jsonSchema } from '@sluice/flow'
import { FAULT, MAX_KEPT_LENGTH, MAX_LINE_BYTES, MAX_MESSAGE_DEPTH } from '@sluice/plugin/wire'
import { describe, expect, it } from 'vitest'
import { load } from '../testing/plugin.ts'
import { builtRuntime } from '../testing/runtime.ts'
import { ask, consultation, fakeSite } from '../testing/site.ts'
import { toolContext } from '../testing/tool-context.ts'

const runtime = builtRuntime()
const doc = (name: string) => readFileSync(new URL(`../../../../docs/${name}`, import.meta.url), 'utf8')
const SCHEMA: JsonObject = JSON.parse(doc('protocol.schema.json'))

/** The faults of a message, by the definition of that name. */
async function faultsOf(definition: string, message: unknown) {
  const { $defs, $schema = '' } = SCHEMA
  const schema = await jsonSchema({ $schema, $defs: $defs as JsonObject, $ref: `#/$defs/${definition}` })
  const judged = await schema['~standard'].validate(message)
  return judged.issues ?? []
}

/** Stands between host and plugin, and writes down what each says. */
const TEE = `
import { spawn } from 'node:child_process'
import { appendFileSync } from 'node:fs'
const child = spawn(process.execPath, ['--import', process.argv[2], 'real.mjs'], { stdio: ['pipe', 'pipe', 'inherit'] })
const pass = (from, to, file) => from.on('data', (chunk) => { appendFileSync(file, chunk); to.write(chunk) }).on('end', () => to.end())
pass(process.stdin, child.stdin, 'host.ndjson')
pass(child.stdout, process.stdout, 'plugin.ndjson')
child.on('close', () => process.exit(0))
`

const REAL = `
const verdicts = {
  proceed: { action: 'proceed', labels: ['seen'] }, modify: { action: 'modify', input: { cmd: 'x' } }, reject: { action: 'reject', reason: 'no', code: 'c' },
}
serve({
  Gate: { toolCall: {
    async before({ input }, ctx) {
      if (input.cmd === 'throw') throw new TypeError('broken')
      if (input.cmd === 'hang') { ctx.extend(); await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve)) }
      if (input.cmd !== 'ask') return verdicts[input.cmd]
      ctx.kept.update(({ asked = 0 }) => ({ asked: asked + 1 }))
      ctx.emitEvent('asked', { a: 1 })
      ctx.log('info', 'asking')
      await ctx.runTool('search', { q: 1 })
      await ctx.runTool('broken', {}).catch(() => {})
      await ctx.callModel({ messages: [{ role: 'user', content: 'hi' }], temperature: 0 })
      return { action: 'replace', value: { found: true } }
    },
    after: () => ({ action: 'pass' }),
  } },
  Match: { execute: (input) => ({ output: { hit: true }, branch: 'yes' }) },
  Scrub: { apply: (messages) => ({ action: 'modify', messages }) },
  Llm: { chat(request, ctx) {
    if (!ctx.stream) return { content: 'hi', finish_reason: 'stop', tool_calls: [{ id: 'c', name: 't', arguments: '{}' }] }
    ctx.partial({ content: 'h', tool_calls: [{ index: 0, id: 'c', name: 't' }] })
    return { finish_reason: 'stop' }
  } },
  Lines: { encode: ({ type }) => [{ event: type, data: 1 }], finish: () => [{ data: 'end' }] },
}, { listTools: () => [{ name: 'found' }], tools: { lookup: () => ({ output: 1, stderr: 'x' }), found: () => ({}) } })
`

const MANIFEST = {
  capabilities: ['runTool', 'callModel', 'emitEvent', 'log'],
  command: ['node', 'tested.mjs', runtime],
  components: [
    {
      componentType: 'Gate',
      kind: 'middleware',
      seams: { toolCall: ['before', 'after'] },
      kept: { scope: 'turn', schema: { properties: { asked: { type: 'number' } } } },
    },
    { componentType: 'Match' },
    { componentType: 'Scrub', kind: 'transform' },
    { componentType: 'Llm', kind: 'provider', stream: true },
    { componentType: 'Lines', kind: 'encoder', protocol: 'lines', contentType: 'text/plain' },
  ],
  discoverTools: true,
  tools: [{ name: 'lookup', componentType: 'Match' }],
}

const siteWithTools = () =>
  fakeSite({
    async runToolFrom(_from, name) {
      if (name === 'broken') throw Object.assign(new Error('no such tool'), { code: 'TOOL_UNKNOWN' })
      return { hits: 3 }
    },
  })

/** Has everything said once, and gives what each side said. */
async function recordedSession() {
  const plugins = await load(
    { program: TEE, manifest: MANIFEST, files: { 'real.mjs': REAL } },
    { config: { Gate: { max: 1 } }, discoverTools: true },
  )
  const { gate } = plugins
  const ctx = { signal: new AbortController().signal }
  const request = {
    model: 'm',
    messages: [{ role: 'user', content: 'hi' }],
    tools: [{ name: 't', description: 'T.', parameters: {} }],
  } as const
  for (const cmd of ['proceed', 'modify', 'reject', 'ask', 'throw'])
    await ask(gate, { input: { cmd }, site: siteWithTools() }).catch(() => {})
  await ask(gate, { half: 'after', outcome: { ok: true, value: { a: 1 } }, substituted: 'Cache' })
  await ask(gate, { half: 'after', outcome: { ok: false, error: { name: 'E', message: 'm', code: 'C' } } })
  const given = consultation(gate, { input: { cmd: 'hang' } })
  gate.consult(given)
  given.abandon()
  await plugins.execute('Match', { pattern: 'x' }, { text: 'y' }, ctx)
  await plugins.apply('Scrub', { component: {}, phase: 'pre', messages: request.messages }, ctx)
  const model: ChatModel = plugins.model('Llm', { url: 'u' })
  await model.chat(request, ctx)
  for await (const _ of model.stream?.(request, ctx) ?? []);
  for (const tool of plugins.tools) await tool.run({ a: 1 }, toolContext())
  const rendering = plugins.encoder('lines').start()
  await rendering.encode({ type: 'custom', nodeName: 'n', nodeType: 'Node', data: null, path: ['g'] })
  await rendering.finish()
  await plugins.close()
  const said = (file: string) =>
    readFileSync(join(plugins.folder, file), 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
  return { host: said('host.ndjson'), plugin: said('plugin.ndjson') }
}

describe('the published schema', () => {
  it('has every message of a recorded session, results by their method', async () => {
    const { host, plugin } = await recordedSession()
    expect([...new Set(host.map(({ method }) => method ?? 'answer'))].sort()).toEqual(
      [...Object.keys(RESULTS), 'answer', 'cancel', 'shutdown'].sort(),
    )
    expect([...new Set(plugin.map(({ method }) => method ?? 'answer'))].sort()).toEqual(
      ['answer', 'callModel', 'emitEvent', 'extend', 'log', 'partial', 'runTool'].sort(),
    )
    for (const message of host) expect([message, await faultsOf('fromHost', message)]).toEqual([message, []])
    for (const message of plugin) expect([message, await faultsOf('fromPlugin', message)]).toEqual([message, []])
    const cancelled = host.find(({ method }) => method === 'cancel').params.call
    for (const { id, method } of host) {
      const result = RESULTS[method]
      const answer = plugin.find((message) => message.id === id && 'result' in message && message.method === undefined)
      if (result === undefined || answer === undefined || id === cancelled) continue
      expect([answer.result, await faultsOf(result, answer.result)]).toEqual([answer.result, []])
    }
  })

  it.each([
    {
      name: 'a question without a subject',
      side: 'fromHost',
      message: { jsonrpc: '2.0', id: 1, method: 'before', params: {} },
    },
    { name: 'no version', side: 'fromPlugin', message: { id: 1, result: {} } },
    {
      name: 'an unknown method',
      side: 'fromPlugin',
      message: { jsonrpc: '2.0', id: 1, method: 'readFile', params: {} },
    },
    {
      name: 'a log without a call',
      side: 'fromPlugin',
      message: { jsonrpc: '2.0', method: 'log', params: { level: 'info', message: '' } },
    },
    { name: 'a reject without a reason', side: 'verdict', message: { action: 'reject' } },
    { name: 'an error without a code', side: 'error', message: { message: 'no' } },
  ])('refuses $name', async ({ side, message }) => {
    expect((await faultsOf(side, message)).length).toBeGreaterThan(0)
  })
})

describe('the page of the protocol', () => {
  const page = doc('protocol.md')

  it('has examples that are messages of it', async () => {
    const examples = [...page.matchAll(/```json\n([\s\S]*?)```/g)].flatMap(([, block = '']) => block.trim().split('\n'))
    expect(examples.length).toBeGreaterThan(5)
    for (const example of examples) {
      const message = JSON.parse(example)
      const faults = await Promise.all(['fromHost', 'fromPlugin'].map((side) => faultsOf(side, message)))
      expect(faults, example).toContainEqual([])
    }
  })

  it('has every code of an error, and the bounds', () => {
    for (const code of Object.values(FAULT)) expect(page).toContain(String(code))
    expect(page).toContain(`${MAX_LINE_BYTES / 2 ** 20} MiB`)
    expect(page).toContain(`${MAX_MESSAGE_DEPTH} levels`)
    expect(page).toContain(`${MAX_KEPT_LENGTH / 2 ** 10} KiB of JSON`)
  })
})

const RESULTS: Readonly<Record<string, string>> = {
  init: 'initResult',
  before: 'verdict',
  after: 'verdict',
  execute: 'executeResult',
  apply: 'applyResult',
  chat: 'chatResult',
  callTool: 'callToolResult',
  encode: 'frames',
  finishEncode: 'frames',
  listTools: 'listToolsResult',
}
