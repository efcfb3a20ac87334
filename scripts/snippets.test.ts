import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

const root = new URL('../', import.meta.url)
const pages = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.md'], { cwd: root, encoding: 'utf8' })
  .split('\n')
  .filter((page) => page !== '')

interface Snippet {
  readonly page: string
  readonly source: string
  readonly text: string
}

/** Fenced blocks whose first line names a file: ```js examples/a/b.mjs, or a region of one: ```js examples/a/b.mjs#name. */
const snippets: Snippet[] = pages.flatMap((page) => {
  const text = readFileSync(new URL(page, root), 'utf8')
  return [...text.matchAll(/^```\w+ (\S+)\n([\s\S]*?)^```$/gm)].map(([, source = '', body = '']) => ({ page, source, text: body }))
})

function regionOf(source: string): string {
  const [path = '', region] = source.split('#')
  const text = readFileSync(new URL(path, root), 'utf8')
  if (region === undefined) return text
  const found = new RegExp(`^.*#region ${region}\\n([\\s\\S]*?)^.*#endregion`, 'm').exec(text)
  return found?.[1] ?? `no region "${region}" in ${path}`
}

describe('a snippet of the docs', () => {
  it.each(snippets)('$page shows $source as it is', ({ source, text }) => {
    expect(text).toBe(regionOf(source))
  })

  it('exists: the README shows at least one', () => {
    expect(snippets.filter(({ page }) => page === 'README.md').length).toBeGreaterThan(0)
  })
})

/** [text](target) with targets inside the repository. */
const links = pages.flatMap((page) => {
  const text = readFileSync(new URL(page, root), 'utf8')
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = '']) => ({ page, target: target.split('#')[0] ?? '' }))
    .filter(({ target }) => target !== '' && !/^[a-z]+:/.test(target))
})

describe('a link of the docs', () => {
  it.each(links)('$page -> $target leads somewhere', ({ page, target }) => {
    expect(existsSync(new URL(target, new URL(page, root)))).toBe(true)
  })
})
