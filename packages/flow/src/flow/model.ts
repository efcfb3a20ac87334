import type { JsonObject } from '@sluice/core'
import type { Property } from '../schema/property.ts'

/** What every component of a checked document has. */
export interface Component {
  readonly type: string
  readonly name: string
  /** As the document has it, else the JSON path of the definition. */
  readonly id: string
  readonly description?: string
}

/** A component of a plugin's type; `settings` are its own fields as written, references replaced by what they mean. */
export interface PluginComponent extends Component {
  readonly plugin: string
  readonly pluginVersion: string
  readonly settings: JsonObject
}

export interface LlmConfig extends Component {
  readonly modelId: string
  readonly url?: string
  /** A key, or `$NAME`, which is read from the environment when the model is first asked. */
  readonly apiKey?: string
  readonly apiType?: 'chat_completions' | 'responses'
  /** `max_tokens`, `temperature` and `top_p`, which go into requests, and whatever else is written; without those that are `null`. */
  readonly parameters: JsonObject
  readonly retryPolicy?: JsonObject
  /** Paths of PEM files. */
  readonly tls: { readonly keyFile?: string; readonly certFile?: string; readonly caFile?: string }
  /** Present when a plugin provides the model. */
  readonly provider?: PluginComponent
}

/** A tool by name; who runs it is the host's to say. */
export interface FlowTool extends Component {
  /** `undefined` when the document leaves it to whoever provides the tool. */
  readonly inputs: readonly Property[] | undefined
  readonly outputs: readonly Property[] | undefined
  readonly requiresConfirmation: boolean
}

/** What goes into a component and what comes out. */
export interface Ports {
  readonly inputs: readonly Property[]
  readonly outputs: readonly Property[]
  /** Whether it also takes, or yields, values that it does not list. */
  readonly openInputs: boolean
  readonly openOutputs: boolean
}

export interface FlowAgent extends Component, Ports {
  readonly llm: LlmConfig
  readonly systemPrompt: string
  readonly tools: readonly FlowTool[]
  readonly transforms: readonly PluginComponent[]
  readonly humanInTheLoop: boolean
}

interface NodeBase extends Component, Ports {
  /** The branches it may leave by; `undefined` when only its plugin knows. */
  readonly branches: readonly string[] | undefined
  /** JSON path of its definition. */
  readonly path: string
}

export interface StartNode extends NodeBase {
  readonly type: 'StartNode'
}
export interface EndNode extends NodeBase {
  readonly type: 'EndNode'
  /** The branch by which a `FlowNode` around this flow leaves. */
  readonly branchName: string
}
export interface LlmNode extends NodeBase {
  readonly type: 'LlmNode'
  readonly llm: LlmConfig
  readonly prompt: string
}
export interface AgentNode extends NodeBase {
  readonly type: 'AgentNode'
  readonly agent: FlowAgent
}
export interface ToolNode extends NodeBase {
  readonly type: 'ToolNode'
  readonly tool: FlowTool
}
export interface BranchingNode extends NodeBase {
  readonly type: 'BranchingNode'
  /** From the input, as text, to a branch. */
  readonly mapping: ReadonlyMap<string, string>
  /** The branch for any other input. */
  readonly fallback: string
}
export interface FlowNode extends NodeBase {
  readonly type: 'FlowNode'
  readonly flow: Flow
}
export interface PluginNode extends NodeBase {
  readonly type: string
  readonly component: PluginComponent
}

export type CheckedNode = StartNode | EndNode | LlmNode | AgentNode | ToolNode | BranchingNode | FlowNode | PluginNode

/** Narrows a node by its type. A `PluginNode` is what has a `component`. */
export const isPluginNode = (node: CheckedNode): node is PluginNode => 'component' in node

export interface ControlEdge {
  /** Names of nodes. */
  readonly from: string
  readonly to: string
  /** `undefined` for the edge that is taken when no other edge has the branch chosen. */
  readonly branch: string | undefined
}

export interface DataEdge {
  readonly source: string
  readonly output: string
  readonly destination: string
  readonly input: string
  /** Whether the document left it out and it follows from the names; such an input is warned about. */
  readonly implied: boolean
}

/** A flow that has been checked. Names of its nodes are unique. */
export interface Flow extends Component, Ports {
  readonly type: 'Flow'
  readonly start: string
  readonly nodes: readonly CheckedNode[]
  readonly controlEdges: readonly ControlEdge[]
  /** `undefined` when the document declares none: then each output feeds every input of its name. */
  readonly dataEdges: readonly DataEdge[] | undefined
  /** The branches by which the flow may end. */
  readonly exits: readonly string[]
}
