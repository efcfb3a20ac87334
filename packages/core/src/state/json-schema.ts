import type { StandardJSONSchemaV1 } from '@standard-schema/spec'
import type { JsonObject } from '../json/json.ts'
import { ownObject } from '../json/own.ts'
import type { Schema } from './schema.ts'

/**
 * The JSON Schema (draft 2020-12) of what a schema takes; `undefined` where its validator has no Standard JSON Schema. Throws
 * what the validator throws where it has no JSON Schema for this one.
 */
export function jsonSchemaOf(schema: Schema, what: string): JsonObject | undefined {
  const { jsonSchema } = schema['~standard'] as Partial<StandardJSONSchemaV1.Props>
  return jsonSchema && ownObject(jsonSchema.input({ target: 'draft-2020-12' }), what)
}
