import { isObject, type JsonObject } from '@sluice/core'

/** Gathers what is wrong with a manifest, so that an author mends it in one go. */
export class Faults {
  readonly list: string[] = []
  /** What is odd and refuses nothing. */
  readonly warnings: string[] = []

  /** @param where a path into the manifest: `components[0].seams`. */
  add(where: string, what: string): void {
    this.list.push(where === '' ? what : `${where} ${what}`)
  }

  /** A field that is none is left alone, and told: it may be a slip, or meant for another host. */
  known(declared: object, fields: readonly string[], where: string): void {
    for (const field of Object.keys(declared)) {
      if (fields.includes(field)) continue
      this.warnings.push(
        `${where === '' ? field : `${where}.${field}`} is no field and is ignored; fields are: ${fields.join(', ')}`,
      )
    }
  }

  text(value: unknown, where: string): string {
    if (typeof value === 'string' && value.trim() !== '') return value
    this.add(where, `must be a text, not ${received(value)}`)
    return ''
  }

  optionalText(value: unknown, where: string): string | undefined {
    return value === undefined ? undefined : this.text(value, where)
  }

  /** Texts of a list that may be absent. */
  texts(value: unknown, where: string): readonly string[] | undefined {
    return this.items(value, where)?.map((item, i) => this.text(item, `${where}[${i}]`))
  }

  objects(value: unknown, where: string): readonly JsonObject[] | undefined {
    return this.items(value, where)?.map((item, i) => this.object(item, `${where}[${i}]`) ?? {})
  }

  object(value: unknown, where: string): JsonObject | undefined {
    if (value === undefined) return undefined
    // What was read from JSON text is JSON.
    if (isObject(value)) return value as JsonObject
    this.add(where, `must be an object, not ${received(value)}`)
    return undefined
  }

  items(value: unknown, where: string): readonly unknown[] | undefined {
    if (value === undefined || Array.isArray(value)) return value
    this.add(where, `must be a list, not ${received(value)}`)
    return undefined
  }

  oneOf<Choice extends string>(value: unknown, choices: readonly Choice[], where: string): Choice | undefined {
    if (value === undefined) return undefined
    if (choices.includes(value as Choice)) return value as Choice
    this.add(where, `is ${received(value)}; it may be: ${choices.join(', ')}`)
    return undefined
  }

  flag(value: unknown, where: string): boolean | undefined {
    if (value === undefined || typeof value === 'boolean') return value
    this.add(where, `must be true or false, not ${received(value)}`)
    return undefined
  }
}

/** What stands there, short enough for a message. */
export function received(value: unknown): string {
  if (value === undefined) return 'absent'
  const text = JSON.stringify(value)
  return text.length > 60 ? `${text.slice(0, 60)}…` : text
}

export const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]*$/
