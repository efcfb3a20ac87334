import { describe, expect, it } from 'vitest'
import { callers } from '../testing/callers.ts'
import { ECHO_TOOL, GATE, PAYING } from '../testing/documents.ts'
import { served } from '../testing/served.ts'

const { file, as } = callers({
  ann: { scopes: ['run', 'answer', 'edit'] },
  bob: { scopes: ['run', 'answer', 'edit'] },
  reader: { scopes: ['read'] },
  reading: { scopes: ['read', 'run', 'edit', 'answer'] },
  root: { scopes: ['admin'] },
  runner: { scopes: ['run'] },
})
type Name = keyof typeof as

const files = { 'flows/paying.json': PAYING, 'tools/pay': ECHO_TOOL, 'gate.mjs': GATE, 'tokens.json': file }

/** A server on which ann has a run that waits, on her thread `t`. */
async function waiting() {
  const site = await served(files, (at) => ({ plugins: [at('gate.mjs')], tokens: at('tokens.json') }))
  const { body } = await site.post('/v1/runs', { flow: 'paying', inputs: { said: 'ten' }, thread: 't' }, as.ann)
  return { ...site, run: body.run as string, ask: body.asks[0].id as string }
}

interface Route {
  readonly route: string
  readonly body?: object
  /** What comes to whom; `let in` is any status but 401, 403 and 404. In this order, for a route may change what it is about. */
  readonly comes: Partial<Record<Name | 'nobody', number | 'let in'>>
}

const READ = { nobody: 401, bob: 404, runner: 404, reader: 200, reading: 200, root: 200 } as const
const CHANGE = { nobody: 401, runner: 403, bob: 404, reader: 403, reading: 403 } as const

describe('what is ann’s', () => {
  it.each<Route>([
    { route: 'GET /v1/runs/RUN', comes: { ...READ, ann: 200 } },
    { route: 'GET /v1/runs/RUN/events', comes: { ...READ, ann: 200 } },
    { route: 'POST /v1/runs/RUN/cancel', comes: { ...CHANGE, runner: 404, root: 202, ann: 202 } },
    { route: 'GET /v1/threads/t?owner=ann', comes: { ...READ, ann: 200 } },
    { route: 'GET /v1/threads/t', comes: { nobody: 401, bob: 404, reader: 404, root: 404, ann: 200 } },
    { route: 'GET /v1/threads/t/history?owner=ann', comes: { ...READ, ann: 200 } },
    { route: 'GET /v1/threads/ann%2Ft', comes: { bob: 404, reader: 404, root: 404, ann: 404 } },
    {
      route: 'POST /v1/threads/t/fork?owner=ann',
      body: { at: 1 },
      comes: { ...CHANGE, root: 'let in', ann: 'let in' },
    },
    {
      route: 'PATCH /v1/threads/t/state?owner=ann',
      body: { values: {} },
      comes: { ...CHANGE, root: 'let in', ann: 'let in' },
    },
    { route: 'DELETE /v1/threads/t?owner=ann', comes: { ...CHANGE, ann: 200, root: 404 } },
    {
      route: 'POST /v1/asks/ASK/answer',
      body: { answer: { approved: true } },
      comes: { nobody: 401, runner: 403, reader: 403, bob: 404, root: 200 },
    },
  ])('is for her, for who may read it, and for an admin: $route', async ({ route, body, comes }) => {
    const { send, run, ask } = await waiting()
    const [method = '', path = ''] = route.replace('RUN', run).replace('ASK', ask).split(' ')
    for (const [who, status] of Object.entries(comes)) {
      const headers = {
        ...(who === 'nobody' ? {} : as[who as Name]),
        ...(body && { 'content-type': 'application/json' }),
      }
      const answer = await send(path, { method, headers, ...(body && { body: JSON.stringify(body) }) })
      const isIn = ![401, 403, 404].includes(answer.status)
      expect([who, status === 'let in' && isIn ? 'let in' : answer.status]).toEqual([who, status])
    }
  })

  it.each([
    { route: '/v1/threads', member: 'threads', seen: { bob: 0, runner: 0, ann: 1, reader: 1, root: 1 } },
    { route: '/v1/threads?owner=ann', member: 'threads', seen: { bob: 0, runner: 0, ann: 1, reader: 1, root: 1 } },
    { route: '/v1/asks', member: 'asks', seen: { bob: 0, runner: 0, ann: 1, reader: 1, root: 1 } },
    { route: '/v1/decisions', member: 'decisions', seen: { bob: 0, runner: 0, ann: 1, reader: 1, root: 1 } },
    { route: '/v1/decisions?thread=t', member: 'decisions', seen: { bob: 0, ann: 1, reader: 1 } },
  ])('is in no list of others: $route', async ({ route, member, seen }) => {
    const { get } = await waiting()
    for (const [who, count] of Object.entries(seen))
      expect([who, (await get(route, as[who as Name])).body[member].length]).toEqual([who, count])
  })

  it('does not hinder bob to have a thread of that name, which is another one', async () => {
    const { post, get } = await waiting()
    expect((await post('/v1/threads', { thread: 't', flow: 'paying' }, as.bob)).status).toBe(201)
    expect((await get('/v1/threads/t', as.bob)).body).toMatchObject({ thread: 't', runs: [] })
    expect((await get('/v1/threads', as.reader)).body.threads.map(({ owner }: { owner: string }) => owner)).toEqual([
      'bob',
      'ann',
    ])
  })
})

describe('a scope', () => {
  it.each<Route>([
    {
      route: 'POST /v1/runs',
      body: { flow: 'paying', inputs: { said: 'x' } },
      comes: { reader: 403, runner: 'let in', root: 'let in' },
    },
    { route: 'POST /v1/threads', body: {}, comes: { reader: 403, runner: 201, root: 201 } },
    { route: 'POST /v1/validate', body: { flow: PAYING }, comes: { reader: 403, runner: 200, root: 200 } },
    { route: 'GET /v1/capabilities', comes: { nobody: 401, reader: 200, runner: 200 } },
  ])('is needed, and admin is all of them: $route', async ({ route, body, comes }) => {
    const { send } = await served(files, (at) => ({ plugins: [at('gate.mjs')], tokens: at('tokens.json') }))
    const [method = '', path = ''] = route.split(' ')
    for (const [who, status] of Object.entries(comes)) {
      const headers = { ...(who === 'nobody' ? {} : as[who as Name]), 'content-type': 'application/json' }
      const answer = await send(path, { method, headers, ...(body && { body: JSON.stringify(body) }) })
      const isIn = ![401, 403, 404].includes(answer.status)
      expect([who, status === 'let in' && isIn ? 'let in' : answer.status]).toEqual([who, status])
    }
  })
})
