import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { append, command, createRuntime, END, type GraphBuilder, graph, node, START, send, state } from '../../index.ts'

const runtime = createRuntime()
const S = state({ n: z.number().default(0), log: append(z.string()) })
type Builder = Pick<GraphBuilder<typeof S, unknown>, 'edge' | 'when' | 'branch'>

const leaf = (name: string) => node(name, S, () => ({ log: [name] }))
const [a, b] = [leaf('a'), leaf('b')]

/** Which nodes ran after `first`, which returns `returns` and may choose a, b and END. */
const ways = async (returns: unknown, from: (g: Builder, first: typeof a) => unknown, goto = [a, b, END] as const) => {
  const first = node('first', S, () => returns as undefined, { goto })
  const builder = graph('g', S).edge(START, first).edge(a, END).edge(b, END)
  from(builder, first)
  return (await runtime.run(builder.check(), {})).state.log
}

describe('the way on from a node', () => {
  it('is its edge', async () => {
    expect(await ways(undefined, (g, first) => g.edge(first, a))).toEqual(['a'])
  })
  it('is chosen by a predicate on the merged state', async () => {
    const way = (n: number) => ways({ n }, (g, first) => g.when(first, (s) => s.n > 1, { then: a, otherwise: b }))
    expect([await way(2), await way(1)]).toEqual([['a'], ['b']])
  })
  it.each([
    { key: 'de', reaches: ['a'] },
    { key: 2, reaches: ['b'] },
    { key: true, reaches: ['a'] },
  ])('is looked up by a key on the merged state: $key', async ({ key, reaches }) => {
    expect(await ways({ n: 1 }, (g, first) => g.branch(first, () => key, { de: a, 2: b, true: a }))).toEqual(reaches)
  })
  it('is the labelled edge it names in a command, else the plain one', async () => {
    const labelled = (g: Builder, first: typeof a) => g.edge(first, a).edge(first, b, { branch: 'retry' })
    expect(await ways(command({ branch: 'retry' }), labelled)).toEqual(['b'])
    expect(await ways(command({ branch: 'other' }), labelled)).toEqual(['a'])
    expect(await ways(undefined, labelled)).toEqual(['a'])
  })
  it('is what it chooses itself, in place of its edge: a node, several, a send, END', async () => {
    const edge = (g: Builder, first: typeof a) => g.edge(first, a)
    expect(await ways(command({ goto: b }), edge)).toEqual(['b'])
    expect(await ways(command({ goto: [a, b] }), edge)).toEqual(['a', 'b'])
    expect(await ways(b, edge)).toEqual(['b'])
    expect(await ways(send(b), edge)).toEqual(['b'])
    expect(await ways(END, edge)).toEqual([])
  })
  it('C11: is none with goto [], and its edge where it gives no goto', async () => {
    const edge = (g: Builder, first: typeof a) => g.edge(first, a)
    expect(await ways(command({ goto: [] }), edge)).toEqual([])
    expect(await ways(command({ update: { log: ['first'] } }), edge)).toEqual(['first', 'a'])
  })
  it('C12: is not its edge once it chose END', async () => {
    expect(await ways(command({ goto: END, update: { log: ['first'] } }), (g, first) => g.edge(first, a))).toEqual([
      'first',
    ])
  })
})

describe('a way that leads nowhere is an error that names node and reason', () => {
  const edge = (g: Builder, first: typeof a) => g.edge(first, END)
  it.each<{ name: string; returns?: unknown; from: (g: Builder, first: typeof a) => unknown; says: string }>([
    {
      name: 'C6: a predicate that answers 1',
      from: (g, first) => g.when(first, (() => 1) as never, { then: a, otherwise: END }),
      says: 'node "first": its predicate answered 1, not true or false.',
    },
    {
      name: 'C6: a predicate that answers with a promise',
      from: (g, first) => g.when(first, (async () => true) as never, { then: a, otherwise: END }),
      says: 'node "first": its predicate answered a promise (routers are synchronous), not true or false.',
    },
    {
      name: 'C7: a key without a way',
      from: (g, first) => g.branch(first, () => 'fr', { de: a, en: END }),
      says: 'node "first": its branch key is "fr", which leads nowhere; keys are: de, en.',
    },
    {
      name: 'C7: a key that is no text',
      from: (g, first) => g.branch(first, () => ({ a: 1 }), { de: a }),
      says: 'node "first": its branch key is an object, which leads nowhere; keys are: de.',
    },
    {
      name: 'C7: a key that is undefined',
      from: (g, first) => g.branch(first, () => undefined, { de: a }),
      says: 'node "first": its branch key is undefined, which leads nowhere; keys are: de.',
    },
    {
      name: 'C7: a key that every object has',
      from: (g, first) => g.branch(first, () => 'constructor', { de: a }),
      says: 'node "first": its branch key is "constructor", which leads nowhere; keys are: de.',
    },
    {
      name: 'C10: no edge and no choice',
      from: () => {},
      says: 'node "first": the run cannot go on: it has no edge and chose no route.',
    },
    {
      name: 'only labelled edges, and none chosen',
      from: (g, first) => g.edge(first, a, { branch: 'x' }),
      says: 'node "first": the run cannot go on: every edge is labelled (x).',
    },
    {
      name: 'only labelled edges, and another one chosen',
      returns: command({ branch: 'y' }),
      from: (g, first) => g.edge(first, a, { branch: 'x' }),
      says: 'node "first": the run cannot go on: it chose branch "y", and every edge is labelled (x).',
    },
    {
      name: 'a branch chosen where a predicate decides',
      returns: command({ branch: 'y' }),
      from: (g, first) => g.when(first, () => true, { then: a, otherwise: b }),
      says: 'node "first": it chose branch "y", and it has no labelled edges.',
    },
  ])('$name', async ({ returns, from, says }) => {
    await expect(ways(returns, from)).rejects.toMatchObject({
      code: 'GRAPH_ROUTE',
      at: { graph: 'g', node: 'first' },
      message: says,
    })
  })
  const c = leaf('c')
  it.each([
    {
      name: 'C8: a node it does not declare',
      returns: command({ goto: c }),
      says: 'node "first" routes to c, which it does not declare; add goto: [c] to the node.',
    },
    {
      name: 'C8: a send to a node it does not declare',
      returns: send(c),
      says: 'node "first" routes to c, which it does not declare',
    },
    {
      name: 'C8: END where it does not declare it',
      returns: END,
      says: 'node "first" routes to END, which it does not declare; add goto: [END] to the node.',
    },
    {
      name: 'C9: another node of a declared name',
      returns: leaf('a'),
      says: 'node "first" routes to another node object named "a"; use the one in the graph.',
    },
    {
      name: 'a text',
      returns: command({ goto: 'a' as never }),
      says: 'node "first" routes to a string, which is neither a node, a send nor END.',
    },
    {
      name: 'a list in a list',
      returns: command({ goto: [[a]] as never }),
      says: 'node "first" routes to a list, which',
    },
  ])('$name', async ({ returns, says }) => {
    await expect(ways(returns, edge, ['a', b] as never)).rejects.toMatchObject({
      code: 'NODE_RETURN',
      message: expect.stringContaining(says),
    })
  })
  it('an error thrown by a predicate or a key ends the run, the very object', async () => {
    const error = new Error('no such column')
    const fail = () => {
      throw error
    }
    await expect(ways(undefined, (g, first) => g.when(first, fail, { then: a, otherwise: b }))).rejects.toBe(error)
    await expect(ways(undefined, (g, first) => g.branch(first, fail, { x: a }))).rejects.toBe(error)
  })
})
