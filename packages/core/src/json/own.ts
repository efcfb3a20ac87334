import { SluiceError } from '../errors/error.ts'
import { isObject, type Json } from './json.ts'

/** The deepest nesting a value may have. Deeper ones, and values that contain themselves, are refused. */
export const MAX_DEPTH = 500

/** A constructor that hands back what it is given, so that a subclass puts its private field there. */
function Itself(o: object): object {
  return o
}

/**
 * Marks what {@link own} produced, so that it is not walked again when it comes back. A private field on a foreign object
 * reads in a few nanoseconds and, unlike a `WeakSet`, costs next to nothing to set.
 */
class Stamp extends (Itself as unknown as new (o: object) => object) {
  /** How many levels the value has, itself included. */
  #height: number
  constructor(value: object, height: number) {
    super(value)
    this.#height = height
  }
  static isOn(value: object): boolean {
    return #height in value
  }
  static heightOf(value: unknown): number {
    return typeof value === 'object' && value !== null ? (value as Stamp).#height : 0
  }
}

const NOT_JSON = Symbol('not JSON')

/**
 * Checks that a value is JSON, copies it and freezes the copy, in one walk. What this function made before is taken as it
 * is, so a list that grows is walked only where it is new. A property whose value is `undefined` is left out; `-0` is `0`.
 *
 * @param what names the value in the error, for example `the update of node "check"`.
 * @throws SluiceError `JSON_VALUE` with the path and the type of the part that is not JSON, never its value: functions,
 *   symbols, bigints, `NaN`, infinities, class instances (dates and maps too), getters, holes, `__proto__`, cycles.
 */
export function own(value: unknown, what = 'the value'): Json {
  const taken = take(value, 0)
  if (taken !== NOT_JSON) return taken as Json
  const fault = findFault(value, '', 0)
  throw new SluiceError('JSON_VALUE', `${what} is not JSON${fault.path && ` at ${fault.path}`}: ${fault.why}.`, {
    path: fault.path,
  })
}

/**
 * The same for a list or an object that was just made and that nobody else holds: what is in it is taken as ever, and it
 * itself is frozen where it is, without a copy.
 *
 * @param begins a list that `fresh` begins with; where it was made here before, only what comes after it is looked at.
 */
export function adopt(
  fresh: unknown[] | Record<string, unknown>,
  what?: string,
  begins: readonly unknown[] = [],
): Json {
  if (Stamp.isOn(fresh)) return fresh as Json
  const height = Array.isArray(fresh) ? adoptItems(fresh, begins) : adoptMembers(fresh)
  if (height === undefined) return own(fresh, what)
  new Stamp(fresh, height + 1)
  return Object.freeze(fresh) as Json
}

/** How high the highest item is; `undefined` when one is no JSON. */
function adoptItems(list: unknown[], begins: readonly unknown[]): number | undefined {
  const known = Stamp.isOn(begins)
  let height = known ? Stamp.heightOf(begins) - 1 : 0
  for (let i = known ? begins.length : 0; i < list.length; i++) {
    const item = take(list[i], 1)
    if (item === NOT_JSON) return undefined
    list[i] = item
    height = Math.max(height, Stamp.heightOf(item))
  }
  return height
}

function adoptMembers(object: Record<string, unknown>): number | undefined {
  let height = 0
  for (const key of Object.keys(object)) {
    if (key === '__proto__') return undefined
    const member = take(object[key], 1)
    if (member === NOT_JSON) return undefined
    object[key] = member
    height = Math.max(height, Stamp.heightOf(member))
  }
  return height
}

/** Whether {@link own} made this value. */
export const isOwn = (value: unknown): boolean => typeof value === 'object' && value !== null && Stamp.isOn(value)

function take(value: unknown, depth: number): unknown {
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) return value
  if (typeof value === 'number') return Number.isFinite(value) ? (value === 0 ? 0 : value) : NOT_JSON
  if (typeof value !== 'object') return NOT_JSON
  if (Stamp.isOn(value)) return depth + Stamp.heightOf(value) > MAX_DEPTH ? NOT_JSON : value
  if (depth >= MAX_DEPTH) return NOT_JSON
  return Array.isArray(value) ? takeArray(value, depth + 1) : takeObject(value as Record<string, unknown>, depth + 1)
}

