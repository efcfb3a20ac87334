import type { ThreadRecord } from '@sluice/core'
import { HttpError } from '../http/errors.ts'

type Placed = ThreadRecord & { readonly seq: number }

/**
 * An answer to a policy counts once. Where it has been given and what it was given for is not through, a fork would have it once more.
 *
 * @param at the last record that the fork shares; the last one there is without it.
 * @throws HttpError `FORK_ANSWERED`.
 */
export function refuseAnswered(records: readonly Placed[], at = Number.POSITIVE_INFINITY): void {
  const ofPolicies = new Set<string>()
  let answered: string | undefined
  for (const record of records) {
    if (record.seq > at) break
    if (record.type === 'ask' && record.askedBy.startsWith('policy:')) ofPolicies.add(record.key)
    if (record.type === 'answer' && ofPolicies.has(record.key)) answered = record.key
    if (record.type === 'step' && (record.within ?? []).length === 0) answered = undefined
  }
  if (answered === undefined) return
  const why = `at this place "${answered}" is answered, and what it was asked about is not through; a fork would have that answer too.`
  throw new HttpError('FORK_ANSWERED', `${why} Fork before the answer, or after the superstep.`)
}
