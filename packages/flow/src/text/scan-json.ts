/** An object or list that the scan is inside of. `at` is the key or the position of the value being read. */
export interface Frame {
  readonly isList: boolean
  at: string | number
}

export interface JsonVisitor {
  /** A key begins at `offset`; it is `frames.at(-1).at`. */
  key?(offset: number, frames: readonly Frame[]): void
  /** A value begins at `offset`; the last frame is what holds it. */
  value?(offset: number, frames: readonly Frame[]): void
  /** An object or list begins at `offset`; its frame is the last. */
  open?(offset: number, frames: readonly Frame[]): void
  close?(): void
}

/** The text is no JSON from `offset` on. */
export class JsonSyntax {
  readonly offset: number
  readonly expected: string

  constructor(offset: number, expected: string) {
    this.offset = offset
    this.expected = expected
  }
}

const SPACE = /[ \t\r\n]*/y
const ATOM = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y

/**
 * Walks JSON text without building anything and without recursion, so that it can tell positions, keys that stand twice
 * and depth, which `JSON.parse` cannot.
 *
 * @throws JsonSyntax where the text stops being JSON.
 */
export function scanJson(text: string, visitor: JsonVisitor): void {
  const frames: Frame[] = []
  let i = skip(text, 0)
  for (;;) {
    visitor.value?.(i, frames)
    const start = text[i]
    if (start === '{' || start === '[') {
      frames.push({ isList: start === '[', at: start === '[' ? 0 : '' })
      visitor.open?.(i, frames)
      i = skip(text, i + 1)
      if (text[i] !== (start === '[' ? ']' : '}')) {
        if (start === '{') i = readKey(text, i, frames, visitor)
        continue
      }
    } else {
      i = start === '"' ? skip(text, endOfString(text, i)) : readAtom(text, i)
    }
    i = leave(text, i, frames, visitor)
    if (frames.length === 0) break
  }
  if (i < text.length) throw new JsonSyntax(i, 'the end of the document')
}

/** Closes what ends here, and goes on to the next value, if there is one. */
function leave(text: string, from: number, frames: Frame[], visitor: JsonVisitor): number {
  let i = from
  for (let top = frames.at(-1); top !== undefined; top = frames.at(-1)) {
    if (text[i] === ',') {
      i = skip(text, i + 1)
      if (!top.isList) return readKey(text, i, frames, visitor)
      top.at = (top.at as number) + 1
      return i
    }
    if (text[i] !== (top.isList ? ']' : '}')) throw new JsonSyntax(i, top.isList ? '"," or "]"' : '"," or "}"')
    i = skip(text, i + 1)
    frames.pop()
    visitor.close?.()
  }
  return i
}

function readKey(text: string, from: number, frames: readonly Frame[], visitor: JsonVisitor): number {
  if (text[from] !== '"') throw new JsonSyntax(from, 'a key in double quotes')
  const end = endOfString(text, from)
  const top = frames.at(-1) as Frame
  top.at = JSON.parse(text.slice(from, end)) as string
  visitor.key?.(from, frames)
  const colon = skip(text, end)
  if (text[colon] !== ':') throw new JsonSyntax(colon, '":"')
  return skip(text, colon + 1)
}

function readAtom(text: string, from: number): number {
  ATOM.lastIndex = from
  if (!ATOM.test(text)) throw new JsonSyntax(from, 'a value')
  return skip(text, ATOM.lastIndex)
}

function skip(text: string, from: number): number {
  SPACE.lastIndex = from
  SPACE.test(text)
  return SPACE.lastIndex
}

const ESCAPE = /["\\/bfnrt]|u[0-9a-fA-F]{4}/y

function endOfString(text: string, from: number): number {
  for (let i = from + 1; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === 0x22) return i + 1
    if (code < 0x20) throw new JsonSyntax(i, 'no line break or control character inside quotes')
    if (code !== 0x5c) continue
    ESCAPE.lastIndex = i + 1
    if (!ESCAPE.test(text)) throw new JsonSyntax(i, 'an escape that JSON knows')
    i = ESCAPE.lastIndex - 1
  }
  throw new JsonSyntax(text.length, '"\\"" at the end of the text that began before')
}
