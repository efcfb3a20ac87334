import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ChatMessage } from '../../index.ts'
import { conversationOf, cutsAt, placesIn } from './conversation.ts'

const m = (text: string, id?: string): ChatMessage => {
  const [role, content = ''] = text.split(':')
  const roles = { s: 'system', u: 'user', a: 'assistant', t: 'tool' } as const
  const message = { role: roles[role as 'u'] ?? 'user', content }
  if (role === 'c')
    return { role: 'assistant', content: '', tool_calls: [{ id: content, name: 'act', arguments: '{}' }] }
  return role === 't' ? { ...message, tool_call_id: content } : id === undefined ? message : { ...message, id }
}
const said = (text: string) => (text === '' ? [] : text.split(' ').map((word) => m(word)))

describe('the conversation of a request', () => {
  it.each([
    { name: 'is what the node received', given: 'u:a a:b', received: 'u:a a:b', is: 'u:a a:b' },
    { name: 'without a prompt before it', given: 's:p u:a a:b', received: 'u:a a:b', is: 'u:a a:b' },
    { name: 'with a stored system message', given: 's:p s:x u:a', received: 's:x u:a', is: 's:x u:a' },
    { name: 'and what was said since', given: 's:p u:a c:1 t:1', received: 'u:a', is: 'u:a c:1 t:1' },
    { name: 'also where nothing was stored', given: 's:p u:a', received: '', is: 'u:a' },
    { name: 'else all of it but a prompt', given: 's:p u:q', received: 'u:a a:b', is: 'u:q' },
  ])('$name: $given', ({ given, received, is }) => {
    expect(conversationOf(said(given), said(received), said(received))).toEqual(said(is))
  })

  it('has what is stored, where the node received something else', () => {
    expect(conversationOf(said('s:p u:hint u:a c:1 t:1'), said('u:hint u:a'), said('u:a'))).toEqual(said('u:a c:1 t:1'))
  })

  it('is all of it but a prompt where the state has no messages', () => {
    expect(conversationOf(said('s:p u:q'), undefined, undefined)).toEqual(said('u:q'))
  })
})

describe('a cut', () => {
  it.each([
    { text: 'u:a a:b u:c', cuts: [0, 1, 2, 3] },
    { text: 'u:a c:1 t:1 a:b', cuts: [0, 1, 3, 4] },
    { text: 'c:1 t:1 c:1 t:1', cuts: [0, 2, 4] },
    { text: 'c:1 u:b t:1 a:c', cuts: [0, 3, 4] },
    { text: 'c:1 u:b', cuts: [0, 1, 2] },
    { text: 't:1 u:b', cuts: [0, 1, 2] },
  ])('never falls between a call and its result: $text', ({ text, cuts }) => {
    const conversation = said(text)
    const allowed = cutsAt(conversation)
    expect(Array.from({ length: conversation.length + 1 }, (_, i) => i).filter(allowed)).toEqual(cuts)
  })
})

describe('the messages of a request', () => {
  it.each([
    { name: 'as they are', request: 'u:a a:b', places: [0, 1] },
    { name: 'after a prompt', request: 's:p u:a a:b', places: [-1, 0, 1] },
    { name: 'with one put in', request: 'u:a u:x a:b', places: [0, -1, 1] },
    { name: 'with one put before', request: 'u:x u:a a:b', places: [-1, 0, 1] },
    { name: 'with one put at the end', request: 'u:a a:b s:x', places: [0, 1, -1] },
    { name: 'with one that was changed', request: 's:p u:a a:x', places: [-1, 0, 1] },
    { name: 'with the first one changed', request: 's:p u:x a:b', places: [-1, 0, 1] },
    { name: 'with all of them changed', request: 's:p u:x a:x', places: [-1, 0, 1] },
    { name: 'with one left out', request: 'a:b', places: [1] },
    { name: 'with a copy of the last one put before', request: 'a:b u:a a:b', places: [-1, 0, 1] },
    { name: 'with one changed into another role', request: 'u:a u:x', places: [0, -1] },
  ])('are found in the conversation: $name', ({ request, places }) => {
    expect(placesIn(said(request), said('u:a a:b'))).toEqual(places)
  })

  const word = fc.constantFrom('u:a', 'a:b', 'u:c', 'a:d', 'u:e')
  it('are found in order, whatever others put in, and all of them', () => {
    const conversation = fc.array(word, { maxLength: 8 })
    const putIn = fc.array(fc.record({ at: fc.nat(8), what: fc.constantFrom('s:x', 'u:y') }), { maxLength: 4 })
    fc.assert(
      fc.property(conversation, putIn, (words, others) => {
        const request = words.map((text) => m(text))
        for (const { at, what } of others) request.splice(Math.min(at, request.length), 0, m(what))
        const places = placesIn(request, said(words.join(' ')))
        const found = places.filter((place) => place !== -1)
        expect(found).toEqual(words.map((_, i) => i))
        for (const [i, place] of places.entries())
          if (place !== -1) expect(request[i]).toEqual(m(words[place] as string))
      }),
    )
  })
})
