import type { Json, JsonObject } from './json.ts'

/**
 * The canonical text of a JSON value: keys sorted by UTF-16 code units, no white space, numbers and strings as ECMAScript
 * writes them.
 *
 * @see RFC 8785, JSON Canonicalization Scheme.
 */
export function canonical(value: Json): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${(value as readonly Json[]).map(canonical).join(',')}]`
  const members = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonical((value as JsonObject)[key] as Json)}`)
  return `{${members.join(',')}}`
}
