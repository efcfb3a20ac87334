import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Api } from './api.ts'
import { followRun } from './follow-run.ts'

async function serverThat(answers: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  const server = createServer(answers)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

const frame = (id: number, event: object) => `id: ${id}\ndata: ${JSON.stringify({ path: ['t'], ...event })}\n\n`
const HEAD = { 'content-type': 'text/event-stream', 'content-location': '/v1/runs/r1/events' }

describe('a run that is followed on a server', () => {
  it('goes on where its stream broke off, with the token of the caller', async () => {
    const asked: unknown[] = []
    const url = await serverThat((request, response) => {
      const { method, url: path, headers } = request
      asked.push([method, path, headers['last-event-id'], headers.authorization])
      response.writeHead(200, HEAD)
      if (asked.length === 1) {
        response.write(frame(1, { type: 'run_start' }) + frame(2, { type: 'token', text: 'a' }))
        response.write('id: 3\ndata: {"type":"tok', () => response.destroy())
      } else response.end(frame(3, { type: 'token', text: 'b' }) + frame(4, { type: 'run_end', status: 'completed' }))
    })
    const api = new Api(url, 'k')
    const types: string[] = []
    const first = await api.request('/v1/runs', { body: {} })
    for await (const { type } of followRun(api, first, new AbortController().signal)) types.push(type)
    expect(types).toEqual(['run_start', 'token', 'token', 'run_end'])
    expect(asked).toEqual([
      ['POST', '/v1/runs', undefined, 'Bearer k'],
      ['GET', '/v1/runs/r1/events', '2', 'Bearer k'],
    ])
  })

  it('is cancelled there when it is cancelled here, and followed to its end', async () => {
    let end = () => {}
    const url = await serverThat((request, response) => {
      response.writeHead(200, HEAD)
      if (request.url === '/v1/runs/r1/cancel') {
        response.end('{}')
        end()
      } else {
        response.write(frame(1, { type: 'run_start' }))
        end = () => response.end(frame(2, { type: 'run_end', status: 'cancelled' }))
      }
    })
    const api = new Api(url, undefined)
    const stop = new AbortController()
    const types: string[] = []
    for await (const { type } of followRun(api, await api.request('/v1/runs', { body: {} }), stop.signal)) {
      types.push(type)
      stop.abort()
    }
    expect(types).toEqual(['run_start', 'run_end'])
  })

  it.each([
    {
      name: 'what the server says',
      status: 404,
      body: '{"error":{"code":"FLOW_UNKNOWN","message":"none."}}',
      code: 'FLOW_UNKNOWN',
    },
    { name: 'that it is no sluice', status: 502, body: '<html>', code: 'CLI_SERVER' },
  ])('is refused with $name', async ({ status, body, code }) => {
    const url = await serverThat((_, response) => response.writeHead(status).end(body))
    await expect(new Api(url, undefined).request('/v1/runs', { body: {} })).rejects.toMatchObject({ code })
  })

  it.each(['nowhere', 'file:///x'])('is not looked for at %s', (url) =>
    expect(() => new Api(url, undefined)).toThrow(/is no address of a server/),
  )
})
