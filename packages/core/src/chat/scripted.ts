import { SluiceError } from '../errors/error.ts'
import { own } from '../json/own.ts'
import type { ChatChunk, ChatRequest, ChatResponse, ToolCallRequest } from './chat.ts'
import type { ChatModel } from './model.ts'

/** What a scripted model answers: text, tool calls, a whole response, an error to throw, or a function of the request. */
export type ScriptedReply =
  | string
  | Error
  | {
      readonly content?: string
      readonly tool_calls?: readonly ScriptedCall[]
      readonly finish_reason?: string
      readonly usage?: ChatResponse['usage']
    }
  | ((request: ChatRequest) => ScriptedReply | Promise<ScriptedReply>)

/** A call as a script writes it: arguments as a value, or as text where the text is meant to be broken. */
export interface ScriptedCall {
  readonly id?: string
  readonly name: string
  readonly arguments?: unknown
}

export interface ScriptedModel extends ChatModel {
  /** Every request that arrived, in order. */
  readonly requests: readonly ChatRequest[]
}

/**
 * A model that answers from a list, one reply for each request, and needs no network: for tests, templates and docs. When the
 * list is used up it answers with `otherwise`, where that is given. Streamed, it sends the text word by word. It counts in memory:
 * in another process, where a thread goes on, it begins at the first reply again. Give that process the replies that are left, or
 * functions of the request, which say by the conversation where they are.
 *
 * @throws SluiceError `SCRIPT_EXHAUSTED` from the call that finds no reply left.
 */
export function scripted(
  replies: readonly ScriptedReply[],
  { model = 'scripted', otherwise }: { readonly model?: string; readonly otherwise?: ScriptedReply } = {},
): ScriptedModel {
  const requests: ChatRequest[] = []
  const answer = async (request: ChatRequest): Promise<ChatResponse> => {
    const turn = requests.push(request)
    let reply = replies[turn - 1] ?? otherwise
    while (typeof reply === 'function') reply = await reply(request)
    if (reply === undefined) {
      throw new SluiceError(
        'SCRIPT_EXHAUSTED',
        `the scripted model has no reply to request ${turn}: its list has ${replies.length}. Give it more, or "otherwise".`,
      )
    }
    if (reply instanceof Error) throw reply
    return responseOf(reply, turn)
  }
  return {
    model,
    requests,
    chat: answer,
    async *stream(request) {
      yield* chunksOf(await answer(request))
    },
  }
}

function responseOf(
  reply: Exclude<ScriptedReply, Error | ((request: ChatRequest) => unknown)>,
  turn: number,
): ChatResponse {
  if (typeof reply === 'string') return own({ content: reply, finish_reason: 'stop' }) as unknown as ChatResponse
  const calls = reply.tool_calls?.map((call, i) => callOf(call, `call-${turn}-${i + 1}`))
  return own({
    content: reply.content ?? '',
    finish_reason: reply.finish_reason ?? (calls ? 'tool_calls' : 'stop'),
    tool_calls: calls,
    usage: reply.usage,
  }) as unknown as ChatResponse
}

function callOf(call: ScriptedCall, id: string): ToolCallRequest {
  const text = typeof call.arguments === 'string' ? call.arguments : JSON.stringify(call.arguments ?? {})
  return { id: call.id ?? id, name: call.name, arguments: text }
}

function* chunksOf(response: ChatResponse): Generator<ChatChunk> {
  for (const word of response.content.match(/\S+\s*|\s+/g) ?? []) yield { content: word }
  for (const [index, call] of (response.tool_calls ?? []).entries()) yield { tool_calls: [{ index, ...call }] }
  yield { finish_reason: response.finish_reason, usage: response.usage }
}
