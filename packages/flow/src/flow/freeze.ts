/** Freezes a value and all that it holds, each part once. Maps are read-only by their type. */
export function deepFreeze<T>(value: T): T {
  const ahead: unknown[] = [value]
  for (const part of ahead) {
    if (typeof part !== 'object' || part === null || Object.isFrozen(part)) continue
    Object.freeze(part)
    ahead.push(...Object.values(part))
    if (part instanceof Map) ahead.push(...part.values())
  }
  return value
}
