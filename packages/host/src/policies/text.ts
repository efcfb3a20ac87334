import { readFile } from 'node:fs/promises'
import { messageOf, SluiceError } from '@sluice/core'
import type { CST, Document, Node, Pair, Scalar, YAMLMap } from 'yaml'
import { type Locator, type Path, PolicyFaults } from './faults.ts'

/** The most text that is read, in UTF-8 bytes. */
const MAX_BYTES = 1024 * 1024
/** The deepest nesting of objects and lists. */
const MAX_DEPTH = 64
/** The most aliases, each counted as often as it is expanded. */
const MAX_ALIASES = 100

/** Keys that reach into what objects inherit. */
const FORBIDDEN = ['__proto__', 'constructor', 'prototype']

type Yaml = typeof import('yaml')

/** What a policy file says, and the faults to add to. */
export interface PolicyText {
  readonly value: unknown
  readonly faults: PolicyFaults
}

/** @param what names the file in the error. @throws SluiceError `POLICY_FILE_READ` when there is no file to read. */
export async function readText(file: string, what: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    const { code } = error as { code?: string }
    const why = code === 'ENOENT' ? 'there is no such file' : code === 'EISDIR' ? 'it is a folder' : messageOf(error)
    throw new SluiceError('POLICY_FILE_READ', `${what} cannot be read: ${why}.`)
  }
}

/**
 * Reads one document of YAML 1.2, core schema, within limits; JSON is such a document.
 *
 * @throws PolicyFileError with every fault of the text.
 */
export async function readPolicyText(text: string, file: string): Promise<PolicyText> {
  // CommonJS: its names stand under `default` wherever it is loaded, in a bundle too.
  const { default: yaml } = await import('yaml')
  const faults = new PolicyFaults(text, file)
  if (new TextEncoder().encode(text).length > MAX_BYTES) {
    faults.add('POLICY_FILE_LIMIT', [], `the file has more than ${MAX_BYTES / 1024 / 1024} MiB.`)
    faults.finish()
  }
  const document = documentOf(yaml, text, faults)
  faults.finish()
  faults.locator = locatorIn(yaml, document, text)
  let value: unknown
  try {
    value = document.toJS({ maxAliasCount: MAX_ALIASES })
  } catch (error) {
    faults.add('POLICY_FILE_LIMIT', [], `its aliases cannot be put in: ${messageOf(error)}.`)
  }
  faults.finish()
  return { value, faults }
}

function documentOf(yaml: Yaml, text: string, faults: PolicyFaults): Document.Parsed {
  // `uniqueKeys` compares every key with every other; `checkKey` does the same in one pass.
  const options = { version: '1.2', schema: 'core', uniqueKeys: false, stringKeys: true, logLevel: 'silent' } as const
  const tokens = tokensOf(yaml, text, faults)
  const documents = [...new yaml.Composer(options).compose(tokens, true, text.length)]
  for (const { message, pos } of documents.flatMap(({ errors, warnings }) => [...errors, ...warnings]))
    faults.add('POLICY_FILE_SYNTAX', [], `this is no YAML 1.2: ${message}.`, { offset: pos[0] })
  const [document, second] = documents
  if (second !== undefined)
    faults.add('POLICY_FILE_SYNTAX', [], 'there is more than one document in the file. Keep one.', {
      offset: second.range[0],
    })
  if (document !== undefined && faults.isClean) checkNodes(yaml, document, faults)
  return document as Document.Parsed
}

/** Parses without recursion, and stops before anything that recurses gets to see too deep a nesting. */
function tokensOf(yaml: Yaml, text: string, faults: PolicyFaults): readonly CST.Token[] {
  const parser = new yaml.Parser()
  const tokens: CST.Token[] = []
  for (const lexeme of new yaml.Lexer().lex(text)) {
    for (const token of parser.next(lexeme)) tokens.push(token)
    // The stack holds the document, each collection, and at most one scalar on top.
    if (parser.stack.length <= MAX_DEPTH + 2) continue
    faults.add('POLICY_FILE_LIMIT', [], `the file is nested deeper than ${MAX_DEPTH} levels.`, {
      offset: parser.offset,
    })
    faults.finish()
  }
  tokens.push(...parser.end())
  return tokens
}

