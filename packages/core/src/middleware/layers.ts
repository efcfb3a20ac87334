import type { ChatRequest } from '../chat/chat.ts'
import type { JsonObject } from '../json/json.ts'
import type { AskCall } from '../run/calls/ask-call.ts'
import { NodeCall } from '../run/calls/node-call.ts'
import type { RunScope } from '../run/scope.ts'
import type { Task } from '../run/task.ts'
import type { Call } from '../seams/call.ts'
import type { HookName } from '../seams/hook-table.ts'
import type { Hook, HookConsulted, Layer, Next } from '../seams/own.ts'
import type { Seam } from '../seams/table.ts'
import type { RoundResult } from '../seams/verdict.ts'
import {
  GraphMiddlewareContext,
  ModelMiddlewareContext,
  NodeMiddlewareContext,
  RoundMiddlewareContext,
  ToolMiddlewareContext,
} from './contexts.ts'
import type { Middleware } from './middleware.ts'

type Told = Readonly<{ value: never; error: unknown }>

/** How each hook is called: with a context made for this one consultation. This is the only way from the engine to a hook. */
const CALLS: {
  readonly [H in HookName]: (own: Middleware, call: Call, told: never, consulted: HookConsulted) => unknown
} = {
  beforeGraph: (own, call, _, consulted) => own.beforeGraph?.(new GraphMiddlewareContext(own.name, call, consulted)),
  afterGraph: (own, call, _, consulted) => own.afterGraph?.(new GraphMiddlewareContext(own.name, call, consulted)),
  onRunEnd: (own, call, told, consulted) => own.onRunEnd?.(new GraphMiddlewareContext(own.name, call, consulted), told),
  beforeNode: (own, call, _, consulted) => own.beforeNode?.(new NodeMiddlewareContext(own.name, call, consulted)),
  afterNode: (own, call, { value }: Told, consulted) =>
    own.afterNode?.(new NodeMiddlewareContext(own.name, call, consulted, value)),
  onError: (own, call, { error }: Told, consulted) =>
    own.onError?.(new NodeMiddlewareContext(own.name, call, consulted), error),
  wrapNode: (own, call, next: Next, consulted) =>
    own.wrapNode?.(call.input, next as never, new NodeMiddlewareContext(own.name, call, consulted)),
  beforeRound: (own, call, _, consulted) => own.beforeRound?.(new RoundMiddlewareContext(own.name, call, consulted)),
  afterRound: (own, call, { value }: Told, consulted) =>
    own.afterRound?.(new RoundMiddlewareContext(own.name, call, consulted, (value as RoundResult).toolCalls)),
  beforeModel: (own, call, _, consulted) => own.beforeModel?.(new ModelMiddlewareContext(own.name, call, consulted)),
  afterModel: (own, call, { value }: Told, consulted) =>
    own.afterModel?.(new ModelMiddlewareContext(own.name, call, consulted, value)),
  onModelError: (own, call, { error }: Told, consulted) =>
    own.onModelError?.(new ModelMiddlewareContext(own.name, call, consulted), error),
  wrapModel: (own, call, next: Next, consulted) =>
    own.wrapModel?.(
      call.input as unknown as ChatRequest,
      next as never,
      new ModelMiddlewareContext(own.name, call, consulted),
    ),
  beforeTool: (own, call, _, consulted) => own.beforeTool?.(new ToolMiddlewareContext(own.name, call, consulted)),
  afterTool: (own, call, { value }: Told, consulted) =>
    own.afterTool?.(new ToolMiddlewareContext(own.name, call, consulted, value)),
  onToolError: (own, call, { error }: Told, consulted) =>
    own.onToolError?.(new ToolMiddlewareContext(own.name, call, consulted), error),
  wrapTool: (own, call, next: Next, consulted) =>
    own.wrapTool?.(call.input as JsonObject, next as never, new ToolMiddlewareContext(own.name, call, consulted)),
  onInterrupt: (own, call, _, consulted) => {
    const asked = askedIn(call as AskCall, own)
    return (
      asked && own.onInterrupt?.(new NodeMiddlewareContext(own.name, asked, consulted, asked.task.input), call.input)
    )
  },
}

/** Which hook stands in which part of a layer. */
const PARTS: { readonly [S in Seam]: Readonly<Partial<Record<keyof Layer, HookName>>> } = {
  run: { before: 'beforeGraph', after: 'afterGraph', end: 'onRunEnd' },
  node: { before: 'beforeNode', wrap: 'wrapNode', after: 'afterNode', rescue: 'onError' },
  nodeError: {},
  agentRound: { before: 'beforeRound', after: 'afterRound' },
  modelCall: { before: 'beforeModel', wrap: 'wrapModel', after: 'afterModel', rescue: 'onModelError' },
  toolCall: { before: 'beforeTool', wrap: 'wrapTool', after: 'afterTool', observe: 'onToolError' },
  ask: { before: 'onInterrupt' },
}

/** The hooks that a middleware has at a seam; absent where it has none there. */
export function layerOf(own: Middleware, seam: Seam): Layer | undefined {
  const parts: Record<string, Hook<never>> = {}
  for (const [part, name] of Object.entries(PARTS[seam])) {
    if (typeof own[name] !== 'function') continue
    const call = CALLS[name]
    parts[part] = { name, run: (at, told, consulted) => call(own, at, told, consulted) }
  }
  return Object.keys(parts).length === 0 ? undefined : ({ middleware: own, ...parts } as Layer)
}

/**
 * The node in whose context a middleware is told of a question: the one that asks, or the one whose child run it comes from.
 * Questions of policies and of the engine are no business of own middleware, nor is its own.
 */
function askedIn({ site, task, question }: AskCall, own: Middleware): NodeCall | undefined {
  if (question.askedBy !== 'graph' || question.middleware === own.name) return undefined
  let at: Task | undefined = task
  for (let scope: RunScope | undefined = site; at !== undefined; scope = scope?.parent) {
    if (scope?.gates.own.includes(own)) return new NodeCall(at)
    at = scope?.startedBy
  }
  return undefined
}
