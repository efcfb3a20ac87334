import { DOT, HYPHEN, isDigit, isSpace, PLUS, type Span, type Text } from './text.ts'

const [OPENING, CLOSING, SLASH, ZERO] = [40, 41, 47, 48]

/** A payment card's number has so many digits (ISO/IEC 7812-1; issuers hand out none shorter than 13). */
const [MIN_CARD_DIGITS, MAX_CARD_DIGITS] = [13, 19]
/** ITU-T E.164: digits of an international number, and what we take as the least. */
const [MIN_PHONE_DIGITS, MAX_PHONE_DIGITS] = [7, 15]
/** Digits of a national number with its trunk prefix. */
const [MIN_NATIONAL_DIGITS, MAX_NATIONAL_DIGITS] = [9, 12]

const upTo19 = (least: number) => Array.from({ length: MAX_CARD_DIGITS - least + 1 }, (_, i) => least + i)

/** Each issuer's range of first digits, and how long its numbers are: what the card schemes publish. */
const ISSUERS = [
  { from: 4, to: 4, lengths: [13, 16, 19] }, // Visa
  { from: 51, to: 55, lengths: [16] }, // Mastercard
  { from: 2221, to: 2720, lengths: [16] }, // Mastercard
  { from: 34, to: 34, lengths: [15] }, // American Express
  { from: 37, to: 37, lengths: [15] }, // American Express
  { from: 300, to: 305, lengths: upTo19(14) }, // Diners Club
  { from: 3095, to: 3095, lengths: upTo19(14) }, // Diners Club
  { from: 36, to: 36, lengths: upTo19(14) }, // Diners Club
  { from: 38, to: 39, lengths: upTo19(14) }, // Diners Club
  { from: 3528, to: 3589, lengths: upTo19(16) }, // JCB
  { from: 6011, to: 6011, lengths: upTo19(16) }, // Discover
  { from: 644, to: 649, lengths: upTo19(16) }, // Discover
  { from: 65, to: 65, lengths: upTo19(16) }, // Discover, RuPay
  { from: 60, to: 60, lengths: [16] }, // RuPay
  { from: 81, to: 82, lengths: [16] }, // RuPay, UnionPay
  { from: 62, to: 62, lengths: upTo19(16) }, // UnionPay
  { from: 2200, to: 2204, lengths: upTo19(16) }, // Mir
  { from: 50, to: 50, lengths: upTo19(13) }, // Maestro
  { from: 56, to: 58, lengths: upTo19(13) }, // Maestro
  { from: 63, to: 63, lengths: upTo19(13) }, // Maestro
  { from: 67, to: 67, lengths: upTo19(13) }, // Maestro
].map((range) => ({ ...range, prefix: String(range.from).length }))

/** Finds payment cards: groups of digits with single separators between, of an issuer's range, whose checksum is right. */
export function findCards(text: Text): readonly Span[] {
  const groups = digitGroups(text)
  return groups.flatMap(({ start }, i) => {
    if (!ISSUER_STARTS.has(text.charCodeAt(start))) return []
    const grown = grow(text, groups, i, MAX_CARD_DIGITS, isCardGap)
    const lengths = lengthsOf(grown.at(-1)?.digits ?? '')
    const cards = grown.filter(({ digits }) => lengths.includes(digits.length) && passesLuhn(digits))
    return cards.map(({ end }) => ({ start, end }))
  })
}

/** Digits that some issuer's numbers begin with. */
const ISSUER_STARTS = new Set(ISSUERS.map(({ from }) => String(from).charCodeAt(0)))

/** How long a card may be whose number begins so. */
function lengthsOf(digits: string): readonly number[] {
  if (digits.length < MIN_CARD_DIGITS) return []
  return ISSUERS.flatMap(({ prefix, from, to, lengths }) => {
    const begins = Number(digits.slice(0, prefix))
    return begins >= from && begins <= to ? lengths : []
  })
}

/** The check digit of ISO/IEC 7812-1, annex B (H. P. Luhn's formula, US patent 2,950,048). */
function passesLuhn(digits: string): boolean {
  let sum = 0
  for (let i = 0; i < digits.length; i++) {
    const digit = digits.charCodeAt(digits.length - 1 - i) - ZERO
    const weighed = i % 2 === 0 ? digit : digit * 2
    sum += weighed > 9 ? weighed - 9 : weighed
  }
  return sum % 10 === 0
}

/**
 * Finds telephone numbers: international ones (`+` or `00`), North American ones in groups of 3, 3 and 4 digits, and national ones
 * that begin with 0 and are written in groups. Ten digits in one piece are none: too many other things look like that.
 */
