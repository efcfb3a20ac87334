import type { Json, JsonObject } from './json.ts'

/** Whether two JSON values are the same; the order of keys does not count. Shared parts are compared by identity first. */
export function equal(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a)) return Array.isArray(b) && equalLists(a, b)
  return !Array.isArray(b) && equalObjects(a as JsonObject, b as JsonObject)
}

function equalLists(a: readonly Json[], b: readonly Json[]): boolean {
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (!equal(a[i], b[i])) return false
  return true
}

function equalObjects(a: JsonObject, b: JsonObject): boolean {
  const keys = Object.keys(a)
  if (keys.length !== Object.keys(b).length) return false
  for (const key of keys) if (!Object.hasOwn(b, key) || !equal(a[key], b[key])) return false
  return true
}
