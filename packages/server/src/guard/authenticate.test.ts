import { writeFileSync } from 'node:fs'
import { SluiceError } from '@sluice/core'
import { describe, expect, it, vi } from 'vitest'
import { createServer } from '../server.ts'
import { callers } from '../testing/callers.ts'
import { ECHO } from '../testing/documents.ts'
import { served } from '../testing/served.ts'
import type { Principal } from './principal.ts'
import { newToken, Tokens } from './tokens.ts'

const { file, as } = callers({ ann: { scopes: ['run'] }, old: { scopes: ['run'], expires: '2020-01-01' } })
const guarded = () => served({ 'flows/echo.json': ECHO, 'tokens.json': file }, (at) => ({ tokens: at('tokens.json') }))

describe('a server with a file of tokens', () => {
  it.each([
    { path: '/v1/capabilities' },
    { path: '/v1/runs/none' },
    { path: '/openapi.json' },
    { path: '/metrics' },
    { path: '/nothing/of/this/name' },
    { path: '/healthz/' },
    { path: '//healthz' },
    { path: '/v1/../v1/threads' },
  ])('asks who calls, at $path too (Q8)', async ({ path }) => {
    const { get } = await guarded()
    const { status, headers, body } = await get(path)
    expect(status).toBe(401)
    expect(headers.get('www-authenticate')).toMatch(/^Bearer/)
    expect(body).toEqual({
      error: { code: 'CALLER_UNKNOWN', message: expect.any(String) },
      request: expect.any(String),
    })
  })

  it.each(['/healthz', '/readyz'])('does not at %s (Q8)', async (path) => {
    const { get } = await guarded()
    expect((await get(path)).status).toBe(200)
  })

  it('lets in who brings one of them', async () => {
    const { post } = await guarded()
    const { status, body } = await post('/v1/runs', { flow: 'echo', inputs: { said: 'hello' } }, as.ann)
    expect([status, body.result]).toEqual([200, { said: 'hello' }])
  })

  const { authorization } = as.ann
  it.each([
    { name: 'another', sent: `Bearer ${newToken('ann', ['run']).token}` },
    { name: 'one more letter', sent: `${authorization}a` },
    { name: 'one letter less', sent: authorization.slice(0, -1) },
    { name: 'the hash itself', sent: `Bearer ${(file.principals[0] as { token: string }).token}` },
    { name: 'another scheme', sent: authorization.replace('Bearer', 'Basic') },
    { name: 'two', sent: `${authorization}, ${authorization}` },
    { name: 'none', sent: 'Bearer ' },
    { name: 'an expired one', sent: as.old.authorization },
  ])('does not take $name (Q8)', async ({ sent }) => {
    const { get } = await guarded()
    expect((await get('/v1/threads', { authorization: sent })).status).toBe(401)
  })

  it('reads it anew at SIGHUP: who is new is let in, and who was taken out is not', async () => {
    const { get, folder } = await served({ 'tokens.json': file }, (at) => ({
      tokens: at('tokens.json'),
      reloadOn: ['SIGHUP'],
    }))
    const next = callers({ bob: { scopes: ['run'] } })
    writeFileSync(`${folder}/tokens.json`, JSON.stringify(next.file))
    process.emit('SIGHUP')
    await vi.waitFor(async () => expect((await get('/v1/threads', next.as.bob)).status).toBe(200))
    expect((await get('/v1/threads', as.ann)).status).toBe(401)
  })

  it('keeps those it knew when the file has become wrong, and says so', async () => {
    const onWarning = vi.fn()
    const { get, folder } = await served({ 'tokens.json': file }, (at) => ({
      tokens: at('tokens.json'),
      reloadOn: ['SIGHUP'],
      onWarning,
    }))
    writeFileSync(`${folder}/tokens.json`, '{}')
    process.emit('SIGHUP')
    await vi.waitFor(() => expect(onWarning).toHaveBeenCalledWith(expect.stringContaining('principals')))
    expect((await get('/v1/threads', as.ann)).status).toBe(200)
  })
})

