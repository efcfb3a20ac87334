import { join } from 'node:path'
import { sqliteStore } from '@sluice/host'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createServer, type ServerOptions } from '../server.ts'
import { callers } from '../testing/callers.ts'
import { ECHO_TOOL, GATE, PAYING } from '../testing/documents.ts'
import { describeDurable, keptIn } from '../testing/durable.ts'
import { type Served, served } from '../testing/served.ts'

const { file, as } = callers({
  ann: { scopes: ['run'] },
  bob: { scopes: ['run', 'read', 'answer'] },
})
type Headers = Readonly<Record<string, string>>

/** Lets each caller pay three times. It waits before it counts, so that calls at once could overtake it. */
const LIMIT = `
const schema = { type: 'object', properties: { paid: { type: 'integer', default: 0 } } }
export default {
  manifest: {
    name: 'limit', version: '1.0.0', capabilities: [],
    components: [{
      componentType: 'PayLimit', kind: 'middleware', seams: { toolCall: ['before'] }, kept: { scope: 'principal', schema },
    }],
  },
  handlers: { PayLimit: { toolCall: { async before({ subject }, ctx) {
    if (subject.toolName !== 'pay' || ctx.revisit) return { action: 'proceed' }
    const { paid } = ctx.kept.value
    await new Promise(setImmediate)
    if (paid >= 3) return { action: 'reject', reason: 'three are enough' }
    ctx.kept.update(() => ({ paid: paid + 1 }))
    return { action: 'proceed' }
  } } } },
}
`
const FILES = { 'flows/paying.json': PAYING, 'tools/pay': ECHO_TOOL, 'limit.mjs': LIMIT, 'tokens.json': file }

const pays = async ({ post }: Pick<Served, 'post'>, headers: Headers, thread?: string): Promise<string> =>
  (await post('/v1/runs', { flow: 'paying', inputs: { said: 'ten' }, thread }, headers)).body.status

const site = (options: (at: (name: string) => string) => ServerOptions = () => ({})) =>
  served(FILES, (at) => ({ plugins: [at('limit.mjs')], tokens: at('tokens.json'), ...options(at) }))

const count = (statuses: readonly string[], wanted: string) => statuses.filter((status) => status === wanted).length

describe('a policy that keeps by principal, on a server', () => {
  it('limits each caller over all of their threads, at once and one after the other, and nobody else', async () => {
    const one = await site()
    const statuses = await Promise.all(['t', 'u', undefined, 'v', undefined].map((thread) => pays(one, as.ann, thread)))
    expect([count(statuses, 'completed'), count(statuses, 'failed')]).toEqual([3, 2])
    expect(await pays(one, as.ann, 'w')).toBe('failed')
    expect(await pays(one, as.bob, 't')).toBe('completed')
    expect((await one.get('/v1/capabilities', as.ann)).body.middleware).toMatchObject([{ keeps: 'principal' }])
  })

  it('counts what somebody else has let go on for whoever began it', async () => {
    const one = await served({ ...FILES, 'gate.mjs': GATE }, (at) => ({
      plugins: [at('gate.mjs'), at('limit.mjs')],
      tokens: at('tokens.json'),
    }))
    for (const status of ['completed', 'completed', 'completed', 'failed']) {
      const body = { flow: 'paying', inputs: { said: 'ten' } }
      const { ask } = await one.post('/v1/runs', body, as.ann).then((answer) => ({ ask: answer.body.asks[0].id }))
      const answered = await one.post(`/v1/asks/${ask}/answer`, { answer: { approved: true } }, as.bob)
      expect(answered.body.status).toBe(status)
    }
  })

  it('limits all callers together where nobody has to say who they are', async () => {
    const one = await served(FILES, (at) => ({ plugins: [at('limit.mjs')] }))
    const statuses = await Promise.all(['t', 'u', 'v', 'w'].map((thread) => pays(one, {}, thread)))
    expect(count(statuses, 'completed')).toBe(3)
  })
})

describeDurable('what it keeps in the file of threads', () => {
  it('binds all servers on that file together, and is there when they are started again', async () => {
    const one = await site((at) => keptIn(at('threads.db')))
    const at = (name: string) => join(one.folder, name)
    const another = async () => {
      const options = {
        flows: at('flows'),
        toolsDir: at('tools'),
        plugins: [at('limit.mjs')],
        tokens: at('tokens.json'),
      }
      const server = await createServer({ ...options, ...keptIn(at('threads.db')) })
      onTestFinished(async () => void (await server.close()))
      const post = async (path: string, body: unknown, headers: Headers) => {
        const init = {
          method: 'POST',
          body: JSON.stringify(body),
          headers: { 'content-type': 'application/json', ...headers },
        }
        return { body: await (await server.app.request(path, init)).json() } as Awaited<ReturnType<Served['post']>>
      }
      return { server, post } as Pick<Served, 'server' | 'post'>
    }
    const two = await another()
    const statuses = await Promise.all([one, two, one, two, one].map((server) => pays(server, as.ann)))
    expect(count(statuses, 'completed')).toBe(3)
    await Promise.all([one.server.close(), two.server.close()])
    const again = await another()
    expect([await pays(again, as.ann), await pays(again, as.bob)]).toEqual(['failed', 'completed'])
    // Whoever runs the machine lets them pay again.
    const store = sqliteStore(at('threads.db'))
    expect(await store.kept.remove('ann', 'PayLimit')).toBe(1)
    store.close()
    expect(await pays(again, as.ann)).toBe('completed')
  })
})
