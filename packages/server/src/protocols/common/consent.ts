import { isObject, type Json, type JsonObject } from '@sluice/core'
import type { PutAsk } from '@sluice/host'

const YES: readonly Json[] = [true, 'approve', 'approved', 'accept', 'allow', 'yes']
const NO: readonly Json[] = [false, 'deny', 'denied', 'reject', 'rejected', 'refuse', 'no']
const ASSENTS = ['approved', 'approve', 'accepted', 'accept', 'allowed', 'allow', 'confirmed', 'confirm']
const REASONS = ['reason', 'message', 'comment']

/**
 * The answer that says yes, or no, to a question, as its JSON Schema shows it: a boolean, a choice that has such a word, or an
 * object with either in a member of such a name. Undefined for a question that is none of yes and no.
 *
 * @param reason goes into the answer where the schema has a place for it.
 */
export function consentTo({ askedBy, schema }: PutAsk, approved: boolean, reason?: string): Json | undefined {
  // About a call that was cut off: make it again, or let it fail.
  if (askedBy === 'engine') return approved ? 'retry' : 'skip'
  return consentIn(schema, approved, reason)
}

function consentIn(schema: Json | undefined, approved: boolean, reason?: string): Json | undefined {
  if (!isObject(schema)) return undefined
  const { type, enum: choices, const: only, anyOf, oneOf } = schema as JsonObject
  const words = approved ? YES : NO
  const values = Array.isArray(choices) ? choices : only === undefined ? undefined : [only]
  if (values !== undefined) return values.find((value) => words.includes(value))
  const members = Array.isArray(anyOf) ? anyOf : oneOf
  if (Array.isArray(members)) {
    const answers = members.map((member) => consentIn(member, approved, reason)).filter((each) => each !== undefined)
    // The fullest has room for the reason.
    return answers.find((each) => reason !== undefined && isObject(each) && Object.keys(each).length > 1) ?? answers[0]
  }
  if (type === 'boolean') return approved
  return consentMember(schema as JsonObject, approved, reason)
}

function consentMember({ properties, required }: JsonObject, approved: boolean, reason?: string): Json | undefined {
  if (!isObject(properties)) return undefined
  const said = Object.entries(properties).flatMap(([name, schema]) => {
    const value = consentIn(schema as Json, approved)
    const plain = typeof value === 'string' || (value !== undefined && ASSENTS.includes(name))
    return plain ? [[name, value] as const] : []
  })
  const [first] = said
  if (first === undefined) return undefined
  const place = REASONS.find((name) => {
    const schema = properties[name]
    return isObject(schema) && schema.type === 'string'
  })
  const answer: Record<string, Json> = { [first[0]]: first[1] as Json }
  if (place !== undefined && reason !== undefined) answer[place] = reason
  const missing = Array.isArray(required) && required.some((name) => !Object.hasOwn(answer, String(name)))
  return missing ? undefined : answer
}
