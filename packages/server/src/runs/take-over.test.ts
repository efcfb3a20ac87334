import { appendFileSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { memoryRunLog, type RunEntry, type RunLog, sqliteRunLog } from '@sluice/host'
import { expect, it, onTestFinished } from 'vitest'
import { flowOf, GATE, text, toolNode } from '../testing/documents.ts'
import { describeDurable, keptIn } from '../testing/durable.ts'
import { framesOf, type Served, served } from '../testing/served.ts'

const said = [text('said')]
const FLOW = flowOf({
  name: 'two',
  nodes: { first: toolNode('first', said, said), pay: toolNode('pay', said, said) },
  inputs: said,
  outputs: said,
})

/** Writes its name down, and is done when a file `ready` lies beside it, if it waits for that. */
const tool = (waits: boolean) => `#!/usr/bin/env node
const { appendFileSync, existsSync } = require('node:fs')
const { basename, join } = require('node:path')
appendFileSync(join(__dirname, 'ran'), basename(__filename) + '\\n')
const parent = process.ppid
const look = () => {
  if (process.ppid !== parent) process.exit(1)
  if (${!waits} || existsSync(join(__dirname, 'ready'))) process.stdin.pipe(process.stdout)
  else setTimeout(look, 10)
}
look()
`
const FAILING = `#!/usr/bin/env node
process.exit(1)
`

const INPUT = { flow: 'two', inputs: { said: 'ten' } }
const ASYNC = { prefer: 'respond-async' }
const STREAM = { accept: 'text/event-stream' }

interface Site {
  readonly folder: string
  /** Another server on the same file. */
  serve(more?: object): Promise<Served>
  /** The same, which keeps its runs to itself. */
  serveAlone(more?: object): Promise<Served>
  ready(): void
  ran(): readonly string[]
  /** When a tool of this name has begun. */
  begun(tool: string): Promise<void>
}

async function siteOf(files: Readonly<Record<string, string>> = {}): Promise<Site> {
  const { folder } = await served({
    'flows/two.json': FLOW,
    'tools/first': tool(false),
    'tools/pay': tool(false),
    'gate.mjs': GATE,
    ...files,
  })
  const at = (name: string) => join(folder, name)
  const ran = () => (existsSync(at('tools/ran')) ? readFileSync(at('tools/ran'), 'utf8').trim().split('\n') : [])
  const machine = { flows: at('flows'), toolsDir: at('tools') }
  return {
    folder,
    serve: (more) => served({}, () => ({ ...machine, ...keptIn(at('runs.db')), ...more })),
    serveAlone: (more) => served({}, () => ({ ...machine, store: keptIn(at('runs.db')).store, ...more })),
    ready: () => appendFileSync(at('tools/ready'), ''),
    ran,
    begun: (name) => until(() => ran().includes(name)),
  }
}

async function until(is: () => boolean): Promise<void> {
  while (!is()) await new Promise((resolve) => setTimeout(resolve, 5))
}

const eventsOf = async ({ get }: Served, run: string, after = 0) =>
  framesOf((await get(`/v1/runs/${run}/events`, { 'last-event-id': String(after) })).text)

const idsFrom = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, i) => String(first + i))

