import { describe, expect, it } from 'vitest'
import { COMPONENT_TYPES } from '../components/types.ts'
import {
  agent,
  around,
  faultsOf,
  llm,
  load,
  pluginTypes,
  shortFaults,
  shortWarnings,
  tool,
} from '../document.fixture.ts'

const plugins = pluginTypes({
  Redact: {
    kind: 'transform',
    plugin: 'pii',
    version: '1.2.0',
    schema: {
      type: 'object',
      properties: { words: { type: 'array', items: { type: 'string' } } },
      required: ['words'],
      additionalProperties: false,
    },
  },
  Lookup: {
    kind: 'node',
    plugin: 'crm',
    version: '2.0.0',
    inputs: [{ title: 'id', type: 'string' }],
    outputs: [{ title: 'customer', type: 'object' }],
    branches: ['found', 'lost'],
  },
  Stub: { kind: 'provider', plugin: 'stub', version: '1.0.0' },
  Pattern: { kind: 'component', plugin: 'pii', version: '1.2.0' },
  RetryPolicy: { kind: 'middleware', plugin: 'policies', version: '1.0.0' },
  AgUi: { kind: 'encoder', plugin: 'ag-ui', version: '1.0.0' },
})
const redact = (more: object = {}) => ({ component_type: 'Redact', name: 'redact', words: ['x'], ...more })

describe('a component type', () => {
  it.each([...COMPONENT_TYPES.values()].filter(({ supported }) => !supported).map(({ type }) => type))(
    '%s is known and not supported yet',
    async (type) => {
      expect(await faultsOf({ component_type: type, name: 'x' })).toMatchObject([
        { code: 'FLOW_TYPE_UNSUPPORTED', message: expect.stringContaining(`"${type}"`) },
      ])
    },
  )

  it('of the specification is one of 61, of which 16 run', () => {
    const types = [...COMPONENT_TYPES.values()]
    expect(types.filter(({ supported }) => supported).map(({ type }) => type)).toEqual([
      'Agent',
      'Flow',
      'StartNode',
      'EndNode',
      'LlmNode',
      'AgentNode',
      'ToolNode',
      'BranchingNode',
      'FlowNode',
      'ControlFlowEdge',
      'DataFlowEdge',
      'ServerTool',
      'OpenAiConfig',
      'OpenAiCompatibleConfig',
      'VllmConfig',
      'OllamaConfig',
    ])
    expect(types).toHaveLength(61)
  })

  it('that nobody knows is refused, with the nearest', async () => {
    expect(await faultsOf(around({ component_type: 'LlmNod' }))).toMatchObject([
      {
        code: 'FLOW_TYPE_UNKNOWN',
        path: '$.$referenced_components.node',
        message: expect.stringContaining('Did you mean "LlmNode"?'),
      },
    ])
  })

  it.each(['constructor', 'toString', 'valueOf', 'hasOwnProperty', '__proto__'])(
    '%s is nothing special',
    async (type) => {
      expect(await shortFaults({ component_type: type, name: 'x' })).toEqual(['FLOW_TYPE_UNKNOWN $'])
    },
  )

  it('of a draft before 25.4.1 is told apart', async () => {
    expect(await faultsOf({ type: 'Agent', name: 'x' })).toMatchObject([
      { code: 'FLOW_TYPE_MISSING', message: expect.stringContaining('write "component_type"') },
    ])
  })

  it.each([
    {
      name: 'a tool among nodes',
      document: around(tool('t')),
      says: '"ServerTool" is a tool, and a node is expected here.',
    },
    {
      name: 'a node as a model',
      document: agent({ llm_config: { component_type: 'EndNode', name: 'x' } }),
      says: 'and a model configuration is expected here',
    },
    {
      name: 'a transform among nodes',
      document: around(redact({ component_type: 'Redact' })),
      says: 'It belongs in the "transforms" of an Agent',
    },
    {
      name: 'a plugin node among transforms',
      document: agent({ transforms: [{ component_type: 'Lookup', name: 'x' }] }),
      says: 'It belongs in the "nodes" of a flow',
    },
    {
      name: 'a component outside its plugin',
      document: agent({ transforms: [{ component_type: 'Pattern', name: 'x' }] }),
      says: 'inside another component of its plugin',
    },
  ])('has its place: $name', async ({ document, says }) => {
    expect(await faultsOf(document, { plugins })).toMatchObject([
      { code: 'FLOW_TYPE_SLOT', message: expect.stringContaining(says) },
    ])
  })

  it('Flow in an AgentNode is not supported yet', async () => {
    const document = around({
      component_type: 'AgentNode',
      agent: {
        ...around({ component_type: 'ToolNode', id: 'inner', tool: tool('x') }),
        id: 'f',
        $referenced_components: undefined,
      },
    })
    expect(await shortFaults(document)).toContain('FLOW_TYPE_UNSUPPORTED $.$referenced_components.node.agent')
  })
})

