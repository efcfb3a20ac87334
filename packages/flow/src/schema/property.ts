import { type Json, type JsonObject, own } from '@sluice/core'
import { isConstrained, type PropertyType, typeOfSchema } from './type.ts'

/** An input or output of a component. */
export interface Property {
  readonly title: string
  readonly description?: string
  readonly type: PropertyType
  /** Used where no value comes; `undefined` when there is none. */
  readonly default: Json | undefined
  /** The JSON Schema as the document has it. */
  readonly schema: JsonObject
  /** Whether the schema says more than `type`, so that only a validator can judge a value. */
  readonly constrained: boolean
}

export function propertyOf(schema: JsonObject): Property {
  const { title, description } = schema
  return {
    title: String(title),
    ...(typeof description === 'string' ? { description } : {}),
    type: typeOfSchema(schema),
    default: schema.default,
    schema,
    constrained: isConstrained(schema),
  }
}

export const textProperty = (title: string): Property => propertyOf(own({ title, type: 'string' }) as JsonObject)
