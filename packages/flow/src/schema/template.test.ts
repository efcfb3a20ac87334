import { describe, expect, it } from 'vitest'
import { placeholders, render } from './template.ts'

describe('a template', () => {
  it('asks for each name once, in order', () => {
    expect(placeholders('{{b}} {{ a }} {{  b  }} { c } {{d.e}} {{ f g }} {{}}')).toEqual(['b', 'a'])
  })

  it.each([
    { name: 'text as it is', template: 'Hi {{ who }}!', values: { who: 'Ada' }, gives: 'Hi Ada!' },
    {
      name: 'other values as JSON text',
      template: '{{a}} {{b}} {{c}}',
      values: { a: 1, b: [true], c: { d: 'e' } },
      gives: '1 [true] {"d":"e"}',
    },
    { name: 'null as nothing', template: '[{{a}}]', values: { a: null }, gives: '[]' },
    { name: 'what is unknown stays', template: '{{a}} {{b}}', values: { a: 'x' }, gives: 'x {{b}}' },
    {
      name: 'what comes in is not read again',
      template: '{{a}}{{b}}',
      values: { a: '{{b}}', b: 'x' },
      gives: '{{b}}x',
    },
    { name: 'what comes in has no special letters', template: '{{a}}', values: { a: "$& $1 $'" }, gives: "$& $1 $'" },
    { name: 'inherited names are unknown', template: '{{constructor}}', values: {}, gives: '{{constructor}}' },
  ])('takes $name', ({ template, values, gives }) => expect(render(template, values)).toBe(gives))
})
