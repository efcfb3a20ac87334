import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { anyJson } from '../../testing/json.ts'
import { equal, type Json, own } from '../index.ts'

const json = anyJson.map((value) => own(value))

/** The same value, written with its keys in another order. */
function turned(value: Json): Json {
  if (Array.isArray(value)) return own(value.map(turned))
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).reverse()
  return own(Object.fromEntries(entries.map(([key, item]) => [key, turned(item)])))
}

describe('equal(a, b)', () => {
  it('says whether two JSON values are the same', () => {
    fc.assert(fc.property(json, json, (a, b) => equal(a, b) === isDeepStrictEqual(a, b)))
  })
  it('does not mind the order of keys, nor whose object it is', () => {
    fc.assert(fc.property(json, (a) => equal(a, turned(a))))
  })
  it.each<{ a: Json | undefined; b: Json | undefined }>([
    { a: 1, b: '1' },
    { a: 0, b: false },
    { a: null, b: undefined },
    { a: null, b: {} },
    { a: [], b: {} },
    { a: { 0: 'a' }, b: ['a'] },
    { a: [1, 2], b: [2, 1] },
    { a: [1], b: [1, 1] },
    { a: { a: 1 }, b: { b: 1 } },
    { a: { a: 1 }, b: { a: 1, b: 1 } },
    { a: { constructor: 1 }, b: { other: 1 } },
  ])('tells $a from $b', ({ a, b }) => {
    expect(equal(a, b)).toBe(false)
    expect(equal(b, a)).toBe(false)
  })
})
