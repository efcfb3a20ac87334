import type { ChatChunk, ChatRequest, ChatResponse, Json, JsonObject } from '../generated/chat.ts'
import type { Half, Seam } from '../generated/seams.ts'
import type { Kept } from './kept.ts'

/** What every handler is given. */
export interface CallContext {
  /** Aborts when the answer is no longer wanted. */
  readonly signal: AbortSignal
}

/** What a handler may ask of the host while it serves a call. Each needs its name under `capabilities` in the manifest. */
export interface AskingContext extends CallContext {
  /** Publishes `plugin:<componentType>:<name>`; the name is an identifier. */
  emitEvent(name: string, data?: unknown): void
  /** A line for whoever watches the run. */
  log(level: 'debug' | 'info' | 'warn' | 'error', message: string): void
  /** Asks the model that this component's `llm_config` names. */
  callModel(request: Omit<ChatRequest, 'model'> & { model?: string }): Promise<ChatResponse>
  /** Runs a tool of the run this call belongs to. */
  runTool(name: string, input: JsonObject): Promise<Json>
  /** Takes this call's time once more, once. */
  extend(): void
}

/** @typeParam KeptValue what the policy keeps, as `kept.schema` of its manifest has it. */
export interface PolicyContext<KeptValue = unknown> extends AskingContext {
  /** The operator's settings; `{}` when there are none. `llm_config` can also be read as `llmConfig`. */
  readonly component: JsonObject
  readonly seam: Seam
  readonly half: Half
  /** Counts from 1. */
  readonly attempt: number
  readonly maxAttempts: number
  /** The verdicts that this half admits. */
  readonly admits: readonly string[]
  /** A person's answer to what this policy asked. */
  readonly answered: Json | undefined
  /** True when this policy was asked before about the same half of the same attempt: who counts, counts when it is false. */
  readonly revisit: boolean
  /** Who supplied the outcome, if the step itself did not. */
  readonly substituted: string | undefined
  readonly labels: readonly string[]
  /**
   * What this policy keeps, in the scope that its manifest declares: durable on a thread, or of a principal, and changed by one
   * consultation at a time.
   *
   * @throws TypeError when the manifest declares nothing.
   */
  readonly kept: Kept<KeptValue>
}

/** `node` and `component` are the same: the component as the document writes it. */
export interface NodeContext extends AskingContext {
  readonly node: JsonObject
  readonly component: JsonObject
}

export interface TransformContext extends AskingContext {
  readonly component: JsonObject
  readonly phase: 'pre' | 'post'
}

export interface ProviderContext extends CallContext {
  /** The `llm_config` as the document writes it. */
  readonly component: JsonObject
  readonly stream: boolean
  /** Sends a piece of a streamed response. What the handler returns then is the last piece, not the whole. */
  partial(chunk: ChatChunk): void
}

export interface EncoderContext extends CallContext {
  /** Names the stream that the events belong to; several may be encoded at once. */
  readonly streamId: string
}

export interface ToolContext extends CallContext {
  readonly tool: string
}
