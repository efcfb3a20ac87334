import fc from 'fast-check'
import { afterEach, describe, expect, expectTypeOf, it, vi } from 'vitest'
import { z } from 'zod'
import {
  append,
  type ChatMessage,
  createRuntime,
  END,
  field,
  graph,
  merge,
  messages,
  node,
  type RemoveMessage,
  type Replaced,
  reduced,
  replaceWith,
  type SluiceError,
  START,
  type StateOf,
  StateType,
  state,
  type UpdateFor,
} from '../index.ts'

const runtime = createRuntime()

/** A graph `g` whose one node, `writer`, returns what it is told to. */
function writing<S, U>(State: StateType<S, U>, update: unknown) {
  const writer = node('writer', State, () => update as never)
  return graph('g', State).edge(START, writer).edge(writer, END).check()
}

/** The state after one node wrote `update`. */
const written = async <S, U>(State: StateType<S, U>, update: unknown, input: unknown = {}) =>
  (await runtime.run(writing(State, update), input as never)).state as Record<string, unknown>

const refused = async (run: Promise<unknown>): Promise<SluiceError> => {
  const error = await run.then(
    () => undefined,
    (error: unknown) => error,
  )
  expect(error).toMatchObject({ name: 'SluiceError' })
  return error as SluiceError
}

describe('a state', () => {
  it('starts from the defaults of its schemas, and from nothing where a field is optional', async () => {
    const State = state({ n: z.number().default(7), list: append(z.string()), note: z.string().optional() })
    expect(await written(State, undefined)).toEqual({ n: 7, list: [] })
  })
  it('is given to nodes and callers as one frozen object, which can be spread, listed and written as JSON', async () => {
    const State = state({ n: z.number().default(1), list: append(z.string()) })
    const seen: unknown[] = []
    const look = node('look', State, (s) => {
      seen.push({ ...s }, Object.keys(s), JSON.stringify(s), Object.isFrozen(s))
    })
    await runtime.run(graph('g', State).edge(START, look).edge(look, END).check(), { list: ['a'] })
    expect(seen).toEqual([{ n: 1, list: ['a'] }, ['n', 'list'], '{"n":1,"list":["a"]}', true])
  })
  it.each([
    { name: 'without fields', fields: {}, says: 'a state needs at least one field.' },
    {
      name: 'with a field that is neither schema nor field',
      fields: { n: 7 },
      says: 'state field "n" is a number; give a schema, or a field such as append(schema).',
    },
    {
      name: 'with a field named __proto__',
      fields: JSON.parse('{ "__proto__": 1 }'),
      says: 'a state field cannot be named __proto__.',
    },
  ])('$name is refused', ({ fields, says }) => {
    expect(() => new StateType(fields as never)).toThrow(
      expect.objectContaining({ code: 'STATE_CONFIG', message: says }),
    )
  })
  it('with a schema that answers with a promise is refused when it is first used', async () => {
    const State = state({
      n: z
        .number()
        .default(1)
        .refine(async () => true),
    })
    const error = await refused(written(State, { n: 1 }))
    expect(error.message).toContain('asynchronous; give one that answers at once')
  })
})

