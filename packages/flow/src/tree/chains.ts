import { showPath } from '../faults/path.ts'
import type { Report } from '../faults/report.ts'
import { type Definition, titleOf } from './definition.ts'
import type { Survey } from './survey.ts'

/** How many components may stand one inside the other, through references. The builders recurse that deep. */
const MAX_CHAIN = 64

interface Step {
  readonly definition: Definition
  next: number
  height: number
}

/**
 * Looks for components that contain themselves, and for chains too long to build. Depth first, without recursion.
 * Returns whether no chain is too
 * long; components that contain themselves stop a builder by themselves.
 */
export function checkChains({ report, held, definitions }: Survey): boolean {
  const heights = new Map<Definition, number>()
  for (const root of definitions.values()) {
    const trail: Step[] = heights.has(root) ? [] : [{ definition: root, next: 0, height: 0 }]
    const onTrail = new Set([root])
    for (let step = trail.at(-1); step !== undefined; step = trail.at(-1)) {
      const child = held.get(step.definition)?.[step.next++]
      if (child === undefined) {
        heights.set(step.definition, step.height + 1)
        onTrail.delete(step.definition)
        trail.pop()
        const holder = trail.at(-1)
        if (holder) holder.height = Math.max(holder.height, step.height + 1)
      } else if (onTrail.has(child.definition)) {
        contained(report, child.definition, child.path)
      } else {
        const known = heights.get(child.definition)
        if (known !== undefined) step.height = Math.max(step.height, known)
        else {
          trail.push({ definition: child.definition, next: 0, height: 0 })
          onTrail.add(child.definition)
        }
      }
    }
  }
  const tooLong = [...heights].filter(([, height]) => height === MAX_CHAIN + 1)
  for (const [definition] of tooLong) chainTooLong(report, definition)
  return tooLong.length === 0
}

function contained(report: Report, definition: Definition, path: Definition['path']): void {
  report.fault(
    'FLOW_REF_CYCLE',
    path,
    `${titleOf(definition)}, defined at ${showPath(definition.path)}, contains itself.\nLoops are drawn with edges between nodes.`,
  )
}

function chainTooLong(report: Report, { path }: Definition): void {
  report.fault(
    'FLOW_REF_DEPTH',
    path,
    `more than ${MAX_CHAIN} components stand one inside the other, through references.`,
  )
}
