import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ECHO, ECHO_TOOL, flowOf, GATE, PAYING, text, toolNode } from '../testing/documents.ts'
import { describeDurable, keptIn } from '../testing/durable.ts'
import { builtRuntime } from '../testing/plugin-runtime.ts'
import { type Served, served } from '../testing/served.ts'

const runtime = builtRuntime()
const said = [text('said')]
const using = (name: string) =>
  flowOf({ name: 'using', nodes: { it: toolNode(name, said, said) }, inputs: said, outputs: said })

const SHOUT = `#!/usr/bin/env node
let text = ''
process.stdin.on('data', (part) => { text += part })
process.stdin.on('end', () => console.log(JSON.stringify({ said: JSON.parse(text).said.toUpperCase() })))
`
const tool = (name = 'shout', source = SHOUT) => ({ name, source })

const manifest = (components: readonly object[], more = {}) => ({
  name: 'mine',
  version: '1.0.0',
  capabilities: [],
  components,
  ...more,
})
const plugin = (source: string, components: readonly object[], more = {}) => ({
  name: 'mine',
  manifest: manifest(components, more),
  source,
})
const middleware = { componentType: 'Mine', kind: 'middleware', seams: { toolCall: ['before'] } }
const node = { componentType: 'Mine', inputs: said, outputs: said }
const minded = flowOf({
  name: 'minded',
  nodes: { it: { component_type: 'Mine', inputs: said, outputs: said } },
  inputs: said,
  outputs: said,
})

interface Allowing extends Served {
  /** What lies in the folder where code is put: one folder of the server, and in it one of each run. */
  lying(): readonly string[]
}

/** A server that takes code, with a gate before the tool `pay`. */
async function allowing(options: object = {}): Promise<Allowing> {
  const files = { 'flows/echo.json': ECHO, 'tools/own': ECHO_TOOL, 'gate.mjs': GATE, 'work/.keep': '' }
  const it = await served(files, (at) => ({
    allowRequestCode: true,
    workDir: at('work'),
    plugins: [at('gate.mjs')],
    runtime,
    ...options,
  }))
  const lying = () => {
    const work = join(it.folder, 'work')
    return readdirSync(work).flatMap((home) => (home === '.keep' ? [] : readdirSync(join(work, home))))
  }
  return { ...it, lying }
}

const INPUTS = { inputs: { said: 'ten' } }

