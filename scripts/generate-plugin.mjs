// Writes what @sluice/plugin copies from core, which it does not depend on: the seam table, what a policy is shown, and what is
// said to a model. With --check, writes nothing and exits 1 on a difference.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { readSeamTable } from './seam-table.mjs'

const read = (path) => readFileSync(new URL(`../packages/core/src/${path}`, import.meta.url), 'utf8')

const list = (actions) => `[${actions.map((action) => `'${action}'`).join(', ')}]`

const rowOf = ([seam, { before, after }]) => `  ${seam}: {
    before: ${list(before)},
    after: ${list(after)},
  },`

const writtenFrom = (room) =>
  `// Written by scripts/generate-plugin.mjs from packages/core/src/${room}; a change made here is lost.\n`

async function seams() {
  return `${writtenFrom('seams')}
/** The seams, and the verdicts that each half admits. */
export const SEAMS = {
${Object.entries(await readSeamTable())
  .map(rowOf)
  .join('\n')}
} as const

export type Seam = keyof typeof SEAMS
export type Half = 'before' | 'after'

${read('seams/subject.ts')}`
}

function chat() {
  const json = read('json/json.ts').replace(/\nexport const [\s\S]*$/, '')
  const shapes = read('chat/chat.ts').replace(/^import .*\n\n/, '')
  return `${writtenFrom('chat')}
${json}
${shapes}`
}

function differs(name, current, text) {
  const lines = current.split('\n')
  const at = text.split('\n').findIndex((line, i) => line !== lines[i])
  console.error(
    `packages/plugin/src/generated/${name} differs from core at line ${at + 1}:\n` +
      `  - ${lines[at] ?? ''}\n  + ${text.split('\n')[at] ?? ''}\nWhen core is right: node scripts/generate-plugin.mjs`,
  )
  process.exitCode = 1
}

for (const [name, text] of Object.entries({ 'seams.ts': await seams(), 'chat.ts': chat() })) {
  const target = new URL(`../packages/plugin/src/generated/${name}`, import.meta.url)
  const current = existsSync(target) ? readFileSync(target, 'utf8') : ''
  if (!process.argv.includes('--check')) writeFileSync(target, text)
  else if (text !== current) differs(name, current, text)
}
