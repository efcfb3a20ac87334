import { AT, DOT, HYPHEN, isAlphanumeric, isLatin, isLetter, type Span, type Text } from './text.ts'

/** RFC 5321, section 4.5.3.1: octets of the part before the @, and of the domain. */
const MAX_LOCAL = 64
const MAX_DOMAIN = 255

/** What people's addresses have. More is allowed, but in a text `=` and `/` mostly stand before an address. */
const LOCAL_MARKS = [..."%'+_~-."].map((mark) => mark.charCodeAt(0))

const isLocal = (at: number) => isAlphanumeric(at) || isLatin(at) || LOCAL_MARKS.includes(at)
const isDomain = (at: number) => isAlphanumeric(at) || isLatin(at) || at === HYPHEN

/** Finds e-mail addresses: from each @ to the left and to the right, as far as an address may go. */
export function findEmails(text: Text): readonly Span[] {
  const spans: Span[] = []
  for (let at = 0; at < text.length; at++) {
    if (text.charCodeAt(at) !== AT) continue
    const start = startOfLocal(text, at)
    const end = endOfDomain(text, at + 1)
    if (start < at && end !== undefined) spans.push({ start, end })
  }
  return spans
}

function startOfLocal(text: Text, at: number): number {
  let start = at
  while (start > 0 && at - start < MAX_LOCAL && isLocal(text.charCodeAt(start - 1))) start--
  while (start < at && !isAlphanumeric(text.charCodeAt(start)) && !isLatin(text.charCodeAt(start))) start++
  return start
}

/** Where the last label ends that may be a top-level domain; `undefined` where there is none. */
function endOfDomain(text: Text, from: number): number | undefined {
  let found: number | undefined
  let label = from
  for (let at = from; at <= from + MAX_DOMAIN; at++) {
    if (isDomain(text.charCodeAt(at)) && at < from + MAX_DOMAIN) continue
    const end = withoutHyphens(text, label, at)
    const first = text.charCodeAt(label)
    if (label > from && end - label >= 2 && (isLetter(first) || isLatin(first))) found = end
    if (at === label || text.charCodeAt(at) !== DOT) break
    label = at + 1
  }
  return found
}

function withoutHyphens(text: Text, start: number, end: number): number {
  while (end > start && text.charCodeAt(end - 1) === HYPHEN) end--
  return end
}
