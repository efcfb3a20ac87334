import type { Report } from '../faults/report.ts'
import type { CheckedNode, DataEdge } from '../flow/model.ts'
import { castable } from '../schema/castable.ts'
import type { Property } from '../schema/property.ts'
import { showType } from '../schema/type.ts'
import { nearest } from '../tree/nearest.ts'
import { ancestorsOf, type Drawing, type DrawnData, type DrawnNode, reachableFrom } from './drawing.ts'

/** The data edges of a flow, checked, with those that follow from names. `undefined` when the document declares none. */
export function checkData(report: Report, drawing: Drawing): readonly DataEdge[] | undefined {
  const { data } = drawing
  if (data === undefined) return undefined
  for (const edge of data) checkEdge(report, edge)
  const declared = data.map(({ source, output, destination, input }) =>
    edgeOf(source, output, destination, input, false),
  )
  return [...declared, ...impliedEdges(report, drawing, data)]
}

function edgeOf(from: DrawnNode, output: string, to: DrawnNode, input: string, implied: boolean): DataEdge {
  return { source: from.node.name, output, destination: to.node.name, input, implied }
}

function checkEdge(report: Report, { path, source, output, destination, input }: DrawnData): void {
  const from = source.node.outputs.find(({ title }) => title === output)
  const to = destination.node.inputs.find(({ title }) => title === input)
  if (from === undefined && !source.node.openOutputs) {
    unknownTitle(report, [...path, 'source_output'], source.node, 'output', output, source.node.outputs)
  }
  if (to === undefined && !destination.node.openInputs) {
    unknownTitle(report, [...path, 'destination_input'], destination.node, 'input', input, destination.node.inputs)
  }
  if (from !== undefined && to !== undefined && !castable(from.type, to.type)) {
    report.fault(
      'FLOW_EDGE_TYPE',
      path,
      `output "${output}" of "${source.node.name}" is ${showType(from.type)}; ` +
        `input "${input}" of "${destination.node.name}" takes ${showType(to.type)}, which it cannot become.`,
    )
  }
}

function unknownTitle(
  report: Report,
  path: readonly (string | number)[],
  node: CheckedNode,
  what: 'input' | 'output',
  title: string,
  known: readonly Property[],
): void {
  const titles = known.map((property) => property.title)
  const meant = nearest(title, titles)
  const has = titles.length === 0 ? 'it has none' : `it has ${titles.map((name) => `"${name}"`).join(', ')}`
  report.fault(
    'FLOW_EDGE_PORT',
    path,
    `node "${node.name}" has no ${what} "${title}"; ${has}.${meant === undefined ? '' : ` Did you mean "${meant}"?`}`,
  )
}

/**
 * For inputs that no edge feeds and that have no default: the edges from every node before that yields a value of that name,
 * which is what a flow without data edges would have. Where there is none, the input can never be filled.
 */
function impliedEdges(report: Report, { nodes, start }: Drawing, data: readonly DrawnData[]): readonly DataEdge[] {
  const reached = reachableFrom(start)
  const fed = new Map<DrawnNode, Set<string>>()
  for (const { destination, input } of data) fed.set(destination, (fed.get(destination) ?? new Set()).add(input))
  return [...reached].flatMap((drawn) => {
    const isFed = ({ title }: Property) => fed.get(drawn)?.has(title)
    const hungry = drawn.node.inputs.filter((input) => input.default === undefined && !isFed(input))
    if (drawn === start || hungry.length === 0) return []
    const ancestors = ancestorsOf(drawn)
    const before = nodes.filter((other) => ancestors.has(other) && reached.has(other))
    return hungry.flatMap((input) => implied(report, drawn, input, before))
  })
}

function implied(report: Report, drawn: DrawnNode, input: Property, before: readonly DrawnNode[]): readonly DataEdge[] {
  const { title, type } = input
  const listed = before.filter(({ node }) =>
    node.outputs.some((output) => output.title === title && castable(output.type, type)),
  )
  const sources = listed.length > 0 ? listed : before.filter(({ node }) => node.openOutputs)
  const { path } = drawn.definition
  if (sources.length === 0) {
    report.fault(
      'FLOW_INPUT_UNFED',
      path,
      `nothing can fill input "${title}" of node "${drawn.node.name}": no data flow edge leads to it, no node before yields "${title}", and it has no default.\n` +
        'Add an edge, or a default.',
    )
    return []
  }
  const names = sources.map(({ node }) => `"${node.name}"`).join(', ')
  report.warn(
    'FLOW_INPUT_BY_NAME',
    path,
    `no data flow edge leads to input "${title}" of node "${drawn.node.name}"; it takes what ${names} yields under that name.\nDraw the edge.`,
  )
  return sources.map((source) => edgeOf(source, title, drawn, title, true))
}
