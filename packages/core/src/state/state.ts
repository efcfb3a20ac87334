import { messageOf, SluiceError } from '../errors/error.ts'
import { equal } from '../json/equal.ts'
import { isObject, type Json, type JsonObject } from '../json/json.ts'
import { adopt, isPlain, own } from '../json/own.ts'
import { asGiven, Field, type FieldRule, fieldOf, kindOf, REPLACE_KEY, Replaced } from './field.ts'
import type { InputOf, OutputOf, Schema } from './schema.ts'

export type Fields = Readonly<Record<string, Schema | Field<unknown, unknown>>>

type ValueOf<F> = F extends Field<infer Value, unknown> ? Value : F extends Schema ? OutputOf<F> : never
type UpdateOf<F> = F extends { '~update': infer Update } ? Update : F extends Schema ? InputOf<F> : never

/** What nodes, routers and callers read. */
export type StateOf<T> = T extends StateType<infer S, unknown> ? S : never
/** What a node may return and what a run may be given: any of the fields, each as its reducer takes it. */
export type UpdateFor<T> = T extends StateType<unknown, infer U> ? U : never

type StateFrom<F extends Fields> = { readonly [K in keyof F]: ValueOf<F[K]> }
type UpdateFrom<F extends Fields> = { readonly [K in keyof F]?: UpdateOf<F[K]> | Replaced<ValueOf<F[K]>> }

/** The values of a state in the order of its fields; a field without a value holds `undefined`. Never handed out. */
export type Slots = (Json | undefined)[]

/**
 * Declares what a graph's nodes share. Each field is a schema (what a node returns takes the place of the value) or a field
 * with a reducer: `append`, `merge`, `reduced`, `messages`.
 *
 * @throws SluiceError `STATE_CONFIG` for a state without fields, or a field that is neither schema nor field.
 */
export function state<const F extends Fields>(fields: F): StateType<StateFrom<F>, UpdateFrom<F>> {
  return new StateType(fields)
}

/** A declared state: it checks what is written, merges it, and shows it. Made by {@link state}. */
export class StateType<S = unknown, U = unknown> {
  declare readonly '~state': S
  declare readonly '~update': U
  readonly names: readonly string[]
  readonly #fields: readonly Field<unknown, unknown>[]
  readonly #index: Readonly<Record<string, number>>
  readonly #view: (slots: Slots) => S

  constructor(fields: Fields) {
    this.names = Object.keys(fields)
    if (this.names.length === 0) throw new SluiceError('STATE_CONFIG', 'a state needs at least one field.')
    this.#fields = this.names.map((name) => toField(name, fields[name]))
    this.#index = Object.assign(Object.create(null), Object.fromEntries(this.names.map((name, i) => [name, i])))
    this.#view = viewBuilder(this.names) as (slots: Slots) => S
  }

  /**
   * The slots a run starts from: each field's own start, then a checked input through the reducers.
   *
   * @throws SluiceError `STATE_UPDATE` for a field that has no value and needs one, or an input that cannot be merged.
   */
  start(given: JsonObject): Slots {
    const slots = this.#fields.map((field, i) => this.#initial(field, i, given)) as Slots
    this.apply(slots, given, INPUT)
    return slots
  }

  /**
   * Checks an update field by field and hands back an owned copy. Pass `true` as `wire` for one that arrives as plain JSON
   * from a policy, where `{ "$replace": value }` stands for `replaceWith(value)`.
   *
   * @throws SluiceError `STATE_UPDATE` for what is no plain object, a key that is no field, a value that does not fit.
   */
  check(update: unknown, writer: string, wire = false): JsonObject {
    if (update === undefined || update === null) return NOTHING
    this.#requireFields(update, writer)
    const clean: Record<string, unknown> = {}
    for (const name of Object.keys(update)) {
      if (update[name] !== undefined) clean[name] = this.#checkField(name, update[name], writer, wire)
    }
    return ownFields(clean, writer)
  }

