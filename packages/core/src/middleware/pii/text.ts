/** A place in a text: from `start` up to, and without, `end`. */
export interface Span {
  readonly start: number
  readonly end: number
}

/**
 * What detectors read of a text. Any string is one; a test hands in one that counts how often it is looked at, because each
 * detector must take time that is linear in the text.
 */
export interface Text {
  readonly length: number
  charCodeAt(at: number): number
  slice(start: number, end: number): string
}

const code = (character: string) => character.charCodeAt(0)

export const AT = code('@')
export const DOT = code('.')
export const HYPHEN = code('-')
export const PLUS = code('+')
export const COLON = code(':')
const UNDERSCORE = code('_')
const NO_BREAK_SPACES = [0xa0, 0x202f]

export const isDigit = (at: number): boolean => at >= code('0') && at <= code('9')

export function isLetter(at: number): boolean {
  const lower = at | 0x20
  return lower >= code('a') && lower <= code('z')
}

export const isAlphanumeric = (at: number): boolean => isDigit(at) || isLetter(at)
export const isWord = (at: number): boolean => isAlphanumeric(at) || at === UNDERSCORE
export const isSpace = (at: number): boolean => at === code(' ') || NO_BREAK_SPACES.includes(at)

/** Letters of European languages beyond ASCII. */
export const isLatin = (at: number): boolean => at >= 0xc0 && at <= 0x24f

/** Where a short text stands next, before `to`, or -1. */
export function find(text: Text, wanted: string, from: number, to = text.length): number {
  const first = code(wanted)
  const last = Math.min(to, text.length) - wanted.length
  for (let at = from; at <= last; at++) {
    if (text.charCodeAt(at) === first && startsAt(text, wanted, at)) return at
  }
  return -1
}

export function startsAt(text: Text, wanted: string, at: number): boolean {
  for (let i = 0; i < wanted.length; i++) if (text.charCodeAt(at + i) !== wanted.charCodeAt(i)) return false
  return true
}
