import type { JsonObject } from '@sluice/core'
import { describe, expect, it } from 'vitest'
import { answering } from './answer.ts'

const approval = (required: readonly string[] = ['approved']) => ({
  type: 'object',
  properties: { approved: { type: 'boolean' }, why: { type: 'string' } },
  required: [...required],
})

describe('an answer at the prompt', () => {
  it.each<{ name: string; schema: JsonObject | undefined; line: string; is: unknown }>([
    { name: 'yes, where a boolean is wanted', schema: { type: 'boolean' }, line: ' Yes ', is: true },
    { name: 'no, where a boolean is wanted', schema: { type: 'boolean' }, line: 'n', is: false },
    { name: 'yes, where approval is wanted', schema: approval(), line: 'y', is: { approved: true } },
    { name: 'no, where approval is wanted', schema: approval([]), line: 'no', is: { approved: false } },
    {
      name: 'JSON, where approval may have a reason',
      schema: approval(),
      line: '{"approved":false,"why":"late"}',
      is: { approved: false, why: 'late' },
    },
    { name: 'a choice by its name', schema: { enum: ['refund', 'keep'] }, line: 'keep', is: 'keep' },
    { name: 'a choice by its place', schema: { enum: ['refund', 'keep'] }, line: '1', is: 'refund' },
    { name: 'a choice that is a number, by its name', schema: { enum: [2, 1] }, line: '1', is: 1 },
    { name: 'a text, where one is wanted', schema: { type: 'string' }, line: '"so", he said', is: '"so", he said' },
    {
      name: 'JSON, where more than approval is wanted',
      schema: approval(['approved', 'why']),
      line: '{"approved":true,"why":"ok"}',
      is: { approved: true, why: 'ok' },
    },
    { name: 'JSON, where nothing is said', schema: undefined, line: '[1]', is: [1] },
  ])('is $name', ({ schema, line, is }) => expect(answering(schema).read(line)).toEqual(is))

  it.each<{ name: string; schema: JsonObject | undefined; line: string; says: RegExp }>([
    { name: 'neither yes nor no', schema: approval(), line: 'maybe', says: /type yes or no/ },
    { name: 'nothing, where approval is wanted', schema: approval(), line: '', says: /type yes or no/ },
    { name: 'no choice', schema: { enum: ['refund', 'keep'] }, line: '3x', says: /type one of 1 refund, 2 keep/ },
    { name: 'no JSON', schema: undefined, line: 'yes', says: /type JSON/ },
  ])('is asked for again: $name', ({ schema, line, says }) => expect(() => answering(schema).read(line)).toThrow(says))
})
