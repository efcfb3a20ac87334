import type { ChatMessage } from '../src/index.ts'

/** What a strict provider would refuse a conversation for; empty when it takes it. */
export function faultsOf(messages: readonly ChatMessage[]): readonly string[] {
  const faults: string[] = []
  let open: string[] = []
  for (const [i, message] of messages.entries()) {
    if (message.role === 'tool') {
      const id = message.tool_call_id ?? ''
      if (!open.includes(id)) faults.push(`message ${i} answers call "${id}", which is not open`)
      open = open.filter((other) => other !== id)
      continue
    }
    if (open.length > 0) faults.push(`message ${i} comes before an answer to ${open.join(', ')}`)
    open = (message.tool_calls ?? []).map(({ id }) => id)
    if (message.role !== 'assistant' && open.length > 0) faults.push(`message ${i} of the ${message.role} calls tools`)
  }
  return open.length > 0 ? [...faults, `nothing answers ${open.join(', ')}`] : faults
}
