import { isObject, type Usage } from '@sluice/core'

/** A provider's own counts, in the form of version 2 (numbers) or of 3 and 4 (objects with totals); `undefined` when it counted nothing. */
export function readUsage(usage: unknown): Usage | undefined {
  if (!isObject(usage)) return undefined
  const [inputTokens, outputTokens] = [count(usage.inputTokens), count(usage.outputTokens)]
  if (inputTokens === undefined || outputTokens === undefined || inputTokens + outputTokens === 0) return undefined
  return { inputTokens, outputTokens, totalTokens: count(usage.totalTokens) ?? inputTokens + outputTokens }
}

function count(tokens: unknown): number | undefined {
  const number = isObject(tokens) ? tokens.total : tokens
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined
}
