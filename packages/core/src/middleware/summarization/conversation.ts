import type { ChatMessage } from '../../chat/chat.ts'
import { equal } from '../../json/equal.ts'
import type { Json } from '../../json/json.ts'

type Messages = readonly ChatMessage[]

const same = (a: ChatMessage | undefined, b: ChatMessage | undefined): boolean =>
  a !== undefined && b !== undefined && equal(a as unknown as Json, b as unknown as Json)

const leadingSystem = (messages: Messages): number => {
  const at = messages.findIndex(({ role }) => role !== 'system')
  return at < 0 ? messages.length : at
}

/**
 * The conversation that a request is about: what is stored, and what was said since in this node.
 *
 * @param given the request's messages as the node gave them: perhaps a prompt, what the node received, what was said since.
 * @param received the stored messages as the node received them, which other middleware may have changed.
 */
export function conversationOf(given: Messages, received: unknown, stored: unknown): Messages {
  if (!Array.isArray(received) || !Array.isArray(stored)) return given.slice(leadingSystem(given))
  if (received.length === 0) return [...stored, ...given.slice(leadingSystem(given))]
  for (let at = 0; at + received.length <= given.length; at++) {
    if (received.every((message, i) => same(message, given[at + i]))) {
      return [...stored, ...given.slice(at + received.length)]
    }
  }
  return given.slice(leadingSystem(given))
}

/**
 * Whether the messages before `at` may be cut off: no result after it belongs to a call before it. A result belongs to the
 * nearest call of its id before it, for providers use ids again.
 */
export function cutsAt(conversation: Messages): (at: number) => boolean {
  const apart = new Uint8Array(conversation.length + 1)
  const calls = new Map<string, number>()
  for (const [i, { tool_calls = [], tool_call_id }] of conversation.entries()) {
    const call = tool_call_id === undefined ? undefined : calls.get(tool_call_id)
    if (call !== undefined) apart.fill(1, call + 1, i + 1)
    for (const { id } of tool_calls) calls.set(id, i)
  }
  return (at) => apart[at] !== 1
}

/**
 * For each message of a request the index of the message of the conversation that it is, or -1 for one that somebody put in.
 * Where as many messages stand between two that are found as there should, with the same roles, they are those, as somebody
 * changed them.
 */
export function placesIn(request: Messages, conversation: Messages): readonly number[] {
  const places = new Array<number>(request.length).fill(-1)
  let [from, first] = [0, 0]
  while (request[from]?.role === 'system' && !same(request[from], conversation[0])) from++
  while (first < conversation.length && same(request[from], conversation[first])) places[from++] = first++
  let [to, last] = [request.length, conversation.length]
  while (last > first && to > from && same(request[to - 1], conversation[last - 1])) places[--to] = --last
  for (const [i, j] of common(request.slice(from, to), conversation.slice(first, last))) places[from + i] = first + j
  return changed(places, request, conversation)
}

/** The pairs of a longest common subsequence, ascending. */
function common(a: Messages, b: Messages): readonly (readonly [number, number])[] {
  if (a.length === 0 || b.length === 0) return []
  const lengths = Array.from({ length: a.length + 1 }, () => new Uint32Array(b.length + 1))
  const at = (i: number, j: number) => (lengths[i] as Uint32Array)[j] as number
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      const length = same(a[i], b[j]) ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1))
      ;(lengths[i] as Uint32Array)[j] = length
    }
  }
  const pairs: (readonly [number, number])[] = []
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if (same(a[i], b[j])) pairs.push([i++, j++])
    else if (at(i + 1, j) >= at(i, j + 1)) i++
    else j++
  }
  return pairs
}

/** Fills the gaps in which as many messages of the same roles stand as are missing. */
function changed(places: number[], request: Messages, conversation: Messages): readonly number[] {
  let [from, first] = [0, 0]
  while (request[from]?.role === 'system' && places[from] === -1 && conversation[0]?.role !== 'system') from++
  for (let to = from; to <= places.length; to++) {
    const found = to === places.length ? conversation.length : (places[to] as number)
    if (found === -1) continue
    const gap = to - from
    if (
      gap === found - first &&
      request.slice(from, to).every(({ role }, i) => role === conversation[first + i]?.role)
    ) {
      for (let i = 0; i < gap; i++) places[from + i] = first + i
    }
    ;[from, first] = [to + 1, found + 1]
  }
  return places
}
