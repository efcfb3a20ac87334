import type { ChatMessage, ChatResponse, ToolCallRequest, ToolDefinition } from '../chat/chat.ts'
import type { ChatModel } from '../chat/model.ts'
import { messageOf, SluiceError } from '../errors/error.ts'
import type { NodeContext } from '../graph/context.ts'
import type { Json, JsonObject } from '../json/json.ts'
import { adopt, own } from '../json/own.ts'
import { requireWhole } from '../run/limits.ts'
import { Task } from '../run/task.ts'
import { RefusedError } from '../seams/failure.ts'
import { parseToolArguments, type Tool, toolTable } from '../tools/tool.ts'

export interface AgentLoopOptions {
  readonly model: ChatModel | string
  /** What the conversation begins with, the system message included. */
  readonly messages: readonly ChatMessage[]
  readonly tools?: readonly Tool[]
  /** Model calls for one answer; never more than the runtime allows, which is also what holds without it. */
  readonly maxRounds?: number
  /** Generation parameters for every request. */
  readonly parameters?: {
    readonly temperature?: number
    readonly maxTokens?: number
    readonly topP?: number
    readonly responseFormat?: Json
  }
  readonly stream?: boolean
}

export interface AgentLoopResult {
  /** The text of the answering response. */
  readonly content: string
  /** The whole conversation, the answer included; every call in it is answered. */
  readonly messages: readonly ChatMessage[]
  readonly rounds: number
}

interface RoundEnd {
  readonly response: ChatResponse
  readonly answers: readonly ChatMessage[]
  readonly toolNames: readonly string[]
}

/**
 * Runs an agent inside a node: it asks the model, runs the tools it asks for, all of one round at once, and asks again until
 * an answer asks for none. Whether tools run is decided by the calls that are there, never by the finish reason. A refused
 * call, an unknown tool, broken arguments and a failed tool become results that the model can read.
 *
 * @throws SluiceError `ROUNDS_SPENT` when the last round that it may have still asks for tools.
 */
export async function agentLoop(ctx: NodeContext, options: AgentLoopOptions): Promise<AgentLoopResult> {
  const task = Task.of(ctx)
  const loop = new Loop(task, options)
  const { maxToolRounds } = task.scope.limits
  requireWhole('maxRounds', options.maxRounds ?? maxToolRounds)
  const maxRounds = Math.min(options.maxRounds ?? maxToolRounds, maxToolRounds)
  let messages = options.messages
  for (let round = 1; round <= maxRounds; round++) {
    const { response, answers } = await task.round(round, maxRounds, () => loop.round(round, messages))
    messages = adopt([...messages, assistantMessage(response), ...answers]) as unknown as readonly ChatMessage[]
    if (answers.length === 0) return { content: response.content, messages, rounds: round }
  }
  throw new SluiceError(
    'ROUNDS_SPENT',
    `node "${ctx.nodeName}": the agent has spent its ${maxRounds} rounds and still asks for tools. Raise --max-tool-rounds, or give it less to do.`,
    { node: ctx.nodeName },
  )
}

class Loop {
  readonly #task: Task
  readonly #options: AgentLoopOptions
  readonly #tools: ReadonlyMap<string, Tool>
  readonly #offered: readonly ToolDefinition[] | undefined

  constructor(task: Task, options: AgentLoopOptions) {
    const tools = options.tools ?? []
    this.#task = task
    this.#options = options
    this.#tools = toolTable(tools)
    this.#offered = tools.length === 0 ? undefined : offer(tools)
  }

  async round(round: number, messages: readonly ChatMessage[]): Promise<RoundEnd> {
    const { model, parameters, stream } = this.#options
    const response = await this.#task.callModel(
      model,
      { messages, tools: this.#offered, ...parameters },
      { stream, round },
    )
    const calls = response.tool_calls ?? []
    const answers = await Promise.all(calls.map((call) => answerCall(this.#task, this.#tools, call)))
    return { response, answers, toolNames: calls.map((call) => call.name) }
  }
}

/** What a model is told of its tools. */
export const offer = (tools: readonly Tool[]): readonly ToolDefinition[] =>
  own(
    tools.map(({ name, description, parameters }) => ({ name, description, parameters })),
  ) as unknown as readonly ToolDefinition[]

export const assistantMessage = ({ content, tool_calls }: ChatResponse): ChatMessage => ({
  role: 'assistant',
  content,
  ...(tool_calls === undefined || tool_calls.length === 0 ? {} : { tool_calls }),
})

/** Providers refuse a conversation in which a call is not answered, so whatever became of it is put into a tool message. */
export async function answerCall(
  ctx: NodeContext,
  tools: ReadonlyMap<string, Tool>,
  call: ToolCallRequest,
): Promise<ChatMessage> {
  return adopt({
    role: 'tool',
    tool_call_id: call.id,
    content: await answerOf(ctx, tools, call),
  }) as unknown as ChatMessage
}

async function answerOf(ctx: NodeContext, tools: ReadonlyMap<string, Tool>, call: ToolCallRequest): Promise<string> {
  try {
    const { tool, args } = resolveCall(ctx, tools, call)
    const result = await ctx.callTool(tool, args, { callId: call.id })
    return typeof result === 'string' ? result : JSON.stringify(result)
  } catch (error) {
    // The reason alone: who refused, and where, is for the operator and not for the model.
    return error instanceof RefusedError ? `Refused: ${error.reason}` : `Error: ${messageOf(error)}`
  }
}

function resolveCall(
  ctx: NodeContext,
  tools: ReadonlyMap<string, Tool>,
  { id, name, arguments: text }: ToolCallRequest,
): { tool: Tool; args: JsonObject } {
  return Task.of(ctx).orReport(id, name, () => {
    const tool = tools.get(name)
    if (tool !== undefined) return { tool, args: parseToolArguments(text) }
    throw new SluiceError(
      'TOOL_UNKNOWN',
      `there is no tool "${name}"; tools are: ${[...tools.keys()].join(', ') || 'none'}.`,
      { tool: name },
    )
  })
}
