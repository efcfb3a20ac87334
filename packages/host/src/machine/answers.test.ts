import type { JsonObject } from '@sluice/core'
import { describe, expect, it } from 'vitest'
import { checkAnswer } from './answers.ts'

describe('the check of answers', () => {
  it.each([
    { name: 'what fits', schema: { type: 'boolean' } as JsonObject, value: true },
    { name: 'anything, where the schema says nothing', schema: {}, value: { any: ['thing', null] } },
  ])('takes $name', async ({ schema, value }) => {
    await checkAnswer(schema, value)
  })

  it('refuses what does not fit, and says where', async () => {
    const schema = { type: 'object', properties: { amount: { type: 'number' } }, required: ['amount'] }
    await expect(checkAnswer(schema, { amount: 'much' })).rejects.toMatchObject({
      code: 'SCHEMA_MISMATCH',
      message: expect.stringMatching(/amount: must be number/),
    })
  })

  it.each<{ name: string; schema: JsonObject }>([
    { name: 'a schema that is none', schema: { type: 'truth' } },
    { name: 'a pattern that is none here', schema: { type: 'string', pattern: '^(?=a)' } },
  ])('takes nothing by $name', async ({ schema }) => {
    await expect(checkAnswer(schema, 'anything')).rejects.toMatchObject({
      code: 'JSON_SCHEMA',
      message: expect.stringContaining('the schema of the question is no JSON Schema'),
    })
  })

  it('still tells right from wrong after a schema that calls itself the schema of schemas', async () => {
    const $id = 'https://json-schema.org/draft/2020-12/schema'
    await checkAnswer({ $id, type: 'string' }, 'a').catch(() => {})
    await checkAnswer({ type: 'boolean' }, true)
    await expect(checkAnswer({ type: 'boolean' }, 'yes')).rejects.toMatchObject({ code: 'SCHEMA_MISMATCH' })
  })
})
