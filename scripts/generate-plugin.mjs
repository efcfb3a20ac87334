// Writes what @sluice/plugin copies from core, which it does not depend on: the seam table and what a policy is shown.
// With --check, writes nothing and exits 1 on a difference.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { readSeamTable } from './seam-table.mjs'

const seams = new URL('../packages/core/src/seams/', import.meta.url)
const target = new URL('../packages/plugin/src/generated/seams.ts', import.meta.url)

const list = (actions) => `[${actions.map((action) => `'${action}'`).join(', ')}]`

const rowOf = ([seam, { before, after }]) => `  ${seam}: {
    before: ${list(before)},
    after: ${list(after)},
  },`

function textOf(table, subject) {
  return `// Written by scripts/generate-plugin.mjs from packages/core/src/seams; a change made here is lost.

/** The seams, and the verdicts that each half admits. */
export const SEAMS = {
${Object.entries(table).map(rowOf).join('\n')}
} as const

export type Seam = keyof typeof SEAMS
export type Half = 'before' | 'after'

${subject}`
}

const text = textOf(await readSeamTable(), readFileSync(new URL('subject.ts', seams), 'utf8'))
const current = existsSync(target) ? readFileSync(target, 'utf8') : ''

if (process.argv.includes('--check')) {
  const lines = current.split('\n')
  const at = text.split('\n').findIndex((line, i) => line !== lines[i])
  if (text !== current) {
    console.error(
      `packages/plugin/src/generated/seams.ts differs from core at line ${at + 1}:\n` +
        `  - ${lines[at] ?? ''}\n  + ${text.split('\n')[at] ?? ''}\nWhen core is right: node scripts/generate-plugin.mjs`,
    )
    process.exitCode = 1
  }
} else writeFileSync(target, text)
