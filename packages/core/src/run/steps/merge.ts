import { SluiceError } from '../../errors/error.ts'
import type { Json, JsonObject } from '../../json/json.ts'
import { type AnyState, isReplacement, type Slots } from '../../state/state.ts'
import type { NodeResult } from '../calls/node-call.ts'
import type { Task } from '../task.ts'

/** The update of the state that a task's output comes to. */
export const updateOf = ({ node }: Task, { output }: NodeResult): JsonObject =>
  node.ports === undefined ? output : node.ports.update(output)

/**
 * Merges the updates of one superstep, by node name and then in the order the tasks were scheduled, whichever finished first.
 *
 * @throws SluiceError `UPDATE_CONFLICT` when two different nodes write a field that has no merging reducer, or one of them
 *   replaces it as a whole: nobody could say whose value should stand.
 */
export function mergeUpdates(
  state: AnyState,
  slots: Slots,
  tasks: readonly Task[],
  results: readonly NodeResult[],
): Slots {
  const next = slots.slice()
  if (tasks.length === 1) {
    const task = tasks[0] as Task
    state.apply(next, updateOf(task, results[0] as NodeResult), task)
  } else for (const [field, writes] of writesByField(tasks, results)) applyField(state, next, field, writes)
  return next
}

/** The updates of a superstep as they are written down, in the order in which they merge. */
export const updatesOf = (
  tasks: readonly Task[],
  results: readonly NodeResult[],
): readonly { readonly task: string; readonly update: JsonObject }[] =>
  inMergeOrder(tasks).map((i) => ({
    task: (tasks[i] as Task).taskId,
    update: updateOf(tasks[i] as Task, results[i] as NodeResult),
  }))

/** By the names of the nodes, then in the order the tasks were scheduled. */
function inMergeOrder(tasks: readonly Task[]): readonly number[] {
  const order = tasks.map((_, i) => i)
  const nameOf = (i: number) => (tasks[i] as Task).node.name
  if (order.some((i) => nameOf(i) !== nameOf(0))) order.sort((a, b) => compare(nameOf(a), nameOf(b)) || a - b)
  return order
}

/** What was written to one field, in order, and which nodes did, each once: their tasks stand together. */
interface Writes {
  readonly values: Json[]
  readonly nodes: string[]
}

function writesByField(tasks: readonly Task[], results: readonly NodeResult[]): Map<string, Writes> {
  const fields = new Map<string, Writes>()
  for (const i of inMergeOrder(tasks)) {
    const task = tasks[i] as Task
    const update = updateOf(task, results[i] as NodeResult)
    for (const field of Object.keys(update)) add(fields, field, task.node.name, update[field] as Json)
  }
  return fields
}

function add(fields: Map<string, Writes>, field: string, node: string, value: Json): void {
  const writes = fields.get(field)
  if (writes === undefined) {
    fields.set(field, { values: [value], nodes: [node] })
    return
  }
  writes.values.push(value)
  if (writes.nodes.at(-1) !== node) writes.nodes.push(node)
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

function applyField(state: AnyState, slots: Slots, field: string, { values, nodes }: Writes): void {
  const named = nodes.map((node) => `"${node}"`).join(', ')
  if (nodes.length > 1 && !(state.merges(field) && !values.some(isReplacement))) {
    throw new SluiceError(
      'UPDATE_CONFLICT',
      `nodes ${named} wrote field "${field}" in one superstep, and it has no reducer that merges them. Give it one, or let one node write it.`,
      { field },
    )
  }
  state.applyAll(slots, field, values, { writer: `${nodes.length === 1 ? 'node' : 'nodes'} ${named}` })
}
