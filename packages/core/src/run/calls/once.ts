import { SluiceError } from '../../errors/error.ts'
import type { Json } from '../../json/json.ts'
import { own } from '../../json/own.ts'
import { Call, type SeamSpec } from '../../seams/call.ts'
import { compileGate } from '../../seams/gate.ts'
import { isThenable } from '../../seams/thenable.ts'
import type { Task } from '../task.ts'
import type { Flown } from '../threads/flight.ts'
import { CallAsking } from './ask-call.ts'

class OnceCall extends Call<Json> {
  readonly task: Task
  readonly name: string
  readonly work: () => unknown

  constructor(task: Task, name: string, work: () => unknown, rest: ConstructorParameters<typeof Call<Json>>[3]) {
    super(task.scope, task.subject, null, rest)
    this.task = task
    this.name = name
    this.work = work
  }
}

/** Nobody is consulted about it: it is the node's own doing, and only written down. */
const throughJournal = compileGate<Json, Json | undefined>(
  {
    seam: 'node',
    perform: async (call) => {
      const { task, name, work } = call as OnceCall
      const { recording } = task.scope.runtime
      const value = await (recording === undefined ? work() : recording.outcomeOf('once', name, call.given))
      return value === undefined ? undefined : own(value, 'what a node does once comes to a value that')
    },
  } satisfies SeamSpec<Json, Json | undefined>,
  [],
)

/**
 * A node's `ctx.once`: done once, and handed back to whoever enters the node anew. When it was cut off, a person is asked; what
 * is `repeatable` is done again.
 */
export async function doOnce(
  task: Task,
  name: string,
  work: () => unknown,
  repeatable: boolean,
  flown: Flown,
): Promise<unknown> {
  if (typeof name !== 'string' || name === '') {
    throw new SluiceError('ONCE_NAME', `node "${task.node.name}" does something once without a name.`, {
      node: task.node.name,
    })
  }
  const { scope, log, subject } = task
  const entered = log?.journal.enter('once', name, null)
  const entry = isThenable(entered) ? await entered : entered
  if (entry !== undefined) entry.repeatable = repeatable
  const asking =
    log && new CallAsking({ scope, log, subject, entry, about: () => ({ once: name }), waits: flown.waits })
  return throughJournal(new OnceCall(task, name, work, { entry, asking, maker: task }))
}
