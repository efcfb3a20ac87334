import { LLMock } from '@copilotkit/aimock'
import { describe, expect, it, onTestFinished } from 'vitest'
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
  ])('stand before the port opens: $name is a server that does not start (E13)', async ({ options, code, program }) => {
    const schema = { type: 'object', properties: { limit: { type: 'number' } } }
    const body = `serve({ Gate: { toolCall: { before: ${program} } } })`
    const files = policy('Gate', { toolCall: ['before'] }, body, schema)
    const starting = served(files, (at) => ({ plugins: [at('Gate.json')], ...options }))
    await expect(starting).rejects.toMatchObject({ code })
  })

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

  it('that never answer are bounded by their own time (Q14), and one caller who leaves fails nobody else’s run (Z11)', async () => {
    const program = `serve({ Slow: { toolCall: { before: ({ input }) =>
      input.said === 'hang' ? new Promise(() => {}) : { action: 'proceed' } } } })`
    const { post, server } = await served(
      {
        ...paying,
        ...policy('Slow', { toolCall: ['before'] }, program),
        'sluice.yaml': 'policies:\n  - plugin: ./Slow.json\n    timeoutMs: 1500\n',
      },
      (at) => ({ policies: at('sluice.yaml') }),
    )
    const gone = new AbortController()
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify({ ...pays, inputs: { said: 'hang' } })
    const left = Promise.resolve(server.app.request('/v1/runs', { method: 'POST', headers, body, signal: gone.signal }))
    const hung = post('/v1/runs', { ...pays, inputs: { said: 'hang' } })
    gone.abort()
    await left.catch(() => {})
    expect((await post('/v1/runs', pays)).body.result).toEqual({ said: 'ten' })
    expect((await hung).body.error.message).toContain('timed out')
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
})
