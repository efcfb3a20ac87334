import type { ChatMessage, ChatModel, JsonObject, NodeContext, Tool } from '@sluice/core'
import type { LlmConfig, PluginComponent } from '../flow/model.ts'

/** What a transform makes of a conversation. */
export type TransformVerdict =
  | { readonly action: 'pass' }
  | { readonly action: 'modify'; readonly messages: readonly ChatMessage[] }
  | { readonly action: 'reject'; readonly reason: string; readonly messages?: readonly ChatMessage[] }

export type Phase = 'pre' | 'post'

/** What a flow needs of the machine that runs it. */
export interface FlowParts {
  /** The tool that runs under this name; `undefined` when there is none. */
  tool(name: string): Tool | undefined
  /** The names of the tools there are, for a message. */
  toolNames(): readonly string[]
  model(config: LlmConfig): ChatModel
  /** Executes a plugin's node. */
  execute(
    node: PluginComponent,
    input: JsonObject,
    ctx: NodeContext,
  ): Promise<{ readonly output: JsonObject; readonly branch?: string }>
  /** Applies a plugin's transform. */
  apply(
    transform: PluginComponent,
    phase: Phase,
    messages: readonly ChatMessage[],
    ctx: NodeContext,
  ): Promise<TransformVerdict>
  /** When a plugin's transform is applied: before the agent, after it, or both. */
  phases(transform: PluginComponent): readonly Phase[]
}
