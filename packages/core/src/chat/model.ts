import type { ChatChunk, ChatRequest, ChatResponse } from './chat.ts'

export interface ChatOptions {
  /** Aborts when the call is given up: the run ended, or its time is over. */
  readonly signal: AbortSignal
}

/**
 * A model that can be asked. Throw to fail the call; the message of a failed HTTP call begins with its status
 * (`429 Too Many Requests: …`), and that of a time-out contains `timed out`, for policies match on them.
 */
export interface ChatModel {
  /** The name a request carries when the caller gives none. */
  readonly model: string
  /** What a request carries where the caller gives nothing; policies see it there. */
  readonly defaults?: Pick<ChatRequest, 'temperature' | 'maxTokens' | 'topP'>
  chat(request: ChatRequest, options: ChatOptions): Promise<ChatResponse>
  /** Present where the model can stream. The pieces together must be what `chat` would have answered. */
  stream?(request: ChatRequest, options: ChatOptions): AsyncIterable<ChatChunk>
}
