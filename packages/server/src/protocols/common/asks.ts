import { isObject, type Json, type JsonObject, type RunEvent } from '@sluice/core'
import type { PutAsk } from '@sluice/host'

/** The questions a run ended with; the log has given each its id. */
export const asksOf = ({ asks = [] }: RunEvent & { type: 'run_end' }): readonly PutAsk[] => asks as readonly PutAsk[]

/** The call that a question is about. */
export interface AskedCall {
  /** Absent where it cannot be told. */
  readonly id?: string
  readonly tool: string
  readonly args: JsonObject
}

const keyOf = (askedBy: string, nodeName: string, tool: string) => JSON.stringify([askedBy, nodeName, tool])

/** Which calls of tools are held by a question: what policies say of them as they ask. */
export class HeldCalls {
  /** What each is known by, under its id. */
  readonly #held = new Map<string, string>()

  note({ seam, action, policy, subject }: RunEvent & { type: 'decision' }): void {
    const { toolName, toolCallId, nodeName = '' } = subject
    if (seam !== 'toolCall' || action !== 'suspend' || toolName === undefined || toolCallId === undefined) return
    this.#held.set(toolCallId, keyOf(`policy:${policy}`, nodeName, toolName))
  }

  /** The call a question is about; its id only where no other call could be meant. */
  of({ payload, askedBy, nodeName }: PutAsk): AskedCall | undefined {
    if (!isObject(payload) || typeof payload.tool !== 'string' || !isObject(payload.arguments)) return undefined
    const { tool, arguments: args, toolCallId } = payload as { tool: string; arguments: JsonObject; toolCallId?: Json }
    if (typeof toolCallId === 'string') return { id: toolCallId, tool, args }
    const key = keyOf(askedBy, nodeName, tool)
    const [only, ...others] = [...this.#held].filter(([, of]) => of === key)
    return only === undefined || others.length > 0 ? { tool, args } : { id: only[0], tool, args }
  }
}

/** What a question says to a person. */
export function questionText({ payload, askedBy, nodeName }: PutAsk): string {
  if (typeof payload === 'string') return payload
  if (!isObject(payload)) return `${askedBy} asks at node "${nodeName}"`
  const { question, message, reason, title, tool } = payload
  const said = [question, message, reason, title].find((text) => typeof text === 'string' && text !== '')
  if (typeof said === 'string') return said
  return typeof tool === 'string' ? `May tool "${tool}" be called?` : `${askedBy} asks at node "${nodeName}"`
}
