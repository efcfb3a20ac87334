import { equal } from '../../json/equal.ts'
import type { Json, JsonObject } from '../../json/json.ts'
import { own } from '../../json/own.ts'
import { kindOf } from '../../state/field.ts'

/** Whether a call with these arguments is asked about. One that throws, or says neither `true` nor `false`, asks. */
export type ToolPredicate = (args: JsonObject) => boolean

type Ordered = number | string

/** The argument is greater than `value`: a number or a text, compared with its like only. */
export const gt = (field: string, value: Ordered): ToolPredicate => compares('gt', field, value, (a, b) => a > b)
/** The argument is greater than `value` or the same. */
export const ge = (field: string, value: Ordered): ToolPredicate => compares('ge', field, value, (a, b) => a >= b)
/** The argument is less than `value`. */
export const lt = (field: string, value: Ordered): ToolPredicate => compares('lt', field, value, (a, b) => a < b)
/** The argument is less than `value` or the same. */
export const le = (field: string, value: Ordered): ToolPredicate => compares('le', field, value, (a, b) => a <= b)

/** The argument is `value`, any JSON. One of another type asks: `eq('n', 1)` does so for `"1"`. */
export function eq(field: string, value: Json): ToolPredicate {
  requireNumber('eq', value)
  const expected = own(value, `the value of eq("${field}")`)
  return (args) => equal(sameType(args, field, expected), expected)
}

/** The argument is a text in which the expression is found; a text is taken as the source of one. */
export function matches(field: string, pattern: RegExp | string): ToolPredicate {
  const found = finderOf(pattern)
  return (args) => found(text(args, field))
}

/** In every one of these arguments its expression is found. All are looked at, so a misspelt name asks at each call. */
export const allFields = (patterns: Readonly<Record<string, RegExp | string>>): ToolPredicate => {
  const finders = findersOf('allFields', patterns)
  return (args) => finders.map(([field, found]) => found(text(args, field))).every(Boolean)
}

/** In one of these arguments its expression is found. All are looked at, so a misspelt name asks at each call. */
export const anyField = (patterns: Readonly<Record<string, RegExp | string>>): ToolPredicate => {
  const finders = findersOf('anyField', patterns)
  return (args) => finders.map(([field, found]) => found(text(args, field))).some(Boolean)
}

function compares(
  name: string,
  field: string,
  value: Ordered,
  holds: (a: Ordered, b: Ordered) => boolean,
): ToolPredicate {
  requireNumber(name, value)
  if (typeof value !== 'number' && typeof value !== 'string') {
    throw new TypeError(`${name}("${field}", …) compares with ${kindOf(value)}; give a number or a text.`)
  }
  return (args) => holds(sameType(args, field, value) as Ordered, value)
}

function requireNumber(name: string, value: unknown): void {
  if (Number.isNaN(value)) throw new RangeError(`${name} compares with NaN, which nothing is.`)
}

function findersOf(name: string, patterns: Readonly<Record<string, RegExp | string>>) {
  const finders = Object.entries(patterns).map(([field, pattern]) => [field, finderOf(pattern)] as const)
  if (finders.length === 0) throw new RangeError(`${name} needs a field and an expression at least.`)
  return finders
}

/** An expression with the flags `g` or `y` would go on where it last ended. */
function finderOf(pattern: RegExp | string): (text: string) => boolean {
  const { source, flags } = typeof pattern === 'string' ? new RegExp(pattern) : pattern
  const expression = new RegExp(source, flags.replace(/[gy]/g, ''))
  return (text) => expression.test(text)
}

function argument(args: JsonObject, field: string): Json {
  if (Object.hasOwn(args, field)) return args[field] as Json
  throw new RangeError(`the call has no argument "${field}".`)
}

function sameType(args: JsonObject, field: string, expected: Json): Json {
  const actual = argument(args, field)
  if (kindOf(actual) === kindOf(expected) && !Number.isNaN(actual)) return actual
  throw new TypeError(`argument "${field}" is ${kindOf(actual)} and compared with ${kindOf(expected)}.`)
}

const text = (args: JsonObject, field: string): string => sameType(args, field, '') as string
