import { describe, expect, it } from 'vitest'
import {
  around,
  end,
  faultsOf,
  flowOf,
  load,
  ref,
  shortFaults,
  shortWarnings,
  start,
  text,
  tool,
} from '../document.fixture.ts'

const step = { component_type: 'ToolNode', tool: tool('work') }
/** Each step has a tool of its own name, so that no id stands twice. */
const steps = (...names: string[]) => Object.fromEntries(names.map((name) => [name, { ...step, tool: tool(name) }]))
const branching = (mapping: object, more: object = {}) => ({
  component_type: 'BranchingNode',
  inputs: [text('query')],
  mapping,
  ...more,
})
const at = (name: string) => `$.$referenced_components.${name}`

describe('where a flow begins', () => {
  it.each([
    {
      name: 'no start_node',
      document: { ...around(step), start_node: undefined },
      faults: ['FLOW_FIELD_MISSING $', 'FLOW_START_UNLISTED $'],
    },
    {
      name: 'a start_node that is not in "nodes"',
      document: flowOf({ start: start(), a: step, end: end() }, ['a -> end'], { nodes: [ref('a'), ref('end')] }),
      faults: ['FLOW_START_UNLISTED $.start_node'],
    },
    {
      name: 'a start_node that is none',
      document: { ...around(step), start_node: ref('node') },
      faults: ['FLOW_START_TYPE $.start_node', `FLOW_UNREACHABLE ${at('start')}`],
    },
    {
      name: 'two of them',
      document: flowOf({ start: start(), second: start(), a: step, end: end() }, [
        'start -> a',
        'second -> a',
        'a -> end',
      ]),
      faults: ['FLOW_START_SEVERAL $.nodes', `FLOW_UNREACHABLE ${at('second')}`],
    },
    {
      name: 'an edge back to it',
      document: flowOf({ start: start(), a: step, end: end() }, ['start -> a', 'a -> start']),
      faults: ['FLOW_START_ENTERED $.control_flow_connections[1]', `FLOW_UNREACHABLE ${at('end')}`],
    },
    {
      name: 'two edges from it',
      document: flowOf({ start: start(), ...steps('a', 'b'), end: end() }, [
        'start -> a',
        'start -> b',
        'a -> end',
        'b -> end',
      ]),
      faults: ['FLOW_START_FORKED $.control_flow_connections[1]'],
    },
    {
      name: 'no edge from it',
      document: flowOf({ start: start(), end: end() }, []),
      faults: [`FLOW_DEAD_END ${at('start')}`, `FLOW_UNREACHABLE ${at('end')}`],
    },
  ])('$name', async ({ document, faults }) => expect(await shortFaults(document)).toEqual(faults))
})

describe('where a flow ends', () => {
  it.each([
    {
      name: 'nowhere',
      document: flowOf({ start: start(), ...steps('a', 'b') }, ['start -> a', 'a -> b', 'b -> a']),
      faults: ['FLOW_END_MISSING $'],
    },
    {
      name: 'and goes on',
      document: flowOf({ start: start(), ...steps('a'), end: end() }, ['start -> a', 'a -> end', 'end -> a']),
      faults: ['FLOW_END_LEFT $.control_flow_connections[2]'],
    },
    {
      name: 'at a node without an edge',
      document: flowOf(
        {
          start: start(),
          ...steps('a', 'b'),
          end: end(),
          route: branching({ x: 'x' }, { inputs: [text('query', { default: '' })] }),
        },
        ['start -> route', 'route[x] -> a', 'route[default] -> b', 'a -> end'],
      ),
      faults: [`FLOW_DEAD_END ${at('b')}`],
    },
  ])('$name', async ({ document, faults }) => expect(await shortFaults(document)).toEqual(faults))

  it('may be in several places, and the flow may loop', async () => {
    const document = flowOf(
      { start: start(text('query')), route: branching({ again: 'again' }), ...steps('a'), end: end(), other: end() },
      ['start -> a', 'a -> route', 'route[again] -> a', 'route[default] -> end', 'route[stop] -> other'],
      {},
    )
    expect(await shortFaults(document)).toEqual(['FLOW_BRANCH_UNUSED $.control_flow_connections[4].from_branch'])
  })
})

