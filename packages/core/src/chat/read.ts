import { SluiceError } from '../errors/error.ts'
import { isObject, type Json } from '../json/json.ts'
import { adopt, own } from '../json/own.ts'
import type { ChatMessage, ChatRequest, ChatResponse, ToolCallRequest, ToolDefinition, Usage } from './chat.ts'

const ROLES = ['system', 'user', 'assistant', 'tool']

const fault = (what: string, why: string) => new SluiceError('CHAT_SHAPE', `${what} ${why}.`)

/**
 * Reads a response that came from outside: a provider in another process, a policy's `replace`. Unknown fields are dropped;
 * `finish_reason` may be absent.
 *
 * @throws SluiceError `CHAT_SHAPE` naming the field that is wrong.
 */
export function readResponse(value: unknown, what: string): ChatResponse {
  if (!isObject(value)) throw fault(what, 'must be an object { content, finish_reason?, tool_calls? }')
  const { content, finish_reason, tool_calls, usage } = value
  if (typeof content !== 'string') throw fault(what, 'needs a string "content"')
  if (finish_reason != null && typeof finish_reason !== 'string')
    throw fault(what, 'has a "finish_reason" that is no string')
  return adopt({
    content,
    finish_reason: finish_reason ?? '',
    ...(tool_calls == null ? {} : callsOf(readToolCalls(tool_calls, what))),
    ...(isObject(usage) ? { usage: readUsage(usage) } : {}),
  }) as unknown as ChatResponse
}

/** A response without calls has no list of them, so that a streamed and a whole one are the same. */
const callsOf = (calls: readonly ToolCallRequest[]) => (calls.length === 0 ? {} : { tool_calls: calls })

function readUsage(usage: { readonly [key: string]: unknown }): Usage {
  const count = (name: string) => (typeof usage[name] === 'number' && usage[name] >= 0 ? usage[name] : 0)
  const [inputTokens, outputTokens] = [count('inputTokens'), count('outputTokens')]
  const counted = { inputTokens, outputTokens, totalTokens: count('totalTokens') || inputTokens + outputTokens }
  return usage.estimated === true ? { ...counted, estimated: true } : counted
}

function readToolCalls(value: unknown, what: string): readonly ToolCallRequest[] {
  if (!Array.isArray(value)) throw fault(what, 'has "tool_calls" that are no list')
  return value.map((call, i) => {
    if (!isObject(call)) throw fault(what, `has a tool_calls[${i}] that is no object`)
    const { id, name, arguments: text } = call
    if (typeof id !== 'string' || typeof name !== 'string' || typeof text !== 'string') {
      throw fault(what, `needs strings "id", "name" and "arguments" in tool_calls[${i}]`)
    }
    return { id, name, arguments: text }
  })
}

/**
 * Reads messages that came from outside.
 *
 * @throws SluiceError `CHAT_SHAPE` naming the message and the field that is wrong.
 */
export function readMessages(value: unknown, what: string): readonly ChatMessage[] {
  if (!Array.isArray(value)) throw fault(what, 'has "messages" that are no list')
  return value.map((message, i) => readMessage(message, `${what}, messages[${i}],`))
}

/** @throws SluiceError `CHAT_SHAPE` naming the field that is wrong. */
export function readMessage(message: unknown, what: string): ChatMessage {
  if (!isObject(message)) throw fault(what, 'must be an object')
  const { id, role, content, tool_calls, tool_call_id } = message
  if (typeof role !== 'string' || !ROLES.includes(role)) throw fault(what, `needs a "role" of ${ROLES.join(', ')}`)
  if (typeof content !== 'string') throw fault(what, 'needs a string "content"')
  if (role === 'tool' && typeof tool_call_id !== 'string') throw fault(what, 'needs a string "tool_call_id"')
  return {
    ...(typeof id === 'string' ? { id } : {}),
    role: role as ChatMessage['role'],
    content,
    ...(tool_calls == null ? {} : { tool_calls: readToolCalls(tool_calls, what) }),
    ...(typeof tool_call_id === 'string' ? { tool_call_id } : {}),
  }
}

type Edits = { readonly [K in keyof ChatRequest]: (value: unknown, what: string, request: ChatRequest) => unknown }

const finite = (name: string) => (value: unknown, what: string) => {
  if (typeof value !== 'number' || !Number.isFinite(value))
    throw fault(what, `has a "${name}" that is no finite number`)
  return value
}

const EDITS: Edits = {
  messages: readMessages,
  model: (value, what) => {
    if (typeof value !== 'string' || value === '') throw fault(what, 'has a "model" that is no name')
    return value
  },
  temperature: finite('temperature'),
  maxTokens: finite('maxTokens'),
  topP: finite('topP'),
  responseFormat: (value) => value as Json,
  tools: (value, what, request) => {
    if (!Array.isArray(value)) throw fault(what, 'has "tools" that are no list')
    return value.map((tool) => subsetTool(tool, what, request.tools ?? []))
  },
}

/** A tool list may be cut down, not extended: what a model may call is what the agent's author gave it. */
function subsetTool(tool: unknown, what: string, offered: readonly ToolDefinition[]): ToolDefinition {
  const name = isObject(tool) ? tool.name : tool
  const found = offered.find((other) => other.name === name)
  if (found === undefined) {
    throw fault(
      what,
      `names a tool "${String(name)}" that the request does not offer; offered are: ${offered.map((t) => t.name).join(', ') || 'none'}`,
    )
  }
  return found
}

/**
 * Applies a policy's `modify` to a request: each field it gives is checked and replaces the request's own, a field it does
 * not give keeps its value.
 *
 * @throws SluiceError `CHAT_SHAPE` for a field that is wrong or unknown; the message lists the known ones.
 */
export function editRequest(request: ChatRequest, edit: unknown, what: string): ChatRequest {
  if (!isObject(edit)) throw fault(what, 'must be an object with the fields to change')
  const changed: Record<string, unknown> = { ...request }
  for (const [name, value] of Object.entries(edit)) {
    if (value === undefined) continue
    const read = Object.hasOwn(EDITS, name) ? EDITS[name as keyof ChatRequest] : undefined
    if (read === undefined)
      throw fault(what, `has an unknown field "${name}"; fields are: ${Object.keys(EDITS).join(', ')}`)
    changed[name] = read(value, what, request)
  }
  return own(changed) as unknown as ChatRequest
}
