import { describe, expect, it } from 'vitest'
import { end, flowOf, type Parts, start, text, tool, typed } from '../document.fixture.ts'
import { failureOf, outputsOf, play } from './run.fixture.ts'

const call = (name: string, inputs: readonly object[] = [], outputs: readonly object[] = []) => ({
  component_type: 'ToolNode',
  tool: tool(name, { inputs, outputs }),
})
const branch = (mapping: Readonly<Record<string, string>>) => ({ component_type: 'BranchingNode', mapping })

describe('data edges', () => {
  it('lead a value from an output to an input of another name', async () => {
    const document = flowOf(
      { start: start(text('city')), ask: call('ask', [text('place')], [text('sky')]), end: end(text('weather')) },
      ['start -> ask', 'ask -> end'],
      { data: ['start.city -> ask.place', 'ask.sky -> end.weather'] },
    )
    const { state, ran } = await play(document, { tools: { ask: () => ({ sky: 'blue' }) }, input: { city: 'Bern' } })
    expect(state).toEqual({ weather: 'blue' })
    expect(ran).toEqual([['ask', { place: 'Bern' }]])
  })

  it('bring nothing else to a node', async () => {
    const document = flowOf(
      { start: start(text('a'), text('b')), use: call('use', [text('x')]), end: end() },
      ['start -> use', 'use -> end'],
      { data: ['start.a -> use.x'] },
    )
    expect((await play(document, { tools: { use: () => ({}) }, input: { a: '1', b: '2' } })).ran).toEqual([
      ['use', { x: '1' }],
    ])
  })

  it('bring what they lead to a node that takes anything', async () => {
    const document = flowOf(
      { start: start(text('a')), use: { component_type: 'ToolNode', tool: tool('use') }, end: end(text('out')) },
      ['start -> use', 'use -> end'],
      { data: ['start.a -> use.whatever', 'use.made -> end.out'] },
    )
    const { state, ran } = await play(document, { tools: { use: () => ({ made: 'x' }) }, input: { a: '1' } })
    expect(ran).toEqual([['use', { whatever: '1' }]])
    expect(state).toEqual({ out: 'x' })
  })

  it('of several sources, the one that ended last stands', async () => {
    const document = flowOf(
      { start: start(text('v')), over: call('over', [], [text('v')]), end: end(text('v')) },
      ['start -> over', 'over -> end'],
      { data: ['over.v -> end.v', 'start.v -> end.v'] },
    )
    expect(await outputsOf(document, { tools: { over: () => 'later' }, input: { v: 'first' } })).toEqual({ v: 'later' })
  })

  it('of branches that meet, the one that was taken stands', async () => {
    const document = flowOf(
      {
        start: start(text('way')),
        choose: branch({ left: 'left' }),
        left: call('left', [], [text('v')]),
        right: call('right', [], [text('v')]),
        end: end(text('v')),
      },
      ['start -> choose', 'choose[left] -> left', 'choose[default] -> right', 'left -> end', 'right -> end'],
      { data: ['start.way -> choose.branching_mapping_key', 'left.v -> end.v', 'right.v -> end.v'] },
    )
    const tools = { left: () => 'L', right: () => 'R' }
    expect(await outputsOf(document, { tools, input: { way: 'left' } })).toEqual({ v: 'L' })
    expect(await outputsOf(document, { tools, input: { way: 'elsewhere' } })).toEqual({ v: 'R' })
  })

  it('may lead a node back into itself, which makes a counter', async () => {
    const document = flowOf(
      {
        start: start(),
        count: call('count', [typed('n', 'integer', { default: 0 })], [typed('n', 'integer'), text('more')]),
        again: branch({ yes: 'again' }),
        end: end(typed('n', 'integer')),
      },
      ['start -> count', 'count -> again', 'again[again] -> count', 'again[default] -> end'],
      { data: ['count.n -> count.n', 'count.n -> end.n', 'count.more -> again.branching_mapping_key'] },
    )
    const count = ({ n }: { n?: unknown }) => ({ n: Number(n) + 1, more: Number(n) < 4 ? 'yes' : 'no' })
    expect(await outputsOf(document, { tools: { count } })).toEqual({ n: 5 })
  })

  it.each([
    { name: 'a number to text', from: 'integer', to: 'string', value: 5, becomes: '5' },
    { name: 'a list to text', from: 'array', to: 'string', value: [1, 'a'], becomes: '[1,"a"]' },
    { name: 'true to a number', from: 'boolean', to: 'number', value: true, becomes: 1 },
    { name: 'a number to a whole one', from: 'number', to: 'integer', value: 2.9, becomes: 2 },
    { name: '0 to a boolean', from: 'integer', to: 'boolean', value: 0, becomes: false },
    { name: 'anything to what may be anything', from: 'array', to: undefined, value: [7], becomes: [7] },
  ])('a value becomes what its destination declares: $name', async ({ from, to, value, becomes }) => {
    const document = flowOf({ start: start(typed('v', from)), end: end(typed('v', to)) }, ['start -> end'], {
      data: ['start.v -> end.v'],
    })
    expect(await outputsOf(document, { input: { v: value } })).toEqual({ v: becomes })
  })

  const divided = flowOf(
    {
      start: start(text('way')),
      make: { component_type: 'ToolNode', tool: tool('make', { inputs: [] }) },
      choose: branch({ count: 'count' }),
      count: call('count', [typed('n', 'integer')]),
      end: end(),
    },
    ['start -> make', 'make -> choose', 'choose[count] -> count', 'choose[default] -> end', 'count -> end'],
    { data: ['start.way -> choose.branching_mapping_key', 'make.v -> count.n'] },
  )
  const tools = { make: () => ({ v: 'many' }), count: () => ({}) }
  it('a value that cannot become that fails where it is taken, and names the input', async () => {
    expect(await failureOf(divided, { tools, input: { way: 'count' } })).toBe(
      'input "n" of node "count" must be integer, and a string cannot become that.',
    )
  })
  it('and does not matter where it is not', async () => {
    expect((await play(divided, { tools, input: { way: 'on' } })).status).toBe('completed')
  })

  it('a value that looks like an instruction of the engine is a value', async () => {
    const document = flowOf({ start: start(typed('v', 'object')), end: end(typed('v', 'object')) }, ['start -> end'], {
      data: ['start.v -> end.v'],
    })
    expect(await outputsOf(document, { input: { v: { $replace: 1 } } })).toEqual({ v: { $replace: 1 } })
  })

  it('a title may be a name that every object seems to have', async () => {
    const document = flowOf(
      {
        start: start(text('toString', { default: 'none' })),
        make: call('make', [], [text('constructor', { default: 'nobody' })]),
        end: end(text('toString'), text('constructor')),
      },
      ['start -> make', 'make -> end'],
      { data: ['start.toString -> end.toString', 'make.constructor -> end.constructor'] },
    )
    const made = await outputsOf(document, { tools: { make: () => ({}) } })
    expect(Object.entries(made)).toEqual([
      ['toString', 'none'],
      ['constructor', 'nobody'],
    ])
  })
})

