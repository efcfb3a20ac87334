import { type JsonObject, tool, validate } from '@sluice/core'
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

  describe.each([
    { dialect: '2020-12', $schema: 'https://json-schema.org/draft/2020-12/schema' },
    { dialect: 'draft 7', $schema: 'http://json-schema.org/draft-07/schema#' },
  ])('of $dialect', ({ $schema }) => {
    const $id = $schema.replace('#', '')

    it.each<{ name: string; schema: JsonObject }>([
      { name: 'that has the name of its dialect', schema: { $id, type: 'string' } },
      { name: 'that has it further in', schema: { properties: { a: { $id, type: 'string' } } } },
      { name: 'that is none and has the name of its dialect', schema: { $id, type: 'txt' } },
      { name: 'that has an $anchor', schema: { $defs: { a: { $anchor: 'here', type: 'string' } }, $ref: '#here' } },
    ])('$name is nothing to those after it', async ({ schema }) => {
      await jsonSchema({ $schema, ...schema }).catch(() => {})
      expect(await issuesOf({ $schema, type: 'string' }, 'a')).toBeUndefined()
      expect(await issuesOf({ $schema, type: 'string' }, 1)).toHaveLength(1)
      await expect(jsonSchema({ $schema, type: 'txt' })).rejects.toMatchObject({ code: 'JSON_SCHEMA' })
    })

    it('cannot be told from another by what that one names', async () => {
      const inner = 'https://example.org/inner'
      await jsonSchema({ $schema, properties: { a: { $id: inner, type: 'string' } } })
      await expect(jsonSchema({ $schema, properties: { a: { $ref: inner } } })).rejects.toMatchObject({
        code: 'JSON_SCHEMA',
        message: expect.stringContaining(inner),
      })
      expect(await issuesOf({ $schema, properties: { a: { $id: inner, type: 'number' } } }, { a: 'x' })).toHaveLength(1)
    })

    it('may be about schemas', async () => {
      expect(await issuesOf({ $schema, $ref: $schema }, { type: 'string' })).toBeUndefined()
      expect(await issuesOf({ $schema, $ref: $schema }, { type: 'txt' })).not.toHaveLength(0)
    })
  })

  it.each(['http://json-schema.org/draft-04/schema#', 'https://json-schema.org/draft/2020-12/schema#/$defs', 7])(
    'of another dialect is refused: %s',
    async ($schema) => {
      await expect(jsonSchema({ $schema })).rejects.toMatchObject({
        code: 'JSON_SCHEMA',
        message: expect.stringContaining('is neither 2020-12 nor draft 7'),
      })
    },
  )

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

describe('a pattern of a JSON Schema', () => {
  it.each([
    { pattern: '^(a+)+$', fits: 'aaa', not: `${'a'.repeat(60)}!` },
    { pattern: 'b', fits: 'abc', not: 'ac' },
    { pattern: '^[\\u4e00-\\u9fff]\\/[\\w\\-]$', fits: '\u4e2d/-', not: 'a/-' },
    { pattern: '^(?<year>\\d{4})-\\d{2}$', fits: '2026-12', not: '2026-12\n' },
    { pattern: '^.$', fits: '\u{1f600}', not: 'ab' },
  ])('is matched, in linear time: $pattern', async ({ pattern, fits, not }) => {
    expect(await issuesOf({ pattern }, fits)).toBeUndefined()
    expect(await issuesOf({ pattern }, not)).toEqual([{ message: `must match pattern "${pattern}"`, path: [] }])
    const named = { patternProperties: { [pattern]: { type: 'number' } } }
    expect(await issuesOf(named, { [not]: 'x' })).toBeUndefined()
    expect(await issuesOf(named, { [fits]: 'x' })).toHaveLength(1)
  })

  it.each(['(?=a)', '(?<!a)b', '(a)\\1', 'a{1001}'])(
    'that cannot be is refused, with the mend: %s',
    async (pattern) => {
      const deep = { properties: { a: { patternProperties: { [pattern]: {} } } } }
      for (const schema of [{ pattern }, deep] as readonly JsonObject[]) {
        await expect(jsonSchema(schema, 'the schema of tool "pay"')).rejects.toMatchObject({
          code: 'JSON_SCHEMA',
          message: expect.stringMatching(
            /^the schema of tool "pay" is no JSON Schema: the pattern .* cannot be matched in linear time: .*Write it without/,
          ),
        })
      }
    },
  )

  it.each(['(', '(?i)a', '\\A'])('that is none is refused: %s', async (pattern) => {
    await expect(jsonSchema({ pattern })).rejects.toMatchObject({ code: 'JSON_SCHEMA' })
  })

  it('may be the name of a property', async () => {
    const schema = { properties: { pattern: { type: 'string' } } }
    expect(await issuesOf(schema, { pattern: '(?=a)' })).toBeUndefined()
  })
})
