import { SluiceError } from '../../errors/error.ts'
import { equal } from '../../json/equal.ts'
import type { Json, JsonObject } from '../../json/json.ts'
import type { Runtime } from '../runtime.ts'

/** Members of a schema that refuse nothing. */
const REMARKS = new Set(['$schema', '$id', '$comment', 'title', 'description', 'default', 'examples'])
/** What is read here: enough for a yes or no, a choice, a text. */
const READ = new Set(['type', 'enum', 'const'])

/**
 * Checks what is to be an answer by the JSON Schema of its question: with the runtime's `checkJson`, or, where there is none and
 * the schema says no more than `type`, `enum` and `const`, here. Where it says more, an answer to a policy is refused, for it need
 * not look at the shape again and a wrong one might pass for a yes; `own` middleware has its code here, which reads the answer.
 *
 * @throws whatever is wrong with it; SluiceError `ANSWER_INVALID` where it cannot be checked.
 */
export async function checkBySchema(
  { checkJson }: Runtime,
  schema: JsonObject,
  value: Json,
  own: boolean,
): Promise<void> {
  if (checkJson !== undefined) return checkJson(schema, value)
  const members = Object.keys(schema).filter((member) => !REMARKS.has(member))
  const unread = members.filter((member) => !READ.has(member))
  if (unread.length > 0 && !own) {
    throw new SluiceError(
      'ANSWER_INVALID',
      `nobody here can check it: the schema of the question has ${unread.map((member) => `"${member}"`).join(', ')}, and without a checker only type, enum and const are read. Give the runtime checkJson.`,
    )
  }
  const { type, enum: choices, const: only } = schema
  const types = Array.isArray(type) ? type : [type]
  if (type !== undefined && !types.some((name) => isOf(name, value))) throw misfit(`is no ${types.join(' or ')}`)
  if (Array.isArray(choices) && !choices.some((choice) => equal(choice, value))) {
    throw misfit(`is none of ${JSON.stringify(choices)}`)
  }
  if (only !== undefined && !equal(only, value)) throw misfit(`is not ${JSON.stringify(only)}`)
}

const misfit = (why: string) => new SluiceError('ANSWER_INVALID', `it ${why}.`)

function isOf(type: Json | undefined, value: Json): boolean {
  if (type === 'integer') return Number.isInteger(value)
  if (type === 'null') return value === null
  if (type === 'array') return Array.isArray(value)
  if (type === 'object') return typeof value === 'object' && value !== null && !Array.isArray(value)
  return typeof value === type
}
