import { SluiceError, showError } from '../../errors/error.ts'
import type { AnyNode } from '../../graph/node.ts'
import { isNode } from '../../graph/node.ts'
import { Command, END, type Goto, Send, type Target } from '../../graph/route.ts'
import { isObject, type JsonObject } from '../../json/json.ts'
import { ownObject } from '../../json/own.ts'
import { Call, type SeamSpec } from '../../seams/call.ts'
import { isThenable } from '../../seams/thenable.ts'
import { kindOf } from '../../state/field.ts'
import type { Task } from '../task.ts'
import type { CallLog } from '../threads/call-log.ts'
import { type AskedAt, CallAsking } from './ask-call.ts'
import { AskingHere } from './ask-here.ts'
import { withDeadline } from './deadline.ts'

/** Where a node chose to go; `undefined` leaves it to its edges. */
type Route = { readonly goto: readonly (Target | CheckedSend)[] } | { readonly branch: string } | undefined

/** One task of the next superstep, with values of its own. */
export interface CheckedSend {
  readonly node: AnyNode
  readonly payload: JsonObject
}

/** What one execution of a node came to. `output` is what policies see of it. */
export interface NodeResult {
  readonly output: JsonObject
  readonly route: Route
  /** Who supplied it, if the node itself did not; it is a result and never a route. */
  readonly substituted?: string
}

/** A node on its way through its gate. Each trip of each attempt is an execution of its own. */
export class NodeCall extends Call<JsonObject> {
  readonly #current: { task: Task }
  /** The last attempt that was announced: entered anew after an answer, it is the same one. */
  announced = 0

  constructor(task: Task) {
    const { scope, subject } = task
    const current = { task }
    const waits = () => current.task.log?.flight.asks()
    super(scope, subject, task.given, {
      maxAttempts: scope.limits.maxNodeAttempts,
      nestedIn: scope.nestedIn,
      asking: scope.thread && new CallAsking(new AskedAtNode(task, waits)),
    })
    this.#current = current
    this.attempt = task.attempt
  }

  override askHere(): AskingHere {
    const { scope, subject, keyPrefix: prefix, node } = this.task
    return new AskingHere({ scope, task: this.task, subject, prefix, about: () => ({ node: node.name }) })
  }

  /** The execution that is under way. */
  get task(): Task {
    return this.#current.task
  }
  set task(task: Task) {
    this.#current.task = task
  }

  override get taskId(): string {
    return this.task.taskId
  }

  override get trip(): number {
    return this.task.trip
  }
  override set trip(trip: number) {
    if (trip !== this.task.trip) this.task = this.task.onTrip(trip)
  }
}

/** A class, for one is made for every execution: a getter in a literal would be made anew, and be collected late. */
class AskedAtNode implements AskedAt {
  readonly task: Task
  readonly waits: () => void

  constructor(task: Task, waits: () => void) {
    this.task = task
    this.waits = waits
  }

  get scope() {
    return this.task.scope
  }
  get log() {
    return this.task.log as CallLog
  }
  get fresh() {
    return this.task.image === undefined
  }
  get subject() {
    return this.task.subject
  }
  about(): JsonObject {
    return { node: this.task.node.name }
  }
}

export const nodeSpec: SeamSpec<JsonObject, NodeResult> = {
  seam: 'node',
  unwritten: true,
  entering: (call) => enter(call as NodeCall),
  perform: (call) => {
    const { task } = call as NodeCall
    task.input = call.input
    return performNode(task)
  },
  failed: (call) => (call as NodeCall).task.giveUp(),
  readInput: (value, call, what) => {
    const { node, scope } = (call as NodeCall).task
    return node.ports === undefined ? scope.plan.state.checkWhole(value, what) : node.ports.checkInput(value)
  },
  readValue: (value, call, what) => ({
    output: checkOutput((call as NodeCall).task, ownObject(value, what), true),
    route: undefined,
  }),
  readOwn: (value, call, _what, from) => {
    const { output, route } = readReturn((call as NodeCall).task, value)
    return { output, route: route ?? from?.route }
  },
  show: (result) => result.output,
  showOwn: (result) => result.output,
  retrying: (call) => bookRetry((call as NodeCall).task),
}

/** Spends an iteration, and writes down that the calls of this execution are void. */
function bookRetry({ scope, taskId, attempt }: Task): void | Promise<void> {
  scope.spendIteration(true)
  if (scope.stopped) return undefined
  const { thread, within } = scope
  thread?.withdraw([...within, taskId])
  scope.heldMemories?.forget(taskId)
  const record = {
    type: 'retry',
    ...(within.length === 0 ? {} : { within }),
    task: taskId,
    attempt: attempt + 1,
  } as const
  return thread?.write([record], thread.without([...within, taskId]))
}

function enter(call: NodeCall): void {
  if (call.attempt > call.task.attempt) call.task = call.task.again()
  if (call.announced === call.attempt) return
  call.announced = call.attempt
  announce(call.task)
}

export function announce({ scope, node, attempt }: Task): void {
  if (scope.sink !== null) scope.emit({ type: 'node_start', nodeName: node.name, nodeType: node.type, attempt })
}

