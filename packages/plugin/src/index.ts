export type {
  AskingContext,
  CallContext,
  EncoderContext,
  NodeContext,
  PolicyContext,
  ProviderContext,
  ToolContext,
  TransformContext,
} from './author/context.ts'
export type {
  EncoderHandlers,
  Frame,
  Handlers,
  NodeHandlers,
  PolicyHandlers,
  ProviderHandlers,
  SelfTest,
  ServeOptions,
  TransformHandlers,
  TransformVerdict,
} from './author/handlers.ts'
export type { Kept } from './author/kept.ts'
export type { ManifestComponent, ManifestTool, PluginManifest } from './author/manifest.ts'
export { definePlugin, type PluginModule } from './author/module.ts'
export type { AfterShown, AfterVerdict, BeforeShown, BeforeVerdict, Shown, ShownOutcome } from './author/verdict.ts'
export type {
  ChatChunk,
  ChatMessage,
  ChatRequest,
  ChatResponse,
  Json,
  JsonObject,
  ToolCallRequest,
  ToolDefinition,
  Usage,
} from './generated/chat.ts'
export { type Caller, type Half, SEAMS, type Seam, type Subject } from './generated/seams.ts'
export { serve } from './runtime/serve.ts'
export { handlersOf } from './testing/handlers-of.ts'
export { type PolicyTest, type PolicyTested, testPolicy } from './testing/test-policy.ts'
