import type { Path } from '../faults/path.ts'
import type { Report } from '../faults/report.ts'

/** The most text that is read, in UTF-8 bytes. */
export const MAX_BYTES = 4 * 1024 * 1024
/** The deepest nesting of objects and lists. */
export const MAX_DEPTH = 128
/** The most aliases a YAML document may use, each counted as often as it is expanded. */
export const MAX_ALIASES = 100

/** Keys that reach into what objects inherit. They are refused and not dropped: a dropped key changes what was meant. */
const FORBIDDEN = new Set(['__proto__', 'constructor', 'prototype'])

export interface At {
  readonly path: Path
  readonly offset?: number
}

export function tooDeep(report: Report, { path, ...at }: At): void {
  report.fault(
    'FLOW_TOO_DEEP',
    path,
    `the document is nested deeper than ${MAX_DEPTH} levels.\nMove parts into "$referenced_components" and refer to them.`,
    at,
  )
}

export function syntaxFault(report: Report, message: string, offset: number): void {
  report.fault('FLOW_SYNTAX', [], message, { offset })
}

/**
 * Checks a key of an object against those before it. Returns whether the object can be used nevertheless.
 *
 * @param at is called only for a fault.
 */
export function checkKey(report: Report, seen: Set<string>, key: string, at: () => At): boolean {
  const isForbidden = FORBIDDEN.has(key)
  if (isForbidden) {
    const { path, ...offset } = at()
    report.fault('FLOW_KEY_FORBIDDEN', path, `the key "${key}" is refused anywhere in a document. Rename it.`, offset)
  }
  if (seen.has(key)) {
    const { path, ...offset } = at()
    report.fault(
      'FLOW_KEY_TWICE',
      path,
      `the key "${key}" stands twice in one object, and only one of them would count. Remove one.`,
      offset,
    )
  }
  seen.add(key)
  return !isForbidden
}

/** Looks for what a parser lets through and JSON does not hold. Returns whether the value can be used nevertheless. */
export function checkValue(report: Report, value: unknown): boolean {
  const odd = oddIn(value, 0)
  if (odd === undefined) return true
  if (odd.what === 'depth') tooDeep(report, odd)
  else report.fault('FLOW_NUMBER', odd.path, 'this is no finite number, and JSON has no other.')
  return false
}

interface Odd {
  readonly what: 'depth' | 'number'
  readonly path: Path
}

function oddIn(value: unknown, depth: number): Odd | undefined {
  if (typeof value === 'number' && !Number.isFinite(value)) return { what: 'number', path: [] }
  if (typeof value !== 'object' || value === null) return undefined
  if (depth >= MAX_DEPTH) return { what: 'depth', path: [] }
  for (const [key, item] of Object.entries(value)) {
    const odd = oddIn(item, depth + 1)
    if (odd !== undefined) return { ...odd, path: [Array.isArray(value) ? Number(key) : key, ...odd.path] }
  }
  return undefined
}
