// Fenced blocks of the docs whose first line names a file show that file, or a #region of it: ```js examples/a/b.mjs#name
// `node scripts/snippets.mjs --write` puts the files' texts into the pages; the test beside this compares them.
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'

const root = new URL('../', import.meta.url)
const read = (path) => readFileSync(new URL(path, root), 'utf8')

/** Every Markdown page of the repository. */
export const pages = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.md'], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\n')
  .filter((page) => page !== '')

function sourceOf(name) {
  const [path, region] = name.split('#')
  if (region === undefined) return read(path)
  const found = new RegExp(`^.*#region ${region}\\n([\\s\\S]*?)^.*#endregion`, 'm').exec(read(path))
  if (found === null) throw new Error(`there is no region "${region}" in ${path}`)
  return found[1]
}

/** The page with every snippet as its source has it now, and how many there are. */
export function refreshed(page) {
  let count = 0
  const text = read(page).replace(/^```(\w+) (\S+)\n[\s\S]*?^```$/gm, (_, language, name) => {
    count++
    return `\`\`\`${language} ${name}\n${sourceOf(name)}\`\`\``
  })
  return { text, count }
}

if (
  process.argv[1] !== undefined &&
  import.meta.url === pathToFileURL(process.argv[1]).href &&
  process.argv.includes('--write')
) {
  for (const page of pages) writeFileSync(new URL(page, root), refreshed(page).text)
}
