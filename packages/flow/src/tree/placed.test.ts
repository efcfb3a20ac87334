import { describe, expect, it } from 'vitest'
import {
  agent,
  around,
  end,
  faultsOf,
  flowOf,
  llm,
  load,
  ref,
  shortFaults,
  start,
  text,
  tool,
} from '../document.fixture.ts'
import { loadDocument } from '../load.ts'

const llmOf = async (document: unknown) => {
  const checked = await loadDocument(JSON.stringify(document))
  return checked.kind === 'agent' ? checked.agent.llm : undefined
}

describe('a reference', () => {
  it('may stand for any component', async () => {
    const document = {
      ...agent({ llm_config: ref('model') }),
      $referenced_components: { model: llm({ model_id: 'shared' }) },
    }
    expect(await llmOf(document)).toMatchObject({ modelId: 'shared' })
  })

  it('may stand for any value', async () => {
    const document = {
      ...agent({ llm_config: llm({ model_id: ref('name') }), tools: ref('tools'), inputs: [ref('query')] }),
      $referenced_components: { name: 'gpt-x', tools: [tool('a'), ref('b')], b: tool('b'), query: text('query') },
    }
    const checked = await loadDocument(JSON.stringify(document))
    expect(checked).toMatchObject({
      kind: 'agent',
      agent: { llm: { modelId: 'gpt-x' }, tools: [{ name: 'a' }, { name: 'b' }], inputs: [{ title: 'query' }] },
    })
  })

  it('may stand for an entry of a map', async () => {
    const route = { component_type: 'BranchingNode', inputs: [text('query')], mapping: { a: ref('left') } }
    const document = flowOf({ start: start(text('query')), route, end: end() }, [
      'start -> route',
      'route[west] -> end',
      'route[default] -> end',
    ])
    Object.assign(document.$referenced_components, { left: 'west' })
    expect((await load(document)).nodes[1]).toMatchObject({ mapping: new Map([['a', 'west']]) })
  })

  it('may lead to a reference', async () => {
    const document = {
      ...agent({ llm_config: ref('a') }),
      $referenced_components: { a: ref('b'), b: llm({ model_id: 'far' }) },
    }
    expect(await llmOf(document)).toMatchObject({ modelId: 'far' })
  })

  it('means the nearest definition around, then those further out', async () => {
    const inner = flowOf(
      {
        start: start(),
        ask: { component_type: 'LlmNode', llm_config: ref('model'), prompt_template: 'x' },
        say: { component_type: 'LlmNode', llm_config: ref('other'), prompt_template: 'x' },
        end: end(),
      },
      ['start -> ask', 'ask -> say', 'say -> end'],
    )
    inner.$referenced_components.model = llm({ id: 'm1', model_id: 'near' }) as never
    const outer = flowOf({ start2: start(), node: { component_type: 'FlowNode', subflow: inner }, end2: end() }, [
      'start2 -> node',
      'node -> end2',
    ])
    Object.assign(outer.$referenced_components, {
      model: llm({ id: 'm2', model_id: 'far' }),
      other: llm({ id: 'm3', model_id: 'outer' }),
    })
    const flow = await load(outer)
    const nodes = flow.nodes.flatMap((node) => ('flow' in node ? node.flow.nodes : []))
    expect(nodes.flatMap((node) => ('llm' in node ? [node.llm.modelId] : []))).toEqual(['near', 'outer'])
  })

  it('may stand at the top, beside what it refers to', async () => {
    const document = { agentspec_version: '26.1.0', $component_ref: 'me', $referenced_components: { me: agent() } }
    expect(await loadDocument(JSON.stringify(document))).toMatchObject({ kind: 'agent', version: '26.1.0' })
  })

  it('to nothing is a fault, with a similar name', async () => {
    const document = { ...agent({ llm_config: ref('modle') }), $referenced_components: { model: llm() } }
    expect(await faultsOf(document)).toMatchObject([
      { code: 'FLOW_REF_UNKNOWN', path: '$.llm_config', message: expect.stringContaining('Did you mean "model"?') },
    ])
  })

  it('to a secret that other runtimes keep elsewhere says how to write one here', async () => {
    const document = agent({ llm_config: llm({ api_key: ref('gpt.api_key') }) })
    expect(await faultsOf(document)).toMatchObject([{ message: expect.stringContaining('"$NAME"') }])
  })

  it('does not see into children and siblings', async () => {
    const hidden = {
      component_type: 'AgentNode',
      agent: { ...agent(), $referenced_components: { model: llm({ id: 'm' }) } },
    }
    const other = { component_type: 'LlmNode', llm_config: ref('model'), prompt_template: 'x' }
    const document = flowOf({ start: start(), hidden, other, end: end() }, [
      'start -> hidden',
      'hidden -> other',
      'other -> end',
    ])
    expect(await shortFaults(document)).toContain('FLOW_REF_UNKNOWN $.$referenced_components.other.llm_config')
  })

  it.each([
    { name: 'to itself', table: { a: ref('a') } },
    { name: 'around a corner', table: { a: ref('b'), b: ref('a') } },
  ])('that leads back is a fault: $name', async ({ table }) =>
    expect(await shortFaults({ ...agent({ llm_config: ref('a') }), $referenced_components: table })).toContain(
      'FLOW_REF_LOOP $.llm_config',
    ),
  )

  it('through components that contain themselves is a fault', async () => {
    const document = { ...around({ component_type: 'FlowNode', subflow: ref('self') }), id: 'self' }
    const library = { $referenced_components: { self: document } }
    expect(await faultsOf(library)).toMatchObject([
      { code: 'FLOW_REF_CYCLE', message: expect.stringContaining('contains itself') },
    ])
  })

  it('through a chain that no builder could follow is a fault', async () => {
    const holder = (i: number) =>
      i === 4_999
        ? { component_type: 'ToolNode', tool: tool('x') }
        : { component_type: 'FlowNode', subflow: ref(`f${i + 1}`) }
    const flows = Array.from({ length: 5_000 }, (_, i) => [
      `f${i}`,
      flowOf({ [`s${i}`]: start(), [`n${i}`]: holder(i), [`e${i}`]: end() }, [`s${i} -> n${i}`, `n${i} -> e${i}`]),
    ])
    const faults = await shortFaults({ $referenced_components: Object.fromEntries(flows) })
    expect(faults.some((fault) => fault.startsWith('FLOW_REF_DEPTH'))).toBe(true)
  })
})

