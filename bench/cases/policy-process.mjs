// What one half costs that a policy in another process is asked about, against a bare exchange of the same bytes: the same
// params in, a verdict out. Both processes are pinned to one core where `taskset` is there, for waking an idle core costs
// more than the whole exchange; without it the figures say so.
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Consultation, platform } from '@sluice/core'
import { loadPlugins } from '@sluice/host'
import { interleaved, row } from '../lib/measure.mjs'

const CALLS = 2_000
const WINDOW = 64

const PROGRAM = `serve({ Watch: { node: { before: () => ({ action: 'proceed' }) } } })`
const MANIFEST = {
  name: 'watch',
  version: '1.0.0',
  components: [{ componentType: 'Watch', kind: 'middleware', seams: { node: ['before'] } }],
}
const ECHO = `
let rest = ''
process.stdin.setEncoding('utf8')
process.stdin.on('data', (text) => {
  rest += text
  let out = ''
  for (let end = rest.indexOf('\\n'); end >= 0; end = rest.indexOf('\\n')) {
    const { id } = JSON.parse(rest.slice(0, end))
    rest = rest.slice(end + 1)
    out += JSON.stringify({ jsonrpc: '2.0', id, result: { action: 'proceed' } }) + '\\n'
  }
  if (out !== '') process.stdout.write(out)
})
`
const PARAMS = {
  componentType: 'Watch',
  seam: 'node',
  component: {},
  subject: { nodeName: 'step', nodeType: 'Node' },
  input: { n: 1_000, text: 'x'.repeat(100) },
  attempt: 1,
  maxAttempts: 3,
  admits: ['proceed', 'modify', 'replace', 'reject', 'suspend'],
  revisit: false,
  labels: [],
}

/** The bare exchange. */
function bare(file) {
  const child = spawn(process.execPath, [file], { stdio: ['pipe', 'pipe', 'inherit'] })
  const waiting = new Map()
  let rest = ''
  let id = 0
  child.stdout.setEncoding('utf8')
  child.stdout.on('data', (text) => {
    rest += text
    for (let end = rest.indexOf('\n'); end >= 0; end = rest.indexOf('\n')) {
      const answer = JSON.parse(rest.slice(0, end))
      rest = rest.slice(end + 1)
      waiting.get(answer.id)(answer.result)
      waiting.delete(answer.id)
    }
  })
  const ask = () =>
    new Promise((resolve) => {
      waiting.set(++id, resolve)
      child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method: 'before', params: PARAMS })}\n`)
    })
  return { ask, close: () => child.kill() }
}

/** The same through a policy, from the question of the gate to the answer read from the wire. */
function asking(policy) {
  const site = { stopped: false, timers: platform, labels: new Set(), consultations: new Set() }
  const question = {
    site,
    seam: 'node',
    half: 'before',
    subject: PARAMS.subject,
    input: PARAMS.input,
    attempt: 1,
    maxAttempts: 3,
    nestedIn: [],
  }
  return () => {
    const consultation = new Consultation(policy, question, false)
    return consultation.within(policy.consult(consultation), Number.POSITIVE_INFINITY)
  }
}

async function oneByOne(ask) {
  for (let i = 0; i < CALLS; i++) await ask()
}

async function inFlight(ask) {
  let left = CALLS * 5
  await Promise.all(
    Array.from({ length: WINDOW }, async () => {
      while (left-- > 0) await ask()
    }),
  )
}

export default async function policyProcess() {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  writeFileSync(join(folder, 'watch.json'), JSON.stringify(MANIFEST))
  writeFileSync(join(folder, 'watch.mjs'), PROGRAM)
  writeFileSync(join(folder, 'echo.mjs'), ECHO)
  const pinned = spawnSync('taskset', ['-pc', '0', String(process.pid)]).status === 0
  const echo = bare(join(folder, 'echo.mjs'))
  const plugins = await loadPlugins([join(folder, 'watch.json')])
  try {
    const ours = asking(plugins.policies[0])
    const one = await interleaved(
      { floor: () => oneByOne(echo.ask), ours: () => oneByOne(ours) },
      { ops: CALLS, samples: 11 },
    )
    if (pinned) spawnSync('taskset', ['-apc', '0-127', String(process.pid)])
    const many = await interleaved(
      { floor: () => inFlight(echo.ask), ours: () => inFlight(ours) },
      { ops: CALLS * 5, samples: 11 },
    )
    const ratio = one.ours.best / one.floor.best
    const perSecond = ({ best, median }) => ({ best: 1e6 / best, median: 1e6 / median })
    const [floor, rate] = [perSecond(many.floor), perSecond(many.ours)]
    return [
      row(
        'policy in another process, one half',
        pinned ? 'pinned to one core' : 'not pinned (no taskset)',
        one.ours.median,
        'µs',
        { best: one.ours.best, floor: one.floor.median, goal: '≤ 1.25 × floor', holds: ratio <= 1.25 },
      ),
      row('policy in another process, one half', `${WINDOW} in flight`, rate.median, '/s', {
        best: rate.best,
        floor: floor.median,
        goal: '≥ 100,000 and ≥ 0.6 × floor',
        holds: rate.best >= 100_000 && rate.best >= 0.6 * floor.best,
      }),
    ]
  } finally {
    echo.close()
    await plugins.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
