import { type ChatMessage, isObject, type JsonObject, ownObject, readMessages } from '@sluice/core'
import { callPlugin, type PluginCallContext } from './direct.ts'
import { PluginError } from './error.ts'
import type { Peer } from './peer.ts'

/** Where a component lives, and how long it may be silent. */
export interface ComponentSite {
  readonly plugin: string
  readonly peer: Peer
  readonly componentType: string
  readonly silenceMs: number
}

export interface NodeResult {
  readonly output: JsonObject
  readonly branch?: string
}

/**
 * Executes a plugin node.
 *
 * @param node the component as the document writes it.
 * @throws PluginError `PLUGIN_ANSWER` for an answer that is no `{ output, branch? }`; what the handler threw.
 */
export async function executeNode(
  { componentType, ...site }: ComponentSite,
  node: JsonObject,
  input: JsonObject,
  ctx: PluginCallContext,
): Promise<NodeResult> {
  const params = { componentType, node, input }
  const answer = await callPlugin({ ...site, method: 'execute', params, ctx })
  if (!isObject(answer) || !isObject(answer.output)) throw noAnswer(site.plugin, componentType, '{ output, branch? }')
  const output = ownObject(answer.output, `the output of a ${componentType}`)
  const { branch } = answer
  if (branch === undefined || branch === null) return { output }
  if (typeof branch !== 'string')
    throw noAnswer(site.plugin, componentType, '{ output, branch? } with a text as branch')
  return { output, branch }
}

export type TransformVerdict =
  | { readonly action: 'pass' }
  | { readonly action: 'modify'; readonly messages: readonly ChatMessage[] }
  | { readonly action: 'reject'; readonly reason: string; readonly messages?: readonly ChatMessage[] }

export interface TransformCall {
  readonly component: JsonObject
  readonly phase: 'pre' | 'post'
  readonly messages: readonly ChatMessage[]
}

/**
 * Applies a plugin transform to a conversation.
 *
 * @throws PluginError `PLUGIN_ANSWER`, SluiceError `CHAT_SHAPE` for an answer that is no verdict; what the handler threw.
 */
export async function applyTransform(
  { componentType, ...site }: ComponentSite,
  { component, phase, messages }: TransformCall,
  ctx: PluginCallContext,
): Promise<TransformVerdict> {
  const params = { componentType, component, phase, messages }
  const answer = await callPlugin({ ...site, method: 'apply', params, ctx })
  const { action, reason, messages: given } = isObject(answer) ? answer : {}
  const read = given == null ? undefined : readMessages(given, `the answer of a ${componentType}`)
  if (action === 'pass') return { action }
  if (action === 'modify' && read !== undefined) return { action, messages: read }
  if (action === 'reject' && typeof reason === 'string' && reason.trim() !== '') {
    return read === undefined ? { action, reason } : { action, reason, messages: read }
  }
  const expected = '{ action: "pass" }, { action: "modify", messages } or { action: "reject", reason }'
  throw noAnswer(site.plugin, componentType, expected)
}

export const noAnswer = (plugin: string, what: string, expected: string) =>
  new PluginError('PLUGIN_ANSWER', `plugin "${plugin}" gave an answer for ${what} that is not ${expected}.`, { plugin })