describe('what is written', () => {
  const Count = state({ n: z.number().default(0) })
  const Lax = state({ n: z.coerce.number().default(0) })

  it('A1: is what the schema makes of it', async () => {
    expect(await written(Lax, { n: '5' })).toEqual({ n: 5 })
    expect(await written(Lax, undefined, { n: '5' })).toEqual({ n: 5 })
  })
  it('A2: is refused where the schema does not take it, and the error names the field and who wrote it', async () => {
    const byNode = await refused(written(Count, { n: '7' }))
    expect(byNode).toMatchObject({ code: 'STATE_UPDATE', at: { field: 'n' } })
    expect(byNode.message).toContain('node "writer" wrote field "n"')
    const byInput = await refused(written(Count, undefined, { n: '7' }))
    expect(byInput).toMatchObject({ code: 'STATE_UPDATE', at: { field: 'n' } })
    expect(byInput.message).toContain('the input of "g" wrote field "n"')
  })
  it('A3: may only name fields; the error lists them', async () => {
    const says = 'wrote "m", which is no field of the state; fields are: n.'
    expect((await refused(written(Count, undefined, { m: 1 }))).message).toBe(`the input of "g" ${says}`)
    expect((await refused(written(Count, { m: 1 }))).message).toBe(`node "writer" ${says}`)
  })
  it('A4: of a wrong type fails its node, with the error of the schema as the cause', async () => {
    const error = await refused(written(Count, { n: null }))
    expect(error.cause).toMatchObject({ code: 'SCHEMA_MISMATCH' })
    expect(error.message).toContain('expected number, received null')
  })
  it('A4: wrong, is not a result: what the node did is not reported as complete', async () => {
    const types: string[] = []
    for await (const event of runtime.stream(writing(Count, { n: null }))) types.push(event.type)
    expect(types).toEqual(['run_start', 'node_start', 'node_error', 'run_end'])
  })
  it('A5: of a wrong type can be put right on the next run of the node', async () => {
    const List = state({ list: append(z.string()) })
    expect((await refused(written(List, { list: 'bare' }))).message).toContain(
      'append takes a list, not a string; return [item]',
    )
    expect(await written(List, { list: ['bare'] })).toEqual({ list: ['bare'] })
  })
  it('A13: may not be an object with the single key $replace, which is how a replacement is stored', async () => {
    const Any = state({ any: field({}), list: append(z.unknown()) })
    for (const update of [{ any: { $replace: 1 } }, { list: { $replace: [] } }]) {
      expect((await refused(written(Any, update))).message).toContain(
        'the single key "$replace" is reserved; use replaceWith(value)',
      )
    }
    expect(await written(Any, { any: { $replace: 1, more: 2 } })).toEqual({ any: { $replace: 1, more: 2 }, list: [] })
  })
  it('A17: is judged by the schema with all it does, refinements and transformations included', async () => {
    const Trimmed = state({
      name: z
        .string()
        .trim()
        .min(2)
        .transform((name) => name.toUpperCase())
        .default('NOBODY'),
    })
    expect(await written(Trimmed, { name: '  ann ' })).toEqual({ name: 'ANN' })
    expect((await refused(written(Trimmed, { name: ' a ' }))).code).toBe('STATE_UPDATE')
  })
  it.each([
    { name: 'a date', value: new Date(0), why: 'it is an instance of Date; pass a plain object' },
    { name: 'a set', value: new Set([1]), why: 'it is an instance of Set; pass a plain object' },
    { name: 'bytes', value: new Uint8Array(1), why: 'it is an instance of Uint8Array; pass a plain object' },
    { name: 'an infinity', value: Number.POSITIVE_INFINITY, why: 'Infinity has no JSON form' },
  ])('A18: is JSON in a field without a schema too: $name is refused', async ({ value, why }) => {
    const error = await refused(written(state({ any: field() }), { any: { deep: [value] } }))
    expect(error).toMatchObject({ code: 'JSON_VALUE', at: { path: 'any.deep[0]' } })
    expect(error.message).toBe(`node "writer": the value is not JSON at any.deep[0]: ${why}.`)
  })
  it('A18: may come as anything that its schema turns into JSON', async () => {
    const When = state({
      at: z
        .date()
        .transform((date) => date.toISOString())
        .default('never'),
    })
    expect(await written(When, { at: new Date(0) })).toEqual({ at: '1970-01-01T00:00:00.000Z' })
    expect(await written(When, undefined, { at: new Date(0) })).toEqual({ at: '1970-01-01T00:00:00.000Z' })
  })
  it('A19: may not be an instance of a class, whose type would not survive', async () => {
    class Cat {
      name = 'Tom'
    }
    const error = await refused(
      written(state({ pet: z.looseObject({ name: z.string() }).optional(), any: field() }), { any: new Cat() }),
    )
    expect(error.message).toContain('it is an instance of Cat')
  })
  it('A20: is never quoted in an error, only its path and type', async () => {
    const error = await refused(written(state({ any: field() }), { any: { token: [() => 'sesame'] } }))
    expect(error.message).toContain('any.token[0]: a value of type function')
    expect(error.message).not.toContain('sesame')
    expect((await refused(written(Count, { n: 'sesame' }))).message).not.toContain('sesame')
  })
  it('is copied: what the node does to its own object later is not seen', async () => {
    const List = state({ any: field<number[]>([]) })
    const mine = [1]
    const first = node('first', List, () => ({ any: mine }))
    const second = node('second', List, () => void mine.push(2))
    const g = graph('g', List).edge(START, first).edge(first, second).edge(second, END).check()
    expect((await runtime.run(g, {})).state).toEqual({ any: [1] })
  })
  it('leaves fields alone that it gives as undefined', async () => {
    expect(await written(Count, { n: undefined }, { n: 3 })).toEqual({ n: 3 })
  })
})

describe('the input of a run', () => {
  const State = state({ name: z.string(), list: append(z.string()) })

  it('A22: must give what has no default', async () => {
    const error = await refused(written(State, undefined, { list: [] }))
    expect(error).toMatchObject({ code: 'STATE_UPDATE', at: { field: 'name' } })
    expect(error.message).toContain('field "name" has no default and the input does not give it')
    expect(await written(State, undefined, { name: 'Ann' })).toEqual({ name: 'Ann', list: [] })
  })
  it('A12, A23: goes through the reducers, or past them with replaceWith', async () => {
    const Grown = state({ list: append(z.string()), tags: merge(z.number()) })
    const input = { list: replaceWith(['a']), tags: { x: 1 } }
    expect(await written(Grown, { list: ['b'] }, input)).toEqual({ list: ['a', 'b'], tags: { x: 1 } })
  })
  it('A24: may be the state of another run, which changes nothing', async () => {
    const Whole = state({ n: z.number().default(0), any: field({ a: 1 }) })
    const once = await runtime.run(writing(Whole, { n: 3, any: { b: [2] } }), {})
    const again = await runtime.run(writing(Whole, undefined), once.state)
    expect(again.state).toEqual(once.state)
  })
  it('A29: is read when run() is called; what the caller does to it later is not seen', async () => {
    const input = { name: 'Ann', list: ['a'] }
    const running = written(State, undefined, input)
    input.name = 'Bob'
    input.list.push('b')
    expect(await running).toEqual({ name: 'Ann', list: ['a'] })
  })
  it.each([
    { name: 'a list', input: [], kind: 'a list' },
    { name: 'a text', input: 'Ann', kind: 'a string' },
    { name: 'an instance of a class', input: new Map([['name', 'Ann']]), kind: 'an instance of Map' },
  ])('is a plain object: $name is refused', async ({ input, kind }) => {
    const error = await refused(written(State, undefined, input))
    expect(error).toMatchObject({ code: 'STATE_UPDATE' })
    expect(error.message).toBe(`the input of "g" gave ${kind} where a plain object of fields is needed.`)
  })
  it('makes each default once, whatever a factory counts', async () => {
    let made = 0
    const Counted = state({ token: z.number().default(() => ++made) })
    expect(await written(Counted, undefined)).toEqual({ token: 1 })
  })
})