describe('an id', () => {
  it('may be defined once; both places are named', async () => {
    const document = agent({ tools: [tool('a', { id: 'same' }), tool('b', { id: 'same' })] })
    expect(await faultsOf(document)).toMatchObject([
      {
        code: 'FLOW_ID_TWICE',
        path: '$.tools[1]',
        message: expect.stringMatching(/\$\.tools\[0\] and at \$\.tools\[1\]/),
      },
    ])
  })

  it('that is left out is the JSON path', async () => {
    expect(await llmOf(agent())).toMatchObject({ id: '$.llm_config' })
  })
})

describe('null', () => {
  it('in a field with a default is the same as leaving it out', async () => {
    const document = agent({
      id: null,
      description: null,
      tools: null,
      human_in_the_loop: null,
      inputs: null,
      llm_config: llm({ api_key: null, default_generation_parameters: { max_tokens: null, temperature: 0.1 } }),
    })
    expect(await loadDocument(JSON.stringify(document))).toMatchObject({
      agent: { tools: [], humanInTheLoop: true, openInputs: true, llm: { parameters: { temperature: 0.1 } } },
    })
  })

  it('in a required field is as good as nothing', async () => {
    expect(await shortFaults(agent({ system_prompt: null }))).toEqual(['FLOW_FIELD_MISSING $'])
  })
})
