import type { Path } from '../faults/path.ts'
import type { CheckedNode } from '../flow/model.ts'
import type { Definition } from '../tree/definition.ts'

/** A node as the flow draws it. */
export interface DrawnNode {
  readonly node: CheckedNode
  readonly definition: Definition
  readonly controls: DrawnControl[]
  /** Control edges that lead here. */
  readonly incoming: DrawnControl[]
}

export interface DrawnControl {
  readonly path: Path
  readonly from: DrawnNode
  readonly to: DrawnNode
  /** `undefined` for `null`, nothing and `next`, which are the same. */
  readonly branch: string | undefined
}

export interface DrawnData {
  readonly path: Path
  readonly source: DrawnNode
  readonly output: string
  readonly destination: DrawnNode
  readonly input: string
}

/** A flow as a drawing, before it is known to be sound. Edges whose ends are unknown are left out. */
export interface Drawing {
  readonly definition: Definition
  readonly nodes: readonly DrawnNode[]
  readonly start: DrawnNode | undefined
  readonly controls: readonly DrawnControl[]
  /** `undefined` when the document declares none. */
  readonly data: readonly DrawnData[] | undefined
}

/** The nodes that can be reached from one, itself included. */
export function reachableFrom(start: DrawnNode | undefined): Set<DrawnNode> {
  const reached = new Set(start === undefined ? [] : [start])
  for (const { controls } of reached) for (const { to } of controls) reached.add(to)
  return reached
}

/** The nodes from which one can be reached over at least one edge; itself only where the flow loops. */
export function ancestorsOf(drawn: DrawnNode): Set<DrawnNode> {
  const found = new Set(drawn.incoming.map(({ from }) => from))
  for (const { incoming } of found) for (const { from } of incoming) found.add(from)
  return found
}

export const isEnd = ({ node }: DrawnNode) => node.type === 'EndNode'
