import { describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import {
  type AnyNode,
  append,
  createRuntime,
  END,
  type Graph,
  type GraphBuilder,
  graph,
  type Middleware,
  middleware,
  type NodeContext,
  node,
  type RunOutcome,
  START,
  state,
} from '../index.ts'

const S = state({ n: z.number().default(0), log: append(z.string()) })
const named = (name: string, goto?: readonly (AnyNode | typeof END | string)[]) =>
  node(name, S, () => ({ log: [name] }), goto && { goto })

const faultsOf = (builder: { check(): unknown }): readonly string[] => {
  try {
    builder.check()
  } catch (error) {
    expect(error).toMatchObject({ code: 'GRAPH_INVALID', at: { graph: 'g' } })
    return (error as Error).message.split('\n- ').slice(1)
  }
  return []
}

const nowhere = undefined as unknown as AnyNode

describe('check()', () => {
  it('C1: lists every fault at once, each with its mend', () => {
    const [a, b, c] = [named('a'), named('b'), named('c')]
    const builder = graph('g', S).edge(START, a).edge(b, c).edge(c, b)
    expect(faultsOf(builder)).toEqual([
      'node "a" has no way on: add edge(a, END), a when or branch, or goto',
      'node "b" is never reached: no edge leads to it from START',
      'node "c" is never reached: no edge leads to it from START',
    ])
    expect(() => builder.check()).toThrow(/^graph "g" has 3 faults:\n- node "a" has/)
  })
  it('C1: may be called again when what was missing has been added', () => {
    const a = named('a')
    const builder = graph('g', S).edge(START, a)
    expect(faultsOf(builder)).toHaveLength(1)
    expect(faultsOf(builder.edge(a, END))).toEqual([])
  })
  it('C2: gives a graph that later edges do not change', async () => {
    const [a, b] = [named('a'), named('b')]
    const builder = graph('g', S).edge(START, a).edge(a, END)
    const first = builder.check()
    expect(faultsOf(builder.edge(START, b).edge(b, END))).toContain(
      'START has more than one edge; let it lead to one node that routes on',
    )
    expect([...first.plan.nodes.keys()]).toEqual(['a'])
    expect((await createRuntime().run(first, {})).state.log).toEqual(['a'])
  })
  it.each<{ name: string; build(g: GraphBuilder<typeof S, unknown>, a: AnyNode, b: AnyNode): unknown; fault: string }>([
    {
      name: 'a second edge',
      build: (g, a, b) => g.edge(a, b).edge(a, END),
      fault:
        'node "a" has a second way on; a node has one edge, one when or one branch, and fans out with goto or send',
    },
    {
      name: 'a when beside an edge',
      build: (g, a, b) => g.edge(a, b).when(a, () => true, { then: b, otherwise: END }),
      fault:
        'node "a" has a second way on; a node has one edge, one when or one branch, and fans out with goto or send',
    },
    {
      name: 'an edge beside a branch',
      build: (g, a, b) => g.branch(a, () => 'x', { x: b }).edge(a, END),
      fault:
        'node "a" has a second way on; a node has one edge, one when or one branch, and fans out with goto or send',
    },
    {
      name: 'two edges of one branch',
      build: (g, a, b) => g.edge(a, b, { branch: 'x' }).edge(a, END, { branch: 'x' }),
      fault:
        'node "a" has a second edge for branch "x"; a node has one edge, one when or one branch, and fans out with goto or send',
    },
    {
      name: 'two nodes of one name',
      build: (g, a) => g.edge(a, named('a')),
      fault: 'two nodes are named "a"; a name is a node\'s identity, so rename one',
    },
  ])('C3: refuses $name', ({ build, fault }) => {
    const [a, b] = [named('a'), named('b')]
    const builder = graph('g', S).edge(START, a).edge(b, END)
    build(builder, a, b)
    expect(faultsOf(builder)).toContain(fault)
  })
  it('C4: takes nodes in that others list as goto, and what those list; each still needs a way on', () => {
    const c = named('c')
    const b = named('b', [c])
    const a = named('a', [b, END])
    const builder = graph('g', S).edge(START, a)
    expect(faultsOf(builder)).toEqual(['node "c" has no way on: add edge(c, END), a when or branch, or goto'])
    expect([...builder.edge(c, END).check().plan.nodes.keys()]).toEqual(['a', 'b', 'c'])
  })
  it('C5: refuses a goto name that no node has, and takes one of a node declared later', () => {
    const a = named('a', ['b', 'a'])
    expect(faultsOf(graph('g', S).edge(START, a))).toEqual(['node "a" lists goto "b", and no node has that name'])
    expect(faultsOf(graph('g', S).edge(START, a).edge(named('b'), END))).toEqual([])
  })
  it.each<{ name: string; build(g: GraphBuilder<typeof S, unknown>, a: AnyNode): unknown; fault: string }>([
    { name: 'nothing at START', build: () => {}, fault: 'nothing starts it: add edge(START, node)' },
    {
      name: 'START leading to END',
      build: (g) => g.edge(START, END),
      fault: 'START leads to END and nothing runs: add edge(START, node)',
    },
    {
      name: 'an edge to nothing',
      build: (g, a) => g.edge(a, nowhere),
      fault: 'the target of "edge" is missing or no node; give a node or END',
    },
    {
      name: 'an edge to START',
      build: (g, a) => g.edge(a, START as never),
      fault: 'the target of "edge" is START; give a node or END',
    },
    {
      name: 'an edge from nothing',
      build: (g, a) => g.edge(nowhere, a),
      fault: 'edge(…) begins at what is missing or no node; give a node',
    },
    { name: 'an edge from END', build: (g, a) => g.edge(END as never, a), fault: 'edge(…) begins at END; give a node' },
    {
      name: 'a when from nothing',
      build: (g, a) => g.when(nowhere, () => true, { then: a, otherwise: END }),
      fault: 'when(…) begins at what is missing or no node; give a node',
    },
    {
      name: 'a when without a predicate',
      build: (g, a) => g.when(a, true as never, { then: a, otherwise: END }),
      fault: 'when("a", …) needs a predicate',
    },
    {
      name: 'C15: a when without otherwise',
      build: (g, a) => g.when(a, () => true, { then: END } as never),
      fault: 'the target of "otherwise" is missing or no node; give a node or END',
    },
    { name: 'a branch without ways', build: (g, a) => g.branch(a, () => 'x', {}), fault: 'branch("a", …) has no ways' },
    {
      name: 'a branch without a key',
      build: (g, a) => g.branch(a, 'key' as never, { x: a }),
      fault: 'branch("a", …) needs a function that computes the key',
    },
    {
      name: 'a goto to nothing',
      build: (g) => g.edge(START, named('lost', [nowhere])),
      fault: 'node "lost" lists a goto that is missing or no node; list nodes, their names or END',
    },
  ])('refuses $name', ({ build, fault }) => {
    const builder = graph('g', S)
    build(builder, named('a'))
    expect(faultsOf(builder)).toContain(fault)
  })
  it('refuses middleware that is for another state, with the fields that there are not', () => {
    const Other = state({ n: z.number(), sum: z.number(), user: z.string() })
    const builder = graph('g', S, { middleware: [middleware({ name: 'sums', state: Other }) as Middleware] })
    expect(faultsOf(builder.edge(START, named('a', [END])))).toEqual([
      'middleware "sums" is for a state with "sum", "user", and the graph\'s has n, log',
    ])
  })
  it('takes middleware that is for less than its state, for none, and for one with more that it shares', () => {
    const Less = state({ n: z.number() })
    const own = [
      middleware({ name: 'less', state: Less }),
      middleware({ name: 'none' }),
      middleware({ name: 'same', state: S }),
    ]
    expect(faultsOf(graph('g', S, { middleware: own }).edge(START, named('a', [END])))).toEqual([])
  })
  it('needs a name', () => {
    expect(() => graph(' ', S).check()).toThrow('the graph needs a name')
  })
})

describe('a node', () => {
  it.each([
    { name: 'a blank name', make: () => node(' ', S, () => {}), says: 'a node needs a name.' },
    { name: 'no function', make: () => node('a', S, {} as never), says: 'node "a" needs a function.' },
    {
      name: 'a time that is none',
      make: () => node('a', S, () => {}, { timeoutMs: 0 }),
      says: 'node "a" has a timeoutMs of 0; give milliseconds above 0.',
    },
    {
      name: 'an empty goto',
      make: () => node('a', S, () => {}, { goto: [] }),
      says: 'node "a" has a goto that lists nothing',
    },
    {
      name: 'a goto that is no list',
      make: () => node('a', S, () => {}, { goto: 'b' as never }),
      says: 'node "a" has a goto that lists nothing',
    },
  ])('with $name is refused', ({ make, says }) => {
    expect(make).toThrow(expect.objectContaining({ code: 'GRAPH_INVALID', message: expect.stringContaining(says) }))
  })
  it('cannot be changed', () => {
    expect(Object.isFrozen(named('a'))).toBe(true)
  })
})

describe('types of a graph', () => {
  type State = { readonly n: number; readonly log: readonly string[] }
  it('a node is given the state it was declared for, and may return an update of it', () => {
    node('reads', S, (s, ctx) => {
      expectTypeOf(s).toEqualTypeOf<State>()
      expectTypeOf(ctx).toEqualTypeOf<NodeContext>()
      return { n: 1 }
    })
    // @ts-expect-error "n" is a number
    node('wrong', S, () => ({ n: 'one' }))
  })
  it('predicates and keys are given the state of the node they stand after', () => {
    const a = named('a')
    const builder = graph('g', S).edge(START, a)
    builder.when(a, (s) => expectTypeOf(s).toEqualTypeOf<State>() === undefined, { then: a, otherwise: END })
    builder.branch(a, (s) => expectTypeOf(s).toEqualTypeOf<State>(), { x: END })
    // @ts-expect-error a predicate answers true or false
    builder.when(a, (s) => s.n, { then: a, otherwise: END })
    // @ts-expect-error C15: otherwise is required
    builder.when(a, (s) => s.n > 0, { then: a })
  })
  it('a checked graph is given an update and gives the state', () => {
    const g = graph('g', S).edge(START, named('a')).edge(named('b'), END)
    expectTypeOf(g.check).returns.toExtend<Graph<State, never>>()
    expectTypeOf<Awaited<ReturnType<ReturnType<typeof g.check>['run']>>>().toEqualTypeOf<RunOutcome<State>>()
    const run = () => g.check().run({ n: 1, log: ['a'] })
    // @ts-expect-error "log" is a list
    const wrong = () => g.check().run({ log: 'a' })
    expectTypeOf(run).toBeFunction()
    expectTypeOf(wrong).toBeFunction()
  })
  it('a child run gives its state', () => {
    const child = graph('child', S).edge(START, named('a')).edge(named('a'), END)
    node('parent', S, async (_, ctx) => {
      expectTypeOf(ctx.run(child.check(), { n: 1 })).resolves.toEqualTypeOf<State>()
    })
  })
})
