import { isObject } from '@sluice/core'
import { MAX_MESSAGE_DEPTH, type WireError } from '@sluice/plugin/wire'

/** A plugin answers a call, asks for something (`id` is the plugin's own), or tells something (no `id`). */
export type Message =
  | { readonly kind: 'answer'; readonly id: number; readonly result: unknown }
  | { readonly kind: 'fault'; readonly id: number; readonly error: WireError }
  | { readonly kind: 'ask'; readonly id: number | string | undefined; readonly method: string; readonly params: Params }
  | { readonly kind: 'too deep'; readonly id: number }

export type Params = { readonly [name: string]: unknown }

/** Two characters for each level: a shorter line cannot be too deep. */
const SURELY_FLAT = 2 * MAX_MESSAGE_DEPTH

/** Reads one line that a plugin printed; `undefined` when it is no message of the protocol. */
export function readMessage(line: string): Message | undefined {
  const frame = parse(line)
  if (!isObject(frame) || frame.jsonrpc !== '2.0') return undefined
  const { id, method, params, error } = frame
  const isTooDeep = line.length > SURELY_FLAT && !isWithin(frame, MAX_MESSAGE_DEPTH)
  if (typeof method === 'string') {
    if (isTooDeep || (id !== undefined && typeof id !== 'number' && typeof id !== 'string')) return undefined
    return { kind: 'ask', id, method, params: isObject(params) ? params : {} }
  }
  if (typeof id !== 'number') return undefined
  if (isTooDeep) return { kind: 'too deep', id }
  if (isObject(error)) return { kind: 'fault', id, error: readError(error) }
  return 'result' in frame ? { kind: 'answer', id, result: frame.result } : undefined
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

function readError({ code, message, data }: Params): WireError {
  return {
    code: typeof code === 'number' ? code : 0,
    message: typeof message === 'string' ? message : 'an error without a message',
    data: isObject(data) && typeof data.name === 'string' ? { name: data.name } : undefined,
  }
}

/** Whether a value has at most `levels` levels of nesting. */
export function isWithin(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  if (levels === 0) return false
  if (Array.isArray(value)) return value.every((item) => isWithin(item, levels - 1))
  for (const key in value) if (!isWithin((value as Params)[key], levels - 1)) return false
  return true
}
