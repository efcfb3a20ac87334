import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { callers } from '../testing/callers.ts'
import { ECHO, PAYING, WAITING_TOOL } from '../testing/documents.ts'
import { framesOf, served } from '../testing/served.ts'

const RUN = { flow: 'echo', inputs: { said: 'hello' } }
const JSON_TYPE = { 'content-type': 'application/json' }
const echoing = (options: Parameters<typeof served>[1] = () => ({})) => served({ 'flows/echo.json': ECHO }, options)

/** All that comes back for these bytes, until the server hangs up. */
const answerTo = (url: string, ...parts: readonly string[]): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    let answer = ''
    socket.on('data', (chunk) => {
      answer += chunk
    })
    socket.on('close', () => resolve(answer))
    socket.on('error', reject)
    for (const part of parts) socket.write(part)
  })

const HEAD = 'POST /v1/runs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n'

describe('a request that is too large', () => {
  const big = JSON.stringify({ ...RUN, inputs: { said: 'x'.repeat(2_000) } })
  const small = () => echoing(() => ({ maxBodyBytes: 1_000 }))

  it('is 413 by what its header says (Q4)', async () => {
    const { server } = await small()
    const { url } = await server.listen({ port: 0 })
    const answer = await fetch(`${url}/v1/runs`, { method: 'POST', headers: JSON_TYPE, body: big })
    expect(answer.status).toBe(413)
    expect(await answer.json()).toMatchObject({ error: { code: 'REQUEST_TOO_LARGE' } })
  })

  it('is 413 without such a header as soon as too much has come, though it does not end (Q4)', async () => {
    const { server } = await small()
    const { url } = await server.listen({ port: 0 })
    const chunk = `${(1_200).toString(16)}\r\n${'x'.repeat(1_200)}\r\n`
    const body = new ReadableStream({
      pull: (controller) => controller.enqueue(new TextEncoder().encode(chunk)),
    })
    const answer = await fetch(`${url}/v1/runs`, {
      method: 'POST',
      headers: JSON_TYPE,
      body,
      duplex: 'half',
    } as RequestInit)
    expect(answer.status).toBe(413)
  })

  it('is 413 where it is larger than it says', async () => {
    const { send } = await small()
    const headers = { ...JSON_TYPE, 'content-length': '10' }
    expect((await send('/v1/runs', { method: 'POST', headers, body: big })).status).toBe(413)
  })

  it('is none where it comes in chunks and is small, or does not come at all', async () => {
    const { server } = await echoing()
    const { url } = await server.listen({ port: 0 })
    const text = JSON.stringify(RUN)
    const chunk = `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`
    const close = 'connection: close\r\n'
    expect(await answerTo(url, `${HEAD}${close}transfer-encoding: chunked\r\n\r\n${chunk}`)).toMatch(/^HTTP\/1\.1 200 /)
    const cancel = `POST /v1/runs/none/cancel HTTP/1.1\r\nhost: localhost\r\n${close}\r\n`
    expect(await answerTo(url, cancel)).toContain('RUN_UNKNOWN')
  })

  it('is taken up to the limit', async () => {
    const { post } = await echoing(() => ({ maxBodyBytes: Buffer.byteLength(JSON.stringify(RUN)) }))
    expect((await post('/v1/runs', RUN)).status).toBe(200)
  })
})

describe('a request that is too slow', () => {
  it.each([
    { name: 'body', sent: `${HEAD}content-length: 100\r\n\r\n{"flow":` },
    { name: 'chunked body', sent: `${HEAD}transfer-encoding: chunked\r\n\r\n5\r\n{"flo\r\n` },
    { name: 'head', sent: HEAD },
  ])('ends with 408, and is nobody’s fault but its own: $name', async ({ sent }) => {
    const onFault = vi.fn()
    const { server } = await echoing(() => ({ requestTimeoutMs: 50, onFault }))
    const { url } = await server.listen({ port: 0 })
    const answer = await answerTo(url, sent)
    expect(answer).toMatch(/^HTTP\/1\.1 408 /)
    expect(answer).toContain('"code":"REQUEST_SLOW"')
    expect(onFault).not.toHaveBeenCalled()
  })

  it('is none while it is answered: a run may take as long as it does', async () => {
    const { server, folder } = await served({ 'flows/paying.json': PAYING, 'tools/pay': WAITING_TOOL }, () => ({
      requestTimeoutMs: 50,
    }))
    const { url } = await server.listen({ port: 0 })
    const body = JSON.stringify({ flow: 'paying', inputs: { said: 'ten' } })
    const answer = await fetch(`${url}/v1/runs`, {
      method: 'POST',
      headers: { ...JSON_TYPE, accept: 'text/event-stream' },
      body,
    })
    const reader = answer.body?.getReader()
    await reader?.read()
    await answerTo(url, HEAD)
    writeFileSync(join(folder, 'tools/ready'), '')
    let text = ''
    for (let part = await reader?.read(); part?.done === false; part = await reader?.read())
      text += new TextDecoder().decode(part.value)
    expect(text).toContain('"status":"completed"')
  })
})

