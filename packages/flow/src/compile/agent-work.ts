import {
  agentLoop,
  type ChatMessage,
  type ChatModel,
  type JsonObject,
  type NodeContext,
  own,
  SluiceError,
  type Tool,
} from '@sluice/core'
import type { AgentNode, LlmConfig, PluginComponent } from '../flow/model.ts'
import type { Property } from '../schema/property.ts'
import { render } from '../schema/template.ts'
import { isOneText, openAnswer, readAnswer, responseFormat } from './answer.ts'
import type { FlowParts, Phase, TransformVerdict } from './parts.ts'

/** An agent of a document, ready to run: its model and tools are found. */
export interface ReadyAgent {
  readonly node: AgentNode
  readonly model: ChatModel
  readonly tools: readonly Tool[]
}

/** Generation parameters as requests carry them. */
export function parametersOf({ parameters }: LlmConfig): { temperature?: number; maxTokens?: number; topP?: number } {
  const { temperature, max_tokens: maxTokens, top_p: topP } = parameters as { [name: string]: number | undefined }
  return {
    ...(temperature === undefined ? {} : { temperature }),
    ...(maxTokens === undefined ? {} : { maxTokens }),
    ...(topP === undefined ? {} : { topP }),
  }
}

/**
 * Runs an agent node: the system prompt with its placeholders filled, then one user message with the node's inputs as JSON,
 * which is how a flow speaks to an agent. Transforms see the conversation before the first request and after the answer.
 */
export async function runAgentNode(
  { node, model, tools }: ReadyAgent,
  parts: FlowParts,
  input: JsonObject,
  ctx: NodeContext,
): Promise<JsonObject> {
  const { agent } = node
  const opening = own([
    { role: 'system', content: render(agent.systemPrompt, input) },
    { role: 'user', content: JSON.stringify(input) },
  ]) as unknown as readonly ChatMessage[]
  const before = await transform(node, parts, 'pre', opening, ctx)
  if ('rejected' in before) return before.rejected
  const wanted = answered(node)
  const { content, messages } = await agentLoop(ctx, {
    model,
    tools,
    messages: before.messages,
    parameters: { ...parametersOf(agent.llm), responseFormat: responseFormat(agent.name, wanted) },
    stream: phased(node, parts, 'post').length === 0,
  })
  const after = await transform(node, parts, 'post', messages, ctx)
  if ('rejected' in after) return after.rejected
  const text = after.messages.at(-1)?.content ?? content
  const answer = node.openOutputs ? openAnswer(text) : readAnswer(text, wanted, `the answer of agent "${agent.name}"`)
  if (agent.transforms.length === 0) return answer
  return node.openOutputs ? { ...answer, transform_status: 'ok' } : { ...answer, ...ACCEPTED }
}

/** What a node with transforms puts out of them; where a node lists it all, nothing of it is missing when all went well. */
const ACCEPTED = { transform_status: 'ok', transform_reason: '', transform_name: '', transform_phase: '' }

/** The outputs that the model fills. */
function answered({ agent, outputs, openOutputs }: AgentNode): readonly Property[] {
  if (openOutputs) return []
  return agent.transforms.length === 0 ? outputs : outputs.filter(({ title }) => !Object.hasOwn(ACCEPTED, title))
}

const phased = ({ agent }: AgentNode, parts: FlowParts, phase: Phase): readonly PluginComponent[] =>
  agent.transforms.filter((component) => parts.phases(component).includes(phase))

/** Each transform in turn, on the conversation as the ones before it left it; a rejection is the node's result. */
async function transform(
  node: AgentNode,
  parts: FlowParts,
  phase: Phase,
  messages: readonly ChatMessage[],
  ctx: NodeContext,
): Promise<{ readonly messages: readonly ChatMessage[] } | { readonly rejected: JsonObject }> {
  let left = messages
  for (const component of phased(node, parts, phase)) {
    const verdict = await parts.apply(component, phase, left, ctx)
    if (verdict.action === 'modify') left = verdict.messages
    if (verdict.action === 'reject') return { rejected: rejection(node, component, phase, verdict) }
  }
  return { messages: left }
}

/**
 * What a node puts out when a transform has rejected: its text in place of an answer, and who said why.
 *
 * @throws SluiceError `FLOW_REJECTED` when the node declares outputs that a rejection cannot fill.
 */
function rejection(
  node: AgentNode,
  { name }: PluginComponent,
  phase: Phase,
  { reason, messages }: Extract<TransformVerdict, { action: 'reject' }>,
): JsonObject {
  const text = messages?.at(-1)?.content ?? reason
  const said = { transform_status: 'rejected', transform_reason: reason, transform_name: name, transform_phase: phase }
  if (node.openOutputs) return { result: text, ...said }
  const wanted = answered(node)
  const [only] = wanted
  if (only !== undefined && isOneText(wanted)) return { [only.title]: text, ...said }
  const unfilled = wanted.find((output) => output.default === undefined)
  if (unfilled === undefined) return said
  throw new SluiceError(
    'FLOW_REJECTED',
    `transform "${name}" rejected the conversation of agent "${node.agent.name}": ${reason}. Its node has no default for output "${unfilled.title}".`,
    { node: node.name },
  )
}
