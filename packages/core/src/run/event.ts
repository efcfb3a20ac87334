import type { Usage } from '../chat/chat.ts'
import type { ShownError } from '../errors/error.ts'
import type { Json, JsonObject } from '../json/json.ts'
import type { Decision, LogLevel, Warning } from '../seams/site.ts'
import type { Ask } from '../store/records.ts'
import type { Status } from '../store/store.ts'

export type { Status }

interface AtNode {
  readonly nodeName: string
  readonly nodeType: string
}

interface Payloads {
  run_start: { readonly graphName: string; readonly runId: string }
  node_start: AtNode & { readonly attempt: number }
  /** Published after `node.after`, with the value that it left. */
  node_complete: AtNode & { readonly attempt: number; readonly output: JsonObject; readonly substituted?: string }
  /** One attempt failed; what becomes of it is still open. */
  node_error: AtNode & { readonly attempt: number; readonly error: ShownError }
  /** A tool is about to run with these arguments. */
  tool_call: AtNode & { readonly toolName: string; readonly toolCallId: string; readonly toolArgs: JsonObject }
  /** One of `toolResult`, `error` and `refused` (the reason) is there. */
  tool_result: AtNode & {
    readonly toolName: string
    readonly toolCallId: string
    readonly toolResult?: Json
    readonly error?: ShownError
    readonly refused?: string
  }
  /** A model is about to be asked: one for each request that leaves, so a retry is another. */
  model_call: AtNode & { readonly model: string }
  /** What it cost; what it said comes as `token`, and only as far as policies let it. One of `error` and the others is there. */
  model_result: AtNode & {
    readonly model: string
    readonly usage?: Usage
    readonly finishReason?: string
    readonly error?: ShownError
  }
  token: AtNode & { readonly text: string; readonly substituted?: true }
  /** Tokens of this node that have left are void: their attempt was given up, failed or replaced. */
  retracted: AtNode & { readonly tokens: number }
  /** What a task wrote, once its superstep is through; `null` when nothing. `at` is the record that holds it, on a thread. */
  update: AtNode & { readonly taskId: string; readonly update: JsonObject | null; readonly at?: number }
  /** The merged state after a superstep. */
  values: { readonly state: JsonObject; readonly at?: number }
  custom: AtNode & { readonly data: Json }
  /** `nodeType` is the policy's type. */
  plugin_log: AtNode & { readonly level: LogLevel; readonly message: string }
  warning: Warning
  decision: Decision
  /** The last event of a run: `result` after `completed`, `asks` after `paused`, `error` after `failed` and `cancelled`. */
  run_end: {
    readonly status: Status
    readonly result?: Json
    readonly error?: ShownError
    readonly asks?: readonly Ask[]
  }
}

/** What every event says besides its own fields: the way from the outermost graph to where it arose. */
interface Origin {
  readonly path: readonly string[]
}

type Known = { readonly [T in keyof Payloads]: { readonly type: T } & Payloads[T] & Origin }[keyof Payloads]

/** What a policy published: `plugin:<Type>:<name>`, filed under the node it was consulted about. */
export interface PluginEvent extends Origin, AtNode {
  readonly type: `plugin:${string}:${string}`
  readonly data: Json
}

export type RunEvent = Known | PluginEvent

/** An event before its origin is added. */
export type Unplaced = RunEvent extends infer E ? (E extends RunEvent ? Omit<E, 'path'> : never) : never

/** Receives each event as it arises. */
export interface Sink {
  /** Whether anybody reads events of this type. */
  wants(type: RunEvent['type']): boolean
  /** Must not throw. */
  push(event: RunEvent): void
  /** While there is no room: a promise for it, which the run waits for between supersteps and between parts of a stream. */
  room(): Promise<void> | undefined
}
