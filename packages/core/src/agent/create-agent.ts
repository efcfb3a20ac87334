import type { ChatMessage } from '../chat/chat.ts'
import { messages } from '../chat/messages.ts'
import type { ChatModel } from '../chat/model.ts'
import { SluiceError } from '../errors/error.ts'
import { GraphBuilder, type GraphPlan } from '../graph/graph.ts'
import { makeNode, type Node, type NodeOptions } from '../graph/node.ts'
import { END, START } from '../graph/route.ts'
import { isObject, type Json } from '../json/json.ts'
import { Graph } from '../run/graph.ts'
import { requireWhole } from '../run/limits.ts'
import type { LineOptions } from '../run/threads/threads.ts'
import type { OwnMiddleware } from '../seams/own.ts'
import { Field, field } from '../state/field.ts'
import type { OutputOf, Schema } from '../state/schema.ts'
import { type AnyState, type StateOf, type StateType, state, type UpdateFor } from '../state/state.ts'
import type { Tool } from '../tools/tool.ts'
import { type AgentLoopOptions, runLoop } from './agent-loop.ts'
import { agentTools, namesOf, requireTools } from './agent-tools.ts'
import { requireToolErrors, type ToolErrors } from './answer-calls.ts'
import { type AsToolOptions, asTool } from './as-tool.ts'
import { requireMessages, type SystemPrompt, systemOf, withSystem } from './nodes.ts'
import { type InvalidOutput, type OutputRule, outputRule } from './output.ts'

/** The fields that every agent has, for a state with more: `state({ ...agentFields, customer: z.string() })`. */
export const agentFields = {
  messages: messages(),
  /** The text of the last answer; `null` before there is one, and where the model would not answer. */
  finalText: new Field<string | null>({ whole: text, update: text }),
  /** What the last answer was read as; `null` before there is one, and where no output is asked for. */
  finalOutput: field<Json | null>(null),
}

function text(value: unknown): string | null {
  if (value === undefined || value === null) return null
  if (typeof value === 'string') return value
  throw new TypeError(`expected a text or null, not a ${typeof value}`)
}

/** The state of an agent that brings no other. */
export const AgentState = state(agentFields)
export type AgentState = StateOf<typeof AgentState>

type AgentFields = { readonly messages: readonly ChatMessage[]; readonly finalText: string | null }

/** What an agent may be told: a text, messages, or an update of its state. */
export type AgentInput<Update> = string | readonly ChatMessage[] | Update

/** The state of an agent as its runs end, its output typed by the output schema. */
type Ended<State, O extends Schema> = Omit<State, 'finalOutput'> & { readonly finalOutput: OutputOf<O> | null }

type AgentStateType = StateType<never, never> | StateType

export interface AgentOptions<T extends AgentStateType, O extends Schema, C> extends Omit<NodeOptions, 'goto'> {
  /** A model, or the name of one in the runtime. */
  readonly model: ChatModel | string
  readonly tools?: readonly Tool[]
  /** Stands around every step of its runs, in this order. The agent gets what each brings as `tools()`. */
  readonly middleware?: readonly OwnMiddleware<StateOf<T>>[]
  readonly system?: SystemPrompt<StateOf<T>, C>
  /** The answer is JSON that this schema takes: `finalOutput` is what it makes of it. */
  readonly output?: O
  /** What becomes of an answer that does not fit: the run fails (without it), the model may answer once more, or there is none. */
  readonly invalidOutput?: InvalidOutput
  /** Names the graph and its node; `agent` without it. */
  readonly name?: string
  readonly maxRounds?: number
  /** What becomes of a tool call that failed: a text for the model (without it), the end of the run, or what a function says. */
  readonly toolErrors?: ToolErrors
  /** `false`: the model is asked for whole responses even where somebody listens. */
  readonly stream?: boolean
  /** Sends a conversation that providers would refuse as they take it: calls that were cut off are answered. */
  readonly repairHistory?: boolean
  readonly parameters?: AgentLoopOptions['parameters']
  /** A state with more than {@link agentFields}. */
  readonly state?: T
}

/** An agent: a graph of one node, in which a model and tools take turns. */
export class Agent<State, Update> extends Graph<State, AgentInput<Update>> {
  readonly #answersInJson: boolean
  readonly #toolNames: readonly string[]

  /** @param toolNames of the tools whose calls its middleware stands around. */
  constructor(plan: GraphPlan, answersInJson: boolean, toolNames: readonly string[] = []) {
    super(plan)
    this.#answersInJson = answersInJson
    this.#toolNames = toolNames
  }

  /** Changes a thread's state by hand, through the reducers; a text or messages are no update. */
  override updateState(
    thread: string,
    values: Update,
    options?: LineOptions & { readonly create?: boolean },
  ): Promise<number> {
    return super.updateState(thread, values, options)
  }

