export { type AgentLoopOptions, type AgentLoopResult, agentLoop } from './agent/agent-loop.ts'
export { type ToolErrors, ToolGroupError } from './agent/answer-calls.ts'
export type { AsToolOptions } from './agent/as-tool.ts'
export {
  type Agent,
  type AgentInput,
  type AgentOptions,
  AgentState,
  agentFields,
  createAgent,
} from './agent/create-agent.ts'
export { type GraphNodeOptions, graphNode } from './agent/graph-node.ts'
export { agentNode, modelNode, type SystemPrompt, toolNode } from './agent/nodes.ts'
export { type InvalidOutput, StructuredOutputError } from './agent/output.ts'
export { RunInterruptedError, runAgent } from './agent/run-agent.ts'
export { ResponseAssembler } from './chat/assemble.ts'
export type {
  ChatChunk,
  ChatMessage,
  ChatRequest,
  ChatResponse,
  ToolCallRequest,
  ToolDefinition,
  Usage,
} from './chat/chat.ts'
export { ChatHistoryError, type HistoryFault, historyFaults, repairHistory } from './chat/history.ts'
export { messages, type RemoveMessage, removeMessage } from './chat/messages.ts'
export type { ChatModel, ChatOptions } from './chat/model.ts'
export { readMessages, readResponse } from './chat/read.ts'
export { type ScriptedCall, type ScriptedModel, type ScriptedReply, scripted } from './chat/scripted.ts'
export { estimateInputTokens, estimateUsage } from './chat/usage.ts'
export { messageOf, type Place, type ShownError, SluiceError, showError } from './errors/error.ts'
export type {
  GatherOptions,
  NodeContext,
  NodeRequest,
  SubAgentHandle,
  SubAgentProgress,
  SubAgentResult,
  SubAgentTask,
  ToolCallOptions,
} from './graph/context.ts'
export type { Boundary, Exit, GraphBuilder, GraphPlan, Runnable } from './graph/graph.ts'
export type { AnyNode, Node, NodeOptions, NodeReturn, Ports, Values } from './graph/node.ts'
export { makeNode, node } from './graph/node.ts'
export { Command, command, END, type Goto, Send, START, send, type Target } from './graph/route.ts'
export { canonical } from './json/canonical.ts'
export { equal } from './json/equal.ts'
export type { Json, JsonObject } from './json/json.ts'
export { isObject } from './json/json.ts'
export { MAX_DEPTH, own, ownObject } from './json/own.ts'
export type { Path } from './json/path.ts'
export {
  AuditLogMiddleware,
  type AuditLogOptions,
  type AuditRecord,
  type AuditSink,
  type AuditType,
} from './middleware/audit-log/index.ts'
export {
  BudgetMiddleware,
  type BudgetOptions,
  type BudgetSpend,
  MODEL_PRICES,
  type ModelPrice,
  PRICES_AS_OF,
  type Spent,
} from './middleware/budget/index.ts'
export { CallTimeoutMiddleware, type CallTimeoutOptions } from './middleware/call-timeout/index.ts'
export {
  ContextEditingMiddleware,
  type ContextEditingOptions,
  type CountTokens,
} from './middleware/context-editing/index.ts'
export {
  type Ask as HookAsk,
  GraphMiddlewareContext,
  ModelMiddlewareContext,
  NodeMiddlewareContext,
  RoundMiddlewareContext,
  ToolMiddlewareContext,
} from './middleware/contexts.ts'
export { DynamicPromptMiddleware, type PromptOf } from './middleware/dynamic-prompt/index.ts'
export { type FileEntry, type Files, isFileName, readPath, type WritableFiles } from './middleware/files.ts'
export { collectMiddlewareTools, runAfterHooks, runBeforeHooks } from './middleware/helpers.ts'
export {
  FilesystemMemory,
  type Memory,
  type MemoryDeleteResult,
  type MemoryListResult,
  type MemoryOptions,
  type MemorySearchResult,
} from './middleware/memory/index.ts'
export { type Hooks, Middleware, middleware, type NextOf, type NextOfModel } from './middleware/middleware.ts'
export {
  ModelFallbackError,
  ModelFallbackMiddleware,
  type ModelFallbackOptions,
} from './middleware/model-fallback/index.ts'
export { ModelLimitMiddleware, type ModelLimitOptions } from './middleware/model-limit/index.ts'
export { ModelRetryMiddleware } from './middleware/model-retry/index.ts'
export { PatchCallsMiddleware, type PatchCallsOptions } from './middleware/patch-calls/index.ts'
export {
  type PiiDetector,
  type PiiKind,
  PiiMiddleware,
  type PiiOptions,
  type PiiPlaces,
  type PiiStrategy,
} from './middleware/pii/index.ts'
export {
  type Limited,
  type Limiter,
  RateLimitMiddleware,
  type RateLimitOptions,
} from './middleware/rate-limit/index.ts'
export {
  type CachedResponse,
  type ResponseCache,
  ResponseCacheMiddleware,
  type ResponseCacheOptions,
} from './middleware/response-cache/index.ts'
export type { RetryOn, RetryOptions } from './middleware/retrying.ts'
export {
  FilesystemSkills,
  type FrontmatterReader,
  type LoadedSkill,
  type ReadSkillsOptions,
  readSkills,
  type Skill,
  SkillCatalog,
  type SkillsOptions,
} from './middleware/skills/index.ts'
export {
  approximateTokens,
  type Counted,
  fixedTokens,
  messageCount,
  type RecentPolicy,
  recentMessages,
  recentTokens,
  type SummarizationDecision,
  SummarizationMiddleware,
  type SummarizationOptions,
  type SummarizationResult,
  type SummarizationTrigger,
  type TokenCounter,
  tokenLimit,
} from './middleware/summarization/index.ts'
export {
  type TodoItem,
  TodoListMiddleware,
  type TodoListOptions,
  type TodoListSnapshot,
  type TodoState,
} from './middleware/todo-list/index.ts'
export { ToolEmulationMiddleware, type ToolEmulationOptions } from './middleware/tool-emulation/index.ts'
export {
  type ToolErrorKind,
  ToolErrorMiddleware,
  type ToolErrorOptions,
  type ToolErrorText,
  type ToolErrorTexts,
  type ToolFault,
} from './middleware/tool-errors/index.ts'
export {
  allFields,
  anyField,
  eq,
  ge,
  gt,
  type InterruptRule,
  le,
  lt,
  matches,
  shouldInterrupt,
  type ToolDecision,
  ToolInterruptMiddleware,
  type ToolInterruptOptions,
  type ToolPredicate,
} from './middleware/tool-interrupt/index.ts'
export { ToolLimitMiddleware, type ToolLimitOptions } from './middleware/tool-limit/index.ts'
export { ToolRetryMiddleware, type ToolRetryOptions } from './middleware/tool-retry/index.ts'
export { ToolSelectionMiddleware, type ToolSelectionOptions } from './middleware/tool-selection/index.ts'
export { AgentGroupError, AgentTimeoutError } from './run/calls/agents.ts'
export { type PluginCalls, pluginCalls } from './run/calls/plugin-calls.ts'
export type { PluginEvent, RunEvent, Status } from './run/event.ts'
export { Graph, graph } from './run/graph.ts'
export { DEFAULT_LIMITS, type Limits } from './run/limits.ts'
export { type Platform, platform } from './run/platform.ts'
export { type Replay, replayThread } from './run/replay.ts'
export {
  createRuntime,
  getDefaultRuntime,
  type RunOutcome,
  type RunStream,
  type Runtime,
  type RuntimeOptions,
  type StreamOptions,
  setDefaultRuntime,
} from './run/runtime.ts'
export type { RunOptions } from './run/scope.ts'
export type { RunOutcomeTold } from './run/steps/graph-hooks.ts'
export type { StreamMode } from './run/stream.ts'
export type { ForkOptions } from './run/threads/fork.ts'
export type { Recording } from './run/threads/recording.ts'
export type { HistoryEntry, LineOptions, StandsAt } from './run/threads/threads.ts'
export { type BlockAt, type BlockVerdict, blocks, type StreamBlocks } from './seams/blocks.ts'
export { Consultation } from './seams/consultation.ts'
export type {
  ConsultedPolicy,
  DecisionRecord,
  DecisionSink,
  DecisionSubject,
  FailureCause,
  NotAskedWhy,
  Principal,
} from './seams/decision.ts'
export { MiddlewareError, RefusedError, ToolDeniedError, ToolReplyError } from './seams/failure.ts'
export { HOOKS, type HookAction, type HookName } from './seams/hook-table.ts'
export { GraphExecutionError, Replacement, Said } from './seams/hooks.ts'
export type { Kept, KeptOptions, KeptRecord, KeptScope, OwnKeptScope } from './seams/kept.ts'
export type { KeptOfPrincipal, KeptStore } from './seams/kept-of-principals.ts'
export type { ShownOutcome } from './seams/outcome.ts'
export type { Constraints, NextOptions, StreamGate, WrapOutcome } from './seams/own.ts'
export {
  type BreakerOptions,
  checkSubscriptions,
  DEFAULT_POLICY_TIMEOUT_MS,
  type Policy,
  type PolicyMode,
  type PolicyOptions,
  type PolicyRules,
  policy,
  type SeamHandlers,
  type Selected,
  type Selector,
} from './seams/policy.ts'
export type { ShadowCounts } from './seams/shadow.ts'
export { type Decision, LOG_LEVELS, type LogLevel, type Warning } from './seams/site.ts'
export type { Caller, Subject } from './seams/subject.ts'
export { type Action, admits, type Half, SEAM_NAMES, SEAMS, type Seam } from './seams/table.ts'
export type { AfterVerdict, BeforeVerdict, Remarks, Round, RoundResult, Shown } from './seams/verdict.ts'
export { append, Field, field, merge, Replaced, reduced, replaceWith } from './state/field.ts'
export { type InputOf, type OutputOf, type Schema, validate } from './state/schema.ts'
export { type StateOf, StateType, state, type UpdateFor } from './state/state.ts'
export { MemoryStore } from './store/memory.ts'
export type {
  AnswerRecord,
  Ask,
  AskRecord,
  Ready,
  StoredError,
  StoredOutcome,
  StoredRoute,
  ThreadRecord,
  Within,
} from './store/records.ts'
export {
  type Awaitable,
  branchExists,
  busyLine,
  type Commit,
  type Lease,
  type Line,
  type LineSummary,
  type Loaded,
  lostLease,
  MAIN,
  notInHistory,
  type Standing,
  type Store,
  type StoredRecord,
  unknownLine,
  wrongSequence,
} from './store/store.ts'
export type { AskOptions, ChildOptions, Keeping, KeptInTool, Startable } from './tools/inside.ts'
export {
  type ArgumentsOf,
  type ResultOf,
  type Tool,
  type ToolContext,
  type ToolOptions,
  tool,
  toolTable,
} from './tools/tool.ts'
