import { describe, expect, it } from 'vitest'
import { agent, shortFaults, shortWarnings, start, typed } from '../document.fixture.ts'

const faultsWith = (...inputs: readonly unknown[]) => shortFaults({ ...start(...(inputs as object[])), name: 'start' })

describe('a property', () => {
  it.each(['a', 'user_input', 'Ω', 'with-dash', 'a:b', 'x1'])('may have the title "%s"', async (title) =>
    expect(await faultsWith({ title })).toEqual([]),
  )

  it.each(['', 'two words', 'a.b', 'a,b', '{a}', "it's", '"a"', 'a\nb'])('may not have the title %j', async (title) =>
    expect(await faultsWith({ title })).toEqual(['FLOW_TITLE $.inputs[0]']),
  )

  it('needs a title', async () => expect(await faultsWith({ type: 'string' })).toEqual(['FLOW_TITLE $.inputs[0]']))

  it.each(['_chat_history', '_resume'])('N5: may not be named %s', async (title) =>
    expect(await faultsWith({ title })).toEqual(['FLOW_TITLE_RESERVED $.inputs[0]']),
  )

  it('is alone with its title', async () =>
    expect(await faultsWith({ title: 'a' }, { title: 'b' }, { title: 'a' })).toEqual(['FLOW_TITLE_TWICE $.inputs[2]']))

  it('has a type that is one, all the way down', async () =>
    expect(await faultsWith(typed('a', 'text'), typed('b', 'array', { items: { anyOf: [{ type: 'str' }] } }))).toEqual([
      'FLOW_SCHEMA_TYPE $.inputs[0].type',
      'FLOW_SCHEMA_TYPE $.inputs[1].items.anyOf[0].type',
    ]))

  it.each([
    { type: 'integer', value: 1.5 },
    { type: 'integer', value: '1' },
    { type: 'string', value: 1 },
    { type: 'boolean', value: 0 },
    { type: 'array', value: {} },
    { type: ['string', 'null'], value: 1 },
  ])('has a default of its type: $value is no $type', async ({ type, value }) =>
    expect(await faultsWith(typed('a', type, { default: value }))).toEqual(['FLOW_DEFAULT $.inputs[0].default']),
  )

  it.each([
    { type: 'number', value: 1 },
    { type: ['string', 'null'], value: null },
    { type: undefined, value: [1] },
  ])('has a default of its type: $value is $type', async ({ type, value }) =>
    expect(await faultsWith(typed('a', type, { default: value }))).toEqual([]),
  )

  it.each(['a', null, 5, []])('is a schema, not %j', async (input) =>
    expect(await faultsWith(input)).toEqual(['FLOW_FIELD_TYPE $.inputs[0]']),
  )

  it.each(['allOf', 'oneOf'])('with %s is of any type, with a warning', async (keyword) =>
    expect(await shortWarnings(agent({ inputs: [{ title: 'a', [keyword]: [{ type: 'string' }] }] }))).toEqual([
      `FLOW_SCHEMA_OPAQUE $.inputs[0].${keyword}`,
    ]),
  )
})