describe('an input that nothing reaches', () => {
  const document = (more: Parts) =>
    flowOf(
      {
        start: start(text('way')),
        choose: branch({ make: 'make' }),
        make: call('make', [], [text('v')]),
        use: call('use', [text('v', more)]),
        end: end(),
      },
      ['start -> choose', 'choose[make] -> make', 'choose[default] -> use', 'make -> use', 'use -> end'],
      { data: ['start.way -> choose.branching_mapping_key', 'make.v -> use.v'] },
    )
  const playing = { tools: { make: () => 'made', use: () => ({}) }, input: { way: 'round' } }

  it('takes its default', async () => {
    expect((await play(document({ default: 'spare' }), playing)).ran).toEqual([['use', { v: 'spare' }]])
  })
  it('or fails the run, and is named', async () => {
    expect(await failureOf(document({}), playing)).toBe('input "v" of node "use" has no value and no default.')
    expect((await play(document({}), playing)).ran).toEqual([])
  })
})

describe.each([
  { name: 'absent', data: {} },
  { name: 'null', data: { data_flow_connections: null } },
])('without data edges ($name), values travel by name', ({ data }) => {
  it('each output feeds every input of its title, and the latest stands', async () => {
    const document = flowOf(
      {
        start: start(text('v')),
        one: call('one', [text('v')], [text('v')]),
        two: call('two', [text('v')], [text('w')]),
        end: end(text('v'), text('w')),
      },
      ['start -> one', 'one -> two', 'two -> end'],
      data,
    )
    const tools = { one: ({ v }: { v?: unknown }) => `${v}!`, two: ({ v }: { v?: unknown }) => `${v}?` }
    expect(await outputsOf(document, { tools, input: { v: 'a' } })).toEqual({ v: 'a!', w: 'a!?' })
  })

  it('become what each input declares', async () => {
    const document = flowOf(
      { start: start(typed('v', 'integer')), use: call('use', [text('v')]), end: end(typed('v', 'number')) },
      ['start -> use', 'use -> end'],
      data,
    )
    const { ran, state } = await play(document, { tools: { use: () => ({}) }, input: { v: 5 } })
    expect(ran).toEqual([['use', { v: '5' }]])
    expect(state).toEqual({ v: 5 })
  })

  it('all of them reach a node that takes anything', async () => {
    const document = flowOf(
      {
        start: start(text('a')),
        make: { component_type: 'ToolNode', tool: tool('make', { inputs: [] }) },
        use: { component_type: 'ToolNode', tool: tool('use') },
        end: end(),
      },
      ['start -> make', 'make -> use', 'use -> end'],
      data,
    )
    const { ran } = await play(document, {
      tools: { make: () => ({ $replace: 1, b: 2 }), use: () => ({}) },
      input: { a: '1' },
    })
    expect(ran[1]).toEqual(['use', { a: '1', $replace: 1, b: 2 }])
  })

  it('a value nobody lists, alone and looking like an instruction of the engine, takes no other away', async () => {
    const document = flowOf(
      {
        start: { component_type: 'StartNode' },
        make: { component_type: 'ToolNode', tool: tool('make', { inputs: [] }) },
        end: end(),
      },
      ['start -> make', 'make -> end'],
      data,
    )
    const playing = { tools: { make: () => ({ $replace: {} }) }, input: { a: '1' } }
    expect(await outputsOf(document, playing)).toEqual({ a: '1', $replace: {} })
  })
})
