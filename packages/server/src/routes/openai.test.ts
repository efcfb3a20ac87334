import { spawnSync } from 'node:child_process'
import OpenAI from 'openai'
import { describe, expect, it } from 'vitest'
import { ECHO, ECHO_TOOL, GATE, PAYING } from '../testing/documents.ts'
import { helped, SAID } from '../testing/helped.ts'
import { framesOf, served } from '../testing/served.ts'

const ask = (content: string, more: object = {}) => ({ messages: [{ role: 'user' as const, content }], ...more })

describe('the openai package', () => {
  const clientOf = (url: string) => new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none' })

  it('is answered by a flow whose agent calls a tool, with what that cost', async () => {
    const { url } = await helped()
    const { choices, usage } = await clientOf(url).chat.completions.create({ model: 'helper', ...ask('Pay ten.') })
    expect(choices).toMatchObject([{ message: { role: 'assistant', content: SAID }, finish_reason: 'stop' }])
    expect(choices[0]?.message.tool_calls).toBeUndefined()
    expect(usage?.prompt_tokens).toBeGreaterThan(0)
    expect(usage?.total_tokens).toBe((usage?.prompt_tokens ?? 0) + (usage?.completion_tokens ?? 0))
  })

  it('is streamed the same, in pieces as they come', async () => {
    const { url } = await helped()
    const stream_options = { include_usage: true }
    const request = { model: 'helper', ...ask('Pay ten.'), stream: true as const, stream_options }
    const chunks: OpenAI.ChatCompletionChunk[] = []
    for await (const chunk of await clientOf(url).chat.completions.create(request)) chunks.push(chunk)
    const pieces = chunks.flatMap(({ choices }) => choices[0]?.delta.content ?? [])
    expect(pieces.join('')).toBe(SAID)
    expect(pieces.length).toBeGreaterThan(2)
    expect(chunks.flatMap(({ choices }) => choices[0]?.finish_reason ?? [])).toEqual(['stop'])
    expect(chunks.flatMap(({ choices }) => choices[0]?.delta.tool_calls ?? [])).toEqual([])
    expect(chunks.at(-1)?.usage?.completion_tokens).toBeGreaterThan(0)
  })

  it('finds the flows as models', async () => {
    const { url } = await helped()
    const { data } = await clientOf(url).models.list()
    expect(data).toEqual([{ id: 'helper', object: 'model', created: expect.any(Number), owned_by: 'sluice' }])
    expect((await clientOf(url).models.retrieve('helper')).id).toBe('helper')
  })

  it('is told of a model that is none', async () => {
    const { url } = await helped()
    const asked = clientOf(url).chat.completions.create({ model: 'nobody', ...ask('hi') })
    await expect(asked).rejects.toMatchObject({ status: 404, code: 'model_not_found', type: 'not_found_error' })
  })

  it('does not run a flow again that has failed', async () => {
    const { url, model, get } = await helped()
    model.nextRequestError(500, { message: 'no' })
    const asked = clientOf(url).chat.completions.create({ model: 'helper', ...ask('Pay ten.') })
    await expect(asked).rejects.toMatchObject({ status: 502, code: 'MODEL_HTTP' })
    expect((await get('/v1/threads')).body.threads).toHaveLength(1)
  })

  it.each([{ stream: false }, { stream: true }])(
    'is held by a policy that asks, and answered once a person has said yes (stream: $stream)',
    async ({ stream }) => {
      const { url, get, post, model } = await helped({ isGated: true })
      const { completions } = clientOf(url).chat
      const request = { model: 'helper', ...ask('Pay ten.'), sluice: { thread: 'chat' } }
      let said = ''
      if (stream)
        for await (const { choices } of await completions.create({ ...request, stream: true }))
          said += choices[0]?.delta.content ?? ''
      else said = (await completions.create(request)).choices[0]?.message.content ?? ''
      const [{ id }] = (await get('/v1/asks')).body.asks
      expect(said).toContain(`(ask ${id})`)
      expect(said).not.toContain(SAID)
      expect(model.getRequests()).toHaveLength(1)

      // Another turn would pass over the question: it is refused.
      await expect(completions.create(request)).rejects.toMatchObject({ status: 409, code: 'THREAD_PAUSED' })
      const answered = await post(`/v1/asks/${id}/answer`, { answer: { approved: true } })
      expect(answered.body).toMatchObject({ status: 'completed', thread: 'chat', result: { answer: SAID } })
      expect(model.getRequests()).toHaveLength(2)
    },
  )

  it.each([
    { verdict: "{ action: 'pass' }", says: SAID },
    { verdict: "{ action: 'replace', value: { content: 'I cannot say.' } }", says: 'I cannot say.' },
  ])('is streamed what a policy has judged, and nothing before: $says', async ({ verdict, says }) => {
    const judge = `export default {
      manifest: { name: 'judge', version: '1.0.0', capabilities: [],
        components: [{ componentType: 'Judge', kind: 'middleware', seams: { modelCall: ['after'] } }] },
      handlers: { Judge: { modelCall: { after: ({ outcome }) => outcome.value.tool_calls ? { action: 'pass' } : ${verdict} } } },
    }`
    const { url } = await helped({ policy: judge })
    const request = { model: 'helper', ...ask('Pay ten.'), stream: true as const }
    const pieces: string[] = []
    for await (const { choices } of await clientOf(url).chat.completions.create(request))
      pieces.push(choices[0]?.delta.content ?? '')
    expect(pieces.filter((piece) => piece !== '')).toEqual([says])
  })

  it('is thrown the error of a run that fails on the way', async () => {
    const { url, model } = await helped()
    model.nextRequestError(500, { message: 'no' })
    const stream = await clientOf(url).chat.completions.create({ model: 'helper', ...ask('Pay ten.'), stream: true })
    const read = async () => {
      for await (const _chunk of stream);
    }
    await expect(read()).rejects.toMatchObject({ code: 'MODEL_HTTP' })
  })
})

