interface FlowParts {
  readonly name?: string
  readonly nodes?: Readonly<Record<string, object>>
  readonly inputs?: readonly object[]
  readonly outputs?: readonly object[]
}

/** A flow whose nodes run one after another, between a start and an end. */
export function flowOf({ name = 'test', nodes = {}, inputs = [], outputs }: FlowParts = {}): object {
  const names = ['start', ...Object.keys(nodes), 'end']
  const components = {
    start: { component_type: 'StartNode', inputs },
    ...nodes,
    end: { component_type: 'EndNode', ...(outputs === undefined ? {} : { outputs }) },
  }
  const ref = (each: string) => ({ $component_ref: each })
  return {
    component_type: 'Flow',
    agentspec_version: '26.1.0',
    name,
    start_node: ref('start'),
    nodes: names.map(ref),
    control_flow_connections: names.slice(1).map((to, i) => ({
      component_type: 'ControlFlowEdge',
      name: `${names[i]}_${to}`,
      from_node: ref(names[i] as string),
      to_node: ref(to),
    })),
    $referenced_components: Object.fromEntries(
      Object.entries(components).map(([each, component]) => [each, { id: each, name: each, ...component }]),
    ),
  }
}

export const text = (title: string) => ({ title, type: 'string' })

/** A node that calls the tool of this name. */
export const toolNode = (name: string, inputs: readonly object[] = [], outputs: readonly object[] = []) => ({
  component_type: 'ToolNode',
  tool: { component_type: 'ServerTool', id: `${name}-tool`, name, description: `The tool ${name}.`, inputs, outputs },
})

const said = [text('said')]

/** Hands its input on. */
export const ECHO = flowOf({ name: 'echo', inputs: said, outputs: said })

/** Calls the tool `pay`, which hands its input on. */
export const PAYING = flowOf({
  name: 'paying',
  nodes: { pay: toolNode('pay', said, said) },
  inputs: said,
  outputs: said,
})

/** An agent that answers what is said and may call `pay`, by a model at `url`. */
export const helperOf = (url: string): object =>
  flowOf({
    name: 'helper',
    nodes: {
      helper: {
        component_type: 'AgentNode',
        agent: {
          component_type: 'Agent',
          id: 'agent',
          name: 'agent',
          llm_config: {
            component_type: 'OpenAiCompatibleConfig',
            id: 'm',
            name: 'm',
            model_id: 'gpt-test',
            url,
            api_key: 'k',
          },
          system_prompt: 'You help.',
          tools: [toolNode('pay', said, said).tool],
          inputs: said,
          outputs: [text('answer')],
        },
      },
    },
    inputs: said,
    outputs: [text('answer')],
  })

/** The program of a tool that hands its input on. */
export const ECHO_TOOL = `#!/usr/bin/env node
process.stdin.pipe(process.stdout)
`

/** A tool that is done when a file \`ready\` lies beside it. */
export const WAITING_TOOL = `#!/usr/bin/env node
const { existsSync } = require('node:fs')
const { join } = require('node:path')
const parent = process.ppid
const look = () => {
  if (process.ppid !== parent) process.exit(1)
  if (existsSync(join(__dirname, 'ready'))) process.stdin.pipe(process.stdout)
  else setTimeout(look, 20)
}
look()
`

/**
 * A policy in this process that asks before the tool `pay` runs, and goes by what `approved` says.
 *
 * @param ask what it asks, beside the schema of the answer.
 */
export const gateAsking = (ask: object): string => `
const schema = { type: 'object', properties: { approved: { type: 'boolean' } }, required: ['approved'] }
export default {
  manifest: {
    name: 'gate', version: '1.0.0', capabilities: [],
    components: [{ componentType: 'Gate', kind: 'middleware', seams: { toolCall: ['before'] } }],
  },
  handlers: { Gate: { toolCall: { before({ subject }, ctx) {
    if (subject.toolName !== 'pay') return { action: 'proceed' }
    if (ctx.answered == null) return { action: 'suspend', ask: { ...${JSON.stringify(ask)}, schema } }
    return ctx.answered.approved ? { action: 'proceed' } : { action: 'reject', reason: 'a person said no' }
  } } } },
}
`

export const GATE = gateAsking({ risk: 'it costs money' })
