import { isObject, type Json, type JsonObject } from '../../json/json.ts'
import { ownObject } from '../../json/own.ts'

/** What a person says about a call. `true` stands for approve and `false` for deny. */
export type ToolDecision =
  | { readonly action: 'approve' }
  /** Runs with these arguments in place of the call's own; what is not named stays as it was. */
  | { readonly action: 'edit'; readonly arguments: JsonObject }
  /** The call does not run; the model is told `message`. */
  | { readonly action: 'deny'; readonly message?: string }

const decision = (action: string, rest: JsonObject = {}, required: readonly string[] = []) => ({
  type: 'object',
  properties: { action: { const: action }, ...rest },
  required: ['action', ...required],
  additionalProperties: false,
})

/** JSON Schema of the answers. */
export const DECISIONS: JsonObject = ownObject(
  {
    anyOf: [
      { type: 'boolean' },
      decision('approve'),
      decision('edit', { arguments: { type: 'object' } }, ['arguments']),
      decision('deny', { message: { type: 'string' } }),
    ],
  },
  'the schema of decisions',
)

const DENIED = 'denied by reviewer'
const MALFORMED = `${DENIED}: the answer is no decision`

/** Reads an answer. Whatever is not clearly an approval or an edit denies. */
export function readDecision(answer: Json): ToolDecision {
  if (answer === true) return { action: 'approve' }
  if (answer === false || answer === null) return { action: 'deny', message: DENIED }
  const decided = isObject(answer) ? given(answer) : {}
  const { action, arguments: args, message } = decided
  const members = Object.keys(decided).length
  if (action === 'approve' && members === 1) return { action }
  if (action === 'edit' && isObject(args) && members === 2) return { action, arguments: args as JsonObject }
  if (action === 'deny' && members === (message === undefined ? 1 : 2)) {
    return { action, message: typeof message === 'string' && message !== '' ? message : DENIED }
  }
  return { action: 'deny', message: MALFORMED }
}

/** Its members that say something; some clients send `null` for the rest. */
const given = (answer: { readonly [member: string]: unknown }): { readonly [member: string]: unknown } =>
  Object.fromEntries(Object.entries(answer).filter(([, value]) => value !== null))
