// npm run bench                      all suites, one child process each
// npm run bench -- --rounds 3        the whole list three times in turn; medians of the medians
// npm run bench -- --only floor,ai   suites whose file name contains one of these
// npm run bench -- --case loop       only cases whose group/id contains this text
// npm run bench -- --quick           fewer samples
// npm run bench -- --suite PATH      add a suite file from elsewhere (our own product)
import { spawn } from 'node:child_process'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { cpus, loadavg, totalmem } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { quantile } from './lib/harness.mjs'

const root = fileURLToPath(new URL('.', import.meta.url))
const { values: arg } = parseArgs({
  options: {
    rounds: { type: 'string', default: '1' },
    only: { type: 'string', default: '' },
    case: { type: 'string', default: '' },
    suite: { type: 'string', multiple: true, default: [] },
    quick: { type: 'boolean', default: false },
    out: { type: 'string', default: 'latest' },
  },
})

const only = arg.only.split(',').filter(Boolean)
const files = [
  ...readdirSync(join(root, 'suites'))
    .filter((f) => f.endsWith('.mjs'))
    .sort()
    .map((f) => join(root, 'suites', f)),
  ...arg.suite.map((f) => resolve(f)),
].filter((f) => only.length === 0 || only.some((o) => basename(f).includes(o)))

function runSuite(file) {
  return new Promise((done) => {
    const rows = []
    const child = spawn(
      process.execPath,
      [
        '--expose-gc',
        '--max-old-space-size=8192',
        join(root, 'lib/child.mjs'),
        file,
        arg.quick ? '0.35' : '1',
        arg.case,
      ],
      { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] },
    )
    let buf = ''
    let err = ''
    child.stdout.on('data', (d) => {
      buf += d
      for (let nl = buf.indexOf('\n'); nl >= 0; nl = buf.indexOf('\n')) {
        const line = buf.slice(0, nl)
        buf = buf.slice(nl + 1)
        if (line.startsWith('@@')) {
          const row = JSON.parse(line.slice(2))
          rows.push(row)
          if (row.kind === 'result') process.stderr.write(`  ${row.group}/${row.id}: ${fmt(row.value)} ${row.unit}\n`)
          if (row.kind === 'error')
            process.stderr.write(`  ${row.group}/${row.id}: FAILED ${row.message.split('\n')[0]}\n`)
        }
      }
    })
    child.stderr.on('data', (d) => {
      err = (err + d).slice(-4000)
    })
    child.on('close', (code) => {
      if (code !== 0)
        rows.push({
          kind: 'error',
          subject: basename(file),
          id: '-',
          group: '-',
          message: `exit ${code}: ${err.slice(-600)}`,
        })
      done(rows)
    })
  })
}

function fmt(v) {
  if (typeof v !== 'number' || !Number.isFinite(v)) return String(v)
  const a = Math.abs(v)
  if (a >= 1000) return Math.round(v).toLocaleString('en-US')
  if (a >= 100) return v.toFixed(0)
  if (a >= 10) return v.toFixed(1)
  if (a >= 1) return v.toFixed(2)
  return v.toFixed(3)
}

const started = new Date().toISOString()
const loadBefore = loadavg()
const all = new Map()
const metas = new Map()
const errors = []
for (let round = 0; round < Number(arg.rounds); round++) {
  for (const file of files) {
    process.stderr.write(`[round ${round + 1}/${arg.rounds}] ${basename(file)}\n`)
    for (const row of await runSuite(file)) {
      if (row.kind === 'meta') metas.set(row.subject, row)
      else if (row.kind === 'error') errors.push(row)
      else {
        const key = `${row.group}|${row.subject}|${row.id}`
        if (!all.has(key)) all.set(key, [])
        all.get(key).push(row)
      }
    }
  }
}

