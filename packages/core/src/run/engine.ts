import { SluiceError } from '../errors/error.ts'
import type { AnyNode, Values } from '../graph/node.ts'
import type { Json, JsonObject } from '../json/json.ts'
import { own } from '../json/own.ts'
import { never } from '../seams/site.ts'
import { isThenable } from '../seams/thenable.ts'
import type { Slots } from '../state/state.ts'
import { RunEdge } from './edge.ts'
import { requireTime } from './limits.ts'
import { mergeUpdates } from './merge.ts'
import { announce, NodeCall, type NodeResult, performNode } from './node-call.ts'
import { nextSeeds } from './routes.ts'
import { RunEnding, RunStart } from './run-call.ts'
import type { RunEnd, RunScope } from './scope.ts'
import { Task } from './task.ts'

/** A task of the next superstep, before it is given its input. */
export interface Seed {
  readonly node: AnyNode
  readonly payload: JsonObject | undefined
}

/** Takes a run to its end and says what it came to; never rejects. */
export async function conduct(scope: RunScope, input: unknown): Promise<RunEnd> {
  let given: JsonObject
  try {
    requireTime(scope.timeoutMs)
    given = readInput(scope, input ?? {})
  } catch (error) {
    return { status: 'failed', error, stop: false }
  }
  // Nothing of the user's but the input's schemas runs inside the call to run().
  await undefined
  const end = await carry(scope, given)
  return scope.runtime.gates.runEnd === undefined ? end : judgeEnd(scope, given, end)
}

function readInput({ plan }: RunScope, input: unknown): JsonObject {
  const what = `the input of "${plan.name}"`
  return plan.boundary === undefined ? plan.state.check(input, what) : plan.boundary.checkInput(own(input, what))
}

/** Runs the supersteps; settles when they are through, or at once when the run is ended from outside. */
function carry(scope: RunScope, input: JsonObject): Promise<RunEnd> {
  return new Promise((resolve) => {
    scope.begin(resolve)
    enter(scope, input).then(
      (result) => scope.end({ status: 'completed', result, stop: false }),
      (error) => scope.fail(error),
    )
  })
}

/** In through the door, where somebody stands at it, and through the supersteps. */
function enter(scope: RunScope, input: JsonObject): Promise<JsonObject> {
  const { runStart } = scope.runtime.gates
  const work = (admitted: JsonObject) => new Supersteps(scope, admitted).run()
  return runStart === undefined ? work(input) : Promise.resolve(runStart(new RunStart(scope, input, work)))
}

/** Lets the policies judge how a run ended; a stop there is the end of it, and so is the end of the run above. */
function judgeEnd(scope: RunScope, input: JsonObject, end: RunEnd): Promise<RunEnd> {
  return new Promise((resolve) => {
    const edge = new RunEdge(scope, (error) => settle({ status: 'failed', error, stop: true }))
    const forget = scope.parent?.onEnd(() => edge.stop(end.error))
    const settle = (judged: RunEnd) => {
      forget?.()
      resolve(judged)
    }
    Promise.resolve(scope.runtime.gates.runEnd?.(new RunEnding(scope, edge, input, end)) ?? end).then(settle, (error) =>
      edge.stop(error),
    )
  })
}

class Supersteps implements Values {
  readonly #scope: RunScope
  readonly #input: JsonObject
  #slots: Slots = []
  #view: unknown

  constructor(scope: RunScope, input: JsonObject) {
    this.#scope = scope
    this.#input = input
  }

  async run(): Promise<JsonObject> {
    const scope = this.#scope
    const { plan } = scope
    if (scope.stopped) return never()
    this.#slots = plan.state.start(plan.boundary === undefined ? this.#input : plan.boundary.update(this.#input))
    let seeds: readonly Seed[] = plan.start.map((node) => ({ node, payload: undefined }))
    for (;;) {
      const turn = scope.nextStep()
      if (turn !== undefined) await turn
      const room = scope.sink?.room()
      if (room !== undefined) await room
      if (seeds.length > scope.limits.maxTasks) throw this.#tooMany(seeds.length)
      if (scope.stopped) return never()
      const tasks = this.#tasks(seeds)
      const started = tasks.length === 1 ? runTask(tasks[0] as Task) : undefined
      const results = started === undefined ? await runTogether(tasks) : [isThenable(started) ? await started : started]
      if (scope.stopped) return never()
      this.#slots = mergeUpdates(plan.state, this.#slots, tasks, results as readonly NodeResult[])
      this.#view = undefined
      const next = nextSeeds(plan, tasks, results as readonly NodeResult[], this)
      if (next.length === 0) return this.#finish(tasks)
      seeds = next
    }
  }

  get(field: string): Json | undefined {
    return this.#scope.plan.state.get(this.#slots, field)
  }

  /** The merged state, made when first read and shared by routers and the next tasks. */
  get state(): JsonObject {
    this.#view ??= this.#scope.plan.state.view(this.#slots)
    return this.#view as JsonObject
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
    const covered = state.overlay(this.#slots, payload)
    return node.ports === undefined
      ? (state.view(covered) as JsonObject)
      : node.ports.input({ get: (field) => state.get(covered, field) })
  }

  #finish(tasks: readonly Task[]): JsonObject {
    const { boundary } = this.#scope.plan
    if (boundary === undefined) return this.state
    const ended = tasks.map((task) => task.node.name)
    return boundary.result(this, ended)
  }

  #tooMany(count: number): SluiceError {
    const { maxTasks } = this.#scope.limits
    return new SluiceError(
      'MAX_TASKS',
      `a superstep of "${this.#scope.plan.name}" would have ${count} tasks, and maxTasks is ${maxTasks}. Send in smaller batches, or raise it.`,
      { graph: this.#scope.plan.name },
    )
  }
}

/** One task through its gate, and the event that says it is done. */
function runTask(task: Task): NodeResult | Promise<NodeResult> {
  const { scope } = task
  const gate = scope.runtime.gates.node
  if (gate !== undefined) return throughGate(new NodeCall(task), gate)
  announce(task)
  const result = performNode(task)
  if (scope.sink === null) return result
  return isThenable(result) ? result.then((done) => complete(task, done)) : complete(task, result)
}

async function throughGate(
  call: NodeCall,
  gate: NonNullable<RunScope['runtime']['gates']['node']>,
): Promise<NodeResult> {
  const result = await gate(call)
  return complete(call.task, call.substituted === undefined ? result : { ...result, substituted: call.substituted })
}

function complete({ scope, node, attempt }: Task, result: NodeResult): NodeResult {
  if (scope.sink !== null && !scope.stopped) {
    const { output, substituted } = result
    scope.emit({ type: 'node_complete', nodeName: node.name, nodeType: node.type, attempt, output, substituted })
  }
  return result
}

/** Starts all tasks at once. The first to fail ends it, as does a stop, and the run's end gives the others up. */
function runTogether(tasks: readonly Task[]): Promise<NodeResult[]> {
  return new Promise((resolve, reject) => {
    const results = new Array<NodeResult>(tasks.length)
    let left = tasks.length
    const settle = (i: number, result: NodeResult) => {
      results[i] = result
      if (--left === 0) resolve(results)
    }
    for (const [i, task] of tasks.entries()) {
      if (task.scope.stopped) return
      try {
        const started = runTask(task)
        if (isThenable(started)) started.then((result) => settle(i, result as NodeResult), reject)
        else settle(i, started)
      } catch (error) {
        reject(error)
        return
      }
    }
  })
}
