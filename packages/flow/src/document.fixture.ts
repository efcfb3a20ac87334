import type { PluginType, PluginTypes } from './components/plugin-types.ts'
import { type Fault, FlowError } from './faults/fault.ts'
import { type CheckedFlow, type LoadOptions, loadDocument, loadFlow } from './load.ts'

export type Parts = Readonly<Record<string, unknown>>

export const ref = (id: string) => ({ $component_ref: id })
export const text = (title: string, more: Parts = {}) => ({ title, type: 'string', ...more })
export const typed = (title: string, type: unknown, more: Parts = {}) => ({ title, type, ...more })

export const llm = (more: Parts = {}) => ({
  component_type: 'OpenAiConfig',
  name: 'gpt',
  model_id: 'gpt-5-mini',
  ...more,
})
export const tool = (name: string, more: Parts = {}) => ({ component_type: 'ServerTool', name, ...more })
export const agent = (more: Parts = {}) => ({
  component_type: 'Agent',
  name: 'helper',
  llm_config: llm(),
  system_prompt: 'Help.',
  ...more,
})

/** Nodes by name, which is their id too. */
export type Nodes = Readonly<Record<string, Parts & { readonly component_type: string }>>

const EDGE = /^(\S+?)(?:\[(\S+)\])? -> (\S+)$/
const PORT = /^(\S+)\.(\S+) -> (\S+)\.(\S+)$/

function controlEdge(drawn: string, i: number) {
  const [, from = '', branch, to = ''] = EDGE.exec(drawn) ?? []
  return {
    component_type: 'ControlFlowEdge',
    name: `control ${i}`,
    from_node: ref(from),
    ...(branch === undefined ? {} : { from_branch: branch }),
    to_node: ref(to),
  }
}

function dataEdge(drawn: string, i: number) {
  const [, source = '', output, destination = '', input] = PORT.exec(drawn) ?? []
  return {
    component_type: 'DataFlowEdge',
    name: `data ${i}`,
    source_node: ref(source),
    source_output: output,
    destination_node: ref(destination),
    destination_input: input,
  }
}

/**
 * A flow document. Edges are drawn as text: `start -> triage`, `triage[urgent] -> call`, and `start.query -> triage.query`
 * for data. The first node is the start.
 */
export function flowOf(
  nodes: Nodes,
  edges: readonly string[],
  { data, ...more }: Parts & { data?: readonly string[] } = {},
) {
  const names = Object.keys(nodes)
  return {
    component_type: 'Flow',
    name: 'support',
    start_node: ref(names[0] as string),
    nodes: names.map(ref),
    control_flow_connections: edges.map(controlEdge),
    ...(data === undefined ? {} : { data_flow_connections: data.map(dataEdge) }),
    $referenced_components: Object.fromEntries(names.map((name) => [name, { id: name, name, ...nodes[name] }])),
    ...more,
  }
}

export const start = (...inputs: readonly object[]) => ({ component_type: 'StartNode', inputs })
export const end = (...outputs: readonly object[]) => ({ component_type: 'EndNode', outputs })

/** start -> `node` -> end */
export const around = (node: Nodes[string], more: Parts & { data?: readonly string[] } = {}) =>
  flowOf({ start: start(), node, end: end() }, ['start -> node', 'node -> end'], more)

export const pluginTypes = (types: Readonly<Record<string, PluginType>>): PluginTypes => {
  const table = new Map(Object.entries(types))
  return { get: (type) => table.get(type), types: () => [...table.keys()] }
}

const asText = (document: unknown) => (typeof document === 'string' ? document : JSON.stringify(document))

export const load = (document: unknown, options?: LoadOptions): Promise<CheckedFlow> =>
  loadFlow(asText(document), options)

/** The faults of a document; none when it loads. */
export async function faultsOf(document: unknown, options?: LoadOptions): Promise<readonly Fault[]> {
  try {
    await loadDocument(asText(document), options)
    return []
  } catch (error) {
    if (error instanceof FlowError) return error.faults
    throw error
  }
}

/** `CODE path` of each fault. */
export const shortFaults = async (document: unknown, options?: LoadOptions) =>
  (await faultsOf(document, options)).map(({ code, path }) => `${code} ${path}`)

/** `CODE path` of each warning of a document that loads. */
export const shortWarnings = async (document: unknown, options?: LoadOptions) =>
  (await loadDocument(asText(document), options)).warnings.map(({ code, path }) => `${code} ${path}`)
