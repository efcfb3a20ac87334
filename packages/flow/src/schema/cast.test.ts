import type { Json } from '@sluice/core'
import { describe, expect, it } from 'vitest'
import { cast } from './cast.ts'
import { typeOfSchema } from './type.ts'

const to = (schema: object, value: Json, options = {}) =>
  cast(value, typeOfSchema(schema), 'input "x" of node "pay"', options)

describe('a value becomes', () => {
  it.each<[string, object, Json, Json]>([
    ['text as it is', { type: 'string' }, 'a "b"', 'a "b"'],
    ['text of a number', { type: 'string' }, 5, '5'],
    ['text of a flag', { type: 'string' }, true, 'true'],
    ['text of an object', { type: 'string' }, { a: [1] }, '{"a":[1]}'],
    ['no text of null', { type: 'string' }, null, ''],
    ['1 of true', { type: 'number' }, true, 1],
    ['false of 0', { type: 'boolean' }, 0, false],
    ['true of any other number', { type: 'boolean' }, -0.5, true],
    ['a whole number, cut', { type: 'integer' }, -1.9, -1],
    ['a whole number, cut to 0 and not to -0', { type: 'integer' }, -0.5, 0],
    ['a number as it is', { type: 'number' }, 3, 3],
    ['a list, item by item', { type: 'array', items: { type: 'string' } }, [1, null], ['1', '']],
    [
      'an object, part by part',
      { type: 'object', properties: { a: { type: 'integer' } } },
      { a: 1.5, b: 'x' },
      { a: 1, b: 'x' },
    ],
    [
      'a closed object, without the rest',
      { type: 'object', properties: { a: {} }, additionalProperties: false },
      { a: 1, b: 2 },
      { a: 1 },
    ],
    ['what fits a member, as it is', { anyOf: [{ type: 'string' }, { type: 'integer' }] }, 5, 5],
    [
      'else the first member that casts',
      { anyOf: [{ type: 'null' }, { type: 'integer' }, { type: 'string' }] },
      1.5,
      1,
    ],
    ['anything', {}, [null], [null]],
  ])('%s', (_, schema, value, wanted) => expect(to(schema, value)).toEqual(wanted))

  it.each<[string, object, Json]>([
    ['a number, of text', { type: 'integer' }, '5'],
    ['a flag, of text', { type: 'boolean' }, 'true'],
    ['an object, of text', { type: 'object' }, '{}'],
    ['a number, of null', { type: 'number' }, null],
    ['a list, of one', { type: 'array' }, 1],
    ['null, of anything else', { type: 'null' }, 0],
    ['a member, when none casts', { type: ['null', 'array'] }, 5],
    ['a list, of a list with one wrong item', { type: 'array', items: { type: 'integer' } }, [1, 'x']],
  ])('never %s', (_, schema, value) =>
    expect(() => to(schema, value)).toThrow(expect.objectContaining({ code: 'FLOW_CAST' })),
  )

  it('or the error says what was wanted and where, and not the value', () => {
    expect(() => to({ type: 'array', items: { type: 'integer' } }, [1, 'secret'])).toThrow(
      'input "x" of node "pay"[1] must be integer, and a string cannot become that.',
    )
  })
})

describe('text that a model or a tool wrote', () => {
  it.each<[object, Json, Json]>([
    [{ type: 'integer' }, '42', 42],
    [{ type: 'boolean' }, 'true', true],
    [{ type: 'array', items: { type: 'integer' } }, '[1, 2]', [1, 2]],
    [{ type: 'object', properties: { a: { type: 'integer' } } }, '{"a": "7"}', { a: 7 }],
    [{ type: 'string' }, '42', '42'],
  ])('is read as %j: %j', (schema, value, wanted) => expect(to(schema, value, { parse: true })).toEqual(wanted))

  it.each<[object, Json]>([
    [{ type: 'integer' }, 'about 42'],
    [{ type: 'integer' }, '"42"'],
    [{ type: 'object' }, '[]'],
  ])('is refused as %j when it is not: %j', (schema, value) =>
    expect(() => to(schema, value, { parse: true })).toThrow(expect.objectContaining({ code: 'FLOW_CAST' })),
  )
})
