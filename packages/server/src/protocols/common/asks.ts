import { isObject, type JsonObject, type RunEvent } from '@sluice/core'
import type { PutAsk } from '@sluice/host'

/** The questions a run ended with; the log has given each its id. */
export const asksOf = ({ asks = [] }: RunEvent & { type: 'run_end' }): readonly PutAsk[] => asks as readonly PutAsk[]

/** The call of a tool that a question is about. */
export interface AskedCall {
  readonly id: string
  readonly tool: string
  readonly args: JsonObject
}

export function callOf({ payload, toolCallId: id }: PutAsk): AskedCall | undefined {
  if (id === undefined || !isObject(payload)) return undefined
  const { tool, arguments: args } = payload
  return typeof tool === 'string' && isObject(args) ? { id, tool, args: args as JsonObject } : undefined
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
