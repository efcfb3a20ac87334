import { describe, expect, it } from 'vitest'
import { messageOf, SluiceError, showError } from '../index.ts'

describe('a SluiceError', () => {
  it('has a stable code, a text for people, where it happened as plain data, and its cause', () => {
    const cause = new Error('no disk')
    const error = new SluiceError('STATE_UPDATE', 'node "a" wrote nonsense.', { node: 'a' }, cause)
    expect(error).toMatchObject({ name: 'SluiceError', code: 'STATE_UPDATE', at: { node: 'a' }, cause })
    expect(error).toBeInstanceOf(Error)
  })
  it('has no cause where there is none, not an undefined one', () => {
    expect(Object.hasOwn(new SluiceError('X', 'x'), 'cause')).toBe(false)
  })
})

describe('what is shown of an error', () => {
  const unreadable = {
    get message(): string {
      throw new Error('look elsewhere')
    },
  }
  it.each([
    { name: 'an error', thrown: new TypeError('no'), shown: { name: 'TypeError', message: 'no' } },
    {
      name: 'its code',
      thrown: new SluiceError('A_CODE', 'no'),
      shown: { name: 'SluiceError', message: 'no', code: 'A_CODE' },
    },
    {
      name: 'no code that is no text',
      thrown: Object.assign(new Error('no'), { code: 7 }),
      shown: { name: 'Error', message: 'no' },
    },
    {
      name: 'no message that is no text',
      thrown: Object.assign(new Error('x'), { message: { a: 1 } }),
      shown: { name: 'Error', message: 'Error: [object Object]' },
    },
    { name: 'a text', thrown: 'just text', shown: { name: 'Error', message: 'just text' } },
    { name: 'nothing', thrown: undefined, shown: { name: 'Error', message: 'undefined' } },
    {
      name: 'a plain object that speaks like an error',
      thrown: { name: 'Odd', message: 'no', code: 'E1' },
      shown: { name: 'Odd', message: 'no', code: 'E1' },
    },
    {
      name: 'an object without words',
      thrown: Object.create(null),
      shown: { name: 'Error', message: 'something that cannot be shown was thrown' },
    },
    {
      name: 'an object that throws when it is read',
      thrown: unreadable,
      shown: { name: 'Error', message: '[object Object]' },
    },
  ])('is $name', ({ thrown, shown }) => {
    expect(showError(thrown)).toEqual(shown)
    expect(messageOf(thrown)).toBe(shown.message)
  })
  it('is never a stack nor a cause', () => {
    expect(Object.keys(showError(new Error('no', { cause: new Error('why') })))).toEqual(['name', 'message'])
  })
})