describe('code that comes with a request, where it is allowed', () => {
  it('is a tool of its run, and is gone from the disk with it (Q9)', async () => {
    const { post, lying } = await allowing()
    const { status, body } = await post('/v1/runs', { flow: using('shout'), tools: [tool()], ...INPUTS })
    expect([status, body.result]).toEqual([200, { said: 'TEN' }])
    expect(lying()).toEqual([])
  })

  it('is 400 where its manifest has a schema that is none, and leaves nothing', async () => {
    const { post, lying } = await allowing()
    const mine = plugin('serve({ Mine: { execute: (output) => ({ output }) } })', [
      { ...node, schema: { type: 'txt' } },
    ])
    const { status, body } = await post('/v1/runs', { flow: minded, plugins: [mine], ...INPUTS })
    expect([status, body.error.code]).toEqual([400, 'JSON_SCHEMA'])
    expect(lying()).toEqual([])
  })

  it('may name the program that runs it, and finds its files where it runs (Q9)', async () => {
    const { post, lying } = await allowing()
    const source = "console.log(JSON.stringify({ said: require('node:fs').readFileSync('data/word.txt', 'utf8') }))"
    const files = [{ path: 'data/word.txt', content: 'a word' }]
    const reading = { flow: using('read'), tools: [{ name: 'read', source, interpreter: 'node' }], files, ...INPUTS }
    expect((await post('/v1/runs', reading)).body.result).toEqual({ said: 'a word' })
    expect(lying()).toEqual([])
  })

  it('is a plugin in a process of its own, with the tools of its run (Q9)', async () => {
    const { post, lying } = await allowing()
    const source = `serve({ Mine: { async execute(input, ctx) { return { output: await ctx.runTool('shout', input) } } } })`
    const mine = plugin(source, [node], { capabilities: ['runTool'] })
    const { body } = await post('/v1/runs', { flow: minded, plugins: [mine], tools: [tool()], ...INPUTS })
    expect([body.error, body.result]).toEqual([undefined, { said: 'TEN' }])
    expect(lying()).toEqual([])
  })

  it('passes the operator’s policies as any other', async () => {
    const { post, lying } = await allowing()
    const paused = await post('/v1/runs', { flow: PAYING, tools: [tool('pay')], ...INPUTS })
    expect([paused.status, paused.body.asks[0].askedBy]).toEqual([202, 'policy:Gate'])
    expect(lying()).toEqual([])
    const answered = await post(`/v1/asks/${paused.body.asks[0].id}/answer`, { answer: { approved: true } })
    expect(answered.body.result).toEqual({ said: 'TEN' })
    expect(lying()).toEqual([])
  })

  it.each([
    { name: 'a tool', body: { flow: using('shout'), tools: [tool()] } },
    {
      name: 'a tool of a plugin',
      body: {
        flow: using('served'),
        plugins: [plugin('', [node], { tools: [{ name: 'served', componentType: 'Mine' }] })],
      },
    },
    {
      name: 'a tool that a plugin calls',
      body: {
        flow: minded,
        tools: [tool()],
        plugins: [
          plugin(
            `serve({ Mine: { execute: async (input, ctx) => ({ output: await ctx.runTool('shout', input) }) } })`,
            [node],
            { capabilities: ['runTool'] },
          ),
        ],
      },
    },
  ])('is known to policies as what came with a request: $name', async ({ body }) => {
    const rules = `policies:
  - rule: no-request-code
    seam: toolCall.before
    match: subject.source.startsWith("request")
    verdict: reject
    reason: not here
`
    const { post } = await served({ 'sluice.yaml': rules, 'work/.keep': '' }, (at) => ({
      policies: at('sluice.yaml'),
      allowRequestCode: true,
      workDir: at('work'),
      runtime,
    }))
    const refused = await post('/v1/runs', { ...body, ...INPUTS })
    expect(refused.body.status).toBe('failed')
    expect(refused.body.error.message).toContain('not here')
  })

  it('is not there for another run', async () => {
    const { post } = await allowing()
    await post('/v1/runs', { flow: using('shout'), tools: [tool()], ...INPUTS })
    const other = await post('/v1/runs', { flow: using('shout'), ...INPUTS })
    expect([other.status, other.body.error.code]).toEqual([400, 'FLOW_TOOLS_MISSING'])
  })

  it.each([
    { name: 'a tool that fails', source: '#!/bin/sh\nexit 3', status: 502 },
    { name: 'a tool that is not there', source: '#!/no/such/program', status: 502 },
  ])('is gone when its run fails: $name', async ({ source, status }) => {
    const { post, lying } = await allowing()
    const failed = await post('/v1/runs', { flow: using('it'), tools: [tool('it', source)], ...INPUTS })
    expect([failed.status, lying()]).toEqual([status, []])
  })

  it('is gone, with the program it started, when its run is cancelled', async () => {
    const { post, get, lying } = await allowing()
    const source = '#!/usr/bin/env node\nsetInterval(() => {}, 1000)'
    const asked = { flow: using('it'), tools: [tool('it', source)], ...INPUTS }
    const { body } = await post('/v1/runs', asked, { prefer: 'respond-async' })
    expect(lying()).toHaveLength(1)
    await post(`/v1/runs/${body.run}/cancel`)
    await get(`/v1/runs/${body.run}/events`)
    while (lying().length > 0) await new Promise((resolve) => setImmediate(resolve))
    expect((await get(`/v1/runs/${body.run}`)).body.status).toBe('cancelled')
  })

  it('is gone when the server ends', async () => {
    const { post, server, folder, lying } = await allowing()
    const ready = join(folder, 'ready')
    const source = `#!/usr/bin/env node
      const { existsSync } = require('node:fs')
      const look = () => (existsSync(${JSON.stringify(ready)}) ? console.log('{}') : setTimeout(look, 10))
      look()`
    await post('/v1/runs', { flow: using('it'), tools: [tool('it', source)], ...INPUTS }, { prefer: 'respond-async' })
    expect(lying()).toHaveLength(1)
    const closed = server.close()
    writeFileSync(ready, '')
    expect([await closed, readdirSync(join(folder, 'work'))]).toEqual([true, ['.keep']])
  })

  it('is gone when its request is refused, and validated without a trace (Q9)', async () => {
    const { post, lying } = await allowing()
    const refused = await post('/v1/runs', { flow: using('other'), tools: [tool()], ...INPUTS })
    expect([refused.status, refused.body.error.code]).toEqual([400, 'FLOW_TOOLS_MISSING'])
    const input = await post('/v1/runs', { flow: using('shout'), tools: [tool()], inputs: {} })
    expect(input.status).toBe(400)
    expect((await post('/v1/validate', { flow: using('shout'), tools: [tool()] })).body.valid).toBe(true)
    expect(lying()).toEqual([])
  })

  it('sees nothing of the environment but PATH', async () => {
    const env = { PATH: process.env.PATH, SECRET: 'marker-of-the-operator' }
    const { post } = await allowing({ env })
    const source = `#!/usr/bin/env node\nconsole.log(JSON.stringify({ said: Object.keys(process.env).sort().join() }))`
    const { body } = await post('/v1/runs', { flow: using('env'), tools: [tool('env', source)], ...INPUTS })
    expect(body.result).toEqual({ said: 'PATH' })
    const serving = `serve({ Mine: { execute: () => ({ output: { said: Object.keys(process.env).join() } }) } })`
    const inPlugin = await post('/v1/runs', { flow: minded, plugins: [plugin(serving, [node])], ...INPUTS })
    expect(inPlugin.body.result).toEqual({ said: '' })
  })

  it('stays with its thread, which goes on with it', async () => {
    const { post, lying } = await allowing()
    await post('/v1/runs', { flow: using('shout'), tools: [tool()], thread: 't', ...INPUTS })
    const again = await post('/v1/runs', { thread: 't', inputs: { said: 'more' } })
    expect([again.body.error, again.body.result, lying()]).toEqual([undefined, { said: 'MORE' }, []])
  })

  it('comes with a document, and never with a flow of the server or a thread', async () => {
    const { post } = await allowing()
    for (const body of [{ flow: 'echo' }, { thread: 't' }]) {
      const { status, body: told } = await post('/v1/runs', { ...body, tools: [tool()], ...INPUTS })
      expect([status, told.error.code]).toEqual([400, 'REQUEST_INVALID'])
    }
  })

  it('is said to be allowed, with its limits', async () => {
    const { get } = await allowing({ maxRequestTools: 2 })
    const { body } = await get('/v1/capabilities')
    expect(body).toMatchObject({
      allowRequestCode: true,
      limits: { maxRequestTools: 2, maxRequestPlugins: 5, maxRequestFiles: 20, maxRequestCodeBytes: 262_144 },
    })
    const { get: getElsewhere } = await served()
    expect((await getElsewhere('/v1/capabilities')).body.allowRequestCode).toBe(false)
  })
})

