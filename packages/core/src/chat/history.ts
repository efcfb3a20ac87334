import { SluiceError } from '../errors/error.ts'
import { adopt } from '../json/own.ts'
import type { ChatMessage, ToolCallRequest } from './chat.ts'

/** What stands in a repaired conversation where a call was never answered. */
export const NOT_EXECUTED = 'Tool call was not executed.'

/** A conversation that providers refuse: a call without a result after it, or a result without its call before it. */
export class ChatHistoryError extends SluiceError {
  override readonly name = 'ChatHistoryError'
  /** Indices of the messages that are at fault, ascending. */
  readonly positions: readonly number[]

  constructor(what: string, faults: readonly HistoryFault[]) {
    super(
      'CHAT_HISTORY',
      `${what} is no conversation that a provider takes: ${faults.map(({ why }) => why).join('; ')}. ` +
        'Answer every call right after it, or have such a history repaired where it is sent (repairHistory).',
    )
    this.positions = [...new Set(faults.map(({ position }) => position))]
  }
}

export interface HistoryFault {
  /** Index of the message. */
  readonly position: number
  readonly why: string
}

/**
 * What providers refuse a conversation for, by position: each call of an assistant message must be answered once by the tool
 * messages right after it, in any order, and nothing else may be answered. Empty when all is well.
 */
export function historyFaults(messages: readonly ChatMessage[]): readonly HistoryFault[] {
  const faults: HistoryFault[] = []
  walk(messages, {
    stray: (position, { tool_call_id }) =>
      faults.push({ position, why: `message ${position} answers call "${tool_call_id}", which is not open there` }),
    unanswered: (position, ids) =>
      faults.push({ position, why: `nothing answers ${quoted(ids)} of message ${position}` }),
  })
  return faults.sort((a, b) => a.position - b.position)
}

/** A conversation that providers take: answers to nothing are left out, and calls that nobody answered are answered. */
export function repairHistory(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  const repaired: ChatMessage[] = []
  let whole = true
  walk(messages, {
    kept: (message) => repaired.push(message),
    stray: () => {
      whole = false
    },
    unanswered: (_, ids) => {
      whole = false
      for (const id of ids) repaired.push({ role: 'tool', tool_call_id: id, content: NOT_EXECUTED })
    },
  })
  return whole ? messages : (adopt(repaired) as unknown as readonly ChatMessage[])
}

/** @throws ChatHistoryError `CHAT_HISTORY` for a conversation that providers refuse, with the positions of what is wrong. */
export function requireHistory(messages: readonly ChatMessage[], what: string): void {
  if (isAnsweredInOrder(messages)) return
  const faults = historyFaults(messages)
  if (faults.length > 0) throw new ChatHistoryError(what, faults)
}

const NO_CALLS: readonly ToolCallRequest[] = []

/** Whether each call has its result right after it in the order of the calls, as nearly all have; it allocates nothing. */
function isAnsweredInOrder(messages: readonly ChatMessage[]): boolean {
  let [calls, answered] = [NO_CALLS, 0]
  for (let i = 0; i < messages.length; i++) {
    const message = messages[i] as ChatMessage
    if (message.role === 'tool') {
      if (answered === calls.length || calls[answered]?.id !== message.tool_call_id) return false
      answered++
      continue
    }
    if (answered < calls.length) return false
    calls = (message.role === 'assistant' && message.tool_calls) || NO_CALLS
    answered = 0
  }
  return answered === calls.length
}

interface Told {
  kept?(message: ChatMessage): void
  /** A tool message that answers no open call. */
  stray(position: number, message: ChatMessage): void
  /** The calls of the message at this position that nothing right after it answered. */
  unanswered(position: number, ids: readonly string[]): void
}

function walk(messages: readonly ChatMessage[], told: Told): void {
  let [asked, open]: [number, string[]] = [-1, []]
  const close = () => {
    if (open.length > 0) told.unanswered(asked, open)
    open = []
  }
  for (const [position, message] of messages.entries()) {
    if (message.role === 'tool') {
      const at = open.indexOf(message.tool_call_id ?? '')
      if (at < 0) told.stray(position, message)
      else {
        open.splice(at, 1)
        told.kept?.(message)
      }
      continue
    }
    close()
    told.kept?.(message)
    asked = position
    open = message.role === 'assistant' ? (message.tool_calls ?? []).map(({ id }) => id) : []
  }
  close()
}

const quoted = (ids: readonly string[]) =>
  `${ids.length > 1 ? 'calls' : 'call'} ${ids.map((id) => `"${id}"`).join(', ')}`