describeDurable('a server that ends while a run is under way (Q6)', () => {
  const files = { 'tools/first': tool(true) }

  it('lets it come to a stop, and the next one brings it to its end: nothing is done twice', async () => {
    const site = await siteOf(files)
    const one = await site.serve()
    const { run } = (await one.post('/v1/runs', INPUT, ASYNC)).body
    await site.begun('first')
    const closed = one.server.close()
    expect(await one.get('/readyz')).toMatchObject({ status: 503, body: { status: 'draining' } })
    site.ready()
    expect(await closed).toBe(true)
    expect(site.ran()).toEqual(['first'])

    const two = await site.serve()
    const frames = await eventsOf(two, run)
    expect((await two.get(`/v1/runs/${run}`)).body).toMatchObject({ status: 'completed', result: { said: 'ten' } })
    expect(site.ran()).toEqual(['first', 'pay'])
    expect(frames.map(({ id }) => id)).toEqual(idsFrom(1, frames.length))
    expect(frames.filter(({ event }) => event === 'run_start')).toHaveLength(1)
    expect(frames.filter(({ event }) => event === 'run_end')).toHaveLength(1)
  })

  it('finds the code that came with it in the next one, and nothing of it is left in either', async () => {
    const site = await siteOf({ ...files, 'work/.keep': '' })
    const code = { allowRequestCode: true, workDir: join(site.folder, 'work') }
    const one = await site.serve(code)
    const flow = flowOf({
      name: 'mixed',
      nodes: { first: toolNode('first', said, said), brought: toolNode('brought', said, said) },
      inputs: said,
      outputs: said,
    })
    const source = `#!/usr/bin/env node\nprocess.stdin.resume()\nconsole.log('{"said":"brought"}')\nprocess.exit(0)`
    const asked = { flow, inputs: { said: 'ten' }, tools: [{ name: 'brought', source }] }
    const { run } = (await one.post('/v1/runs', asked, ASYNC)).body
    await site.begun('first')
    const closed = one.server.close()
    site.ready()
    expect(await closed).toBe(true)
    expect(readdirSync(code.workDir)).toEqual(['.keep'])

    const two = await site.serve(code)
    await eventsOf(two, run)
    expect((await two.get(`/v1/runs/${run}`)).body).toMatchObject({ status: 'completed', result: { said: 'brought' } })
    expect(site.ran()).toEqual(['first'])
    await two.server.close()
    expect(readdirSync(code.workDir)).toEqual(['.keep'])
  })

  it('refuses new runs, and sends those who wait away with the id of theirs', async () => {
    const site = await siteOf(files)
    const one = await site.serve()
    const waiting = one.post('/v1/runs', INPUT)
    await site.begun('first')
    const closed = one.server.close()
    const refused = await one.post('/v1/runs', INPUT)
    expect([refused.status, refused.body.error.code]).toEqual([503, 'SERVER_DRAINING'])
    expect(refused.headers.get('retry-after')).toBe('1')
    site.ready()
    const { status, body, headers } = await waiting
    await closed
    expect([status, body.error.code]).toEqual([503, 'SERVER_DRAINING'])
    expect(headers.get('retry-after')).toBe('5')
    expect(headers.get('location')).toBe(`/v1/runs/${body.error.run}`)
    expect(site.ran()).toEqual(['first'])

    const two = await site.serve()
    expect((await eventsOf(two, body.error.run)).at(-1)?.event).toBe('run_end')
    expect((await two.get(`/v1/runs/${body.error.run}`)).body).toMatchObject({ status: 'completed' })
  })

  it('ends its streams with a hint when to come back, and they go on where they were', async () => {
    const site = await siteOf(files)
    const one = await site.serve()
    const streamed = one.post('/v1/runs', INPUT, STREAM)
    await site.begun('first')
    const closed = one.server.close()
    site.ready()
    const { text: sent, headers } = await streamed
    await closed
    expect(sent).toMatch(/\nretry: 3000\n\n$/)
    const before = framesOf(sent)
    expect(before.map(({ event }) => event)).not.toContain('run_end')
    const run = headers.get('content-location')?.split('/')[3] ?? ''
    const after = await eventsOf(await site.serve(), run, before.length)
    expect([...before, ...after].map(({ id }) => id)).toEqual(idsFrom(1, before.length + after.length))
    expect(after.at(-1)?.event).toBe('run_end')
  })

  it('ends it as cancelled where nobody could go on with it', async () => {
    const site = await siteOf(files)
    const one = await site.serveAlone()
    const waiting = one.post('/v1/runs', INPUT)
    await site.begun('first')
    const closed = one.server.close()
    site.ready()
    expect(await waiting).toMatchObject({ status: 503, body: { status: 'cancelled', error: { code: 'RUN_DRAINED' } } })
    await closed
  })

  it('does not wait for it longer than it may', async () => {
    const site = await siteOf(files)
    const one = await site.serve()
    await one.post('/v1/runs', INPUT, ASYNC)
    await site.begun('first')
    onTestFinished(() => site.ready())
    expect(await one.server.close({ withinMs: 10 })).toBe(false)
  })
})

