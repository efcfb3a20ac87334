import { checkBranches } from '../checks/branches.ts'
import { checkData } from '../checks/data.ts'
import { isEnd } from '../checks/drawing.ts'
import { checkReach } from '../checks/reach.ts'
import { checkStartAndEnd } from '../checks/start-and-end.ts'
import type { Definition } from '../tree/definition.ts'
import { type Builder, componentOf } from './builder.ts'
import { draw } from './draw.ts'
import type { ControlEdge, EndNode, Flow } from './model.ts'
import { flowInputs, flowOutputs } from './outputs.ts'

/** Makes a flow, and checks its drawing. */
export function buildFlow(builder: Builder, definition: Definition): Flow {
  const { report } = builder
  const drawing = draw(builder, definition)
  checkStartAndEnd(report, drawing)
  checkReach(report, drawing)
  checkBranches(report, drawing)
  const inputs = flowInputs(report, drawing)
  const outputs = flowOutputs(report, drawing)
  const dataEdges = checkData(report, drawing)
  const ends = drawing.nodes.filter(isEnd).map(({ node }) => (node as EndNode).branchName)
  return {
    ...componentOf(definition),
    type: 'Flow',
    inputs: inputs.list,
    openInputs: inputs.open,
    outputs: outputs.list,
    openOutputs: outputs.open,
    start: drawing.start?.node.name ?? '',
    nodes: drawing.nodes.map(({ node }) => node),
    controlEdges: drawing.controls.map(
      ({ from, to, branch }): ControlEdge => ({ from: from.node.name, to: to.node.name, branch }),
    ),
    dataEdges,
    exits: [...new Set(ends)],
  }
}
