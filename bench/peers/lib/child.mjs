// One child process per suite: node --expose-gc lib/child.mjs <suite file> <scale> <case filter>
import { pathToFileURL } from 'node:url'
import { runCase, versionOf } from './harness.mjs'

process.env.LANGSMITH_TRACING = 'false'
process.env.LANGCHAIN_TRACING_V2 = 'false'
process.env.LANGCHAIN_CALLBACKS_BACKGROUND = 'true'
process.env.OPENAI_AGENTS_DISABLE_TRACING = '1'
process.env.MASTRA_TELEMETRY_DISABLED = '1'
process.env.MASTRA_DISABLE_TELEMETRY = '1'
globalThis.AI_SDK_LOG_WARNINGS = false

const [, , file, scale = '1', filter = ''] = process.argv
const emit = (o) => process.stdout.write(`@@${JSON.stringify(o)}\n`)
const log = console.error.bind(console)
console.log = log // peers may print; keep stdout for results
console.info = log

// Some peers wait on unref'd handles only; without this the process would end in the middle of a case.
const keepAlive = setInterval(() => {}, 1000)

const t0 = performance.now()
const suite = await import(pathToFileURL(file).href)
const loadMs = performance.now() - t0
emit({
  kind: 'meta',
  subject: suite.meta.subject,
  versions: Object.fromEntries((suite.meta.packages ?? []).map((p) => [p, versionOf(p)])),
  loadMs: Math.round(loadMs),
  rssMb: Math.round(process.memoryUsage().rss / 1048576),
})
const cases = await suite.cases()
for (const c of cases) {
  if (filter && !`${c.group}/${c.id}`.includes(filter)) continue
  try {
    const r = await runCase(c, { scale: Number(scale) })
    emit({ kind: 'result', subject: suite.meta.subject, ...r })
  } catch (err) {
    emit({
      kind: 'error',
      subject: suite.meta.subject,
      id: c.id,
      group: c.group,
      message: String(err?.stack ?? err).slice(0, 600),
    })
  }
}
if (suite.close) await suite.close()
clearInterval(keepAlive)
process.exit(0)
