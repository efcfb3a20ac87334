import { SluiceError } from '@sluice/core'

/** What is wrong with a document, or only odd about it, and where. */
export interface Fault {
  /** Stable, begins with `FLOW_`. Match this, never the text. */
  readonly code: string
  /** What is wrong on the first line; how to mend it on those after. */
  readonly message: string
  /** JSON path: `$.nodes[2].tool`. */
  readonly path: string
  readonly file?: string
  /** From 1. */
  readonly line: number
  /** From 1, in UTF-16 units. */
  readonly column: number
}

/** A document that cannot be used. Holds every fault that was found, in the order of the text. */
export class FlowError extends SluiceError {
  override readonly name = 'FlowError'
  readonly faults: readonly Fault[]

  constructor(faults: readonly [Fault, ...Fault[]]) {
    const [{ file, path, line, column }] = faults
    super('FLOW_INVALID', describe(faults), { ...(file === undefined ? {} : { file }), path, line, column })
    this.faults = faults
  }
}

/** One fault in full: a line with code and position, then what is wrong and the mend, indented. */
export function showFault(fault: Fault): string {
  return `${fault.code}  ${positionOf(fault)}\n${fault.message.replace(/^/gm, '  ')}`
}

const MOST_OTHERS = 8

function describe([first, ...others]: readonly [Fault, ...Fault[]]): string {
  if (others.length === 0) return showFault(first)
  const named = others.slice(0, MOST_OTHERS).map((fault) => `${fault.code} ${positionOf(fault)}`)
  const rest = others.length > MOST_OTHERS ? ', …' : ''
  return `${showFault(first)}\n  1 of ${others.length + 1} faults; the others: ${named.join(', ')}${rest}`
}

const positionOf = ({ file, line, column }: Fault) => `${file ?? 'flow'}:${line}:${column}`
