import { messageOf, SluiceError } from '../../errors/error.ts'
import type { GatherOptions, SubAgentHandle, SubAgentResult, SubAgentTask } from '../../graph/context.ts'
import { own } from '../../json/own.ts'
import type { Task } from '../task.ts'
import { UNFLOWN } from '../threads/flight.ts'
import { runChild } from './child.ts'

/** A sub-agent under way, and what came of it. */
interface Agent {
  readonly handle: SubAgentHandle
  readonly controller: AbortController
  readonly ended: Promise<SubAgentResult>
  result: SubAgentResult | undefined
}

/** Sub-agents of a group failed, or were cancelled. `results` has one entry for each that was gathered, in their order. */
export class AgentGroupError extends SluiceError {
  override readonly name = 'AgentGroupError'
  readonly results: readonly SubAgentResult[]

  constructor(node: string, results: readonly SubAgentResult[]) {
    const bad = results.filter(({ status }) => status !== 'completed')
    const why = bad.map(({ name, status, error }) => `${name} ${status}${error ? ` (${messageOf(error)})` : ''}`)
    super(
      'AGENTS_FAILED',
      `node "${node}": of ${results.length} sub-agents ${bad.length} did not complete: ${why.join(', ')}.`,
      {
        node,
      },
    )
    this.results = results
  }
}

/** The time to gather was over. `completed` has what was there, `pending` names what was not and is cancelled. */
export class AgentTimeoutError extends SluiceError {
  override readonly name = 'AgentTimeoutError'
  readonly completed: readonly SubAgentResult[]
  readonly pending: readonly string[]

  constructor(node: string, ms: number, completed: readonly SubAgentResult[], pending: readonly string[]) {
    super('AGENTS_TIMED_OUT', `node "${node}": sub-agents timed out after ${ms} ms: ${pending.join(', ')}.`, { node })
    this.completed = completed
    this.pending = pending
  }
}

/** The sub-agents that one execution of a node has started and not gathered yet. */
export class Agents {
  readonly #task: Task
  readonly #agents = new Map<string, Agent>()

  constructor(task: Task) {
    this.#task = task
  }

  /** Starts them all at once, or none where `in` of one throws. An input that does not fit is the failure of its own agent. */
  spawn(tasks: readonly SubAgentTask[]): readonly SubAgentHandle[] {
    const ready = tasks.map((task) => ({ task, input: task.in === undefined ? task.input : task.in(task.input) }))
    return ready.map(({ task, input }) => this.#start(task, input))
  }

  #start(agentTask: SubAgentTask, input: unknown): SubAgentHandle {
    const { graph } = agentTask
    const name = agentTask.name ?? graph.plan.name
    const handle = Object.freeze({ id: this.#freeId(name), name })
    const controller = new AbortController()
    const agent: Agent = {
      handle,
      controller,
      result: undefined,
      ended: this.#run(agentTask, input, controller.signal).then(
        (state) => done(agent, { status: 'completed', state }),
        (error) => done(agent, { status: controller.signal.aborted ? 'cancelled' : 'failed', error }),
      ),
    }
    this.#agents.set(handle.id, agent)
    return handle
  }

  #freeId(name: string): string {
    const id = `${this.#task.keyPrefix}/${name}`
    let n = 1
    while (this.#agents.has(n === 1 ? id : `${id}[${n - 1}]`)) n++
    return n === 1 ? id : `${id}[${n - 1}]`
  }

  async #run({ graph, out, onProgress }: SubAgentTask, input: unknown, signal: AbortSignal): Promise<unknown> {
    const task = this.#task
    const options = { signal, onProgress }
    const { log } = task
    const state = await (log === undefined
      ? runChild(task, task, log, graph.plan, input, options, UNFLOWN)
      : log.flight.through((flown) => runChild(task, task, log, graph.plan, input, options, flown)))
    return out === undefined ? state : out(state as never)
  }

  async gather(
    handles: readonly (SubAgentHandle | string)[],
    { timeoutMs, settle = false }: GatherOptions = {},
  ): Promise<readonly SubAgentResult[]> {
    const agents = handles.map((handle) => this.#take(typeof handle === 'string' ? handle : handle.id))
    for (const { handle } of agents) this.#agents.delete(handle.id)
    const results = await (timeoutMs === undefined ? all(agents) : this.#inTime(agents, timeoutMs))
    if (!settle && results.some(({ status }) => status !== 'completed')) {
      throw new AgentGroupError(this.#task.node.name, results)
    }
    return results
  }

  #take(id: string): Agent {
    const agent = this.#agents.get(id)
    if (agent !== undefined) return agent
    throw new SluiceError(
      'AGENT_LOST',
      `node "${this.#task.node.name}" gathers sub-agent "${id}", which it did not start, or has gathered already. A node gathers what it has spawned itself: its progress is kept with the node's.`,
      { node: this.#task.node.name },
    )
  }

  /** Whether they were there in time is written down: a node entered anew learns the same. */
  async #inTime(agents: readonly Agent[], ms: number): Promise<readonly SubAgentResult[]> {
    const ids = own(agents.map(({ handle }) => handle.id))
    const { log } = this.#task
    const entry = log && (await log.flight.through(async () => log.journal.enter('gather', 'gather', ids)))
    const known = entry?.settled?.ok ? (entry.settled.value as readonly string[]) : undefined
    const late = known ?? (await this.#lateOf(agents, ms))
    if (known === undefined) await entry?.settle({ ok: true, value: own(late) })
    const inTime = await all(agents.filter(({ handle }) => !late.includes(handle.id)))
    if (late.length === 0) return inTime
    const [reason, pending] = [
      new Error('its group timed out'),
      agents.filter(({ handle }) => late.includes(handle.id)),
    ]
    for (const { controller } of pending) controller.abort(reason)
    throw new AgentTimeoutError(this.#task.node.name, ms, inTime, late)
  }

  /** The ids of those that are not there when the time is over; empty as soon as all are. */
  #lateOf(agents: readonly Agent[], ms: number): Promise<readonly string[]> {
    const { scope } = this.#task
    return new Promise((resolve) => {
      const timer = scope.timers.set(ms, () =>
        resolve(agents.flatMap(({ handle, result }) => (result === undefined ? [handle.id] : []))),
      )
      const forget = scope.onEnd(() => scope.timers.clear(timer))
      all(agents).then(() => {
        scope.timers.clear(timer)
        forget()
        resolve([])
      })
    })
  }

  /** The node is through: what it has not gathered is cancelled, and that is an error. */
  end(): void {
    const left = [...this.#agents.values()]
    if (left.length === 0) return
    this.#agents.clear()
    for (const { controller } of left) controller.abort(new Error('its node has ended'))
    const names = left.map(({ handle }) => `"${handle.id}"`).join(', ')
    throw new SluiceError(
      'AGENTS_UNGATHERED',
      `node "${this.#task.node.name}" ended without gathering what it had spawned: ${names}. They were cancelled; await ctx.gather(handles) before it returns.`,
      { node: this.#task.node.name },
    )
  }
}

const all = (agents: readonly Agent[]): Promise<readonly SubAgentResult[]> =>
  Promise.all(agents.map(({ ended }) => ended))

function done(agent: Agent, end: Omit<SubAgentResult, 'id' | 'name'>): SubAgentResult {
  agent.result = Object.freeze({ ...agent.handle, ...end })
  return agent.result
}
