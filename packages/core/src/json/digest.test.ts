import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonical } from './canonical.ts'
import { Digester, digestOf } from './digest.ts'
import { equal } from './equal.ts'
import type { Json } from './json.ts'

const json = fc.jsonValue() as fc.Arbitrary<Json>

describe('a digest', () => {
  it.each([
    [null, 'h1:5f7e798d7ef5acf1'],
    [true, 'h1:c7d89761c42b6e2d'],
    [0, 'h1:55ff9c8e9252d05b'],
    ['', 'h1:15b0f4673e633942'],
    ['abc', 'h1:00f65d5c668799ae'],
    [[], 'h1:b8556996f1e946d5'],
    [{}, 'h1:ab3ce74865c65e27'],
    [{ a: 1, b: [true, null, 'x'] }, 'h1:a2767818a06bedbc'],
  ] as [Json, string][])('of %j is stored, so it is %s for ever', (value, digest) => {
    expect(digestOf(value)).toBe(digest)
  })
  it('is the same for equal values and differs for others', () => {
    fc.assert(fc.property(json, json, (a, b) => (digestOf(a) === digestOf(b)) === equal(a, b)))
  })
  it('tells apart what is nested or split differently', () => {
    const values: Json[] = [
      [],
      [[]],
      [[], []],
      [null],
      ['a', 'b'],
      ['ab'],
      ['a', 'b', ''],
      { a: 'b' },
      { b: 'a' },
      {},
      '',
      0,
      '0',
      false,
    ]
    expect(new Set(values.map(digestOf)).size).toBe(values.length)
  })
  it('does not collide over many similar values', () => {
    const digests = new Set(Array.from({ length: 100_000 }, (_, i) => digestOf({ id: i, text: `message ${i}` })))
    expect(digests.size).toBe(100_000)
  })
})

describe('a digester', () => {
  it('gives what a fresh one gives, however lists grew or changed since', () => {
    const lists = fc.array(fc.array(json, { maxLength: 12 }), { maxLength: 8 })
    fc.assert(
      fc.property(lists, fc.array(fc.boolean()), (values, keeps) => {
        const digester = new Digester()
        let list: Json[] = []
        values.forEach((items, i) => {
          list = keeps[i] ? [...list, ...items] : items
          const value = { model: 'm', messages: list, tools: items }
          expect(digester.of(value)).toBe(digestOf(value))
        })
      }),
    )
  })
})

describe('the canonical form (RFC 8785)', () => {
  it.each([
    [{ b: 1, a: [1e21, 0.1, -0, 1e-7] }, '{"a":[1e+21,0.1,0,1e-7],"b":1}'],
    [
      { '€': 1, '\r': 2, \ufb33: 3, '1': 4, '😀': 5, '\u0080': 6, ö: 7 },
      '{"\\r":2,"1":4,"\u0080":6,"ö":7,"€":1,"😀":5,"\ufb33":3}',
    ],
    ['\u000f\n"\\€/', '"\\u000f\\n\\"\\\\€/"'],
  ] as [Json, string][])('of %j', (value, text) => expect(canonical(value)).toBe(text))
  it('is JSON of the same value', () => {
    fc.assert(fc.property(json, (value) => equal(JSON.parse(canonical(value)), JSON.parse(JSON.stringify(value)))))
  })
})
