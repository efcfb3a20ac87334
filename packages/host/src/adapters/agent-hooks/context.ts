import { type ChatMessage, type ChatResponse, isObject, type Json, type JsonObject } from '@sluice/core'

/** Where a context is shown, in the order of a session. */
export type Point =
  | 'agent_startup'
  | 'input'
  | 'pre_model_call'
  | 'post_model_call'
  | 'pre_tool_call'
  | 'post_tool_call'
  | 'output'
  | 'agent_shutdown'

/** What interceptors are shown. `target` is the part that may be rewritten, and stands in the point's own field as well. */
export interface AgentContext {
  readonly spec: string
  readonly interception_point: Point
  readonly timestamp: string
  readonly sequence: number
  readonly agent: { readonly id: string; readonly framework: string }
  readonly session: { readonly id: string }
  readonly target: Json
  readonly [field: string]: Json
}

/** The fields that a point has besides the common ones. */
export const FIELDS: { readonly [P in Point]: readonly string[] } = {
  agent_startup: ['agent_init'],
  input: ['input'],
  pre_model_call: ['model', 'messages'],
  post_model_call: ['model', 'response'],
  pre_tool_call: ['tool_call'],
  post_tool_call: ['tool_call', 'tool_result'],
  output: ['output'],
  agent_shutdown: ['summary'],
}

/** Where a point's own fields hold what `target` holds: the member, or a member of it. */
const MIRRORS: { readonly [P in Point]: readonly [field: string, member?: string] } = {
  agent_startup: ['agent_init'],
  input: ['input'],
  pre_model_call: ['messages'],
  post_model_call: ['response'],
  pre_tool_call: ['tool_call', 'args'],
  post_tool_call: ['tool_result', 'value'],
  output: ['output'],
  agent_shutdown: ['summary'],
}

/** The same context about another target. */
export function withTarget(context: AgentContext, target: Json): AgentContext {
  const [field, member] = MIRRORS[context.interception_point]
  const mirrored = member === undefined ? target : { ...(context[field] as JsonObject), [member]: target }
  return { ...context, target, [field]: mirrored }
}

/** What is shown at a point: its own fields, with the target in them. */
export interface Shown {
  readonly point: Point
  readonly fields: JsonObject
  readonly target: Json
}

const shown = (point: Point, target: Json, fields: JsonObject = {}): Shown => {
  const [field, member] = MIRRORS[point]
  const own = member === undefined ? target : { ...(fields[field] as JsonObject), [member]: target }
  return { point, target, fields: { ...fields, [field]: own } }
}

export const startup = (tools: readonly string[]): Shown => shown('agent_startup', { tools_registered: [...tools] })

export const shutdown = (status: string): Shown =>
  shown('agent_shutdown', { reason: status === 'completed' || status === 'cancelled' ? status : 'error' })

export const preModelCall = (model: string, messages: readonly ChatMessage[]): Shown =>
  shown('pre_model_call', messages as unknown as Json, { model: { id: model } })

/** Arguments are shown as the object that their text is; broken ones as an empty one, and the text is kept. */
export function postModelCall(model: string, { content, tool_calls = [], finish_reason }: ChatResponse): Shown {
  const calls = tool_calls.map(({ id, name, arguments: text }) => ({ id, name, args: argumentsIn(text) }))
  return shown('post_model_call', { content, tool_calls: calls, finish_reason }, { model: { id: model } })
}

/** The response that a rewritten target is. A call that was not rewritten keeps the text that the model wrote. */
export function responseFrom(target: Json, from: ChatResponse): Json {
  if (!isObject(target)) return target
  const { tool_calls, ...rest } = target as JsonObject
  const calls = Array.isArray(tool_calls) ? tool_calls : []
  const written = calls.map((call, i) => {
    if (!isObject(call)) return call as Json
    const { args, ...other } = call as JsonObject
    const before = from.tool_calls?.[i]
    const same = before !== undefined && JSON.stringify(args) === JSON.stringify(argumentsIn(before.arguments))
    return { ...other, arguments: same ? before.arguments : JSON.stringify(args ?? {}) }
  })
  const usage = from.usage as JsonObject | undefined
  return { ...rest, ...(written.length > 0 && { tool_calls: written }), ...(usage !== undefined && { usage }) }
}

function argumentsIn(text: string): JsonObject {
  try {
    const args: unknown = JSON.parse(text)
    return isObject(args) ? (args as JsonObject) : {}
  } catch {
    return {}
  }
}

export const preToolCall = (id: string, name: string, args: Json): Shown =>
  shown('pre_tool_call', args, { tool_call: { id, name } })

export const postToolCall = (id: string, name: string, args: Json, value: Json, isError: boolean): Shown =>
  shown('post_tool_call', value, { tool_call: { id, name, args }, tool_result: { is_error: isError } })

/** What the run was asked: the user's last message, the only text, or the whole input. */
export const input = (value: JsonObject): Shown => shown('input', { content: spoken(value).content, role: 'user' })

/** The run's input with this content in it. */
export const inputFrom = (target: Json, value: JsonObject): JsonObject => spoken(value).with(contentOf(target))

/** What the run hands to its caller: an agent's final text, the only text, or all outputs. */
export const output = (outputs: Json): Shown => shown('output', { content: answered(outputs).content })

export const outputFrom = (target: Json, outputs: Json): Json => answered(outputs).with(contentOf(target))

const contentOf = (target: Json): Json => (isObject(target) ? ((target as JsonObject).content ?? null) : target)

interface Content<Whole> {
  readonly content: Json
  with(content: Json): Whole
}

function spoken(value: JsonObject): Content<JsonObject> {
  const { messages } = value
  if (Array.isArray(messages)) {
    const at = messages.findLastIndex((message) => isObject(message) && message.role === 'user')
    const message = messages[at]
    if (isObject(message)) {
      return {
        content: (message as JsonObject).content ?? null,
        with: (content) => ({ ...value, messages: messages.with(at, { ...(message as JsonObject), content }) }),
      }
    }
  }
  return onlyText(value) ?? { content: value, with: (content) => content as JsonObject }
}

function answered(outputs: Json): Content<Json> {
  if (!isObject(outputs)) return { content: outputs, with: (content) => content }
  const value = outputs as JsonObject
  if (typeof value.finalText !== 'string') return onlyText(value) ?? { content: value, with: (content) => content }
  const { finalText, messages } = value
  return {
    content: finalText,
    with: (content) => ({
      ...value,
      finalText: content,
      ...(Array.isArray(messages) && lastAs(messages, finalText, content)),
    }),
  }
}

/** An agent's last message says what its final text says. */
function lastAs(messages: readonly Json[], was: string, content: Json): JsonObject {
  const last = messages.at(-1)
  if (!isObject(last) || last.content !== was) return {}
  return { messages: messages.with(-1, { ...(last as JsonObject), content }) }
}

function onlyText(value: JsonObject): Content<JsonObject> | undefined {
  const [[name, content] = [], ...more] = Object.entries(value)
  if (name === undefined || typeof content !== 'string' || more.length > 0) return undefined
  return { content, with: (other) => ({ [name]: other }) }
}
