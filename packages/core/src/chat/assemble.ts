import { SluiceError } from '../errors/error.ts'
import { own } from '../json/own.ts'
import type { ChatChunk, ChatResponse, Usage } from './chat.ts'

interface Fragment {
  id: string
  name: string
  text: string
}

/** Joins the pieces of a streamed response: text in order, fragments of tool calls by their index, the last of the rest. */
export class ResponseAssembler {
  #content = ''
  #finish = ''
  #usage: Usage | undefined
  readonly #calls = new Map<number, Fragment>()

  add(chunk: ChatChunk): void {
    if (chunk.content !== undefined) this.#content += chunk.content
    if (chunk.finish_reason !== undefined) this.#finish = chunk.finish_reason
    if (chunk.usage !== undefined) this.#usage = chunk.usage
    if (chunk.tool_calls !== undefined) for (const fragment of chunk.tool_calls) this.#addFragment(fragment)
  }

  #addFragment({ index, id, name, arguments: text }: NonNullable<ChatChunk['tool_calls']>[number]): void {
    const call = this.#calls.get(index) ?? { id: '', name: '', text: '' }
    this.#calls.set(index, { id: id || call.id, name: name || call.name, text: call.text + (text ?? '') })
  }

  /** @throws SluiceError `CHAT_SHAPE` when a tool call never got an id or a name. */
  response(): ChatResponse {
    const calls = [...this.#calls]
      .sort(([a], [b]) => a - b)
      .map(([index, { id, name, text }]) => {
        if (id === '' || name === '')
          throw new SluiceError('CHAT_SHAPE', `the stream's tool call ${index} has no id or no name.`)
        return { id, name, arguments: text }
      })
    return own({
      content: this.#content,
      finish_reason: this.#finish,
      tool_calls: calls.length > 0 ? calls : undefined,
      usage: this.#usage,
    }) as unknown as ChatResponse
  }
}
