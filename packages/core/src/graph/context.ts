import type { ChatRequest, ChatResponse } from '../chat/chat.ts'
import type { ChatModel } from '../chat/model.ts'
import type { Json } from '../json/json.ts'
import type { OutputOf, Schema } from '../state/schema.ts'
import type { AskOptions, ChildOptions } from '../tools/inside.ts'
import type { ArgumentsOf, ResultOf, Tool } from '../tools/tool.ts'
import type { Runnable } from './graph.ts'

/** A request as a node writes it; the model's own name stands in where it gives none. */
export type NodeRequest = Omit<ChatRequest, 'model'> & { readonly model?: string }

export interface ToolCallOptions {
  /** The model's id of the call, where a model asked for it. */
  readonly callId?: string
}

/** A sub-agent to start: a graph, and what it is given. */
export interface SubAgentTask<Input = unknown, State = unknown> {
  readonly graph: Runnable<unknown, never>
  readonly input?: Input
  /** The graph's name without it. */
  readonly name?: string
  /** Makes the graph's input of `input`. */
  in?(input: Input): unknown
  /** Makes the result of the graph's final state. */
  out?(state: State): unknown
  /** Told after each superstep; when it throws, the sub-agent ends with that error. */
  onProgress?(progress: SubAgentProgress): void
}

export interface SubAgentProgress {
  /** Supersteps that are through, from 1. */
  readonly step: number
  /** The nodes that ran in it. */
  readonly nodes: readonly string[]
}

/** A sub-agent that was started; `id` is the same when the node is entered anew. */
export interface SubAgentHandle {
  readonly id: string
  readonly name: string
}

export interface SubAgentResult extends SubAgentHandle {
  readonly status: 'completed' | 'failed' | 'cancelled'
  /** The final state, or what `out` made of it; after `completed`. */
  readonly state?: unknown
  readonly error?: unknown
}

export interface GatherOptions {
  /** Milliseconds; whatever is not there then is cancelled, and gathering throws `AGENTS_TIMED_OUT`. */
  readonly timeoutMs?: number
  /** Hands back failed and cancelled ones too, where it would throw `AGENTS_FAILED`. */
  readonly settle?: boolean
}

/**
 * What a node is given beside the state. Every path to a model, a tool or another graph leads through here, so that the
 * run's policies see it. When the run is stopped from outside, promises of these calls stay pending for ever: nothing a node
 * does can catch, retry or replace a stop.
 */
export interface NodeContext {
  readonly graphName: string
  readonly nodeName: string
  /** The id of this call of `run`. */
  readonly runId: string
  /** The id of the outermost run: the turn. */
  readonly rootRunId: string
  /** The node's name, then `name[1]`, `name[2]` for further tasks of one node in a superstep. */
  readonly taskId: string
  /** The superstep of this run, from 0; a run that goes on counts anew. */
  readonly step: number
  /** The go at this node since it was arrived at, from 1. */
  readonly attempt: number
  /** Aborts when the run is ended before this node is, or when this node's time is over. */
  readonly signal: AbortSignal
  /** Publishes a `custom` event. */
  emit(data: Json): void
  /** Asks a model, or the model of that name in the runtime. */
  callModel(model: ChatModel | string, request: NodeRequest): Promise<ChatResponse>
  /**
   * Calls a tool, or the tool of that name in the runtime. Throws when it fails or is refused. With the tool itself, arguments and
   * result have the types of its schemas; by name they are JSON.
   */
  callTool<T extends Tool | string>(tool: T, args: ArgumentsOf<T>, options?: ToolCallOptions): Promise<ResultOf<T>>
  /**
   * Does something once and writes down what came of it, so that a node entered anew gets that back. When the process dies in
   * the middle a person is asked whether it was done. `work` makes no calls of `ctx`.
   */
  once<Value extends Json | undefined>(name: string, work: () => Value | Promise<Value>): Promise<Value>
  /**
   * Asks a person. The run pauses once it can only wait, and the node is entered anew when the answer is there; what came of
   * its calls until then is handed back to it, and what else it does, it does again. `id` names the question among those of
   * this node: letters, digits, `_`, `.` and `-`.
   */
  ask<S extends Schema = Schema<Json>>(id: string, payload: Json, options?: AskOptions<S>): Promise<OutputOf<S>>
  /**
   * Starts sub-agents that run beside each other, each a child run with a history of its own. The node must gather them before
   * it returns. Their progress is durable, and their asks show at the top.
   */
  spawn(tasks: readonly SubAgentTask[]): readonly SubAgentHandle[]
  /**
   * Waits for sub-agents that this node has spawned, and hands back what came of them, in the order given. Throws
   * `AGENTS_FAILED`, an AgentGroupError with all results, when one did not complete.
   */
  gather(handles: readonly (SubAgentHandle | string)[], options?: GatherOptions): Promise<readonly SubAgentResult[]>
  /** What the caller of the run gave as `context`; it is never stored. Throws `CONTEXT_MISSING` where there is none. */
  readonly context: unknown
  /**
   * Runs another graph as a child: on this runtime, under its policies, within this run's remaining time. A cancel or a time
   * of the child's own is an error here.
   */
  run<State, Update>(graph: Runnable<State, Update>, input: Update, options?: ChildOptions): Promise<State>
}