  /** Checks whole values of fields, reducers put aside: an input that a policy gave, a payload that is laid over the state. */
  checkWhole(values: unknown, writer: string): JsonObject {
    this.#requireFields(values, writer)
    const clean: Record<string, unknown> = {}
    for (const name of Object.keys(values)) {
      if (values[name] !== undefined) clean[name] = this.#checkWhole(name, values[name], writer)
    }
    return ownFields(clean, writer)
  }

  /** Writes a checked update into slots that the caller owns. */
  apply(slots: Slots, update: JsonObject, by: Writer): void {
    for (const name of Object.keys(update)) {
      const i = this.#index[name] as number
      slots[i] = this.#next(i, slots[i], update[name] as Json, by)
    }
  }

  /** The same for several updates of one field, in order; linear where the reducer can be. */
  applyAll(slots: Slots, name: string, updates: readonly Json[], by: Writer): void {
    const i = this.#index[name] as number
    const rule = (this.#fields[i] as Field).rule
    if (rule.reduceAll === undefined || updates.some(isReplacement)) {
      for (const update of updates) slots[i] = this.#next(i, slots[i], update, by)
    } else {
      slots[i] = this.#result(i, () => rule.reduceAll?.(slots[i], updates), slots[i], by)
    }
  }

  /**
   * The slots of stored values. A field that was not there when they were stored gets its start.
   *
   * @throws SluiceError `THREAD_STATE` for a stored field that the state does not have any more, or a new one without a default.
   */
  restore(values: JsonObject): Slots {
    const slots = this.#fields.map((field, i) => {
      try {
        return this.#initial(field, i, values)
      } catch (cause) {
        throw unfit(this.names[i] as string, 'there is no stored value, and it has no default', cause)
      }
    }) as Slots
    for (const name of Object.keys(values)) slots[this.#stored(name)] = values[name]
    return slots
  }

  /**
   * Writes the stored updates of one superstep into slots that the caller owns: merged as they were then, through the reducers
   * as they are now.
   *
   * @throws SluiceError `THREAD_STATE` for a field that the state does not have any more, or whose updates do not fit it.
   */
  applyStored(slots: Slots, updates: readonly JsonObject[]): void {
    const values = new Map<string, Json[]>()
    for (const update of updates) {
      for (const name of Object.keys(update)) {
        const earlier = values.get(name)
        if (earlier === undefined) values.set(name, [update[name] as Json])
        else earlier.push(update[name] as Json)
      }
    }
    for (const [name, each] of values) {
      this.#stored(name)
      try {
        this.applyAll(slots, name, each, STORED)
      } catch (cause) {
        throw unfit(name, messageOf((cause as Error).cause ?? cause), cause)
      }
    }
  }

  /** @throws SluiceError `THREAD_STATE` naming the field whose stored value does not fit it any more. */
  checkStored(slots: Slots): void {
    for (const [i, value] of slots.entries()) {
      if (value === undefined) continue
      try {
        ;(this.#fields[i] as Field).rule.whole?.(value)
      } catch (cause) {
        throw unfit(this.names[i] as string, messageOf(cause), cause)
      }
    }
  }

  #stored(name: string): number {
    const i = this.#index[name]
    if (i !== undefined) return i
    throw new SluiceError(
      'THREAD_STATE',
      `the thread holds field "${name}", which the state does not have any more; fields are: ${this.names.join(', ')}. Keep the field while threads hold it.`,
      { field: name },
    )
  }

