import { SluiceError } from '../errors/error.ts'
import { equal } from '../json/equal.ts'
import { isObject, type Json, type JsonObject } from '../json/json.ts'
import { adopt, isOwn } from '../json/own.ts'
import { type InputOf, type OutputOf, type Schema, validate } from './schema.ts'

/**
 * Makes the next value of a field from its current one and what a node returned. Pure: it may run more than once for one
 * write, and both values are frozen. `current` is `undefined` on the first write of a field that has no value yet.
 */
type Reduce = (current: Json | undefined, update: Json) => unknown

export interface FieldRule {
  /** A whole value of the field: what the state starts from, what {@link replaceWith} brings, a reducer's result. */
  readonly whole?: (value: unknown) => unknown
  /** What a node returns for the field; the same as `whole` where there is no reducer. */
  readonly update?: (value: unknown) => unknown
  readonly reduce?: Reduce
  /** The same as `reduce` called for each update in turn, for a fan-out; built-in reducers have it so that it is linear. */
  readonly reduceAll?: (current: Json | undefined, updates: readonly Json[]) => unknown
  /** The update that leads from one value to another, where the reducer is one of ours; a whole new value where none would. */
  readonly change?: (before: Json | undefined, after: Json) => Json | Replaced<Json>
  /** Whether a reducer's result must be checked by `whole`. Built-in reducers without constraints keep JSON closed. */
  readonly recheck?: boolean
}

/** One field of a state: `Value` is what nodes read, `Update` what they may return for it. */
export class Field<Value = unknown, Update = Value> {
  declare readonly '~value': Value
  declare readonly '~update': Update
  readonly rule: FieldRule

  constructor(rule: FieldRule) {
    this.rule = rule
  }
}

/** A field whose schema says what it holds and what it starts from; what a node returns takes the place of the value. */
export function fieldOf<S extends Schema>(schema: S): Field<OutputOf<S>, InputOf<S>> {
  const check = (value: unknown) => validate(schema, value, 'the value')
  return new Field({ whole: check, update: check })
}

/** A field that takes any JSON, without a schema; it starts from `initial`, or without a value. */
export function field<Value>(initial?: Value): Field<Value> {
  return new Field({ whole: (value) => (value === undefined ? initial : value) })
}

/** A list that grows: what nodes return is added at its end. Starts empty. */
export function append<S extends Schema>(
  item: S,
  { whole }: { whole?: Schema<unknown, OutputOf<S>[]> } = {},
): Field<readonly OutputOf<S>[], readonly InputOf<S>[]> {
  const items = (value: unknown) =>
    asList(value, 'append').map((entry, i) => asGiven(entry, validate(item, entry, `item ${i}`)))
  return new Field({
    whole: (value) =>
      value === undefined ? [] : whole === undefined ? items(value) : validate(whole, value, 'the list'),
    update: items,
    reduce: (current, update) => reduceLists(current, [update]),
    reduceAll: reduceLists,
    change: changeOfList,
    recheck: whole !== undefined,
  })
}

/** What was added to a list, if nothing else happened to it. */
export function changeOfList(before: Json | undefined, after: Json): Json | Replaced<Json> {
  const [old, list] = [(before ?? []) as readonly Json[], after as readonly Json[]]
  const grown = list.length >= old.length && old.every((item, i) => equal(item, list[i]))
  return grown ? list.slice(old.length) : new Replaced(after)
}

function reduceLists(current: Json | undefined, updates: readonly Json[]): Json {
  const before = asList(current ?? [], 'append') as readonly Json[]
  const list = [...before]
  for (const update of updates) {
    refuseOwnList(current, update)
    for (const item of asList(update, 'append') as readonly Json[]) list.push(item)
  }
  return adopt(list, undefined, before)
}

/** A node that spreads its state hands a list that grows back to itself, which would double it. */
export function refuseOwnList(current: unknown, update: Json): void {
  if (update !== current || (update as readonly Json[]).length === 0) return
  throw new SluiceError(
    'STATE_UPDATE',
    'it was given its own current list; return the new items only, or replaceWith(list)',
  )
}

/** What a validator made of a value; the value itself where that is already ours and nothing was changed about it. */
export const asGiven = (value: unknown, checked: unknown): unknown =>
  isOwn(value) && equal(checked as Json, value as Json) ? value : checked

/** An object whose top-level keys are set one by one; to take a key away, use {@link replaceWith}. Starts empty. */
export function merge<S extends Schema>(
  entry: S,
): Field<Readonly<Record<string, OutputOf<S>>>, Readonly<Record<string, InputOf<S>>>> {
  const entries = (value: unknown) =>
    Object.fromEntries(
      Object.entries(asEntries(value)).map(([key, item]) => [key, validate(entry, item, `key "${key}"`)]),
    )
  return new Field({
    whole: (value) => (value === undefined ? {} : entries(value)),
    update: entries,
    reduce: (current, update) => ({ ...asEntries(current ?? {}), ...asEntries(update) }),
    change: changeOfEntries,
  })
}

function asEntries(value: unknown): Readonly<Record<string, unknown>> {
  if (isObject(value)) return value
  throw new SluiceError('STATE_UPDATE', `a merge field takes an object, not ${kindOf(value)}.`)
}

/** The keys that were set, if none was taken away. */
function changeOfEntries(before: Json | undefined, after: Json): Json | Replaced<Json> {
  const [old, entries] = [(before ?? {}) as JsonObject, after as JsonObject]
  if (Object.keys(old).some((key) => !Object.hasOwn(entries, key))) return new Replaced(after)
  return Object.fromEntries(Object.entries(entries).filter(([key, value]) => !equal(old[key], value)))
}

/**
 * A field with a reducer of your own.
 *
 * @throws SluiceError `STATE_CONFIG` when `reduce` is a class or does not take exactly two parameters.
 */
export function reduced<S extends Schema, U extends Schema = S>(
  schema: S,
  reduce: (current: OutputOf<S> | undefined, update: OutputOf<U>) => OutputOf<S>,
  { update }: { update?: U } = {},
): Field<OutputOf<S>, InputOf<U>> {
  if (
    typeof reduce !== 'function' ||
    reduce.length !== 2 ||
    /^class\b/.test(Function.prototype.toString.call(reduce))
  ) {
    throw new SluiceError('STATE_CONFIG', 'a reducer is a function of exactly two parameters, (current, update).')
  }
  return new Field({
    whole: (value) => validate(schema, value, 'the value'),
    update: (value) => validate(update ?? schema, value, 'the update'),
    reduce: reduce as unknown as Reduce,
    recheck: true,
  })
}

/** In an update, takes the place of a field's whole value and passes its reducer by. */
export class Replaced<Value> {
  readonly value: Value
  constructor(value: Value) {
    this.value = value
  }
}

/** `{ log: replaceWith([]) }` sets a field with a reducer to a whole new value. */
export const replaceWith = <Value>(value: Value): Replaced<Value> => new Replaced(value)

/** The key under which {@link replaceWith} is stored and shown to policies: `{ "$replace": value }`. */
export const REPLACE_KEY = '$replace'

export function asList(value: unknown, reducer: string): readonly unknown[] {
  if (Array.isArray(value)) return value
  throw new SluiceError('STATE_UPDATE', `${reducer} takes a list, not ${kindOf(value)}; return [item].`)
}

export const kindOf = (value: unknown): string =>
  value === null
    ? 'null'
    : Array.isArray(value)
      ? 'a list'
      : typeof value === 'object'
        ? 'an object'
        : `a ${typeof value}`
