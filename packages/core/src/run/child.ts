import { SluiceError } from '../errors/error.ts'
import type { ChildOptions } from '../graph/context.ts'
import type { GraphPlan } from '../graph/graph.ts'
import { never } from '../seams/site.ts'
import { conduct } from './engine.ts'
import { MAX_DEPTH_OF_RUNS } from './limits.ts'
import { RunScope } from './scope.ts'
import type { Task } from './task.ts'

/**
 * Runs a graph inside a node: same runtime, same policies, within the time the parent has left. What stops the child stops
 * every run above it; its own cancel, time and budget are errors in the parent's node.
 */
export async function runChild(
  task: Task,
  plan: GraphPlan,
  input: unknown,
  options: ChildOptions = {},
): Promise<unknown> {
  const { scope } = task
  if (scope.depth >= MAX_DEPTH_OF_RUNS) {
    throw new SluiceError(
      'RUNS_TOO_DEEP',
      `node "${task.node.name}" starts a run nested ${MAX_DEPTH_OF_RUNS + 1} deep; ${MAX_DEPTH_OF_RUNS} is the most.`,
      { node: task.node.name },
    )
  }
  const signal = eitherOf(options.signal, task.ownSignal)
  const child = new RunScope(scope.runtime, plan, { ...options, signal }, scope.sink, scope, task.node.name)
  const end = await task.withChild(child, () => conduct(child, input))
  if (end.status === 'completed') return end.result
  if (!end.stop) throw end.error
  scope.stop(end.error)
  return never()
}

const eitherOf = (a: AbortSignal | undefined, b: AbortSignal | undefined): AbortSignal | undefined =>
  a === undefined || b === undefined ? (a ?? b) : AbortSignal.any([a, b])
