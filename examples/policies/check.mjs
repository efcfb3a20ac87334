// Runs every scene of the demo and fails when one does not show what it should.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { scenes } from './scenes.mjs'

const at = (path) => fileURLToPath(new URL(path, import.meta.url))

function sluice(flow, config, rest) {
  const settings = Object.entries(config).flatMap(([type, value]) => [
    '--plugin-config',
    `${type}=${JSON.stringify(value)}`,
  ])
  const args = [
    at('../../packages/cli/bin/sluice.js'),
    'run',
    at(flow),
    '--tools-dir',
    at('tools'),
    '--plugin',
    at('policies.json'),
  ]
  return spawnSync(process.execPath, [...args, ...settings, ...rest], { encoding: 'utf8' })
}

for (const { title, flow, input, config, flags = [], expectExit = 0, result, seen, audited = [] } of scenes) {
  const run = sluice(flow, config, [...flags, '--input', JSON.stringify(input)])
  assert.equal(run.status, expectExit, `${title}: ${run.stderr}`)
  for (const pattern of seen) assert.match(run.stderr, pattern, title)
  if (result !== undefined) assert.deepEqual(JSON.parse(run.stdout), result, title)

  const events = sluice(flow, config, ['--input', JSON.stringify(input), '--events'])
    .stdout.trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  assert.equal(events.at(-1).type, 'run_end', title)
  const nodes = events.filter(({ type }) => type === 'plugin:NodeAudit:node').map(({ data }) => data.node)
  for (const node of audited) assert.ok(nodes.includes(node), `${title}: ${node} was not audited`)
}
console.log(`${scenes.length} scenes are as they should be`)
