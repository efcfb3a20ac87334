import type { Json, JsonObject } from '../json/json.ts'

/**
 * What is said to a model and what it says. The shapes are those of chat completions and of the plugin wire, so a request
 * that a policy sees is the request that is sent.
 */
export interface ToolCallRequest {
  readonly id: string
  readonly name: string
  /** JSON text, as the model wrote it. It may be broken. */
  readonly arguments: string
}

export interface ChatMessage {
  /** Only where a message must be found again, to replace or remove it in a `messages()` field. */
  readonly id?: string
  readonly role: 'system' | 'user' | 'assistant' | 'tool'
  readonly content: string
  /** On an assistant message: the calls it asks for. Each must be answered by one tool message. */
  readonly tool_calls?: readonly ToolCallRequest[]
  /** On a tool message: the call it answers. */
  readonly tool_call_id?: string
}

/** A tool as a model is told of it. `parameters` is a JSON Schema of an object. */
export interface ToolDefinition {
  readonly name: string
  readonly description: string
  readonly parameters: JsonObject
}

export interface ChatRequest {
  readonly model: string
  readonly messages: readonly ChatMessage[]
  readonly tools?: readonly ToolDefinition[]
  readonly temperature?: number
  /** Tokens. */
  readonly maxTokens?: number
  readonly topP?: number
  /** `{ type: 'json_schema', name, schema }`, or another form the provider knows. */
  readonly responseFormat?: Json
}

/** Tokens. `estimated` is true where the provider did not say and the numbers were computed from the text. */
export interface Usage {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly totalTokens: number
  readonly estimated?: boolean
}

export interface ChatResponse {
  readonly content: string
  readonly finish_reason: string
  readonly tool_calls?: readonly ToolCallRequest[]
  readonly usage?: Usage
}

/** A piece of a streamed response. Fragments of one tool call share an `index`. */
export interface ChatChunk {
  readonly content?: string
  readonly tool_calls?: readonly {
    readonly index: number
    readonly id?: string
    readonly name?: string
    readonly arguments?: string
  }[]
  readonly finish_reason?: string
  readonly usage?: Usage
}
