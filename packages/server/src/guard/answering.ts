import { SluiceError } from '@sluice/core'
import { type AskEntry, approversOf } from '@sluice/host'
import { HttpError } from '../http/errors.ts'
import { has, sees } from './may.ts'
import { isLocal, type Principal } from './principal.ts'

/** Whether a caller is shown a question: who may see its thread is, and whom its `approvers` name. */
export const seesAsk = (principal: Principal, entry: AskEntry): boolean =>
  sees(principal, entry) || isNamed(principal, entry)

/** Whether `approvers` of a question name this caller as one who may answer it; nobody, where it has none. */
const isNamed = (principal: Principal, { ask }: AskEntry): boolean =>
  ask.approvers !== undefined && has(principal, 'answer') && approves(principal, ask.approvers)

/** An expression that is none, or that asks about a claim which this caller does not have, names them not. */
function approves(principal: Principal, approvers: string): boolean {
  try {
    return approversOf(approvers)(principal)
  } catch (error) {
    if (error instanceof SluiceError) return false
    throw error
  }
}

/**
 * Whoever answers, by whatever way, passes here. Where a question names `approvers`, they decide, an admin being no exception; without
 * them, whoever may see it and has the scope may answer, but who started the turn may not answer what a policy asks about it.
 *
 * @throws HttpError `ASK_UNKNOWN`, `SCOPE_MISSING`, `ANSWER_FORBIDDEN`.
 */
export function requireAnswerer(principal: Principal, entry: AskEntry): void {
  if (!seesAsk(principal, entry)) throw new HttpError('ASK_UNKNOWN', 'there is no such question.')
  if (!has(principal, 'answer')) throw new HttpError('SCOPE_MISSING', 'this needs the scope "answer".')
  const { ask, startedBy } = entry
  if (ask.approvers !== undefined) {
    if (approves(principal, ask.approvers)) return
    throw new HttpError(
      'ANSWER_FORBIDDEN',
      `who may answer this is for "approvers" to say, and they do not name you: ${ask.approvers}`,
    )
  }
  if (isLocal(principal) || !ask.askedBy.startsWith('policy:') || startedBy !== principal.id) return
  throw new HttpError('ANSWER_FORBIDDEN', 'a policy asks about what you started, so somebody else answers.')
}
