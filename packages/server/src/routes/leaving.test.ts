import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import OpenAI from 'openai'
import { describe, expect, it, vi } from 'vitest'
import { PAYING, WAITING_TOOL } from '../testing/documents.ts'
import { framesOf, type Served, served } from '../testing/served.ts'

const INPUTS = { said: 'ten' }
const MESSAGES = [{ role: 'user' as const, content: 'ten' }]
const AG_UI = { threadId: 't', runId: 'r', messages: [{ id: 'm', ...MESSAGES[0] }], tools: [], context: [] }
const UI_MESSAGE = { id: 'm', role: 'user', parts: [{ type: 'text', text: 'ten' }] }

/** A server on a socket with a flow that waits in its tool. */
async function site() {
  const it = await served({ 'flows/paying.json': PAYING, 'tools/pay': WAITING_TOOL })
  return { ...it, ...(await it.server.listen({ port: 0 })) }
}

const lastEventOf = async ({ get }: Served, run: string) =>
  framesOf((await get(`/v1/runs/${run}/events`)).text).at(-1)?.data

/** Sends a request, reads how its answer begins, and hangs up. */
async function leave(url: string, body: object): Promise<string> {
  const gone = new AbortController()
  const headers = { 'content-type': 'application/json', accept: 'text/event-stream' }
  const init = { method: 'POST', headers, body: JSON.stringify(body), signal: gone.signal }
  const response = await fetch(url, init)
  await response.body?.getReader().read()
  gone.abort()
  return response.headers.get('content-location')?.split('/')[3] as string
}

describe('a client that leaves before the run it began has ended', () => {
  it.each([
    { protocol: 'ag-ui', path: '/v1/ag-ui/paying', body: AG_UI },
    { protocol: 'ai-sdk', path: '/v1/ai-sdk/paying', body: { id: 'c', messages: [UI_MESSAGE] } },
    { protocol: 'openai', path: '/v1/chat/completions', body: { model: 'paying', messages: MESSAGES, stream: true } },
    { protocol: 'ag-ui, of a run', path: '/v1/runs?protocol=ag-ui', body: { flow: 'paying', inputs: INPUTS } },
  ])('cancels it where it cannot come back: $protocol (Q7)', async ({ path, body }) => {
    const at = await site()
    const run = await leave(`${at.url}${path}`, body)
    expect(await lastEventOf(at, run)).toContain('RUN_CANCELLED')
  })

  it('cancels it where its chat breaks off in the openai package, streamed (Q7)', async () => {
    const at = await site()
    const client = new OpenAI({ baseURL: `${at.url}/v1`, apiKey: 'none' })
    let run = ''
    for await (const { id } of await client.chat.completions.create({
      model: 'paying',
      messages: MESSAGES,
      stream: true,
    })) {
      run = id.replace('chatcmpl-', '')
      break
    }
    expect(await lastEventOf(at, run)).toContain('RUN_CANCELLED')
  })

  it('cancels it where the openai package waits for the whole answer (Q7)', async () => {
    const at = await site()
    const client = new OpenAI({ baseURL: `${at.url}/v1`, apiKey: 'none' })
    const gone = new AbortController()
    const sluice = { thread: 'mine' }
    const request = { model: 'paying', messages: MESSAGES, sluice }
    const answer = client.chat.completions.create(request, { signal: gone.signal })
    const run = await vi.waitFor(async () => (await at.get('/v1/threads/mine')).body.runs[0].run)
    gone.abort()
    await expect(answer).rejects.toThrow('aborted')
    expect(await lastEventOf(at, run)).toContain('RUN_CANCELLED')
  })

  it('leaves it be where it can come back for the rest of our own stream (Q7)', async () => {
    const at = await site()
    const run = await leave(`${at.url}/v1/runs`, { flow: 'paying', inputs: INPUTS })
    const next = await leave(`${at.url}/v1/ag-ui/paying`, AG_UI)
    expect(await lastEventOf(at, next)).toContain('RUN_CANCELLED')
    expect((await at.get(`/v1/runs/${run}`)).body.status).toBe('running')
    writeFileSync(join(at.folder, 'tools/ready'), '')
    expect(await lastEventOf(at, run)).toContain('"status":"completed"')
  })
})
