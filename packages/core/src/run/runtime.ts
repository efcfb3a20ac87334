import type { ChatModel } from '../chat/model.ts'
import { SluiceError, showError } from '../errors/error.ts'
import type { GraphPlan, Runnable } from '../graph/graph.ts'
import type { JsonObject } from '../json/json.ts'
import type { Policy } from '../seams/policy.ts'
import type { Warning } from '../seams/site.ts'
import { type Tool, toolTable } from '../tools/tool.ts'
import { conduct } from './engine.ts'
import type { RunEvent, Sink, Status } from './event.ts'
import { Gates } from './gates.ts'
import { type Limits, readLimits } from './limits.ts'
import { type Platform, platform } from './platform.ts'
import { type RunEnd, type RunOptions, RunScope } from './scope.ts'
import { EventQueue } from './stream.ts'

export interface RuntimeOptions {
  /** In the order they are consulted. */
  readonly policies?: readonly Policy[]
  /** Tools that graphs and policies may call by name. */
  readonly tools?: readonly Tool[]
  /** Models by the name that graphs ask for. */
  readonly models?: (name: string) => ChatModel | undefined
  readonly limits?: Partial<Limits>
  /** `false`: models are asked for whole responses even where somebody listens. */
  readonly streams?: boolean
  readonly platform?: Platform
}

/** How a run ended, and what was noticed on the way. */
export interface RunOutcome<State> {
  readonly status: Status
  readonly runId: string
  /** The final state, or what the graph makes of it; only after `completed`. */
  readonly state: State
  /** The very object that was thrown; only after `failed` and `cancelled`. */
  readonly error?: unknown
  /** Substitutions, retries, clamped delays, what policies warned of; the first 1,000. */
  readonly warnings: readonly Warning[]
  readonly counts: {
    readonly supersteps: number
    readonly retries: number
    readonly consultations: number
    readonly decisions: number
  }
}

/** What a process runs graphs with: its policies, tools, models and limits. Graphs cannot reach or change it. */
export class Runtime {
  readonly gates: Gates
  readonly limits: Limits
  readonly models: (name: string) => ChatModel | undefined
  readonly streams: boolean
  readonly platform: Platform
  readonly #tools: ReadonlyMap<string, Tool>

  /** @throws SluiceError `RUNTIME_CONFIG` for an option that is none, `TOOL_DUPLICATE` for two tools of one name, `LIMIT_INVALID` for a limit that is none. */
  constructor(options: RuntimeOptions = {}) {
    checkOptions(options)
    this.gates = new Gates(options.policies ?? [])
    this.limits = readLimits(options.limits)
    this.models = options.models ?? (() => undefined)
    this.streams = options.streams ?? true
    this.platform = options.platform ?? platform
    this.#tools = toolTable(options.tools ?? [])
    Object.freeze(this)
  }

  /** @throws SluiceError `TOOL_UNKNOWN` listing the tools there are. */
  tool(name: string): Tool {
    const found = this.#tools.get(name)
    if (found !== undefined) return found
    throw new SluiceError(
      'TOOL_UNKNOWN',
      `there is no tool "${name}"; tools are: ${[...this.#tools.keys()].join(', ') || 'none'}.`,
      { tool: name },
    )
  }

  /** Runs a graph to its end. Rejects with the very error that ended it, if one did. */
  async run<State, Update>(
    graph: Runnable<State, Update>,
    input?: Update,
    options: RunOptions = {},
  ): Promise<RunOutcome<State>> {
    const outcome = await this.settle(graph, input, options)
    if (outcome.status === 'failed' || outcome.status === 'cancelled') throw outcome.error
    return outcome
  }

  /** Runs a graph to its end and says how it ended, also when it failed. */
  settle<State, Update>(
    graph: Runnable<State, Update>,
    input?: Update,
    options: RunOptions = {},
  ): Promise<RunOutcome<State>> {
    return this.#start(graph.plan, input, options, null) as Promise<RunOutcome<State>>
  }

  /**
   * Runs a graph and yields each event as it arises; the last one is `run_end`. Leaving the loop early cancels the run. A run
   * waits for a slow reader, within its time, when 1,024 events are unread.
   */
  stream<State, Update>(
    graph: Runnable<State, Update>,
    input?: Update,
    options: RunOptions = {},
  ): AsyncIterableIterator<RunEvent> {
    const controller = new AbortController()
    const queue = new EventQueue(() =>
      controller.abort(new SluiceError('STREAM_CLOSED', 'the stream was closed before its last event.')),
    )
    const signal =
      options.signal === undefined ? controller.signal : AbortSignal.any([options.signal, controller.signal])
    this.#start(graph.plan, input, { ...options, signal }, queue).then(() => queue.close())
    return queue
  }

  async #start(plan: GraphPlan, input: unknown, options: RunOptions, sink: Sink | null): Promise<RunOutcome<unknown>> {
    const scope = new RunScope(this, plan, options, sink)
    if (sink !== null) scope.emit({ type: 'run_start', graphName: plan.name, runId: scope.runId })
    const end = await conduct(scope, input)
    if (sink !== null) scope.emit({ type: 'run_end', ...shownEnd(end) })
    return outcomeOf(scope, end)
  }
}

const OPTIONS = ['policies', 'tools', 'models', 'limits', 'streams', 'platform']

/** A misspelt option would mean a runtime without policies, and nobody would notice. */
function checkOptions(options: RuntimeOptions): void {
  const unknown = Object.keys(options).find((name) => !OPTIONS.includes(name))
  if (unknown !== undefined) {
    throw new SluiceError('RUNTIME_CONFIG', `a runtime has no option "${unknown}"; options are: ${OPTIONS.join(', ')}.`)
  }
  for (const policy of options.policies ?? []) {
    if (typeof policy?.subscribes === 'function' && typeof policy.consult === 'function') continue
    throw new SluiceError(
      'RUNTIME_CONFIG',
      'a runtime was given a policy that is none; make it with policy({ name, seams }).',
    )
  }
}

function shownEnd({ status, result, error }: RunEnd): {
  status: Status
  result?: JsonObject
  error?: ReturnType<typeof showError>
} {
  return status === 'completed' ? { status, result } : { status, error: showError(error) }
}

function outcomeOf(scope: RunScope, { status, result, error }: RunEnd): RunOutcome<unknown> {
  return {
    status,
    runId: scope.runId,
    state: result,
    error,
    warnings: scope.warnings,
    counts: {
      supersteps: scope.step,
      retries: scope.retries,
      consultations: scope.consultedCount,
      decisions: scope.decidedCount,
    },
  }
}

let defaultRuntime: Runtime | undefined
let sealed = false

/**
 * Sets the runtime that `graph.run()` uses in this process: once, before its first run.
 *
 * @throws SluiceError `RUNTIME_SEALED` when it was set before, or a run has already used the built-in one.
 */
export function setDefaultRuntime(runtime: Runtime): void {
  if (sealed)
    throw new SluiceError(
      'RUNTIME_SEALED',
      'the default runtime is set once, before the first run; it can no longer be changed.',
    )
  sealed = true
  defaultRuntime = runtime
}

/** The process's runtime: the one that was set, else one without policies, tools or models. */
export function getDefaultRuntime(): Runtime {
  sealed = true
  defaultRuntime ??= new Runtime()
  return defaultRuntime
}

/** A runtime of your own, beside the process's default one. */
export const createRuntime = (options: RuntimeOptions = {}): Runtime => new Runtime(options)
