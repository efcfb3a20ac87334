import { createHash } from 'node:crypto'
import { canonical, isObject, type Json } from '@sluice/core'
import { type AgentContext, FIELDS } from './context.ts'

/** How an emission is named: by the digest of what it shows, by a function of the host's own, or not at all. */
export type IdentityProvider = 'jcs-sha256' | null | { readonly name: string; identify(context: AgentContext): string }

export const providerName = (provider: IdentityProvider): string | null =>
  typeof provider === 'object' && provider !== null ? provider.name : provider

/** @throws whatever is wrong with the context, or the provider throws. */
export function identityOf(provider: IdentityProvider, context: AgentContext): string | null {
  checkContext(context)
  if (provider === null) return null
  return provider === 'jcs-sha256' ? jcsSha256(context) : provider.identify(context)
}

/** `sha256:` and the SHA-256 of the RFC 8785 form of the required fields and those of the point, and nothing else. */
function jcsSha256(context: AgentContext): string {
  const { spec, interception_point, timestamp, sequence, agent, session, target } = context
  const named = FIELDS[interception_point].map((field) => [field, context[field] as Json])
  const identified = {
    spec,
    interception_point,
    timestamp,
    sequence,
    agent: { id: agent.id, framework: agent.framework },
    session: { id: session.id },
    target,
    ...Object.fromEntries(named),
  }
  return `sha256:${createHash('sha256').update(canonical(identified)).digest('hex')}`
}

/** @throws Error for a context without a field that its point needs, or with a value whose canonical form is not its own. */
function checkContext(context: AgentContext): void {
  const point = context.interception_point
  const missing = FIELDS[point].find((field) => context[field] === undefined)
  if (missing !== undefined) throw new Error(`a context of ${point} needs "${missing}"`)
  if (context.tool_call !== undefined && !(isObject(context.tool_call) && context.tool_call.id !== ''))
    throw new Error('a tool call needs an id')
  checkDomain(context)
}

/** Integers that are written out in digits and beyond 2^53 - 1 have neighbours of the same text; so have halves of a character. */
function checkDomain(value: Json): void {
  if (typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value) && Math.abs(value) < 1e21)
    throw new Error('an integer beyond 2^53 - 1 is no value; write it as a text')
  if (typeof value === 'string' && /\p{Surrogate}/u.test(value)) throw new Error('half of a character is no text')
  if (typeof value !== 'object' || value === null) return
  for (const [key, member] of Object.entries(value)) {
    checkDomain(key)
    checkDomain(member as Json)
  }
}
