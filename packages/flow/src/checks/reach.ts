import type { Report } from '../faults/report.ts'
import { type Drawing, type DrawnNode, isEnd, reachableFrom } from './drawing.ts'

/** Nodes that are never reached, and nodes where the flow gets stuck. */
export function checkReach(report: Report, { nodes, start }: Drawing): void {
  if (start === undefined) return
  const reached = reachableFrom(start)
  const loose = [...reached].flatMap((node) => unledBranches(node).map((branch) => ({ from: node.node.name, branch })))
  for (const drawn of nodes) {
    if (!reached.has(drawn)) unreachable(report, drawn, loose[0])
    else if (drawn.controls.length === 0 && !isEnd(drawn)) {
      report.fault(
        'FLOW_DEAD_END',
        drawn.definition.path,
        `the flow stops at node "${drawn.node.name}": no control flow edge leaves it.\nAdd an edge to what follows, or to an EndNode.`,
      )
    }
  }
}

/** The branches a node may choose and no edge carries; none where an edge without a branch catches them all. */
export function unledBranches({ node, controls }: DrawnNode): readonly string[] {
  if (controls.some(({ branch }) => branch === undefined)) return []
  return (node.branches ?? []).filter((branch) => branch !== 'next' && !controls.some((edge) => edge.branch === branch))
}

function unreachable(report: Report, drawn: DrawnNode, loose: { from: string; branch: string } | undefined): void {
  const before = drawn.incoming.filter(({ from }) => from !== drawn).map(({ from }) => `"${from.node.name}"`)
  const why =
    before.length === 0
      ? 'no control flow edge leads to it'
      : `the edges to it come from ${[...new Set(before)].join(', ')}, which ${before.length === 1 ? 'is' : 'are'} not reached either`
  const from = loose === undefined ? '' : ` from "${loose.from}", branch "${loose.branch}" (it has none)`
  report.fault(
    'FLOW_UNREACHABLE',
    drawn.definition.path,
    `node "${drawn.node.name}" is never reached: ${why}.\nAdd an edge${from || ' that leads to it'}, or remove the node.`,
  )
}
