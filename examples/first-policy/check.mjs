// Runs an agent past the policy of this folder and fails when its call was not refused.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const at = (path) => fileURLToPath(new URL(path, import.meta.url))
for (const policy of ['no-rm.json', 'no-rm-module.mjs']) {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [
      at('../../packages/cli/bin/sluice.js'),
      ...['run', at('../policies/agent.yaml'), '--tools-dir', at('../policies/tools')],
      ...['--plugin', at('../policies/policies.json'), '--plugin', at(policy), '--input', '{"task":"tidy up"}'],
    ],
    { encoding: 'utf8' },
  )
  assert.equal(status, 0, stderr)
  assert.deepEqual(JSON.parse(stdout), { result: 'The shell said: Refused: nothing is deleted on this machine' })
  assert.match(
    stderr,
    /toolCall\.before +policy "NoRm" refused the call of tool "shell": nothing is deleted on this machine/,
  )
  assert.doesNotMatch(stderr, /→ agent +shell/)
}
console.log('the call was refused, and the model was told')
