// npm run bench            all cases, a process each; a table, and bench/results/latest.json
// npm run bench -- agent   only the cases whose name contains a word
import { spawnSync } from 'node:child_process'
import { readdirSync, writeFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'
import { round } from './lib/measure.mjs'

const at = (path) => fileURLToPath(new URL(path, import.meta.url))
const words = process.argv.slice(2)
const cases = readdirSync(at('cases')).filter(
  (file) => file.endsWith('.mjs') && (words.length === 0 || words.some((word) => file.includes(word))),
)

const rows = cases.flatMap((file) => {
  process.stderr.write(`${file} …\n`)
  const child = spawnSync(process.execPath, [at('lib/child.mjs'), at(`cases/${file}`)], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  if (child.status !== 0) throw new Error(`${file} ended with ${child.status}`)
  return JSON.parse(child.stdout)
})

console.table(
  rows.map(({ work, case: name, value, best, unit, floor, goal, holds }) => ({
    work,
    case: name,
    median: `${value} ${unit}`,
    best: best === undefined ? '' : round(best),
    floor: floor === undefined ? '' : round(floor),
    goal: goal ?? '',
    holds: holds === undefined ? '' : holds ? 'yes' : 'NO',
  })),
)
if (words.length === 0) {
  const machine = { node: process.version, cpus: `${cpus().length} × ${cpus()[0]?.model}`, load: loadavg().map(round) }
  writeFileSync(
    at('results/latest.json'),
    `${JSON.stringify({ date: new Date().toISOString().slice(0, 10), machine, rows }, null, 2)}\n`,
  )
}
