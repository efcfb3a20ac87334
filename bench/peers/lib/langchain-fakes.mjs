import { BaseChatModel } from '@langchain/core/language_models/chat_models'
import { AIMessage, AIMessageChunk, ToolMessage } from '@langchain/core/messages'
import { ChatGenerationChunk } from '@langchain/core/outputs'

// Calls the tool `lookup` until `rounds` tool results are in the conversation, then answers.
export class RoundsModel extends BaseChatModel {
  constructor(rounds) {
    super({})
    this.rounds = rounds
  }
  _llmType() {
    return 'fake-rounds'
  }
  bindTools() {
    return this
  }
  async _generate(messages) {
    let done = 0
    for (const m of messages) if (ToolMessage.isInstance(m)) done++
    const message =
      done < this.rounds
        ? new AIMessage({
            content: '',
            tool_calls: [{ id: `call_${done}`, name: 'lookup', args: { q: `question ${done}` }, type: 'tool_call' }],
          })
        : new AIMessage('the final answer')
    return { generations: [{ text: '', message }] }
  }
}

export class ChunksModel extends BaseChatModel {
  constructor(n) {
    super({})
    this.n = n
  }
  _llmType() {
    return 'fake-chunks'
  }
  bindTools() {
    return this
  }
  async _generate() {
    return { generations: [{ text: 'x', message: new AIMessage('x') }] }
  }
  async *_streamResponseChunks(_messages, _options, runManager) {
    for (let i = 0; i < this.n; i++) {
      const chunk = new ChatGenerationChunk({
        text: 'tok ',
        message: new AIMessageChunk({ content: 'tok ', id: 'run-x' }),
      })
      yield chunk
      await runManager?.handleLLMNewToken('tok ', undefined, undefined, undefined, undefined, { chunk })
    }
  }
}
