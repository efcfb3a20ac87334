import { describe, expect, it } from 'vitest'
import { isConstrained, showType, typeOfSchema } from './type.ts'

describe('the type of a schema', () => {
  it.each<[object, string]>([
    [{}, 'any'],
    [{ type: 'integer' }, 'integer'],
    [{ type: ['string', 'null'] }, 'string or null'],
    [{ anyOf: [{ type: 'string' }, { anyOf: [{ type: 'null' }, { type: 'string' }] }] }, 'string or null'],
    [{ anyOf: [{ type: 'string' }, {}] }, 'any'],
    [{ enum: ['a', 'b'] }, 'string'],
    [{ const: null }, 'null'],
    [{ type: 'array' }, 'list'],
    [{ type: 'array', items: { type: 'number' } }, 'list of number'],
    [{ type: 'object' }, 'object'],
    [
      { type: 'object', properties: { a: { type: 'string' } }, additionalProperties: false },
      'closed object {a: string}',
    ],
    [{ type: 'object', additionalProperties: { type: 'integer' } }, 'object {others: integer}'],
  ])('%j is %s', (schema, shown) => expect(showType(typeOfSchema(schema))).toBe(shown))

  it.each<[object, boolean]>([
    [{ title: 'a', description: 'b', type: 'string', default: '' }, false],
    [{ type: 'object', properties: { a: { type: 'array', items: { type: 'string' } } }, required: ['a'] }, false],
    [{ type: 'string', maxLength: 5 }, true],
    [{ enum: ['a'] }, true],
    [{ type: 'array', items: { type: 'number', minimum: 0 } }, true],
    [{ anyOf: [{ type: 'string', pattern: 'a' }] }, true],
  ])('of %j says everything: not %s', (schema, constrained) => expect(isConstrained(schema as never)).toBe(constrained))
})