it.each([
  { name: 'no HTTP', sent: 'hello\r\n\r\n', status: 400, code: 'REQUEST_BROKEN' },
  {
    name: 'headers of 20 KB',
    sent: `${HEAD}x-long: ${'x'.repeat(20_000)}\r\n\r\n`,
    status: 431,
    code: 'REQUEST_HEADERS',
  },
  {
    name: 'two lengths',
    sent: `${HEAD}content-length: 1\r\ncontent-length: 2\r\n\r\n{}`,
    status: 400,
    code: 'REQUEST_BROKEN',
  },
  {
    name: 'a length and chunks, so that a proxy may see another end of it',
    sent: `${HEAD}content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
    status: 400,
    code: 'REQUEST_BROKEN',
  },
])('what is no request is answered in the one shape: $name', async ({ sent, status, code }) => {
  const { server } = await echoing()
  const { url } = await server.listen({ port: 0 })
  const answer = await answerTo(url, sent)
  expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
  expect(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4))).toEqual({
    error: { code, message: expect.any(String) },
    request: '',
  })
})

describe('a body', () => {
  const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth)
  it.each([
    { name: 'no JSON', body: '{', status: 400, code: 'REQUEST_JSON' },
    { name: '100,000 levels', body: nested(100_000), status: 400, code: 'REQUEST_JSON' },
    {
      name: 'a level too many',
      body: `{"flow":"echo","inputs":{"said":${nested(499)}}}`,
      status: 400,
      code: 'REQUEST_JSON',
    },
    {
      name: '__proto__',
      body: '{"flow":"echo","inputs":{"said":"x","__proto__":{"admin":true}}}',
      status: 400,
      code: 'REQUEST_JSON',
    },
    {
      name: '__proto__ at the top',
      body: '{"flow":"echo","__proto__":{"thread":"t"}}',
      status: 400,
      code: 'REQUEST_JSON',
    },
    {
      name: '__proto__ by its code',
      body: '{"flow":"echo","inputs":{"\\u005f_proto__":1}}',
      status: 400,
      code: 'REQUEST_JSON',
    },
    {
      name: 'constructor.prototype',
      body: '{"flow":"echo","inputs":{"constructor":{"prototype":{"x":1}}}}',
      status: 400,
      code: 'REQUEST_JSON',
    },
    { name: 'a list', body: '[]', status: 400, code: 'REQUEST_INVALID' },
    { name: 'nothing', body: '', status: 400, code: 'REQUEST_INVALID' },
    { name: 'null', body: 'null', status: 400, code: 'REQUEST_INVALID' },
    { name: 'inputs that are a list', body: '{"flow":"echo","inputs":[]}', status: 400, code: 'REQUEST_INVALID' },
    { name: 'inputs that are a text', body: '{"flow":"echo","inputs":"said"}', status: 400, code: 'REQUEST_INVALID' },
    { name: 'inputs that are null', body: '{"flow":"echo","inputs":null}', status: 400, code: 'REQUEST_INVALID' },
  ])('is refused: $name (Q4)', async ({ body, status, code }) => {
    const { post } = await echoing()
    const answer = await post('/v1/runs', body)
    expect([answer.status, answer.body.error.code]).toEqual([status, code])
    expect(({} as { admin?: unknown }).admin).toBeUndefined()
  })

  it('may have a key "constructor" that is data', async () => {
    const { post } = await echoing()
    const { body } = await post('/v1/runs', { flow: 'none', inputs: { constructor: 'Ferrari' } })
    expect(body.error.code).toBe('FLOW_UNKNOWN')
  })

  it.each([
    undefined,
    'text/plain',
    'application/x-www-form-urlencoded',
    'application/jsonp',
    'text/plain; application/json',
  ])('that says it is %s is 415: a form of a page cannot send one', async (type) => {
    const { send } = await echoing()
    const body = new TextEncoder().encode(JSON.stringify(RUN))
    const answer = await send('/v1/runs', {
      method: 'POST',
      body,
      headers: type === undefined ? {} : { 'content-type': type },
    })
    expect([answer.status, answer.body.error.code]).toEqual([415, 'REQUEST_TYPE'])
  })

  it.each(['application/json', 'application/json; charset=utf-8', 'Application/JSON', 'application/vnd.api+json'])(
    'that says it is %s is read',
    async (type) => {
      const { post } = await echoing()
      expect((await post('/v1/runs', RUN, { 'content-type': type })).status).toBe(200)
    },
  )
})

describe('a method that a path does not have', () => {
  it.each([
    { method: 'PUT', path: '/v1/runs', allow: 'POST' },
    { method: 'GET', path: '/v1/runs/x/cancel', allow: 'POST' },
    { method: 'DELETE', path: '/v1/runs/x', allow: 'GET, HEAD' },
    { method: 'POST', path: '/v1/threads/x', allow: 'GET, HEAD, DELETE' },
    { method: 'TRACE', path: '/v1/asks', allow: 'GET, HEAD' },
    { method: 'OPTIONS', path: '/v1/asks', allow: 'GET, HEAD' },
  ])('is 405, with those that it has: $method $path (Q4)', async ({ method, path, allow }) => {
    const { server } = await echoing()
    const { url } = await server.listen({ port: 0 })
    const answer = await answerTo(url, `${method} ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`)
    expect(answer).toMatch(/^HTTP\/1\.1 405 /)
    expect(answer).toMatch(new RegExp(`^allow: ${allow}\r$`, 'im'))
    expect(answer).toContain('METHOD_UNKNOWN')
  })

  it('is 404 where the path is none either', async () => {
    const { send } = await echoing()
    expect((await send('/v1/nothing', { method: 'PUT' })).status).toBe(404)
  })
})

describe('more runs at once than may be', () => {
  const files = { 'flows/paying.json': PAYING, 'flows/echo.json': ECHO, 'tools/pay': WAITING_TOOL }
  const PAY = { flow: 'paying', inputs: { said: 'ten' } }
  const async = { prefer: 'respond-async' }

  it('are 429 with when to come again, while readiness stays, until a place is free (Q5)', async () => {
    const { post, get, folder } = await served(files, () => ({ maxConcurrent: 2, maxQueue: 1 }))
    await post('/v1/runs', PAY, async)
    await post('/v1/runs', PAY, async)
    const waiting = post('/v1/runs', { flow: 'echo', inputs: { said: 'third' } })
    await vi.waitFor(async () => {
      const refused = await post('/v1/runs', PAY)
      expect([refused.status, refused.body.error.code, refused.headers.get('retry-after')]).toEqual([
        429,
        'TOO_MANY_RUNS',
        '1',
      ])
    })
    expect((await get('/readyz')).status).toBe(200)
    expect((await get('/healthz')).status).toBe(200)
    const figures = (await get('/metrics')).text
    expect(figures).toMatch(/^sluice_runs_under_way 2$/m)
    expect(figures).toMatch(/^sluice_requests_queued 1$/m)
    expect(figures).toMatch(/^sluice_requests_refused_total\{code="TOO_MANY_RUNS"\} [1-9]/m)
    writeFileSync(join(folder, 'tools/ready'), '')
    expect((await waiting).body).toMatchObject({ status: 'completed', result: { said: 'third' } })
  })

  it.each([
    { name: 'it fails before it begins', body: { flow: 'echo', inputs: {} }, status: 400 },
    { name: 'its thread is somebody’s already', body: { flow: 'echo', thread: 't', continue: true }, status: 409 },
    { name: 'it completes', body: RUN, status: 200 },
    { name: 'there is no such flow', body: { flow: 'none' }, status: 404 },
  ])('hold no place when $name (Q5)', async ({ body, status }) => {
    const { post } = await served(files, () => ({ maxConcurrent: 1, maxQueue: 1 }))
    await post('/v1/runs', { ...RUN, thread: 't' })
    for (let i = 0; i < 3; i++) expect((await post('/v1/runs', body)).status).toBe(status)
    expect((await post('/v1/runs', RUN)).status).toBe(200)
  })

  it('count while they are streamed, and no longer when they are cancelled', async () => {
    const { post, send } = await served(files, () => ({ maxConcurrent: 1, maxQueue: 1 }))
    const response = send('/v1/runs', {
      method: 'POST',
      headers: { ...JSON_TYPE, accept: 'text/event-stream' },
      body: JSON.stringify({ ...PAY, thread: 'slow' }),
    })
    const second = post('/v1/runs', RUN)
    await vi.waitFor(async () => expect((await post('/v1/runs', RUN)).status).toBe(429))
    const { runs } = (await send('/v1/threads/slow', {})).body
    expect((await post(`/v1/runs/${runs[0].run}/cancel`)).status).toBe(202)
    expect(framesOf((await response).text).at(-1)?.data).toContain('RUN_CANCELLED')
    expect((await second).status).toBe(200)
  })

  it('of one caller do not keep out another', async () => {
    const { file, as } = callers({ ann: { scopes: ['run'] }, bob: { scopes: ['run'] } })
    const { post, folder } = await served({ ...files, 'tokens.json': file }, (at) => ({
      tokens: at('tokens.json'),
      maxConcurrent: 3,
      maxConcurrentPerCaller: 1,
    }))
    await post('/v1/runs', PAY, { ...as.ann, ...async })
    void post('/v1/runs', PAY, { ...as.ann, ...async })
    await vi.waitFor(async () => expect((await post('/v1/runs', PAY, { ...as.ann, ...async })).status).toBe(429))
    expect((await post('/v1/runs', RUN, as.bob)).status).toBe(200)
    writeFileSync(join(folder, 'tools/ready'), '')
  })
})

it('a run that waits for a place when the server ends is refused, and was not begun (Q6)', async () => {
  const { post, get, server, folder } = await served(
    { 'flows/paying.json': PAYING, 'tools/pay': WAITING_TOOL },
    () => ({
      maxConcurrent: 1,
    }),
  )
  const pay = { flow: 'paying', inputs: { said: 'ten' } }
  await post('/v1/runs', pay, { prefer: 'respond-async' })
  const waiting = post('/v1/runs', pay)
  await vi.waitFor(async () => expect((await get('/metrics')).text).toMatch(/requests_queued 1$/m))
  const closed = server.close()
  const refused = await waiting
  expect([refused.status, refused.body.error.code]).toEqual([503, 'SERVER_DRAINING'])
  writeFileSync(join(folder, 'tools/ready'), '')
  await closed
})

describe('more requests than may be', () => {
  it('are 429 for that caller, with when to come again, and not for others', async () => {
    const { file, as } = callers({ ann: { scopes: ['run'] }, bob: { scopes: ['run'] } })
    const { get } = await served({ 'tokens.json': file }, (at) => ({
      tokens: at('tokens.json'),
      rate: { requests: 2, seconds: 600 },
    }))
    const statusOf = async (headers: Record<string, string>) => (await get('/v1/threads', headers)).status
    expect([await statusOf(as.ann), await statusOf(as.ann)]).toEqual([200, 200])
    const refused = await get('/v1/threads', as.ann)
    expect([refused.status, refused.body.error.code]).toEqual([429, 'TOO_MANY_REQUESTS'])
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(await statusOf(as.bob)).toBe(200)
    expect((await get('/healthz')).status).toBe(200)
  })
})

describe('a page of another origin', () => {
  const { file, as } = callers({ ann: { scopes: ['run', 'edit'] } })
  const origin = 'https://app.example.com'
  const letting = () =>
    served({ 'flows/echo.json': ECHO, 'tokens.json': file }, (at) => ({
      tokens: at('tokens.json'),
      corsOrigins: [origin],
    }))

  it.each(['POST', 'DELETE', 'PATCH'])(
    'that is named may ask before it sends a token with %s (Z16)',
    async (method) => {
      const { send } = await letting()
      const headers = {
        origin,
        'access-control-request-method': method,
        'access-control-request-headers': 'authorization,last-event-id',
      }
      const answer = await send('/v1/threads/t', { method: 'OPTIONS', headers })
      expect(answer.status).toBe(204)
      expect(answer.headers.get('access-control-allow-origin')).toBe(origin)
      expect(answer.headers.get('access-control-allow-methods')).toContain(method)
      expect(answer.headers.get('access-control-allow-headers')).toMatch(/authorization.*last-event-id/)
      expect(answer.headers.get('access-control-allow-credentials')).toBeNull()
    },
  )

  it('that is named may read what comes, errors too (Z16)', async () => {
    const { post, get } = await letting()
    for (const answer of [
      await post('/v1/runs', RUN, { ...as.ann, origin }),
      await get('/v1/threads', { origin }),
      await get('/v1/no', { ...as.ann, origin }),
    ])
      expect(answer.headers.get('access-control-allow-origin')).toBe(origin)
  })

  it.each(['https://evil.example.com', 'https://app.example.com.evil.com', 'http://app.example.com', 'null'])(
    'is told nothing where it is %s (Z16)',
    async (other) => {
      const { send, post } = await letting()
      const asked = await send('/v1/runs', {
        method: 'OPTIONS',
        headers: { origin: other, 'access-control-request-method': 'POST' },
      })
      expect(asked.status).toBe(401)
      for (const answer of [asked, await post('/v1/runs', RUN, { ...as.ann, origin: other })])
        expect(answer.headers.get('access-control-allow-origin')).toBeNull()
    },
  )

  it.each(['*', 'app.example.com', 'https://app.example.com/', 'https://*.example.com', 'null'])(
    'cannot be named as %s',
    async (wrong) => {
      await expect(served({}, () => ({ corsOrigins: [wrong] }))).rejects.toMatchObject({ code: 'SERVER_CORS' })
    },
  )
})
