// node lib/to-markdown.mjs [results/latest.json] : the report as Markdown tables
import { readFileSync } from 'node:fs'

const report = JSON.parse(readFileSync(process.argv[2] ?? new URL('../results/latest.json', import.meta.url), 'utf8'))
const fmt = (v) => {
  if (typeof v !== 'number' || !Number.isFinite(v)) return ''
  const a = Math.abs(v)
  return a >= 1000
    ? Math.round(v).toLocaleString('en-US')
    : a >= 100
      ? v.toFixed(0)
      : a >= 10
        ? v.toFixed(1)
        : a >= 1
          ? v.toFixed(2)
          : v.toFixed(3)
}
const out = []
const m = report.machine
out.push(
  `Run of ${report.started.slice(0, 16).replace('T', ' ')} UTC, Node ${m.node}, ${m.cpus} cores, load before/after ${m.loadBefore[0].toFixed(1)}/${m.loadAfter[0].toFixed(1)}, ${report.results[0].rounds} rounds.`,
  '',
)
out.push('| subject | versions | import ms | rss MB |', '| --- | --- | ---: | ---: |')
for (const [s, x] of Object.entries(report.subjects))
  out.push(
    `| ${s} | ${Object.entries(x.versions)
      .map(([k, v]) => `${k} ${v}`)
      .join(', ')} | ${x.loadMs} | ${x.rssMb} |`,
  )
for (const g of [...new Set(report.results.map((r) => r.group))]) {
  out.push(
    '',
    `**${g}**`,
    '',
    '| subject | case | median | best | cpu | unit |',
    '| --- | --- | ---: | ---: | ---: | --- |',
  )
  for (const r of report.results.filter((x) => x.group === g))
    out.push(
      `| ${r.subject} | ${r.id}${r.note ? ` (${r.note})` : ''} | ${fmt(r.value)} | ${fmt(r.best)} | ${fmt(r.cpu)} | ${r.unit} |`,
    )
}
if (report.derived?.length) {
  out.push(
    '',
    '**cost of one middleware (derived)**',
    '',
    '| subject | series | k | from medians | from bests | from cpu | unit |',
    '| --- | --- | ---: | ---: | ---: | ---: | --- |',
  )
  for (const d of report.derived)
    out.push(`| ${d.subject} | ${d.series} | ${d.k} | ${fmt(d.median)} | ${fmt(d.best)} | ${fmt(d.cpu)} | ${d.unit} |`)
}
console.log(out.join('\n'))
