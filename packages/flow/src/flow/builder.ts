import { showPath } from '../faults/path.ts'
import type { Report } from '../faults/report.ts'
import { type Definition, fieldOf, textOf } from '../tree/definition.ts'
import { follow, type Placed } from '../tree/placed.ts'
import type { Survey } from '../tree/survey.ts'
import type { Component } from './model.ts'

/**
 * The second pass: makes the checked model, each component once. It runs on faulty documents too, so that everything is said
 * at once: what the survey found missing is then `undefined` in the model against its type, and the model is never handed out.
 */
export class Builder {
  readonly survey: Survey
  readonly #built = new Map<unknown, Map<Definition, unknown>>()

  constructor(survey: Survey) {
    this.survey = survey
  }

  get report(): Report {
    return this.survey.report
  }

  /** Makes a component at its first use. `undefined` inside of itself, which the survey has reported. */
  once<T>(definition: Definition | undefined, make: (builder: Builder, definition: Definition) => T): T | undefined {
    if (definition === undefined) return undefined
    const built = this.#built.get(make) ?? new Map<Definition, unknown>()
    this.#built.set(make, built)
    if (built.has(definition)) return built.get(definition) as T | undefined
    built.set(definition, undefined)
    const made = make(this, definition)
    built.set(definition, made)
    return made
  }

  /** The component in a field. */
  held(definition: Definition, name: string): Definition | undefined {
    return this.definitionAt(fieldOf(definition, name))
  }

  definitionAt(placed: Placed | undefined): Definition | undefined {
    if (placed === undefined) return undefined
    const found = follow(placed)
    return 'lost' in found ? undefined : this.survey.definitions.get(found.value as object)
  }
}

export function componentOf(definition: Definition): Component {
  const description = textOf(definition, 'description')
  return {
    type: definition.type,
    name: textOf(definition, 'name') ?? '',
    id: textOf(definition, 'id') ?? showPath(definition.path),
    ...(description === undefined ? {} : { description }),
  }
}
