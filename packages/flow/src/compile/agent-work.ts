import {
  type ChatMessage,
  type ChatModel,
  type JsonObject,
  type NodeContext,
  own,
  runAgent,
  type Tool,
} from '@sluice/core'
import type { AgentNode, LlmConfig, PluginComponent } from '../flow/model.ts'
import { render } from '../schema/template.ts'
import { openAnswer, readAnswer, responseFormat } from './answer.ts'
import type { FlowParts, Phase } from './parts.ts'

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
 * which is how a flow speaks to an agent.
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
  const after = phased(node, parts, 'post')
  const declared = node.openOutputs ? [] : node.outputs
  const { content, messages } = await runAgent(ctx, {
    model,
    tools,
    messages: before.messages,
    parameters: { ...parametersOf(agent.llm), responseFormat: responseFormat(agent.name, declared) },
    stream: after.length === 0,
  })
  const judged = await transform(node, parts, 'post', messages, ctx)
  if ('rejected' in judged) return judged.rejected
  const text = judged.messages.at(-1)?.content ?? content
  const answer = node.openOutputs
    ? openAnswer(text)
    : readAnswer(text, node.outputs, `the answer of agent "${agent.name}"`)
  return agent.transforms.length === 0 ? answer : { ...answer, transform_status: 'ok' }
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
    if (verdict.action === 'reject') {
      const said = {
        transform_status: 'rejected',
        transform_reason: verdict.reason,
        transform_name: component.name,
        transform_phase: phase,
      }
      return { rejected: { result: verdict.messages?.at(-1)?.content ?? verdict.reason, ...said } }
    }
  }
  return { messages: left }
}