const results = [...all.values()].map((rows) => {
  const sorted = rows.map((r) => r.value).sort((a, b) => a - b)
  const { kind: _kind, ...first } = rows[0]
  return {
    ...first,
    value: quantile(sorted, 0.5),
    best: Math[first.unit?.includes('/s') ? 'max' : 'min'](...rows.map((r) => r.best ?? r.value)),
    cpu:
      rows[0].cpu === undefined
        ? undefined
        : quantile(
            rows.map((r) => r.cpu).sort((a, b) => a - b),
            0.5,
          ),
    rounds: rows.length,
    spread: rows.length > 1 ? [sorted[0], sorted.at(-1)] : undefined,
  }
})

// Cost of one middleware: (with k − with none) / k, per tool round or per chunk.
const derived = []
for (const r of results.filter((x) => x.series && x.k > 0)) {
  const zero = results.find((x) => x.subject === r.subject && x.series === r.series && x.group === r.group && x.k === 0)
  if (!zero) continue
  const per = (a, b) => (r.unit.includes('/s') ? ((1 / b - 1 / a) * 1e6) / r.k : ((b - a) * 1000) / (r.k * 10))
  derived.push({
    subject: r.subject,
    series: r.series,
    k: r.k,
    median: per(zero.value, r.value),
    best: per(zero.best, r.best),
    cpu: per(zero.cpu, r.cpu),
    unit: r.unit.includes('/s') ? 'us/chunk' : 'us/round',
  })
}

const report = {
  started,
  finished: new Date().toISOString(),
  machine: {
    cpus: cpus().length,
    cpu: cpus()[0]?.model,
    memGb: Math.round(totalmem() / 2 ** 30),
    node: process.version,
    loadBefore,
    loadAfter: loadavg(),
  },
  subjects: Object.fromEntries(
    [...metas.values()].map((m) => [m.subject, { versions: m.versions, loadMs: m.loadMs, rssMb: m.rssMb }]),
  ),
  results,
  derived,
  errors,
}

const widths = [14, 44, 26, 11, 11, 11, 11]
const line = (cols) =>
  cols.map((c, i) => (i < 3 ? String(c).padEnd(widths[i]) : String(c).padStart(widths[i]))).join(' ')
const groups = [...new Set(results.map((r) => r.group))]
let text = `${started}  node ${process.version}  ${report.machine.cpus} cpus  load ${loadBefore.map((x) => x.toFixed(1)).join('/')}\n`
for (const [s, m] of Object.entries(report.subjects))
  text += `  ${s}: ${Object.entries(m.versions)
    .map(([k, v]) => `${k}@${v}`)
    .join(', ')}  (import ${m.loadMs} ms, rss ${m.rssMb} MB)\n`
for (const g of groups) {
  text += `\n== ${g}\n${line(['subject', 'case', 'note', 'median', 'best', 'cpu', 'unit'])}\n`
  for (const r of results.filter((x) => x.group === g))
    text += `${line([r.subject, r.id, r.note ?? '', fmt(r.value), fmt(r.best), r.cpu === undefined ? '' : fmt(r.cpu), r.unit])}\n`
}
if (derived.length) {
  text += `\n== cost of one middleware (derived)\n`
  for (const d of derived)
    text += `${line([d.subject, d.series, `k=${d.k}`, fmt(d.median), fmt(d.best), fmt(d.cpu), d.unit])}\n`
}
for (const e of errors) text += `\nERROR ${e.subject} ${e.group}/${e.id}: ${e.message.split('\n')[0]}`

mkdirSync(join(root, 'results'), { recursive: true })
writeFileSync(join(root, 'results', `${arg.out}.json`), `${JSON.stringify(report, null, 1)}\n`)
writeFileSync(join(root, 'results', `${arg.out}.txt`), `${text}\n`)
process.stdout.write(`${text}\n`)
process.stdout.write(
  `${JSON.stringify({ results: results.map(({ subject, group, id, value, best, cpu, unit }) => ({ subject, group, id, value, best, cpu, unit })) })}\n`,
)
process.exit(errors.length ? 1 : 0)