describeDurable('a run that a process has left', () => {
  const entry: RunEntry = {
    id: 'left',
    owner: '',
    thread: 't',
    branch: 'main',
    flow: { name: 'two' },
    begun: { kind: 'start', inputs: { said: 'ten' } },
    by: 'local',
    byKind: 'local',
    startedBy: 'local',
    at: 1,
  }

  /** Writes down that a run was begun, and no more. */
  async function leave(site: Site, left: RunEntry = entry, answering?: readonly string[]): Promise<void> {
    const log = sqliteRunLog(join(site.folder, 'runs.db'))
    await log.begin(left, answering)
    await log.close()
  }

  it('before its thread knew of it is begun as it was asked for', async () => {
    const site = await siteOf()
    await leave(site)
    const two = await site.serve()
    const frames = await eventsOf(two, 'left')
    expect([frames[0]?.event, frames.at(-1)?.event]).toEqual(['run_start', 'run_end'])
    expect((await two.get('/v1/runs/left')).body).toMatchObject({ status: 'completed', result: { said: 'ten' } })
    expect(site.ran()).toEqual(['first', 'pay'])
  })

  it.each([
    { status: 'completed', files: { 'tools/pay': tool(false) } },
    { status: 'failed', files: { 'tools/pay': FAILING } },
  ])('whose thread says that it $status ends so, and nothing runs', async ({ status, files }) => {
    const site = await siteOf(files)
    const alone = await site.serveAlone()
    const { body } = await alone.post('/v1/runs', { ...INPUT, thread: 't' })
    const ran = site.ran()
    await alone.server.close()
    await leave(site, { ...entry, id: body.run })
    const two = await site.serve()
    const [end, ...more] = await eventsOf(two, body.run)
    expect(more).toEqual([])
    expect(JSON.parse(end?.data ?? '')).toMatchObject({ type: 'run_end', status, path: ['two'] })
    expect((await two.get(`/v1/runs/${body.run}`)).body).toEqual(body)
    expect(body.status).toBe(status)
    expect(site.ran()).toEqual(ran)
  })

  it('whose thread says that it waits asks, and is answered', async () => {
    const site = await siteOf()
    const plugins = [join(site.folder, 'gate.mjs')]
    const alone = await site.serveAlone({ plugins })
    const { run } = (await alone.post('/v1/runs', { ...INPUT, thread: 't' })).body
    await alone.server.close()
    await leave(site, { ...entry, id: run })
    const two = await site.serve({ plugins })
    await eventsOf(two, run)
    const [ask] = (await two.get('/v1/asks')).body.asks
    expect(ask).toMatchObject({ run, key: 'pay:pay@Gate' })
    const answered = await two.post(`/v1/asks/${ask.id}/answer`, { answer: { approved: true } })
    expect(answered.body).toMatchObject({ status: 'completed', result: { said: 'ten' } })
    expect(site.ran()).toEqual(['first', 'pay'])
  })

  it('that was to answer a question answers it', async () => {
    const site = await siteOf()
    const plugins = [join(site.folder, 'gate.mjs')]
    const one = await site.serve({ plugins })
    const { asks } = (await one.post('/v1/runs', { ...INPUT, thread: 't' })).body
    await one.server.close()
    const begun = { kind: 'resume' as const, answers: { 'pay:pay@Gate': { approved: true } } }
    await leave(site, { ...entry, begun }, [asks[0].id])
    const two = await site.serve({ plugins })
    await eventsOf(two, 'left')
    expect((await two.get('/v1/runs/left')).body).toMatchObject({ status: 'completed' })
    expect(site.ran()).toEqual(['first', 'pay'])
  })

  it('and cannot be begun here fails, and what it was to answer is asked again', async () => {
    const site = await siteOf()
    const one = await site.serve({ plugins: [join(site.folder, 'gate.mjs')] })
    const { asks } = (await one.post('/v1/runs', { ...INPUT, thread: 't' })).body
    await one.server.close()
    const begun = { kind: 'resume' as const, answers: { 'pay:pay@Gate': { approved: true } } }
    await leave(site, { ...entry, begun }, [asks[0].id])
    const two = await site.serve()
    const frames = await eventsOf(two, 'left')
    expect(JSON.parse(frames.at(-1)?.data ?? '')).toMatchObject({ status: 'failed', error: { code: 'ASKER_MISSING' } })
    expect((await two.get('/v1/asks')).body.asks).toMatchObject([{ id: asks[0].id }])
    expect(site.ran()).toEqual(['first'])
  })

  it('with whose thread somebody else has gone on ends as cancelled, and nothing runs', async () => {
    const site = await siteOf({ 'tools/first': tool(true) })
    const alone = await site.serveAlone()
    const { run } = (await alone.post('/v1/runs', { ...INPUT, thread: 't' }, ASYNC)).body
    await site.begun('first')
    const closed = alone.server.close()
    site.ready()
    await closed
    const other = await site.serveAlone()
    await other.post('/v1/runs', { ...INPUT, thread: 't' })
    const ran = site.ran()
    await leave(site, { ...entry, id: run })
    const two = await site.serve()
    const frames = await eventsOf(two, run)
    expect(JSON.parse(frames.at(-1)?.data ?? '')).toMatchObject({ status: 'cancelled', error: { code: 'RUN_LOST' } })
    expect(site.ran()).toEqual(ran)
  })

  it('does not begin a second time for who follows it, and calls back what a model had begun to say', async () => {
    const site = await siteOf()
    const log = sqliteRunLog(join(site.folder, 'runs.db'))
    await log.begin(entry)
    const at = { nodeName: 'ask', nodeType: 'LlmNode', path: ['two'] }
    const events = [
      { type: 'run_start', graphName: 'two', runId: 'left', path: ['two'] },
      { type: 'warning', message: 'mind this', path: ['two'] },
      { type: 'token', text: 'said', ...at },
      { type: 'node_complete', attempt: 1, output: {}, ...at },
      { type: 'token', text: 'about', ...at },
      { type: 'token', text: 'to', ...at },
    ]
    await log.append(
      'left',
      events.map((event) => JSON.stringify(event)),
    )
    await log.close()
    const two = await site.serve()
    const after = await eventsOf(two, 'left', events.length)
    expect(after[0]?.id).toBe('7')
    expect(JSON.parse(after[0]?.data ?? '')).toEqual({ type: 'retracted', tokens: 2, ...at })
    expect(after.map(({ event }) => event)).not.toContain('run_start')
    const { body } = await two.get('/v1/runs/left')
    expect(body).toMatchObject({ status: 'completed', warnings: [{ message: 'mind this' }] })
  })

  it('only seemingly, for it stood still, is done once: the other one waits for its thread', async () => {
    const site = await siteOf({ 'tools/first': tool(true) })
    const one = await site.serve()
    const waiting = one.post('/v1/runs', INPUT)
    await site.begun('first')
    const { log } = keptIn(join(site.folder, 'runs.db'), () => Date.now() + 3_600_000)
    await site.serve({ log })
    site.ready()
    expect(await waiting).toMatchObject({ status: 200, body: { status: 'completed', result: { said: 'ten' } } })
    expect(site.ran()).toEqual(['first', 'pay'])
    const [run, ...others] = (await log?.runs()) ?? []
    expect(others).toEqual([])
    const frames = await eventsOf(one, run?.id ?? '')
    expect(frames.filter(({ event }) => event === 'run_end')).toHaveLength(1)
  })

  it('whose flow is not served here any more fails with that', async () => {
    const site = await siteOf()
    await leave(site, { ...entry, flow: { name: 'gone' } })
    const two = await site.serve()
    const [end] = await eventsOf(two, 'left')
    expect(JSON.parse(end?.data ?? '')).toMatchObject({ status: 'failed', error: { code: 'FLOW_UNKNOWN' } })
  })

  it('and which is to be cancelled is cancelled', async () => {
    const site = await siteOf({ 'tools/first': tool(true) })
    await leave(site)
    const log = sqliteRunLog(join(site.folder, 'runs.db'))
    await log.cancel('left')
    await log.close()
    const two = await site.serve()
    const frames = await eventsOf(two, 'left')
    expect(JSON.parse(frames.at(-1)?.data ?? '')).toMatchObject({ status: 'cancelled' })
    expect(site.ran()).not.toContain('pay')
  })

  it('goes on where the sign of life fails that says so', async () => {
    const site = await siteOf({ 'tools/first': tool(true) })
    onTestFinished(() => site.ready())
    await leave(site)
    const { store, log } = keptIn(join(site.folder, 'runs.db'))
    const beat = () => Promise.reject(new Error('not now'))
    const two = await site.serve({ store, log: Object.assign(log as RunLog, { beat }) })
    await site.begun('first')
    expect((await two.get('/v1/runs/left')).body).toMatchObject({ status: 'running' })
    site.ready()
    await eventsOf(two, 'left')
    expect((await two.get('/v1/runs/left')).body).toMatchObject({ status: 'completed', result: { said: 'ten' } })
    expect(site.ran()).toEqual(['first', 'pay'])
  })

  it('keeps the time that it may take', async () => {
    const site = await siteOf({ 'tools/first': tool(true) })
    onTestFinished(() => site.ready())
    await leave(site, { ...entry, timeoutMs: 200 })
    const two = await site.serve()
    const frames = await eventsOf(two, 'left')
    expect(JSON.parse(frames.at(-1)?.data ?? '')).toMatchObject({ status: 'failed', error: { code: 'RUN_TIMED_OUT' } })
  })
})