const curl = spawnSync('curl', ['--version']).status === 0

describe('POST /v1/chat/completions', () => {
  const paying = { 'flows/paying.json': PAYING, 'tools/pay': ECHO_TOOL, 'gate.mjs': GATE }
  const gated = () => served(paying, (at) => ({ plugins: [at('gate.mjs')] }))

  it.skipIf(!curl)('is answered for curl too', async () => {
    const { server } = await served({ 'flows/echo.json': ECHO })
    const { url } = await server.listen({ port: 0 })
    const body = JSON.stringify({ model: 'echo', ...ask('hello') })
    const { execFile } = await import('node:child_process')
    const args = ['-sS', '-H', 'content-type: application/json', '-d', body, `${url}/v1/chat/completions`]
    const stdout = await new Promise<string>((resolve, reject) =>
      execFile('curl', args, (error, out) => (error === null ? resolve(out) : reject(error))),
    )
    expect(JSON.parse(stdout).choices[0].message.content).toBe('hello')
  })

  it.each([{ stream: false }, { stream: true }])('says which questions a run waits for (%o)', async ({ stream }) => {
    const { post, get } = await gated()
    const { text } = await post('/v1/chat/completions', { model: 'paying', ...ask('ten'), stream })
    const [{ id }] = (await get('/v1/asks')).body.asks
    const parts = stream
      ? framesOf(text)
          .slice(0, -1)
          .map(({ data }) => JSON.parse(data))
      : [JSON.parse(text)]
    const said = parts.flatMap(({ choices: [{ delta, message }] }) => (delta ?? message).content ?? []).join('')
    expect(said).toContain(`May tool "pay" be called? (ask ${id})`)
    expect(parts.at(-1)).toMatchObject({
      choices: [{ finish_reason: 'stop' }],
      sluice: { status: 'paused', asks: [{ id, payload: { arguments: { said: 'ten' } } }] },
    })
  })

  it('gives inputs by name and goes on with a thread where it is told to', async () => {
    const { post } = await served({ 'flows/echo.json': ECHO })
    const sluice = { inputs: { said: 'named' }, thread: 'mine' }
    const { body } = await post('/v1/chat/completions', { model: 'echo', ...ask('hello'), sluice })
    expect(body).toMatchObject({
      object: 'chat.completion',
      choices: [{ message: { content: 'named' } }],
      sluice: { thread: 'mine', status: 'completed' },
    })
  })

  it.each([
    { name: 'tools of the client', body: { tools: [{ type: 'function' }] }, says: 'tools' },
    { name: 'several answers', body: { n: 2 }, says: 'n' },
    { name: 'a format of the answer', body: { response_format: { type: 'json_object' } }, says: 'response_format' },
    { name: 'no messages', body: { messages: [] }, says: 'messages' },
    { name: 'a setting of the server', body: { sluice: { toolsDir: '/' } }, says: 'toolsDir' },
  ])('refuses $name, in the shape of OpenAI', async ({ body, says }) => {
    const { post } = await served({ 'flows/echo.json': ECHO })
    const refused = await post('/v1/chat/completions', { model: 'echo', ...ask('hello'), ...body })
    expect(refused.status).toBe(400)
    expect(refused.body).toEqual({
      error: {
        message: expect.stringContaining(says),
        type: 'invalid_request_error',
        param: null,
        code: 'REQUEST_INVALID',
      },
    })
  })

  it('lets settings be that are the flow’s own', async () => {
    const { post } = await served({ 'flows/echo.json': ECHO })
    const settings = { temperature: 0, max_tokens: 5, user: 'ann', tools: [], n: 1 }
    expect((await post('/v1/chat/completions', { model: 'echo', ...ask('hello'), ...settings })).status).toBe(200)
  })
})
