import { SluiceError } from '../../errors/error.ts'
import type { AnyNode, Values } from '../../graph/node.ts'
import type { Json, JsonObject } from '../../json/json.ts'
import { never } from '../../seams/site.ts'
import { isThenable } from '../../seams/thenable.ts'
import type { Slots } from '../../state/state.ts'
import { storedError, type Untimed } from '../../store/records.ts'
import { announce, NodeCall, type NodeResult, nodeSpec, performNode } from '../calls/node-call.ts'
import type { Seed } from '../engine.ts'
import type { OnThread, RunScope } from '../scope.ts'
import { Task } from '../task.ts'
import { canGoOn, nodeGone, openAsks, remembered, type TaskImage } from '../threads/position.ts'
import { mergeUpdates, updateOf, updatesOf } from './merge.ts'
import { nextSeeds } from './routes.ts'
import { readyOf, revivedResult, storedRoute } from './routes-stored.ts'

/** What a task comes to that can only wait for people. */
const PAUSED = Symbol('paused')

type Result = NodeResult | typeof PAUSED

/** The supersteps of a run: tasks run together, their updates merge, and the merged state says who is next. */
export class Supersteps implements Values {
  readonly #scope: RunScope
  #input: JsonObject
  /** Absent before the run has begun, or goes on. */
  #slots: Slots | undefined
  #view: unknown
  #flushing = false

  constructor(scope: RunScope, input: JsonObject) {
    this.#scope = scope
    this.#input = input
  }

  /** Runs them to the end; `undefined` when the run can only wait for people. */
  async run(admitted: JsonObject): Promise<JsonObject | undefined> {
    const scope = this.#scope
    const { plan, on } = scope
    if (scope.stopped) return never()
    this.#admit(admitted)
    let tasks = on?.begun ? this.#restore(on) : undefined
    if (tasks === undefined) {
      const seeds = plan.start.map((node) => ({ node, payload: undefined }))
      if (on !== undefined) await this.#writeBegin(on, seeds)
      tasks = this.#tasks(seeds)
    }
    if (tasks.length === 0) return this.#finish(on?.position?.ended ?? [])
    for (;;) {
      const turn = scope.nextStep()
      if (turn !== undefined) await turn
      const room = scope.sink?.room()
      if (room !== undefined) await room
      scope.superstepSize = tasks.length
      if (tasks.length > scope.limits.maxTasks) throw tooMany(scope, tasks.length)
      if (scope.stopped) return never()
      const coming = on === undefined ? this.#results(tasks) : this.#resultsOnThread(on, tasks)
      const results = isThenable(coming) ? await coming : coming
      if (scope.stopped) return never()
      if (results === undefined) {
        scope.waiting = tasks.map(({ taskId }) => taskId)
        return undefined
      }
      const seeds = this.#mergeAndRoute(tasks, results)
      if (on !== undefined) {
        const written = this.#writeStep(on, tasks, results, seeds)
        if (written !== undefined) await written
        if (scope.stopped) return never()
      }
      if (scope.sink !== null) this.#tell(tasks, results)
      if (scope.watched) scope.progress(tasks.map((task) => task.node.name))
      if (seeds.length === 0) return this.#finish(tasks.map((task) => task.node.name))
      tasks = this.#tasks(seeds)
    }
  }

  get(field: string): Json | undefined {
    return this.#scope.plan.state.get(this.slots, field)
  }

  /** The merged state, made when first read and shared by routers and the next tasks. */
  get state(): JsonObject {
    this.#view ??= this.#scope.plan.state.view(this.slots)
    return this.#view as JsonObject
  }

  /** The values themselves; those that the run is about to begin with, where it has not. */
  get slots(): Slots {
    this.#slots ??= this.#first()
    return this.#slots
  }

  /** The input as it was let in at the door. */
  #admit(input: JsonObject): void {
    if (input === this.#input) return
    this.#input = input
    this.#slots = this.#view = undefined
  }