  /**
   * The agent as a tool of another: it runs inside the call, under the same policies, its asks shown at the top. The result is its
   * output, or the text of its answer.
   */
  asTool<I extends Schema>(options: AsToolOptions<I, State, Update>): Tool {
    return asTool(this, { inJson: this.#answersInJson, toolNames: this.#toolNames }, options)
  }
}

/**
 * Makes an agent: a graph of one node in which a model is asked, the tools it asks for are run, and it is asked again, until an
 * answer asks for none. What was said is in `messages` of the state, the answer in `finalText`, and, with a schema, in
 * `finalOutput`.
 *
 * @throws SluiceError `TOOL_DUPLICATE` for two tools of one name, with who gave them; `MIDDLEWARE_ORDER`; `AGENT_CONFIG` for an
 *   output whose JSON Schema cannot be told, and for middleware about a tool that it does not have; `GRAPH_INVALID` for a state without {@link agentFields} or a name that is blank;
 *   `LIMIT_INVALID`. TypeError for what is no middleware.
 */
export function createAgent<
  O extends Schema = Schema<unknown, null>,
  T extends AgentStateType = typeof AgentState,
  C = unknown,
>(options: AgentOptions<T, O, C>): Agent<Ended<StateOf<T>, O>, UpdateFor<T>> {
  const { name = 'agent', middleware = [], state: type = AgentState } = options
  requireOptions(name, options)
  requireFields(name, type as unknown as AnyState)
  const { output: schema, invalidOutput: invalid, parameters } = options
  const rule = schema && outputRule(schema, { agent: name, format: parameters?.responseFormat, invalid })
  const make = (plan: GraphPlan) =>
    new Agent<Ended<StateOf<T>, O>, UpdateFor<T>>({ ...plan, accepts: asUpdate }, rule !== undefined, known)
  const builder = new GraphBuilder(name, type as AgentStateType, make, { middleware })
  const tools = agentTools(name, options.tools ?? [], middleware)
  const known = namesOf(tools)
  requireTools(name, known, middleware)
  const only = agentNodeOf(name, { ...options, tools } as never, rule)
  return builder.edge(START, only).edge(only, END).check()
}

function agentNodeOf(
  name: string,
  options: AgentOptions<AgentStateType, Schema, never> & { readonly tools: readonly Tool[] },
  rule: OutputRule | undefined,
): Node<never, unknown> {
  const { system } = options
  const run = async (values: AgentFields, ctx: Parameters<Node['run']>[1]) => {
    const opening = withSystem(await systemOf(system, values as never, ctx), values.messages)
    const { said, refused, content, output } = await runLoop(ctx, { ...options, messages: opening }, rule)
    return { messages: said, finalText: refused ? null : content, finalOutput: output }
  }
  return makeNode('AgentNode', name, run as Node<never, unknown>['run'], options)
}

/** An answer belongs to the turn that asked for it, so each input puts the one before it aside. */
function asUpdate(input: unknown): unknown {
  if (typeof input === 'string') return { ...UNANSWERED, messages: [{ role: 'user', content: input }] }
  if (Array.isArray(input)) return { ...UNANSWERED, messages: input }
  return isObject(input) ? { ...UNANSWERED, ...input } : input
}

const UNANSWERED = { finalText: null, finalOutput: null }

const OPTIONS: readonly string[] = [
  'model',
  'tools',
  'middleware',
  'system',
  'output',
  'invalidOutput',
  'name',
  'maxRounds',
  'toolErrors',
  'stream',
  'repairHistory',
  'parameters',
  'state',
]

/** What they are called elsewhere. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  systemPrompt: 'system',
  system_prompt: 'system',
  instructions: 'system',
  prompt: 'system',
  middlewares: 'middleware',
  responseFormat: 'output',
  stateSchema: 'state',
}

function requireOptions(name: string, options: AgentOptions<AgentStateType, Schema, never>): void {
  const { maxRounds, toolErrors, model, output, invalidOutput } = options
  const unknown = Object.keys(options).find((option) => !OPTIONS.includes(option))
  if (unknown !== undefined) {
    const meant = ELSEWHERE[unknown] === undefined ? '' : ` did you mean "${ELSEWHERE[unknown]}"?`
    throw new SluiceError(
      'AGENT_CONFIG',
      `agent "${name}" has no option "${unknown}";${meant} options are: ${OPTIONS.join(', ')}.`,
      { node: name },
    )
  }
  requireToolErrors(toolErrors, `agent "${name}"`)
  if (maxRounds !== undefined) requireWhole('maxRounds', maxRounds)
  const refuse = (why: string) => new SluiceError('AGENT_CONFIG', `agent "${name}" ${why}.`, { node: name })
  if (typeof model !== 'string' && typeof model?.chat !== 'function') {
    throw refuse('needs a model: an object with chat(), or the name of one in the runtime')
  }
  if (invalidOutput !== undefined && output === undefined) {
    throw refuse('says what becomes of an invalid output and asks for none; give it an output schema')
  }
}

function requireFields(name: string, type: AnyState): void {
  requireMessages('createAgent', name, type)
  const missing = Object.keys(agentFields).find((field) => !type.names.includes(field))
  if (missing === undefined) return
  throw new SluiceError(
    'GRAPH_INVALID',
    `createAgent "${name}" needs a state with the field ${missing}; make it with state({ ...agentFields, … }).`,
    { node: name, field: missing },
  )
}
