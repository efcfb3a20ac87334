import { type ChatRequest, isObject, type Usage } from '@sluice/core'

/** Characters of English text for one token, on average: the rule of thumb that OpenAI's help pages give. */
const CHARACTERS_PER_TOKEN = 4

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

/** A guess from the length of what was said, marked as one, for providers that do not count. */
export function estimateUsage(
  request: ChatRequest,
  response: { readonly content: string; readonly tool_calls?: readonly { readonly arguments: string }[] },
): Usage {
  const said = request.messages.reduce((sum, message) => sum + message.content.length, 0)
  const offered = request.tools === undefined ? 0 : JSON.stringify(request.tools).length
  const called = (response.tool_calls ?? []).reduce((sum, call) => sum + call.arguments.length, 0)
  const inputTokens = Math.ceil((said + offered) / CHARACTERS_PER_TOKEN)
  const outputTokens = Math.ceil((response.content.length + called) / CHARACTERS_PER_TOKEN)
  return { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens, estimated: true }
}