  /**
   * Where it goes on, that state; else what a run begins with: what its thread holds, changed by the input, or a fresh one. A
   * flow begins afresh.
   */
  #first(): Slots {
    const { plan, on } = this.#scope
    const held = on?.position?.slots
    const { state, boundary } = plan
    if (on?.begun && held !== undefined) return held
    if (held === undefined || boundary !== undefined) {
      return state.start(boundary === undefined ? this.#input : boundary.update(this.#input))
    }
    const slots = held.slice()
    state.apply(slots, this.#input, INPUT)
    return slots
  }

  async #writeBegin({ thread, within, position, remember }: OnThread, seeds: readonly Seed[]): Promise<void> {
    const { plan } = this.#scope
    const fresh = position?.slots === undefined || plan.boundary !== undefined
    // What could not be read back is refused while nothing is written.
    if (fresh) plan.state.checkStored(this.slots)
    const record: Untimed = {
      type: 'begin',
      ...placeOf(within),
      ...(fresh ? { state: this.state } : { update: this.#input }),
      next: seeds.map(readyOf),
      ...(remember ? { stable: true } : {}),
    }
    await thread.write([record])
  }

  /** The tasks of the superstep that was not through. */
  #restore({ position, thread, within }: OnThread): Task[] {
    if (position?.slots === undefined) return []
    const counts = new Map<string, number>()
    return position.tasks.map((image) => {
      const node = this.#scope.plan.nodes.get(image.node)
      if (node === undefined) throw nodeGone(thread.line.thread, image.node, within)
      const ordinal = counts.get(image.node) ?? 0
      counts.set(image.node, ordinal + 1)
      const { payload, attempt } = image
      if (image.done !== undefined) this.#keepMemories(image, within.length)
      return new Task(this.#scope, node, ordinal, payload, this.#inputOf(node, payload), attempt, image)
    })
  }

  #keepMemories(image: TaskImage, depth: number): void {
    const memories = remembered(image, depth)
    if (memories.size > 0) this.#scope.memories.keep(image.id, memories)
  }

  #tasks(seeds: readonly Seed[]): Task[] {
    if (seeds.length === 1) return [this.#task(seeds[0] as Seed, 0)]
    const counts = new Map<AnyNode, number>()
    return seeds.map((seed) => {
      const ordinal = counts.get(seed.node) ?? 0
      counts.set(seed.node, ordinal + 1)
      return this.#task(seed, ordinal)
    })
  }

  #task({ node, payload }: Seed, ordinal: number): Task {
    return new Task(this.#scope, node, ordinal, payload, this.#inputOf(node, payload))
  }

  #inputOf(node: AnyNode, payload: JsonObject | undefined): JsonObject {
    const { state } = this.#scope.plan
    if (payload === undefined) return node.ports === undefined ? this.state : node.ports.input(this)
    const covered = state.overlay(this.slots, payload)
    return node.ports === undefined
      ? (state.view(covered) as JsonObject)
      : node.ports.input({ get: (field) => state.get(covered, field) })
  }

