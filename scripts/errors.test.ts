import { readdirSync, readFileSync } from 'node:fs'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'

const root = new URL('../', import.meta.url)
const page = readFileSync(new URL('docs/errors.md', root), 'utf8')

/** Texts of sources that look like codes and are none: words of documents, names of variables. */
const NO_CODES = ['DEFAULT_BRANCH', 'ON_DEMAND', 'OPENAI_API_KEY']

/** Types of AG-UI's events. */
const AG_UI =
  /^(TEXT_MESSAGE|TOOL_CALL)_(START|CONTENT|ARGS|END|RESULT)$|^(STEP|RUN)_(STARTED|FINISHED)$|^STATE_SNAPSHOT$|^RUN_ERROR$/

const CODE = /^(?:[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|REFUSED)$/

/** Every text of a source that is written like an error code; comments do not count. */
function codesIn(path: string): readonly string[] {
  const found: string[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isStringLiteralLike(node) && CODE.test(node.text)) found.push(node.text)
    ts.forEachChild(node, visit)
  }
  visit(ts.createSourceFile(path, readFileSync(new URL(path, root), 'utf8'), ts.ScriptTarget.ESNext))
  return found
}

const sources = readdirSync(new URL('packages/', root), { withFileTypes: true })
  .filter((at) => at.isDirectory())
  .flatMap(({ name }) =>
    readdirSync(new URL(`packages/${name}/src/`, root), { recursive: true, encoding: 'utf8' })
      .filter((file) => /\.ts$/.test(file) && !/\.(test|test-d|fixture)\.ts$/.test(file))
      .map((file) => `packages/${name}/src/${file}`),
  )
const raised = [...new Set(sources.flatMap(codesIn))]
  .filter((code) => !NO_CODES.includes(code) && !AG_UI.test(code))
  .toSorted()

const sections = [...page.matchAll(/^### ([A-Z][A-Z0-9_]*)\n\n([\s\S]*?)(?=\n#|$(?![\s\S]))/gm)].map(
  ([, code = '', text = '']) => ({ code, text }),
)
const rows = [...page.matchAll(/^\| `([A-Z0-9_]+)` \| (.+) \|$/gm)].map(([, code = '', text = '']) => ({ code, text }))
const listed = [...sections, ...rows].map(({ code }) => code).toSorted()

describe('the page of errors', () => {
  it('has every code that a source may raise, and none that no source does', () => {
    expect(listed).toEqual(raised)
  })
  it('has each code once', () => {
    expect(listed).toEqual([...new Set(listed)])
  })
  it.each(sections)('says of $code what happened, who can mend it, and how', ({ text }) => {
    const paragraphs = text.trim().split('\n\n')
    expect(paragraphs).toHaveLength(2)
    expect(paragraphs[1]).toMatch(/^\*\*(Caller|Document|Policy|Operator)(:\*\* |\*\*,? )/)
  })
})
