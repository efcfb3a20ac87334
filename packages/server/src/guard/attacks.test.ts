import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { frameText } from '../http/sse.ts'
import { callers } from '../testing/callers.ts'
import { ECHO, ECHO_TOOL, GATE, PAYING } from '../testing/documents.ts'
import { framesOf, served } from '../testing/served.ts'

const { file, as } = callers({
  ann: { scopes: ['run', 'answer', 'edit'] },
  bob: { scopes: ['run', 'answer', 'edit'] },
  eve: { scopes: ['read', 'answer'] },
})

const FILES = {
  'flows/echo.json': ECHO,
  'flows/paying.json': PAYING,
  'secret.json': ECHO,
  'tools/pay': ECHO_TOOL,
  'gate.mjs': GATE,
  'tokens.json': file,
}
const site = () => served(FILES, (at) => ({ plugins: [at('gate.mjs')], tokens: at('tokens.json') }))
const PAY = { flow: 'paying', inputs: { said: 'ten' }, thread: 't' }
const YES = { answer: { approved: true } }

describe('a name that leads elsewhere', () => {
  it.each([
    '../secret',
    '..\\secret',
    '/etc/passwd',
    './echo',
    'echo.json',
    'flows/echo',
    '%2e%2e%2fsecret',
    'echo\0',
    '__proto__',
    'constructor',
    'file:text::',
  ])('is no flow, and nothing is said of files: %j', async (flow) => {
    const { post, folder } = await site()
    const { status, text, body } = await post('/v1/runs', { flow }, as.ann)
    expect([status, body.error.code]).toEqual([404, 'FLOW_UNKNOWN'])
    expect(text).not.toContain(folder)
  })

  it.each([
    '../bob/t',
    'bob/t',
    'bob\\t',
    '..',
    '.',
    '%2e%2e',
    '-t',
    't\n',
    't\r\nset-cookie: a=b',
    't\0',
    '',
    'ä',
    'x'.repeat(129),
    '$ref',
  ])('is no thread: %j', async (thread) => {
    const { post } = await site()
    for (const path of ['/v1/runs', '/v1/threads']) {
      const { status, body } = await post(path, { flow: 'echo', thread }, as.ann)
      expect([status, body.error.code]).toEqual([400, 'THREAD_NAME'])
    }
  })

  it.each([
    '/v1/threads/bob%2Ft',
    '/v1/threads/..%2Fbob%2Ft',
    '/v1/threads/%2e%2e%2fbob%2ft',
    '/v1/threads/t?owner=bob',
    '/v1/threads/t?owner=..%2Fbob',
    '/v1/threads/t%00',
    '/v1/threads/t/history?owner=bob',
    '/v1/threads/__proto__',
    '/v1/threads/%ff',
    '/v1/runs/..%2F..%2Fthreads%2Ft',
    '/v1/runs/__proto__/events',
    '/v1/runs/%E0%A4%A',
    '/openapi.json/../v1/threads/t?owner=bob',
    '/..%2f..%2fetc/passwd',
    '/static/../../secret.json',
  ])('in an address finds nothing of bob’s and nothing on the disk: %s', async (path) => {
    const { post, get, folder } = await site()
    await post('/v1/runs', PAY, as.bob)
    const { status, text } = await get(path, as.ann)
    expect(status).toBe(404)
    expect(text).not.toContain(folder)
  })

  it.each(['branch', 'name'])('is no branch: "%s" of a fork', async (field) => {
    const { post } = await site()
    await post('/v1/runs', { ...PAY, flow: 'echo' }, as.ann)
    const { status } = await post('/v1/threads/t/fork', { [field]: '../../bob/t' }, as.ann)
    expect(status).toBeGreaterThanOrEqual(400)
    expect(status).toBeLessThan(500)
  })
})

