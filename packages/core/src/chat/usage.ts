import type { ChatRequest, ChatResponse, Usage } from './chat.ts'

/** Characters of English text for one token, on average: the rule of thumb that OpenAI's help pages give. */
const CHARACTERS_PER_TOKEN = 4

/** A guess at the tokens of a request, from the length of what is said, called and offered. */
export function estimateInputTokens({ messages, tools }: Pick<ChatRequest, 'messages' | 'tools'>): number {
  const said = messages.reduce((sum, { content, tool_calls }) => sum + content.length + lengthOf(tool_calls), 0)
  const offered = tools === undefined ? 0 : JSON.stringify(tools).length
  return Math.ceil((said + offered) / CHARACTERS_PER_TOKEN)
}

/** A guess from the length of what was said, marked as one, for providers that do not count. */
export function estimateUsage(
  request: Pick<ChatRequest, 'messages' | 'tools'>,
  { content, tool_calls }: Pick<ChatResponse, 'content' | 'tool_calls'>,
): Usage {
  const inputTokens = estimateInputTokens(request)
  const outputTokens = Math.ceil((content.length + lengthOf(tool_calls)) / CHARACTERS_PER_TOKEN)
  return { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens, estimated: true }
}

const lengthOf = (calls: ChatResponse['tool_calls']): number =>
  (calls ?? []).reduce((sum, call) => sum + call.arguments.length, 0)
