import { messageOf } from '@sluice/core'
import type { CST, Document, Scalar } from 'yaml'
import type { Remark, Report } from '../faults/report.ts'
import { aliasFault, checkYaml, startOf, type Yaml } from './check-yaml.ts'
import { MAX_ALIASES, MAX_DEPTH, syntaxFault, tooDeep } from './limits.ts'
import type { Reading } from './reading.ts'

/**
 * Reads one document of YAML 1.2, core schema. What is wrong with the text goes to the report; `undefined` when nothing can
 * be made of it. The parser is loaded here, so that who runs JSON does not pay for it.
 */
export async function readYaml(text: string, report: Report): Promise<Reading | undefined> {
  // CommonJS: its names stand under `default` wherever it is loaded, in a bundle too.
  const { default: yaml } = await import('yaml')
  const tokens = tokensOf(yaml, text, report)
  if (tokens === undefined) return undefined
  // `uniqueKeys` compares every key with every other; `checkYaml` does the same in one pass.
  const options = { version: '1.2', schema: 'core', uniqueKeys: false, stringKeys: true, logLevel: 'silent' } as const
  const documents = [...new yaml.Composer(options).compose(tokens, true, text.length)]
  const [document] = documents
  if (document === undefined || !isSound(documents, report)) return undefined
  if (!checkYaml(yaml, document, report)) return undefined
  try {
    const value: unknown = document.toJS({ maxAliasCount: MAX_ALIASES })
    return { value, locate: (remarks) => locate(yaml, document, remarks) }
  } catch (error) {
    // Aliases inside of aliases can nest deeper than the text does.
    if (error instanceof RangeError) tooDeep(report, { path: [], offset: 0 })
    else aliasFault(report, { path: [], offset: 0 }, messageOf(error))
    return undefined
  }
}

/** Parses without recursion, and stops before anything that recurses gets to see too deep a nesting. */
function tokensOf(yaml: Yaml, text: string, report: Report): CST.Token[] | undefined {
  const parser = new yaml.Parser()
  const tokens: CST.Token[] = []
  for (const lexeme of new yaml.Lexer().lex(text)) {
    for (const token of parser.next(lexeme)) tokens.push(token)
    // The stack holds the document, each collection, and at most one scalar on top.
    if (parser.stack.length <= MAX_DEPTH + 2) continue
    tooDeep(report, { path: [], offset: parser.offset })
    return undefined
  }
  tokens.push(...parser.end())
  return tokens
}

function isSound(documents: readonly Document.Parsed[], report: Report): boolean {
  for (const { message, pos } of documents.flatMap(({ errors, warnings }) => [...errors, ...warnings])) {
    syntaxFault(report, `this is no YAML 1.2: ${message}.`, pos[0])
  }
  const second = documents[1]
  if (second !== undefined) {
    syntaxFault(report, 'there is more than one document in the text. Keep one.', second.range[0])
  }
  return report.isClean
}

/** Follows each path through the document; one that is not there is found at its nearest ancestor. */
function locate(yaml: Yaml, document: Document.Parsed, remarks: readonly Remark[]): number[] {
  const below = (node: unknown, key: string | number) => {
    const holder = yaml.isAlias(node) ? node.resolve(document) : node
    if (yaml.isSeq(holder)) return { value: holder.items[key as number] }
    return yaml.isMap(holder) ? holder.items.find((pair) => String((pair.key as Scalar).value) === key) : undefined
  }
  return remarks.map(({ path, onKey }) => {
    let node: unknown = document.contents
    let offset = yaml.isNode(node) ? startOf(node) : 0
    for (const [i, key] of path.entries()) {
      const found: { readonly key?: unknown; readonly value?: unknown } | undefined = below(node, key)
      node = onKey && i === path.length - 1 ? found?.key : (found?.value ?? found?.key)
      if (!yaml.isNode(node)) break
      offset = startOf(node)
    }
    return offset
  })
}
