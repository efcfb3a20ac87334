import { type Json, type JsonObject, validate } from '@sluice/core'
import { jsonSchema } from '@sluice/flow'

/**
 * Checks an answer by the JSON Schema that was written down with its question. The validator is loaded with the first one. By a
 * schema that cannot be used nothing is checked, so nothing passes.
 */
export async function checkAnswer(schema: JsonObject, value: Json): Promise<void> {
  validate(await jsonSchema(schema, 'the schema of the question'), value, 'it')
}
