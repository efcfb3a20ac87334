// node load.mjs                    requests at 1, 16 and 256 connections, beside bare hono in the same run
// node load.mjs --streams [n]      so many slow streams at once (1,000)
// node load.mjs --memory [minutes] what the process holds while it is kept busy (10)
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import autocannon from 'autocannon'

const at = (path) => fileURLToPath(new URL(path, import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'sluice-load-'))
const ref = (name) => ({ $component_ref: name })
const text = (title) => ({ title, type: 'string' })
const children = []

/** A flow whose nodes stand between a start and an end. */
function flowOf(name, nodes = {}) {
  const names = ['start', ...Object.keys(nodes), 'end']
  const all = {
    start: { component_type: 'StartNode', inputs: [text('said')] },
    ...nodes,
    end: { component_type: 'EndNode', outputs: [text('said')] },
  }
  return {
    component_type: 'Flow',
    agentspec_version: '26.1.0',
    name,
    inputs: [text('said')],
    outputs: [text('said')],
    start_node: ref('start'),
    nodes: names.map(ref),
    control_flow_connections: names.slice(1).map((to, i) => ({
      component_type: 'ControlFlowEdge',
      name: `to_${to}`,
      from_node: ref(names[i]),
      to_node: ref(to),
    })),
    $referenced_components: Object.fromEntries(
      Object.entries(all).map(([id, node]) => [id, { id, name: id, ...node }]),
    ),
  }
}

const POLICY = `serve({ Watch: { node: { before: () => ({ action: 'proceed' }) } } })`
const MANIFEST = {
  name: 'watch',
  version: '1.0.0',
  capabilities: [],
  components: [{ componentType: 'Watch', kind: 'middleware', seams: { node: ['before'] } }],
}
const BARE = `
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
const app = new Hono().post('/v1/runs', async (ctx) => {
  const { inputs } = await ctx.req.json()
  return ctx.json({ run: crypto.randomUUID(), status: 'completed', result: inputs })
})
serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => console.error('http://127.0.0.1:' + port))
`

/** Starts a program that says on stderr where it listens. */
async function started(args) {
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { PATH: process.env.PATH, OPENAI_API_KEY: 'none' },
  })
  children.push(child)
  let said = ''
  for await (const part of child.stderr.setEncoding('utf8')) {
    said += part
    const [url] = /http:\/\/127\S+/.exec(said) ?? []
    if (url === undefined) continue
    child.stderr.resume()
    return { url, pid: child.pid }
  }
  throw new Error(`it did not start: ${said}`)
}

const sluice = (...flags) =>
  started([
    at('../../packages/cli/bin/sluice.js'),
    'serve',
    '--flows',
    join(folder, 'flows'),
    '--port',
    '0',
    '--max-concurrent',
    '1024',
    '--max-queue',
    '4096',
    ...flags,
  ])

const BODY = JSON.stringify({ flow: 'echo', inputs: { said: 'hello' } })
const HEADERS = { 'content-type': 'application/json' }

async function cannon(url, connections, seconds) {
  const result = await autocannon({
    url: `${url}/v1/runs`,
    method: 'POST',
    headers: HEADERS,
    body: BODY,
    connections,
    duration: seconds,
  })
  const { requests, latency, non2xx, errors } = result
  if (non2xx + errors > 0) throw new Error(`${non2xx} answers other than 2xx, ${errors} errors`)
  return { perSecond: requests.average, p50: latency.p50, p99: latency.p99 }
}

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]

