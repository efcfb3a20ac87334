import type { DecisionRecord } from '@sluice/core'

/** What policies decided about one half of one call. */
interface Decided {
  readonly outcome: string
  readonly by: string
  readonly reason?: string
}

/** A half about which two lists of policies decide otherwise, when one thread is played past both. */
export interface Difference {
  /** `toolCall.before`. */
  readonly at: string
  /** The tool, model, node or question, and the node it is in where that is another: `shell in agent`. */
  readonly subject: string
  /** Which of the calls like it, from 1. */
  readonly call: number
  /** Absent where nobody was consulted, or nobody had anything to say. */
  readonly was?: Decided
  readonly now?: Decided
}

/** What differs between the decisions of two plays of one thread. The halves of like calls are paired in their order. */
export function differencesOf(
  was: readonly DecisionRecord[],
  now: readonly DecisionRecord[],
): { readonly compared: number; readonly differences: readonly Difference[] } {
  const [before, after] = [byPlace(was), byPlace(now)]
  const places = [...new Set([...after.keys(), ...before.keys()])]
  const differences = places.flatMap((place) => {
    const [a, b] = [before.get(place), after.get(place)]
    if (said(a) === said(b)) return []
    const { record, call } = (b ?? a) as Placed
    const [wasSaid, nowSaid] = [decided(a), decided(b)]
    const at = `${record.seam}.${record.half}`
    return { at, subject: subjectOf(record), call, ...(wasSaid && { was: wasSaid }), ...(nowSaid && { now: nowSaid }) }
  })
  return { compared: places.length, differences }
}

interface Placed {
  readonly record: DecisionRecord
  readonly call: number
}

function byPlace(records: readonly DecisionRecord[]): ReadonlyMap<string, Placed> {
  const counts = new Map<string, number>()
  const placed = new Map<string, Placed>()
  for (const record of records) {
    const { seam, half, attempt } = record
    const like = JSON.stringify([seam, half, attempt, subjectOf(record)])
    const call = (counts.get(like) ?? 0) + 1
    counts.set(like, call)
    placed.set(`${like} ${call}`, { record, call })
  }
  return placed
}

const subjectOf = ({ subject: { name, node } }: DecisionRecord): string =>
  node === undefined || node === name ? name : `${name} in ${node}`

/** All that would be noticed of a decision. What nobody changed is as if nobody had been consulted. */
function said(placed: Placed | undefined): string {
  const plain = decided(placed)
  return plain === undefined ? '' : JSON.stringify([plain, placed?.record.finalDigest])
}

function decided(placed: Placed | undefined): Decided | undefined {
  if (placed === undefined) return undefined
  const { outcome, by, reason } = placed.record
  if (outcome === 'proceed' || outcome === 'pass') return undefined
  return { outcome, by, ...(reason === undefined ? {} : { reason }) }
}
