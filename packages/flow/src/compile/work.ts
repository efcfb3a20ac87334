import { type ChatModel, command, type JsonObject, type NodeContext, type Runnable, type Tool } from '@sluice/core'
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
import { readAnswer, readToolResult, responseFormat } from './answer.ts'
import type { FlowParts } from './parts.ts'

/** What a node does with its inputs: its outputs, or a command that also chooses a branch. */
export type Work = (input: JsonObject, ctx: NodeContext) => unknown

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
      return (input) => input
    case 'ToolNode':
      return toolWork(node, ready)
    case 'LlmNode':
      return llmWork(node, ready)
    case 'AgentNode': {
      const { llm, tools } = node.agent
      const agent = { node, model: ready.model(llm), tools: tools.map(ready.tool) }
      return (input, ctx) => runAgentNode(agent, ready.parts, input, ctx)
    }
    case 'BranchingNode':
      return branchingWork(node)
    case 'FlowNode':
      return flowWork(ready.flow(node.flow))
  }
}

function toolWork(node: ToolNode, ready: Ready): Work {
  const tool = ready.tool(node.tool)
  return async (input, ctx) => readToolResult(await ctx.callTool(tool, input), node.tool.outputs)
}

function llmWork(node: LlmNode, ready: Ready): Work {
  const model = ready.model(node.llm)
  const parameters = { ...parametersOf(node.llm), responseFormat: responseFormat(node.name, node.outputs) }
  return async (input, ctx) => {
    const messages = [{ role: 'user' as const, content: render(node.prompt, input) }]
    const { content } = await ctx.callModel(model, { messages, ...parameters })
    return readAnswer(content, node.outputs, `the answer of node "${node.name}"`)
  }
}

function branchingWork({ name, inputs, mapping, fallback }: BranchingNode): Work {
  return (input) => {
    const [only] = inputs
    const value = only === undefined ? undefined : input[only.title]
    const key = value === undefined ? '' : (cast(value, { kind: 'string' }, `the input of node "${name}"`) as string)
    return command({ update: {}, branch: mapping.get(key) ?? fallback })
  }
}

function flowWork(sub: SubFlow): Work {
  return async (input, ctx) => {
    const result = await ctx.run(sub.graph, input)
    return command({ update: result, branch: sub.exitOf(result) })
  }
}

function pluginWork({ component }: PluginNode, { parts }: Ready): Work {
  return async (input, ctx) => {
    const { output, branch } = await parts.execute(component, input, ctx)
    return command({ update: output, branch })
  }
}
