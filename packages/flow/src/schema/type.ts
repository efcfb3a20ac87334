import { isObject, type Json, type JsonObject } from '@sluice/core'

/** What a JSON Schema says about the kind of a value. Bounds and patterns are no part of it. */
export type PropertyType =
  | { readonly kind: 'any' | 'string' | 'integer' | 'number' | 'boolean' | 'null' }
  | { readonly kind: 'array'; readonly items: PropertyType }
  | {
      readonly kind: 'object'
      readonly properties: ReadonlyMap<string, PropertyType>
      readonly required: readonly string[]
      /** The type of properties that are not listed; `undefined` where there may be none. */
      readonly others: PropertyType | undefined
    }
  | { readonly kind: 'union'; readonly members: readonly PropertyType[] }

export const TYPE_NAMES = ['string', 'integer', 'number', 'boolean', 'null', 'array', 'object'] as const
type TypeName = (typeof TYPE_NAMES)[number]

export const isTypeName = (name: unknown): name is TypeName => (TYPE_NAMES as readonly unknown[]).includes(name)

const ANY: PropertyType = { kind: 'any' }

/**
 * Reads the type of a schema. A schema that names no type is "any"; so are `allOf`, `oneOf`, `not` and `$ref`, which cannot
 * be compared. `anyOf` and a list of types are unions.
 */
export function typeOfSchema(schema: unknown): PropertyType {
  if (!isObject(schema)) return ANY
  const { type, anyOf } = schema
  const names = (Array.isArray(type) ? type : [type]).filter(isTypeName)
  const members = names.map((name) => namedType(name, schema))
  if (Array.isArray(anyOf)) members.push(...anyOf.map(typeOfSchema))
  return members.length === 0 ? typeOfValues(schema) : union(members)
}

function namedType(name: TypeName, schema: Readonly<Record<string, unknown>>): PropertyType {
  if (name === 'array') return { kind: 'array', items: typeOfSchema(schema.items) }
  if (name !== 'object') return { kind: name }
  const { properties, required, additionalProperties } = schema
  return {
    kind: 'object',
    properties: new Map(
      isObject(properties) ? Object.entries(properties).map(([key, inner]) => [key, typeOfSchema(inner)]) : [],
    ),
    required: Array.isArray(required) ? required.filter((key) => typeof key === 'string') : [],
    others: additionalProperties === false ? undefined : typeOfSchema(additionalProperties),
  }
}

/** `enum` and `const` without a type say it by their values. */
function typeOfValues({ enum: values, const: only }: Readonly<Record<string, unknown>>): PropertyType {
  const given = Array.isArray(values) ? values : only === undefined ? [] : [only]
  return given.length === 0 ? ANY : union(given.map((value) => typeOfValue(value as Json)))
}

function typeOfValue(value: Json): PropertyType {
  if (value === null) return { kind: 'null' }
  if (Array.isArray(value)) return { kind: 'array', items: ANY }
  if (typeof value === 'object') return { kind: 'object', properties: new Map(), required: [], others: ANY }
  return { kind: typeof value as 'string' | 'number' | 'boolean' }
}

function union(members: readonly PropertyType[]): PropertyType {
  const flat = members.flatMap((member) => (member.kind === 'union' ? member.members : [member]))
  const first = flat[0]
  if (flat.some(({ kind }) => kind === 'any')) return ANY
  return first !== undefined && flat.every((member) => showType(member) === showType(first))
    ? first
    : { kind: 'union', members: flat }
}

/** `list of integer`, `string or null`, `object {a: string}`. */
export function showType(type: PropertyType): string {
  switch (type.kind) {
    case 'array':
      return type.items.kind === 'any' ? 'list' : `list of ${showType(type.items)}`
    case 'union':
      return [...new Set(type.members.map(showType))].join(' or ')
    case 'object': {
      const parts = [...type.properties].map(([key, inner]) => `${key}: ${showType(inner)}`)
      if (type.others !== undefined && type.others.kind !== 'any') parts.push(`others: ${showType(type.others)}`)
      return `${type.others === undefined ? 'closed object' : 'object'}${parts.length === 0 ? '' : ` {${parts.join(', ')}}`}`
    }
    default:
      return type.kind
  }
}

const DESCRIBING = new Set([
  'title',
  'description',
  'default',
  'examples',
  'type',
  'anyOf',
  'items',
  'properties',
  'additionalProperties',
  'required',
  '$comment',
  'deprecated',
  'readOnly',
  'writeOnly',
])

/** Whether a schema says more than {@link PropertyType} holds, so that only a validator can judge a value by it. */
export function isConstrained(schema: JsonObject): boolean {
  if (Object.keys(schema).some((key) => !DESCRIBING.has(key))) return true
  const { items, properties, additionalProperties, anyOf } = schema
  const inner = [
    items,
    additionalProperties,
    ...Object.values(isObject(properties) ? properties : {}),
    ...(Array.isArray(anyOf) ? anyOf : []),
  ]
  return inner.some((part) => isObject(part) && isConstrained(part as JsonObject))
}
