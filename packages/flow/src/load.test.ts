import { describe, expect, it } from 'vitest'
import { agent, around, end, faultsOf, flowOf, llm, load, start, text, tool } from './document.fixture.ts'
import { loadDocument, loadFlow } from './load.ts'

const document = flowOf(
  {
    start: start(text('query')),
    ask: {
      component_type: 'LlmNode',
      llm_config: llm({ api_key: '$KEY', default_generation_parameters: { top_p: 0.5, max_tokens: 4 } }),
      prompt_template: 'Is this urgent? {{query}}',
    },
    end: end(text('generated_text')),
  },
  ['start -> ask', 'ask -> end'],
  { description: 'Sorts mail.', agentspec_version: '26.1.0' },
)

describe('a checked flow', () => {
  it('says everything that a run needs', async () => {
    const property = (title: string) => ({
      title,
      type: { kind: 'string' },
      default: undefined,
      schema: { title, type: 'string' },
      constrained: false,
    })
    const ports = (inputs: object[], outputs: object[]) => ({ inputs, outputs, openInputs: false, openOutputs: false })
    expect(await load(document)).toEqual({
      type: 'Flow',
      name: 'support',
      id: '$',
      description: 'Sorts mail.',
      version: '26.1.0',
      warnings: [],
      environment: [{ name: 'KEY', path: '$.$referenced_components.ask.llm_config.api_key' }],
      ...ports([property('query')], [property('generated_text')]),
      start: 'start',
      nodes: [
        {
          type: 'StartNode',
          name: 'start',
          id: 'start',
          path: '$.$referenced_components.start',
          ...ports([property('query')], [property('query')]),
          branches: ['next'],
        },
        {
          type: 'LlmNode',
          name: 'ask',
          id: 'ask',
          path: '$.$referenced_components.ask',
          ...ports([property('query')], [property('generated_text')]),
          branches: ['next'],
          prompt: 'Is this urgent? {{query}}',
          llm: {
            type: 'OpenAiConfig',
            name: 'gpt',
            id: '$.$referenced_components.ask.llm_config',
            modelId: 'gpt-5-mini',
            apiKey: '$KEY',
            parameters: { top_p: 0.5, max_tokens: 4 },
            tls: {},
          },
        },
        {
          type: 'EndNode',
          name: 'end',
          id: 'end',
          path: '$.$referenced_components.end',
          ...ports([property('generated_text')], [property('generated_text')]),
          branches: [],
          branchName: 'next',
        },
      ],
      controlEdges: [
        { from: 'start', to: 'ask', branch: undefined },
        { from: 'ask', to: 'end', branch: undefined },
      ],
      dataEdges: undefined,
      exits: ['next'],
    })
  })

  it('cannot be changed', async () => {
    const flow = await load(document)
    const parts: readonly unknown[] = [
      flow,
      flow.nodes,
      flow.nodes[1],
      flow.nodes[1]?.inputs,
      flow.nodes[1]?.inputs[0],
      flow.controlEdges,
      flow.warnings,
    ]
    expect(parts.every(Object.isFrozen)).toBe(true)
  })

  it('reads the same from YAML', async () => {
    const { stringify } = await import('yaml')
    expect(await loadFlow(stringify(document))).toEqual(await load(document))
  })

  it('shares what its document shares', async () => {
    const shared = flowOf(
      {
        start: start(),
        ...Object.fromEntries(
          ['a', 'b'].map((name) => [name, { component_type: 'AgentNode', agent: { $component_ref: 'helper' } }]),
        ),
        end: end(),
      },
      ['start -> a', 'a -> b', 'b -> end'],
    )
    Object.assign(shared.$referenced_components, { helper: agent() })
    const agents = (await load(shared)).nodes.flatMap((node) => ('agent' in node ? [node.agent] : []))
    expect(agents).toHaveLength(2)
    expect(agents[0]).toBe(agents[1])
  })
})

describe('a document', () => {
  it.each([
    { name: 'a flow', value: document, kind: 'flow' },
    { name: 'an agent', value: agent(), kind: 'agent' },
    { name: 'another component', value: tool('x'), kind: 'component' },
    { name: 'definitions alone', value: { $referenced_components: { a: tool('a'), b: agent() } }, kind: 'library' },
  ])('may be $name', async ({ value, kind }) =>
    expect(await loadDocument(JSON.stringify(value))).toMatchObject({ kind, warnings: [] }),
  )

  it.each([
    { name: 'an agent', value: agent(), says: 'a component of type "Agent"' },
    { name: 'definitions alone', value: { $referenced_components: { a: tool('a') } }, says: 'a library of components' },
  ])('runs only as a flow, not as $name', async ({ value, says }) => {
    const loading = load(value)
    await expect(loading).rejects.toMatchObject({
      code: 'FLOW_INVALID',
      faults: [{ code: 'FLOW_NOT_A_FLOW', message: expect.stringContaining(says) }],
    })
  })

  it.each(['[]', 'null', '5', '"Flow"'])('is an object, not %s', async (value) =>
    expect(await faultsOf(value)).toMatchObject([{ code: 'FLOW_ROOT', line: 1, column: 1 }]),
  )

  it('is checked in the parts that nothing uses, too', async () => {
    const value = around({ component_type: 'ToolNode', tool: tool('x') })
    Object.assign(value.$referenced_components, { unused: flowOf({ s: start(), e: end() }, []) })
    expect((await faultsOf(value)).map(({ code }) => code)).toEqual(['FLOW_DEAD_END', 'FLOW_UNREACHABLE'])
  })

  it('of hostile size ends soon, with the first 200 faults', async () => {
    const names = Array.from({ length: 20_000 }, (_, i) => `node-with-a-long-name-${i}`)
    const value = {
      component_type: 'Flow',
      name: 'x',
      start_node: { $component_ref: 'a' },
      nodes: names.map((name) => ({ $component_ref: `${name}x` })),
      control_flow_connections: [],
      $referenced_components: Object.fromEntries(names.map((name) => [name, tool(name)])),
    }
    expect(await faultsOf(value)).toHaveLength(200)
  })
})