describe('code that is not what it may be', () => {
  it.each([
    { name: 'a tool that climbs', body: { tools: [tool('../shout')] } },
    { name: 'a tool with a folder', body: { tools: [tool('a/b')] } },
    { name: 'an absolute tool', body: { tools: [tool('/tmp/shout')] } },
    { name: 'a tool with a NUL', body: { tools: [tool('shout\0')] } },
    { name: 'a tool with a line end', body: { tools: [tool('shout\n')] } },
    { name: 'a tool that is no name', body: { tools: [tool('.')] } },
    { name: 'a tool that hides', body: { tools: [tool('.shout')] } },
    { name: 'a tool of every object', body: { tools: [tool('constructor')] } },
    { name: 'two tools of one name', body: { tools: [tool(), tool()] } },
    { name: 'two tools of one name on some disks', body: { tools: [tool('shout'), tool('Shout')] } },
    { name: 'a tool that nothing runs', body: { tools: [tool('shout', 'echo')] } },
    { name: 'an interpreter in a folder', body: { tools: [{ ...tool(), interpreter: '/bin/sh' }] } },
    { name: 'an interpreter with arguments', body: { tools: [{ ...tool(), interpreter: 'sh -c' }] } },
    { name: 'a file that climbs', body: { files: [{ path: '../tools/shout', content: '' }] } },
    { name: 'a file that climbs later', body: { files: [{ path: 'a/../../b', content: '' }] } },
    { name: 'an absolute file', body: { files: [{ path: '/etc/passwd', content: '' }] } },
    { name: 'a file of Windows', body: { files: [{ path: '..\\b', content: '' }] } },
    { name: 'a file that hides', body: { files: [{ path: 'a/.npmrc', content: '' }] } },
    { name: 'a file with an empty step', body: { files: [{ path: 'a//b', content: '' }] } },
    { name: 'a file of every object', body: { files: [{ path: 'a/__proto__', content: '' }] } },
    { name: 'a file twice', body: { files: ['a', 'A'].map((path) => ({ path, content: '' })) } },
    { name: 'a file below a file', body: { files: ['a', 'a/b'].map((path) => ({ path, content: '' })) } },
    { name: 'a plugin that climbs', body: { plugins: [{ ...plugin('', [node]), name: '../mine' }] } },
    { name: 'a plugin under another name', body: { plugins: [{ ...plugin('', [node]), name: 'other' }] } },
    { name: 'too many tools', body: { tools: Array.from({ length: 11 }, (_, i) => tool(`t${i}`)) } },
    { name: 'too many plugins', body: { plugins: Array.from({ length: 6 }, () => plugin('', [node])) } },
    {
      name: 'too many files',
      body: { files: Array.from({ length: 21 }, (_, i) => ({ path: `f${i}`, content: '' })) },
    },
    { name: 'too many bytes', body: { files: [{ path: 'a', content: 'ä'.repeat(131_073) }] } },
    {
      name: 'too many bytes of a manifest',
      body: { plugins: [plugin('', [node], { description: 'x'.repeat(262_144) })] },
    },
  ])('is refused before it is on the disk: $name (Q9)', async ({ body }) => {
    const { post, lying, folder } = await allowing()
    const answer = await post('/v1/runs', { flow: using('shout'), ...body, ...INPUTS })
    expect([answer.status, answer.body.error.code]).toEqual([400, 'CODE_INVALID'])
    expect(answer.text).not.toContain(folder)
    expect(lying()).toEqual([])
  })

  it.each([
    { name: 'a tool of the operator', code: 'CODE_TAKEN', body: { tools: [tool('own')] } },
    {
      name: 'a tool of a plugin',
      code: 'CODE_TAKEN',
      body: { plugins: [plugin('', [node], { tools: [{ name: 'own', componentType: 'Mine' }] })] },
    },
    {
      name: 'a component type',
      code: 'CODE_TAKEN',
      body: { plugins: [plugin('', [{ ...node, componentType: 'Gate' }])] },
    },
    {
      name: 'a plugin',
      code: 'CODE_TAKEN',
      body: { plugins: [{ ...plugin('', [node], { name: 'gate' }), name: 'gate' }] },
    },
  ])('never takes the place of what is installed: $name', async ({ code, body }) => {
    const { post, lying } = await allowing()
    const answer = await post('/v1/runs', { flow: using('own'), ...body, ...INPUTS })
    expect([answer.status, answer.body.error.code, lying()]).toEqual([400, code, []])
  })

  it.each([
    { type: 'Node', code: 'CODE_INVALID' },
    { type: 'ModelNode', code: 'CODE_TAKEN' },
    { type: 'ToolNode', code: 'CODE_INVALID' },
    { type: 'AgentNode', code: 'CODE_INVALID' },
    { type: 'GraphNode', code: 'CODE_TAKEN' },
  ])('never has a component type by which policies know nodes in code: $type', async ({ type, code }) => {
    const { post, lying } = await allowing()
    const plugins = [plugin('', [{ ...node, componentType: type }])]
    const answer = await post('/v1/runs', { flow: ECHO, plugins, ...INPUTS })
    expect([answer.status, answer.body.error.code, lying()]).toEqual([400, code, []])
  })

  it('has no more in an entry than an entry has', async () => {
    const { post } = await allowing()
    for (const more of [{ mode: 0o4755 }, { link: '/etc/passwd' }, { env: { A: 'b' } }]) {
      const answer = await post('/v1/runs', { flow: using('shout'), tools: [{ ...tool(), ...more }], ...INPUTS })
      expect([answer.status, answer.body.error.code]).toEqual([400, 'REQUEST_INVALID'])
    }
  })

  it.each([
    { name: 'a variable of the machine', config: { api_key: '$SECRET' }, code: 'FLOW_ENVIRONMENT' },
    { name: 'an address of this network', config: { url: 'http://[::ffff:127.0.0.1]:1/v1' }, code: 'MODEL_ADDRESS' },
  ])('opens to its document nothing that is closed without it: $name', async ({ config, code }) => {
    const { post, lying } = await allowing()
    const ask = {
      component_type: 'LlmNode',
      prompt_template: 'Hello.',
      llm_config: { component_type: 'OpenAiConfig', id: 'm', name: 'm', model_id: 'small', ...config },
    }
    const asked = { flow: flowOf({ nodes: { ask, it: toolNode('shout', said, said) }, inputs: said }), tools: [tool()] }
    const answer = await post('/v1/runs', { ...asked, ...INPUTS })
    expect([answer.status, answer.body.error.code, lying()]).toEqual([400, code, []])
  })

  it('spends no key of the operator’s on a model (Q10)', async () => {
    const { post } = await allowing({ env: { PATH: process.env.PATH, OPENAI_API_KEY: 'sk-operator' } })
    const calling = plugin('', [node], { capabilities: ['callModel'] })
    const answer = await post('/v1/runs', { flow: minded, plugins: [calling], ...INPUTS })
    expect([answer.status, answer.body.error.code]).toEqual([400, 'CODE_INVALID'])
    expect(answer.body.error.message).toContain('"callModel"')
  })
})

