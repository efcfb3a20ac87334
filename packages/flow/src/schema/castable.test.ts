import type { Json } from '@sluice/core'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cast } from './cast.ts'
import { castable } from './castable.ts'
import { fits } from './fits.ts'
import { type PropertyType, showType, typeOfSchema } from './type.ts'

const list = (items: object = {}) => ({ type: 'array', items })
const record = (properties: object, more: object = {}) => ({ type: 'object', properties, ...more })
const INT = { type: 'integer' }
const STR = { type: 'string' }
const NUM = { type: 'number' }
const OFF = { type: 'boolean' }
const NULL = { type: 'null' }

describe('castable', () => {
  it.each<[object, object]>([
    [STR, STR],
    [INT, STR],
    [NULL, STR],
    [record({}), STR],
    [list(), STR],
    [STR, {}],
    [{}, {}],
    [{}, STR],
    [INT, NUM],
    [NUM, INT],
    [OFF, INT],
    [INT, OFF],
    [NUM, OFF],
    [NULL, NULL],
    [list(INT), list(NUM)],
    [list(INT), list()],
    [INT, { anyOf: [STR, INT] }],
    [{ type: ['integer', 'null'] }, { type: ['null', 'number'] }],
    [{ anyOf: [INT, NUM] }, INT],
    [record({ a: INT, b: STR }), record({ a: NUM })],
    [record({ a: INT }), record({})],
    [record({}, { additionalProperties: false }), record({}, { additionalProperties: false })],
    [record({}, { additionalProperties: INT }), record({}, { additionalProperties: STR })],
    [record({ a: INT }, { additionalProperties: false }), record({}, { additionalProperties: NUM })],
  ])('%j can become %j', (from, to) => expect(castable(typeOfSchema(from), typeOfSchema(to))).toBe(true))

  it.each<[object, object]>([
    [STR, INT],
    [STR, OFF],
    [STR, record({})],
    [{}, INT],
    [NULL, INT],
    [INT, NULL],
    [INT, list(INT)],
    [list(INT), INT],
    [list(STR), list(INT)],
    [list(), list(INT)],
    [{ type: ['integer', 'string'] }, INT],
    [record({ a: INT }), record({ a: INT, b: INT })],
    [record({ a: STR }), record({ a: INT })],
    [record({}), record({}, { additionalProperties: false })],
    [record({}), record({}, { additionalProperties: INT })],
    [record({ a: STR }, { additionalProperties: false }), record({}, { additionalProperties: INT })],
  ])('%j cannot become %j', (from, to) => expect(castable(typeOfSchema(from), typeOfSchema(to))).toBe(false))
})

describe('what is castable, casts', () => {
  const { type } = fc.letrec<{ type: PropertyType }>((tie) => ({
    type: fc.oneof(
      { maxDepth: 3, depthSize: 'small' },
      fc
        .constantFrom(...(['any', 'string', 'integer', 'number', 'boolean', 'null'] as const))
        .map((kind) => ({ kind })),
      fc.record({ kind: fc.constant('array' as const), items: tie('type') }),
      fc.record({
        kind: fc.constant('object' as const),
        properties: fc
          .dictionary(fc.constantFrom('a', 'b', 'c'), tie('type'), { maxKeys: 3 })
          .map((o) => new Map(Object.entries(o))),
        required: fc.constant([]),
        others: fc.option(tie('type'), { nil: undefined }),
      }),
      fc.record({
        kind: fc.constant('union' as const),
        members: fc.array(tie('type'), { minLength: 1, maxLength: 3 }),
      }),
    ),
  }))

  const json = fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<Json>

  function anyOf(of: PropertyType): fc.Arbitrary<Json> {
    switch (of.kind) {
      case 'any':
        return json
      case 'string':
        return fc.string()
      case 'integer':
        return fc.integer()
      case 'number':
        return fc.double({ noNaN: true, noDefaultInfinity: true })
      case 'boolean':
        return fc.boolean()
      case 'null':
        return fc.constant(null)
      case 'array':
        return fc.array(anyOf(of.items), { maxLength: 3 })
      case 'union':
        return fc.oneof(...of.members.map(anyOf))
      case 'object': {
        const listed = fc.record(Object.fromEntries([...of.properties].map(([key, inner]) => [key, anyOf(inner)])), {
          requiredKeys: [],
        })
        const others =
          of.others === undefined
            ? fc.constant({})
            : fc.dictionary(fc.constantFrom('x', 'y'), anyOf(of.others), { maxKeys: 2 })
        return fc.tuple(listed, others).map(([a, b]) => ({ ...b, ...a }) as Json)
      }
    }
  }

  /** Pairs that are castable, often enough to be worth while. */
  const pair = fc
    .oneof(
      fc.tuple(type, type),
      type.map((one): [PropertyType, PropertyType] => [one, one]),
    )
    .filter(([from, to]) => castable(from, to))
  const castablePair = pair.chain(([from, to]) => fc.tuple(fc.constant(from), fc.constant(to), anyOf(from)))

  it('and fits afterwards', () => {
    fc.assert(
      fc.property(castablePair, ([, to, value]) => fits(cast(value, to, 'the value'), to)),
      { numRuns: 2_000 },
    )
  })

  it('once: a second cast changes nothing', () => {
    fc.assert(
      fc.property(castablePair, ([, to, value]) => {
        const once = cast(value, to, 'the value')
        expect(cast(once, to, 'the value')).toEqual(once)
      }),
    )
  })

  it('from every type to itself', () => {
    fc.assert(fc.property(type, (one) => castable(one, one) || showType(one).includes('any')))
  })
})