  /** Whether two nodes may write this field in one superstep. */
  merges(name: string): boolean {
    return (this.#fields[this.#index[name] as number] as Field).rule.reduce !== undefined
  }

  /** The slots with some of them covered. */
  overlay(slots: Slots, values: JsonObject): Slots {
    const covered = slots.slice()
    for (const name of Object.keys(values)) covered[this.#index[name] as number] = values[name]
    return covered
  }

  /** One value by its field's name. */
  get(slots: Slots, name: string): Json | undefined {
    const i = this.#index[name]
    return i === undefined ? undefined : slots[i]
  }

  /** A frozen object with every field that has a value. */
  view(slots: Slots): S {
    return this.#view(slots)
  }

  /** An update that sets these fields to these values, reducers put aside. */
  replacing(values: JsonObject): Readonly<Record<string, unknown>> {
    return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, new Replaced(value)]))
  }

  /**
   * The update that leads from some values to others, each field as its reducer takes it; fields that are the same are left out.
   *
   * @throws SluiceError `STATE_UPDATE` for a changed field with a reducer of its own, for nobody can tell what it was given.
   */
  changes(before: JsonObject, after: JsonObject, writer: string): Readonly<Record<string, unknown>> {
    const update: Record<string, unknown> = {}
    for (const [name, value] of Object.entries(after)) {
      if (equal(before[name], value)) continue
      const { reduce, change } = (this.#fields[this.#index[name] as number] as Field).rule
      if (reduce !== undefined && change === undefined) {
        throw this.#refuse(
          writer,
          `changed the shared field "${name}", whose reducer is its own, so that nobody can tell the update; map it with "in" and "out"`,
          name,
        )
      }
      update[name] = change === undefined ? value : change(before[name], value)
    }
    return update
  }

  #initial(field: Field<unknown, unknown>, i: number, given: JsonObject): Json | undefined {
    const name = this.names[i] as string
    if (field.rule.reduce === undefined && Object.hasOwn(given, name)) return undefined
    try {
      const start = field.rule.whole?.(undefined)
      return start === undefined ? undefined : own(start, `the start of field "${name}"`)
    } catch (cause) {
      if (Object.hasOwn(given, name)) return undefined
      throw new SluiceError(
        'STATE_UPDATE',
        `field "${name}" has no default and the input does not give it: ${messageOf(cause)}`,
        { field: name },
        cause,
      )
    }
  }

  #requireFields(values: unknown, writer: string): asserts values is Readonly<Record<string, unknown>> {
    if (isObject(values) && isPlain(values)) return
    const kind = isObject(values) ? `an instance of ${values.constructor?.name ?? 'a class'}` : kindOf(values)
    throw this.#refuse(writer, `gave ${kind} where a plain object of fields is needed`)
  }

  #ruleOf(name: string, writer: string): FieldRule {
    const i = this.#index[name]
    if (i !== undefined) return (this.#fields[i] as Field).rule
    throw this.#refuse(
      writer,
      `wrote "${name}", which is no field of the state; fields are: ${this.names.join(', ')}`,
      name,
    )
  }

  #checkField(name: string, value: unknown, writer: string, wire: boolean): unknown {
    if (value instanceof Replaced) return { [REPLACE_KEY]: this.#checkWhole(name, value.value, writer) }
    if (wire && isReplacement(value)) return { [REPLACE_KEY]: this.#checkWhole(name, value[REPLACE_KEY], writer) }
    return this.#checkValue(name, value, writer, this.#ruleOf(name, writer).update)
  }

  #checkWhole(name: string, value: unknown, writer: string): unknown {
    if (value instanceof Replaced) {
      throw this.#refuse(writer, `uses replaceWith for "${name}" where it has no place; give the value itself`, name)
    }
    return this.#checkValue(name, value, writer, this.#ruleOf(name, writer).whole)
  }

  #checkValue(name: string, value: unknown, writer: string, check: FieldRule['whole']): unknown {
    try {
      if (isReplacement(value)) {
        throw new SluiceError(
          'STATE_UPDATE',
          `an object with the single key "${REPLACE_KEY}" is reserved; use replaceWith(value)`,
        )
      }
      return check === undefined ? value : asGiven(value, check(value))
    } catch (cause) {
      throw this.#refuse(writer, `wrote field "${name}": ${messageOf(cause)}`, name, cause)
    }
  }

  #next(i: number, current: Json | undefined, update: Json, by: Writer): Json {
    if (isReplacement(update)) return (update as JsonObject)[REPLACE_KEY] as Json
    const { reduce } = (this.#fields[i] as Field).rule
    return reduce === undefined ? update : this.#result(i, () => reduce(current, update), current, by)
  }

  #result(i: number, reduce: () => unknown, current: Json | undefined, by: Writer): Json {
    const rule = (this.#fields[i] as Field).rule
    try {
      const result = reduce()
      return own(rechecked(rule, result, by))
    } catch (cause) {
      const name = this.names[i] as string
      const first =
        current === undefined
          ? `; its reducer ${rule.reduce?.name || ''} was given undefined as the current value`.replace('  ', ' ')
          : ''
      throw this.#refuse(by.writer, `cannot be merged into field "${name}"${first}: ${messageOf(cause)}`, name, cause)
    }
  }

  #refuse(writer: string, why: string, name?: string, cause?: unknown): SluiceError {
    return new SluiceError(
      'STATE_UPDATE',
      `${writer} ${why}.`.replace(/\.\.$/, '.'),
      name === undefined ? {} : { field: name },
      cause,
    )
  }
}

