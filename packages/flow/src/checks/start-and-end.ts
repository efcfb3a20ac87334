import type { Report } from '../faults/report.ts'
import { fieldOf, titleOf } from '../tree/definition.ts'
import { type Drawing, isEnd } from './drawing.ts'

/** Where the flow begins and where it ends. */
export function checkStartAndEnd(report: Report, drawing: Drawing): void {
  checkStart(report, drawing)
  const { definition, nodes, controls } = drawing
  if (nodes.length > 0 && !nodes.some(isEnd)) {
    report.fault('FLOW_END_MISSING', definition.path, `${titleOf(definition)} has no EndNode. Add one to "nodes".`)
  }
  for (const { path, from } of controls) {
    if (isEnd(from)) {
      report.fault(
        'FLOW_END_LEFT',
        path,
        `an edge leaves the EndNode "${from.node.name}", where the flow is over. Remove it.`,
      )
    }
  }
}

function checkStart(report: Report, { definition, nodes, start }: Drawing): void {
  const starts = nodes.filter(({ node }) => node.type === 'StartNode')
  const path = fieldOf(definition, 'start_node') === undefined ? definition.path : [...definition.path, 'start_node']
  if (starts.length > 1) {
    const names = starts.map(({ node }) => `"${node.name}"`).join(', ')
    report.fault(
      'FLOW_START_SEVERAL',
      [...definition.path, 'nodes'],
      `a flow has one StartNode; here are ${names}. Keep one.`,
    )
  } else if (start === undefined) {
    report.fault('FLOW_START_UNLISTED', path, 'the "start_node" is not among the "nodes" of the flow. Add it there.')
  } else if (start.node.type !== 'StartNode') {
    report.fault('FLOW_START_TYPE', path, `the "start_node" must be a StartNode, not ${titleOf(start.definition)}.`)
  }
  for (const { incoming, controls, node } of starts) {
    for (const { path: edge } of incoming) {
      report.fault(
        'FLOW_START_ENTERED',
        edge,
        `an edge leads back to the StartNode "${node.name}". Let it lead to what follows.`,
      )
    }
    for (const { path: edge } of controls.slice(1)) {
      report.fault(
        'FLOW_START_FORKED',
        edge,
        `a second edge leaves the StartNode "${node.name}". Branch with a BranchingNode.`,
      )
    }
  }
}
