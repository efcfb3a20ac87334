import { SluiceError } from '@sluice/core'
import { compileApprovers, ExpressionFault } from '../policies/cel/expression.ts'

/** Whether this one may answer a question whose `approvers` say so. */
export type Approves = ReturnType<typeof compileApprovers>

const MOST_KEPT = 256
const kept = new Map<string, Approves>()

/**
 * Reads who may answer a question; each text is compiled once.
 *
 * @throws SluiceError `POLICY_EXPRESSION` for a text that is no such expression, and, when it is asked, where it cannot be evaluated.
 */
export function approversOf(text: string): Approves {
  const known = kept.get(text)
  if (known !== undefined) return known
  const approves = compiled(text)
  if (kept.size >= MOST_KEPT) kept.clear()
  kept.set(text, approves)
  return approves
}

function compiled(text: string): Approves {
  try {
    return compileApprovers(text)
  } catch (fault) {
    if (!(fault instanceof ExpressionFault)) throw fault
    throw new SluiceError('POLICY_EXPRESSION', `"approvers": ${fault.message}.`, {}, fault)
  }
}
