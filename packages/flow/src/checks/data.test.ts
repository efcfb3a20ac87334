import { describe, expect, it } from 'vitest'
import {
  agent,
  end,
  faultsOf,
  flowOf,
  llm,
  load,
  shortFaults,
  shortWarnings,
  start,
  text,
  tool,
  typed,
} from '../document.fixture.ts'

const ask = (prompt: string, more: object = {}) => ({
  component_type: 'LlmNode',
  llm_config: llm(),
  prompt_template: prompt,
  ...more,
})
const straight = (
  node: { component_type: string },
  data: readonly string[] | undefined,
  { from = start(text('query')), to = end() } = {},
) => flowOf({ start: from, node, end: to }, ['start -> node', 'node -> end'], data === undefined ? {} : { data })
const at = (name: string) => `$.$referenced_components.${name}`

describe('a data flow edge', () => {
  it.each([
    {
      name: 'N4: reads what an LlmNode cannot produce',
      data: ['start.query -> node.query', 'node.answer -> end.answer'],
      faults: ['FLOW_EDGE_PORT $.data_flow_connections[1].source_output'],
    },
    {
      name: 'leads to an input that is not there',
      data: ['start.query -> node.query', 'start.query -> node.question', 'node.generated_text -> end.answer'],
      faults: ['FLOW_EDGE_PORT $.data_flow_connections[1].destination_input'],
    },
    {
      name: 'N4: reads from a node that is not there',
      data: ['start.query -> node.query', 'nobody.x -> end.answer', 'node.generated_text -> end.answer'],
      faults: ['FLOW_REF_UNKNOWN $.data_flow_connections[1].source_node'],
    },
  ])('$name', async ({ data, faults }) =>
    expect(await shortFaults(straight(ask('{{query}}'), data, { to: end(text('answer')) }))).toEqual(faults),
  )

  it('N4: reads the outputs that an LlmNode declares', async () => {
    const node = ask('{{query}}', { outputs: [text('language'), typed('score', 'number')] })
    expect(
      await shortFaults(
        straight(node, ['start.query -> node.query', 'node.score -> end.answer'], { to: end(text('answer')) }),
      ),
    ).toEqual([])
  })

  it('N4: reads anything from a node whose outputs are open', async () => {
    const node = { component_type: 'AgentNode', agent: agent() }
    expect(
      await shortFaults(
        straight(node, ['start.query -> node.query', 'node.whatever -> end.answer'], { to: end(text('answer')) }),
      ),
    ).toEqual([])
  })

  it('suggests a similar name', async () => {
    const [fault] = await faultsOf(straight(ask('{{query}}'), ['start.qurey -> node.query']))
    expect(fault?.message).toBe('node "start" has no output "qurey"; it has "query". Did you mean "query"?')
  })

  it('leads to a type that its value can become', async () => {
    const work = { component_type: 'ToolNode', tool: tool('t', { inputs: [typed('n', 'integer')] }) }
    expect(
      await shortFaults(straight(work, ['start.query -> node.n'], { from: start(typed('query', 'number')) })),
    ).toEqual([])
    const [fault] = await faultsOf(straight(work, ['start.query -> node.n']))
    expect(fault).toMatchObject({
      code: 'FLOW_EDGE_TYPE',
      path: '$.data_flow_connections[0]',
      message: 'output "query" of "start" is string; input "n" of "node" takes integer, which it cannot become.',
    })
  })

  it('may lead back, to a node or to itself', async () => {
    const work = {
      component_type: 'ToolNode',
      tool: tool('t', { inputs: [typed('n', 'integer', { default: 0 })], outputs: [typed('n', 'integer')] }),
    }
    expect(await shortFaults(straight(work, ['node.n -> node.n']))).toEqual([])
  })
})

describe('an input that no edge feeds', () => {
  it('is a fault where nothing of its name comes before', async () => {
    expect(await shortFaults(straight(ask('{{query}} {{tone}}'), ['start.query -> node.query']))).toEqual([
      `FLOW_INPUT_UNFED ${at('node')}`,
    ])
  })

  it('takes its default', async () => {
    const node = ask('{{tone}}', { inputs: [text('tone', { default: 'dry' })] })
    expect(await shortFaults(straight(node, []))).toEqual([])
  })

  it('takes what a node before yields under its name, with a warning', async () => {
    const document = straight(ask('{{query}}'), [])
    expect(await shortWarnings(document)).toEqual([`FLOW_INPUT_BY_NAME ${at('node')}`])
    expect((await load(document)).dataEdges).toEqual([
      { source: 'start', output: 'query', destination: 'node', input: 'query', implied: true },
    ])
  })

  it('does not take what comes after, nor what is of another type', async () => {
    const work = { component_type: 'ToolNode', tool: tool('t', { inputs: [typed('query', 'integer'), text('late')] }) }
    const document = flowOf(
      { start: start(text('query')), node: work, after: ask('x', { outputs: [text('late')] }), end: end() },
      ['start -> node', 'node -> after', 'after -> end'],
      { data: [] },
    )
    expect(await shortFaults(document)).toEqual([`FLOW_INPUT_UNFED ${at('node')}`, `FLOW_INPUT_UNFED ${at('node')}`])
  })

  it('is left alone in a flow that declares no data edges at all', async () => {
    const flow = await load(straight(ask('{{query}} {{tone}}'), undefined))
    expect(flow.dataEdges).toBeUndefined()
    expect(flow.warnings).toEqual([])
  })
})
