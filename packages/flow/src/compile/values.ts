import { type Json, type JsonObject, own, SluiceError } from '@sluice/core'
import { cast } from '../schema/cast.ts'
import type { Property } from '../schema/property.ts'

/** One side of a component: its properties, and whether values that it does not list pass too. */
export interface Side {
  readonly properties: readonly Property[]
  readonly open: boolean
  /** How errors speak of a value, for example `input "amount" of node "pay"`. */
  readonly name: (title: string) => string
}

/** A value by its title; a title may be `constructor`, which every object seems to have. */
export const valueAt = (values: JsonObject, title: string): Json | undefined =>
  Object.hasOwn(values, title) ? values[title] : undefined

/**
 * Makes values what a side declares: each of its type, a missing one its default, and those it does not list left out unless
 * it is open.
 *
 * @param parse whether text may be read as JSON where the type is no text: for what models and tools wrote.
 * @throws SluiceError `FLOW_VALUE_MISSING` for one that is not there and has no default, `FLOW_CAST` for one of a wrong type.
 */
export function fill(side: Side, values: JsonObject, parse = false): JsonObject {
  const filled: Record<string, Json> = side.open ? { ...values } : {}
  for (const { title, type, default: fallback } of side.properties) {
    const value = valueAt(values, title)
    if (value !== undefined) filled[title] = cast(value, type, side.name(title), { parse })
    else if (fallback !== undefined) filled[title] = fallback
    else throw missing(side, title)
  }
  return own(filled) as JsonObject
}

/** The same for an input that may not list what nobody declared: a caller's, or a policy's. */
export function fillExactly(side: Side, values: JsonObject): JsonObject {
  const known = side.properties.map(({ title }) => title)
  const unknown = side.open ? undefined : Object.keys(values).find((title) => !known.includes(title))
  if (unknown === undefined) return fill(side, values)
  throw new SluiceError(
    'FLOW_VALUE_UNKNOWN',
    `there is no ${side.name(unknown)}; there are: ${known.join(', ') || 'none'}.`,
  )
}

const missing = (side: Side, title: string) =>
  new SluiceError('FLOW_VALUE_MISSING', `${side.name(title)} has no value and no default.`)