describe('a policy among the code of a request', () => {
  const disguises = [
    { name: 'as it is', plugin: plugin('', [middleware]) },
    { name: 'beside a node', plugin: plugin('', [node, { ...middleware, componentType: 'Other' }]) },
    { name: 'in other letters', plugin: plugin('', [{ ...middleware, kind: 'Middleware' }]) },
    { name: 'with blanks', plugin: plugin('', [{ ...middleware, kind: ' middleware' }]) },
    { name: 'as a policy', plugin: plugin('', [{ ...middleware, kind: 'policy' }]) },
    { name: 'in a list', plugin: plugin('', [{ ...middleware, kind: ['middleware'] }]) },
    { name: 'with seams of a node', plugin: plugin('', [{ ...middleware, kind: 'node' }]) },
    { name: 'without a kind', plugin: plugin('', [{ componentType: 'Mine', seams: { toolCall: ['before'] } }]) },
    { name: 'beside the components', plugin: plugin('', [node], { middleware: [middleware] }) },
    { name: 'as a module', plugin: plugin('', [node], { handlers: { Mine: {} } }) },
    { name: 'told later', plugin: plugin('', [node], { discoverTools: true }) },
    { name: 'in a program of its own', plugin: plugin('', [node], { command: ['node', 'evil.mjs'] }) },
    { name: 'as the store', plugin: plugin('', [{ componentType: 'Mine', kind: 'store' }]) },
    {
      name: 'as an encoder',
      plugin: plugin('', [{ componentType: 'Mine', kind: 'encoder', protocol: 'p', contentType: 't/t' }]),
    },
    { name: 'with files', plugin: plugin('', [node], { files: [{ path: 'a' }] }) },
    {
      name: 'with a tool that shadows',
      plugin: plugin('', [node], { tools: [{ name: 'own', componentType: 'Mine', shadows: true }] }),
    },
    { name: 'with a program of the machine', plugin: plugin('', [node], { tools: [{ name: 'sh', path: '/bin/sh' }] }) },
  ]

  it.each(disguises)('is 400 with the flag and without: $name (Q9)', async ({ plugin: mine }) => {
    const { post, get, lying } = await allowing()
    const installed = (await get('/v1/capabilities')).body.middleware
    const asked = { flow: minded, plugins: [mine], ...INPUTS }
    const answer = await post('/v1/runs', asked)
    expect([answer.status, answer.body.error.code]).toEqual([400, 'CODE_INVALID'])
    expect([(await get('/v1/capabilities')).body.middleware, lying()]).toEqual([installed, []])
    const without = await (await served()).post('/v1/runs', asked)
    expect([without.status, without.body.error.code]).toEqual([400, 'REQUEST_CODE'])
  })

  it('is none, whatever its process says on the wire: nobody asks it', async () => {
    const { post } = await allowing()
    const source = `serve({ Mine: {
      execute: (input) => ({ output: input }),
      toolCall: { before: () => ({ action: 'reject', reason: 'it is a policy' }) },
      node: { after: () => ({ action: 'replace', value: { said: 'replaced' } }) },
    } })`
    const { body } = await post('/v1/runs', { flow: minded, plugins: [plugin(source, [node])], ...INPUTS })
    expect(body.result).toEqual({ said: 'ten' })
  })
})

