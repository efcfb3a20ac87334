// Writes the parts of docs that are data: the tables of seams and of hooks, and the golden table of verdicts, each between
// `<!-- generated: name -->` and `<!-- end -->`. With --check, writes nothing and exits 1 on a difference.
import { readFileSync, writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { readHookTable, readSeamTable } from './seam-table.mjs'

const pageAt = (page) => new URL(`../${page}`, import.meta.url)
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

/** Rows of the golden table by the half and kind of step that they are about, in its order, each group folded. */
function byHalf(rows, columns, cells) {
  const groups = new Map()
  for (const one of rows) {
    const step = one.step ?? (one.fails ? 'fails' : undefined)
    const title = halfTitle({ ...one, step })
    groups.set(title, [...(groups.get(title) ?? []), [...cells(one), ...one.comes]])
  }
  const all = [...columns, ...golden.columns.slice(2)]
  return [...groups].map(([title, group]) => folded(title, table(all, group))).join('\n\n')
}

const mayReturn = (hook, { says, returns }) => {
  if (hook.startsWith('wrap')) return 'an outcome'
  const words = says.map((word) => `\`ctx.${word}(…)\``)
  return [...words, ...(returns ? ['the result itself'] : []), 'nothing'].join(', ')
}

const hookRow = ([hook, row]) => [
  `\`${hook}\``,
  hook.startsWith('wrap') ? `around \`${row.seam}\`` : `\`${row.seam}.${row.half}\``,
  mayReturn(hook, row),
]

/** @type {{ [page: string]: { [name: string]: () => string | Promise<string> } }} */
const PAGES = {
  'docs/middleware.md': {
    hooks: async () => table(['hook', 'stands at', 'may return'], Object.entries(await readHookTable()).map(hookRow)),
  },
  'docs/seams.md': {
    seams: async () =>
      table(['seam', 'before', 'after', 'comes to'], Object.entries(await readSeamTable()).map(seamRow)),
    endings: () => table(golden.endingColumns, golden.endings),
    pairs: () => golden.halves.map((half) => folded(halfTitle(half), table(golden.columns, half.rows))).join('\n\n'),
    'final look': () =>
      golden.finalLook
        .map(({ seam, rows }) => folded(`<code>${seam}.before</code>`, table(golden.finalLookColumns, rows)))
        .join('\n\n'),
    failures: () => byHalf(golden.failures, ['on failure', 'second'], ({ rule, second }) => [rule, second]),
    modes: () => byHalf(golden.modes, ['mode', 'first'], ({ mode, first }) => [mode, first]),
    beside: () => byHalf(golden.beside, ['own', 'policy'], ({ own, policy }) => [own, policy]),
  },
}

/** The pages as they are, and as the data have them. */
export function generatedPages() {
  return Promise.all(
    Object.entries(PAGES).map(async ([page, parts]) => {
      const current = readFileSync(pageAt(page), 'utf8')
      const made = Object.fromEntries(
        await Promise.all(Object.entries(parts).map(async ([name, make]) => [name, await make()])),
      )
      const text = current.replace(/<!-- generated: (.+?) -->\n[\s\S]*?<!-- end -->/g, (_, name) => {
        if (made[name] === undefined) throw new Error(`${page} wants a part "${name}", which nobody generates`)
        return `<!-- generated: ${name} -->\n\n${made[name]}\n\n<!-- end -->`
      })
      return { page, current, text, parts: Object.keys(parts) }
    }),
  )
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  for (const { page, current, text } of await generatedPages()) {
    if (!process.argv.includes('--check')) writeFileSync(pageAt(page), text)
    else if (text !== current) {
      console.error(`${page} differs from core. When core is right: node scripts/generate-docs.mjs`)
      process.exitCode = 1
    }
  }
}