describe('an answer', () => {
  const asked = async () => {
    const { post, ...rest } = await site()
    const { body } = await post('/v1/runs', PAY, as.ann)
    const answer = (id: string, sent: unknown = YES, headers: Record<string, string> = as.eve) =>
      post(`/v1/asks/${id}/answer`, sent, headers)
    return { post, ...rest, answer, ask: body.asks[0], run: body.run as string }
  }

  it('that is forged finds no question: its id cannot be told from what is known of it', async () => {
    const { answer, ask, run } = await asked()
    expect(ask.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    for (const id of [
      ask.key,
      run,
      't',
      encodeURIComponent(`ann/t/${ask.key}`),
      '00000000-0000-4000-8000-000000000000',
    ])
      expect((await answer(id)).status).toBe(404)
  })

  it('that is sent again, later or at the same time, counts once', async () => {
    const { answer, ask, get } = await asked()
    const answers = await Promise.all([answer(ask.id), answer(ask.id), answer(ask.id)])
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409, 409])
    expect((await answer(ask.id)).body.error.code).toBe('ASK_ANSWERED')
    expect((await get('/v1/threads/t', as.ann)).body.runs).toHaveLength(2)
  })

  it('of one run is none of the next, which asks anew', async () => {
    const { post, answer, ask } = await asked()
    await answer(ask.id)
    const next = await post('/v1/runs', PAY, as.ann)
    expect(next.body.status).toBe('paused')
    expect(next.body.asks[0].id).not.toBe(ask.id)
    expect((await answer(ask.id)).status).toBe(409)
  })

  it.each([
    { name: 'who answers', sent: { ...YES, by: 'eve' } },
    { name: 'which run', sent: { ...YES, run: 'x' } },
    { name: 'another key', sent: { ...YES, answers: { 'pay:pay@Gate': true } } },
  ])('may not say $name', async ({ sent }) => {
    const { answer, ask } = await asked()
    expect((await answer(ask.id, sent)).status).toBe(400)
  })

  it.each([
    { name: 'beside the inputs', body: { ...PAY, answers: { 'pay:pay@Gate': { approved: true } } } },
    { name: 'as a resume', body: { thread: 't', resume: { approved: true } } },
    { name: 'as what it was begun with', body: { thread: 't', begun: { kind: 'resume', answers: {} } } },
    { name: 'by who started it', body: { ...PAY, by: 'eve', startedBy: 'eve' } },
  ])('is not taken from a run: $name', async ({ body }) => {
    const { post, get } = await asked()
    expect((await post('/v1/runs', body, as.ann)).status).toBe(400)
    expect((await get('/v1/asks', as.ann)).body.asks).toHaveLength(1)
  })

  it('is used once, wherever the thread is forked', async () => {
    const { post, get, answer, ask } = await asked()
    await answer(ask.id)
    const { records } = (await get('/v1/threads/t/history', as.ann)).body
    const places: Record<string, string> = {}
    for (const { seq, type } of records) {
      const fork = await post('/v1/threads/t/fork', { at: seq, name: `fork-${seq}` }, as.ann)
      const run = await post('/v1/runs', { thread: 't', branch: `fork-${seq}`, continue: true }, as.ann)
      places[`${seq} ${type}`] = fork.body.error?.code ?? run.body.error?.code ?? run.body.status
    }
    expect(places).toEqual({
      '1 start': 'paused',
      '2 begin': 'paused',
      '3 step': 'paused',
      '4 ask': 'paused',
      '5 end': 'THREAD_PAUSED',
      '6 resume': 'paused',
      '7 answer': 'FORK_ANSWERED',
      '8 call': 'FORK_ANSWERED',
      '9 call': 'completed',
      '10 step': 'completed',
      '11 step': 'completed',
      '12 end': 'THREAD_FINISHED',
    })
  })

  it('is not given by going on: the question is put again', async () => {
    const { post, get } = await asked()
    const { status } = await post('/v1/runs', { thread: 't', continue: true }, as.ann)
    expect([202, 409]).toContain(status)
    expect((await get('/v1/asks', as.ann)).body.asks).toHaveLength(1)
  })
})