/** Who wrote an update, for messages; read only when there is something to say. */
export interface Writer {
  readonly writer: string
}

const STORED: Writer = { writer: 'a stored update' }
const INPUT: Writer = { writer: 'the input' }

/** What a reducer made must fit its field; what was stored did once, and is judged when all of it has been read. */
function rechecked({ recheck, whole }: FieldRule, result: unknown, by: Writer): unknown {
  if (!recheck || whole === undefined) return result
  if (by !== STORED) return whole(result)
  try {
    return whole(result)
  } catch {
    return result
  }
}

const unfit = (field: string, why: string, cause: unknown) =>
  new SluiceError(
    'THREAD_STATE',
    `field "${field}" does not take what a thread holds of it: ${why}. A schema must take what it makes itself, and what was stored before.`.replace(
      '.. A',
      '. A',
    ),
    { field },
    cause,
  )

const NOTHING = own({}) as JsonObject

/** Says who wrote it only where something is wrong: the text would cost more than the walk. */
function ownFields(values: Record<string, unknown>, writer: string): JsonObject {
  try {
    return adopt(values) as JsonObject
  } catch {
    return own(values, `${writer}: the value`) as JsonObject
  }
}

/** The state as the engine's code needs it, with the types put aside. */
export type AnyState = StateType<unknown, unknown>

export const isReplacement = (value: unknown): value is { readonly [REPLACE_KEY]: unknown } =>
  isObject(value) && Object.hasOwn(value, REPLACE_KEY) && Object.keys(value).length === 1

function toField(name: string, field: unknown): Field<unknown, unknown> {
  if (name === '__proto__') throw new SluiceError('STATE_CONFIG', 'a state field cannot be named __proto__.')
  if (field instanceof Field) return field
  if ((typeof field === 'object' || typeof field === 'function') && field !== null && '~standard' in field)
    return fieldOf(field as Schema)
  throw new SluiceError(
    'STATE_CONFIG',
    `state field "${name}" is ${kindOf(field)}; give a schema, or a field such as append(schema).`,
    { field: name },
  )
}

/**
 * Compiles the function that shows slots as one frozen object. A literal written out keeps one hidden class however many
 * fields it has, which assigning key by key does not; where code from strings is forbidden, or a field has no value, the
 * loop below gives the same result.
 */
function viewBuilder(names: readonly string[]): (slots: Slots) => unknown {
  const loop = (slots: Slots) => {
    const view: Record<string, unknown> = {}
    for (let i = 0; i < names.length; i++) if (slots[i] !== undefined) view[names[i] as string] = slots[i]
    return Object.freeze(view)
  }
  const literal = compileLiteral(names)
  return literal === undefined ? loop : (slots) => (slots.includes(undefined) ? loop(slots) : literal(slots))
}

function compileLiteral(names: readonly string[]): ((slots: Slots) => unknown) | undefined {
  try {
    const members = names.map((name, i) => `${JSON.stringify(name)}:s[${i}]`).join(',')
    return new Function('s', `return Object.freeze({${members}})`) as (slots: Slots) => unknown
  } catch {
    return undefined
  }
}
