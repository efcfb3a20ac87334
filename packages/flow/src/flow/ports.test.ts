import { describe, expect, it } from 'vitest'
import {
  agent,
  around,
  end,
  faultsOf,
  flowOf,
  llm,
  load,
  type Parts,
  shortFaults,
  shortWarnings,
  start,
  text,
  tool,
  typed,
} from '../document.fixture.ts'

const at = '$.$referenced_components.node'
const nodeOf = async (node: { component_type: string }) => (await load(around(node))).nodes[1]
const titlesOf = async (node: { component_type: string }) => {
  const built = await nodeOf(node)
  return {
    inputs: built?.inputs.map(({ title }) => title),
    outputs: built?.outputs.map(({ title }) => title),
    open: [built?.openInputs, built?.openOutputs],
  }
}
const ask = (more: object) => ({
  component_type: 'LlmNode',
  llm_config: llm(),
  prompt_template: '{{a}} {{ b }}',
  ...more,
})
const call = (inner: object, more: object = {}) => ({
  component_type: 'ToolNode',
  tool: tool('t', inner as never),
  ...more,
})
const think = (inner: object, more: object = {}) => ({
  component_type: 'AgentNode',
  agent: agent(inner as never),
  ...more,
})

describe('what a node takes and yields, where it declares nothing', () => {
  it.each([
    {
      name: 'LlmNode: its placeholders, and the text',
      node: ask({}),
      is: { inputs: ['a', 'b'], outputs: ['generated_text'], open: [false, false] },
    },
    {
      name: "ToolNode: the tool's",
      node: call({ inputs: [text('x')], outputs: [text('y')] }),
      is: { inputs: ['x'], outputs: ['y'], open: [false, false] },
    },
    {
      name: 'ToolNode of a tool that leaves it to its provider: anything',
      node: call({}),
      is: { inputs: [], outputs: [], open: [true, true] },
    },
    {
      name: "AgentNode: the agent's",
      node: think({ inputs: [text('x')], outputs: [text('y')] }),
      is: { inputs: ['x'], outputs: ['y'], open: [false, false] },
    },
    {
      name: 'AgentNode of an agent that does not say: what its prompt asks for and anything else',
      node: think({ system_prompt: '{{a}}' }),
      is: { inputs: ['a'], outputs: [], open: [true, true] },
    },
    {
      name: 'AgentNode of an agent without outputs: whatever its text holds',
      node: think({ inputs: [], outputs: [] }),
      is: { inputs: [], outputs: [], open: [false, true] },
    },
    {
      name: 'BranchingNode: one input',
      node: { component_type: 'BranchingNode', mapping: {} },
      is: { inputs: ['branching_mapping_key'], outputs: [], open: [false, false] },
    },
  ])('$name', async ({ node, is }) => expect(await titlesOf(node)).toEqual(is))

  it('a FlowNode has those of its flow', async () => {
    const subflow = flowOf({ s: start(text('x')), e: end(text('x')) }, ['s -> e'])
    expect(await titlesOf({ component_type: 'FlowNode', subflow } as never)).toEqual({
      inputs: ['x'],
      outputs: ['x'],
      open: [false, false],
    })
  })
})

