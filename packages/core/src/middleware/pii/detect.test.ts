import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { FINDERS, findAll, PII_KINDS, type PiiKind } from './detect.ts'
import type { Text } from './text.ts'

const found = (kind: PiiKind, text: string) =>
  findAll([{ name: kind, find: FINDERS[kind] }], text).map(({ start, end }) => text.slice(start, end))

/** Published example values: test cards of the schemes, the IBANs of the registry's examples, documentation addresses. */
const FOUND: Readonly<Record<PiiKind, readonly string[]>> = {
  email: ['ada@example.org', "o'neil+news@mail.example.co.uk", 'jörg@müller.example', 'a_b-c%d@x-y.example'],
  card: [
    '4111111111111111',
    '4111 1111 1111 1111',
    '5500-0000-0000-0004',
    '3400 000000 00009',
    '6011 0000 0000 0004',
    '3530.1113.3330.0000',
    '2223003122003222',
    '4222222222222',
  ],
  iban: [
    'GB82WEST12345698765432',
    'DE89 3704 0044 0532 0130 00',
    'fr14 2004 1010 0505 0001 3m02 606',
    'NO93-8601-1117-947',
  ],
  ip: [
    '192.0.2.1',
    '255.255.255.255',
    '2001:db8::1',
    '2001:0db8:0000:0000:0000:0000:0000:0001',
    '::ffff:192.0.2.128',
    '::1',
  ],
  phone: [
    '+49 30 901820',
    '+1 (415) 555-2671',
    '+442079460958',
    '0049 30 901820',
    '(415) 555-2671',
    '415-555-2671',
    '020 7946 0958',
    '0171/1234567',
    '06 12 34 56 78',
  ],
  key: [
    `sk-proj-${'a1B2'.repeat(8)}`,
    `ghp_${'x9'.repeat(18)}`,
    'AKIAIOSFODNN7EXAMPLE',
    `eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.${'c2ln'.repeat(6)}`,
    '-----BEGIN EC PRIVATE KEY-----\nMHcCAQEE\n-----END EC PRIVATE KEY-----',
  ],
}

const NOT_FOUND: Readonly<Record<PiiKind, readonly string[]>> = {
  email: ['ada at example.org', '@ada', 'ada@localhost', 'a@b@c', 'x@1.2', 'git@host:repo'],
  card: [
    '4111111111111112',
    '1234567890123456',
    '41111111111111111111111',
    '4111  1111  1111  1111',
    '0000000000000000',
  ],
  iban: [
    'GB82WEST12345698765431',
    'DE89370400440532013',
    'ZZ89370400440532013000',
    'xGB82WEST12345698765432',
    'GB82WEST12345698765432x',
  ],
  ip: [
    '1.2.3',
    '1.2.3.4.5',
    '256.1.1.1',
    '12:34:56',
    'std::cout',
    'add::ed',
    '1:2:3:4:5:6:7:8:9',
    '1::2::3',
    'ge:80::1',
  ],
  phone: ['2024-01-02', '01.02.2024', '4155552671', '12345', '+0 123 4567 890', '115-555-2671', '3.14159265'],
  key: [
    'sk-short',
    'skeleton-key-of-the-whole-old-house',
    'eyJ.eyJ',
    '-----BEGIN PUBLIC KEY-----\nMFkw\n-----END PUBLIC KEY-----',
  ],
}

const cases = (table: Readonly<Record<PiiKind, readonly string[]>>) =>
  PII_KINDS.flatMap((kind) => table[kind].map((text) => ({ kind, text })))

/** Anything at all, with a mark next to the value, as it is in texts. */
const anything = fc.string({ unit: 'grapheme' })
const MARKS = fc.constantFrom(' ', '\n', '"', '(', ')', ',', '<', '>', '; ', ' – ')

