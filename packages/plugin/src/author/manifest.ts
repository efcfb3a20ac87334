import type { JsonObject } from '../generated/chat.ts'
import type { Half, SEAMS, Seam } from '../generated/seams.ts'
import type { Capability } from '../wire/frames.ts'

interface Declared {
  /** Matches `[A-Za-z_][A-Za-z0-9_]*`; no type of Agent Spec, and no other loaded plugin's. */
  readonly componentType: string
  readonly description?: string
  /** JSON Schema of its settings: a middleware's come from the operator, all others' from the document. */
  readonly schema?: JsonObject
}

type HalfOf<S extends Seam> = { [H in Half]: (typeof SEAMS)[S][H] extends readonly [] ? never : H }[Half]

/** A component that a plugin provides. */
export type ManifestComponent =
  | (Declared & {
      readonly kind?: 'node'
      /** JSON Schemas with a `title`, for documents that declare none. */
      readonly inputs?: readonly JsonObject[]
      readonly outputs?: readonly JsonObject[]
      readonly branches?: readonly string[]
    })
  | (Declared & { readonly kind: 'transform'; readonly phase?: 'pre' | 'post' | 'both' })
  | (Declared & { readonly kind: 'provider'; readonly stream?: boolean })
  /** Stands inside another component of the plugin, which reads it. */
  | (Declared & { readonly kind: 'component' })
  | (Declared & {
      readonly kind: 'middleware'
      readonly seams: { readonly [S in Seam]?: readonly HalfOf<S>[] }
      readonly stream?: 'hold' | 'pass'
    })
  | (Declared & { readonly kind: 'encoder'; readonly protocol: string; readonly contentType: string })

/** A tool: `componentType` says that the plugin serves it, `path` names a program in the plugin's folder. */
export interface ManifestTool {
  readonly name: string
  readonly componentType?: string
  readonly path?: string
  readonly description?: string
  /** JSON Schema of an object, 64 KiB at most. */
  readonly inputSchema?: JsonObject
  readonly outputSchema?: JsonObject
  /** Takes the place of a tool of that name from elsewhere. */
  readonly shadows?: boolean
}

/** What a manifest file says. */
export interface PluginManifest {
  readonly name: string
  readonly version: string
  readonly description?: string
  readonly command?: readonly string[]
  readonly capabilities?: readonly Capability[]
  readonly components?: readonly ManifestComponent[]
  readonly tools?: readonly ManifestTool[]
  /** The plugin is asked for more tools when it is loaded, if the operator allows it. */
  readonly discoverTools?: boolean
}