describe('code in a request of another protocol', () => {
  const chat = { id: 't', messages: [] }
  const input = { threadId: 't', runId: 'r', messages: [], tools: [], context: [] }
  const completion = { model: 'echo', messages: [{ role: 'user', content: 'x' }] }
  it.each([
    { path: '/v1/ag-ui/echo', body: { ...input, plugins: [] } },
    { path: '/v1/ag-ui/echo', body: { ...input, middleware: [middleware] } },
    { path: '/v1/ag-ui/echo', body: { ...input, tools: [tool()] } },
    { path: '/v1/ag-ui/echo', body: { ...input, forwardedProps: { plugins: [plugin('', [middleware])] } } },
    { path: '/v1/ai-sdk/echo', body: { ...chat, tools: [tool()] } },
    { path: '/v1/ai-sdk/echo', body: { ...chat, pluginConfig: {} } },
    { path: '/v1/chat/completions', body: { ...completion, plugins: [plugin('', [middleware])] } },
    { path: '/v1/chat/completions', body: { ...completion, files: [] } },
  ])('is refused, and not let be: $path $body', async ({ path, body }) => {
    for (const options of [{}, { allowRequestCode: true }]) {
      const { post } = await served({ 'flows/echo.json': ECHO }, () => options)
      const answer = await post(path, body)
      expect([answer.status, answer.body.error.code]).toEqual([400, 'REQUEST_CODE'])
    }
  })
})

