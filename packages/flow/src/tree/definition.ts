import { isObject } from '@sluice/core'
import type { Category, Descriptor } from '../components/descriptor.ts'
import { categoryOf, type PluginType } from '../components/plugin-types.ts'
import type { Path } from '../faults/path.ts'
import { below, type Placed, reach, type Scope } from './placed.ts'

/** A component where it is defined. References to it all lead to one definition. */
export interface Definition {
  readonly type: string
  readonly value: Readonly<Record<string, unknown>>
  readonly path: Path
  readonly scope: Scope | undefined
  /** Present when the type belongs to the Agent Specification. */
  readonly descriptor?: Descriptor
  /** Present when a loaded plugin provides the type. */
  readonly plugin?: PluginType
}

export function categoriesOf({ descriptor, plugin }: Definition): readonly Category[] {
  if (descriptor !== undefined) return descriptor.categories
  const category = plugin && categoryOf(plugin.kind)
  return category === undefined ? [] : [category]
}

/** A field's value, through references; `undefined` for one that is left out or `null`. */
export function fieldOf(definition: Definition, name: string): Placed | undefined {
  return Object.hasOwn(definition.value, name) ? reach(below(definition, name)) : undefined
}

/** A field that is text; `undefined` for anything else. */
export function textOf(definition: Definition, name: string): string | undefined {
  const value = fieldOf(definition, name)?.value
  return typeof value === 'string' ? value : undefined
}

/** The values of a list, through references; what is lost is left out. `undefined` for anything but a list. */
export function itemsOf(definition: Definition, name: string): readonly Placed[] | undefined {
  const list = fieldOf(definition, name)
  if (list === undefined || !Array.isArray(list.value)) return undefined
  return list.value.flatMap((_, i) => reach(below(list, i)) ?? [])
}

/** A name for messages, whatever the document says. */
export const titleOf = (definition: Definition): string =>
  `${definition.type} "${textOf(definition, 'name') ?? textOf(definition, 'id') ?? '?'}"`

/** An object with a `component_type`. */
export const isComponent = (value: unknown): value is Readonly<Record<string, unknown>> =>
  isObject(value) && Object.hasOwn(value, 'component_type')
