import type { ChatMessage, ChatRequest } from '../chat/chat.ts'
import type { ChatModel } from '../chat/model.ts'
import { SluiceError } from '../errors/error.ts'
import { makeNode, type Node, type NodeOptions } from '../graph/node.ts'
import type { StateOf, StateType, UpdateFor } from '../state/state.ts'
import { type Tool, toolTable } from '../tools/tool.ts'
import { agentLoop, answerCall, assistantMessage, offer } from './agent-loop.ts'

type Conversation = { readonly messages: readonly ChatMessage[] }

/** A state with a `messages()` field, which is what these nodes read and write. */
type ConversationState = StateType<Conversation, { readonly messages?: unknown }>

interface ModelOptions {
  readonly model: ChatModel | string
  /** Put before the conversation on every call, never stored. */
  readonly system?: string
  readonly tools?: readonly Tool[]
  readonly parameters?: Omit<ChatRequest, 'model' | 'messages' | 'tools'>
}

/** A node that asks a model once and appends its answer to `messages`. */
export function modelNode<T extends StateType<never, never> | StateType>(
  name: string,
  state: T & ConversationState,
  options: ModelOptions & NodeOptions,
): Node<StateOf<T>, UpdateFor<T>> {
  requireMessages('modelNode', name, state)
  const tools =
    options.tools === undefined || options.tools.length === 0
      ? undefined
      : offer([...toolTable(options.tools).values()])
  return makeNode<StateOf<T>, UpdateFor<T>>(
    'ModelNode',
    name,
    async (values, ctx) => {
      const messages = withSystem(options.system, (values as Conversation).messages)
      const response = await ctx.callModel(options.model, { messages, tools, ...options.parameters })
      return { messages: [assistantMessage(response)] } as UpdateFor<T>
    },
    options,
  )
}

/** A node that runs every call the last message asks for, all at once, and appends one tool message for each, in order. */
export function toolNode<T extends StateType<never, never> | StateType>(
  name: string,
  state: T & ConversationState,
  options: { readonly tools: readonly Tool[] } & NodeOptions,
): Node<StateOf<T>, UpdateFor<T>> {
  requireMessages('toolNode', name, state)
  const tools = toolTable(options.tools)
  return makeNode<StateOf<T>, UpdateFor<T>>(
    'ToolNode',
    name,
    async (values, ctx) => {
      const calls = (values as Conversation).messages.at(-1)?.tool_calls ?? []
      return { messages: await Promise.all(calls.map((call) => answerCall(ctx, tools, call))) } as UpdateFor<T>
    },
    options,
  )
}

/** An agent as one node: rounds of model and tools on `messages`, to which everything said is appended. */
export function agentNode<T extends StateType<never, never> | StateType>(
  name: string,
  state: T & ConversationState,
  options: ModelOptions & { readonly maxRounds?: number } & NodeOptions,
): Node<StateOf<T>, UpdateFor<T>> {
  requireMessages('agentNode', name, state)
  return makeNode<StateOf<T>, UpdateFor<T>>(
    'AgentNode',
    name,
    async (values, ctx) => {
      const opening = withSystem(options.system, (values as Conversation).messages)
      const { messages } = await agentLoop(ctx, { ...options, messages: opening })
      return { messages: messages.slice(opening.length) } as UpdateFor<T>
    },
    options,
  )
}

const withSystem = (system: string | undefined, messages: readonly ChatMessage[]): readonly ChatMessage[] =>
  system === undefined ? messages : [{ role: 'system', content: system }, ...messages]

function requireMessages(maker: string, name: string, { names }: { readonly names: readonly string[] }): void {
  if (names.includes('messages')) return
  throw new SluiceError(
    'GRAPH_INVALID',
    `${maker} "${name}" needs a state with the field messages: messages(); it has: ${names.join(', ')}.`,
    { node: name },
  )
}