describe('N1: a node that is never reached', () => {
  it('is named, with what would lead to it', async () => {
    const [fault] = await faultsOf(
      flowOf({ start: start(), ...steps('a', 'lost'), end: end() }, ['start -> a', 'a -> end', 'lost -> end']),
    )
    expect(fault).toMatchObject({ code: 'FLOW_UNREACHABLE', path: at('lost') })
    expect(fault?.message).toBe(
      'node "lost" is never reached: no control flow edge leads to it.\nAdd an edge that leads to it, or remove the node.',
    )
  })

  it('is told apart from one that is behind such a node', async () => {
    const faults = await faultsOf(
      flowOf({ start: start(), ...steps('a', 'x', 'y'), end: end() }, ['start -> a', 'a -> end', 'x -> y', 'y -> end']),
    )
    expect(faults.map(({ message }) => message.split('\n')[0])).toEqual([
      'node "x" is never reached: no control flow edge leads to it.',
      'node "y" is never reached: the edges to it come from "x", which is not reached either.',
    ])
  })
})

describe('branches', () => {
  const routed = (mapping: object, ...edges: string[]) =>
    flowOf({ start: start(text('query')), route: branching(mapping), ...steps('a', 'b'), end: end() }, [
      'start -> route',
      ...edges,
      'a -> end',
      'b -> end',
    ])

  it('N2: each of a BranchingNode has an edge', async () => {
    expect(await shortFaults(routed({ x: 'left', y: 'right' }, 'route[left] -> a', 'route[default] -> b'))).toEqual([
      `FLOW_BRANCH_MISSING ${at('route')}`,
    ])
  })

  it('N2: or an edge without a branch catches what is left', async () => {
    expect(await shortFaults(routed({ x: 'left', y: 'right' }, 'route[left] -> a', 'route -> b'))).toEqual([])
    expect(await shortFaults(routed({ x: 'left' }, 'route[left] -> a', 'route[next] -> b'))).toEqual([])
  })

  it('"default" without an edge is only a warning', async () => {
    expect(
      await shortWarnings(
        flowOf({ start: start(text('query')), route: branching({ x: 'left' }), end: end() }, [
          'start -> route',
          'route[left] -> end',
        ]),
      ),
    ).toEqual([`FLOW_BRANCH_DEFAULT ${at('route')}`])
  })

  it('unless the mapping leads there', async () => {
    expect(
      await shortFaults(
        flowOf({ start: start(text('query')), route: branching({ x: 'left', y: 'default' }), end: end() }, [
          'start -> route',
          'route[left] -> end',
        ]),
      ),
    ).toEqual([`FLOW_BRANCH_MISSING ${at('route')}`])
  })

  it('N3: a label that the source never chooses is a fault', async () => {
    expect(
      await shortFaults(routed({ x: 'left' }, 'route[left] -> a', 'route[lefft] -> b', 'route[default] -> b')),
    ).toEqual(['FLOW_BRANCH_UNUSED $.control_flow_connections[2].from_branch'])
    expect(
      await shortFaults(flowOf({ start: start(), a: step, end: end() }, ['start -> a', 'a[done] -> end'])),
    ).toContain('FLOW_BRANCH_UNUSED $.control_flow_connections[1].from_branch')
  })

  it('N3: a node whose branches nobody declares is left alone; "default" is taken on a BranchingNode', async () => {
    const plugins = { get: () => ({ kind: 'node' as const, plugin: 'p', version: '1.0.0' }), types: () => ['Custom'] }
    expect(
      await shortFaults(
        flowOf({ start: start(), custom: { component_type: 'Custom' }, end: end() }, [
          'start -> custom',
          'custom[whatever] -> end',
        ]),
        { plugins },
      ),
    ).toEqual([])
    expect(await shortFaults(routed({ x: 'left' }, 'route[left] -> a', 'route[default] -> b'))).toEqual([])
  })

  it('N3: a plugin node that declares them is not', async () => {
    const plugins = {
      get: () => ({ kind: 'node' as const, plugin: 'p', version: '1.0.0', branches: ['yes', 'no'] }),
      types: () => ['Custom'],
    }
    expect(
      await shortFaults(
        flowOf({ start: start(), custom: { component_type: 'Custom' }, end: end() }, [
          'start -> custom',
          'custom[yes] -> end',
          'custom[maybe] -> end',
        ]),
        { plugins },
      ),
    ).toEqual(
      [`FLOW_BRANCH_MISSING ${at('custom')}`, 'FLOW_BRANCH_UNUSED $.control_flow_connections[2].from_branch'].toSorted(
        (a) => (a.includes('UNUSED') ? -1 : 1),
      ),
    )
  })

  it.each([
    { name: 'with a branch', edges: ['route[left] -> a', 'route[left] -> b', 'route[default] -> b'] },
    { name: 'without one', edges: ['route[left] -> a', 'route -> b', 'route[next] -> a'] },
  ])('have one edge each: $name', async ({ edges }) => {
    const faults = await shortFaults(routed({ x: 'left' }, ...edges))
    expect(faults.filter((fault) => fault.startsWith('FLOW_EDGE_TWICE'))).toHaveLength(1)
  })

  it('DEFAULT_BRANCH in a mapping is read as every other input, with a warning', async () => {
    const document = routed({ x: 'left', DEFAULT_BRANCH: 'right' }, 'route[left] -> a', 'route[right] -> b')
    expect(await shortWarnings(document)).toEqual([`FLOW_BRANCH_DEFAULT_KEY ${at('route')}.mapping.DEFAULT_BRANCH`])
    expect((await load(document)).nodes[1]).toMatchObject({
      fallback: 'right',
      mapping: new Map([['x', 'left']]),
      branches: ['left', 'right'],
    })
  })

  it('of a FlowNode are the ends of its flow', async () => {
    const inner = flowOf(
      {
        s: start(text('query')),
        r: branching({ x: 'yes' }),
        good: { ...end(), branch_name: 'good' },
        bad: { ...end(), branch_name: 'bad' },
      },
      ['s -> r', 'r[yes] -> good', 'r[default] -> bad'],
    )
    const outer = (...edges: string[]) =>
      flowOf(
        { start: start(text('query')), sub: { component_type: 'FlowNode', subflow: inner }, end: end(), end2: end() },
        ['start -> sub', ...edges],
      )
    expect((await load(outer('sub[good] -> end', 'sub[bad] -> end2'))).nodes[1]?.branches).toEqual(['good', 'bad'])
    expect(await shortFaults(outer('sub[good] -> end', 'sub[god] -> end2'))).toEqual([
      'FLOW_BRANCH_UNUSED $.control_flow_connections[2].from_branch',
      `FLOW_BRANCH_MISSING ${at('sub')}`,
    ])
  })

  it('are decided by exactly one input', async () => {
    const route = branching({ x: 'left' }, { inputs: [text('a'), text('b')] })
    expect(
      await shortFaults(
        flowOf({ start: start(text('a'), text('b')), route, end: end() }, ['start -> route', 'route -> end']),
      ),
    ).toEqual([`FLOW_BRANCHING_INPUT ${at('route')}.inputs`])
  })
})

