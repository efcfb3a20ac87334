// Runs whose policy misbehaves: each ends as the operator's failure rule says, in time, and nothing is left of the plugin.
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRuntime, END, graph, node, policy, START, state, tool } from '@sluice/core'
import { loadPlugins } from '@sluice/host'
import { z } from 'zod'
import { BAD } from './plugins.mjs'

const TIMEOUT_MS = 200
/** What a run may take here: two halves, each once past a process that starts, on a machine that does much else. */
const BOUND_MS = 15_000
const AT_ONCE = 16

const RULES = [
  { mode: 'enforce', onFailure: 'fail' },
  { mode: 'enforce', onFailure: 'pass' },
  { mode: 'shadow', onFailure: 'fail' },
  { mode: 'shadow', onFailure: 'pass' },
]

const Empty = state({ said: z.string().default('') })

/** Runs that make one tool call, and runs that ask one question, which a policy behind the bad one answers. `ran` counts both. */
function programs(ran) {
  const echo = tool('echo', {
    description: 'Says it again.',
    input: z.object({ text: z.string() }),
    run: ({ text }) => {
      ran.count++
      return text
    },
  })
  const call = node('call', Empty, async (_s, ctx) => ({ said: await ctx.callTool(echo, { text: 'hello' }) }))
  const ask = node('ask', Empty, async (_s, ctx) => ({ said: String(await ctx.ask('q', 'well?')) }))
  const answers = policy({
    name: 'Answers',
    seams: {
      ask: {
        before: () => {
          ran.count++
          return { action: 'replace', value: 'well' }
        },
      },
    },
  })
  const alone = (step) => graph('chaos', Empty).edge(START, step).edge(step, END).check()
  return { graphs: [alone(call), alone(ask)], answers }
}

/** @throws what is wrong, in words */
function check(name, { mode, onFailure }, outcome, ms) {
  const at = `${name}, ${mode}, onFailure ${onFailure}`
  if (ms > BOUND_MS) throw new Error(`${at}: a run took ${Math.round(ms)} ms`)
  if (outcome.status === 'completed') return
  if (mode === 'shadow' || onFailure === 'pass') {
    throw new Error(`${at}: a run came to ${outcome.status}: ${outcome.error?.message}`)
  }
  if (outcome.error?.name !== 'MiddlewareError') throw new Error(`${at}: a run failed with ${outcome.error}`)
}

/** As many runs as `calls` says, some at a time, past one bad plugin under one rule. */
async function play(root, bad, rule, calls) {
  const folder = mkdtempSync(join(root, 'plugin-'))
  const seams = { toolCall: ['before', 'after'], ask: ['before', 'after'] }
  const manifest = { name: 'bad', version: '1.0.0', components: [{ componentType: 'Bad', kind: 'middleware', seams }] }
  writeFileSync(join(folder, 'bad.json'), JSON.stringify(manifest))
  writeFileSync(join(folder, 'bad.mjs'), bad.program)
  const plugins = await loadPlugins([join(folder, 'bad.json')], {
    installed: () => ({ env: {}, rules: { ...rule, timeoutMs: TIMEOUT_MS } }),
    onWarning: () => undefined,
  })
  const ran = { count: 0 }
  const { graphs, answers } = programs(ran)
  const runtime = createRuntime({ policies: [...plugins.policies, answers] })
  const ends = { completed: 0, failed: 0, slowestMs: 0 }
  let left = calls
  const lane = async () => {
    while (left-- > 0) {
      const from = performance.now()
      const outcome = await runtime.settle(graphs[left % graphs.length], {})
      const ms = performance.now() - from
      check(bad.name, rule, outcome, ms)
      ends[outcome.status]++
      ends.slowestMs = Math.max(ends.slowestMs, Math.round(ms))
    }
  }
  try {
    await Promise.all(Array.from({ length: AT_ONCE }, lane))
  } finally {
    await runtime.drain()
    await plugins.close()
  }
  if (ran.count < ends.completed)
    throw new Error(`${bad.name}: ${ends.completed} runs completed with ${ran.count} calls`)
  return ends
}

const linesWith = (word) =>
  spawnSync('ps', ['-eo', 'args='], { encoding: 'utf8' })
    .stdout.split('\n')
    .filter((line) => line.includes(word))

const openFiles = () => (process.platform === 'linux' ? readdirSync('/proc/self/fd').length : 0)

function heapMb() {
  globalThis.gc?.()
  return Math.round((process.memoryUsage().heapUsed + process.memoryUsage().external) / (1 << 20))
}

/**
 * Makes about `calls` calls in all, shared among all bad plugins under all rules.
 *
 * @param {{ calls: number, only?: string, tell?: (line: string) => void }} options
 * @returns {Promise<{ runs: number, completed: number, failed: number, slowestMs: number, heapMb: readonly [number, number] }>}
 *   heap and buffers in MiB, before and after
 */
export async function playChaos({ calls, only = '', tell = () => undefined }) {
  const root = join(mkdtempSync(join(tmpdir(), 'sluice-chaos-')), 'plugins')
  mkdirSync(root)
  const chosen = BAD.filter(({ name }) => name.includes(only))
  const each = Math.max(1, Math.round(calls / (chosen.length * RULES.length)))
  const total = { runs: 0, completed: 0, failed: 0, slowestMs: 0 }
  const [heapBefore, filesBefore] = [heapMb(), openFiles()]
  try {
    for (const bad of chosen) {
      for (const rule of RULES) {
        const ends = await play(root, bad, rule, each)
        tell(`${bad.name}, ${rule.mode}, onFailure ${rule.onFailure}: ${JSON.stringify(ends)}`)
        total.runs += each
        total.completed += ends.completed
        total.failed += ends.failed
        total.slowestMs = Math.max(total.slowestMs, ends.slowestMs)
      }
    }
    const left = linesWith(root)
    if (left.length > 0) throw new Error(`${left.length} processes are left: ${left[0]}`)
    if (openFiles() > filesBefore + 5) throw new Error(`${openFiles() - filesBefore} files are left open`)
    return { ...total, heapMb: [heapBefore, heapMb()] }
  } finally {
    rmSync(join(root, '..'), { recursive: true, force: true })
  }
}
