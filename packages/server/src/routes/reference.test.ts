import { describe, expect, it } from 'vitest'
import { served } from '../testing/served.ts'

describe('the reference', () => {
  it('is an OpenAPI 3.1 document with every route, made of the schemas that check requests', async () => {
    const { get, post } = await served()
    const { body } = await get('/openapi.json')
    expect(body.openapi).toBe('3.1.0')
    expect(body.components.securitySchemes.token).toEqual({ type: 'http', scheme: 'bearer' })
    const shape = body.components.schemas.RunRequest
    expect(shape.additionalProperties).toBe(false)
    const known = Object.keys(shape.properties)
    expect(known).toEqual(expect.arrayContaining(['flow', 'inputs', 'thread']))
    // What the document does not name, the route does not take.
    const { body: refused } = await post('/v1/runs', { flow: 'x', other: 1 })
    expect(refused.error.code).toBe('REQUEST_INVALID')
    expect(known).not.toContain('other')
  })

  it('names every route that the server has', async () => {
    const { server, get } = await served()
    const { body } = await get('/openapi.json')
    const described = Object.entries(body.paths).flatMap(([path, item]) =>
      Object.keys(item as object).map((method) => `${method.toUpperCase()} ${path.replace(/\{(\w+)\}/g, ':$1')}`),
    )
    const routes = server.app.routes
      .filter(({ method, path }) => method !== 'ALL' && path.startsWith('/v1/'))
      .map(({ method, path }) => `${method} ${path}`)
    expect(described.filter((route) => route.includes(' /v1/')).toSorted()).toEqual([...new Set(routes)].toSorted())
  })

  it('is a page too, without a script and without anything from elsewhere', async () => {
    const { get } = await served()
    const { status, headers, text } = await get('/reference')
    expect(status).toBe(200)
    expect(headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(text).toContain('/v1/runs/{id}/events')
    expect(text).not.toMatch(/<script|src=|https?:\/\//)
  })
})
