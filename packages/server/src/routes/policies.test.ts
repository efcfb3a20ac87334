import { rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { LLMock } from '@copilotkit/aimock'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { ECHO, ECHO_TOOL, helperOf, PAYING } from '../testing/documents.ts'
import { served } from '../testing/served.ts'

/** A policy in a process of its own. */
const policy = (type: string, seams: object, program: string, schema: object = {}) => ({
  [`${type}.json`]: {
    name: type.toLowerCase(),
    version: '1.0.0',
    capabilities: ['log'],
    components: [{ componentType: type, kind: 'middleware', seams, schema }],
  },
  [`${type}.mjs`]: program,
})

const guard = (type: string, verdict: string) =>
  policy(type, { toolCall: ['before'] }, `serve({ ${type}: { toolCall: { before: ${verdict} } } })`)

const pays = { flow: 'paying', inputs: { said: 'ten' } }
const paying = { 'flows/paying.json': PAYING, 'tools/pay': ECHO_TOOL }

describe('policies on a server', () => {
  it.each([
    {
      name: 'settings that do not fit',
      options: { pluginConfig: ['Gate={"limit":"many"}'] },
      code: 'PLUGIN_CONFIG',
      program: '() => ({ action: "proceed" })',
    },
    {
      name: 'settings that nobody takes',
      options: { pluginConfig: ['Other={}'] },
      code: 'PLUGIN_CONFIG_TYPE',
      program: '() => ({ action: "proceed" })',
    },
    { name: 'a plugin that does not start', options: {}, code: 'SERVER_PLUGIN', program: '() => { oh no' },
    {
      name: 'a self-test that fails',
      options: {},
      code: 'SERVER_PLUGIN',
      program: `() => ({ action: 'proceed' }) }, selfTest() { throw new Error('no list')`,
    },
  ])(
    'stand before the port opens: $name is a server that does not start (E13, A8)',
    async ({ options, code, program }) => {
      const schema = { type: 'object', properties: { limit: { type: 'number' } } }
      const body = `serve({ Gate: { toolCall: { before: ${program} } } })`
      const files = policy('Gate', { toolCall: ['before'] }, body, schema)
      const starting = served(files, (at) => ({ plugins: [at('Gate.json')], ...options }))
      await expect(starting).rejects.toMatchObject({ code })
    },
  )

  it('are consulted about every request, and listed with their seams and modes (Q13)', async () => {
    const { post, get } = await served(
      { ...paying, ...guard('Gate', `() => ({ action: 'reject', reason: 'not here' })`) },
      (at) => ({ plugins: [at('Gate.json')] }),
    )
    expect((await get('/v1/capabilities')).body.middleware).toEqual([
      { name: 'Gate', plugin: 'gate', mode: 'enforce', seams: { toolCall: ['before'] } },
    ])
    for (const flow of ['paying', PAYING]) {
      const { status, body } = await post('/v1/runs', { ...pays, flow })
      expect(status).toBe(403)
      expect(body).toMatchObject({ status: 'failed', error: { message: expect.stringContaining('not here') } })
    }
  })

  it('in shadow are listed as such, and refuse nothing', async () => {
    const { post, get } = await served(
      {
        ...paying,
        ...guard('Gate', `() => ({ action: 'reject', reason: 'not here' })`),
        'sluice.yaml': 'policies:\n  - plugin: ./Gate.json\n    mode: shadow\n',
      },
      (at) => ({ policies: at('sluice.yaml') }),
    )
    expect((await get('/v1/capabilities')).body.middleware).toMatchObject([{ name: 'Gate', mode: 'shadow' }])
    expect((await post('/v1/runs', pays)).body).toMatchObject({ status: 'completed', result: { said: 'ten' } })
  })

  it('run in one process for all runs, which ends with the server (Q13)', async () => {
    const told = new Set<string>()
    const program = `serve({ Gate: { toolCall: { before(_, ctx) { process.stderr.write(process.pid + '\\n'); return { action: 'proceed' } } } } })`
    const { post, server } = await served(
      { ...paying, ...policy('Gate', { toolCall: ['before'] }, program) },
      (at) => ({
        plugins: [at('Gate.json')],
        onStderr: (_plugin, text) => {
          for (const line of text.trim().split('\n')) told.add(line)
        },
      }),
    )
    await Promise.all([1, 2, 3].map(() => post('/v1/runs', pays)))
    await server.close()
    expect(told.size).toBe(1)
    const [pid] = [...told].map(Number)
    expect(() => process.kill(pid as number, 0)).toThrow('ESRCH')
  })

  it('what they supplied or refused stands in an answer that is waited for (Z15)', async () => {
    const { post, get } = await served(
      { ...paying, ...guard('Stub', `() => ({ action: 'replace', value: { said: 'made up' } })`) },
      (at) => ({ plugins: [at('Stub.json')] }),
    )
    const { body } = await post('/v1/runs', pays)
    expect(body.result).toEqual({ said: 'made up' })
    expect(body.warnings).toEqual([expect.objectContaining({ policy: 'Stub', seam: 'toolCall' })])
    expect(body.decisions).toEqual([expect.objectContaining({ policy: 'Stub', action: 'replace' })])
    const decided = { run: body.run, thread: body.thread, ...body.decisions[0] }
    expect((await get('/v1/decisions')).body.decisions).toEqual([decided])
  })

  it('that never answer are bounded by their own time (Q14)', async () => {
    const program = 'serve({ Slow: { toolCall: { before: () => new Promise(() => {}) } } })'
    const { post } = await served(
      {
        ...paying,
        ...policy('Slow', { toolCall: ['before'] }, program),
        'sluice.yaml': 'policies:\n  - plugin: ./Slow.json\n    timeoutMs: 100\n',
      },
      (at) => ({ policies: at('sluice.yaml') }),
    )
    const { body } = await post('/v1/runs', pays)
    expect(body.error).toMatchObject({
      code: 'MIDDLEWARE_FAILED',
      message: expect.stringMatching(/timed out after \d+ ms/),
    })
  })

  it('one caller who leaves in the middle of a consultation fails nobody else’s run, nor the process (Z11)', async () => {
    const program = `let free
      const freed = new Promise((resolve) => { free = resolve })
      serve({ Slow: { toolCall: { async before({ input: { said } }) {
        process.stderr.write(process.pid + ' ' + said + '\\n')
        if (said === 'leaves') await new Promise(() => {})
        if (said === 'frees') free()
        await freed
        return { action: 'proceed' }
      } } } })`
    let told = ''
    const { post, get, server } = await served(
      {
        ...paying,
        ...policy('Slow', { toolCall: ['before'] }, program),
        'sluice.yaml': 'policies:\n  - plugin: ./Slow.json\n    timeoutMs: 15000\n',
      },
      (at) => ({
        policies: at('sluice.yaml'),
        onStderr: (_plugin, text) => {
          told += text
        },
      }),
    )
    const consulted = (said: string) => vi.waitFor(() => expect(told).toContain(` ${said}\n`), 10_000)
    const gone = new AbortController()
    const leaves = { ...pays, inputs: { said: 'leaves' }, thread: 'left' }
    const headers = { 'content-type': 'application/json' }
    const init = { method: 'POST', headers, body: JSON.stringify(leaves), signal: gone.signal }
    const left = Promise.resolve(server.app.request('/v1/runs', init))
    await consulted('leaves')
    const waits = post('/v1/runs', { ...pays, inputs: { said: 'waits' } })
    await consulted('waits')
    gone.abort()
    await left.catch(() => {})
    const [{ run }] = (await get('/v1/threads/left')).body.runs
    expect((await get(`/v1/runs/${run}/events`)).text).toContain('RUN_CANCELLED')
    expect((await post('/v1/runs', { ...pays, inputs: { said: 'frees' } })).body.result).toEqual({ said: 'frees' })
    expect((await waits).body.result).toEqual({ said: 'waits' })
    expect(new Set(told.match(/^\d+/gm)).size).toBe(1)
  })

  it('make a server not ready once one of them answers no more, until it is loaded anew (Z10)', async () => {
    const program = `import { existsSync } from 'node:fs'
      if (existsSync(new URL('broken', import.meta.url))) process.exit(1)
      serve({ Gate: { toolCall: { before: ({ input }) => input.said === 'die' ? process.exit(1) : { action: 'proceed' } } } })`
    const { post, get, folder } = await served(
      { ...paying, ...policy('Gate', { toolCall: ['before'] }, program) },
      (at) => ({ plugins: [at('Gate.json')], reloadOn: ['SIGHUP'] }),
    )
    const die = () => post('/v1/runs', { ...pays, inputs: { said: 'die' } })
    const ready = async () => (await get('/readyz')).status
    expect((await die()).body.status).toBe('failed')
    expect((await post('/v1/runs', pays)).body.result).toEqual({ said: 'ten' })
    expect(await ready()).toBe(200)

    writeFileSync(join(folder, 'broken'), '')
    for (let i = 0; i < 6; i++) expect((await die()).body.status).toBe('failed')
    expect(await get('/readyz')).toMatchObject({ status: 503, body: { status: 'policy-lost' } })
    expect((await get('/healthz')).status).toBe(200)

    rmSync(join(folder, 'broken'))
    expect((await post('/v1/runs', pays)).body.error.message).toContain('is not started again')
    process.emit('SIGHUP')
    await vi.waitFor(async () => expect(await ready()).toBe(200))
    expect((await post('/v1/runs', pays)).body.result).toEqual({ said: 'ten' })
  })

  it('hold an agent to the rounds that the operator allows (Z12)', async () => {
    const model = new LLMock({ port: 0 })
    await model.start()
    onTestFinished(async () => void (await model.stop()))
    model.addFixture({ match: {}, response: { toolCalls: [{ id: 'c', name: 'pay', arguments: '{"said":"ten"}' }] } })
    const { post } = await served({ ...paying, 'flows/helper.json': helperOf(`${model.url}/v1`) }, () => ({
      limits: { maxToolRounds: 2 },
    }))
    const { body } = await post('/v1/runs', { flow: 'helper', inputs: { said: 'pay' } })
    expect(body).toMatchObject({ status: 'failed', error: { code: 'ROUNDS_SPENT' } })
    expect(model.getRequests()).toHaveLength(2)
  })

  it('a run that has no time left says so (Z18)', async () => {
    const program = `serve({ Slow: { toolCall: { before: () => new Promise(() => {}) } } })`
    const { post } = await served({ ...paying, ...policy('Slow', { toolCall: ['before'] }, program) }, (at) => ({
      plugins: [at('Slow.json')],
    }))
    const { status, body } = await post('/v1/runs', { ...pays, timeoutMs: 50 })
    expect([status, body.error.code]).toEqual([504, 'RUN_TIMED_OUT'])
  })
})

describe('names in requests (Q3)', () => {
  it.each(['../flows/echo', '..%2fecho', '/etc/passwd', 'echo.json', 'ECHO', 'echo\u0000', '__proto__', 'constructor'])(
    'a flow is one of the server’s or none: %j',
    async (flow) => {
      const { post } = await served({ 'flows/echo.json': ECHO })
      const { status, body } = await post('/v1/runs', { flow, inputs: { said: 'x' } })
      expect([status, body.error.code]).toEqual([404, 'FLOW_UNKNOWN'])
    },
  )

  it('a link out of the folder is no flow', async () => {
    const { post } = await served({ 'elsewhere/echo.json': ECHO }, (at) => {
      symlinkSync(at('elsewhere/echo.json'), at('flows/linked.json'))
      return {}
    })
    const { status, body } = await post('/v1/runs', { flow: 'linked', inputs: { said: 'x' } })
    expect([status, body.error.code]).toEqual([404, 'FLOW_UNKNOWN'])
  })

  it('a server without a folder of flows has none', async () => {
    const { post } = await served({ 'flows/echo.json': ECHO }, () => ({ flows: undefined }))
    const { status, body } = await post('/v1/runs', { flow: 'echo', inputs: { said: 'x' } })
    expect([status, body.error.code]).toEqual([404, 'FLOW_UNKNOWN'])
  })
})
