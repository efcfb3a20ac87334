// Writes the parts of docs/seams.md that are data: the seam table of core and the golden table of verdicts, each between
// `<!-- generated: name -->` and `<!-- end -->`. With --check, writes nothing and exits 1 on a difference.
import { readFileSync, writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { readSeamTable } from './seam-table.mjs'

const page = new URL('../docs/seams.md', import.meta.url)
const golden = JSON.parse(readFileSync(new URL('../packages/core/golden/verdict-pairs.json', import.meta.url), 'utf8'))

const row = (cells) => `| ${cells.map((cell) => (cell === '' ? '–' : cell)).join(' | ')} |`
const table = (columns, rows) => [row(columns), row(columns.map(() => '---')), ...rows.map(row)].join('\n')
const folded = (title, text) => `<details><summary>${title}</summary>\n\n${text}\n\n</details>`

const what = ({ before, reject, fail, after }) => [
  before.includes('reject') || after.includes('reject') ? `reject: ${reject}` : '',
  after.includes('fail') ? `fail: ${fail}` : '',
]

const seamRow = ([seam, halves]) => [
  `\`${seam}\``,
  halves.before.join(', '),
  halves.after.join(', '),
  what(halves)
    .filter((word) => word !== '')
    .join(', '),
]

const halfTitle = ({ seam, half, step }) =>
  `<code>${seam}.${half}</code>${step === undefined ? '' : ` of a step that ${step}`}`

/** @type {{ [name: string]: (seams: object) => string }} */
const PARTS = {
  seams: (seams) => table(['seam', 'before', 'after', 'comes to'], Object.entries(seams).map(seamRow)),
  endings: () => table(golden.endingColumns, golden.endings),
  pairs: () => golden.halves.map((half) => folded(halfTitle(half), table(golden.columns, half.rows))).join('\n\n'),
  'final look': () =>
    golden.finalLook
      .map(({ seam, rows }) => folded(`<code>${seam}.before</code>`, table(golden.finalLookColumns, rows)))
      .join('\n\n'),
}

/** The page as it is, and as the data have it. */
export async function seamsPage() {
  const seams = await readSeamTable()
  const current = readFileSync(page, 'utf8')
  const text = current.replace(/<!-- generated: (.+?) -->\n[\s\S]*?<!-- end -->/g, (_, name) => {
    if (PARTS[name] === undefined) throw new Error(`docs/seams.md wants a part "${name}", which nobody generates`)
    return `<!-- generated: ${name} -->\n\n${PARTS[name](seams)}\n\n<!-- end -->`
  })
  return { current, text, parts: Object.keys(PARTS) }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const { current, text } = await seamsPage()
  if (!process.argv.includes('--check')) writeFileSync(page, text)
  else if (text !== current) {
    console.error('docs/seams.md differs from core. When core is right: node scripts/generate-docs.mjs')
    process.exitCode = 1
  }
}
