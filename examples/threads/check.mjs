// Pauses a graph in one process and answers it in another, then a flow from the command line, then graphs inside graphs; fails
// when one is not as the docs say.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createRuntime } from '@sluice/core'
import { sqliteStore } from '@sluice/host'
import { agent, one, several } from './delegate.mjs'

const at = (path) => fileURLToPath(new URL(path, import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'sluice-threads-'))
const file = join(folder, 'refunds.db')

function node(...args) {
  const env = { ...process.env, REFUNDS_DB: file }
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', env })
  return { status, stdout, stderr }
}

function inTwoProcesses() {
  assert.deepEqual(node(at('ask.mjs')), {
    status: 0,
    stdout: 'looked up 991\npaused\nreview:approve Pay 80 back for order 991?\n',
    stderr: '',
  })
  // The node ran again from its top, and the order was not looked up again.
  assert.deepEqual(node(at('answer.mjs')), { status: 0, stdout: "paid 80\ncompleted [ 'paid 80' ]\n", stderr: '' })
  assert.match(node(at('answer.mjs')).stderr, /THREAD_NOT_PAUSED/)
}

function onTheCommandLine() {
  const sluice = (...words) =>
    node(
      at('../../packages/cli/bin/sluice.js'),
      ...['run', at('../policies/agent.yaml'), '--tools-dir', at('../policies/tools')],
      ...['--plugin', at('../policies/policies.json'), '--plugin', at('ask-first.json')],
      ...['--store', file, '--thread', 'tidy', ...words],
    )
  const paused = sluice('--input', '{"task":"tidy up"}')
  assert.equal(paused.status, 3, paused.stderr)
  const [{ key, payload }] = JSON.parse(paused.stdout).asks
  assert.equal(key, 'agent:shell@AskFirst')
  assert.deepEqual(payload, { tool: 'shell', arguments: { cmd: 'rm -rf /var/data' }, question: 'May this run?' })
  assert.equal(sluice('--resume', '--answer', '"yes"').status, 2)
  const done = sluice('--resume', '--answer', 'true')
  assert.equal(done.status, 0, done.stderr)
  assert.match(JSON.parse(done.stdout).result, /\(would run\) rm -rf/)
}

/** Runs a graph to its pause, answers all it asks, and says what it came to. */
async function answered(graph, input, keys) {
  const runtime = createRuntime()
  const { asks } = await runtime.run(graph, input, { thread: 't' })
  assert.deepEqual(
    asks.map(({ key }) => key),
    keys,
  )
  return (await runtime.resume(graph, 't', Object.fromEntries(keys.map((key) => [key, 'the ledger'])))).state
}

async function graphsInside() {
  const { report } = await answered(one, { question: 'tea' }, ['look/research:source'])
  assert.deepEqual(report, ['tea: the ledger'])
  const both = await answered(several, { question: 'tea' }, ['split/research:source', 'split#1/research:source'])
  assert.deepEqual(both.report, ['tea cost: the ledger', 'tea risk: the ledger'])
  const question = { role: 'user', content: 'What does it cost?' }
  const told = await answered(agent, { messages: [question] }, ['helper:research/research:source'])
  assert.equal(told.messages.at(-2).content, '["cost: the ledger"]')
}

try {
  sqliteStore(file).close()
  inTwoProcesses()
  onTheCommandLine()
  await graphsInside()
  console.log('each was answered, and what was done before was not done again')
} catch (error) {
  if (error.code !== 'STORE_DRIVER_MISSING') throw error
  console.log(`skipped: ${error.message}`)
} finally {
  rmSync(folder, { recursive: true })
}
