import type { Report } from '../faults/report.ts'
import type { CheckedNode } from '../flow/model.ts'
import { nearest } from '../tree/nearest.ts'
import type { Drawing, DrawnControl, DrawnNode } from './drawing.ts'
import { unledBranches } from './reach.ts'

/** Whether every branch has one edge and every edge one branch. */
export function checkBranches(report: Report, { nodes }: Drawing): void {
  for (const drawn of nodes) {
    if (drawn.node.type === 'EndNode') continue
    checkLabels(report, drawn)
    if (drawn.controls.length > 0) checkLed(report, drawn)
  }
}

function checkLabels(report: Report, { node, controls }: DrawnNode): void {
  const seen = new Set<string | undefined>()
  for (const edge of controls) {
    if (seen.has(edge.branch)) {
      // A second edge of the start is reported as such.
      if (node.type !== 'StartNode') edgeTwice(report, node, edge)
    } else if (edge.branch !== undefined && isNeverChosen(node, edge.branch))
      neverChosen(report, node, edge, edge.branch)
    seen.add(edge.branch)
  }
}

const isNeverChosen = (node: CheckedNode, branch: string): boolean =>
  node.branches !== undefined &&
  !node.branches.includes(branch) &&
  !(node.type === 'BranchingNode' && branch === 'default')

function checkLed(report: Report, drawn: DrawnNode): void {
  const { node, definition } = drawn
  const led = drawn.controls.some(({ branch }) => branch === undefined)
  const unled = [...unledBranches(drawn), ...(node.branches?.includes('next') && !led ? ['next'] : [])]
  for (const branch of unled) {
    const isOnlyFallback =
      'fallback' in node && node.fallback === branch && ![...node.mapping.values()].includes(branch)
    if (isOnlyFallback && branch === 'default') {
      report.warn(
        'FLOW_BRANCH_DEFAULT',
        definition.path,
        `node "${node.name}" has no edge for branch "default": an input that is not in its mapping fails the run.\nAdd one.`,
      )
    } else {
      report.fault(
        'FLOW_BRANCH_MISSING',
        definition.path,
        `node "${node.name}" may choose branch "${branch}", and no edge has it.\nAdd an edge for it, or one without a branch.`,
      )
    }
  }
}

function edgeTwice(report: Report, node: CheckedNode, { path, branch }: DrawnControl): void {
  const which = branch === undefined ? 'without a branch' : `for branch "${branch}"`
  report.fault(
    'FLOW_EDGE_TWICE',
    path,
    `a second edge ${which} leaves node "${node.name}"; only one can be taken. Remove one.`,
  )
}

function neverChosen(report: Report, node: CheckedNode, { path }: DrawnControl, branch: string): void {
  const branches = (node.branches ?? []).map((name) => `"${name}"`).join(', ')
  const meant = nearest(branch, node.branches ?? [])
  report.fault(
    'FLOW_BRANCH_UNUSED',
    [...path, 'from_branch'],
    `node "${node.name}" never chooses branch "${branch}"; its branches are: ${branches}.` +
      (meant === undefined ? '' : `\nDid you mean "${meant}"?`),
  )
}