describe('what a node declares', () => {
  it.each([
    { name: 'an LlmNode lacks a placeholder', node: ask({ inputs: [text('a')] }), fault: `FLOW_PORTS ${at}.inputs` },
    {
      name: 'an LlmNode has one more',
      node: ask({ inputs: [text('a'), text('b'), text('c')] }),
      fault: `FLOW_PORTS ${at}.inputs`,
    },
    {
      name: 'a ToolNode has another than the tool',
      node: call({ inputs: [text('x')] }, { inputs: [text('y')] }),
      fault: `FLOW_PORTS ${at}.inputs`,
    },
    {
      name: 'a ToolNode lacks an output of the tool',
      node: call({ outputs: [text('x'), text('y')] }, { outputs: [text('x')] }),
      fault: `FLOW_PORTS ${at}.outputs`,
    },
    {
      name: 'an AgentNode lacks a placeholder',
      node: think({ system_prompt: '{{a}}' }, { inputs: [text('b')] }),
      fault: `FLOW_PORTS ${at}.inputs`,
    },
    {
      name: 'an Agent lacks a placeholder',
      node: think({ system_prompt: '{{a}}', inputs: [] }),
      fault: `FLOW_PORTS ${at}.agent.inputs`,
    },
    {
      name: 'a BranchingNode yields something',
      node: { component_type: 'BranchingNode', mapping: {}, outputs: [text('x')] },
      fault: `FLOW_PORTS ${at}.outputs`,
    },
    {
      name: 'an input cannot become what the tool takes',
      node: call({ inputs: [typed('x', 'integer')] }, { inputs: [text('x')] }),
      fault: `FLOW_PORT_TYPE ${at}.inputs[0]`,
    },
    {
      name: 'an output cannot come from what the tool yields',
      node: call({ outputs: [text('x')] }, { outputs: [typed('x', 'integer')] }),
      fault: `FLOW_PORT_TYPE ${at}.outputs[0]`,
    },
  ])('agrees with what it holds: $name', async ({ node, fault }) =>
    expect(await shortFaults(around(node))).toEqual([fault]),
  )

  it.each([
    {
      name: 'an agent is told of inputs that its prompt has no place for',
      node: think({}, { inputs: [text('query')] }),
    },
    {
      name: 'an input with a default may be left out',
      node: call({ inputs: [text('x'), text('y', { default: '' })] }, { inputs: [text('x')] }),
    },
    {
      name: 'a type may be narrower',
      node: call({ inputs: [typed('x', 'number')] }, { inputs: [typed('x', 'integer')] }),
    },
    { name: 'an LlmNode names its text', node: ask({ outputs: [text('language')] }) },
  ])('may differ: $name', async ({ node }) => expect(await shortFaults(around(node))).toEqual([]))

  it('inherits a default', async () => {
    const node = await nodeOf(call({ inputs: [text('x', { default: 'd' })] }, { inputs: [text('x')] }))
    expect(node?.inputs).toMatchObject([{ title: 'x', default: 'd' }])
  })

  it('is said in full when it is wrong', async () => {
    const [fault] = await faultsOf(around(ask({ inputs: [text('a'), text('c')] })))
    expect(fault?.message).toBe(
      'the inputs of LlmNode "node" must be those of what it holds, "a", "b": "b" is missing, and "c" is not among them.\n' +
        'Correct the list, or leave "inputs" out.',
    )
  })
})

describe('a start and an end', () => {
  const flow = (first: object, last: object, more: Parts = {}) =>
    flowOf({ start: first as never, end: last as never }, ['start -> end'], more)

  it.each([
    { name: 'inputs alone', first: start(text('x')) },
    { name: 'outputs alone', first: { component_type: 'StartNode', outputs: [text('x')] } },
    { name: 'both, equal', first: { ...start(text('x')), outputs: [text('x')] } },
  ])('list what they hand on once: $name', async ({ first }) => {
    const { inputs, warnings } = await load(flow(first, end()))
    expect([inputs.map(({ title }) => title), warnings]).toEqual([['x'], []])
  })

  it('take an empty list beside a full one as not given, with a warning', async () => {
    const document = flow({ ...start(), outputs: [text('x')] }, { ...end(), inputs: [text('x')] }, { inputs: [] })
    expect((await load(document)).inputs).toMatchObject([{ title: 'x' }])
    expect(await shortWarnings(document)).toEqual([
      'FLOW_PORTS_EMPTY $.$referenced_components.start.inputs',
      'FLOW_PORTS_EMPTY $.$referenced_components.end.outputs',
      'FLOW_PORTS_EMPTY $.inputs',
    ])
  })

  it('that contradict themselves are a fault', async () =>
    expect(await shortFaults(flow({ ...start(text('x')), outputs: [text('y')] }, end()))).toEqual([
      'FLOW_PORTS $.$referenced_components.start.outputs',
    ]))

  it('that list nothing are open', async () => {
    const { openInputs, openOutputs } = await load(flow({ component_type: 'StartNode' }, { component_type: 'EndNode' }))
    expect([openInputs, openOutputs]).toEqual([true, true])
  })

  it('must agree with the inputs of the flow', async () =>
    expect(await shortFaults(flow(start(text('x')), end(), { inputs: [text('y')] }))).toEqual(['FLOW_PORTS $.inputs']))
})
