import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { MemoryStore } from '@sluice/core'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ECHO, flowOf, text } from '../testing/documents.ts'
import { type Served, served } from '../testing/served.ts'

const TOKENS = 3_000

/** A flow with a model that says very much. */
async function talking(): Promise<Served> {
  const chunk = JSON.stringify({ choices: [{ index: 0, delta: { content: 'x ' } }] })
  const last = JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })
  const model = createServer((_request, response) => {
    response.setHeader('content-type', 'text/event-stream')
    response.end(`${`data: ${chunk}\n\n`.repeat(TOKENS)}data: ${last}\n\ndata: [DONE]\n\n`)
  })
  await new Promise<void>((resolve) => model.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void model.close())
  const url = `http://127.0.0.1:${(model.address() as AddressInfo).port}/v1`
  const flow = flowOf({
    nodes: {
      ask: {
        component_type: 'LlmNode',
        prompt_template: 'Hello.',
        llm_config: { component_type: 'OpenAiCompatibleConfig', id: 'm', name: 'm', model_id: 'small', url },
      },
    },
    outputs: [text('generated_text')],
  })
  return served({ 'flows/talking.json': flow })
}

/** A stream of such a run, of which nothing but the beginning was read, and what is left of it when the run has ended. */
async function unread({ server, get }: Served) {
  const response = await server.app.request('/v1/runs', {
    method: 'POST',
    headers: { accept: 'text/event-stream', 'content-type': 'application/json' },
    body: JSON.stringify({ flow: 'talking' }),
  })
  const run = response.headers.get('content-location')?.split('/')[3] ?? ''
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  await reader.read()
  let status = 'running'
  while (status === 'running') {
    await new Promise(setImmediate)
    status = (await get(`/v1/runs/${run}`)).body.status
  }
  const rest = async () => {
    let sent = ''
    for (let read = await reader.read(); !read.done; read = await reader.read())
      sent += new TextDecoder().decode(read.value)
    return { sent, ids: [...sent.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id)) }
  }
  return { run, status, rest }
}

describe('a stream that is read slowly', () => {
  it('does not hold up its run, and has every event in the end', async () => {
    const { status, rest } = await unread(await talking())
    expect(status).toBe('completed')
    const { ids, sent } = await rest()
    expect(ids.length).toBeGreaterThan(TOKENS)
    expect(ids).toEqual(ids.map((_, i) => (ids[0] as number) + i))
    expect(sent).toMatch(/event: run_end\n[^\n]*\n[^\n]*\n\n$/)
  })

  it('ends when its run is forgotten', async () => {
    const site = await talking()
    const { run, rest } = await unread(site)
    expect((await site.send(`/v1/threads/${run}`, { method: 'DELETE' })).status).toBe(200)
    const { ids, sent } = await rest()
    expect(ids.length).toBeLessThan(TOKENS)
    expect(sent).not.toContain('event: run_end')
  })
})

describe('a server that has run for long', () => {
  it('forgets old runs, and the threads that were begun for them alone', async () => {
    const store = new MemoryStore()
    const { post, get } = await served({ 'flows/echo.json': ECHO }, () => ({ store, keepRuns: 3 }))
    const begin = async (thread?: string): Promise<string> =>
      (await post('/v1/runs', { flow: 'echo', inputs: { said: 'x' }, thread })).body.run
    const named = await begin('named')
    const runs: string[] = []
    while (runs.length < 99) runs.push(await begin())
    const statuses = await Promise.all([named, ...runs].map(async (run) => (await get(`/v1/runs/${run}`)).status))
    expect(statuses).toEqual([...Array(97).fill(404), 200, 200, 200])
    expect(
      store
        .lines()
        .map(({ thread }) => thread)
        .toSorted(),
    ).toEqual(['named', ...runs.slice(-3)].toSorted())
    expect((await get('/v1/threads')).body.threads).toHaveLength(4)
  })
})
