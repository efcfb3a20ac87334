import { describe, expect, it } from 'vitest'
import { agent, around, llm, shortFaults, shortWarnings, tool } from '../document.fixture.ts'

const asking = (config: object) =>
  around({ component_type: 'LlmNode', llm_config: config, prompt_template: 'hi' }, { agentspec_version: '26.1.2' })
const AT = '$.$referenced_components.node.llm_config'

describe('a model of a document', () => {
  it('is asked once: a retry_policy is not applied, and that is said', async () => {
    expect(await shortWarnings(asking(llm({ retry_policy: { max_attempts: 3 } })))).toEqual([
      `FLOW_RETRY_POLICY ${AT}.retry_policy`,
    ])
    expect(await shortWarnings(asking(llm({ retry_policy: null })))).toEqual([])
  })

  it('is sent three generation parameters; others are not passed on, and that is said', async () => {
    const parameters = { temperature: 1, top_p: 1, max_tokens: 1, seed: 7, stop: null }
    expect(await shortWarnings(asking(llm({ default_generation_parameters: parameters })))).toEqual([
      `FLOW_GENERATION_IGNORED ${AT}.default_generation_parameters.seed`,
    ])
  })
})

describe("an agent's tools", () => {
  const using = (...tools: readonly object[]) =>
    around({ component_type: 'AgentNode', agent: agent({ tools }) }, { agentspec_version: '26.1.0' })

  it('have names of their own', async () => {
    expect(await shortFaults(using(tool('find'), { ...tool('find'), id: 'other' }))).toEqual([
      'FLOW_TOOL_NAME $.$referenced_components.node.agent.tools',
    ])
    expect(await shortFaults(using(tool('find'), tool('fetch')))).toEqual([])
  })

  it('are one where one is listed twice', async () => {
    const document = using({ $component_ref: 'find' }, { $component_ref: 'find' })
    Object.assign(document.$referenced_components, { find: { ...tool('find'), id: 'find' } })
    expect(await shortFaults(document)).toEqual([])
  })
})
