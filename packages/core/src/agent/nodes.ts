import type { ChatMessage, ChatRequest } from '../chat/chat.ts'
import { repairHistory } from '../chat/history.ts'
import type { ChatModel } from '../chat/model.ts'
import { SluiceError } from '../errors/error.ts'
import type { NodeContext } from '../graph/context.ts'
import { makeNode, type Node, type NodeOptions } from '../graph/node.ts'
import { Task } from '../run/task.ts'
import { typeOf } from '../seams/hooks.ts'
import type { AnyState, StateOf, StateType, UpdateFor } from '../state/state.ts'
import { type Tool, toolTable } from '../tools/tool.ts'
import { type AgentLoopOptions, assistantMessage, offer, runLoop, takenByProviders } from './agent-loop.ts'
import { answerCalls, type ToolErrors } from './answer-calls.ts'

type Conversation = { readonly messages: readonly ChatMessage[] }

/** A state with a `messages()` field, which is what these nodes read and write. */
type ConversationState = StateType<Conversation, { readonly messages?: unknown }>

/**
 * Put before the conversation in every request and never stored: a text, or a function of the state and the run's context
 * that makes it once for each run of the node.
 */
// biome-ignore lint/suspicious/noExplicitAny: what a run is given as context is known to who wrote both
export type SystemPrompt<State, Context = any> = string | ((state: State, context: Context) => string | Promise<string>)

interface ModelOptions<State> {
  readonly model: ChatModel | string
  readonly system?: SystemPrompt<State>
  readonly tools?: readonly Tool[]
  readonly parameters?: Omit<ChatRequest, 'model' | 'messages' | 'tools'>
  /** Sends a conversation that providers would refuse as they take it; see {@link repairHistory}. */
  readonly repairHistory?: boolean
}

/** A node that asks a model once and appends its answer to `messages`. */
export function modelNode<T extends StateType<never, never> | StateType>(
  name: string,
  state: T & ConversationState,
  options: ModelOptions<StateOf<T>> & NodeOptions,
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
      const task = Task.of(ctx)
      const stored = (values as Conversation).messages
      const conversation = options.repairHistory ? repairHistory(stored) : stored
      const messages = withSystem(await systemOf(options.system, values, ctx), conversation)
      const request = { messages, tools, ...options.parameters }
      const response = await task.callModel(options.model, request, { requires: takenByProviders })
      return { messages: [assistantMessage(response)] } as UpdateFor<T>
    },
    options,
  )
}

/** A node that runs every call the last message asks for, all at once, and appends one tool message for each, in order. */
export function toolNode<T extends StateType<never, never> | StateType>(
  name: string,
  state: T & ConversationState,
  options: {
    readonly tools: readonly Tool[]
    /** What becomes of a call that failed; `return` without it. */
    readonly toolErrors?: ToolErrors
  } & NodeOptions,
): Node<StateOf<T>, UpdateFor<T>> {
  requireMessages('toolNode', name, state)
  const tools = toolTable(options.tools)
  return makeNode<StateOf<T>, UpdateFor<T>>(
    'ToolNode',
    name,
    async (values, ctx) => {
      const calls = (values as Conversation).messages.at(-1)?.tool_calls ?? []
      return { messages: await answerCalls(ctx, tools, calls, options.toolErrors) } as UpdateFor<T>
    },
    options,
  )
}

/** An agent as one node: rounds of model and tools on `messages`, to which everything said is appended. */
export function agentNode<T extends StateType<never, never> | StateType>(
  name: string,
  state: T & ConversationState,
  options: ModelOptions<StateOf<T>> & Pick<AgentLoopOptions, 'maxRounds' | 'stream' | 'toolErrors'> & NodeOptions,
): Node<StateOf<T>, UpdateFor<T>> {
  requireMessages('agentNode', name, state)
  return makeNode<StateOf<T>, UpdateFor<T>>(
    'AgentNode',
    name,
    async (values, ctx) => {
      const opening = withSystem(await systemOf(options.system, values, ctx), (values as Conversation).messages)
      const { said } = await runLoop(ctx, { ...options, messages: opening })
      return { messages: said } as UpdateFor<T>
    },
    options,
  )
}

/** Made once: a node that is entered anew says the same to its model, whatever time it is by then. */
export async function systemOf<State>(
  system: SystemPrompt<State, never> | undefined,
  state: State,
  ctx: NodeContext,
): Promise<string | undefined> {
  if (typeof system !== 'function') return system
  const task = Task.of(ctx)
  const made = () => system(state, task.scope.context as never)
  const text: unknown = await task.once('system', made, true)
  if (typeof text === 'string') return text
  throw new TypeError(`the system prompt of node "${ctx.nodeName}" is ${typeOf(text)}; its function must make a text.`)
}

export const withSystem = (system: string | undefined, messages: readonly ChatMessage[]): readonly ChatMessage[] =>
  system === undefined ? messages : [{ role: 'system', content: system }, ...messages]

/** @throws SluiceError `GRAPH_INVALID` for a state without a conversation that grows. */
export function requireMessages(maker: string, name: string, state: Pick<AnyState, 'names' | 'merges'>): void {
  const { names } = state
  if (names.includes('messages') && state.merges('messages')) return
  throw new SluiceError(
    'GRAPH_INVALID',
    `${maker} "${name}" needs a state with the field messages: messages(); it has: ${names.join(', ')}.`,
    { node: name },
  )
}
