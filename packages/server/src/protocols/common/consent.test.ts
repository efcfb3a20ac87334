import { describe, expect, it } from 'vitest'
import { consentTo } from './consent.ts'

const object = (properties: object, required: readonly string[] = []) => ({ type: 'object', properties, required })
const bool = { type: 'boolean' }
const text = { type: 'string' }

const to = (schema: object | undefined, approved: boolean, reason?: string, askedBy = 'policy:Gate') =>
  consentTo({ askedBy, schema } as never, approved, reason)

describe('the answer that says yes, and the one that says no', () => {
  it.each([
    { name: 'a boolean', schema: bool, yes: true, no: false },
    { name: 'a choice with such words', schema: { enum: ['approve', 'edit', 'deny'] }, yes: 'approve', no: 'deny' },
    {
      name: 'a member that is named for it',
      schema: object({ approved: bool }, ['approved']),
      yes: { approved: true },
      no: { approved: false },
    },
    {
      name: 'a member with such words, among others',
      schema: object({ note: text, action: { enum: ['reject', 'accept'] } }),
      yes: { action: 'accept' },
      no: { action: 'reject' },
    },
    {
      name: 'one of several shapes',
      schema: { anyOf: [object({ action: { const: 'approve' } }), object({ action: { const: 'deny' } })] },
      yes: { action: 'approve' },
      no: { action: 'deny' },
    },
  ])('of $name', ({ schema, yes, no }) => {
    expect([to(schema, true), to(schema, false)]).toEqual([yes, no])
  })

  it.each([
    { name: 'no schema', schema: undefined },
    { name: 'a text', schema: text },
    { name: 'a number', schema: { type: 'number' } },
    { name: 'a choice of other things', schema: { enum: ['red', 'blue'] } },
    { name: 'a boolean that says something else', schema: object({ dryRun: bool }) },
    {
      name: 'a member beside which another is needed',
      schema: object({ approved: bool, by: text }, ['approved', 'by']),
    },
  ])('are none for $name', ({ schema }) => {
    expect([to(schema, true), to(schema, false)]).toEqual([undefined, undefined])
  })

  it('carry a reason where there is a place for it', () => {
    expect(to(object({ approved: bool, reason: text }), false, 'too much')).toEqual({
      approved: false,
      reason: 'too much',
    })
    expect(to(object({ approved: bool }), false, 'too much')).toEqual({ approved: false })
  })

  it('of a call that was cut off: make it again, or let it fail', () => {
    expect([to(undefined, true, undefined, 'engine'), to(undefined, false, undefined, 'engine')]).toEqual([
      'retry',
      'skip',
    ])
  })
})