describe('the nodes of a flow', () => {
  it('have names of their own', async () => {
    const document = flowOf({ start: start(), a: step, b: { ...step, name: 'a', tool: tool('x') }, end: end() }, [
      'start -> a',
      'a -> b',
      'b -> end',
    ])
    expect(await faultsOf(document)).toMatchObject([
      { code: 'FLOW_NODE_NAME', path: at('b'), message: expect.stringContaining(at('a')) },
    ])
  })

  it('are those that edges lead to', async () => {
    const document = flowOf({ start: start(), a: step, end: end() }, ['start -> a', 'a -> end'], {
      nodes: [ref('start'), ref('end')],
    })
    expect((await shortFaults(document)).filter((fault) => fault.startsWith('FLOW_EDGE_NODE'))).toEqual([
      'FLOW_EDGE_NODE $.control_flow_connections[0].to_node',
      'FLOW_EDGE_NODE $.control_flow_connections[1].from_node',
    ])
  })

  it('listed twice are one, with a warning', async () => {
    const document = flowOf({ start: start(), end: end() }, ['start -> end'])
    document.nodes.push(ref('end'))
    expect(await shortWarnings(document)).toEqual(['FLOW_NODE_LISTED $.nodes[2]'])
  })

  it('written out twice are two, of one id', async () => {
    const document = around(step)
    expect(await shortFaults({ ...document, start_node: { id: 'start', name: 'start', ...start() } })).toContain(
      'FLOW_ID_TWICE $.$referenced_components.start',
    )
  })
})
