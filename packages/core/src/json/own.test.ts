import { isDeepStrictEqual } from 'node:util'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { anyJson } from '../../testing/json.ts'
import { MAX_DEPTH, own, ownObject, SluiceError } from '../index.ts'
import { adopt } from './own.ts'

const refusal = (value: unknown, what?: string): SluiceError => {
  try {
    own(value, what)
  } catch (error) {
    if (error instanceof SluiceError) return error
    throw error
  }
  throw new Error('it was taken')
}

const outcomeOf = (take: () => unknown): { value: unknown } | { code: unknown } => {
  try {
    return { value: take() }
  } catch (error) {
    return { code: (error as SluiceError).code }
  }
}

const nested = (levels: number): unknown => {
  let value: unknown = 'bottom'
  for (let i = 0; i < levels; i++) value = i % 2 ? [value] : { in: value }
  return value
}

const frozenThroughout = (value: unknown): boolean =>
  typeof value !== 'object' ||
  value === null ||
  (Object.isFrozen(value) && Object.values(value).every(frozenThroughout))

const anything = fc.anything({
  withBigInt: true,
  withBoxedValues: true,
  withDate: true,
  withMap: true,
  withNullPrototype: true,
  withSet: true,
  withSparseArray: true,
  withTypedArray: true,
  key: fc.string().filter((key) => key !== '__proto__'),
})

/** The three things that are taken as another one: `-0`, an object without a prototype, a property that is undefined. */
function tidy(value: unknown): unknown {
  if (value === 0) return 0
  if (typeof value !== 'object' || value === null) return value
  // `map` keeps holes and `Object.getPrototypeOf` keeps classes apart, so neither is tidied into something it is not.
  if (Array.isArray(value)) return Object.getPrototypeOf(value) === Array.prototype ? value.map(tidy) : value
  if (![Object.prototype, null].includes(Object.getPrototypeOf(value))) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, item]) => item !== undefined)
      .map(([key, item]) => [key, tidy(item)]),
  )
}

function survivesJson(value: unknown): boolean {
  try {
    return isDeepStrictEqual(JSON.parse(JSON.stringify(value)), value)
  } catch {
    return false
  }
}

describe('own(value)', () => {
  it('takes exactly what survives JSON.parse(JSON.stringify(value)) unchanged', () => {
    fc.assert(
      fc.property(anything, (value) => {
        const tidied = tidy(value)
        if (survivesJson(tidied)) expect(own(value)).toEqual(tidied)
        else expect(refusal(value).code).toBe('JSON_VALUE')
      }),
      { numRuns: 3_000 },
    )
  })
  it('copies, so that what the caller does to its own object later is not seen', () => {
    const list = [1]
    const given = { list }
    const owned = own(given)
    list.push(2)
    expect(owned).toEqual({ list: [1] })
    expect(Object.isFrozen(given)).toBe(false)
  })
  it('freezes the copy, all the way down', () => {
    fc.assert(fc.property(anyJson, (value) => frozenThroughout(own(value))))
  })
  it('hands back what it made before, the very same object, and walks only what is new', () => {
    fc.assert(
      fc.property(anyJson, (value) => {
        const once = own(value)
        expect(own(once)).toBe(once)
      }),
    )
    const once = own({ a: [1, { b: 2 }] }) as { a: readonly unknown[] }
    expect(own(once)).toBe(once)
    expect((own([once, 'new']) as unknown[])[0]).toBe(once)
    expect((own({ grown: [...once.a, 3] }) as { grown: unknown[] }).grown[1]).toBe(once.a[1])
  })
  it('takes -0 as 0, leaves out a property that is undefined, and keeps the order of keys', () => {
    expect(Object.is(own(-0), 0)).toBe(true)
    expect(own({ b: 1, gone: undefined, a: 2 })).toEqual({ b: 1, a: 2 })
    expect(Object.keys(own({ b: 1, a: 2 }) as object)).toEqual(['b', 'a'])
  })
  it('takes objects and lists of another realm', () => {
    expect(own(runInNewContext('({ list: [1, { a: null }] })'))).toEqual({ list: [1, { a: null }] })
  })
  it('takes text as it is, lone surrogates and all', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => own(text) === text))
    expect(own('\ud800')).toBe('\ud800')
  })
})

