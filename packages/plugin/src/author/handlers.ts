import type { ChatChunk, ChatMessage, ChatRequest, ChatResponse, Json, JsonObject } from '../generated/chat.ts'
import type { Half, Seam } from '../generated/seams.ts'
import type {
  EncoderContext,
  NodeContext,
  PolicyContext,
  ProviderContext,
  ToolContext,
  TransformContext,
} from './context.ts'
import type { ManifestTool } from './manifest.ts'
import type { AfterShown, AfterVerdict, BeforeShown, BeforeVerdict } from './verdict.ts'

type MaybePromise<T> = T | Promise<T>

/** A handler for each half of each seam that the manifest subscribes to. */
export type PolicyHandlers<KeptValue = unknown> = {
  readonly [S in Seam]?: {
    readonly [H in Half as HandlerVerdict<S, H> extends never ? never : H]?: (
      shown: H extends 'before' ? BeforeShown<S> : AfterShown<S>,
      ctx: PolicyContext<KeptValue>,
    ) => MaybePromise<HandlerVerdict<S, H>>
  }
}
type HandlerVerdict<S extends Seam, H extends Half> = H extends 'before' ? BeforeVerdict<S> : AfterVerdict<S>

export interface NodeHandlers {
  /** Returns the output, or `{ output, branch }` to choose the way on. */
  execute(input: JsonObject, ctx: NodeContext): MaybePromise<JsonObject>
}

export interface TransformHandlers {
  apply(messages: readonly ChatMessage[], ctx: TransformContext): MaybePromise<TransformVerdict>
}
export type TransformVerdict =
  | { readonly action: 'pass' }
  | { readonly action: 'modify'; readonly messages: readonly ChatMessage[] }
  | { readonly action: 'reject'; readonly reason: string; readonly messages?: readonly ChatMessage[] }

export interface ProviderHandlers {
  chat(request: ChatRequest, ctx: ProviderContext): MaybePromise<ChatResponse | ChatChunk>
}

/** One piece of a rendered stream. `event` is its name, where the protocol has names; a line break in it is refused. */
export interface Frame {
  readonly event?: string
  readonly data: Json
}

/** Renders the events of a stream, one after another: the next comes when the one before is answered. */
export interface EncoderHandlers {
  encode(event: JsonObject, ctx: EncoderContext): MaybePromise<readonly Frame[]>
  /** The stream is over; what was held back may be sent. */
  finish?(ctx: EncoderContext): MaybePromise<readonly Frame[]>
}

// biome-ignore lint/suspicious/noExplicitAny: each policy keeps something else, and none here is handed another's.
type AnyPolicy = PolicyHandlers<any>

/** What any component may have besides. */
export interface SelfTest {
  /** Runs when an operator checks the plugin, with the settings; throws what is wrong. Nothing may be changed by it. */
  selfTest?(ctx: { readonly component: JsonObject }): MaybePromise<unknown>
}

/** Handlers by component type, as the manifest declares them. */
export interface Handlers {
  readonly [componentType: string]: (
    | AnyPolicy
    | NodeHandlers
    | TransformHandlers
    | ProviderHandlers
    | EncoderHandlers
  ) &
    SelfTest
}

export interface ServeOptions {
  /** The tools that the manifest says this plugin serves. Each returns its output, or `{ output }`. */
  readonly tools?: { readonly [name: string]: (input: JsonObject, ctx: ToolContext) => unknown }
  /** What else it serves, asked once when it is loaded; the manifest says `discoverTools`, and the operator allows it. */
  readonly listTools?: () => MaybePromise<readonly ManifestTool[]>
  /** Runs when the host asks the plugin to end; about a second is left. */
  readonly shutdown?: () => MaybePromise<void>
}