/** Executes a node; whatever goes wrong with it, a wrong return included, is thrown. */
export function performNode(task: Task): NodeResult | Promise<NodeResult> {
  try {
    const { timeoutMs, idleTimeoutMs } = task.node
    const timed = timeoutMs !== undefined || idleTimeoutMs !== undefined
    const returned = timed ? runInTime(task, timeoutMs, idleTimeoutMs) : task.node.run(task.input as never, task)
    return isThenable(returned) || task.asking ? settled(task, returned) : readOwnReturn(task, returned)
  } catch (error) {
    reportError(task, error)
    throw error
  }
}

async function settled(task: Task, returned: unknown): Promise<NodeResult> {
  try {
    const value = await returned
    if (task.asking) await task.answered()
    return readOwnReturn(task, value)
  } catch (error) {
    reportError(task, error)
    throw error
  }
}

function runInTime(
  task: Task,
  timeoutMs: number | undefined,
  idleTimeoutMs: number | undefined,
): unknown | Promise<unknown> {
  const { node, scope } = task
  const over = (code: string, why: string) => (ms: number) => {
    const error = new SluiceError(code, `node "${node.name}" timed out after ${ms} ms${why}`, { node: node.name })
    task.giveUp(error)
    return error
  }
  const run = (signal: AbortSignal) => {
    task.ownSignal = signal
    return node.run(task.input as never, task)
  }
  const idle = (signal: AbortSignal): unknown => {
    if (idleTimeoutMs === undefined) return run(signal)
    task.lastActive = scope.timers.now()
    const spent = over('NODE_IDLE', ' without a sign of life')
    return withDeadline(scope.timers, idleTimeoutMs, signal, spent, run, () => task.lastActive)
  }
  if (timeoutMs === undefined) return idle(scope.signal)
  return withDeadline(scope.timers, timeoutMs, scope.signal, over('NODE_TIMED_OUT', ''), idle)
}

function reportError({ scope, at, attempt }: Task, error: unknown): void {
  if (scope.sink !== null && !scope.stopped) scope.emit({ type: 'node_error', ...at, attempt, error: showError(error) })
}

/** What the node itself returned: then it is through, and its sub-agents with it. */
function readOwnReturn(task: Task, returned: unknown): NodeResult {
  task.endAgents()
  return readReturn(task, returned)
}

function readReturn(task: Task, returned: unknown): NodeResult {
  if (returned === undefined || returned === null) return { output: checkOutput(task, {}), route: undefined }
  if (returned instanceof Command) {
    const { update = {}, goto, branch } = returned
    const route = goto !== undefined ? { goto: readGoto(task, goto) } : branch !== undefined ? { branch } : undefined
    return { output: checkOutput(task, update), route }
  }
  if (returned instanceof Send || returned === END || isNode(returned)) {
    return { output: checkOutput(task, {}), route: { goto: readGoto(task, returned) } }
  }
  if (!isObject(returned)) {
    throw fault(
      task,
      `returned ${kindOf(returned)}; a node returns an update (an object), command(…), send(…), END or nothing`,
    )
  }
  return { output: checkOutput(task, returned), route: undefined }
}

function checkOutput(task: Task, value: unknown, wire = false): JsonObject {
  const { node, scope } = task
  if (node.ports !== undefined) return node.ports.checkOutput(value)
  // The state as the node received it: nothing of it was changed, for it cannot be.
  return value === task.input ? NOTHING : scope.plan.state.check(value, task.writer, wire)
}

const NOTHING = ownObject({}, 'no update')

function readGoto(task: Task, goto: Goto): readonly (Target | CheckedSend)[] {
  const targets = Array.isArray(goto) ? goto : [goto]
  const sender = new Sender(task)
  return targets.map((target) => (target instanceof Send ? sender.read(target) : declared(task, target)))
}

/** Reads sends; a fan-out is many to one node, which is looked at once. */
class Sender {
  readonly #task: Task
  #to: AnyNode | undefined
  #writer = ''

  constructor(task: Task) {
    this.#task = task
  }

  read({ node, payload }: Send): CheckedSend {
    const to = node === this.#to ? node : this.#turnTo(node)
    return { node: to, payload: this.#task.scope.plan.state.checkWhole(payload, this.#writer) }
  }

  #turnTo(node: AnyNode): AnyNode {
    this.#to = declared(this.#task, node) as AnyNode
    this.#writer = `the send from node "${this.#task.node.name}" to node "${this.#to.name}"`
    return this.#to
  }
}

/** A node may only go where it said it might, so that a graph can be read without running it. */
function declared(task: Task, target: unknown): Target {
  const { node, scope } = task
  const name = target === END ? 'END' : isNode(target) ? target.name : undefined
  if (name === undefined) throw fault(task, `routes to ${kindOf(target)}, which is neither a node, a send nor END`)
  if (!node.goto.some((allowed) => allowed === target || allowed === name)) {
    throw fault(task, `routes to ${name}, which it does not declare; add goto: [${name}] to the node`)
  }
  if (target !== END && scope.plan.nodes.get(name) !== target)
    throw fault(task, `routes to another node object named "${name}"; use the one in the graph`)
  return target as Target
}

const fault = (task: Task, why: string) =>
  new SluiceError('NODE_RETURN', `node "${task.node.name}" ${why}.`, { graph: task.graphName, node: task.node.name })
