import { type Drawing, isEnd } from '../checks/drawing.ts'
import type { Report } from '../faults/report.ts'
import { castable } from '../schema/castable.ts'
import type { Property } from '../schema/property.ts'
import { showType } from '../schema/type.ts'
import type { Definition } from '../tree/definition.ts'
import type { CheckedNode } from './model.ts'
import { agree, closed, declaredOf, differentType, emptyBesideFull, type Side } from './ports.ts'

/** What a flow takes: the inputs of its start. */
export function flowInputs(report: Report, { definition, start }: Drawing): Side {
  const side: Side =
    start === undefined ? { list: [], open: true } : { list: start.node.inputs, open: start.node.openInputs }
  if (declaredOf(definition, 'inputs')?.length !== 0 || side.list.length === 0) {
    return agree(report, definition, 'inputs', side)
  }
  emptyBesideFull(report, definition, 'inputs')
  return side
}

/**
 * What a flow yields: the outputs it declares, else those that all its ends have in common. A flow that comes to none this
 * way, by an empty list or by none, yields every value that was produced.
 */
export function flowOutputs(report: Report, { definition, nodes }: Drawing): Side {
  const ends = nodes.filter(isEnd).map(({ node }) => node)
  checkEndTypes(
    report,
    nodes.filter(isEnd).map(({ definition: end, node }) => ({ end, node })),
  )
  const declared = declaredOf(definition, 'outputs') ?? []
  if (declared.length === 0) {
    const common = (ends[0]?.outputs ?? []).filter(({ title }) =>
      ends.every((end) => outputOf(end, title) !== undefined),
    )
    return common.length > 0 ? closed(common) : { list: [], open: true }
  }
  for (const [i, output] of declared.entries()) checkDeclared(report, definition, i, output, ends)
  return closed(declared)
}

const outputOf = (end: CheckedNode, title: string) => end.outputs.find((output) => output.title === title)

function checkEndTypes(
  report: Report,
  ends: readonly { readonly end: Definition; readonly node: CheckedNode }[],
): void {
  const first = new Map<string, Property>()
  for (const { end, node } of ends) {
    for (const output of node.outputs) {
      const other = first.get(output.title) ?? output
      first.set(output.title, other)
      if (showType(other.type) === showType(output.type)) continue
      report.fault(
        'FLOW_OUTPUT_TYPE',
        end.path,
        `output "${output.title}" is ${showType(output.type)} at this end and ${showType(other.type)} at another. Give both one type.`,
      )
    }
  }
}

/** Says the first thing that is wrong with an output that a flow declares. */
function checkDeclared(
  report: Report,
  definition: Definition,
  i: number,
  output: Property,
  ends: readonly CheckedNode[],
): void {
  const path = [...definition.path, 'outputs', i]
  const other = ends
    .map((end) => outputOf(end, output.title))
    .find((given) => given && !castable(given.type, output.type))
  if (other !== undefined) differentType(report, path, other, output)
  const without = ends.find((end) => outputOf(end, output.title) === undefined && !end.openOutputs)
  if (without === undefined || output.default !== undefined) return
  report.fault(
    'FLOW_OUTPUT_MISSING',
    path,
    `the flow declares output "${output.title}", and EndNode "${without.name}" does not have it.\n` +
      'Add it there, or give the output of the flow a default.',
  )
}
