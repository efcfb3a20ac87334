import type { JsonObject } from '@sluice/core'
import { describe, expect, it } from 'vitest'
import { inputsOf } from './inputs.ts'

const text = (title: string, more: object = {}) => ({ title, type: 'string', ...more })
const number = (title: string) => ({ title, type: 'number' })

describe('a line that is typed', () => {
  it.each<{ name: string; line: string; declared: readonly JsonObject[]; given?: JsonObject; is: JsonObject }>([
    { name: 'the one text of a flow', line: 'hi {', declared: [text('q')], is: { q: 'hi {' } },
    {
      name: 'the one text that is needed',
      line: 'hi',
      declared: [text('q'), text('tone', { default: 'kind' })],
      is: { q: 'hi' },
    },
    { name: 'the one text that may be given', line: 'hi', declared: [text('q', { default: '' })], is: { q: 'hi' } },
    {
      name: 'the one text that --input leaves',
      line: 'hi',
      declared: [text('q'), text('tone')],
      given: { tone: 'dry' },
      is: { tone: 'dry', q: 'hi' },
    },
    {
      name: 'JSON of several inputs',
      line: '{"a":"x","n":2}',
      declared: [text('a'), number('n')],
      is: { a: 'x', n: 2 },
    },
    {
      name: 'JSON of those that --input leaves, and of others',
      line: '{"n":2}',
      declared: [text('a'), number('n'), text('b')],
      given: { a: 'x' },
      is: { a: 'x', n: 2 },
    },
    { name: 'JSON of the one input that is no text', line: '5', declared: [number('n')], is: { n: 5 } },
    { name: 'nothing, of a flow that takes nothing', line: '{}', declared: [], is: {} },
  ])('is $name', ({ line, declared, given = {}, is }) => expect(inputsOf(line, declared, given)).toEqual(is))

  it.each([
    {
      name: 'a text where several are needed',
      line: 'hi',
      declared: [text('a'), text('b')],
      says: /takes a, b: type them as a JSON object/,
    },
    { name: 'a text where a number is needed', line: 'five', declared: [number('n')], says: /takes n/ },
    { name: 'a text where nothing is needed', line: 'hi', declared: [], says: /takes no text/ },
  ])('is refused: $name', ({ line, declared, says }) => expect(() => inputsOf(line, declared, {})).toThrow(says))
})
