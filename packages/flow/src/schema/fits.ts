import { isObject, type Json } from '@sluice/core'
import type { PropertyType } from './type.ts'

/** Whether a value is of a type as it stands, without any cast. */
export function fits(value: Json, type: PropertyType): boolean {
  switch (type.kind) {
    case 'any':
      return true
    case 'null':
      return value === null
    case 'integer':
      return Number.isInteger(value)
    case 'string':
    case 'number':
    case 'boolean':
      return typeof value === type.kind
    case 'array':
      return Array.isArray(value) && value.every((item) => fits(item, type.items))
    case 'union':
      return type.members.some((member) => fits(value, member))
    case 'object':
      return (
        isObject(value) &&
        type.required.every((key) => Object.hasOwn(value, key)) &&
        Object.entries(value).every(([key, item]) => {
          const inner = type.properties.get(key) ?? type.others
          return inner !== undefined && fits(item as Json, inner)
        })
      )
  }
}
