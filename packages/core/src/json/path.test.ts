import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Json } from './json.ts'
import { own } from './own.ts'
import { changesBetween, covers, layOver, pathOf, project, readPath } from './path.ts'

const paths = (...texts: readonly string[]) => texts.map((text) => readPath(text))
const question = { role: 'user', content: 'hi' }
const reply = { role: 'assistant', content: 'yes' }
const a = { url: 'x', secret: 1 }
const value = own({ cmd: 'ls', args: { a, b: { url: 'y' } }, messages: [question, reply] })

describe('a path', () => {
  it.each([
    { name: 'an empty text', path: '' },
    { name: 'an empty part', path: 'args..url' },
    { name: 'a dot at the end', path: 'args.' },
    { name: '__proto__', path: 'args.__proto__' },
    { name: 'no text', path: 5 },
  ])('is refused: $name', ({ path }) => {
    expect(() => readPath(path, '"fields" of policy "Gate"')).toThrow(
      expect.objectContaining({ code: 'JSON_PATH', message: expect.stringMatching(/^"fields" of policy "Gate" is /) }),
    )
  })
})

describe('a projection', () => {
  it.each<{ name: string; of: readonly string[]; shows: Json }>([
    { name: 'a member', of: ['cmd'], shows: { cmd: 'ls' } },
    { name: 'each of some members', of: ['args.*.url'], shows: { args: { a: { url: 'x' }, b: { url: 'y' } } } },
    { name: 'an item, with null for the others', of: ['messages.1'], shows: { messages: [null, reply] } },
    {
      name: 'a part of each item',
      of: ['messages.*.content'],
      shows: { messages: [{ content: 'hi' }, { content: 'yes' }] },
    },
    { name: 'nothing where nothing is named', of: ['other', 'cmd.length'], shows: {} },
    { name: 'several paths, one inside the other', of: ['args.a', 'args.a.url'], shows: { args: { a } } },
  ])('shows $name', ({ of, shows }) => expect(project(value, paths(...of))).toEqual(shows))

  it('of a text or a list of which nothing is named shows nothing of it', () => {
    expect(project('secret', paths('a'))).toBeNull()
    expect(project(own(['secret']), paths('a'))).toEqual([null])
  })

  it('is the very same object where it hides nothing', () => {
    expect(project(value, paths('*'))).toBe(value)
    expect(project(value, paths('cmd', 'args', 'messages.*.role', 'messages.*.content'))).toBe(value)
  })
})

describe('an edited projection laid over its value', () => {
  const lay = (of: readonly string[], edit: (shown: never) => Json) => {
    const shown = project(value, paths(...of))
    return layOver(value, shown, edit(shown as never))
  }
  it('changes what was shown and keeps the rest', () => {
    expect(lay(['args.*.url'], () => ({ args: { a: { url: 'z' }, b: { url: 'y' } } }))).toEqual({
      ...(value as object),
      args: { a: { url: 'z', secret: 1 }, b: { url: 'y' } },
    })
    expect(lay(['messages.*.content'], () => ({ messages: [{ content: 'hi' }, { content: 'no' }] }))).toEqual({
      ...(value as object),
      messages: [question, { role: 'assistant', content: 'no' }],
    })
  })
  it('takes away what was shown and is left out, and adds what is new', () => {
    const { cmd: _, ...rest } = value as { cmd: Json }
    expect(lay(['cmd'], () => ({ also: 1 }))).toEqual({ ...rest, also: 1 })
  })
  it('may make a list longer that was shown as a whole, and not one that was shown in part', () => {
    const longer = { messages: [{ content: 'hi' }, { content: 'yes' }, { content: 'more' }] }
    expect(lay(['messages'], () => longer)).toMatchObject(longer)
    expect(() => lay(['messages.*.content'], () => longer)).toThrow(
      'it changed how many items "messages" has, of which it is shown parts only',
    )
  })
  it('may not make something else of what it was shown in part', () => {
    expect(() => lay(['args.a.url'], () => ({ args: 5 }))).toThrow('it made something else of "args"')
  })
})

describe('changes', () => {
  it('are told by the deepest places that differ', () => {
    const after = own({ cmd: 'ls', args: { a: { url: 'q', secret: 1 }, c: {} }, messages: [question] })
    expect(changesBetween(value, after).map(pathOf)).toEqual(['args.a.url', 'args.b', 'args.c', 'messages.1'])
  })
  it('are covered by a path to them, or to what they stand in', () => {
    expect(covers(paths('args.*.url'), readPath('args.a.url'))).toBe(true)
    expect(covers(paths('args'), readPath('args.a.url'))).toBe(true)
    expect(covers(paths('args.a.url'), readPath('args.a'))).toBe(false)
    expect(covers(paths('args.b'), readPath('args.a'))).toBe(false)
  })
})

const key = fc.constantFrom('a', 'b', '0', '1')
const somePaths = fc.array(fc.array(fc.oneof(key, fc.constant('*')), { minLength: 1, maxLength: 3 }), { maxLength: 4 })
/** Numbers in lists and objects whose keys the paths may name. */
const { tree: someValue } = fc.letrec<{ tree: Json }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.integer({ min: 0, max: 3 }),
    fc.array(tie('tree'), { maxLength: 3 }),
    fc.dictionary(key, tie('tree'), { maxKeys: 3, noNullPrototype: true }),
  ),
}))

describe('whatever the value and the paths', () => {
  it('a projection laid back unchanged is the value', () => {
    const property = fc.property(someValue, somePaths, (any, of) => {
      const full = own(any)
      expect(layOver(full, project(full, of), own(JSON.parse(JSON.stringify(project(full, of)))))).toEqual(full)
    })
    fc.assert(property)
  })
  it('nothing is shown but what a path names', () => {
    const property = fc.property(someValue, somePaths, (any, of) => {
      const shown = project(own(any), of)
      for (const place of changesBetween(
        withEach(shown, () => null),
        shown,
      ))
        expect(covers(of, place)).toBe(true)
    })
    fc.assert(property)
  })
  it('an edit of all that is shown changes that, and nothing else', () => {
    const property = fc.property(someValue, somePaths, (any, of) => {
      const full = own(any)
      const edited = withEach(project(full, of), (leaf) => (leaf as number) + 1)
      const laid = layOver(full, project(full, of), edited)
      const everything = withEach(full, (leaf) => (leaf as number) + 1)
      const expected = changesBetween(full, everything).filter((place) => covers(of, place))
      expect(changesBetween(full, laid)).toEqual(expected)
    })
    fc.assert(property)
  })
})

/** The same shape, with something else in place of each number. */
function withEach(value: Json, make: (leaf: Json) => Json): Json {
  if (Array.isArray(value)) return value.map((item) => withEach(item, make))
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, withEach(member, make)]))
  return value === null ? null : make(value)
}
