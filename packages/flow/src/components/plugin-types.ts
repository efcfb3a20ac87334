import type { JsonObject } from '@sluice/core'
import type { Category } from './descriptor.ts'

/** What kind of component a plugin provides. Documents may name the first four. */
export type PluginKind = 'node' | 'transform' | 'provider' | 'component' | 'middleware' | 'encoder'

/** A component type that a loaded plugin provides, as its manifest says. */
export interface PluginType {
  readonly kind: PluginKind
  /** Name of the plugin. */
  readonly plugin: string
  readonly version: string
  /** Properties (JSON Schemas with a title), for a node whose document declares none. Without them the node takes anything. */
  readonly inputs?: readonly JsonObject[]
  readonly outputs?: readonly JsonObject[]
  /** The branches a node may choose; without them nothing is checked. */
  readonly branches?: readonly string[]
  /** JSON Schema of the component's own fields, as the document writes them. */
  readonly schema?: JsonObject
}

/** The types that loaded plugins provide. */
export interface PluginTypes {
  get(type: string): PluginType | undefined
  types(): readonly string[]
}

export const NO_PLUGINS: PluginTypes = { get: () => undefined, types: () => [] }

/** Where a component of a plugin may stand; `undefined` for kinds that no document names. */
export function categoryOf(kind: PluginKind): Category | undefined {
  switch (kind) {
    case 'node':
    case 'transform':
    case 'component':
      return kind
    case 'provider':
      return 'llm'
    case 'middleware':
    case 'encoder':
      return undefined
  }
}
