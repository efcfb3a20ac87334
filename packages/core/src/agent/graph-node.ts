import { SluiceError } from '../errors/error.ts'
import type { Runnable } from '../graph/graph.ts'
import { makeNode, type Node, type NodeOptions } from '../graph/node.ts'
import type { JsonObject } from '../json/json.ts'
import type { AnyState, StateOf, StateType, UpdateFor } from '../state/state.ts'

/** How a parent's state and a child's meet: by two functions, or by fields that both have. */
type Wiring<State, Update, ChildState, ChildInput> =
  | {
      readonly in: (state: State) => ChildInput
      readonly out: (child: ChildState) => Update
      readonly share?: undefined
    }
  | {
      readonly share: readonly (string & keyof State & keyof ChildState)[]
      readonly in?: undefined
      readonly out?: undefined
    }

export type GraphNodeOptions<State, Update, ChildState, ChildInput> = NodeOptions &
  Wiring<State, Update, ChildState, ChildInput> & {
    /** The graph goes on from the state in which its last run in this thread ended; without it, it starts afresh each time. */
    readonly remember?: boolean
  }

/**
 * A node that runs another graph: within the parent's superstep, under the same policies, its asks shown at the top. With
 * `share`, the fields of both are handed in as they are, and the parent gets what the child changed of them.
 *
 * @throws SluiceError `GRAPH_INVALID` for no wiring or both kinds, and for a shared field that one of the two does not have.
 */
export function graphNode<T extends StateType<never, never> | StateType, ChildState, ChildInput>(
  name: string,
  state: T,
  child: Runnable<ChildState, ChildInput>,
  options: GraphNodeOptions<StateOf<T>, UpdateFor<T>, ChildState, ChildInput>,
): Node<StateOf<T>, UpdateFor<T>> {
  const { share, remember } = options
  const [own, inner] = [state as unknown as AnyState, child.plan.state]
  requireWiring(name, options, own, inner)
  return makeNode<StateOf<T>, UpdateFor<T>>(
    'GraphNode',
    name,
    async (values, ctx) => {
      const handed = share === undefined ? undefined : pick(values as JsonObject, share)
      const input = handed === undefined ? options.in?.(values) : inner.replacing(handed)
      const result = await ctx.run(child, input as ChildInput, { remember })
      if (handed === undefined) return options.out?.(result) as UpdateFor<T>
      return own.changes(handed, pick(result as unknown as JsonObject, share ?? []), `node "${name}"`) as UpdateFor<T>
    },
    options,
  )
}

const pick = (values: JsonObject, names: readonly string[]): JsonObject =>
  Object.fromEntries(names.flatMap((name) => (values[name] === undefined ? [] : [[name, values[name]]]))) as JsonObject

function requireWiring(
  name: string,
  {
    in: into,
    out,
    share,
  }: { readonly in?: unknown; readonly out?: unknown; readonly share?: readonly string[] | undefined },
  state: AnyState,
  child: AnyState,
): void {
  const refuse = (why: string) => new SluiceError('GRAPH_INVALID', `graphNode "${name}" ${why}.`, { node: name })
  const mapped = into !== undefined || out !== undefined
  if (mapped === (share !== undefined) || (mapped && (typeof into !== 'function' || typeof out !== 'function'))) {
    throw refuse('needs either both "in" and "out", or "share" with the fields that the two graphs have in common')
  }
  if (share?.length === 0) throw refuse('shares no field; list at least one, or give "in" and "out"')
  for (const field of share ?? []) {
    if (!state.names.includes(field)) throw refuse(`shares field "${field}", which its own state does not have`)
    if (!child.names.includes(field)) throw refuse(`shares field "${field}", which the graph it runs does not have`)
  }
}
