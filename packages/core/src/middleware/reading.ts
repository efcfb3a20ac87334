import { messageOf } from '../errors/error.ts'
import { isObject } from '../json/json.ts'
import type { Schema } from '../state/schema.ts'

/** A schema by a function: what it returns is the value, what it throws is the complaint. */
export const readBy = <Value>(read: (value: unknown) => Value): Schema<unknown, Value> => ({
  '~standard': {
    version: 1,
    vendor: 'sluice',
    validate: (value) => {
      try {
        return { value: read(value) }
      } catch (error) {
        return { issues: [{ message: messageOf(error) }] }
      }
    },
  },
})

/**
 * An object with these members and no others.
 *
 * @throws TypeError naming what is not known, and what is.
 */
export function readMembers<Name extends string>(
  value: unknown,
  names: readonly Name[],
  what: string,
): { readonly [N in Name]?: unknown } {
  if (!isObject(value)) throw new TypeError(`${what} must be an object`)
  const unknown = Object.keys(value).find((name) => !names.includes(name as Name))
  if (unknown === undefined) return value as { readonly [N in Name]?: unknown }
  throw new TypeError(`${what} has no "${unknown}"; it has: ${names.join(', ')}`)
}
