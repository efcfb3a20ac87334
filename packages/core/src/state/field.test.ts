import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { open, quiet } from '../../testing/clock.ts'
import { after } from '../../testing/fields.ts'
import { anyJson } from '../../testing/json.ts'
import {
  append,
  command,
  createRuntime,
  END,
  type Field,
  field,
  graph,
  type Json,
  type JsonObject,
  merge,
  messages,
  node,
  own,
  reduced,
  replaceWith,
  START,
  type StateType,
  send,
  state,
} from '../index.ts'

const runtime = createRuntime()

/** A graph whose nodes, called by their names, all write in one superstep. */
function together<S, U>(State: StateType<S, U>, updates: Record<string, unknown>) {
  const writers = Object.entries(updates).map(([name, update]) => node(name, State, () => update as never))
  const split = node('split', State, () => command<never>({ goto: writers }), { goto: writers })
  const builder = graph('g', State).edge(START, split)
  for (const writer of writers) builder.edge(writer, END)
  return builder.check()
}

describe('append(item)', () => {
  const list = append(z.number())
  it('adds what nodes return at the end of the list, which starts empty', async () => {
    expect(await after(list, [1], [], [2, 3])).toEqual([1, 2, 3])
  })
  it.each([
    { name: 'a set', update: new Set([1]), kind: 'an object' },
    { name: 'a generator', update: (function* () {})(), kind: 'an object' },
    { name: 'a text', update: 'abc', kind: 'a string' },
    { name: 'null', update: null, kind: 'null' },
    { name: 'an object', update: { 0: 1 }, kind: 'an object' },
  ])('A7: takes a list only: $name is refused', async ({ update, kind }) => {
    await expect(after(list, update)).rejects.toThrow(`append takes a list, not ${kind}; return [item].`)
  })
  it('A7: names the item that does not fit', async () => {
    await expect(after(list, [1, 'two'])).rejects.toThrow('wrote field "f": item 1 does not fit its schema')
  })
  it.each([
    { name: 'texts', item: z.string(), first: ['a'] },
    { name: 'objects', item: z.object({ a: z.number() }), first: [{ a: 1 }] },
  ])('is not given its own list back, which would double it: $name', async ({ item, first }) => {
    const State = state({ n: z.number().default(0), log: append(item as z.ZodType<unknown>) })
    const spread = node('spread', State, (s) => ({ ...s, n: 1 }))
    const running = runtime.run(graph('g', State).edge(START, spread).edge(spread, END).check(), { log: first })
    await expect(running).rejects.toThrow(
      'it was given its own current list; return the new items only, or replaceWith(list)',
    )
  })
  it('A6: limits the merged list, not the update, when it is given a schema of the whole; the error names all who wrote', async () => {
    const State = state({ few: append(z.number(), { whole: z.array(z.number()).max(3) }) })
    await expect(runtime.run(together(State, { b: { few: [1, 2] }, a: { few: [3, 4] } }), {})).rejects.toMatchObject({
      code: 'STATE_UPDATE',
      at: { field: 'few' },
      message: expect.stringContaining('nodes "a", "b" cannot be merged into field "few"'),
    })
    const once = await runtime.run(together(State, { a: { few: [1, 2, 3] } }), {})
    expect(once.state).toEqual({ few: [1, 2, 3] })
  })
})

describe('merge(entry)', () => {
  const scores = merge(z.number())
  it('sets the top-level keys that nodes return, one by one', async () => {
    expect(await after(scores, { a: 1, b: 2 }, { b: 3 }, {})).toEqual({ a: 1, b: 3 })
  })
  it('loses a key only with replaceWith', async () => {
    expect(await after(scores, { a: 1, b: 2 }, replaceWith({ b: 2 }))).toEqual({ b: 2 })
  })
  it.each([
    { update: [1], says: 'a merge field takes an object, not a list.' },
    { update: null, says: 'a merge field takes an object, not null.' },
    { update: { a: 'x' }, says: 'key "a" does not fit its schema' },
  ])('refuses $update', async ({ update, says }) => {
    await expect(after(scores, update)).rejects.toThrow(says)
  })
})

describe('reduced(schema, reduce)', () => {
  const sum = reduced(z.number().default(0), (current: number | undefined, update: number) => (current ?? 0) + update)
  it('makes the next value from the current one and what a node returned', async () => {
    expect(await after(sum, 2, 3)).toBe(5)
  })
  it('may be given updates of another type than the value', async () => {
    const longest = reduced(z.number().default(0), (current, word) => Math.max(current ?? 0, word.length), {
      update: z.string(),
    })
    expect(await after(longest, 'a', 'abc', 'ab')).toBe(3)
  })
  it('is checked: what it makes must fit the schema', async () => {
    const small = reduced(z.number().max(3).default(0), (current, update) => (current ?? 0) + update)
    await expect(after(small, 2, 2)).rejects.toThrow(
      'node "w1" cannot be merged into field "f": the value does not fit its schema',
    )
  })
  it('A14: that cannot handle a field without a value is named, with the undefined it was given', async () => {
    const first = function takeFirst(current: string[] | undefined, update: string[]) {
      return [...(current as string[]), ...update]
    }
    const names = reduced(z.array(z.string()).optional(), first as never)
    await expect(after(names, ['a'])).rejects.toThrow(
      'node "w0" cannot be merged into field "f"; its reducer takeFirst was given undefined as the current value: ',
    )
  })
  class Sum {}
  it.each([
    { name: 'a class', reduce: Sum },
    { name: 'one parameter', reduce: (update: unknown) => update },
    { name: 'three parameters', reduce: (a: unknown, _b: unknown, _c: unknown) => a },
    { name: 'a rest parameter', reduce: (...all: unknown[]) => all },
    { name: 'no function', reduce: 'sum' },
  ])('A15: is a function of exactly two parameters: $name is refused', ({ reduce }) => {
    expect(() => reduced(z.unknown(), reduce as never)).toThrow(expect.objectContaining({ code: 'STATE_CONFIG' }))
  })
})