describe('a caller poses as another', () => {
  it.each([
    { name: 'in the address', path: '/v1/threads?access_token=TOKEN', headers: {} },
    { name: 'in a cookie', path: '/v1/threads', headers: { cookie: 'authorization=Bearer TOKEN' } },
    {
      name: 'as a proxy would',
      path: '/v1/threads',
      headers: { 'x-forwarded-user': 'ann', 'x-forwarded-for': '127.0.0.1', forwarded: 'for=127.0.0.1' },
    },
    { name: 'by the name alone', path: '/v1/threads', headers: { authorization: 'Bearer ann' } },
    { name: 'by basic', path: '/v1/threads', headers: { authorization: `Basic ${btoa('ann:')}` } },
  ])('$name', async ({ path, headers }) => {
    const { get } = await site()
    const token = as.ann.authorization.slice('Bearer '.length)
    const sent = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, value.replace('TOKEN', token)]),
    )
    expect((await get(path.replace('TOKEN', token), sent)).status).toBe(401)
  })

  it('by another method than is sent', async () => {
    const { post, get } = await site()
    await post('/v1/runs', { ...PAY, flow: 'echo' }, as.ann)
    await post('/v1/threads', { thread: 't2' }, { ...as.ann, 'x-http-method-override': 'DELETE' })
    expect((await get('/v1/threads/t', as.ann)).status).toBe(200)
  })
})

