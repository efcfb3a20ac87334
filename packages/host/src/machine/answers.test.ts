import type { JsonObject } from '@sluice/core'
import { describe, expect, it } from 'vitest'
import { answerCheck } from './answers.ts'

function checking() {
  const warnings: string[] = []
  return { warnings, check: answerCheck((message) => warnings.push(message)) }
}

describe('the check of answers', () => {
  it.each([
    { name: 'what fits', schema: { type: 'boolean' } as JsonObject, value: true },
    { name: 'anything, where the schema says nothing', schema: {}, value: { any: ['thing', null] } },
  ])('takes $name', async ({ schema, value }) => {
    const { check, warnings } = checking()
    await check(schema, value)
    expect(warnings).toEqual([])
  })

  it('refuses what does not fit, and says where', async () => {
    const { check } = checking()
    const schema = { type: 'object', properties: { amount: { type: 'number' } }, required: ['amount'] }
    await expect(check(schema, { amount: 'much' })).rejects.toMatchObject({
      code: 'SCHEMA_MISMATCH',
      message: expect.stringMatching(/amount: must be number/),
    })
  })

  it('tells of a schema that is none, and takes the answer', async () => {
    const { check, warnings } = checking()
    await check({ type: 'truth' }, 'anything')
    expect(warnings).toEqual([expect.stringMatching(/not checked: the schema of a question is no JSON Schema/)])
  })
})
