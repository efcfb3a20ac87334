import { describe, expect, it } from 'vitest'
import { ECHO, ECHO_TOOL, flowOf, GATE, PAYING, text, toolNode, WAITING_TOOL } from '../testing/documents.ts'
import { helped, SAID } from '../testing/helped.ts'
import { framesOf, served } from '../testing/served.ts'

const STREAM = { accept: 'text/event-stream' }

describe('a run over HTTP', () => {
  it('is answered with its result (Q1)', async () => {
    const { post } = await served({ 'flows/echo.json': ECHO })
    const { status, body } = await post('/v1/runs', { flow: 'echo', inputs: { said: 'hello' } })
    expect(status).toBe(200)
    expect(body).toEqual({ run: body.run, thread: body.run, status: 'completed', result: { said: 'hello' } })
  })

  it.each([
    { name: 'an object', flow: ECHO },
    { name: 'JSON text', flow: JSON.stringify(ECHO) },
  ])('takes a flow that is $name', async ({ flow }) => {
    const { post } = await served()
    const { body } = await post('/v1/runs', { flow, inputs: { said: 'hello' } })
    expect(body).toMatchObject({ status: 'completed', result: { said: 'hello' } })
  })

  it('streams what happens in the order in which it happens (Q1)', async () => {
    const { post } = await served({ 'flows/echo.json': ECHO })
    const { status, headers, text } = await post('/v1/runs', { flow: 'echo', inputs: { said: 'hello' } }, STREAM)
    expect(status).toBe(200)
    expect(headers.get('content-type')).toContain('text/event-stream')
    const frames = framesOf(text)
    expect(frames.map(({ event, id }) => [id, event])).toEqual([
      ['1', 'run_start'],
      ['2', 'node_start'],
      ['3', 'node_complete'],
      ['4', 'node_start'],
      ['5', 'node_complete'],
      ['6', 'run_end'],
    ])
    expect(JSON.parse(frames[5]?.data ?? '')).toMatchObject({ status: 'completed', result: { said: 'hello' } })
  })

  it.each([
    { name: 'waited for', headers: {} },
    { name: 'streamed', headers: STREAM },
  ])('of a document with faults is 400, $name, with each of them (Q1)', async ({ headers }) => {
    const { post } = await served()
    const { status, body } = await post('/v1/runs', { flow: { ...ECHO, start_node: undefined } }, headers)
    expect(status).toBe(400)
    expect(body.error).toMatchObject({
      code: 'FLOW_INVALID',
      faults: [{ code: 'FLOW_FIELD_MISSING', path: '$' }, { code: 'FLOW_START_UNLISTED' }],
    })
  })

  it.each([
    { name: 'is no schema', input: { ...text('said'), minLength: 'x' } },
    { name: 'has a pattern that looks ahead', input: { ...text('said'), pattern: '^(?=a)' } },
  ])('of a document whose tool has an input that $name is 400', async ({ input }) => {
    const { post } = await served({ 'tools/pay': ECHO_TOOL })
    const nodes = { pay: toolNode('pay', [input], [text('said')]) }
    const flow = flowOf({ nodes, inputs: [text('said')], outputs: [text('said')] })
    const { status, body } = await post('/v1/runs', { flow, inputs: { said: 'ten' } })
    expect([status, body.error.code]).toEqual([400, 'JSON_SCHEMA'])
    expect(body.error.message).toContain('the inputs of tool "pay"')
  })

  it('that gives a tool what its document does not let it take is 422', async () => {
    const { post } = await served({ 'tools/pay': ECHO_TOOL })
    const nodes = { pay: toolNode('pay', [{ ...text('said'), pattern: '^(a+)+$' }], [text('said')]) }
    const flow = flowOf({ nodes, inputs: [text('said')], outputs: [text('said')] })
    const run = (said: string) => post('/v1/runs', { flow, inputs: { said } })
    expect((await run('aa')).status).toBe(200)
    const { status, body } = await run(`${'a'.repeat(60)}!`)
    expect([status, body.error.code]).toEqual([422, 'TOOL_ARGUMENTS'])
  })

  it.each([
    'toolsDir',
    'flowsRoot',
    'middleware',
    'pluginConfig',
    'maxNodeAttempts',
    'maxToolRounds',
    'max_iterations',
  ])('may not set %s, which is the operator’s (Q2)', async (field) => {
    const { post } = await served({ 'flows/echo.json': ECHO })
    const { status, body } = await post('/v1/runs', { flow: 'echo', [field]: 1 })
    expect(status).toBe(400)
    expect(body.error.message).toContain(field)
  })

  it('can be looked at, and followed from any event, after it has ended', async () => {
    const { post, get } = await served({ 'flows/echo.json': ECHO })
    const { body } = await post('/v1/runs', { flow: 'echo', inputs: { said: 'hello' } })
    expect((await get(`/v1/runs/${body.run}`)).body).toEqual(body)
    const rest = framesOf((await get(`/v1/runs/${body.run}/events`, { 'last-event-id': '4' })).text)
    expect(rest.map(({ id }) => id)).toEqual(['5', '6'])
  })
})

