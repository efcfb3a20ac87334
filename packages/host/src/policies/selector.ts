import type { Selector, Subject } from '@sluice/core'
import { compileExpression, type Expression, ExpressionFault } from './cel/expression.ts'
import type { Site } from './cel/shown.ts'
import type { Path, PolicyFaults } from './faults.ts'

/** Compiles an expression of the file; a fault stands where it is in the text. */
export function expressionAt(
  text: string,
  sites: readonly Site[],
  what: string,
  path: Path,
  faults: PolicyFaults,
): Expression | undefined {
  try {
    return compileExpression(text, sites, 'bool', what)
  } catch (fault) {
    if (!(fault instanceof ExpressionFault)) throw fault
    faults.add('POLICY_FILE_CEL', path, `${fault.message}.`, { index: fault.index })
    return undefined
  }
}

/** A selector of the file, with its text. */
export interface FileSelector extends Selector {
  readonly text: string
  /** What it says of every call of a call site; `undefined` where only the call itself can tell. */
  atSite(subject: Subject): boolean | undefined
}

/** Compiles a `match`. One that cannot be evaluated throws, and the gate takes it as a match. */
export function compileSelector(
  text: string,
  halves: readonly Omit<Site, 'use'>[],
  what: string,
  path: Path,
  faults: PolicyFaults,
): FileSelector | undefined {
  const sites = halves.map((half) => ({ ...half, use: 'match' }) as const)
  const expression = expressionAt(text, sites, what, path, faults)
  if (expression === undefined) return undefined
  return {
    text,
    reads: expression.readsSiteOnly ? 'subject' : 'call',
    matches: (selected) => yesOrNo(expression.evaluate(selected), what),
    atSite: (subject) => {
      const said = expression.atSite(subject)
      return typeof said === 'boolean' ? said : undefined
    },
  }
}

export function yesOrNo(said: unknown, what: string): boolean {
  if (typeof said === 'boolean') return said
  throw new TypeError(`${what} says neither true nor false.`)
}
