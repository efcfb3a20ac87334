import { isObject, type Json, type JsonObject } from '@sluice/core'
import type { Path, PolicyFaults } from './faults.ts'

/** Reads the fields of one object of the file; what is wrong goes to the faults, and then the result is of no use. */
export class Fields {
  readonly path: Path
  readonly #object: JsonObject
  readonly #faults: PolicyFaults

  constructor(object: JsonObject, path: Path, faults: PolicyFaults) {
    this.#object = object
    this.path = path
    this.#faults = faults
  }

  has(name: string): boolean {
    return this.#object[name] !== undefined
  }

  json(name: string): Json | undefined {
    return this.#object[name]
  }

  /** Every field must be one of these. */
  known(names: readonly string[], what: string): void {
    for (const name of Object.keys(this.#object)) {
      if (names.includes(name)) continue
      const message = `${what} has no field "${name}"; fields are: ${names.join(', ')}.`
      this.#faults.add('POLICY_FILE_FIELD', [...this.path, name], message, { onKey: true })
    }
  }

  text(name: string): string | undefined {
    return this.#read(name, 'a text that is not empty', (value): value is string => {
      return typeof value === 'string' && value.trim() !== ''
    })
  }

  required(name: string, why: string): string {
    if (!this.has(name)) this.missing(name, why)
    return this.text(name) ?? ''
  }

  missing(name: string, why: string): void {
    this.#faults.add('POLICY_FILE_FIELD', this.path, `"${name}" is missing: ${why}.`)
  }

  /** A whole number from 1 on. */
  count(name: string, most: number): number | undefined {
    return this.#read(name, `a whole number from 1 to ${most}`, (value): value is number => {
      return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= most
    })
  }

  oneOf<Choice extends string>(name: string, choices: readonly Choice[]): Choice | undefined {
    return this.#read(name, `one of: ${choices.join(', ')}`, (value): value is Choice => {
      return choices.includes(value as Choice)
    })
  }

  texts(name: string): readonly string[] | undefined {
    return this.#read(name, 'a list of texts', (value): value is readonly string[] => {
      return Array.isArray(value) && value.every((item) => typeof item === 'string' && item.trim() !== '')
    })
  }

  list(name: string): readonly Json[] | undefined {
    return this.#read(name, 'a list', (value): value is readonly Json[] => Array.isArray(value))
  }

  object(name: string): JsonObject | undefined {
    return this.#read(name, 'an object', (value): value is JsonObject => isObject(value))
  }

  /** The fields of an object that is one; `undefined` where it is absent or none. */
  fields(name: string): Fields | undefined {
    const object = this.object(name)
    return object && new Fields(object, [...this.path, name], this.#faults)
  }

  entries(): readonly (readonly [string, Json])[] {
    return Object.entries(this.#object)
  }

  /** @param expected continues "it must be …". */
  wrong(name: string, expected: string): void {
    const found = brief(this.#object[name])
    this.#faults.add('POLICY_FILE_VALUE', [...this.path, name], `"${name}" must be ${expected}; it is ${found}.`)
  }

  #read<Value extends Json>(name: string, expected: string, fits: (value: Json) => value is Value): Value | undefined {
    const value = this.#object[name]
    if (value === undefined) return undefined
    if (fits(value)) return value
    this.wrong(name, expected)
    return undefined
  }
}

function brief(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  if (isObject(value)) return 'an object'
  const text = JSON.stringify(value) ?? 'absent'
  return text.length > 60 ? `${text.slice(0, 60)}…` : text
}
