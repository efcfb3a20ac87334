import { COLON, DOT, isDigit, isLetter, isWord, type Span, type Text } from './text.ts'

/** The longest text form of an address: eight groups of which the last two are written as IPv4 (RFC 4291, section 2.2). */
const MAX_LENGTH = 45

/** Finds IPv4 and IPv6 addresses. Four numbers with dots between are taken as an address, whatever they stand for. */
export function findIps(text: Text): readonly Span[] {
  const spans: Span[] = []
  for (let at = 0; at < text.length; at++) {
    if (!isPart(text.charCodeAt(at))) continue
    const start = at
    while (isPart(text.charCodeAt(at))) at++
    if (!isWord(text.charCodeAt(start - 1)) && !isWord(text.charCodeAt(at))) spans.push(...v6In(text, start, at))
    spans.push(...v4In(text, start, at))
  }
  return spans
}

/** Hexadecimal digits, colons and dots: all that an address is written with. */
function isPart(at: number): boolean {
  return isDigit(at) || (isLetter(at) && (at | 0x20) <= 0x66) || at === COLON || at === DOT
}

/** A run of such characters that is an address as a whole, but for the mark of a sentence at either end. */
function v6In(text: Text, from: number, to: number): readonly Span[] {
  let [start, end] = [from, to]
  while (end > start && text.charCodeAt(end - 1) === DOT) end--
  if (text.charCodeAt(end - 1) === COLON && text.charCodeAt(end - 2) !== COLON) end--
  while (start < end && text.charCodeAt(start) === DOT) start++
  if (text.charCodeAt(start) === COLON && text.charCodeAt(start + 1) !== COLON) start++
  if (end - start > MAX_LENGTH || end - start < 3) return []
  return isV6(text.slice(start, end)) ? [{ start, end }] : []
}

function isV6(address: string): boolean {
  const halves = address.split('::')
  if (halves.length > 2) return false
  const groups = halves.flatMap((half) => (half === '' ? [] : half.split(':')))
  const v4 = groups.at(-1)?.includes('.') ? groups.pop() : undefined
  if (v4 !== undefined && !isV4(v4)) return false
  if (groups.some((group) => !/^[0-9a-f]{1,4}$/i.test(group))) return false
  const count = groups.length + (v4 === undefined ? 0 : 2)
  // "d::c" stands in programs, and is no address that anybody has.
  return halves.length === 2 ? count <= 7 && /\d/.test(address) : count === 8
}

function isV4(address: string): boolean {
  const [span] = v4In(address, 0, address.length)
  return span?.start === 0 && span.end === address.length
}

/** Four numbers of at most 255 in a run, that are no part of a longer list. */
function v4In(text: Text, from: number, to: number): readonly Span[] {
  const spans: Span[] = []
  let list: { readonly start: number; end: number; count: number } | undefined
  const close = () => {
    if (list?.count === 4) spans.push({ start: list.start, end: list.end })
    list = undefined
  }
  for (let at = from; at < to; at++) {
    if (!isDigit(text.charCodeAt(at))) continue
    const start = at
    while (at < to && isDigit(text.charCodeAt(at))) at++
    const follows = list !== undefined && start === list.end + 1 && text.charCodeAt(list.end) === DOT
    if (!follows) close()
    if (isOctet(text, start, at)) {
      list = { start: list?.start ?? start, end: at, count: (list?.count ?? 0) + 1 }
    } else list = undefined
  }
  close()
  return spans
}

const isOctet = (text: Text, start: number, end: number): boolean =>
  end - start <= 3 && Number(text.slice(start, end)) <= 255