  #results(tasks: readonly Task[]): NodeResult[] | Promise<NodeResult[]> {
    if (tasks.length > 1) return runTogether(tasks, runTask) as Promise<NodeResult[]>
    const started = runTask(tasks[0] as Task)
    return isThenable(started) ? started.then((result) => [result]) : [started]
  }

  /** The same on a thread: tasks that are through are not run again, and some may only wait. `undefined` when one does. */
  #resultsOnThread(on: OnThread, tasks: readonly Task[]): NodeResult[] | undefined | Promise<NodeResult[] | undefined> {
    if (tasks.length > 1)
      return runTogether(tasks, (task) => this.#runOnThread(on, task, true)).then(this.#unlessPaused)
    const started = this.#runOnThread(on, tasks[0] as Task, false)
    if (isThenable(started)) return started.then((result) => this.#unlessPaused([result]))
    return started === PAUSED ? undefined : [started]
  }

  readonly #unlessPaused = (results: readonly Result[]): NodeResult[] | undefined | Promise<undefined> =>
    results.includes(PAUSED) ? this.#flush().then(() => undefined) : (results as NodeResult[])

  #runOnThread(on: OnThread, task: Task, together: boolean): Result | Promise<Result> {
    const { image } = task
    if (image?.done !== undefined) return revivedResult(this.#scope.plan, image.done, on.thread.line.thread)
    if (image !== undefined && waitsStill(on, image)) return PAUSED
    const settle = (result: Result) => {
      task.close()
      if (together && result !== PAUSED) this.#done(on, task, result)
      return result
    }
    return whenSettledOrPaused(
      task,
      () => runTask(task),
      (error) => this.#failed(on, task, error),
      settle,
    )
  }

  /** Notes that a task is through; written down with the next turn, unless the superstep is through before. */
  #done(on: OnThread, task: Task, result: NodeResult): void {
    this.#scope.unwritten.add(taskRecord(on, task, result))
    if (this.#flushing) return
    this.#flushing = true
    this.#scope.runtime.platform.turn().then(() => {
      this.#flushing = false
      if (!this.#scope.stopped) this.#flush()
    })
  }

  async #flush(): Promise<void> {
    const records = this.#takeUnwritten()
    if (records.length > 0) await this.#scope.thread?.write(records)
  }

  #takeUnwritten(): readonly Untimed[] {
    const { unwritten } = this.#scope
    const records = [...unwritten]
    unwritten.clear()
    return records
  }

  /** A task failed: that it did is written down, with all that is through, before the others are given up. */
  async #failed({ thread, within }: OnThread, task: Task, error: unknown): Promise<never> {
    if (!this.#scope.stopped) {
      const { taskId, started } = task
      const failed = { type: 'failed', ...placeOf(within), task: taskId, error: storedError(error), started } as const
      const written = thread.write([...this.#takeUnwritten(), failed])
      if (written !== undefined) await written
    }
    throw error
  }

  #mergeAndRoute(tasks: readonly Task[], results: readonly NodeResult[]): readonly Seed[] {
    const { plan, on } = this.#scope
    try {
      this.#slots = mergeUpdates(plan.state, this.slots, tasks, results)
      this.#view = undefined
    } catch (error) {
      this.#scope.stuck = true
      throw error
    }
    try {
      return nextSeeds(plan, tasks, results, this)
    } catch (error) {
      // Several tasks have noted that they are through; a single one had only its superstep to say so.
      const [task, result] = [tasks[0] as Task, results[0] as NodeResult]
      if (on !== undefined && tasks.length === 1) this.#scope.unwritten.add(taskRecord(on, task, result))
      throw error
    }
  }

  #writeStep(
    { thread, within }: OnThread,
    tasks: readonly Task[],
    results: readonly NodeResult[],
    seeds: readonly Seed[],
  ): void | Promise<void> {
    const scope = this.#scope
    scope.unwritten.clear()
    const next = seeds.map(readyOf)
    const ended = next.length === 0 ? { ended: tasks.map((task) => task.node.name) } : undefined
    const written = thread.writeStep(within, updatesOf(tasks, results), next, ended)
    scope.superstep++
    scope.heldMemories?.settle()
    if (scope.parent === undefined) scope.kept.forgetMarks()
    if (scope.parent !== undefined || next.length === 0) return written
    const snapshot = () => thread.snapshot(() => scope.snapshot(next))
    return written === undefined ? snapshot() : written.then(snapshot)
  }

  /** What a superstep came to, for who reads updates or values. */
  #tell(tasks: readonly Task[], results: readonly NodeResult[]): void {
    const { sink, thread, plan } = this.#scope
    const at = thread === undefined ? {} : { at: thread.head }
    if (sink?.wants('update')) {
      for (const [i, task] of tasks.entries()) {
        const written = updateOf(task, results[i] as NodeResult)
        const update = Object.keys(written).length === 0 ? null : written
        this.#scope.emit({ type: 'update', ...task.at, taskId: task.taskId, update, ...at })
      }
    }
    if (sink?.wants('values'))
      this.#scope.emit({ type: 'values', state: plan.state.view(this.slots) as JsonObject, ...at })
  }

  #finish(ended: readonly string[]): JsonObject {
    const { boundary } = this.#scope.plan
    return boundary === undefined ? this.state : boundary.result(this, ended)
  }
}

