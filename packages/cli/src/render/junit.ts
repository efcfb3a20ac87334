import type { CaseResult } from '@sluice/host'

interface Suite {
  readonly file: string
  readonly results: readonly CaseResult[]
}

/** Results as JUnit XML, a suite for each file, as CI servers read it. */
export const junit = (suites: readonly Suite[]): string =>
  `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n${suites.map(suiteText).join('')}</testsuites>\n`

function suiteText({ file, results }: Suite): string {
  const failures = results.filter(({ differences }) => differences.length > 0).length
  const time = seconds(results.reduce((sum, { durationMs }) => sum + durationMs, 0))
  const counts = `tests="${results.length}" failures="${failures}" errors="0" time="${time}"`
  return `  <testsuite name="${escaped(file)}" ${counts}>\n${results.map(caseText).join('')}  </testsuite>\n`
}

function caseText({ name, origin, at, differences, durationMs }: CaseResult): string {
  const head = `    <testcase name="${escaped(name)}" classname="${escaped(at)}" time="${seconds(durationMs)}"`
  if (differences.length === 0) return `${head}/>\n`
  const [first = ''] = differences
  const all = escaped([origin, ...differences].join('\n'))
  return `${head}>\n      <failure message="${escaped(first)}">${all}</failure>\n    </testcase>\n`
}

const seconds = (ms: number): string => (ms / 1_000).toFixed(3)

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

/** XML 1.0 has no way to write most control characters. */
const escaped = (text: string): string =>
  text
    .replace(/[&<>"]/g, (sign) => ENTITIES[sign] as string)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is to be replaced
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, '\ufffd')
