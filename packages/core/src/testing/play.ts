import type { ChatMessage } from '../chat/chat.ts'
import type { Runnable } from '../graph/graph.ts'
import type { RunEvent } from '../run/event.ts'
import { createRuntime, type RunOutcome, type RuntimeOptions, type StreamOptions } from '../run/runtime.ts'
import type { RunOptions } from '../run/scope.ts'
import type { Ask } from '../store/records.ts'
import { still } from './still.ts'

export interface PlayOptions<Update> extends RuntimeOptions, RunOptions {
  readonly input?: Update
  /** Answers each question of a paused run, so that it goes on; without it the play ends with the pause. */
  readonly answer?: (ask: Ask) => unknown
}

/** How a run went, from the outside. */
export interface Play<State> extends RunOutcome<State> {
  /** Every event, of all runs that it took, in order. */
  readonly events: readonly RunEvent[]
  /** What a user’s stream has shown and not called back. */
  readonly text: string
  /** The conversation, where the state has one. */
  readonly messages: readonly ChatMessage[]
  /** The answers to tool calls in it. */
  readonly toolMessages: readonly { readonly id: string; readonly content: string }[]
  /** All questions that were asked, answered ones included. */
  readonly asked: readonly Ask[]
}

/** Pauses that one play answers; a graph that asks for ever is a fault, not a play. */
const MOST_PAUSES = 100

/**
 * Plays a graph from plain values: on a runtime of its own, with ids that count from 1 and time that stands still, in memory.
 * Give policies, tools, models, limits or a store as to a runtime. How a run failed is in `status` and `error`. It plays on a
 * thread, so what needs one in a real run finds it here.
 *
 * @throws Error for a graph that has asked 100 times, and whatever `answer` throws.
 */
export async function play<State, Update>(
  graph: Runnable<State, Update>,
  { input, answer, signal, timeoutMs, context, thread = 'play', branch, ...options }: PlayOptions<Update> = {},
): Promise<Play<State>> {
  const runtime = createRuntime({ platform: still(), ...options })
  const run = { signal, timeoutMs, context, thread, branch }
  const events: RunEvent[] = []
  const asked: Ask[] = []
  const watch = async (begin: StreamOptions, given?: Update) => {
    const stream = runtime.stream(graph, given, { ...run, ...begin })
    for await (const event of stream) events.push(event)
    return stream.outcome
  }
  let outcome = await watch({}, input)
  for (let pauses = 0; outcome.status === 'paused' && answer !== undefined; pauses++) {
    if (pauses === MOST_PAUSES) throw new Error(`the graph has asked ${MOST_PAUSES} times and asks again`)
    asked.push(...outcome.asks)
    const answers = new Map(outcome.asks.map((ask) => [ask.key, answer(ask)]))
    outcome = await watch({ resume: answers })
  }
  asked.push(...outcome.asks)
  const { messages = [] } = (outcome.state ?? {}) as { readonly messages?: readonly ChatMessage[] }
  const toolMessages = messages.flatMap(({ role, tool_call_id: id = '', content }) =>
    role === 'tool' ? [{ id, content }] : [],
  )
  return { ...outcome, events, text: textOf(events), messages, toolMessages, asked }
}

/** The tokens that count, node by node as they left. */
function textOf(events: readonly RunEvent[]): string {
  const parts: { readonly at: string; readonly text: string }[] = []
  for (const event of events) {
    if (event.type === 'token') parts.push({ at: event.path.join('/') + event.nodeName, text: event.text })
    if (event.type !== 'retracted') continue
    const at = event.path.join('/') + event.nodeName
    for (let left = event.tokens, i = parts.length - 1; left > 0 && i >= 0; i--) {
      if (parts[i]?.at !== at) continue
      parts.splice(i, 1)
      left--
    }
  }
  return parts.map(({ text }) => text).join('')
}
