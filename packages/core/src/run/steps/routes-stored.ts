import { SluiceError } from '../../errors/error.ts'
import type { GraphPlan } from '../../graph/graph.ts'
import type { AnyNode } from '../../graph/node.ts'
import { END, type Target } from '../../graph/route.ts'
import type { JsonObject } from '../../json/json.ts'
import { own } from '../../json/own.ts'
import type { Ready, StoredRoute, ThreadRecord } from '../../store/records.ts'
import type { CheckedSend, NodeResult } from '../calls/node-call.ts'
import type { Seed } from '../engine.ts'

/** A task of the next superstep as it is written down. */
export const readyOf = ({ node, payload }: Seed): Ready =>
  payload === undefined ? node.name : { node: node.name, payload }

/** A route that a node chose, as it is written down. */
export function storedRoute(route: NonNullable<NodeResult['route']>): StoredRoute {
  if ('branch' in route) return route
  return {
    goto: route.goto.map((target) =>
      target === END ? null : readyOf('payload' in target ? target : { node: target, payload: undefined }),
    ),
  }
}

/** What a task came to, as it is read back. */
export function revivedResult(
  plan: GraphPlan,
  { output, route, substituted }: Extract<ThreadRecord, { type: 'task' }>,
  thread: string,
): NodeResult {
  return {
    output: own(output) as JsonObject,
    route: route && revivedRoute(plan, route, thread),
    ...(substituted === undefined ? {} : { substituted }),
  }
}

function revivedRoute(plan: GraphPlan, route: StoredRoute, thread: string): NodeResult['route'] {
  if ('branch' in route) return route
  const nodeOf = (name: string): AnyNode => {
    const node = plan.nodes.get(name)
    if (node !== undefined) return node
    throw new SluiceError(
      'THREAD_NODE_GONE',
      `thread "${thread}" goes on to node "${name}", and the graph has no such node any more. A node's name is its identity in stored threads: bring it back.`,
      { thread, node: name },
    )
  }
  return {
    goto: route.goto.map((target): Target | CheckedSend => {
      if (target === null) return END
      if (typeof target === 'string') return nodeOf(target)
      return { node: nodeOf(target.node), payload: own(target.payload) as JsonObject }
    }),
  }
}
