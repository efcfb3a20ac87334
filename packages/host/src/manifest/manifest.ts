import type { Half, JsonObject, KeptScope, Seam } from '@sluice/core'
import type { Capability } from '@sluice/plugin/wire'

/** The kinds of components a plugin may provide. A document names the first three; a middleware is the operator's. */
export type Kind = 'node' | 'transform' | 'provider' | 'middleware'

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
}

/** A tool as a manifest declares it, checked: `path` names a program, `componentType` says that the plugin serves it. */
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
}

export interface Manifest extends ManifestContent {
  /** The file, as an absolute path. */
  readonly file: string
  readonly folder: string
  /** What is odd about it, for the operator. */
  readonly warnings: readonly string[]
  /** How its process is started; absent when it needs none, as all its tools are programs. */
  readonly start?: readonly string[]
}
