import { SluiceError } from '../../errors/error.ts'
import type { Exit, GraphPlan } from '../../graph/graph.ts'
import type { AnyNode } from '../../graph/node.ts'
import { END, type Target } from '../../graph/route.ts'
import type { CheckedSend, NodeResult } from '../calls/node-call.ts'
import type { Seed } from '../engine.ts'
import type { Task } from '../task.ts'

/** The merged state, made only when a router reads it. */
interface Merged {
  readonly state: unknown
}

/**
 * Where the tasks of a superstep lead: each node once, however many lead to it, and each send as a task of its own. Empty
 * when everything has come to its end.
 */
export function nextSeeds(
  plan: GraphPlan,
  tasks: readonly Task[],
  results: readonly NodeResult[],
  merged: Merged,
): readonly Seed[] {
  if (tasks.length === 1) {
    const target = soleTarget(plan, tasks[0] as Task, results[0] as NodeResult, merged)
    if (target !== undefined) return target === END ? [] : [{ node: target as AnyNode, payload: undefined }]
  }
  const seeds: Seed[] = []
  const plain = new Set<AnyNode>()
  for (const [i, task] of tasks.entries()) {
    for (const target of targetsOf(plan, task, results[i] as NodeResult, merged)) {
      if (target === END) continue
      if (isSend(target)) seeds.push(target)
      else if (!plain.has(target)) {
        plain.add(target)
        seeds.push({ node: target, payload: undefined })
      }
    }
  }
  return seeds
}

const isSend = (target: Target | CheckedSend): target is CheckedSend =>
  typeof target === 'object' && 'payload' in target

/** The one way on, where a node did not choose for itself: the common case, without a list. */
function soleTarget(plan: GraphPlan, task: Task, result: NodeResult, merged: Merged): Target | undefined {
  if (result.route !== undefined && 'goto' in result.route) return undefined
  return exitTarget(plan.exits.get(task.node), task, result, merged)
}

function targetsOf(plan: GraphPlan, task: Task, result: NodeResult, merged: Merged): readonly (Target | CheckedSend)[] {
  if (result.route !== undefined && 'goto' in result.route) return result.route.goto
  return [exitTarget(plan.exits.get(task.node), task, result, merged)]
}

function exitTarget(exit: Exit | undefined, task: Task, result: NodeResult, merged: Merged): Target {
  if (exit === undefined) throw noWay(task, result, 'it has no edge and chose no route')
  if (exit.kind === 'edges') return edgeTarget(exit, task, result)
  const branch = branchOf(result)
  if (branch !== undefined) throw fault(task, `it chose branch "${branch}", and it has no labelled edges`)
  if (exit.kind === 'when') {
    const answer = exit.predicate(merged.state as never)
    if (typeof answer !== 'boolean') throw fault(task, `its predicate answered ${shown(answer)}, not true or false`)
    return answer ? exit.then : exit.otherwise
  }
  const key = exit.key(merged.state as never)
  const target = exit.targets.get(typeof key === 'number' || typeof key === 'boolean' ? String(key) : key)
  if (target === undefined)
    throw fault(
      task,
      `its branch key is ${shown(key)}, which leads nowhere; keys are: ${[...exit.targets.keys()].join(', ')}`,
    )
  return target
}

const branchOf = ({ route }: NodeResult): string | undefined =>
  route !== undefined && 'branch' in route ? route.branch : undefined

function edgeTarget(exit: Exit & { kind: 'edges' }, task: Task, result: NodeResult): Target {
  const branch = branchOf(result)
  const target = (branch === undefined ? undefined : exit.labelled.get(branch)) ?? exit.plain
  if (target !== undefined) return target
  const edges = `every edge is labelled (${[...exit.labelled.keys()].join(', ')})`
  throw noWay(task, result, branch === undefined ? edges : `it chose branch "${branch}", and ${edges}`)
}

function noWay(task: Task, { substituted }: NodeResult, why: string): SluiceError {
  if (substituted === undefined) return fault(task, `the run cannot go on: ${why}`)
  const who = task.scope.gates.own.some(({ name }) => name === substituted) ? 'middleware' : 'policy'
  return fault(
    task,
    `${who} "${substituted}" supplied its result, and a result is not a route: ${why}, so the run cannot continue past it. Add an unlabelled edge`,
  )
}

/** A value in a message: scalars as they are, the rest by kind. */
const shown = (value: unknown): string =>
  value === null || typeof value !== 'object'
    ? (JSON.stringify(value) ?? String(value))
    : value instanceof Promise
      ? 'a promise (routers are synchronous)'
      : 'an object'

const fault = (task: Task, why: string) =>
  new SluiceError('GRAPH_ROUTE', `node "${task.node.name}": ${why}.`, { graph: task.graphName, node: task.node.name })
