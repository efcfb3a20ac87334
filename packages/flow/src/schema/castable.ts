import type { PropertyType } from './type.ts'

type ObjectType = Extract<PropertyType, { kind: 'object' }>

const isNumeric = ({ kind }: PropertyType) => kind === 'integer' || kind === 'number' || kind === 'boolean'

/**
 * Whether every value of one type can become a value of another: anything becomes text; whole numbers, numbers and booleans
 * become each other; lists by their items; objects when nothing that the target lists can be missing; each member of a union
 * must fit some member of the target. What {@link cast} then never refuses.
 *
 * @see Agent Specification 26.1, "Type casting rules".
 */
export function castable(from: PropertyType, to: PropertyType): boolean {
  if (to.kind === 'any' || to.kind === 'string') return true
  if (from.kind === 'union') return from.members.every((member) => castable(member, to))
  if (to.kind === 'union') return to.members.some((member) => castable(from, member))
  if (isNumeric(from) && isNumeric(to)) return true
  if (from.kind === 'array' && to.kind === 'array') return castable(from.items, to.items)
  if (from.kind === 'object' && to.kind === 'object') return objectCastable(from, to)
  return from.kind === to.kind && from.kind === 'null'
}

function objectCastable(from: ObjectType, to: ObjectType): boolean {
  for (const [key, wanted] of to.properties) {
    const given = from.properties.get(key)
    if (given === undefined || !castable(given, wanted)) return false
  }
  if (to.others === undefined) return from.others === undefined
  const { others } = to
  const unlisted = [...from.properties].filter(([key]) => !to.properties.has(key)).map(([, given]) => given)
  if (from.others !== undefined) unlisted.push(from.others)
  return unlisted.every((given) => castable(given, others))
}