const INPUT = { writer: 'the input' }

const taskRecord = ({ within }: OnThread, task: Task, { output, route, substituted }: NodeResult): Untimed => ({
  type: 'task',
  ...placeOf(within),
  task: task.taskId,
  output,
  ...(route === undefined ? {} : { route: storedRoute(route) }),
  ...(substituted === undefined ? {} : { substituted }),
})

const placeOf = (within: OnThread['within']) => (within.length === 0 ? {} : { within })

/** Whether a task's questions keep it from going on; they stay open then. */
function waitsStill({ thread, within }: OnThread, image: TaskImage): boolean {
  const { answered } = thread
  if (answered === undefined || canGoOn(image, within.length, answered)) return false
  for (const ask of openAsks(image.records)) thread.asks.set(ask.key, ask)
  return true
}

/** Settles with what a task came to, or when it can only wait; what it comes to after that is dropped. */
function whenSettledOrPaused(
  task: Task,
  start: () => NodeResult | Promise<NodeResult>,
  failed: (error: unknown) => Promise<never>,
  settle: (result: Result) => Result,
): Result | Promise<Result> {
  let started: NodeResult | Promise<NodeResult>
  try {
    started = start()
  } catch (error) {
    return failed(error)
  }
  if (!isThenable(started)) return settle(started)
  let paused = false
  const settled = started.then(
    (result) => (paused ? never<Result>() : settle(result)),
    (error) => (paused ? never<Result>() : failed(error)),
  )
  // It can pause with a later turn of the loop only, never before it has promised something.
  return new Promise((resolve, reject) => {
    // A function that is written where a member is set is put among the old objects, and all that it sees is collected late.
    const pause = () => {
      paused = true
      resolve(PAUSED)
    }
    task.onPaused = pause
    settled.then(resolve, reject)
  })
}

/** One task through its gate, and the event that says it is done. */
function runTask(task: Task): NodeResult | Promise<NodeResult> {
  const { scope } = task
  const { node } = scope.gates
  const gate = node.at?.(task.subject) ?? node
  if (gate !== nodeSpec.perform) return throughGate(new NodeCall(task), gate)
  announce(task)
  const result = performNode(task)
  if (scope.sink === null) return result
  return isThenable(result) ? result.then((done) => complete(task, done)) : complete(task, result)
}

function throughGate(call: NodeCall, gate: RunScope['gates']['node']): NodeResult | Promise<NodeResult> {
  const through = (result: NodeResult) => {
    call.task.close()
    return complete(call.task, call.substituted === undefined ? result : { ...result, substituted: call.substituted })
  }
  const result = gate(call)
  return isThenable(result) ? result.then(through) : through(result)
}

function complete({ scope, node, attempt }: Task, result: NodeResult): NodeResult {
  if (scope.sink !== null && !scope.stopped) {
    const { output, substituted } = result
    scope.emit({ type: 'node_complete', nodeName: node.name, nodeType: node.type, attempt, output, substituted })
  }
  return result
}

/** Starts all tasks at once. The first to fail ends it, as does a stop, and the run's end gives the others up. */
function runTogether<R>(tasks: readonly Task[], run: (task: Task) => R | Promise<R>): Promise<R[]> {
  return new Promise((resolve, reject) => {
    const results = new Array<R>(tasks.length)
    let left = tasks.length
    const settle = (i: number, result: R) => {
      results[i] = result
      if (--left === 0) resolve(results)
    }
    for (const [i, task] of tasks.entries()) {
      if (task.scope.stopped) return
      try {
        const started = run(task)
        if (isThenable(started)) started.then((result) => settle(i, result as R), reject)
        else settle(i, started)
      } catch (error) {
        reject(error)
        return
      }
    }
  })
}

const tooMany = ({ plan, limits }: RunScope, count: number): SluiceError =>
  new SluiceError(
    'MAX_TASKS',
    `a superstep of "${plan.name}" would have ${count} tasks, and maxTasks is ${limits.maxTasks}. Send in smaller batches, or raise it.`,
    { graph: plan.name },
  )
