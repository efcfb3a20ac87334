import { isObject, type Json, type JsonObject, messageOf, SluiceError } from '@sluice/core'
import { fits } from './fits.ts'
import { type PropertyType, showType } from './type.ts'

export interface CastOptions {
  /**
   * Also reads JSON in text where the type is no text. Only for what a model or a tool wrote: between nodes, text is text.
   */
  readonly parse?: boolean
}

/**
 * Makes a value one of the given type. To text: text stays, `null` is empty, the rest is JSON text. Booleans are 0 and 1;
 * a number is `false` when it is 0; a whole number drops what is behind the point. Lists and objects part by part; a closed
 * object drops what it does not list. A union keeps what fits one member, else takes the first that casts.
 *
 * @param what names the value in the error, for example `input "amount" of node "pay"`.
 * @throws SluiceError `FLOW_CAST` with the type wanted and the kind of the value, never the value.
 */
export function cast(value: Json, type: PropertyType, what: string, { parse = false }: CastOptions = {}): Json {
  if (fits(value, type)) return value
  const become = (part: Json, inner: PropertyType, name: string) => cast(part, inner, name, { parse })
  switch (type.kind) {
    case 'string':
      return value === null ? '' : JSON.stringify(value)
    case 'integer':
    case 'number':
    case 'boolean':
      if (typeof value === 'number' || typeof value === 'boolean') return castNumeric(value, type.kind)
      break
    case 'array':
      if (Array.isArray(value)) return value.map((item, i) => become(item, type.items, `${what}[${i}]`))
      break
    case 'object':
      if (isObject(value)) return castObject(value as JsonObject, type, what, become)
      break
    case 'union': {
      const found = firstCast(type.members, (member) => become(value, member, what))
      if (found !== undefined) return found
    }
  }
  if (parse && typeof value === 'string') return become(parsed(value, type, what), type, what)
  throw refused(value, type, what)
}

function castNumeric(value: number | boolean, kind: 'integer' | 'number' | 'boolean'): number | boolean {
  if (kind === 'boolean') return value !== 0 && value !== false
  // `+ 0` turns -0 into 0, which JSON cannot tell apart.
  return (kind === 'integer' ? Math.trunc(Number(value)) : Number(value)) + 0
}

type Become = (part: Json, type: PropertyType, name: string) => Json

function castObject(
  value: JsonObject,
  type: Extract<PropertyType, { kind: 'object' }>,
  what: string,
  become: Become,
): Json {
  const parts = Object.entries(value).flatMap(([key, item]): [string, Json][] => {
    const inner = type.properties.get(key) ?? type.others
    return inner === undefined ? [] : [[key, become(item, inner, `${what}.${key}`)]]
  })
  return Object.fromEntries(parts)
}

function firstCast(members: readonly PropertyType[], attempt: (member: PropertyType) => Json): Json | undefined {
  for (const member of members) {
    try {
      return attempt(member)
    } catch (error) {
      if (!(error instanceof SluiceError)) throw error
    }
  }
  return undefined
}

/** Text that is not JSON, or is text again, is left to the refusal. */
function parsed(text: string, type: PropertyType, what: string): Json {
  let value: Json
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw refused(text, type, what, `: ${messageOf(error)}`)
  }
  if (typeof value === 'string') throw refused(text, type, what)
  return value
}

function refused(value: Json, type: PropertyType, what: string, why = ''): SluiceError {
  const kind = value === null ? 'null' : Array.isArray(value) ? 'a list' : `a ${typeof value}`
  return new SluiceError('FLOW_CAST', `${what} must be ${showType(type)}, and ${kind} cannot become that${why}.`, {})
}
