import { SluiceError } from '../errors/error.ts'
import { nearest } from '../errors/nearest.ts'
import type { Json } from '../json/json.ts'
import { HOOK_NAMES, HOOKS, type HookAction, type HookName, type HookRow } from './hook-table.ts'

/** What a hook says, as `ctx.replace(…)` and its siblings make it. */
export class Said<A extends HookAction = HookAction, Value = unknown> {
  readonly action: A
  /** What to put in place, the reason, the question, or the delay. */
  readonly value: Value

  /** Of other arguments, once they are read: what whoever asked for the call is told beside its outcome. */
  readonly tell: ((input: Json) => string) | undefined

  constructor(action: A, value: Value, tell?: (input: Json) => string) {
    this.action = action
    this.value = value
    this.tell = tell
    Object.freeze(this)
  }
}

/** What a hook puts in place of the value it received. */
export class Replacement<Value = unknown> extends Said<'replace', Value> {
  constructor(value: Value) {
    super('replace', value)
  }
}

/** What the engine says of a hook that returned what it may not: `TypeError` for a value, `GraphExecutionError` for a word. */
export class GraphExecutionError extends SluiceError {
  override readonly name = 'GraphExecutionError'
}

/** A hook's return is the author's mistake, and ends the run with the error itself. */
export class WrongReturn extends Error {
  readonly error: Error

  constructor(error: Error) {
    super(error.message)
    this.error = error
  }
}

/**
 * Reads what a hook returned: nothing, a word that it may say, or, where the hook's own value is the result, that value.
 *
 * @throws WrongReturn with a `GraphExecutionError` `HOOK_RETURN` for a word that the hook may not say, and with a `TypeError`
 *   for any other value; both name the middleware, the hook and what was returned.
 */
export function readSaid(
  returned: unknown,
  hook: HookName,
  by: string,
): Said | { readonly returned: unknown } | undefined {
  if (returned === undefined) return undefined
  const { says, returns }: HookRow = HOOKS[hook]
  if (returned instanceof Said) {
    if (says.includes(returned.action)) return returned
    throw new WrongReturn(wrongWord(returned.action, hook, by))
  }
  if (returns) return returned === null && hook === 'onError' ? undefined : { returned }
  throw new WrongReturn(wrongValue(returned, hook, by))
}

function wrongWord(action: HookAction, hook: HookName, by: string): GraphExecutionError {
  const { says, returns }: HookRow = HOOKS[hook]
  const may = [...says.map((word) => `ctx.${word}(…)`), ...(returns ? ['a result'] : []), 'nothing']
  return new GraphExecutionError(
    'HOOK_RETURN',
    `${by}.${hook} returned ctx.${action}(…); it may return ${may.join(', ')}.`,
    { middleware: by, hook },
  )
}

function wrongValue(returned: unknown, hook: HookName, by: string): TypeError {
  const { says }: HookRow = HOOKS[hook]
  const may = [...says.map((word) => `ctx.${word}(…)`), 'nothing'].join(', ')
  return new TypeError(`${by}.${hook} returned ${typeOf(returned)}; it may return ${may}.`)
}

/** The type of a value in a word, never the value. */
export function typeOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  if (value === undefined) return 'undefined'
  if (typeof value !== 'object') return `a ${typeof value}`
  const name = value.constructor?.name ?? 'Object'
  return name === 'Object' ? 'an object' : /^[AEIOU]/.test(name) ? `an ${name}` : `a ${name}`
}

/** Names of hooks elsewhere, and what stands at their place here. */
const ELSEWHERE: Readonly<Record<string, HookName>> = {
  beforeAgent: 'beforeGraph',
  afterAgent: 'afterGraph',
  onNodeError: 'onError',
  wrapModelCall: 'wrapModel',
  wrapToolCall: 'wrapTool',
  wrapGenerate: 'wrapModel',
}

/** Whether a method of this name is meant as a hook. */
export const looksLikeHook = (name: string): boolean => /^(before|after|on|wrap)(_[a-z]|[A-Z])/.test(name)

/** @throws TypeError for a name that no hook has, with the one that is meant. */
export function requireHookName(name: string, by: string): void {
  if (HOOK_NAMES.includes(name as HookName)) return
  throw new TypeError(
    `${by} defines ${name}, which is no hook; did you mean ${nearestHook(name)}? Hooks are: ${HOOK_NAMES.join(', ')}.`,
  )
}

/** The hook that is meant: of the same place in another framework, else the nearest by the fewest letters changed. */
function nearestHook(name: string): HookName {
  const camel = name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
  const elsewhere = ELSEWHERE[camel]
  if (elsewhere !== undefined) return elsewhere
  return nearest(name, HOOK_NAMES) as HookName
}
