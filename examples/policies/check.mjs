// Runs every scene of the demo and fails when one does not show what it should.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { argumentsOf, command, scenes } from './scenes.mjs'

const root = fileURLToPath(new URL('../../', import.meta.url))
const sluice = (words) => spawnSync(process.execPath, [command, ...words], { cwd: root, encoding: 'utf8' })

for (const scene of scenes) {
  const { title, expectExit = 0, result, seen, audited = [] } = scene
  const run = sluice(argumentsOf(scene))
  assert.equal(run.status, expectExit, `${title}: ${run.stderr}`)
  for (const pattern of seen) assert.match(run.stderr, pattern, title)
  if (result !== undefined) assert.deepEqual(JSON.parse(run.stdout), result, title)

  const lines = sluice([...argumentsOf(scene), '--events'])
    .stdout.trim()
    .split('\n')
  const events = lines.map((line) => JSON.parse(line))
  assert.equal(events.at(-1).type, 'run_end', title)
  const nodes = events.filter(({ type }) => type === 'plugin:NodeAudit:node').map(({ data }) => data.node)
  for (const node of audited) assert.ok(nodes.includes(node), `${title}: ${node} was not audited`)
}
console.log(`${scenes.length} scenes are as they should be`)
