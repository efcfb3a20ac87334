// What a bad plugin costs the runs that it does not match: three plugins in processes of their own, one of which crashes at
// each call of the tool `risky`. Runs that call another tool are counted with the two good ones installed, and with all three,
// while some call `risky`.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRuntime, END, graph, node, START, state, tool } from '@sluice/core'
import { loadPlugins } from '@sluice/host'
import { z } from 'zod'
import { interleaved, row, throughputBeside } from '../lib/measure.mjs'

const RUNS = 200
const WINDOW = 16

const GOOD = `{ action: 'proceed' }`
const PLUGINS = { First: GOOD, Bad: 'process.exit(3)', Last: GOOD }

const State = state({ made: z.string().default('') })
const calling = (name) => {
  const echo = tool(name, {
    description: 'Says it again.',
    input: z.object({ text: z.string() }),
    run: ({ text }) => text,
  })
  const step = node('step', State, async (_, ctx) => ({ made: await ctx.callTool(echo, { text: 'hello' }) }))
  return graph(name, State).edge(START, step).edge(step, END).check()
}
const [plain, risky] = [calling('plain'), calling('risky')]

function placed(folder, type) {
  const component = { componentType: type, kind: 'middleware', seams: { toolCall: ['before'] } }
  writeFileSync(join(folder, `${type}.json`), JSON.stringify({ name: type, version: '1.0.0', components: [component] }))
  writeFileSync(join(folder, `${type}.mjs`), `serve({ ${type}: { toolCall: { before: () => (${PLUGINS[type]}) } } })`)
  return join(folder, `${type}.json`)
}

const match = { reads: 'subject', matches: ({ subject }) => subject.toolName === 'risky' }
const breaker = { failures: 3, openMs: 3_600_000 }

async function opened(folder, types) {
  const plugins = await loadPlugins(
    types.map((type) => placed(folder, type)),
    {
      onWarning: () => undefined,
      installed: ({ name }) => ({ env: {}, rules: name === 'Bad' ? { match, breaker } : {} }),
    },
  )
  return { plugins, runtime: createRuntime({ policies: plugins.policies }) }
}

/** As many runs as `RUNS`, some at a time; each must complete. */
async function runs(runtime) {
  let left = RUNS
  const lane = async () => {
    while (left-- > 0) await runtime.run(plain, {})
  }
  await Promise.all(Array.from({ length: WINDOW }, lane))
}

/** The same with three runs of the other kind beside them. Past the bad plugin those fail, and its breaker opens at once. */
const round = (runtime) => Promise.all([1, 2, 3].map(() => runtime.settle(risky, {})).concat(runs(runtime)))

export default async function policyBeside() {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const good = await opened(folder, ['First', 'Last'])
  const all = await opened(folder, ['First', 'Bad', 'Last'])
  try {
    const took = await interleaved(
      {
        without: () => round(good.runtime),
        with: () => round(all.runtime),
      },
      { ops: RUNS, samples: 61, warmups: 10 },
    )
    const perSecond = (micros) => 1e6 / micros
    const share = throughputBeside(took.with, took.without)
    const work = 'runs beside a bad plugin that does not match them'
    return [
      row(work, 'three plugins, one of them bad', perSecond(took.with.median), '/s', {
        best: perSecond(took.with.best),
        floor: perSecond(took.without.median),
      }),
      row(work, 'throughput, round by round', share, '× without it', { goal: '≥ 0.95', holds: share >= 0.95 }),
    ]
  } finally {
    await Promise.all([good.plugins.close(), all.plugins.close()])
    rmSync(folder, { recursive: true, force: true })
  }
}