describeDurable('two servers on one file', () => {
  it('share the work of answering: what one asks is answered through the other', async () => {
    const site = await siteOf()
    const plugins = [join(site.folder, 'gate.mjs')]
    const [one, two] = [await site.serve({ plugins }), await site.serve({ plugins })]
    const { asks, thread } = (await one.post('/v1/runs', INPUT)).body
    expect((await two.get('/v1/asks')).body.asks).toMatchObject([{ id: asks[0].id }])
    const answered = await two.post(`/v1/asks/${asks[0].id}/answer`, { answer: { approved: true } })
    expect(answered.body).toMatchObject({ thread, status: 'completed', result: { said: 'ten' } })
    expect((await one.get(`/v1/runs/${answered.body.run}`)).body).toMatchObject({ status: 'completed' })
    expect((await one.get('/v1/asks')).body.asks).toEqual([])
  })

  it('answer at once: one does, and the other says that it is done', async () => {
    const site = await siteOf()
    const plugins = [join(site.folder, 'gate.mjs')]
    const servers = [await site.serve({ plugins }), await site.serve({ plugins })]
    const { asks } = (await (servers[0] as Served).post('/v1/runs', INPUT)).body
    const answers = await Promise.all(
      servers.map(({ post }) => post(`/v1/asks/${asks[0].id}/answer`, { answer: { approved: true } })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
    expect(answers.find(({ status }) => status === 409)?.body.error.code).toBe('ASK_ANSWERED')
    expect(site.ran()).toEqual(['first', 'pay'])
  })

  it('follow, wait for and cancel each other’s runs', async () => {
    const site = await siteOf({ 'tools/first': tool(true) })
    onTestFinished(() => site.ready())
    const [one, two] = [await site.serve(), await site.serve()]
    const { run } = (await one.post('/v1/runs', INPUT, ASYNC)).body
    const followed = eventsOf(two, run)
    expect((await two.get(`/v1/runs/${run}`)).body).toMatchObject({ status: 'running' })
    expect((await two.post(`/v1/runs/${run}/cancel`)).status).toBe(202)
    const frames = await followed
    expect(frames.map(({ id }) => id)).toEqual(idsFrom(1, frames.length))
    expect(JSON.parse(frames.at(-1)?.data ?? '')).toMatchObject({ status: 'cancelled' })
  })

  it('leave each other’s runs alone', async () => {
    const site = await siteOf({ 'tools/first': tool(true) })
    const one = await site.serve()
    const { run } = (await one.post('/v1/runs', INPUT, ASYNC)).body
    await site.begun('first')
    const two = await site.serve()
    site.ready()
    await eventsOf(two, run)
    expect(site.ran()).toEqual(['first', 'pay'])
  })

  it('do not start where threads would be gone with the process', async () => {
    const site = await siteOf()
    const { log } = keptIn(join(site.folder, 'runs.db'))
    await expect(served({}, () => ({ log }))).rejects.toMatchObject({ code: 'SERVER_LOG' })
    await expect(served({}, () => ({ log: memoryRunLog() }))).resolves.toBeDefined()
    log?.close()
  })
})
