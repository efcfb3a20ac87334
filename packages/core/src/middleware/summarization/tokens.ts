import type { ChatMessage, ChatRequest, ToolDefinition } from '../../chat/chat.ts'

/** What of a request takes room in a model's context. */
export type Counted = Pick<ChatRequest, 'messages' | 'tools'>

/** Counts the tokens of a request: everything that is sent, tools and system prompt too. */
export type TokenCounter = (request: Counted) => number

/**
 * About as many tokens as a request has: for each message a quarter of its characters and 4 more, for each tool a quarter of the
 * characters of what the model is told of it, both rounded up. It counts texts, names and arguments of calls, and ids of answers.
 * Scripts with a character for a word have up to four times as many; give a counter of your own there.
 */
export const approximateTokens: TokenCounter = ({ messages, tools = [] }) => {
  let count = 0
  for (const message of messages) count += remembered(message, ofMessage)
  for (const tool of tools) count += remembered(tool, ofTool)
  return count
}

const CHARACTERS_PER_TOKEN = 4
const TOKENS_AROUND_A_MESSAGE = 4

/** Messages do not change, and the same ones are counted round after round. */
const counts = new WeakMap<object, number>()

function remembered<T extends object>(of: T, count: (of: T) => number): number {
  const known = counts.get(of)
  if (known !== undefined) return known
  const counted = count(of)
  if (Object.isFrozen(of)) counts.set(of, counted)
  return counted
}

function ofMessage({ content, tool_calls = [], tool_call_id = '' }: ChatMessage): number {
  let characters = content.length + tool_call_id.length
  for (const { name, arguments: args } of tool_calls) characters += name.length + args.length
  return Math.ceil(characters / CHARACTERS_PER_TOKEN) + TOKENS_AROUND_A_MESSAGE
}

const ofTool = (tool: ToolDefinition): number => Math.ceil(JSON.stringify(tool).length / CHARACTERS_PER_TOKEN)