describe('the view of a state', () => {
  afterEach(() => void vi.unstubAllGlobals())

  const awkward = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom(
      '"',
      "'",
      '\\',
      '`',
      '${',
      '\u2028',
      '\u2029',
      '\n',
      '\r',
      ']}',
      '});',
      '*/',
      '//',
      '0',
      '-1',
      'constructor',
      'toString',
      'then',
      'class',
      '</script>',
      '',
    ),
  )
  const names = fc.uniqueArray(
    awkward.filter((name) => name !== '__proto__'),
    { minLength: 1, maxLength: 12 },
  )
  const viewOf = (fields: readonly string[]): unknown => {
    const State = new StateType(Object.fromEntries(fields.map((name) => [name, field()])))
    return State.view(State.start(State.check(Object.fromEntries(fields.map((name, i) => [name, i])), 'the test')))
  }

  it('is the same whether code from strings is allowed or not, whatever the fields are called', () => {
    fc.assert(
      fc.property(names, (fields) => {
        const literal = viewOf(fields)
        vi.stubGlobal('Function', () => {
          throw new EvalError('code from strings is forbidden')
        })
        const loop = viewOf(fields)
        vi.unstubAllGlobals()
        expect(literal).toEqual(Object.fromEntries(fields.map((name, i) => [name, i])))
        expect(loop).toEqual(literal)
        expect(Object.keys(loop as object)).toEqual(Object.keys(literal as object))
        expect([Object.isFrozen(loop), Object.isFrozen(literal)]).toEqual([true, true])
      }),
      { numRuns: 1_000 },
    )
  })
  it('runs no code that a field name holds', () => {
    const name = '":(globalThis.pwned=1),"x'
    expect(viewOf([name])).toEqual({ [name]: 0 })
    expect(globalThis).not.toHaveProperty('pwned')
  })
})

describe('types of a state', () => {
  const Person = z.object({ name: z.string(), age: z.number().default(0) })
  const All = state({
    amount: z.number().default(0),
    size: z.coerce.number<string>(),
    log: append(z.string()),
    people: append(Person),
    scores: merge(z.number()),
    total: reduced(z.number(), (current, update) => (current ?? 0) + update),
    any: field<{ a: number }>(),
    said: messages(),
  })
  type All = StateOf<typeof All>
  type Update = UpdateFor<typeof All>

  it('nodes read what the schemas put out', () => {
    expectTypeOf<All>().toEqualTypeOf<{
      readonly amount: number
      readonly size: number
      readonly log: readonly string[]
      readonly people: readonly { name: string; age: number }[]
      readonly scores: Readonly<Record<string, number>>
      readonly total: number
      readonly any: { a: number }
      readonly said: readonly ChatMessage[]
    }>()
  })
  it('nodes write any of the fields, each as its schema or reducer takes it, or replaced as a whole', () => {
    expectTypeOf<Update['amount']>().toEqualTypeOf<number | undefined | Replaced<number>>()
    expectTypeOf<Update['size']>().toEqualTypeOf<string | Replaced<number> | undefined>()
    expectTypeOf<{ people: { name: string }[] }>().toExtend<Update>()
    expectTypeOf<{ said: (ChatMessage | RemoveMessage)[] }>().toExtend<Update>()
    expectTypeOf<{ log: string }>().not.toExtend<Update>()
    expectTypeOf<{ amount: string }>().not.toExtend<Update>()
  })
  it('a node cannot write a field that does not exist, nor change what it reads', () => {
    // @ts-expect-error "amuont" is no field
    node('typo', All, () => ({ amuont: 1 }))
    node('changes', All, (s) => {
      // @ts-expect-error the state is read-only; return an update
      s.amount = 1
      // @ts-expect-error lists are read-only too
      s.log.push('x')
    })
  })
  it('a run is given and gives what the state says', () => {
    const g = writing(All, {})
    expectTypeOf(g.run).parameter(0).toEqualTypeOf<Update | undefined>()
    expectTypeOf(g.run).returns.resolves.toHaveProperty('state').toEqualTypeOf<All>()
  })
})
