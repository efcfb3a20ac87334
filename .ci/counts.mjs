// Prints "N passed, N failed" from vitest's JSON report. A file that could not be loaded counts as one failure.
import { readFileSync } from 'node:fs'

const report = JSON.parse(readFileSync(process.argv[2], 'utf8'))
const broken = report.testResults.filter(
  (file) => file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed'),
)
const skipped = report.numPendingTests + report.numTodoTests
const counts = [`${report.numPassedTests} passed`, `${report.numFailedTests + broken.length} failed`]
if (skipped > 0) counts.push(`${skipped} skipped`)
console.log(counts.join(', '))
