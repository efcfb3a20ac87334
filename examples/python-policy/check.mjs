// Runs an agent past the Python policy and fails when the tool was given the words that were to be blacked out.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const at = (path) => fileURLToPath(new URL(path, import.meta.url))
const { status, stdout, stderr } = spawnSync(
  process.execPath,
  [
    at('../../packages/cli/bin/sluice.js'),
    ...['run', at('../policies/agent.yaml'), '--tools-dir', at('../policies/tools'), '--input', '{"task":"tidy up"}'],
    ...['--plugin', at('../policies/policies.json'), '--plugin', at('redact.json')],
    // Where python3 is a launcher, it needs to find itself.
    ...['--plugin-env', 'PATH', '--plugin-env', 'HOME'],
    ...['--plugin-config', 'Redact={"words":["/var/data"]}'],
  ],
  { encoding: 'utf8' },
)
assert.equal(status, 0, stderr)
assert.match(JSON.parse(stdout).result, /\(would run\) rm -rf █████████/)
assert.match(stderr, /toolCall\.before +policy "Redact" changed what is given to "shell"/)
console.log('the tool was given the redacted arguments')
