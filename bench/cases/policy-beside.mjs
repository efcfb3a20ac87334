// What a bad plugin costs the runs that it does not match: three plugins in processes of their own, one of which crashes at
// each call of the tool `risky`. Runs that call another tool are counted with the two good ones installed, and with all three
// while some runs call `risky`.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRuntime, END, graph, node, START, state, tool } from '@sluice/core'
import { loadPlugins } from '@sluice/host'
import { z } from 'zod'
import { interleaved, row } from '../lib/measure.mjs'

const RUNS = 1_000
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

export default async function policyBeside() {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const good = await opened(folder, ['First', 'Last'])
  const all = await opened(folder, ['First', 'Bad', 'Last'])
  try {
    const failing = () => all.runtime.settle(risky, {})
    const took = await interleaved(
      {
        without: () => runs(good.runtime),
        // Its breaker opens in the first round.
        with: () => Promise.all([failing(), failing(), failing(), runs(all.runtime)]),
      },
      { ops: RUNS, samples: 15, warmups: 3 },
    )
    const perSecond = (micros) => 1e6 / micros
    const ratio = took.without.best / took.with.best
    return [
      row('runs beside a bad plugin', 'those that it does not match', perSecond(took.with.median), '/s', {
        best: perSecond(took.with.best),
        floor: perSecond(took.without.median),
        goal: '≥ 0.95 × without it',
        holds: ratio >= 0.95,
      }),
    ]
  } finally {
    await Promise.all([good.plugins.close(), all.plugins.close()])
    rmSync(folder, { recursive: true, force: true })
  }
}
