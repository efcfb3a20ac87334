// Runs the tests of the Python kit, and policies written with it past a host; fails when one is not as the tests say.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { END, graph, node, START, state, tool } from '@sluice/core'
import { openHost } from '@sluice/host'
import { SEAMS } from '@sluice/plugin'
import { z } from 'zod'

const here = fileURLToPath(new URL('.', import.meta.url))
const python = (...args) => spawnSync('python3', args, { cwd: here, encoding: 'utf8' })

const Payments = state({ results: z.array(z.unknown()).default([]) })
const pay = tool('pay', { description: 'Pays.', input: z.object({ amount: z.number() }), run: ({ amount }) => amount })

/** Pays 30 five times at once past the policies of a manifest, and says what came of each. */
async function payPast(manifest, toolsDir) {
  const payAll = node('pay_all', Payments, async (_state, ctx) => ({
    results: await Promise.all(
      Array.from({ length: 5 }, () => ctx.callTool(pay, { amount: 30 }).catch(() => 'refused')),
    ),
  }))
  const payments = graph('payments', Payments).edge(START, payAll).edge(payAll, END).check()
  // Where python3 is a launcher, it needs to find itself.
  const host = await openHost({ plugins: [manifest], toolsDir, pluginEnv: ['PATH', 'HOME'] })
  try {
    return (await host.runtime.run(payments, {})).state.results
  } finally {
    await host.close()
  }
}

const ASKS = `
import sys
sys.path.insert(0, ${JSON.stringify(here)})
from sluice_plugin import serve

def before(shown, ctx):
    ctx.log("info", "asking")
    return {"action": "modify", "input": {"amount": ctx.run_tool("double", shown["input"])}}

serve({"Asks": {"toolCall": {"before": before}}})
`

const DOUBLE = `#!/usr/bin/env node
let text = ''
for await (const piece of process.stdin) text += piece
console.log(JSON.parse(text).amount * 2)
`

/** The policy asks a tool of the run what to pay, five times at once. */
async function asking() {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-python-'))
  const component = { componentType: 'Asks', kind: 'middleware', seams: { toolCall: ['before'] } }
  const manifest = { name: 'asks', version: '1.0.0', capabilities: ['log', 'runTool'], components: [component] }
  writeFileSync(join(folder, 'asks.json'), JSON.stringify({ ...manifest, command: ['python3', 'asks.py'] }))
  writeFileSync(join(folder, 'asks.py'), ASKS)
  mkdirSync(join(folder, 'tools'))
  writeFileSync(join(folder, 'tools/double.mjs'), DOUBLE, { mode: 0o755 })
  try {
    return await payPast(join(folder, 'asks.json'), join(folder, 'tools'))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

if (python('--version').status !== 0) console.log('skipped: there is no python3 here')
else {
  const { status, stderr } = python('-m', 'unittest')
  assert.equal(status, 0, stderr)
  const admits = python('-c', 'import json, sluice_plugin; print(json.dumps(sluice_plugin.ADMITS))')
  assert.deepEqual(JSON.parse(admits.stdout), SEAMS)
  assert.deepEqual(await payPast(join(here, 'spend_limit.json')), [30, 30, 30, 'refused', 'refused'])
  assert.deepEqual(await asking(), [60, 60, 60, 60, 60])
  console.log('a policy in Python keeps what it spends, and its tests pass')
}
