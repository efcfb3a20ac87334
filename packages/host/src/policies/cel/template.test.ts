import type { Json } from '@sluice/core'
import { describe, expect, it } from 'vitest'
import type { Site } from './shown.ts'
import { compileTemplate } from './template.ts'

const SITE: Site = { seam: 'toolCall', half: 'before', use: 'rule' }
const VALUES = {
  subject: { toolName: 'shell' },
  labels: [],
  input: { cmd: 'ls', n: 2, deep: { list: [1] } },
  attempt: 2,
}

function make(template: Json): Json {
  const compiled = compileTemplate(template, SITE, 'it', (_, fault) => {
    throw fault
  })
  return compiled(VALUES)
}

function faultsOf(template: Json) {
  const faults: unknown[] = []
  compileTemplate(template, SITE, 'it', (path, { message, index }) => faults.push({ path, message, index }))
  return faults
}

describe('a template', () => {
  it.each<{ name: string; template: Json; gives: Json }>([
    { name: 'plain values stay', template: { a: [1, true, null, 'b'] }, gives: { a: [1, true, null, 'b'] } },
    { name: 'one expression gives its value, of any type', template: '${input.deep}', gives: { list: [1] } },
    { name: 'whole numbers are numbers', template: ['${size(input.cmd)}', '${500 * attempt}'], gives: [2, 1000] },
    {
      name: 'in a longer text it is put in as text',
      template: 'no ${input.cmd} (${input.n}), ${[1]}',
      gives: 'no ls (2), [1]',
    },
    { name: 'braces and quotes inside are its own', template: '${{"a}": "}"}}', gives: { 'a}': '}' } },
    { name: '$${ is text', template: 'costs $${input.n}', gives: 'costs ${input.n}' },
    { name: 'an empty text', template: '', gives: '' },
    { name: 'a dollar alone', template: '5 $ and {x}', gives: '5 $ and {x}' },
  ])('$name', ({ template, gives }) => expect(make(template)).toEqual(gives))

  it('tells each fault with the way to its text and the place in it', () => {
    expect(faultsOf({ a: ['x ${foo}', '${input.'], b: 'open ${' })).toEqual([
      { path: ['a', 0], index: 4, message: expect.stringContaining('there is no "foo"') },
      { path: ['a', 1], index: 0, message: expect.stringContaining('is not closed') },
      { path: ['b'], index: 5, message: expect.stringContaining('is not closed') },
    ])
  })
  it('refuses to make what is not JSON', () => {
    expect(() => make('${timestamp("2026-01-01T00:00:00Z")}')).toThrow('it gives something that is not JSON.')
  })
})
