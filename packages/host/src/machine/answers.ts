import { type JsonObject, messageOf, type RuntimeOptions, validate } from '@sluice/core'
import { jsonSchema } from '@sluice/flow'

/**
 * Checks an answer by the JSON Schema that was written down with its question. The validator is loaded with the first one. A schema
 * that is none is told and refuses nothing: the question could never be answered otherwise.
 */
export function answerCheck(warn: (message: string) => void): NonNullable<RuntimeOptions['checkJson']> {
  return async (schema, value) => {
    const judge = await judgeOf(schema, warn)
    if (judge !== undefined) validate(judge, value, 'it')
  }
}

async function judgeOf(schema: JsonObject, warn: (message: string) => void) {
  try {
    return await jsonSchema(schema, 'the schema of a question')
  } catch (error) {
    warn(`an answer is not checked: ${messageOf(error)}`)
    return undefined
  }
}