export function findPhones(text: Text): readonly Span[] {
  const groups = digitGroups(text)
  return groups.flatMap((_, i) => {
    const span = international(text, groups, i) ?? northAmerican(text, groups, i) ?? national(text, groups, i)
    return span === undefined ? [] : [span]
  })
}

function international(text: Text, groups: readonly Group[], i: number): Span | undefined {
  const { start } = groups[i] as Group
  const plus = text.charCodeAt(start - 1) === PLUS
  const zeros = !plus && text.charCodeAt(start) === ZERO && text.charCodeAt(start + 1) === ZERO
  if (!plus && !zeros) return undefined
  const prefix = zeros ? 2 : 0
  const grown = grow(text, groups, i, MAX_PHONE_DIGITS + prefix, isPhoneGap).at(-1)
  if (grown === undefined || grown.digits.length - prefix < MIN_PHONE_DIGITS || grown.digits[prefix] === '0') return
  return { start: plus ? start - 1 : start, end: grown.end }
}

/** The North American Numbering Plan: neither area code nor exchange begins with 0 or 1. */
function northAmerican(text: Text, groups: readonly Group[], i: number): Span | undefined {
  const [area, exchange, line] = [groups[i], groups[i + 1], groups[i + 2]]
  if (area === undefined || exchange === undefined || line === undefined) return undefined
  if (lengthOf(area) !== 3 || lengthOf(exchange) !== 3 || lengthOf(line) !== 4) return undefined
  if (!isPhoneGap(text, area.end, exchange.start) || !isPhoneGap(text, exchange.end, line.start)) return undefined
  if ([area, exchange].some(({ start }) => text.charCodeAt(start) <= ZERO + 1)) return undefined
  return { start: text.charCodeAt(area.start - 1) === OPENING ? area.start - 1 : area.start, end: line.end }
}

/** With the trunk prefix 0 and an area code, or as ten digits in pairs. */
function national(text: Text, groups: readonly Group[], i: number): Span | undefined {
  const first = groups[i] as Group
  if (text.charCodeAt(first.start) !== ZERO || text.charCodeAt(first.start + 1) === ZERO) return undefined
  const grown = grow(text, groups, i, MAX_NATIONAL_DIGITS, isPhoneGap).slice(1)
  const inPairs = lengthOf(first) === 2 && grown.length >= 4 && grown[3]?.digits.length === 10
  if (!inPairs && (lengthOf(first) < 3 || lengthOf(first) > 6)) return undefined
  const whole = inPairs ? grown[3] : grown.findLast(({ digits }) => digits.length >= MIN_NATIONAL_DIGITS)
  const opened = text.charCodeAt(first.start - 1) === OPENING
  return whole && { start: opened ? first.start - 1 : first.start, end: whole.end }
}

/** Digits that stand side by side. */
type Group = Span

const lengthOf = ({ start, end }: Group) => end - start

function digitGroups(text: Text): readonly Group[] {
  const groups: Group[] = []
  for (let at = 0; at < text.length; at++) {
    if (!isDigit(text.charCodeAt(at))) continue
    const start = at
    while (isDigit(text.charCodeAt(at))) at++
    groups.push({ start, end: at })
  }
  return groups
}

interface Grown {
  readonly end: number
  readonly digits: string
}

/** The group, then with the one after it, and so on: as long as they hang together and there are not too many digits. */
function grow(
  text: Text,
  groups: readonly Group[],
  from: number,
  maxDigits: number,
  hangTogether: (text: Text, start: number, end: number) => boolean,
): readonly Grown[] {
  const grown: Grown[] = []
  let digits = ''
  for (let i = from; i < groups.length; i++) {
    const { start, end } = groups[i] as Group
    if (digits.length + end - start > maxDigits) break
    if (i > from && !hangTogether(text, (groups[i - 1] as Group).end, start)) break
    digits += text.slice(start, end)
    grown.push({ end, digits })
  }
  return grown
}

function isCardGap(text: Text, start: number, end: number): boolean {
  const mark = text.charCodeAt(start)
  return end - start === 1 && (isSpace(mark) || mark === HYPHEN || mark === DOT)
}

/** At most three characters, as in `+49 (0) 30` and `(415) 555`. */
function isPhoneGap(text: Text, start: number, end: number): boolean {
  if (end - start > 3) return false
  for (let at = start; at < end; at++) {
    const mark = text.charCodeAt(at)
    if (!isSpace(mark) && ![HYPHEN, DOT, SLASH, OPENING, CLOSING].includes(mark)) return false
  }
  return true
}
