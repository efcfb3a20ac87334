import type { DecisionRecord } from '@sluice/core'
import { memoryRunLog } from '@sluice/host'
import { describe, expect, it, vi } from 'vitest'
import type { ServerOptions } from '../server.ts'
import { callers } from '../testing/callers.ts'
import { ECHO_TOOL, GATE, gateAsking, PAYING } from '../testing/documents.ts'
import { type Served, served } from '../testing/served.ts'

const { file, as } = callers({
  ann: { scopes: ['run', 'answer'] },
  carl: { scopes: ['answer'], claims: { teams: ['finance'], level: 3 } },
  dora: { scopes: ['answer'], claims: { teams: ['sales'], level: 1 } },
  eve: { scopes: ['read', 'answer'] },
  root: { scopes: ['admin'] },
  fred: { scopes: ['read'], claims: { teams: ['finance'], level: 3 } },
})
type Name = keyof typeof as

const FINANCE = '"finance" in principal.claims.teams && principal.claims.level >= 2'

/** A server on which ann has a run that waits for an answer. */
async function waiting(gate: string, options: ServerOptions = {}) {
  const files = { 'flows/paying.json': PAYING, 'tools/pay': ECHO_TOOL, 'gate.mjs': gate, 'tokens.json': file }
  const log = memoryRunLog()
  const site = await served(files, (at) => ({ plugins: [at('gate.mjs')], tokens: at('tokens.json'), log, ...options }))
  const { body } = await site.post('/v1/runs', { flow: 'paying', inputs: { said: 'ten' }, thread: 't' }, as.ann)
  return { ...site, log, run: body.run as string, ask: body.asks[0].id as string }
}

const answering = ({ post }: Served, ask: string, who: Name) =>
  post(`/v1/asks/${ask}/answer`, { answer: { approved: true } }, as[who])

describe('a question of a policy', () => {
  it.each<{ who: Name; status: number; code?: string }>([
    { who: 'ann', status: 403, code: 'ANSWER_FORBIDDEN' },
    { who: 'carl', status: 404, code: 'ASK_UNKNOWN' },
    { who: 'fred', status: 403, code: 'SCOPE_MISSING' },
    { who: 'eve', status: 200 },
    { who: 'root', status: 200 },
  ])('is answered by who may see it, and not by who started the turn: $who, $status', async ({ who, status, code }) => {
    const site = await waiting(GATE)
    const answer = await answering(site, site.ask, who)
    expect([answer.status, answer.body.error?.code]).toEqual([status, code])
    const { asks } = (await site.get('/v1/asks', as.root)).body
    expect(asks).toHaveLength(status === 200 ? 0 : 1)
  })

  it('is not answered by who started the turn, though somebody else has gone on with it since', async () => {
    const gate = GATE.replace('ctx.answered == null', 'ctx.answered == null || !ctx.answered.final').replace(
      'properties: {',
      "properties: { final: { type: 'boolean' },",
    )
    const site = await waiting(gate)
    const again = await answering(site, site.ask, 'eve')
    expect(again.status).toBe(202)
    expect((await answering(site, again.body.asks[0].id, 'ann')).status).toBe(403)
  })
})

describe('a question is answered by the same people by every protocol', () => {
  const YES = { approved: true }
  const chat = (more: object, parts: readonly object[] = []) => ({
    id: 't',
    messages: [{ id: 'm', role: 'assistant', parts }],
    ...more,
  })
  const WAYS = [
    {
      way: 'AG-UI',
      path: '/v1/ag-ui/paying',
      body: (ask: string) => ({
        threadId: 't',
        runId: 'r',
        messages: [],
        resume: [{ interruptId: ask, status: 'resolved', payload: YES }],
      }),
    },
    { way: 'the AI SDK, by id', path: '/v1/ai-sdk/paying', body: (ask: string) => chat({ answers: { [ask]: YES } }) },
    {
      way: 'the AI SDK, as an approval',
      path: '/v1/ai-sdk/paying',
      body: (ask: string) => {
        const approval = { id: ask, approved: true }
        return chat({}, [{ type: 'dynamic-tool', toolCallId: 'c', state: 'approval-responded', approval }])
      },
    },
  ]
  const WHO = [
    { who: 'ann', gate: GATE, status: 403 },
    { who: 'carl', gate: GATE, status: 404 },
    { who: 'fred', gate: GATE, status: 403 },
    { who: 'eve', gate: GATE, status: 200 },
    { who: 'ann', gate: gateAsking({ approvers: FINANCE }), status: 403 },
    { who: 'carl', gate: gateAsking({ approvers: FINANCE }), status: 404 },
    { who: 'root', gate: gateAsking({ approvers: FINANCE }), status: 403 },
  ] as const
  it.each(WAYS.flatMap((way) => WHO.map((who) => ({ ...way, ...who }))))(
    '$way: $who, $status',
    async ({ path, body, who, gate, status }) => {
      const site = await waiting(gate)
      expect((await site.post(path, body(site.ask), as[who])).status).toBe(status)
      const answered = (await site.log.ask(site.ask))?.closed
      expect(answered === undefined).toBe(status !== 200)
    },
  )
})

