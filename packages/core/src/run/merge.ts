import { SluiceError } from '../errors/error.ts'
import type { Json, JsonObject } from '../json/json.ts'
import { type AnyState, isReplacement, type Slots } from '../state/state.ts'
import type { NodeResult } from './node-call.ts'
import type { Task } from './task.ts'

/** The update of the state that a task's output comes to. */
const updateOf = ({ node }: Task, { output }: NodeResult): JsonObject =>
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

interface Write {
  readonly node: string
  readonly value: Json
}

function writesByField(tasks: readonly Task[], results: readonly NodeResult[]): Map<string, Write[]> {
  const order = tasks.map((_, i) => i)
  const names = tasks.map((task) => task.node.name)
  if (names.some((name) => name !== names[0]))
    order.sort((a, b) => compare(names[a] as string, names[b] as string) || a - b)
  const fields = new Map<string, Write[]>()
  for (const i of order) {
    const update = updateOf(tasks[i] as Task, results[i] as NodeResult)
    for (const field of Object.keys(update)) {
      const write = { node: names[i] as string, value: update[field] as Json }
      const writes = fields.get(field)
      if (writes === undefined) fields.set(field, [write])
      else writes.push(write)
    }
  }
  return fields
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

function applyField(state: AnyState, slots: Slots, field: string, writes: readonly Write[]): void {
  const nodes = [...new Set(writes.map((write) => write.node))]
  if (nodes.length > 1 && !(state.merges(field) && writes.every(({ value }) => !isReplacement(value)))) {
    const named = nodes.map((node) => `"${node}"`).join(', ')
    throw new SluiceError(
      'UPDATE_CONFLICT',
      `nodes ${named} wrote field "${field}" in one superstep, and it has no reducer that merges them. Give it one, or let one node write it.`,
      { field },
    )
  }
  const writer = nodes.length === 1 ? `node "${nodes[0]}"` : `nodes ${nodes.map((node) => `"${node}"`).join(', ')}`
  state.applyAll(
    slots,
    field,
    writes.map((write) => write.value),
    { writer },
  )
}