describe('E12: a middleware', () => {
  it('is refused in a document, with the reason', async () => {
    const [fault] = await faultsOf(agent({ transforms: [{ component_type: 'RetryPolicy', name: 'x' }] }), { plugins })
    expect(fault).toMatchObject({ code: 'FLOW_TYPE_INSTALLED', path: '$.transforms[0]' })
    expect(fault?.message).toContain('whoever starts the process chooses it, and a document never names it')
  })

  it('is not offered as a type one may have meant', async () => {
    const [fault] = await faultsOf({ component_type: 'RetryPolcy', name: 'x' }, { plugins })
    expect(fault?.code).toBe('FLOW_TYPE_UNKNOWN')
    expect(fault?.message).not.toContain('RetryPolicy')
  })

  it.each(['middleware', 'policies', 'tool_policy'])('cannot come in as a field "%s" either', async (field) => {
    expect(await shortFaults(agent({ [field]: [] }))).toEqual([`FLOW_FIELD_INSTALLED $.${field}`])
  })

  it('is not alone in this: an encoder belongs to the request', async () => {
    expect(await faultsOf({ component_type: 'AgUi', name: 'x' }, { plugins })).toMatchObject([
      { code: 'FLOW_TYPE_INSTALLED', message: expect.stringContaining('each request chooses it') },
    ])
  })
})

describe("a plugin's component", () => {
  it('carries its own fields, references replaced', async () => {
    const document = around({
      component_type: 'AgentNode',
      agent: agent({ transforms: [{ ...redact(), words: ['a', { $component_ref: 'w' }] }] }),
    })
    Object.assign(document.$referenced_components, { w: 'b' })
    const flow = await load(document, { plugins })
    const node = flow.nodes.find((entry) => 'agent' in entry)
    expect(node && 'agent' in node && node.agent.transforms).toEqual([
      {
        type: 'Redact',
        name: 'redact',
        id: expect.any(String),
        plugin: 'pii',
        pluginVersion: '1.2.0',
        settings: { words: ['a', 'b'] },
      },
    ])
  })

  it('is judged by the schema of its manifest, everything at once', async () => {
    expect(await shortFaults(agent({ transforms: [redact({ words: [1], colour: 'red' })] }), { plugins })).toEqual([
      'FLOW_SETTINGS $.transforms[0]',
      'FLOW_SETTINGS $.transforms[0].words[0]',
    ])
  })

  it('needs a name', async () => {
    expect(await shortFaults(agent({ transforms: [redact({ name: '' })] }), { plugins })).toEqual([
      'FLOW_FIELD_MISSING $.transforms[0]',
    ])
  })

  it('may hold components, which are checked too', async () => {
    const document = agent({
      transforms: [{ component_type: 'Stub2', name: 'x' }],
      llm_config: { component_type: 'Stub', name: 's', inner: { deep: [{ component_type: 'Nope', name: 'y' }] } },
    })
    expect(await shortFaults(document, { plugins })).toEqual([
      'FLOW_TYPE_UNKNOWN $.llm_config.inner.deep[0]',
      'FLOW_TYPE_UNKNOWN $.transforms[0]',
    ])
  })

  it('can be a model', async () => {
    const document = around({
      component_type: 'LlmNode',
      prompt_template: 'x',
      llm_config: { component_type: 'Stub', name: 's', model_id: 'm', reply: 'hi' },
    })
    const node = (await load(document, { plugins })).nodes[1]
    expect(node).toMatchObject({
      llm: { modelId: 'm', provider: { plugin: 'stub', settings: { model_id: 'm', reply: 'hi' } } },
    })
  })

  it('can be a node, with the ports and branches of its manifest', async () => {
    const node = { component_type: 'Lookup', inputs: null }
    const document = around(node)
    expect(await shortFaults(document, { plugins })).toEqual([])
    expect((await load(document, { plugins })).nodes[1]).toMatchObject({
      type: 'Lookup',
      inputs: [{ title: 'id' }],
      outputs: [{ title: 'customer' }],
      branches: ['found', 'lost'],
      component: { plugin: 'crm' },
    })
  })

  it('that no loaded plugin provides names the plugin it was written for', async () => {
    const document = agent({
      llm_config: {
        component_type: 'Stub',
        name: 's',
        component_plugin_name: 'stub',
        component_plugin_version: '1.0.0',
      },
    })
    expect(await faultsOf(document)).toMatchObject([
      { message: expect.stringContaining('It belongs to plugin "stub" 1.0.0; load that with --plugin.') },
    ])
    expect(await faultsOf(document, { plugins })).toEqual([])
  })

  it('of another plugin than the one named is a fault, of another version a warning', async () => {
    const stub = (more: object) => agent({ llm_config: { component_type: 'Stub', name: 's', ...more } })
    expect(await shortFaults(stub({ component_plugin_name: 'other' }), { plugins })).toEqual([
      'FLOW_PLUGIN_NAME $.llm_config.component_plugin_name',
    ])
    expect(
      await shortWarnings(stub({ component_plugin_name: 'stub', component_plugin_version: '0.9.0' }), { plugins }),
    ).toEqual(['FLOW_PLUGIN_VERSION $.llm_config.component_plugin_version'])
  })

  it('cannot expand without bound', async () => {
    const table = Object.fromEntries(
      Array.from({ length: 40 }, (_, i) => [
        `v${i}`,
        Array.from({ length: 10 }, () => ({ $component_ref: `v${i + 1}` })),
      ]),
    )
    const document = {
      ...agent({ llm_config: { component_type: 'Stub', name: 's', all: { $component_ref: 'v0' } } }),
      $referenced_components: { ...table, v40: 1 },
    }
    expect(await shortFaults(document, { plugins })).toEqual(['FLOW_REF_SIZE $.llm_config.all'])
  })
})