describe('a question that names approvers', () => {
  it.each<{ who: Name; status: number }>([
    { who: 'carl', status: 202 },
    { who: 'ann', status: 403 },
    { who: 'dora', status: 404 },
    { who: 'eve', status: 403 },
    { who: 'fred', status: 403 },
    { who: 'root', status: 403 },
  ])('is answered by whom they name, and an admin is no exception: $who, $status', async ({ who, status }) => {
    const site = await waiting(gateAsking({ approvers: FINANCE }))
    expect((await answering(site, site.ask, who)).status).toBe(status)
  })

  it('is all that they see of a run that is not theirs', async () => {
    const site = await waiting(gateAsking({ approvers: FINANCE }))
    const { asks } = (await site.get('/v1/asks', as.carl)).body
    expect(asks).toMatchObject([{ id: site.ask, approvers: FINANCE, payload: { arguments: { said: 'ten' } } }])
    expect((await site.get('/v1/asks', as.dora)).body.asks).toEqual([])
    const answered = await answering(site, site.ask, 'carl')
    expect(answered.body).toEqual({ ask: site.ask, answered: true })
    for (const path of [
      `/v1/runs/${site.run}`,
      `/v1/runs/${site.run}/events`,
      '/v1/threads/t',
      '/v1/threads/t?owner=ann',
    ])
      expect([path, (await site.get(path, as.carl)).status]).toEqual([path, 404])
    expect((await site.get('/v1/decisions', as.carl)).body.decisions).toEqual([])
  })

  it('goes on for its owner, and it is kept who answered, with the question and in the decision log', async () => {
    const records: DecisionRecord[] = []
    const decisions = { write: (record: DecisionRecord) => void records.push(record) }
    const site = await waiting(gateAsking({ approvers: FINANCE }), { decisions })
    await answering(site, site.ask, 'carl')
    expect(await site.log.ask(site.ask)).toMatchObject({ startedBy: 'ann', closed: { by: 'carl' } })
    await vi.waitFor(() =>
      expect(records.filter(({ resolved }) => resolved !== undefined)).toMatchObject([
        { resolved: { by: 'person', principal: { kind: 'token', id: 'carl' } }, principal: { id: 'carl' } },
      ]),
    )
    const { runs } = (await site.get('/v1/threads/t', as.ann)).body
    const next = await site.get(`/v1/runs/${runs[0].run}/events`, as.ann)
    expect(next.text).toContain('"status":"completed"')
    expect((await answering(site, site.ask, 'carl')).body.error.code).toBe('ASK_ANSWERED')
  })

  it('may let who started it answer', async () => {
    const site = await waiting(gateAsking({ approvers: 'principal.id == "ann"' }))
    expect((await answering(site, site.ask, 'ann')).status).toBe(200)
  })

  it('names nobody by a claim that nobody has', async () => {
    const site = await waiting(gateAsking({ approvers: 'principal.claims.board' }))
    for (const who of Object.keys(as) as Name[])
      expect((await answering(site, site.ask, who)).status).not.toBeLessThan(400)
  })

  it.each([
    { approvers: 'true ||', why: 'Unexpected token' },
    {
      approvers: 'subject.toolName == "pay"',
      why: 'there is no "subject" there; an expression about who may answer reads: principal',
    },
    { approvers: 'principal.name == "ann"', why: 'there is no field "name" here' },
    { approvers: 'principal.id.matches("a")', why: 'write re(text, "pattern") instead' },
    { approvers: '"yes"', why: 'it must say true or false' },
    { approvers: '', why: '"approvers" that are no text' },
    { approvers: 7, why: '"approvers" that are no text' },
  ])('is no question where they are no expression: $approvers', async ({ approvers, why }) => {
    const files = { 'flows/paying.json': PAYING, 'tools/pay': ECHO_TOOL, 'gate.mjs': gateAsking({ approvers }) }
    const { post } = await served(files, (at) => ({ plugins: [at('gate.mjs')] }))
    const { status, body } = await post('/v1/runs', { flow: 'paying', inputs: { said: 'ten' } })
    expect([status, body.status]).toEqual([500, 'failed'])
    expect(body.error.message).toContain(why)
  })
})

describe('where nobody has to say who they are', () => {
  const open = (ask: object) =>
    served({ 'flows/paying.json': PAYING, 'tools/pay': ECHO_TOOL, 'gate.mjs': gateAsking(ask) }, (at) => ({
      plugins: [at('gate.mjs')],
    }))

  it.each([
    { name: 'whoever is there answers', ask: {}, status: 200 },
    { name: 'nobody is whom approvers name', ask: { approvers: FINANCE }, status: 403 },
  ])('$name', async ({ ask, status }) => {
    const { post } = await open(ask)
    const { body } = await post('/v1/runs', { flow: 'paying', inputs: { said: 'ten' } })
    expect((await post(`/v1/asks/${body.asks[0].id}/answer`, { answer: { approved: true } })).status).toBe(status)
  })
})
