import type { Half, JsonObject, KeptScope, Seam } from '@sluice/core'
import type { Capability } from '@sluice/plugin/wire'
import type { ModuleHandlers } from './module.ts'

/**
 * The kinds of components a plugin may provide. A document names the first four, a `component` only inside another one of its
 * plugin, which reads it: nobody executes it. A middleware is the operator's, an encoder chosen by whoever reads a run.
 */
export type Kind = 'node' | 'transform' | 'provider' | 'component' | 'middleware' | 'encoder'

/** A component as a manifest declares it, checked. Members of another kind are absent. */
export interface ManifestComponent {
  readonly componentType: string
  readonly kind: Kind
  /** JSON Schema of its settings. */
  readonly schema?: JsonObject
  /** `node`: what is advertised where the document declares none, as JSON Schemas with a title. */
  readonly inputs?: readonly JsonObject[]
  /** `node` */
  readonly outputs?: readonly JsonObject[]
  /** `node`: the branches it may take. */
  readonly branches?: readonly string[]
  /** `transform`: where it stands around the model call; `pre` where nothing is said. */
  readonly phase?: 'pre' | 'post' | 'both'
  /** `provider`: whether it can stream. `middleware`: whether streamed parts are held for its `modelCall.after`. */
  readonly stream?: boolean | 'hold' | 'pass'
  /** `middleware` */
  readonly seams?: { readonly [S in Seam]?: readonly Half[] }
  /** `middleware`: what it keeps, with the JSON Schema of the value; `{}` is what it starts from. */
  readonly kept?: { readonly scope: KeptScope; readonly schema: JsonObject }
  /** `encoder`: the name it is chosen by. */
  readonly protocol?: string
  /** `encoder`: the media type of what its frames make. */
  readonly contentType?: string
}

/**
 * A tool as a manifest declares it, checked: `path` names a program, `componentType` says that the plugin serves it. One that
 * was discovered may have neither, and is served.
 */
export interface ManifestTool {
  readonly name: string
  readonly path?: string
  readonly componentType?: string
  readonly description?: string
  readonly inputSchema?: JsonObject
  readonly outputSchema?: JsonObject
  /** Whether it takes the place of a tool of that name from elsewhere. */
  readonly shadows: boolean
}

/** What a manifest file says, checked. */
export interface ManifestContent {
  readonly name: string
  readonly version: string
  readonly command?: readonly string[]
  readonly capabilities: readonly Capability[]
  readonly components: readonly ManifestComponent[]
  readonly tools: readonly ManifestTool[]
  /** Whether the plugin is asked for more tools when it is loaded. */
  readonly discoverTools: boolean
}

export interface Manifest extends ManifestContent {
  /** The file, as an absolute path. */
  readonly file: string
  readonly folder: string
  /** What is odd about it, for the operator. */
  readonly warnings: readonly string[]
  /** How its process is started; absent when it needs none, and when it runs in this one. */
  readonly start?: readonly string[]
  /** What runs in this process, of a plugin that was named by its module. */
  readonly module?: ModuleHandlers
}
