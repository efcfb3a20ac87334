import { HYPHEN, isAlphanumeric, isDigit, isLetter, isSpace, type Span, type Text } from './text.ts'

/** Characters of an IBAN by country: the IBAN registry of ISO 13616, release 99 of 2024. */
const LENGTHS: ReadonlyMap<string, number> = new Map(
  (
    'AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 ' +
    'EE20 EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 ' +
    'IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 ' +
    'NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 ' +
    'SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30'
  )
    .split(' ')
    .map((entry) => [entry.slice(0, 2), Number(entry.slice(2))]),
)

/** Finds international bank account numbers, in one piece or in groups, whose check digits are right. */
export function findIbans(text: Text): readonly Span[] {
  const spans: Span[] = []
  for (let at = 0; at < text.length; at++) {
    if (!isLetter(text.charCodeAt(at)) || isAlphanumeric(text.charCodeAt(at - 1))) continue
    const length = lengthAt(text, at)
    const end = length === undefined ? undefined : endOf(text, at, length)
    if (end !== undefined) spans.push({ start: at, end })
  }
  return spans
}

function lengthAt(text: Text, at: number): number | undefined {
  if (!isLetter(text.charCodeAt(at + 1)) || !isDigit(text.charCodeAt(at + 2)) || !isDigit(text.charCodeAt(at + 3)))
    return
  return LENGTHS.get(text.slice(at, at + 2).toUpperCase())
}

function endOf(text: Text, start: number, length: number): number | undefined {
  let account = ''
  let at = start
  for (; account.length < length; at++) {
    const character = text.charCodeAt(at)
    if (isAlphanumeric(character)) account += text.slice(at, at + 1)
    else if (!isGap(character) || !isAlphanumeric(text.charCodeAt(at + 1))) return undefined
  }
  return isAlphanumeric(text.charCodeAt(at)) || remainder(account) !== 1 ? undefined : at
}

const isGap = (at: number) => isSpace(at) || at === HYPHEN

/** ISO 7064, MOD 97-10, as ISO 13616 applies it: country and check digits go last, letters count from A = 10. */
function remainder(account: string): number {
  let rest = 0
  for (const character of account.slice(4) + account.slice(0, 4)) {
    const value = Number.parseInt(character, 36)
    rest = (rest * (value > 9 ? 100 : 10) + value) % 97
  }
  return rest
}
