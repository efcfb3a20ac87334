// Runs a flow past the policy file of this folder, and fails when one of its rules did not do what it says.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const at = (path) => fileURLToPath(new URL(path, import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'sluice-policy-file-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))

const sluice = (...args) => sluiceUnder('sluice.yaml', ...args)
function sluiceUnder(policies, ...args) {
  const given = ['--policies', at(policies), '--tools-dir', at('tools')]
  return spawnSync(process.execPath, [at('../../packages/cli/bin/sluice.js'), ...args, ...given], { encoding: 'utf8' })
}
const run = (url, cmd, ...flags) => sluice('run', at('flow.yaml'), '--input', JSON.stringify({ url, cmd }), ...flags)

const inside = 'https://intranet.example/news'
const fine = run(inside, 'ls')
assert.equal(fine.status, 0, fine.stderr)
assert.deepEqual(JSON.parse(fine.stdout), { said: 'ran ls' })

const destructive = run(inside, 'sudo reboot')
assert.equal(destructive.status, 1)
assert.match(destructive.stderr, /That command is not allowed on this host\./)

const tainted = run('https://example.com/', 'ls')
assert.equal(tainted.status, 1)
assert.match(tainted.stderr, /Something from outside was read in this thread/)

const kept = ['--store', join(folder, 'threads.db'), '--thread', 't']
const asked = run(inside, 'rm old.log', ...kept)
assert.equal(asked.status, 3, asked.stderr)
assert.match(asked.stderr, /May this run on this host: rm old\.log/)
const answered = sluice('run', at('flow.yaml'), ...kept, '--resume', '--answer', 'true')
assert.deepEqual(JSON.parse(answered.stdout), { said: 'ran rm old.log' })

const explained = sluice('policy', 'explain', at('flow.yaml'))
assert.match(explained.stdout, /toolCall\.before +1 +shadow +NoRm +process +on failure: pass/)
assert.match(explained.stdout, /toolCall\.before +2 +enforce +no-destructive-shell +rule +on failure: fail/)

const hooked = (cmd) =>
  sluiceUnder('hooks.yaml', 'run', at('flow.yaml'), '--input', JSON.stringify({ url: inside, cmd }))
assert.deepEqual(JSON.parse(hooked('ls').stdout), { said: 'ran ls' })
assert.match(hooked('sudo reboot').stderr, /policy "Guard" refused .*Nobody becomes root here\./)
console.log('each rule did what it says')