describe('the detectors', () => {
  it.each(cases(FOUND))('find $kind "$text" as a whole', ({ kind, text }) => {
    expect(found(kind, text)).toEqual([text])
  })

  it.each(cases(NOT_FOUND))('do not take "$text" for $kind', ({ kind, text }) => {
    expect(found(kind, text)).toEqual([])
  })

  it.each(PII_KINDS)('find %s wherever it stands', (kind) => {
    fc.assert(
      fc.property(
        fc.tuple(anything, MARKS, fc.constantFrom(...FOUND[kind]), MARKS, anything),
        ([before, left, value, right, after]) => {
          const text = before + left + value + right + after
          const start = before.length + left.length
          const end = start + value.length
          const covers = findAll([{ name: kind, find: FINDERS[kind] }], text).some(
            (span) => span.start <= start && span.end >= end,
          )
          expect(covers).toBe(true)
        },
      ),
    )
  })

  it('find every number with the right check digit and none with another, at whatever length the issuer has', () => {
    const visa = fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 14, maxLength: 14 })
    fc.assert(
      fc.property(visa, (digits) => {
        const right = Array.from({ length: 10 }, (_, last) => `4${digits.join('')}${last}`).filter(
          (number) => found('card', number).length > 0,
        )
        expect(right).toHaveLength(1)
      }),
    )
  })

  it('find nothing in an IBAN in which any one character was mistyped', () => {
    const iban = 'DE89370400440532013000'
    for (let at = 4; at < iban.length; at++) {
      for (const digit of '0123456789') {
        const typed = iban.slice(0, at) + digit + iban.slice(at + 1)
        expect(found('iban', typed)).toEqual(digit === iban[at] ? [iban] : [])
      }
    }
  })
})

/** A text that counts how often it is looked at. */
class Counted implements Text {
  looks = 0
  readonly length: number
  readonly #text: string
  constructor(text: string) {
    this.#text = text
    this.length = text.length
  }
  charCodeAt(at: number): number {
    this.looks++
    return this.#text.charCodeAt(at)
  }
  slice(start: number, end: number): string {
    this.looks += Math.max(0, end - start)
    return this.#text.slice(start, end)
  }
}

/** What would make a detector go back again and again, if it did. */
const HOSTILE = [
  '@',
  'a',
  'a@',
  'a.a@a.',
  '@a.a',
  'a@a-',
  '1',
  '1 ',
  '0 ',
  '4-',
  '4111 ',
  '+1',
  '+1 ',
  '00',
  '(',
  '(415) ',
  '555-',
  '06 ',
  'GB82',
  ' GB82',
  'GB82 ',
  'DE89 3704 ',
  ':',
  '::',
  '1:',
  'a:b',
  '1.',
  '.',
  '255.',
  'fe80::',
  'sk-',
  '-sk-',
  'eyJ',
  'eyJ.',
  '.eyJ',
  '-eyJ',
  '.eyJ-',
  'ghp_',
  '-',
  '-----',
  '-----BEGIN ',
  '-----BEGIN PRIVATE KEY-----',
  '-----END ',
  '-----BEGIN PRIVATE KEY-----\n-----END ',
  'AKIA.',
  '_',
  ' ',
  '\u{a0}1',
]

/** The worst of them for each detector: what it looks at most often. */
const WORST: Readonly<Record<PiiKind, string>> = {
  key: '-sk-',
  iban: 'GB82 ',
  card: '4 ',
  email: 'a@a.',
  ip: 'fe80::',
  phone: '0 ',
}

const MEBIBYTE = 2 ** 20

function looksAt(kind: PiiKind, unit: string, length: number): number {
  const text = new Counted(unit.repeat(Math.ceil(length / unit.length)).slice(0, length))
  FINDERS[kind](text)
  return text.looks
}

/** Twice the text is twice the work, and each character is looked at a bounded number of times. */
function expectLinear(kind: PiiKind, unit: string, length: number): void {
  const [half, whole] = [looksAt(kind, unit, length / 2), looksAt(kind, unit, length)]
  expect.soft(whole / half, JSON.stringify(unit)).toBeLessThan(2.1)
  expect.soft(whole / length, JSON.stringify(unit)).toBeLessThan(100)
}

describe('the work of a detector', () => {
  it.each(PII_KINDS)('grows with the text and no faster: %s, on 1 MiB', (kind) => {
    expectLinear(kind, WORST[kind], MEBIBYTE)
  })

  it.each(PII_KINDS)('grows so on everything that is made to make it slow: %s', (kind) => {
    for (const unit of HOSTILE) expectLinear(kind, unit, MEBIBYTE / 64)
  })
})
