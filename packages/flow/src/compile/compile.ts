import {
  type Boundary,
  command,
  END,
  type Graph,
  graph,
  type JsonObject,
  makeNode,
  type Node,
  own,
  ownObject,
  type Ports,
  START,
  state,
  type Tool,
} from '@sluice/core'
import type { CheckedNode, EndNode, Flow } from '../flow/model.ts'
import type { FlowParts } from './parts.ts'
import { toolsOf } from './tool.ts'
import { fill, fillExactly, type Side } from './values.ts'
import { Wiring } from './wiring.ts'
import { type Made, type Ready, type SubFlow, type Work, workOf } from './work.ts'

/** A flow as a graph: it takes the flow's inputs and results in its outputs. */
export type FlowGraph = Graph<JsonObject, JsonObject>

/**
 * Makes a graph of a checked flow: each of its nodes becomes a node of that name and type, which reads its mapped inputs and
 * writes its declared outputs.
 *
 * @throws SluiceError `FLOW_TOOLS_MISSING` with the name of every tool that the machine does not have; `FLOW_CONFIRMATION` for
 *   tools that must not run without a person's word, which needs threads.
 */
export async function compileFlow(flow: Flow, parts: FlowParts): Promise<FlowGraph> {
  const flows = flowsIn(flow)
  const tools = await toolsOf(flows, parts)
  const compiled = new Map<Flow, SubFlow>()
  const ready: Ready = {
    parts,
    // All of them were found, and inner flows are made first.
    tool: (described) => tools.get(described) as Tool,
    model: (config) => parts.model(config),
    flow: (inner) => compiled.get(inner) as SubFlow,
  }
  for (const inner of flows) compiled.set(inner, buildGraph(inner, ready))
  return (compiled.get(flow) as SubFlow).graph as FlowGraph
}

/** A flow and all that it contains, each once, the innermost first. */
function flowsIn(flow: Flow, found = new Set<Flow>()): ReadonlySet<Flow> {
  for (const node of flow.nodes) {
    if (node.type === 'FlowNode' && 'flow' in node && !found.has(node.flow)) flowsIn(node.flow, found)
  }
  return found.add(flow)
}

function buildGraph(flow: Flow, ready: Ready): SubFlow {
  const wiring = new Wiring(flow)
  const exits = new WeakMap<JsonObject, string>()
  const made = new Map(
    flow.nodes.map((node) => [node.name, { node, as: graphNode(node, workOf(node, ready), wiring) }]),
  )
  const named = (name: string) => made.get(name) as { node: CheckedNode; as: Node }
  const builder = graph(flow.name, state(wiring.fields())).edge(START, named(flow.start).as)
  for (const { from, to, branch } of flow.controlEdges)
    builder.edge(named(from).as, named(to).as, { branch: labelOf(named(from).node, branch) })
  for (const { node, as } of made.values()) if (node.type === 'EndNode') builder.edge(as, END)
  builder.boundary(boundaryOf(flow, wiring, exits))
  const compiled = builder.check() as unknown as FlowGraph
  return { graph: compiled, exitOf: (result) => exits.get(result) }
}

/** Of a node with one way out, an edge labelled with its only branch is its ordinary way on. */
function labelOf({ type, branches }: CheckedNode, branch: string | undefined): string | undefined {
  const chooses = branches === undefined || branches.length > 1 || type === 'BranchingNode'
  return chooses || branch === undefined || !branches.includes(branch) ? branch : undefined
}

/** What a node made always goes on as a command: values of a tool or a model must not be taken for a route. */
function graphNode(node: CheckedNode, work: Work, wiring: Wiring): Node {
  const run = (input: JsonObject, ctx: Parameters<Work>[1]) => {
    const made = work(input, ctx)
    return made instanceof Promise ? made.then(commandOf) : commandOf(made)
  }
  return makeNode(node.type, node.name, run as Node['run'], { ports: portsOf(node, wiring) }) as Node
}

const commandOf = ({ output, branch }: Made) => command({ update: output, branch })

function portsOf(node: CheckedNode, wiring: Wiring): Ports {
  const inputs = sideOf('input', node.inputs, node.openInputs, `node "${node.name}"`)
  const outputs = sideOf('output', node.outputs, node.openOutputs, `node "${node.name}"`)
  return {
    input: (values) => fill(inputs, wiring.read(node, values)),
    checkInput: (value) => fillExactly(inputs, ownObject(value, `the input of node "${node.name}"`)),
    checkOutput: (value) => fill(outputs, ownObject(value, `the output of node "${node.name}"`), true),
    update: (output) => wiring.write(node, output),
  }
}

/** Declared outputs come from the end node that was reached, or are the flow's defaults; without any, all that was produced is yielded. */
function boundaryOf(flow: Flow, wiring: Wiring, exits: WeakMap<JsonObject, string>): Boundary {
  const inputs = sideOf('input', flow.inputs, flow.openInputs, `flow "${flow.name}"`)
  const outputs = sideOf('output', flow.outputs, flow.openOutputs, `flow "${flow.name}"`)
  const branches = new Map(flow.nodes.filter(isEnd).map(({ name, branchName }) => [name, branchName]))
  return {
    checkInput: (value) => fillExactly(inputs, ownObject(value, `the input of flow "${flow.name}"`)),
    update: (input) => wiring.begin(input),
    checkResult: (value) => fillExactly(outputs, ownObject(value, `the result of flow "${flow.name}"`)),
    result(values, [ended = '']) {
      const reached = wiring.result(values)
      const result = flow.openOutputs
        ? (own({ ...wiring.produced(values), ...reached }) as JsonObject)
        : fill(outputs, reached)
      const exit = branches.get(ended)
      if (exit !== undefined) exits.set(result, exit)
      return result
    },
  }
}

const isEnd = (node: CheckedNode): node is EndNode => node.type === 'EndNode'

const sideOf = (what: string, properties: Side['properties'], open: boolean, of: string): Side => ({
  properties,
  open,
  name: (title) => `${what} "${title}" of ${of}`,
})
