import { type Ask, isObject, type LineSummary } from '@sluice/core'

/** How a line stands, in a word: how its last run ended, or that one is under way, or was cut off. */
export const standingOf = ({ busy, status }: LineSummary): string => (busy ? 'running' : (status ?? 'unfinished'))

/** The questions that wait for an answer; none while a run is at them. What is none, in a damaged store, is left out. */
export function asksOf({ busy, status, asks }: LineSummary): readonly Ask[] {
  return busy || status !== 'paused' ? [] : parsed(asks).filter(isAsk)
}

function parsed(text: string): readonly unknown[] {
  try {
    const asks = JSON.parse(text)
    return Array.isArray(asks) ? asks : []
  } catch {
    return []
  }
}

const isAsk = (value: unknown): value is Ask =>
  isObject(value) &&
  [value.key, value.askedBy, value.nodeName].every((name) => typeof name === 'string') &&
  typeof value.askedAt === 'number'