describe('text that would be a header, or an event', () => {
  const FORGED = 'x\n\nevent: run_end\ndata: {"status":"completed"}\n\n\r\rid: 99'

  it.each(['\n', '\r', '\r\n', '\0'])('ends no line of a frame: %j', (end) => {
    const text = frameText({ event: `a${end}data: forged`, id: `1${end}event: forged`, data: `"b${end}event: forged"` })
    expect(text.split(/\r\n|\r|\n/).filter((line) => /^(event: forged|data: forged)/.test(line))).toEqual([])
  })

  it('stands in a value of an event, and is none', async () => {
    const { post } = await site()
    const headers = { ...as.ann, accept: 'text/event-stream' }
    const { text } = await post('/v1/runs', { flow: 'echo', inputs: { said: FORGED } }, headers)
    const frames = framesOf(text)
    expect(frames.filter(({ event }) => event === 'run_end')).toHaveLength(1)
    expect(JSON.parse(frames.at(-1)?.data ?? '')).toMatchObject({ result: { said: FORGED } })
    expect(text).not.toContain('\r')
  })

  it.each(['a b', 'a;b', 'ä'.repeat(3), '<script>', 'x'.repeat(256)])('is no id of a request: %j', async (id) => {
    const { get } = await site()
    const { headers, body } = await get('/v1/runs/none', {
      ...as.ann,
      'x-request-id': Buffer.from(id).toString('latin1'),
    })
    expect(headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
    expect(body.request).toBe(headers.get('x-request-id'))
  })

  it('a harmless id of a request is kept, so that logs can be put together', async () => {
    const { get } = await site()
    expect((await get('/v1/runs/none', { ...as.ann, 'x-request-id': 'trace-7' })).body.request).toBe('trace-7')
  })

  it.each(['-1', '1e3', '0x1', '1 ', ' ', '99999999999999999', '1\u00a0'])(
    'is no event to go on from: %j',
    async (id) => {
      const { post, get } = await site()
      const { body } = await post('/v1/runs', { flow: 'echo', inputs: { said: 'x' } }, as.ann)
      const answer = await get(`/v1/runs/${body.run}/events?after=${encodeURIComponent(id)}`, as.ann)
      expect(answer.status).toBe(400)
    },
  )

  it('comes back in no header and as no markup', async () => {
    const { post, get } = await site()
    const evil = '<script>alert(1)</script>'
    const answers = [
      await post('/v1/runs', { flow: evil }, as.ann),
      await post(
        `/v1/runs?protocol=${encodeURIComponent(`${evil}\r\nx: y`)}`,
        { flow: 'echo' },
        { ...as.ann, accept: 'text/event-stream' },
      ),
      await get(`/${encodeURIComponent(evil)}`, as.ann),
    ]
    for (const { headers } of answers) {
      expect(headers.get('content-type')).toContain('application/json')
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(JSON.stringify([...headers])).not.toContain('script')
    }
  })
})

const PLUGIN = {
  manifest: {
    name: 'mine',
    version: '1.0.0',
    capabilities: [],
    components: [{ componentType: 'Gate', kind: 'middleware', seams: { toolCall: ['before'] } }],
  },
  source: 'serve({ Gate: { toolCall: { before: () => ({ action: "proceed" }) } } })',
}

describe('a plugin in a request', () => {
  const FIELDS = [
    'plugin',
    'plugins',
    'middleware',
    'policies',
    'policy',
    'pluginConfig',
    'pluginEnv',
    'toolsDir',
    'runtime',
    'require',
    'mode',
  ]

  it.each(FIELDS)('is refused as the field "%s" (Q2)', async (field) => {
    const { post, folder } = await site()
    for (const value of [PLUGIN, [PLUGIN], join(folder, 'gate.mjs'), [join(folder, 'gate.mjs')], {}, null]) {
      const { status } = await post('/v1/runs', { ...PAY, [field]: value }, as.ann)
      expect([field, status]).toEqual([field, 400])
      expect((await post('/v1/validate', { flow: PAYING, [field]: value }, as.ann)).status).toBe(400)
      expect((await post('/v1/threads', { flow: 'paying', [field]: value }, as.ann)).status).toBe(400)
    }
  })

  const doc = PAYING as { readonly $referenced_components: Record<string, object> }
  const inNode = (more: object) => ({
    ...doc,
    $referenced_components: { ...doc.$referenced_components, pay: { ...doc.$referenced_components.pay, ...more } },
  })
  const gate = { component_type: 'Gate', id: 'gate', name: 'gate' }
  it.each([
    { name: 'a field of the flow', flow: { ...doc, middleware: [PLUGIN] } },
    { name: 'plugins of the flow', flow: { ...doc, plugins: [PLUGIN] } },
    { name: 'a field of a node', flow: inNode({ middleware: [gate] }) },
    { name: 'a node that is the policy', flow: inNode({ component_type: 'Gate' }) },
    {
      name: 'a component that is the policy',
      flow: { ...doc, $referenced_components: { ...doc.$referenced_components, gate } },
    },
    { name: 'a whole document that is the policy', flow: gate },
    { name: 'a plugin’s manifest in place of a flow', flow: PLUGIN.manifest },
    { name: 'a module', flow: 'export default { manifest: {}, handlers: {} }\n' },
    { name: 'YAML with a tag', flow: '!!js/function "function(){}"\n' },
  ])('is refused in the document, or is nothing: $name', async ({ flow }) => {
    const { post, get } = await site()
    const { status, body } = await post('/v1/runs', { ...PAY, flow }, as.ann)
    if (status === 202) expect(body.asks[0].askedBy).toBe('policy:Gate')
    else expect(status).toBe(400)
    expect((await get('/v1/capabilities', as.ann)).body.middleware.map(({ name }: { name: string }) => name)).toEqual([
      'Gate',
    ])
  })

  it.each([
    { name: 'inputs', inputs: { said: 'ten', plugins: [PLUGIN] } },
    { name: 'the text of an input', inputs: { said: JSON.stringify(PLUGIN) } },
    { name: 'inputs named like options', inputs: { said: 'ten', mode: 'shadow', onFailure: 'pass' } },
  ])('is data, or refused, in $name: the policy of the operator is consulted all the same', async ({ inputs }) => {
    const { post } = await site()
    const { status, body } = await post('/v1/runs', { ...PAY, inputs }, as.ann)
    if (status !== 400) expect(body.asks).toMatchObject([{ askedBy: 'policy:Gate' }])
  })

  it.each(['?policies=off', '?mode=shadow', '?plugin=x', '?shadow=1'])('is not asked for by %s', async (query) => {
    const { post } = await site()
    expect((await post(`/v1/runs${query}`, PAY, as.ann)).body.asks).toMatchObject([{ askedBy: 'policy:Gate' }])
  })

  it('leaves nothing on the disk', async () => {
    const { post, folder } = await site()
    await post('/v1/runs', { ...PAY, plugins: [PLUGIN] }, as.ann)
    expect(existsSync(join(folder, 'mine'))).toBe(false)
  })
})

describe('an error', () => {
  it('of the server says nothing of it, and is told whole to who runs it', async () => {
    const onFault = vi.fn()
    const secret = 'cannot open /var/lib/sluice/threads.db'
    const { get } = await served({}, () => ({
      authenticate: () => {
        throw new Error(secret)
      },
      onFault,
    }))
    const { status, text, body } = await get('/v1/threads')
    expect([status, body.error.code]).toEqual([500, 'SERVER_FAULT'])
    expect(text).not.toContain('sluice/threads')
    expect(text).not.toMatch(/\bat .*\.(ts|js)/)
    expect(onFault).toHaveBeenCalledWith(expect.objectContaining({ message: secret }), `request ${body.request}`)
  })
})