describe('a field', () => {
  it.each([
    {
      name: 'missing',
      document: agent({ llm_config: llm({ model_id: undefined }) }),
      fault: 'FLOW_FIELD_MISSING $.llm_config',
    },
    { name: 'text that is none', document: agent({ system_prompt: 5 }), fault: 'FLOW_FIELD_TYPE $.system_prompt' },
    { name: 'a list that is none', document: agent({ tools: {} }), fault: 'FLOW_FIELD_TYPE $.tools' },
    { name: 'a component that is none', document: agent({ llm_config: 'gpt' }), fault: 'FLOW_FIELD_TYPE $.llm_config' },
    {
      name: 'a flag that is none',
      document: agent({ human_in_the_loop: 'yes' }),
      fault: 'FLOW_FIELD_TYPE $.human_in_the_loop',
    },
    {
      name: 'a choice that is none',
      document: agent({ llm_config: llm({ api_type: 'chat' }) }),
      fault: 'FLOW_FIELD_TYPE $.llm_config.api_type',
    },
    {
      name: 'O5: a generation parameter that is no number',
      document: agent({
        llm_config: llm({ default_generation_parameters: { temperature: 'hot', top_p: 1, stop: ['x'] } }),
      }),
      fault: 'FLOW_GENERATION $.llm_config.default_generation_parameters.temperature',
    },
    {
      name: 'a slip of an optional one',
      document: agent({ tools: [tool('pay', { require_confirmation: true })] }),
      fault: 'FLOW_FIELD_TYPO $.tools[0].require_confirmation',
    },
    {
      name: 'a slip in camel case',
      document: agent({ humanInTheLoop: false }),
      fault: 'FLOW_FIELD_TYPO $.humanInTheLoop',
    },
  ])('$name', async ({ document, fault }) => expect(await shortFaults(document)).toEqual([fault]))

  it('that the type does not have is ignored with a warning', async () => {
    expect(await shortWarnings(agent({ agents: [], flows: [] }))).toEqual([
      'FLOW_FIELD_UNKNOWN $.agents',
      'FLOW_FIELD_UNKNOWN $.flows',
    ])
  })

  it('"metadata" is free', async () => {
    expect(await shortWarnings(agent({ metadata: { anything: [{ goes: null }] } }))).toEqual([])
  })
})
