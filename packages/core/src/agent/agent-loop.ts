import type { ChatMessage, ChatRequest, ChatResponse, ToolDefinition } from '../chat/chat.ts'
import { repairHistory, requireHistory } from '../chat/history.ts'
import type { ChatModel } from '../chat/model.ts'
import { SluiceError } from '../errors/error.ts'
import type { NodeContext } from '../graph/context.ts'
import type { Json } from '../json/json.ts'
import { adopt, own } from '../json/own.ts'
import { requireWhole } from '../run/limits.ts'
import { Task } from '../run/task.ts'
import { type Tool, toolTable } from '../tools/tool.ts'
import { answerCalls, type ToolErrors } from './answer-calls.ts'
import { type OutputRule, StructuredOutputError } from './output.ts'

export interface AgentLoopOptions {
  readonly model: ChatModel | string
  /** What the conversation begins with, the system message included. */
  readonly messages: readonly ChatMessage[]
  readonly tools?: readonly Tool[]
  /**
   * Model calls for one answer; never more than the runtime allows. Without it, as many as the agent may have in whose tool this
   * one runs, and where there is none, as many as the runtime allows.
   */
  readonly maxRounds?: number
  /** Generation parameters for every request. */
  readonly parameters?: {
    readonly temperature?: number
    readonly maxTokens?: number
    readonly topP?: number
    readonly responseFormat?: Json
  }
  readonly stream?: boolean
  /** What becomes of a tool call that failed; `return` without it. */
  readonly toolErrors?: ToolErrors
  /** Sends a conversation that providers would refuse as they take it; see {@link repairHistory}. */
  readonly repairHistory?: boolean
}

export interface AgentLoopResult {
  /** The text of the answering response. */
  readonly content: string
  /** The whole conversation, the answer included; every call in it is answered. */
  readonly messages: readonly ChatMessage[]
  readonly rounds: number
}

interface Answer {
  /** The model would not answer. */
  readonly refused: boolean
  /** What the answer was read as; `null` where nothing was asked for, or there is no such answer. */
  readonly output: Json
}

/** What a loop comes to for those who make agents of it. */
export interface LoopEnd extends AgentLoopResult, Answer {
  /** What was said in it, without what it began with. */
  readonly said: readonly ChatMessage[]
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
 * @throws SluiceError `ROUNDS_SPENT` when the last round that it may have still asks for tools; ChatHistoryError `CHAT_HISTORY`
 *   for a conversation that providers refuse.
 */
export async function agentLoop(ctx: NodeContext, options: AgentLoopOptions): Promise<AgentLoopResult> {
  const { content, messages, rounds } = await runLoop(ctx, options)
  return { content, messages, rounds }
}

/** The same, with an answer that is read by a rule. */
export async function runLoop(ctx: NodeContext, options: AgentLoopOptions, rule?: OutputRule): Promise<LoopEnd> {
  return new Loop(Task.of(ctx), options, rule).run()
}

class Loop {
  readonly #task: Task
  readonly #options: AgentLoopOptions
  readonly #rule: OutputRule | undefined
  readonly #tools: ReadonlyMap<string, Tool>
  readonly #offered: readonly ToolDefinition[] | undefined
  readonly #parameters: AgentLoopOptions['parameters']

  constructor(task: Task, options: AgentLoopOptions, rule: OutputRule | undefined) {
    const { tools = [], parameters } = options
    this.#task = task
    this.#options = options
    this.#rule = rule
    this.#tools = toolTable(tools)
    this.#offered = tools.length === 0 ? undefined : offer(tools)
    this.#parameters = rule === undefined ? parameters : { ...parameters, responseFormat: rule.format }
  }

  async run(): Promise<LoopEnd> {
    const task = this.#task
    const maxRounds = roundsOf(task, this.#options.maxRounds)
    const opening = this.#options.repairHistory ? repairHistory(this.#options.messages) : this.#options.messages
    const said: ChatMessage[] = []
    let messages = opening
    let mended = false
    for (let round = 1; round <= maxRounds; round++) {
      const sent = messages
      const { response, answers } = await task.round(round, maxRounds, () => this.#round(round, sent))
      const turn = [assistantMessage(response), ...answers]
      messages = joined(sent, turn)
      const read = answers.length > 0 ? undefined : this.#read(response)
      if (read instanceof StructuredOutputError) {
        if (mended || this.#rule?.invalid !== 'repair' || round === maxRounds) throw read
        // The answer that did not fit and what the model is told of it are between the two of them, and stay out of `said`.
        mended = true
        messages = joined(messages, [mending(read)])
        continue
      }
      said.push(...turn)
      if (read === undefined) continue
      const { content } = response
      return { content, messages: mended ? joined(opening, said) : messages, rounds: round, said, ...read }
    }
    throw new SluiceError(
      'ROUNDS_SPENT',
      `node "${task.node.name}": the agent has spent its ${maxRounds} rounds and still asks for tools. Raise --max-tool-rounds, or give it less to do.`,
      { node: task.node.name },
    )
  }

  async #round(round: number, messages: readonly ChatMessage[]): Promise<RoundEnd> {
    const { model, stream, toolErrors } = this.#options
    const response = await this.#task.callModel(
      model,
      { messages, tools: this.#offered, ...this.#parameters },
      { stream, round, requires: takenByProviders },
    )
    const calls = response.tool_calls ?? []
    const answers = await answerCalls(this.#task, this.#tools, calls, toolErrors)
    return { response, answers, toolNames: calls.map((call) => call.name) }
  }

  #read({ content, finish_reason }: ChatResponse): Answer | StructuredOutputError {
    if (REFUSALS.includes(finish_reason)) return { refused: true, output: null }
    const [rule, task] = [this.#rule, this.#task]
    if (rule === undefined) return { refused: false, output: null }
    const read = rule.read(content, task.node.name)
    if (!(read instanceof StructuredOutputError)) return { refused: false, ...read }
    if (rule.invalid !== 'emit') return read
    task.emit({ kind: 'invalid_output', message: read.reason, raw: read.raw })
    return { refused: false, output: null }
  }
}

/** How providers, and those who adapt them, say that a model would not answer. */
const REFUSALS = ['refusal', 'content-filter', 'content_filter']

/** @throws ChatHistoryError for a request that providers refuse, whoever made it so. */
export const takenByProviders = ({ messages }: ChatRequest): void =>
  requireHistory(messages, 'the conversation to send')

const mending = ({ reason }: StructuredOutputError): ChatMessage => ({
  role: 'user',
  content: `Your answer was not used: ${reason}. Answer again, with nothing but JSON that fits the schema.`,
})

const joined = (messages: readonly ChatMessage[], more: readonly ChatMessage[]): readonly ChatMessage[] =>
  adopt([...messages, ...more]) as unknown as readonly ChatMessage[]

/** How many rounds an agent may have: what it asks for, or else what the agent around it may have. */
function roundsOf(task: Task, wanted: number | undefined): number {
  const { maxToolRounds } = task.scope.limits
  requireWhole('maxRounds', wanted ?? maxToolRounds)
  const rounds = Math.min(wanted ?? roundsAround(task) ?? maxToolRounds, maxToolRounds)
  task.maxRounds = rounds
  return rounds
}

function roundsAround({ scope }: Task): number | undefined {
  for (let at = scope.startedBy; at !== undefined; at = at.scope.startedBy) {
    if (at.maxRounds !== undefined) return at.maxRounds
  }
  return undefined
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
