import { tool, validate } from '@sluice/core'
import { describe, expect, it } from 'vitest'
import { jsonSchema } from './json-schema.ts'

const PAYMENT = {
  type: 'object',
  properties: {
    amount: { type: 'number', exclusiveMinimum: 0 },
    currency: { enum: ['CHF', 'EUR'], default: 'CHF' },
    tags: { type: 'array', items: { type: 'string' }, default: [] },
  },
  required: ['amount'],
  additionalProperties: false,
}

const issuesOf = async (schema: object, value: unknown) =>
  (await (await jsonSchema(schema as never))['~standard'].validate(value)).issues

describe('a JSON Schema as a validator', () => {
  it('fills in defaults, on a copy', async () => {
    const value = Object.freeze({ amount: 5 })
    expect(validate(await jsonSchema(PAYMENT), value, 'the payment')).toEqual({ amount: 5, currency: 'CHF', tags: [] })
    expect(value).toEqual({ amount: 5 })
  })

  it('says everything that is wrong, with its path', async () => {
    expect(await issuesOf(PAYMENT, { amount: 0, currency: 'USD', tags: ['a', 1], 'a/b': 1 })).toEqual([
      { message: 'must NOT have additional properties: "a/b"', path: [] },
      { message: 'must be > 0', path: ['amount'] },
      { message: 'must be equal to one of the allowed values: "CHF", "EUR"', path: ['currency'] },
      { message: 'must be string', path: ['tags', 1] },
    ])
    expect(await issuesOf(PAYMENT, {})).toEqual([{ message: "must have required property 'amount'", path: [] }])
  })

  it('knows dialect 2020-12, and draft 7 where it is named', async () => {
    const tuple = { type: 'array', prefixItems: [{ type: 'string' }], items: false }
    expect(await issuesOf(tuple, ['a'])).toBeUndefined()
    expect(await issuesOf(tuple, ['a', 'b'])).toHaveLength(1)
    const old = {
      $schema: 'http://json-schema.org/draft-07/schema#',
      type: 'array',
      items: [{ type: 'string' }],
      additionalItems: false,
    }
    expect(await issuesOf(old, ['a', 'b'])).toHaveLength(1)
  })

  it('takes formats and keywords it does not know as they are', async () => {
    expect(await issuesOf({ type: 'string', format: 'postcode', 'x-colour': 'red' }, 'x')).toBeUndefined()
  })

  it('may come again, under the same $id', async () => {
    const schema = { $id: 'https://example.org/x', type: 'string' }
    expect(await issuesOf({ ...schema }, 'a')).toBeUndefined()
    expect(await issuesOf({ ...schema, type: 'number' }, 'a')).toHaveLength(1)
  })

  it('that is none is refused, by name', async () => {
    await expect(jsonSchema({ type: 'txt' }, 'the schema of tool "pay"')).rejects.toMatchObject({
      code: 'JSON_SCHEMA',
      message: expect.stringContaining('the schema of tool "pay" is no JSON Schema'),
    })
  })

  it('tells a model what a tool takes', async () => {
    const pay = tool('pay', { description: 'Pays.', input: await jsonSchema(PAYMENT), run: () => null })
    expect(pay.parameters).toEqual(PAYMENT)
    expect(() => pay.readArguments({ amount: 'x' })).toThrow('amount: must be number')
  })
})
