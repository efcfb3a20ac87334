import type { Drawing, DrawnControl, DrawnData, DrawnNode } from '../checks/drawing.ts'
import { showPath } from '../faults/path.ts'
import type { Report } from '../faults/report.ts'
import { type Definition, fieldOf, itemsOf, textOf, titleOf } from '../tree/definition.ts'
import { nearest } from '../tree/nearest.ts'
import { below } from '../tree/placed.ts'
import type { Builder } from './builder.ts'
import { buildNode } from './nodes.ts'

/** Puts nodes and edges together; reports nodes that share a name, and edges that lead out of the flow. */
export function draw(builder: Builder, definition: Definition): Drawing {
  const byDefinition = drawNodes(builder, definition)
  const nodes = [...byDefinition.values()]
  const end = (edge: Definition, field: string): DrawnNode | undefined => {
    const meant = builder.held(edge, field)
    const node = meant && byDefinition.get(meant)
    if (meant !== undefined && node === undefined && !builder.report.isFull)
      outside(builder.report, edge, field, meant, nodes)
    return node
  }
  const edges = (field: string) => itemsOf(definition, field)?.flatMap((item) => builder.definitionAt(item) ?? [])
  const controls = (edges('control_flow_connections') ?? []).flatMap((edge) => drawControl(edge, end))
  for (const control of controls) {
    control.from.controls.push(control)
    control.to.incoming.push(control)
  }
  const start = builder.held(definition, 'start_node')
  return {
    definition,
    nodes,
    start: start && byDefinition.get(start),
    controls,
    data: edges('data_flow_connections')?.flatMap((edge) => drawData(edge, end)),
  }
}

function drawNodes(builder: Builder, definition: Definition): ReadonlyMap<Definition, DrawnNode> {
  const { report } = builder
  const drawn = new Map<Definition, DrawnNode>()
  const names = new Map<string, DrawnNode>()
  const list = fieldOf(definition, 'nodes')
  if (list === undefined || !Array.isArray(list.value)) return drawn
  for (const i of list.value.keys()) {
    const placed = below(list, i)
    const meant = builder.definitionAt(placed)
    const node = builder.once(meant, buildNode)
    if (meant === undefined || node === undefined) continue
    if (drawn.has(meant)) {
      report.warn('FLOW_NODE_LISTED', placed.path, `${titleOf(meant)} stands twice in "nodes". Remove one.`)
      continue
    }
    const entry: DrawnNode = { node, definition: meant, controls: [], incoming: [] }
    drawn.set(meant, entry)
    const other = names.get(node.name)
    if (node.name !== '' && other !== undefined) nameTwice(report, other, entry)
    names.set(node.name, entry)
  }
  return drawn
}

function nameTwice(report: Report, first: DrawnNode, second: DrawnNode): void {
  report.fault(
    'FLOW_NODE_NAME',
    second.definition.path,
    `two nodes of the flow are named "${second.node.name}"; the other is at ${showPath(first.definition.path)}. Rename one.`,
  )
}

type End = (edge: Definition, field: string) => DrawnNode | undefined

function drawControl(edge: Definition, end: End): readonly DrawnControl[] {
  const [from, to] = [end(edge, 'from_node'), end(edge, 'to_node')]
  const branch = textOf(edge, 'from_branch')
  return from && to ? [{ path: edge.path, from, to, branch: branch === 'next' ? undefined : branch }] : []
}

function drawData(edge: Definition, end: End): readonly DrawnData[] {
  const [source, destination] = [end(edge, 'source_node'), end(edge, 'destination_node')]
  const [output, input] = [textOf(edge, 'source_output'), textOf(edge, 'destination_input')]
  return source && destination && output !== undefined && input !== undefined
    ? [{ path: edge.path, source, output, destination, input }]
    : []
}

function outside(
  report: Report,
  edge: Definition,
  field: string,
  meant: Definition,
  nodes: readonly DrawnNode[],
): void {
  const name = textOf(meant, 'name') ?? ''
  const alike = nearest(
    name,
    nodes.map(({ node }) => node.name),
  )
  report.fault(
    'FLOW_EDGE_NODE',
    [...edge.path, field],
    `${titleOf(meant)} is not among the "nodes" of this flow.\n` +
      (alike === undefined
        ? 'Add it there, or let the edge lead elsewhere.'
        : `Add it there; or did you mean "${alike}"?`),
  )
}
