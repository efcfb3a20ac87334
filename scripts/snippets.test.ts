import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { pages, refreshed } from './snippets.mjs'

const root = new URL('../', import.meta.url)
const read = (page: string) => readFileSync(new URL(page, root), 'utf8')

describe('the snippets of a page', () => {
  it.each(pages.filter((page) => refreshed(page).count > 0))('%s are regions of files that are tested', (page) => {
    expect(read(page)).toBe(refreshed(page).text)
  })

  it('are there where a newcomer looks first', () => {
    expect(refreshed('README.md').count).toBeGreaterThan(1)
  })
})

/** [text](target) and [text](target "title") with targets inside the repository. */
const links = pages.flatMap((page) =>
  [...read(page).matchAll(/\]\(([^)\s]+)(?: "([^"]*)")?\)/g)]
    .map(([, target = '', title]) => ({ page, target: target.split('#')[0] ?? '', title }))
    .filter(({ target }) => target !== '' && !/^[a-z]+:/.test(target)),
)

describe('a link of the docs', () => {
  it.each(links)('$page -> $target leads somewhere', ({ page, target }) => {
    expect(existsSync(new URL(target, new URL(page, root)))).toBe(true)
  })
})

describe('a test that a page names', () => {
  const named = links.filter(({ title }) => title !== undefined)
  it.each(named)('$page: $target has "$title"', ({ page, target, title }) => {
    expect(readFileSync(new URL(target, new URL(page, root)), 'utf8')).toContain(title)
  })
})
