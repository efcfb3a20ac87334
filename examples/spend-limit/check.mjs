// Spends on threads in several processes, some of which are killed, and fails when more is spent than the limit of 100.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { sqliteStore } from '@sluice/host'

const program = fileURLToPath(new URL('pay.mjs', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'sluice-spend-'))
const file = join(folder, 'threads.db')

/** Runs the program; it is killed when it has said so many lines. */
async function pay(thread, words, { killAfter = Infinity } = {}) {
  const child = spawn(process.execPath, [program, file, thread, ...words.map(String)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const lines = []
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line)
    if (lines.length === killAfter) child.kill('SIGKILL')
  }
  return lines
}

const resultsIn = (lines) => JSON.parse(lines.at(-1)).map((result) => result.split(':')[0])

async function atOnceAndInTheNextProcess() {
  assert.deepEqual(resultsIn(await pay('support-42', [30, 30, 30, 30, 30])), [
    ...['paid 30', 'paid 30', 'paid 30'],
    ...['refused', 'refused'],
  ])
  assert.deepEqual(resultsIn(await pay('support-42', [30, 10])), ['refused', 'paid 10'])
  assert.deepEqual(resultsIn(await pay('support-42', [1])), ['refused'])
  assert.deepEqual(resultsIn(await pay('another thread', [100])), ['paid 100'])
}

async function afterAKill() {
  assert.deepEqual(await pay('cut off', ['hang', 60], { killAfter: 1 }), ['paying 60'])
  // The payment is made once more, under its own key, and counted once.
  assert.deepEqual(resultsIn(await pay('cut off', ['continue'])), ['paid 60'])
  assert.deepEqual(resultsIn(await pay('cut off', [41, 40])), ['refused', 'paid 40'])
}

try {
  await sqliteStore(file).close()
  await atOnceAndInTheNextProcess()
  await afterAKill()
  console.log('no thread has spent more than 100, whichever process was asked')
} catch (error) {
  if (error.code !== 'STORE_DRIVER_MISSING') throw error
  console.log(`skipped: ${error.message}`)
} finally {
  rmSync(folder, { recursive: true })
}
