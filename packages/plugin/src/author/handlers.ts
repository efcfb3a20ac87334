import type { ChatChunk, ChatMessage, ChatRequest, ChatResponse, JsonObject } from '../generated/chat.ts'
import type { Half, Seam } from '../generated/seams.ts'
import type { NodeContext, PolicyContext, ProviderContext, ToolContext, TransformContext } from './context.ts'
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

/** Handlers by component type, as the manifest declares them. */
export interface Handlers {
  // biome-ignore lint/suspicious/noExplicitAny: each policy keeps something else, and none here is handed another's.
  readonly [componentType: string]: PolicyHandlers<any> | NodeHandlers | TransformHandlers | ProviderHandlers
}

export interface ServeOptions {
  /** The tools that the manifest says this plugin serves. Each returns its output, or `{ output }`. */
  readonly tools?: { readonly [name: string]: (input: JsonObject, ctx: ToolContext) => unknown }
  /** Runs when the host asks the plugin to end; about a second is left. */
  readonly shutdown?: () => MaybePromise<void>
}