describe('replaceWith(value)', () => {
  it('A12: sets a field to a whole new value and passes its reducer by', async () => {
    expect(await after(append(z.string()), ['a'], replaceWith(['b']), ['c'])).toEqual(['b', 'c'])
    expect(await after(messages(), [{ id: 'm', role: 'user', content: 'x' }], replaceWith([]))).toEqual([])
  })
  it('is checked as a whole value', async () => {
    await expect(after(append(z.string()), replaceWith('b'))).rejects.toThrow('append takes a list, not a string')
  })
  it('has no place in another one, nor in the payload of a send', async () => {
    await expect(after(append(z.string()), replaceWith(replaceWith([])))).rejects.toThrow(
      'uses replaceWith for "f" where it has no place; give the value itself',
    )
    const State = state({ list: append(z.string()) })
    const to = node('to', State, () => {})
    const from = node('from', State, () => send(to, { list: replaceWith(['a']) }), { goto: [to] })
    await expect(runtime.run(graph('g', State).edge(START, from).edge(to, END).check(), {})).rejects.toThrow(
      'uses replaceWith for "list"',
    )
  })
})

describe('field(initial)', () => {
  it('takes any JSON, without a schema', async () => {
    expect(await after(field<unknown>(1), { a: [null] })).toEqual({ a: [null] })
    expect(await after(field({ a: 1 }), undefined)).toEqual({ a: 1 })
  })
})

describe('updates of one field in one superstep', () => {
  const fields: { name: string; field: Field; update: fc.Arbitrary<Json> }[] = [
    { name: 'append', field: append(z.unknown()), update: fc.array(anyJson, { maxLength: 4 }).map((v) => own(v)) },
    {
      name: 'merge',
      field: merge(z.unknown()),
      update: fc.dictionary(fc.constantFrom('a', 'b', 'c'), anyJson).map((v) => own(v)),
    },
    {
      name: 'reduced',
      field: reduced(z.array(z.unknown()).default([]), (current, update) => [...update, ...(current ?? [])]),
      update: fc.array(anyJson, { maxLength: 4 }).map((v) => own(v)),
    },
    {
      name: 'no reducer',
      field: field(null),
      update: anyJson.filter((v) => !JSON.stringify(v).startsWith('{"$replace"')).map((v) => own(v)),
    },
  ]

  it.each(fields)('come to the same as one after another: $name', ({ field, update }) => {
    const State = state({ f: field })
    const writer = { writer: 'the test' }
    const replacing = fc.tuple(update, fc.boolean())
    fc.assert(
      fc.property(
        update,
        fc.array(replacing, { minLength: 1, maxLength: 6 }),
        fc.boolean(),
        (start, updates, replaces) => {
          const checked = updates.map(
            ([value, whole]) =>
              State.check({ f: replaces && whole ? replaceWith(value) : value }, 'the test').f as Json,
          )
          const atOnce = State.start(State.check({ f: start }, 'the test'))
          const oneByOne = atOnce.slice()
          State.applyAll(atOnce, 'f', checked, writer)
          for (const value of checked) State.apply(oneByOne, { f: value }, writer)
          expect(atOnce).toEqual(oneByOne)
        },
      ),
    )
  })
  it('are merged by the names of the nodes, then in the order they were sent, whichever finished first', async () => {
    const State = state({ log: append(z.string()), i: z.number().default(0) })
    const order = fc.shuffledSubarray(['a0', 'a1', 'b0', 'b1', 'c0'], { minLength: 5 })
    await fc.assert(
      fc.asyncProperty(order, async (finishing) => {
        const gates = new Map(finishing.map((name) => [name, open<void>()]))
        const work = (name: string) =>
          node(name, State, async (s) => {
            await gates.get(`${name}${s.i}`)?.promise
            return { log: [`${name}${s.i}`] }
          })
        const [a, b, c] = [work('a'), work('b'), work('c')]
        const targets = [send(c, { i: 0 }), send(b, { i: 0 }), send(a, { i: 0 }), send(b, { i: 1 }), send(a, { i: 1 })]
        const split = node('split', State, () => command({ goto: targets }), { goto: [a, b, c] })
        const g = graph('g', State).edge(START, split).edge(a, END).edge(b, END).edge(c, END).check()
        const running = runtime.run(g, {})
        for (const name of finishing) {
          gates.get(name)?.resolve()
          await quiet()
        }
        expect(((await running).state as JsonObject).log).toEqual(['a0', 'a1', 'b0', 'b1', 'c0'])
      }),
      { numRuns: 40 },
    )
  })
})
