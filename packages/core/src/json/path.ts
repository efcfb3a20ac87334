import { SluiceError } from '../errors/error.ts'
import { equal } from './equal.ts'
import { isObject, type Json, type JsonObject } from './json.ts'
import { own } from './own.ts'

/**
 * Names places in a JSON value, as dotted text: `cmd`, `messages.0.content`, `args.*.url`. A part is the key of a member, the
 * position of an item from 0, or `*`, which is each of them. A path names all that is below it too. A key with a dot in it has
 * no path of its own; name what it stands in.
 */
export type Path = string

/** A path as read: its parts, in order. */
export type Parts = readonly string[]

const EACH = '*'
const NOTHING = Symbol('nothing')

/** @throws SluiceError `JSON_PATH` for what is no path; the text quotes it. */
export function readPath(path: unknown, what = 'a path'): Parts {
  const refuse = (why: string) =>
    new SluiceError(
      'JSON_PATH',
      `${what} ${why}; a path is dotted text, for example "args.*.url" or "messages.0.content".`,
    )
  if (typeof path !== 'string' || path === '') throw refuse('is no text, or an empty one')
  const parts = path.split('.')
  if (parts.includes('')) throw refuse(`is ${JSON.stringify(path)}, with an empty part`)
  if (parts.includes('__proto__')) throw refuse(`is ${JSON.stringify(path)}, and no value has a member "__proto__"`)
  return Object.freeze(parts)
}

/**
 * The value with nothing in it but what the paths name. Lists keep their length: an item of which nothing is named is `null`.
 * A value, or a part of one, that is named as a whole is the very same object.
 */
export function project(value: Json, paths: readonly Parts[]): Json {
  const shown = projected(value, paths, 0)
  if (shown !== NOTHING) return shown as Json
  return Array.isArray(value) ? own(value.map(() => null)) : isObject(value) ? own({}) : null
}

function projected(value: Json, paths: readonly Parts[], depth: number): Json | typeof NOTHING {
  if (paths.some((path) => path.length === depth)) return value
  if (paths.length === 0 || typeof value !== 'object' || value === null) return NOTHING
  const below = (part: string): Json | typeof NOTHING =>
    projected(
      (value as JsonObject)[part] as Json,
      paths.filter((path) => path[depth] === part || path[depth] === EACH),
      depth + 1,
    )
  if (Array.isArray(value)) {
    const items = value.map((_, i) => below(String(i)))
    if (items.every((item) => item === NOTHING)) return NOTHING
    return items.every((item, i) => item === value[i])
      ? value
      : own(items.map((item) => (item === NOTHING ? null : item)))
  }
  const keys = Object.keys(value)
  const members = keys.map((key) => [key, below(key)] as const).filter(([, member]) => member !== NOTHING)
  if (members.length === 0) return NOTHING
  if (members.length === keys.length && members.every(([key, member]) => member === (value as JsonObject)[key]))
    return value
  return own(Object.fromEntries(members))
}

/**
 * Lays an edited projection over the value that it was made of: what was not shown stays as it was.
 *
 * @throws Error where what is not shown would have to move or go: a list that was shown in part has another length, or
 *   something shown in part became something else.
 */
export function layOver(value: Json, shown: Json, edited: Json): Json {
  return own(laid(value, shown, edited, ''))
}

function laid(value: Json, shown: Json, edited: Json, at: string): Json {
  if (equal(shown, edited)) return value
  if (shown === value || typeof value !== 'object' || value === null) return edited
  const what = at === '' ? 'the value' : `"${at}"`
  const below = (part: string) => (at === '' ? part : `${at}.${part}`)
  if (Array.isArray(value)) {
    if (!Array.isArray(edited) || edited.length !== value.length) {
      throw new Error(`it changed how many items ${what} has, of which it is shown parts only`)
    }
    return value.map((item, i) => laid(item, (shown as readonly Json[])[i] as Json, edited[i], below(String(i))))
  }
  if (!isObject(edited)) throw new Error(`it made something else of ${what}, of which it is shown parts only`)
  const result: Record<string, Json> = {}
  for (const [key, member] of Object.entries(value)) {
    const wasShown = isObject(shown) && Object.hasOwn(shown, key)
    if (!Object.hasOwn(edited, key)) {
      if (!wasShown) result[key] = member
    } else {
      result[key] = wasShown
        ? laid(member, (shown as JsonObject)[key] as Json, edited[key] as Json, below(key))
        : (edited[key] as Json)
    }
  }
  for (const key of Object.keys(edited)) if (!Object.hasOwn(value, key)) result[key] = edited[key] as Json
  return result
}

/** Where two values differ: the deepest places, in the order of the first value and then of the second. Empty when equal. */
export function changesBetween(before: Json, after: Json): readonly Parts[] {
  const changes: Parts[] = []
  collect(before, after, [], changes)
  return changes
}

function collect(before: Json | undefined, after: Json | undefined, at: Parts, changes: Parts[]): void {
  if (equal(before, after)) return
  if (isContainer(before) && isContainer(after) && Array.isArray(before) === Array.isArray(after)) {
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
      collect(memberOf(before, key), memberOf(after, key), [...at, key], changes)
    }
  } else changes.push(at)
}

const isContainer = (value: Json | undefined): value is JsonObject => typeof value === 'object' && value !== null

const memberOf = (value: JsonObject, key: string): Json | undefined =>
  Object.hasOwn(value, key) ? value[key] : undefined

/** Whether one of the paths names this place, or what it stands in. */
export const covers = (paths: readonly Parts[], place: Parts): boolean =>
  paths.some((path) => path.length <= place.length && path.every((part, i) => part === EACH || part === place[i]))

/** A place as text. */
export const pathOf = (place: Parts): Path => place.join('.')
