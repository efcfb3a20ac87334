import { SluiceError } from '../errors/error.ts'
import type { Json, JsonObject } from '../json/json.ts'
import type { StateOf, StateType, UpdateFor } from '../state/state.ts'
import type { NodeContext } from './context.ts'
import type { Command, END, Send, Target } from './route.ts'

/** What a node may return: an update, a route, both as a command, or nothing. */
// biome-ignore lint/suspicious/noConfusingVoidType: a node may be a function without a return, and its type says void
export type NodeReturn<Update> = Update | Command<Update> | Send | typeof END | undefined | void

export interface NodeOptions {
  /** The nodes this node may choose itself, as nodes or names; `END` too. What is listed here joins the graph. */
  readonly goto?: readonly (Target | string)[]
  /** Milliseconds one execution may take. */
  readonly timeoutMs?: number
  /** Milliseconds one execution may go without a sign of life: a call begun or ended, a part of a stream, an emitted event. */
  readonly idleTimeoutMs?: number
}

/** A state's values by field name, as an engine-side node reads them. */
export interface Values {
  get(field: string): Json | undefined
}

/**
 * How a node reads the state and writes it, where that is not simply the whole state and an update of it. A flow's node reads
 * its mapped inputs and writes its declared outputs, and that is what policies see of it.
 */
export interface Ports {
  input(values: Values): JsonObject
  /** Checks an input that a policy gave; throws what is wrong. */
  checkInput(value: Json): JsonObject
  /** Checks an output, the node's own or a policy's; throws what is wrong. */
  checkOutput(value: unknown): JsonObject
  /** The update of the state that a checked output comes to. */
  update(output: JsonObject): JsonObject
}

/** A node: its name is its identity in the graph. Make one with {@link node}. */
export interface Node<State = never, Update = unknown> {
  readonly name: string
  /** As policies see it: `Node`, `ModelNode`, `ToolNode`, `AgentNode`, `GraphNode`, or an Agent Spec type. */
  readonly type: string
  readonly goto: readonly (Target | string)[]
  readonly timeoutMs?: number
  readonly idleTimeoutMs?: number
  readonly ports?: Ports
  run(state: State, ctx: NodeContext): NodeReturn<Update> | Promise<NodeReturn<Update>>
}

/** A node with its types put aside, as the engine holds it. */
export type AnyNode = Node<never, unknown>

/**
 * A node of a graph: a function of the state, which it may read and not change, to an update of it.
 *
 * @throws SluiceError `GRAPH_INVALID` for a blank name, no function, an empty `goto`, or a time that is no positive number.
 */
export function node<T extends StateType<never, never> | StateType>(
  name: string,
  _state: T,
  run: (state: StateOf<T>, ctx: NodeContext) => NodeReturn<UpdateFor<T>> | Promise<NodeReturn<UpdateFor<T>>>,
  options: NodeOptions = {},
): Node<StateOf<T>, UpdateFor<T>> {
  return makeNode('Node', name, run, options)
}

/** The same for the kinds of nodes that the product itself makes. */
export function makeNode<State, Update>(
  type: string,
  name: string,
  run: Node<State, Update>['run'],
  { goto, timeoutMs, idleTimeoutMs, ports }: NodeOptions & { ports?: Ports } = {},
): Node<State, Update> {
  if (typeof name !== 'string' || name.trim() === '') throw new SluiceError('GRAPH_INVALID', 'a node needs a name.')
  const refuse = (why: string) => new SluiceError('GRAPH_INVALID', `node "${name}" ${why}.`, { node: name })
  if (typeof run !== 'function') throw refuse('needs a function')
  for (const [what, ms] of Object.entries({ timeoutMs, idleTimeoutMs })) {
    if (ms !== undefined && !(ms > 0)) throw refuse(`has a ${what} of ${ms}; give milliseconds above 0`)
  }
  if (goto !== undefined && !(Array.isArray(goto) && goto.length > 0)) {
    throw refuse('has a goto that lists nothing; give a list of nodes, their names or END, or leave it out')
  }
  return Object.freeze({ name, type, goto: Object.freeze([...(goto ?? [])]), timeoutMs, idleTimeoutMs, ports, run })
}

export const isNode = (value: unknown): value is AnyNode =>
  typeof value === 'object' && value !== null && 'run' in value && 'goto' in value && 'name' in value
