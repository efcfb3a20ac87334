import type { Ask, LineSummary } from '@sluice/core'

/** How a line stands, in a word: how its last run ended, or that one is under way, or was cut off. */
export const standingOf = ({ busy, status }: LineSummary): string => (busy ? 'running' : (status ?? 'unfinished'))

/** The questions that wait for an answer; none while a run is at them. */
export function asksOf({ busy, status, asks }: LineSummary): readonly Ask[] {
  return busy || status !== 'paused' ? [] : (JSON.parse(asks) as readonly Ask[])
}
