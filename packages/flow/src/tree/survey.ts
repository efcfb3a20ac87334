import { isObject } from '@sluice/core'
import type { Category } from '../components/descriptor.ts'
import type { PluginTypes } from '../components/plugin-types.ts'
import { type Path, showPath } from '../faults/path.ts'
import type { Report } from '../faults/report.ts'
import { type Definition, isComponent, textOf } from './definition.ts'
import { collectEnvironment, type EnvironmentReference } from './environment.ts'
import { checkFields } from './fields.ts'
import { wrongType } from './kinds.ts'
import { below, follow, isReference, lostReference, type Placed, REFERENCED, scopeInside } from './placed.ts'
import { checkSlot, typeOf } from './types.ts'

/** A component that another one holds, inline or by reference. */
interface Held {
  readonly definition: Definition
  readonly path: Path
}

/**
 * The first pass: finds every component of a document, used or not, and checks each by itself: its type, its fields, what
 * its references lead to. Works off a list, so that no chain of references can exhaust the stack.
 */
export class Survey {
  readonly report: Report
  readonly plugins: PluginTypes
  /** By the object that defines them, in the order in which they were found. */
  readonly definitions = new Map<object, Definition>()
  readonly held = new Map<Definition, Held[]>()
  readonly environment = new Map<string, EnvironmentReference>()
  /** Reported at their first place only. */
  readonly #misplaced = new Set<Definition>()
  readonly #ids = new Map<string, Definition>()
  readonly #seenValues = new Set<unknown>()
  readonly #ahead: (() => void)[] = []

  constructor(report: Report, plugins: PluginTypes) {
    this.report = report
    this.plugins = plugins
  }

  run(): void {
    for (const next of this.#ahead) if (!this.report.isFull) next()
  }

  /** A component at a place that takes one of `category`, for `holder`. Reports what is wrong there. */
  takes(placed: Placed, category: Category, holder?: Definition): Definition | undefined {
    const definition = this.find(placed)
    if (definition === undefined) return undefined
    if (!this.#misplaced.has(definition) && !checkSlot(this.report, definition, category, placed.path)) {
      this.#misplaced.add(definition)
    }
    if (holder !== undefined) this.held.get(holder)?.push({ definition, path: placed.path })
    return definition
  }

  /** What a place means: the component there, or at the end of its references. */
  find(placed: Placed): Definition | undefined {
    const found = follow(placed)
    if ('lost' in found) lostReference(this.report, placed, found)
    else if (isObject(found.value)) return this.define(found)
    else wrongType(this.report, placed.path, 'a component', found.value)
    return undefined
  }

  define(placed: Placed): Definition | undefined {
    const value = placed.value as Readonly<Record<string, unknown>>
    const known = this.definitions.get(value)
    if (known !== undefined) return known
    const named = typeOf(this, placed)
    if (named === undefined) return undefined
    const definition: Definition = { ...named, value, path: placed.path, scope: scopeInside(placed) }
    this.definitions.set(value, definition)
    this.held.set(definition, [])
    this.#checkId(definition)
    this.#ahead.push(() => {
      checkFields(this, definition)
      collectEnvironment(this.environment, definition)
      this.readTable(definition)
    })
    return definition
  }

  /** The components of a `$referenced_components`; its plain values are read where they are used. */
  readTable({ value, path, scope }: Pick<Definition, 'value' | 'path' | 'scope'>): void {
    if (!Object.hasOwn(value, REFERENCED)) return
    const table = { value: value[REFERENCED], path: [...path, REFERENCED], scope }
    if (!isObject(table.value)) {
      wrongType(this.report, table.path, 'an object of components by id', table.value)
      return
    }
    for (const key of Object.keys(table.value)) {
      const entry = below(table, key)
      if (isComponent(entry.value)) this.define(entry)
      else if (isReference(entry.value)) this.find(entry)
    }
  }

  /** Components and references anywhere inside a value without a fixed form, the settings of a plugin's component. */
  readFreely(placed: Placed, holder: Definition): void {
    const { value, path, scope } = placed
    if (typeof value !== 'object' || value === null || this.#seenValues.has(value)) return
    this.#seenValues.add(value)
    if (isComponent(value)) {
      this.takes(placed, 'component', holder)
    } else if (isReference(value)) {
      const found = follow(placed)
      if ('lost' in found) lostReference(this.report, placed, found)
      else if (isComponent(found.value)) this.takes(placed, 'component', holder)
      else this.#ahead.push(() => this.readFreely(found, holder))
    } else {
      for (const key of Object.keys(value)) {
        this.readFreely(below({ value, path, scope }, Array.isArray(value) ? Number(key) : key), holder)
      }
    }
  }

  #checkId(definition: Definition): void {
    const id = textOf(definition, 'id')
    if (id === undefined) return
    const other = this.#ids.get(id)
    if (other === undefined) this.#ids.set(id, definition)
    else idTwice(this.report, id, other, definition)
  }
}

function idTwice(report: Report, id: string, first: Definition, second: Definition): void {
  const [a, b] = [showPath(first.path), showPath(second.path)]
  report.fault(
    'FLOW_ID_TWICE',
    second.path,
    `the id "${id}" is defined twice, at ${a} and at ${b}.\nDefine it once in "${REFERENCED}" and refer to it, or rename one.`,
  )
}
