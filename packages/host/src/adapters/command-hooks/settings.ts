import { isObject, SluiceError } from '@sluice/core'
import { EVENTS, type EventName, isEvent, REFUSED_EVENTS } from './events.ts'

/** One command, as the settings of an event list it. */
export interface CommandHook {
  /** A line for the shell; with `args`, the program itself. */
  readonly command: string
  readonly args?: readonly string[]
  readonly timeoutMs: number
  /** A failure of this hook is a "no", whatever the policy's own failure rule says. */
  readonly blocksOnFailure: boolean
  /** Whether it is asked about a tool, or a session, of this name. */
  matches(name: string): boolean
}

export type HooksByEvent = { readonly [E in EventName]?: readonly CommandHook[] }

const DEFAULT_TIMEOUT_MS = 5_000

/** The way to a place in the settings: `['PreToolUse', 0, 'matcher']`. */
type Path = readonly (string | number)[]

type OnFault = (error: SluiceError, keys: Path) => void

/** What is thrown from place to place in here. */
class Refusal {
  readonly keys: Path
  readonly error: SluiceError

  constructor(keys: Path, why: string) {
    const path = `hooks${keys.map((key) => (typeof key === 'number' ? `[${key}]` : `.${key}`)).join('')}`
    this.keys = keys
    this.error = new SluiceError('COMMAND_HOOK_SETTINGS', `command hooks: ${path} ${why}.`, { path })
  }
}

const refuse = (keys: Path, why: string) => new Refusal(keys, why)

/**
 * Reads hooks as the settings file of a coding agent has them: by event, groups of `{ matcher?, hooks }`, each hook
 * `{ type: "command", command, args?, timeout?, onFailure? }`, `timeout` in seconds.
 *
 * @param onFault given each fault and the way to it, and then the result is of no use; without it, the first is thrown.
 * @throws SluiceError `COMMAND_HOOK_SETTINGS` for whatever would make a hook not take effect as it is written: an event or a
 *   field that is not known, a kind of hook that is no command, a matcher that is no expression.
 */
export function readHooks(settings: unknown, onFault: OnFault = raise): HooksByEvent {
  const each = <Read>(read: () => Read): readonly Read[] => {
    try {
      return [read()]
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal
      onFault(refusal.error, refusal.keys)
      return []
    }
  }
  const events = each(() => readEvents(settings)).flat()
  return Object.fromEntries(
    events.flatMap(([event, groups]) => each(() => [readEvent(event), readGroups([event], event, groups, each)])),
  )
}

type Each = <Read>(read: () => Read) => readonly Read[]

const raise = (error: SluiceError): never => {
  throw error
}

function readEvents(settings: unknown): readonly (readonly [string, unknown])[] {
  if (isObject(settings) && Object.keys(settings).length > 0) return Object.entries(settings)
  throw refuse([], `must be an object of events; events are: ${Object.keys(EVENTS).join(', ')}`)
}

function readEvent(event: string): EventName {
  if (isEvent(event)) return event
  const events = `events are: ${Object.keys(EVENTS).join(', ')}`
  const reason = Object.hasOwn(REFUSED_EVENTS, event) ? REFUSED_EVENTS[event] : 'is no event'
  throw refuse([event], `${reason}; ${events}`)
}

function readGroups(at: Path, event: string, groups: unknown, each: Each): readonly CommandHook[] {
  if (!Array.isArray(groups)) throw refuse(at, 'must be a list of { matcher, hooks }')
  return groups.flatMap((group, i) => each(() => readGroup([...at, i], event, group, each)).flat())
}

function readGroup(at: Path, event: string, group: unknown, each: Each): readonly CommandHook[] {
  const { matcher, hooks } = only(at, group, ['matcher', 'hooks'])
  if (!Array.isArray(hooks) || hooks.length === 0) throw refuse([...at, 'hooks'], 'must be a list of hooks')
  const [matches = () => true] = each(() => readMatcher([...at, 'matcher'], event, matcher))
  return hooks.flatMap((hook, k) => each(() => readHook([...at, 'hooks', k], hook, matches)))
}

function readHook(at: Path, hook: unknown, matches: (name: string) => boolean): CommandHook {
  const { type, command, args, timeout, onFailure } = only(at, hook, [
    'type',
    'command',
    'args',
    'timeout',
    'onFailure',
  ])
  if (type !== 'command') throw refuse([...at, 'type'], `must be "command"; hooks of other types are not run here`)
  if (typeof command !== 'string' || command.trim() === '') throw refuse([...at, 'command'], 'must be a command')
  if (args !== undefined && !(Array.isArray(args) && args.every((arg) => typeof arg === 'string')))
    throw refuse([...at, 'args'], 'must be a list of texts')
  if (timeout !== undefined && !(typeof timeout === 'number' && timeout > 0 && Number.isFinite(timeout)))
    throw refuse([...at, 'timeout'], 'must be a number of seconds above 0')
  if (onFailure !== undefined && onFailure !== 'block') throw refuse([...at, 'onFailure'], 'can only be "block"')
  return {
    command,
    ...(args !== undefined && { args: args as readonly string[] }),
    timeoutMs: timeout === undefined ? DEFAULT_TIMEOUT_MS : (timeout as number) * 1000,
    blocksOnFailure: onFailure === 'block',
    matches,
  }
}

/** Names joined by `|` are exact; anything else is an expression that may match anywhere in the name. */
const NAMES = /^[\w-]+(?:\|[\w-]+)*$/

function readMatcher(at: Path, event: string, matcher: unknown): (name: string) => boolean {
  if (matcher === undefined || matcher === '' || matcher === '*') return () => true
  if (typeof matcher !== 'string') throw refuse(at, 'must be a text')
  if (EVENTS[event as EventName].matchedBy === undefined)
    throw refuse(at, `matches nothing: ${event} has no name to match; leave it out`)
  if (NAMES.test(matcher)) {
    const names = new Set(matcher.split('|'))
    return (name) => names.has(name)
  }
  if (matcher.includes(',')) throw refuse(at, 'has a comma, which separates nothing; write A|B')
  try {
    const expression = new RegExp(matcher)
    return (name) => expression.test(name)
  } catch {
    throw refuse(at, `is no regular expression: ${matcher}`)
  }
}

function only(at: Path, value: unknown, members: readonly string[]): { readonly [member: string]: unknown } {
  if (!isObject(value)) throw refuse(at, `must be an object with ${members.join(', ')}`)
  const other = Object.keys(value).find((member) => !members.includes(member))
  if (other !== undefined) throw refuse([...at, other], `is not known; known are: ${members.join(', ')}`)
  return value
}