describeDurable('a run with code that another server goes on with', () => {
  it('has it there, where it is allowed, and ends with the reason where it is not', async () => {
    const { folder } = await served()
    const at = (name: string) => join(folder, name)
    const files = { 'gate.mjs': GATE }
    const serve = (allowRequestCode: boolean) =>
      served(files, (here) => ({ plugins: [here('gate.mjs')], allowRequestCode, ...keptIn(at('runs.db')) }))
    const asked = { flow: PAYING, tools: [tool('pay')], ...INPUTS }
    const asksOf = async () => {
      const one = await serve(true)
      const [ask] = (await one.post('/v1/runs', asked)).body.asks
      await one.server.close()
      return `/v1/asks/${ask.id}/answer`
    }
    const YES = { answer: { approved: true } }
    const first = await asksOf()
    const two = await serve(true)
    expect((await two.post(first, YES)).body.result).toEqual({ said: 'TEN' })
    await two.server.close()
    const second = await asksOf()
    const three = await serve(false)
    const refused = await three.post(second, YES)
    expect([refused.status, refused.body.error.code]).toEqual([400, 'REQUEST_CODE'])
    await three.server.close()
    expect((await (await serve(true)).post(second, YES)).body.result).toEqual({ said: 'TEN' })
  })

  it('is told of without its state where that is not allowed any more', async () => {
    const { folder } = await served()
    const serve = (allowRequestCode: boolean) =>
      served({ 'gate.mjs': GATE }, (here) => ({
        plugins: [here('gate.mjs')],
        allowRequestCode,
        ...keptIn(join(folder, 'runs.db')),
      }))
    const one = await serve(true)
    const { body: paused } = await one.post('/v1/runs', { flow: PAYING, tools: [tool('pay')], ...INPUTS })
    const path = `/v1/threads/${paused.thread}`
    const { state, ...whole } = (await one.get(path)).body
    expect(state).toBeDefined()
    await one.server.close()
    const two = await serve(false)
    const { status, body } = await two.get(path)
    expect([status, body.state]).toEqual([200, undefined])
    for (const name of ['thread', 'asks', 'branches', 'runs']) expect([name, body[name]]).toEqual([name, whole[name]])
    const past = await two.get(`${path}?at=1`)
    expect([past.status, past.body.error.code]).toEqual([400, 'REQUEST_CODE'])
  })
})
