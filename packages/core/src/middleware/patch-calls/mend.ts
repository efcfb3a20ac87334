import type { ChatMessage } from '../../chat/chat.ts'
import { historyFaults } from '../../chat/history.ts'
import { adopt } from '../../json/own.ts'

type Messages = readonly ChatMessage[]

/**
 * A conversation that providers take: an answer that came late stands right after its call, a call that nobody answered has `text`
 * for an answer, and answers that nobody asked for, or that came twice, are left out. All other messages stay as they are, in
 * their order. One that is well is handed back itself.
 */
export function mended(messages: Messages, text: string): Messages {
  if (historyFaults(messages).length === 0) return messages
  const used = new Set<number>()
  const result: ChatMessage[] = []
  for (const [at, message] of messages.entries()) {
    if (message.role === 'tool') continue
    result.push(message)
    if (message.role !== 'assistant') continue
    const open = (message.tool_calls ?? []).map(({ id }) => id)
    for (let i = at + 1; messages[i]?.role === 'tool'; i++) {
      const answer = messages[i] as ChatMessage
      const which = open.indexOf(answer.tool_call_id ?? '')
      if (which < 0) continue
      open.splice(which, 1)
      used.add(i)
      result.push(answer)
    }
    for (const id of open)
      result.push(late(messages, at, id, used) ?? { role: 'tool', tool_call_id: id, content: text })
  }
  return adopt(result) as unknown as Messages
}

/** The answer to a call that stands further on, before the same id is asked for again. */
function late(messages: Messages, at: number, id: string, used: Set<number>): ChatMessage | undefined {
  for (let i = at + 1; i < messages.length; i++) {
    const message = messages[i] as ChatMessage
    if (message.role === 'assistant' && message.tool_calls?.some((call) => call.id === id)) return undefined
    if (message.role !== 'tool' || message.tool_call_id !== id || used.has(i)) continue
    used.add(i)
    return message
  }
  return undefined
}

/** Where the calls begin that are about to be answered: the last message but results, if it calls tools. */
export function pendingFrom(messages: Messages): number {
  const last = messages.findLastIndex(({ role }) => role !== 'tool')
  return last >= 0 && (messages[last]?.tool_calls?.length ?? 0) > 0 ? last : messages.length
}
