import { type Json, type JsonObject, own, validate } from '@sluice/core'
import { jsonSchema } from '@sluice/flow'

/** Checks a value against a schema and hands back a copy with the schema's defaults; throws what is wrong with it. */
export type Fits = (value: unknown, what: string) => Json

/**
 * Compiles the JSON Schema of a manifest.
 *
 * @param what names the schema in the error.
 * @throws SluiceError `JSON_SCHEMA` for a schema that is none.
 */
export async function compileSchema(schema: JsonObject, what: string): Promise<Fits> {
  const judge = await jsonSchema(schema, what)
  return (value, subject) => own(validate(judge, value, subject), subject)
}
