import type { ChatRequest, ChatResponse } from '../chat/chat.ts'
import type { ChatModel } from '../chat/model.ts'
import type { Json, JsonObject } from '../json/json.ts'
import type { OutputOf, Schema } from '../state/schema.ts'
import type { AskOptions, ChildOptions } from '../tools/inside.ts'
import type { Tool } from '../tools/tool.ts'
import type { Runnable } from './graph.ts'

/** A request as a node writes it; the model's own name stands in where it gives none. */
export type NodeRequest = Omit<ChatRequest, 'model'> & { readonly model?: string }

export interface ToolCallOptions {
  /** The model's id of the call, where a model asked for it. */
  readonly callId?: string
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
  /** The superstep, from 0. */
  readonly step: number
  /** The go at this node since it was arrived at, from 1. */
  readonly attempt: number
  /** Aborts when the run is ended before this node is, or when this node's time is over. */
  readonly signal: AbortSignal
  /** Publishes a `custom` event. */
  emit(data: Json): void
  /** Asks a model, or the model of that name in the runtime. */
  callModel(model: ChatModel | string, request: NodeRequest): Promise<ChatResponse>
  /** Calls a tool, or the tool of that name in the runtime. Throws when it fails or is refused. */
  callTool(tool: Tool | string, args: JsonObject, options?: ToolCallOptions): Promise<Json>
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
   * Runs another graph as a child: on this runtime, under its policies, within this run's remaining time. A cancel or a time
   * of the child's own is an error here.
   */
  run<State, Update>(graph: Runnable<State, Update>, input: Update, options?: ChildOptions): Promise<State>
}
