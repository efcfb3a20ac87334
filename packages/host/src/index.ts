export { agentHooks } from './adapters/agent-hooks/agent-hooks.ts'
export type { Composition } from './adapters/agent-hooks/compose.ts'
export type { AgentContext } from './adapters/agent-hooks/context.ts'
export type { IdentityProvider } from './adapters/agent-hooks/identity.ts'
export type { AgentHooksOptions, Interceptor } from './adapters/agent-hooks/options.ts'
export type { InterceptionRecord } from './adapters/agent-hooks/record.ts'
export { type CommandHooksOptions, commandHooks } from './adapters/command-hooks/command-hooks.ts'
export { fileSink } from './audit/file-sink.ts'
export {
  CODE_LIMITS,
  type CodeLimits,
  type RequestCode,
  type SubmittedFile,
  type SubmittedPlugin,
  type SubmittedTool,
} from './brought/code.ts'
export { type Brought, Workshop, type WorkshopOptions } from './brought/workshop.ts'
export {
  type ChainFault,
  type ChainLoss,
  type ChainReport,
  type DecisionLog,
  type DecisionLogOptions,
  decisionLog,
  verifyDecisionLog,
} from './decisions/decision-log.ts'
export { memoryIn, skillsIn } from './files/folders.ts'
export { type NodeFilesOptions, nodeFiles } from './files/node-files.ts'
export { type FlexibleLimiter, limiterOf, type MemoryLimiterOptions, memoryLimiter } from './limits/rate-limiter.ts'
export { type Approves, approversOf } from './machine/approvers.ts'
export {
  type DocumentOptions,
  Host,
  type HostOptions,
  type LoadedFlow,
  type LoadedReplay,
  openHost,
  openLog,
} from './machine/host.ts'
export { type ReloadOn, reloadOn } from './machine/reload-on.ts'
export { createRuntime, type HeldHost, type HostRuntime, type HostRuntimeOptions } from './machine/runtime.ts'
export { fromLanguageModel, type LanguageModel } from './models/language-model.ts'
export { fromLanguageModelMiddleware, type LanguageModelMiddleware } from './models/language-model-middleware.ts'
export { OPENAI_URL, type OpenAiCompatible, openAiCompatible } from './models/provider.ts'
export type { PluginCallContext } from './plugin/direct.ts'
export type { Encoder, Frame, Rendering } from './plugin/encoder.ts'
export { PluginError } from './plugin/error.ts'
export type { NodeResult, TransformCall } from './plugin/node.ts'
export type { Checked } from './plugin/self-test.ts'
export { type PluginConfig, parsePluginConfig } from './plugins/config-arguments.ts'
export { type LoadOptions, loadPlugins } from './plugins/load.ts'
export type { Plugins, PluginType, PluginTypes } from './plugins/plugins.ts'
export { type CaseResult, playCases } from './policies/cases/play.ts'
export { type PolicyCase, readCases } from './policies/cases/read.ts'
export type { ExplainedPlace, ExplainedPolicy, Explanation, Reach } from './policies/explain.ts'
export { PolicyFileError } from './policies/faults.ts'
export { type Difference, differencesOf } from './policies/replay.ts'
export { policyFileSchema } from './policies/schema.ts'
export { memoryRunLog } from './runs/memory.ts'
export {
  type AskEntry,
  answeredAsk,
  type Begun,
  type FlowSource,
  lostRun,
  type PutAsk,
  type RunEnd,
  type RunEnding,
  type RunEntry,
  type RunFilter,
  type RunLog,
  type StoredEvent,
  type ThreadEntry,
  unknownRun,
} from './runs/run-log.ts'
export { sqliteRunLog } from './runs/sqlite.ts'
export { type SqliteOptions, sqliteStore } from './store/sqlite.ts'
export { loadToolPrograms, type ToolsDirOptions } from './tools/folder.ts'
