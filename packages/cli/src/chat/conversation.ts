import type { Ask, Json, JsonObject, RunEvent } from '@sluice/core'

/** A policy that stands at the gate of a conversation. */
export interface Standing {
  readonly name: string
  readonly mode: string
  /** `toolCall.before` and the like. */
  readonly at: readonly string[]
}

/** An open question of the thread; `id` where a server keeps it. */
export type OpenAsk = Ask & { readonly id?: string }

/** A flow that is talked with, turn by turn on a thread: here, or behind a server. */
export interface Conversation {
  /** Inputs that the flow declares, as JSON Schemas with a `title`. */
  readonly inputs: readonly JsonObject[]
  readonly thread: string
  /** Goes over to another thread; to a new one without a name. */
  open(thread?: string): void
  /**
   * A turn. Its last event is its `run_end`; `signal` cancels it, and it then ends in order.
   *
   * @throws SluiceError where it is refused before it begins.
   */
  turn(inputs: JsonObject, signal: AbortSignal): AsyncIterable<RunEvent>
  /** Answers a question, and goes on. @throws SluiceError as {@link turn}; `ANSWER_INVALID` for an answer that does not fit. */
  answer(ask: OpenAsk, answer: Json, signal: AbortSignal): AsyncIterable<RunEvent>
  /** What the thread waits for. */
  asks(): Promise<readonly OpenAsk[]>
  /** Records of the thread, the oldest first. */
  history(): Promise<readonly object[]>
  policies(): Promise<readonly Standing[]>
  close(): Promise<void>
}