describe('a run that goes on for long', () => {
  const files = { 'flows/paying.json': PAYING, 'tools/pay': WAITING_TOOL }
  const async = { prefer: 'respond-async' }

  it('may be begun, looked at and cancelled', async () => {
    const { post, get } = await served(files)
    const begun = await post('/v1/runs', { flow: 'paying', inputs: { said: 'ten' } }, async)
    expect(begun.status).toBe(202)
    expect(begun.body).toMatchObject({ status: 'running' })
    expect(begun.headers.get('location')).toBe(`/v1/runs/${begun.body.run}`)
    expect((await post(`/v1/runs/${begun.body.run}/cancel`)).status).toBe(202)
    const frames = framesOf((await get(`/v1/runs/${begun.body.run}/events`)).text)
    expect(frames.at(-1)).toMatchObject({ event: 'run_end', data: expect.stringContaining('RUN_CANCELLED') })
    expect((await get(`/v1/runs/${begun.body.run}`)).body).toMatchObject({ status: 'cancelled' })
  })

  it('is cancelled when whoever waits for it leaves (Q7)', async () => {
    const { server, get } = await served(files)
    const gone = new AbortController()
    const body = JSON.stringify({ flow: 'paying', inputs: { said: 'ten' } })
    const headers = { 'content-type': 'application/json' }
    const waiting = server.app.request('/v1/runs', { method: 'POST', body, headers, signal: gone.signal })
    let run: string | undefined
    while (run === undefined) run = (await get('/v1/threads')).body.threads[0]?.thread
    gone.abort()
    await Promise.resolve(waiting).catch(() => {})
    const frames = framesOf((await get(`/v1/runs/${run}/events`)).text)
    expect(frames.at(-1)?.data).toContain('RUN_CANCELLED')
  })
})

describe('a run that asks', () => {
  const files = { 'flows/paying.json': PAYING, 'tools/pay': ECHO_TOOL, 'gate.mjs': GATE }
  const gated = () => served(files, (at) => ({ plugins: [at('gate.mjs')] }))

  it('is answered with its questions, and goes on with an answer', async () => {
    const { post, get } = await gated()
    const asked = await post('/v1/runs', { flow: 'paying', inputs: { said: 'ten' } })
    expect(asked.status).toBe(202)
    const [ask] = asked.body.asks
    expect(ask).toMatchObject({ key: 'pay:pay@Gate', askedBy: 'policy:Gate', payload: { risk: 'it costs money' } })
    expect((await get('/v1/asks')).body.asks).toEqual([ask])

    const answered = await post(`/v1/asks/${ask.id}/answer`, { answer: { approved: true } })
    expect(answered.status).toBe(200)
    expect(answered.body).toMatchObject({ thread: asked.body.thread, status: 'completed', result: { said: 'ten' } })
    expect((await get('/v1/asks')).body.asks).toEqual([])
  })

  it('tells nothing of the conversation before in the stream that goes on (Z14)', async () => {
    const { post, send } = await helped({ isGated: true })
    const asked = await post('/v1/runs', { flow: 'helper', inputs: { said: 'marker-of-what-was-said' } })
    const answer = JSON.stringify({ answer: { approved: true } })
    const headers = { 'content-type': 'application/json', ...STREAM }
    const { text } = await send(`/v1/asks/${asked.body.asks[0].id}/answer`, { method: 'POST', body: answer, headers })
    const types = framesOf(text).map(({ event }) => event)
    expect(types).toEqual(expect.arrayContaining(['tool_result', 'model_call', 'token', 'run_end']))
    expect(text).toContain(SAID.split(' ')[0])
    expect(text).not.toMatch(/marker-of-what-was-said|You help\./)
  })

  it('takes an answer once', async () => {
    const { post } = await gated()
    const { body } = await post('/v1/runs', { flow: 'paying', inputs: { said: 'ten' } })
    const answer = () => post(`/v1/asks/${body.asks[0].id}/answer`, { answer: { approved: true } })
    expect((await answer()).status).toBe(200)
    const again = await answer()
    expect(again.status).toBe(409)
    expect(again.body.error.code).toBe('ASK_ANSWERED')
  })

  it('stays as it is when an answer does not fit', async () => {
    const { post } = await gated()
    const { body } = await post('/v1/runs', { flow: 'paying', inputs: { said: 'ten' } })
    const path = `/v1/asks/${body.asks[0].id}/answer`
    const wrong = await post(path, { answer: { approved: 'yes' } })
    expect(wrong.status).toBe(422)
    expect(wrong.body.error.code).toBe('ANSWER_INVALID')
    expect((await post(path, { answer: { approved: true } })).status).toBe(200)
  })
})