function takeArray(value: readonly unknown[], depth: number): unknown {
  if (!isPlainList(value)) return NOT_JSON
  const copy = new Array<unknown>(value.length)
  let height = 0
  for (let i = 0; i < value.length; i++) {
    const item = take(value[i], depth)
    if (item === NOT_JSON) return NOT_JSON
    copy[i] = item
    height = Math.max(height, Stamp.heightOf(item))
  }
  new Stamp(copy, height + 1)
  return Object.freeze(copy)
}

function takeObject(value: Record<string, unknown>, depth: number): unknown {
  if (!isPlain(value) || Object.getOwnPropertySymbols(value).length > 0) return NOT_JSON
  const copy: Record<string, unknown> = {}
  let height = 0
  for (const key of Object.keys(value)) {
    if (key === '__proto__' || hasGetter(value, key)) return NOT_JSON
    const item = value[key]
    if (item === undefined) continue
    const taken = take(item, depth)
    if (taken === NOT_JSON) return NOT_JSON
    copy[key] = taken
    height = Math.max(height, Stamp.heightOf(taken))
  }
  new Stamp(copy, height + 1)
  return Object.freeze(copy)
}

const hasGetter = (value: object, key: string): boolean =>
  Object.getOwnPropertyDescriptor(value, key)?.get !== undefined

/** A plain object of this realm or of another one: its prototype, if it has one, has none itself. */
export function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null || Object.getPrototypeOf(prototype) === null
}

/** A list of this realm or of another one, and no class that extends it. */
function isPlainList(value: readonly unknown[]): boolean {
  const prototype = Object.getPrototypeOf(value)
  return prototype === Array.prototype || (prototype !== null && isPlain(prototype) && Array.isArray(prototype))
}

interface Fault {
  readonly path: string
  readonly why: string
}

/** Walks again, slowly, to say where and why; the fast walk only knows that something is wrong. */
function findFault(value: unknown, path: string, depth: number): Fault {
  return faultOf(value, path, depth) ?? { path, why: 'it changed while it was read' }
}

function faultOf(value: unknown, path: string, depth: number): Fault | undefined {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return undefined
  if (typeof value === 'number') return Number.isFinite(value) ? undefined : { path, why: `${value} has no JSON form` }
  if (typeof value !== 'object') return { path, why: `a value of type ${typeof value} has no JSON form` }
  if (depth + (isOwn(value) ? Stamp.heightOf(value) - 1 : 0) >= MAX_DEPTH) {
    return { path: '', why: `it is nested deeper than ${MAX_DEPTH} levels, or contains itself` }
  }
  if (isOwn(value)) return undefined
  if (Array.isArray(value)) return faultOfArray(value, path, depth)
  return faultOfObject(value as Record<string, unknown>, path, depth)
}

function faultOfArray(value: readonly unknown[], path: string, depth: number): Fault | undefined {
  if (!isPlainList(value)) return { path, why: instanceOf(value) }
  for (let i = 0; i < value.length; i++) {
    if (!(i in value)) return { path: `${path}[${i}]`, why: 'the list has a hole there' }
    const fault = faultOf(value[i], `${path}[${i}]`, depth + 1)
    if (fault) return fault
  }
  return undefined
}

function faultOfObject(value: Record<string, unknown>, path: string, depth: number): Fault | undefined {
  if (!isPlain(value)) return { path, why: instanceOf(value) }
  if (Object.getOwnPropertySymbols(value).length > 0) return { path, why: 'it has a symbol as a key' }
  for (const key of Object.keys(value)) {
    const at = path === '' ? key : `${path}.${key}`
    if (key === '__proto__') return { path: at, why: 'a key named __proto__ is refused' }
    if (hasGetter(value, key)) return { path: at, why: 'it is a getter; pass its value' }
    const fault = value[key] === undefined ? undefined : faultOf(value[key], at, depth + 1)
    if (fault) return fault
  }
  return undefined
}

const instanceOf = (value: object): string =>
  `it is an instance of ${value.constructor?.name ?? 'a class'}; pass a plain ${Array.isArray(value) ? 'list' : 'object'}`

/** The object a caller gave, owned; refuses lists and scalars. */
export function ownObject(value: unknown, what: string): { readonly [key: string]: Json } {
  if (!isObject(value)) {
    throw new SluiceError(
      'JSON_VALUE',
      `${what} must be an object, not ${value === null ? 'null' : Array.isArray(value) ? 'a list' : `a ${typeof value}`}.`,
    )
  }
  return own(value, what) as { readonly [key: string]: Json }
}