describe('what own() refuses, with the path and the type and never the value', () => {
  class Money {
    amount = 4242
  }
  class List extends Array {}
  const withGetter = Object.defineProperty({}, 'secret', { get: () => 4242, enumerable: true })
  it.each([
    { name: 'a function', value: { a: [() => 4242] }, path: 'a[0]', why: 'a value of type function has no JSON form' },
    { name: 'a symbol', value: { a: Symbol('4242') }, path: 'a', why: 'a value of type symbol has no JSON form' },
    { name: 'a bigint', value: [4242n], path: '[0]', why: 'a value of type bigint has no JSON form' },
    { name: 'NaN', value: { a: { b: Number.NaN } }, path: 'a.b', why: 'NaN has no JSON form' },
    { name: 'an infinity', value: Number.NEGATIVE_INFINITY, path: '', why: '-Infinity has no JSON form' },
    {
      name: 'undefined in a list',
      value: [1, undefined],
      path: '[1]',
      why: 'a value of type undefined has no JSON form',
    },
    { name: 'a hole', value: new Array(2), path: '[0]', why: 'the list has a hole there' },
    {
      name: 'a date',
      value: { at: new Date(4242) },
      path: 'at',
      why: 'it is an instance of Date; pass a plain object',
    },
    { name: 'a map', value: new Map([[1, 4242]]), path: '', why: 'it is an instance of Map; pass a plain object' },
    {
      name: 'an instance of a class',
      value: { pay: new Money() },
      path: 'pay',
      why: 'it is an instance of Money; pass a plain object',
    },
    {
      name: 'a list that is an instance of a class',
      value: List.of(4242),
      path: '',
      why: 'it is an instance of List; pass a plain list',
    },
    { name: 'a getter', value: withGetter, path: 'secret', why: 'it is a getter; pass its value' },
    { name: 'a key that is a symbol', value: { [Symbol('s')]: 4242 }, path: '', why: 'it has a symbol as a key' },
    {
      name: 'a key named __proto__',
      value: JSON.parse('{ "a": { "__proto__": 4242 } }'),
      path: 'a.__proto__',
      why: 'a key named __proto__ is refused',
    },
  ])('$name', ({ value, path, why }) => {
    const error = refusal(value, 'the update')
    expect(error).toMatchObject({ code: 'JSON_VALUE', at: { path } })
    expect(error.message).toBe(`the update is not JSON${path && ` at ${path}`}: ${why}.`)
    expect(error.message).not.toContain('4242')
  })
  it('never reads a getter', () => {
    let reads = 0
    const value = Object.defineProperty({}, 'a', { get: () => ++reads, enumerable: true })
    refusal(value)
    expect(reads).toBe(0)
  })
  it('a value that contains itself', () => {
    const loop: Record<string, unknown> = {}
    loop.self = [loop]
    expect(refusal(loop).message).toContain(`nested deeper than ${MAX_DEPTH} levels, or contains itself`)
  })
  it(`more than ${MAX_DEPTH} levels, however it came to them`, () => {
    expect(own(nested(MAX_DEPTH))).toBeDefined()
    expect(refusal(nested(MAX_DEPTH + 1)).message).toContain('nested deeper')
    const deepest = own(nested(MAX_DEPTH))
    expect(refusal({ one: 'level', more: deepest }).message).toContain('nested deeper')
  })
})

describe('adopt(fresh)', () => {
  it('comes to the same as own(value)', () => {
    const fresh = fc.oneof(fc.array(anything), fc.dictionary(fc.string(), anything))
    fc.assert(
      fc.property(fresh, (value) => {
        const copy = Array.isArray(value) ? [...value] : { ...value }
        const owned = outcomeOf(() => own(value))
        expect(outcomeOf(() => adopt(copy))).toEqual(owned)
      }),
    )
  })
  it('takes no member named __proto__', () => {
    expect(() => adopt(JSON.parse('{"__proto__":0}'))).toThrow('__proto__')
  })
  it('freezes the very list or object it was given, and copies what is in it', () => {
    const inner = { a: 1 }
    const list = [inner]
    expect(adopt(list)).toBe(list)
    expect(adopt(list)).toBe(list)
    expect([Object.isFrozen(list), list[0] === inner]).toEqual([true, false])
  })
  it('counts the levels of what it holds', () => {
    const deepest = own(nested(MAX_DEPTH)) as unknown[]
    expect(() => adopt([deepest])).toThrow('nested deeper')
  })
  it('comes to the same where it is told what the list begins with, its levels included', () => {
    const begins = own([nested(MAX_DEPTH - 1)]) as readonly unknown[]
    fc.assert(
      fc.property(fc.array(anything), (more) => {
        const list = [...begins, ...more]
        const owned = outcomeOf(() => own(list))
        expect(outcomeOf(() => adopt([...list], undefined, begins))).toEqual(owned)
      }),
    )
    expect(() => adopt([adopt([...begins, 'more'], undefined, begins)])).toThrow('nested deeper')
  })
})

describe('ownObject(value)', () => {
  it('takes an object only', () => {
    expect(ownObject({ a: 1 }, 'it')).toEqual({ a: 1 })
  })
  it.each([
    { name: 'a list', value: [], says: 'the input must be an object, not a list.' },
    { name: 'null', value: null, says: 'the input must be an object, not null.' },
    { name: 'a text', value: 'x', says: 'the input must be an object, not a string.' },
  ])('refuses $name', ({ value, says }) => {
    expect(() => ownObject(value, 'the input')).toThrow(says)
  })
})
