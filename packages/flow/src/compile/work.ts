import type { ChatModel, JsonObject, NodeContext, Runnable, Tool } from '@sluice/core'
import type {
  BranchingNode,
  CheckedNode,
  Flow,
  FlowTool,
  LlmConfig,
  LlmNode,
  PluginNode,
  ToolNode,
} from '../flow/model.ts'
import { isPluginNode } from '../flow/model.ts'
import { cast } from '../schema/cast.ts'
import { render } from '../schema/template.ts'
import { parametersOf, runAgentNode } from './agent-work.ts'
import { isOneText, readAnswer, readToolResult, responseFormat } from './answer.ts'
import type { FlowParts } from './parts.ts'
import { valueAt } from './values.ts'

/** What a node came to: its outputs, and the branch it chose, if it did. */
export interface Made {
  readonly output: JsonObject
  readonly branch?: string
}

/** What a node does with its inputs. */
export type Work = (input: JsonObject, ctx: NodeContext) => Made | Promise<Made>

/** What the nodes of a flow need, found before anything runs. */
export interface Ready {
  readonly parts: FlowParts
  tool(described: FlowTool): Tool
  model(config: LlmConfig): ChatModel
  flow(flow: Flow): SubFlow
}

/** A flow that another one contains, and the branch by which a run of it ended, looked up by its result. */
export interface SubFlow {
  readonly graph: Runnable<JsonObject, JsonObject>
  exitOf(result: JsonObject): string | undefined
}

/** What a node of each type does. */
export function workOf(node: CheckedNode, ready: Ready): Work {
  if (isPluginNode(node)) return pluginWork(node, ready)
  switch (node.type) {
    case 'StartNode':
    case 'EndNode':
      return (output) => ({ output })
    case 'ToolNode':
      return toolWork(node, ready)
    case 'LlmNode':
      return llmWork(node, ready)
    case 'AgentNode': {
      const { llm, tools } = node.agent
      const agent = { node, model: ready.model(llm), tools: tools.map(ready.tool) }
      return async (input, ctx) => ({ output: await runAgentNode(agent, ready.parts, input, ctx) })
    }
    case 'BranchingNode':
      return branchingWork(node)
    case 'FlowNode':
      return flowWork(ready.flow(node.flow))
  }
}

function toolWork({ tool: described, outputs, openOutputs }: ToolNode, ready: Ready): Work {
  const tool = ready.tool(described)
  const wanted = openOutputs ? undefined : outputs
  return async (input, ctx) => ({ output: readToolResult(await ctx.callTool(tool, input), wanted) })
}

function llmWork({ name, llm, prompt, outputs }: LlmNode, ready: Ready): Work {
  const model = ready.model(llm)
  const parameters = { ...parametersOf(llm), responseFormat: responseFormat(name, outputs) }
  return async (input, ctx) => {
    const messages = [{ role: 'user' as const, content: render(prompt, input) }]
    const { content } = await ctx.callModel(model, { messages, ...parameters })
    const [only] = outputs
    const output =
      only !== undefined && isOneText(outputs)
        ? { [only.title]: content }
        : readAnswer(content, outputs, `the answer of node "${name}"`)
    return { output }
  }
}

function branchingWork({ name, inputs, mapping, fallback }: BranchingNode): Work {
  return (input) => {
    const [only] = inputs
    const value = only === undefined ? undefined : valueAt(input, only.title)
    const key = value === undefined ? '' : (cast(value, { kind: 'string' }, `the input of node "${name}"`) as string)
    return { output: {}, branch: mapping.get(key) ?? fallback }
  }
}

function flowWork({ graph, exitOf }: SubFlow): Work {
  return async (input, ctx) => {
    const output = await ctx.run(graph, input)
    return { output, branch: exitOf(output) }
  }
}

function pluginWork({ component }: PluginNode, { parts }: Ready): Work {
  return (input, ctx) => parts.execute(component, input, ctx)
}
