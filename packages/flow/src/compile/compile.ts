import {
  type Boundary,
  END,
  type Graph,
  graph,
  type Json,
  type JsonObject,
  makeNode,
  type Node,
  own,
  ownObject,
  type Ports,
  SluiceError,
  START,
  state,
  type Tool,
} from '@sluice/core'
import type { CheckedNode, EndNode, Flow, FlowTool } from '../flow/model.ts'
import type { FlowParts } from './parts.ts'
import { documentTool } from './tool.ts'
import { fill, fillExactly, type Side } from './values.ts'
import { INPUT_FIELD, RESULT_FIELD, Wiring } from './wiring.ts'
import { type Ready, type SubFlow, type Work, workOf } from './work.ts'

/** A flow as a graph: it takes the flow's inputs and results in its outputs. */
export type FlowGraph = Graph<JsonObject, JsonObject>

/**
 * Makes a graph of a checked flow: each of its nodes becomes a node of that name and type, which reads its mapped inputs and
 * writes its declared outputs.
 *
 * @throws SluiceError `FLOW_TOOLS_MISSING` with the name of every tool that the machine does not have; `FLOW_CONFIRMATION` for a
 *   tool that must not run without a person's word, which needs threads.
 */
export async function compileFlow(flow: Flow, parts: FlowParts): Promise<FlowGraph> {
  const flows = flowsIn(flow)
  const tools = await toolsOf(flows, parts)
  const compiled = new Map<Flow, SubFlow>()
  for (const inner of flows) compiled.set(inner, buildGraph(inner, readyFor(parts, tools, compiled)))
  return (compiled.get(flow) as SubFlow).graph as FlowGraph
}

/** A flow and all that it contains, each once, the innermost first. */
function flowsIn(flow: Flow, found = new Set<Flow>()): ReadonlySet<Flow> {
  for (const node of flow.nodes) {
    if (node.type === 'FlowNode' && 'flow' in node && !found.has(node.flow)) flowsIn(node.flow, found)
  }
  return found.add(flow)
}

async function toolsOf(flows: ReadonlySet<Flow>, parts: FlowParts): Promise<ReadonlyMap<FlowTool, Tool>> {
  const described = new Set([...flows].flatMap((flow) => flow.nodes.flatMap(toolsOfNode)))
  const missing = [...described].filter(({ name }) => parts.tool(name) === undefined).map(({ name }) => `"${name}"`)
  if (missing.length > 0) {
    throw new SluiceError(
      'FLOW_TOOLS_MISSING',
      `the flow uses tools that nothing provides: ${[...new Set(missing)].join(', ')}. Put programs of these names into --tools-dir, or load a plugin that has them.`,
    )
  }
  const gated = [...described].find((tool) => tool.requiresConfirmation)
  if (gated !== undefined) {
    throw new SluiceError(
      'FLOW_CONFIRMATION',
      `tool "${gated.name}" requires confirmation by a person, and this release cannot ask one yet.`,
      { tool: gated.name },
    )
  }
  const tools = await Promise.all(
    [...described].map(
      async (tool): Promise<[FlowTool, Tool]> => [tool, await documentTool(tool, parts.tool(tool.name) as Tool)],
    ),
  )
  return new Map(tools)
}

function toolsOfNode(node: CheckedNode): readonly FlowTool[] {
  if (node.type === 'ToolNode' && 'tool' in node) return [node.tool]
  return node.type === 'AgentNode' && 'agent' in node ? node.agent.tools : []
}

function readyFor(parts: FlowParts, tools: ReadonlyMap<FlowTool, Tool>, compiled: ReadonlyMap<Flow, SubFlow>): Ready {
  return {
    parts,
    tool: (described) => tools.get(described) as Tool,
    model: (config) => parts.model(config),
    flow: (flow) => compiled.get(flow) as SubFlow,
  }
}

function buildGraph(flow: Flow, ready: Ready): SubFlow {
  const wiring = new Wiring(flow)
  const exits = new WeakMap<JsonObject, string>()
  const nodes = new Map(flow.nodes.map((node) => [node.name, graphNode(node, workOf(node, ready), wiring)]))
  const nodeOf = (name: string) => nodes.get(name) as Node
  const builder = graph(flow.name, state(wiring.fields())).edge(START, nodeOf(flow.start))
  for (const { from, to, branch } of flow.controlEdges)
    builder.edge(nodeOf(from), nodeOf(to), { branch: labelOf(flow, from, branch) })
  for (const node of flow.nodes) if (node.type === 'EndNode') builder.edge(nodeOf(node.name), END)
  builder.boundary(boundaryOf(flow, wiring, exits))
  const compiled = builder.check() as unknown as FlowGraph
  return { graph: compiled, exitOf: (result) => exits.get(result) }
}

/** Of a node with one way out, an edge labelled with its only branch is its ordinary way on. */
function labelOf(flow: Flow, from: string, branch: string | undefined): string | undefined {
  const node = flow.nodes.find(({ name }) => name === from)
  const chooses =
    node === undefined || node.branches === undefined || node.branches.length > 1 || node.type === 'BranchingNode'
  return chooses || branch === undefined || !node.branches?.includes(branch) ? branch : undefined
}

function graphNode(node: CheckedNode, work: Work, wiring: Wiring): Node {
  return makeNode(node.type, node.name, work as Node['run'], { ports: portsOf(node, wiring) }) as Node
}

function portsOf(node: CheckedNode, wiring: Wiring): Ports {
  const inputs: Side = {
    properties: node.inputs,
    open: node.openInputs,
    name: (title) => `input "${title}" of node "${node.name}"`,
  }
  const outputs: Side = {
    properties: node.outputs,
    open: node.openOutputs,
    name: (title) => `output "${title}" of node "${node.name}"`,
  }
  const asWritten = (value: unknown, what: string) => ownObject(value, `${what} of node "${node.name}"`)
  return {
    input: (values) => fill(inputs, wiring.read(node, values)),
    checkInput: (value) => fillExactly(inputs, asWritten(value, 'the input')),
    checkOutput: (value) => fill(outputs, asWritten(value, 'the output'), true),
    update: (output) =>
      node.type === 'EndNode' ? { ...wiring.write(node, output), [RESULT_FIELD]: output } : wiring.write(node, output),
  }
}

/** Declared outputs come from the end node that was reached, or are the flow's defaults; without any, all that was produced is yielded. */
function boundaryOf(flow: Flow, wiring: Wiring, exits: WeakMap<JsonObject, string>): Boundary {
  const inputs: Side = {
    properties: flow.inputs,
    open: flow.openInputs,
    name: (title) => `input "${title}" of flow "${flow.name}"`,
  }
  const outputs: Side = {
    properties: flow.outputs,
    open: false,
    name: (title) => `output "${title}" of flow "${flow.name}"`,
  }
  const ends = new Map(
    flow.nodes.filter((node): node is EndNode => node.type === 'EndNode').map((node) => [node.name, node.branchName]),
  )
  return {
    checkInput: (value: Json) => fillExactly(inputs, ownObject(value, `the input of flow "${flow.name}"`)),
    update: (input) => ({ [INPUT_FIELD]: input }),
    result(values, ended) {
      const reached = (values.get(RESULT_FIELD) ?? {}) as JsonObject
      const result = flow.openOutputs
        ? (own({ ...wiring.produced(values), ...reached }) as JsonObject)
        : fill(outputs, reached)
      const exit = ends.get(ended[0] ?? '')
      if (exit !== undefined) exits.set(result, exit)
      return result
    },
  }
}
