import { describe, expect, it } from 'vitest'
import { readAnswers } from './answers.ts'

const byKey = (entries: object) => new Map(Object.entries(entries))

describe('the answers of --answer', () => {
  it.each([
    { name: 'JSON alone', given: ['{"approved":true}'], read: { approved: true } },
    { name: 'null alone', given: ['null'], read: null },
    { name: 'a text alone, with "=" in it', given: ['"a=b"'], read: 'a=b' },
    { name: 'one by its key', given: ['review:approve=true'], read: byKey({ 'review:approve': true }) },
    { name: 'several', given: ['a=1', 'b="x"'], read: byKey({ a: 1, b: 'x' }) },
    { name: 'a value with "=" in it', given: ['a={"x":"y=1"}'], read: byKey({ a: { x: 'y=1' } }) },
    { name: 'a key with "=" in it', given: ['a=b:q=true'], read: byKey({ 'a=b:q': true }) },
    { name: 'a key that is JSON itself', given: ['5=6'], read: byKey({ 5: 6 }) },
  ])('are $name', ({ given, read }) => expect(readAnswers(given)).toEqual(read))

  it.each([
    {
      name: 'a text without quotes',
      given: ['key=yes'],
      says: `yes is no JSON; a text stands in quotes: --answer 'key="yes"'`,
    },
    { name: 'a text alone without quotes', given: ["it's"], says: `--answer '"it'\\''s"'` },
    { name: 'the … of the command that we print', given: ['key=…'], says: 'put the answer in the place of "…"' },
    { name: 'nothing', given: ['key='], says: 'nothing stands after "key="' },
    { name: 'an empty word', given: [''], says: 'it is empty' },
    { name: 'JSON with a fault', given: ['key={"a":}'], says: '{"a":} is no JSON: Unexpected token' },
    { name: 'one question twice', given: ['a=1', 'a=2'], says: '"a" is answered twice' },
    { name: 'two values alone', given: ['1', '2'], says: '1 does not say what it answers' },
    { name: 'a value alone beside one by key', given: ['a=1', '2'], says: '2 does not say what it answers' },
  ])('are refused: $name', ({ given, says }) =>
    expect(() => readAnswers(given)).toThrow(
      expect.objectContaining({ code: 'CLI_ANSWER', message: expect.stringContaining(says) }),
    ),
  )
})