async function requests() {
  const bare = join(at('../../packages/server/'), `.bare-${process.pid}.mjs`)
  writeFileSync(bare, BARE)
  try {
    const servers = {
      'bare hono': await started([bare]),
      'trivial flow': await sluice(),
      'the same, a policy in another process': await sluice('--plugin', join(folder, 'watch.json')),
      'the same, on SQLite': await sluice('--store', join(folder, 'store.db')),
    }
    const rows = []
    for (const connections of [1, 16, 256]) {
      const taken = Object.fromEntries(Object.keys(servers).map((name) => [name, []]))
      for (let round = 0; round < 3; round++)
        for (const [name, { url }] of Object.entries(servers)) taken[name].push(await cannon(url, connections, 4))
      const floor = median(taken['bare hono'].map(({ perSecond }) => perSecond))
      for (const [name, results] of Object.entries(taken)) {
        const perSecond = median(results.map((result) => result.perSecond))
        const [p50, p99] = ['p50', 'p99'].map((p) => median(results.map((result) => result[p])))
        rows.push({
          connections,
          server: name,
          'requests/s': Math.round(perSecond),
          'of bare': (perSecond / floor).toFixed(2),
          'p50 ms': p50,
          'p99 ms': p99,
        })
      }
    }
    console.table(rows)
  } finally {
    rmSync(bare, { force: true })
  }
}

/** A model that says a word now and then. */
async function slowModel(words, everyMs) {
  const server = createServer(async (request, response) => {
    for await (const _ of request);
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    let said = 0
    const timer = setInterval(() => {
      const delta = said < words ? { content: `word${said} ` } : {}
      const choice = { index: 0, delta, finish_reason: said < words ? null : 'stop' }
      response.write(
        `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 0, model: 'slow', choices: [choice] })}\n\n`,
      )
      if (said++ < words) return
      clearInterval(timer)
      response.end('data: [DONE]\n\n')
    }, everyMs)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server
}

const residentMiB = (pid) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024

async function streams(count) {
  const model = await slowModel(20, 500)
  const agent = {
    component_type: 'LlmNode',
    prompt_template: '{{said}}',
    llm_config: {
      component_type: 'OpenAiCompatibleConfig',
      id: 'llm',
      name: 'llm',
      model_id: 'slow',
      url: `http://127.0.0.1:${model.address().port}/v1`,
    },
    outputs: [text('said')],
  }
  writeFileSync(join(folder, 'flows/slow.json'), JSON.stringify(flowOf('slow', { agent })))
  const { url, pid } = await sluice()
  const before = residentMiB(pid)
  let peak = before
  const timer = setInterval(() => (peak = Math.max(peak, residentMiB(pid))), 500)
  const began = performance.now()
  const one = async () => {
    const body = JSON.stringify({ flow: 'slow', inputs: { said: 'hello' } })
    const response = await fetch(`${url}/v1/runs`, {
      method: 'POST',
      body,
      headers: { ...HEADERS, accept: 'text/event-stream' },
    })
    const said = await response.text()
    const tokens = said.match(/^event: token$/gm)?.length ?? 0
    return said.includes('"status":"completed"') && tokens === 20
  }
  const whole = (await Promise.all(Array.from({ length: count }, one))).filter(Boolean).length
  clearInterval(timer)
  model.close()
  console.table([
    {
      streams: count,
      whole,
      seconds: ((performance.now() - began) / 1_000).toFixed(1),
      'least seconds': 10.5,
      'MiB before': Math.round(before),
      'MiB at most': Math.round(peak),
    },
  ])
}

async function memory(minutes) {
  const { url, pid } = await sluice()
  const rows = []
  for (let minute = 0; minute <= minutes; minute++) {
    rows.push({ minute, MiB: Math.round(residentMiB(pid)) })
    if (minute < minutes) await cannon(url, 16, 60)
  }
  console.table(rows)
}

const [how, amount] = process.argv.slice(2)
mkdirSync(join(folder, 'flows'))
writeFileSync(join(folder, 'flows/echo.json'), JSON.stringify(flowOf('echo')))
writeFileSync(join(folder, 'watch.mjs'), POLICY)
writeFileSync(join(folder, 'watch.json'), JSON.stringify(MANIFEST))
chmodSync(folder, 0o700)
try {
  if (how === '--streams') await streams(Number(amount ?? 1_000))
  else if (how === '--memory') await memory(Number(amount ?? 10))
  else await requests()
} finally {
  for (const child of children) child.kill('SIGTERM')
  await Promise.all(children.map((child) => child.exitCode ?? once(child, 'exit')))
  rmSync(folder, { recursive: true, force: true })
}