describe('a file of tokens', () => {
  const [ann] = file.principals as readonly Readonly<Record<string, unknown>>[]
  it.each([
    { name: 'is YAML too', text: `principals:\n  - { id: ann, scopes: [run], token: "${ann?.token}" }` },
    {
      name: 'may say when one expires',
      text: JSON.stringify({ principals: [{ ...ann, expires: '2999-01-01T00:00:00+02:00' }] }),
    },
  ])('$name', async ({ text }) => {
    const { get } = await served({ 'tokens.yaml': text }, (at) => ({ tokens: at('tokens.yaml') }))
    expect((await get('/v1/threads', as.ann)).status).toBe(200)
  })

  it.each([
    { name: 'a token in the clear', entry: { ...ann, token: 'sluice_abc' }, why: 'a token itself is never kept' },
    { name: 'an id with a slash', entry: { ...ann, id: 'ann/x' }, why: 'principals.0.id' },
    { name: 'a scope that is none', entry: { ...ann, scopes: ['root'] }, why: 'principals.0.scopes.0' },
    { name: 'a field that is none', entry: { ...ann, admin: true }, why: 'admin' },
    { name: 'a date that is none', entry: { ...ann, expires: 'soon' }, why: 'principals.0.expires' },
  ])('is refused at start with $name', async ({ entry, why }) => {
    const wrong = served({ 'tokens.json': { principals: [entry] } }, (at) => ({ tokens: at('tokens.json') }))
    await expect(wrong).rejects.toMatchObject({ code: 'SERVER_TOKENS', message: expect.stringContaining(why) })
  })

  it('is refused where two entries have one token', async () => {
    const twice = served({ 'tokens.json': { principals: [ann, { ...ann, id: 'bob' }] } }, (at) => ({
      tokens: at('tokens.json'),
    }))
    await expect(twice).rejects.toMatchObject({ message: expect.stringContaining('"bob"') })
  })

  it('is refused where it is not there', async () => {
    await expect(Tokens.load('/none/tokens.json')).rejects.toMatchObject({ code: 'SERVER_TOKENS' })
  })
})

describe('an embedder', () => {
  const asking = (principal: unknown) =>
    served({ 'flows/echo.json': ECHO }, () => ({ authenticate: () => principal as Principal }))

  it('may say who calls', async () => {
    const { post } = await asking({ kind: 'session', id: 'ann@example.com', scopes: ['run'] })
    expect((await post('/v1/runs', { flow: 'echo', inputs: { said: 'x' } })).status).toBe(200)
  })

  it('lets nobody in by saying nothing', async () => {
    expect((await (await asking(undefined)).get('/v1/threads')).status).toBe(401)
  })

  it.each([
    { name: 'an id with a slash', principal: { kind: 'session', id: 'ann/bob', scopes: [] } },
    { name: 'no id', principal: { kind: 'session', scopes: [] } },
    { name: 'whoever needs not say who they are', principal: { kind: 'local', id: 'local', scopes: ['admin'] } },
    { name: 'a scope that is none', principal: { kind: 'session', id: 'ann', scopes: ['root'] } },
  ])('is told of its fault, and the caller is not, where it names $name', async ({ principal }) => {
    const { status, body } = await (await asking(principal)).get('/v1/threads')
    expect([status, body.error.code]).toEqual([500, 'SERVER_FAULT'])
  })
})

describe('a server that does not ask who calls', () => {
  it.each(['0.0.0.0', '::', '192.168.0.7', 'example.com'])('does not listen at %s', async (host) => {
    const server = await createServer()
    await expect(server.listen({ host, port: 0 })).rejects.toMatchObject({ code: 'SERVER_OPEN' })
    await server.close()
  })

  it('answers to the names of this machine alone, so that no page from elsewhere can pose as one of it', async () => {
    const server = await createServer()
    const { url } = await server.listen({ port: 0 })
    const { request } = await import('node:http')
    const statusFor = (host: string) =>
      new Promise((resolve) =>
        request(`${url}/v1/threads`, { headers: { host } }, ({ statusCode }) => resolve(statusCode)).end(),
      )
    expect(await statusFor(`localhost:${new URL(url).port}`)).toBe(200)
    expect(await statusFor('rebound.example.com')).toBe(403)
    await server.close()
  })
})

it('a new token is not told twice, and fits its own entry', () => {
  const { token, entry } = newToken('ann', ['run', 'answer'], '2030-01-01')
  expect(token).toMatch(/^sluice_[A-Za-z0-9_-]{43}$/)
  expect(JSON.parse(entry)).toMatchObject({ id: 'ann', scopes: ['run', 'answer'], expires: '2030-01-01' })
  expect(entry).not.toContain(token)
  expect(() => newToken('a/b', [])).toThrow(SluiceError)
})