function checkNodes(yaml: Yaml, document: Document.Parsed, faults: PolicyFaults): void {
  let aliases = 0
  yaml.visit(document, {
    Map(_, map) {
      const seen = new Set<string>()
      for (const { key } of map.items as Pair<Scalar>[]) checkKey(key, seen, faults)
    },
    Alias(_, alias) {
      if (++aliases <= MAX_ALIASES) return undefined
      faults.add('POLICY_FILE_LIMIT', [], `the file uses more than ${MAX_ALIASES} aliases.`, { offset: startOf(alias) })
      return yaml.visit.BREAK
    },
  })
}

function checkKey(key: Scalar, seen: Set<string>, faults: PolicyFaults): void {
  const name = String(key.value)
  const at = { offset: startOf(key) }
  if (seen.has(name)) faults.add('POLICY_FILE_SYNTAX', [], `the key "${name}" stands twice in one object.`, at)
  seen.add(name)
  if (FORBIDDEN.includes(name)) faults.add('POLICY_FILE_SYNTAX', [], `the key "${name}" is refused anywhere.`, at)
  if (name === '<<' && key.type === 'PLAIN')
    faults.add('POLICY_FILE_SYNTAX', [], 'YAML 1.2 has no merge keys. Write the keys out.', at)
}

const startOf = (node: Node): number => node.range?.[0] ?? 0

function locatorIn(yaml: Yaml, document: Document.Parsed, text: string): Locator {
  const resolved = (node: unknown) => (yaml.isAlias(node) ? node.resolve(document) : node)
  const find = (path: Path, onKey: boolean): unknown => {
    let node: unknown = document.contents
    for (const [i, key] of path.entries()) {
      const holder = resolved(node)
      const pair = yaml.isMap(holder) ? pairOf(holder, key) : undefined
      const found = yaml.isSeq(holder) ? holder.items[key as number] : (pair?.value ?? pair?.key)
      if (found === undefined) break
      node = onKey && i === path.length - 1 ? (pair?.key ?? found) : found
    }
    return node
  }
  const offsetOf = (path: Path, onKey = false) => {
    const node = find(path, onKey)
    return yaml.isNode(node) ? startOf(node) : 0
  }
  return {
    offsetOf,
    offsetIn(path, index) {
      const node = resolved(find(path, false))
      if (!yaml.isScalar(node) || typeof node.value !== 'string' || !node.range) return offsetOf(path)
      const [start, end] = node.range
      return (
        start +
        aligned(node.value, text.slice(start, end), index, {
          escapes: node.type === yaml.Scalar.QUOTE_DOUBLE,
          isBlock: node.type?.startsWith('BLOCK') ?? false,
        })
      )
    },
  }
}

const pairOf = (map: YAMLMap, key: string | number) =>
  (map.items as Pair<Scalar>[]).find((pair) => String(pair.key.value) === key)

/**
 * Where character `index` of a scalar's value stands in its source: both are gone through side by side, and what stands in the
 * source only (quotes, indentation, escapes, the header of a block) is passed over.
 */
function aligned(
  value: string,
  source: string,
  index: number,
  { escapes, isBlock }: { readonly escapes: boolean; readonly isBlock: boolean },
): number {
  let at = isBlock ? source.indexOf('\n') + 1 : 0
  for (let i = 0; i < value.length; i++) {
    while (at < source.length && source[at] !== value[i] && !(escapes && source[at] === '\\')) at++
    if (i === index) return at
    at += escapes && source[at] === '\\' ? escapeLength(source, at) : 1
  }
  return at
}

const escapeLength = (source: string, at: number): number => 2 + ({ x: 2, u: 4, U: 8 }[source[at + 1] as 'x'] ?? 0)
