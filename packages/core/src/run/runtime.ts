import type { ChatModel } from '../chat/model.ts'
import { SluiceError, showError } from '../errors/error.ts'
import type { GraphPlan, Runnable } from '../graph/graph.ts'
import type { Json, JsonObject } from '../json/json.ts'
import type { DecisionSink } from '../seams/decision.ts'
import { DecisionWriter } from '../seams/decision-log.ts'
import { explainOrder } from '../seams/order.ts'
import type { Policy } from '../seams/policy.ts'
import { readRules } from '../seams/rules.ts'
import { Shadows } from '../seams/shadow.ts'
import type { Warning } from '../seams/site.ts'
import { MemoryStore } from '../store/memory.ts'
import type { Ask } from '../store/records.ts'
import { type Awaitable, type Line, type LineSummary, MAIN, type Store } from '../store/store.ts'
import { type Tool, toolTable } from '../tools/tool.ts'
import { Gates } from './calls/gates.ts'
import { Cancel } from './cancel.ts'
import { conduct, readInput } from './engine.ts'
import type { RunEvent, Sink, Status } from './event.ts'
import { type Limits, readLimits, requireTime } from './limits.ts'
import { type Platform, platform } from './platform.ts'
import { type RunEnd, type RunOptions, RunScope, type StartOptions } from './scope.ts'
import { EventQueue, type StreamMode, wantedBy } from './stream.ts'
import { type ForkOptions, forkThread } from './threads/fork.ts'
import { requirePrincipal } from './threads/labels-kept.ts'
import type { Recording } from './threads/recording.ts'
import { runOnThread, type Taking } from './threads/thread-run.ts'
import {
  compactThread,
  type HistoryEntry,
  historyOf,
  type LineOptions,
  type StandsAt,
  stateAt,
  updateState,
} from './threads/threads.ts'

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
  /** Where threads are kept; without it, in the process's memory. */
  readonly store?: Store
  /**
   * Checks an answer against the JSON Schema of what was asked; throws, or rejects with, what is wrong. Without it, a policy's
   * question can be answered only where its schema says no more than `type`, `enum` and `const`. An error with the code
   * `JSON_SCHEMA` says that the schema itself cannot be used: it refuses an answer that nobody else checks.
   */
  readonly checkJson?: (schema: JsonObject, value: Json) => Awaitable<void>
  /** Throws, or rejects with, what is wrong with an expression that says who may answer a question. Without it, any text is taken. */
  readonly checkApprovers?: (expression: string) => Awaitable<void>
  /** Takes a record of each half that policies are consulted about. */
  readonly decisions?: DecisionSink
  /** What calls came to in an earlier run: handed out in place of making them. */
  readonly recording?: Recording
  readonly platform?: Platform
}

export interface StreamOptions extends RunOptions {
  /** What is yielded; `events` without it. */
  readonly mode?: StreamMode | readonly StreamMode[]
  /** Answers to what the thread asks, in place of an input. */
  readonly resume?: unknown
  /** Goes on with a thread that was cut off, in place of an input. */
  readonly continue?: boolean
}

/** How a run ended, and what was noticed on the way. */
export interface RunOutcome<State> {
  readonly status: Status
  readonly runId: string
  /** The final state, or what the graph makes of it; after `paused` the state before the superstep that waits. */
  readonly state: State
  /** The very object that was thrown; only after `failed` and `cancelled`. */
  readonly error?: unknown
  /** The questions it waits for; only after `paused`. */
  readonly asks: readonly Ask[]
  /** Of a run on a thread: which one, and the sequence number of its last record. */
  readonly thread?: string
  readonly branch?: string
  readonly at?: number
  /** Substitutions, retries, clamped delays, what policies warned of; the first 1,000. */
  readonly warnings: readonly Warning[]
  /** What went wrong in own middleware too late to count; the first 1,000. */
  readonly notes: readonly string[]
  readonly counts: {
    readonly supersteps: number
    readonly retries: number
    readonly consultations: number
    readonly decisions: number
  }
}

/** The events of a run as they arise, and what it came to. */
export interface RunStream<State> extends AsyncIterableIterator<RunEvent> {
  /** How the run ended, also when it failed: the same as {@link Runtime.settle} says. It never rejects. */
  readonly outcome: Promise<RunOutcome<State>>
  /**
   * Cancels the run (`RUN_CANCELLED`, with the reason as its cause); its events go on to `run_end`, for whoever reads them. Does
   * nothing once it has ended.
   */
  cancel(reason?: unknown): void
}

/** What a process runs graphs with: its policies, tools, models and limits. Graphs cannot reach or change it. */
export class Runtime {
  readonly gates: Gates
  readonly limits: Limits
  readonly models: (name: string) => ChatModel | undefined
  readonly streams: boolean
  readonly store: Store
  readonly checkJson: RuntimeOptions['checkJson']
  readonly checkApprovers: RuntimeOptions['checkApprovers']
  readonly recording: Recording | undefined
  /** Where decisions are written down. */
  readonly decisions: DecisionWriter | undefined
  /** The policies in shadow. */
  readonly shadows = new Shadows()
  readonly platform: Platform
  readonly #tools: ReadonlyMap<string, Tool>
  readonly #gates = new WeakMap<GraphPlan, Gates>()
  readonly #running = new Set<RunScope>()
  readonly #underWay = new Set<Promise<unknown>>()
  #draining = false

  /** @throws SluiceError `RUNTIME_CONFIG` for an option that is none, `TOOL_DUPLICATE` for two tools of one name, `LIMIT_INVALID` for a limit that is none. */
  constructor(options: RuntimeOptions = {}) {
    checkOptions(options)
    this.recording = options.recording
    this.gates = new Gates(options.policies ?? [], [], [], this.recording)
    this.limits = readLimits(options.limits)
    this.models = options.models ?? (() => undefined)
    this.streams = options.streams ?? true
    this.store = options.store ?? new MemoryStore()
    this.checkJson = options.checkJson
    this.checkApprovers = options.checkApprovers
    this.decisions = options.decisions && new DecisionWriter(options.decisions)
    this.platform = options.platform ?? platform
    this.#tools = toolTable(options.tools ?? [])
    Object.freeze(this)
  }

  /** The ways through the seams for runs of a graph, through its own middleware and past the policies. */
  gatesOf(plan: GraphPlan): Gates {
    if (plan.middleware.length === 0) return this.gates
    const known = this.#gates.get(plan)
    if (known !== undefined) return known
    const gates = new Gates(this.gates.policies, plan.middleware, [], this.recording)
    this.#gates.set(plan, gates)
    return gates
  }

  /** Who is consulted about a run of the graph, seam by seam, in order: for people. */
  explain({ plan }: { readonly plan: GraphPlan }): string {
    return explainOrder(plan.middleware, this.gates.policies)
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

  /**
   * Lets the process end: each run stops before its next call or superstep, with status `cancelled` and the code
   * `RUN_DRAINED`, and a thread goes on elsewhere. Settles when none is under way any more, policies in shadow have answered or
   * their time is over, and decisions are written. Runs begun later stop at once.
   */
  async drain(): Promise<void> {
    this.#draining = true
    for (const run of this.#running) run.drain()
    while (this.#underWay.size > 0) await Promise.all(this.#underWay)
    await this.shadows.settled()
    await this.decisions?.settled()
  }

  /** A run of this runtime has begun; told by the run. */
  began(run: RunScope): void {
    this.#running.add(run)
    if (this.#draining) run.drain()
  }

  ended(run: RunScope): void {
    this.#running.delete(run)
  }

  /** Runs a graph to its end. Rejects with the very error that ended it, if one did. */
  async run<State, Update>(
    graph: Runnable<State, Update>,
    input?: Update,
    options: RunOptions = {},
  ): Promise<RunOutcome<State>> {
    return orThrow(await this.#start(graph.plan, { kind: 'start', input }, options, null))
  }

  /** Runs a graph to its end and says how it ended, also when it failed. */
  settle<State, Update>(
    graph: Runnable<State, Update>,
    input?: Update,
    options: RunOptions = {},
  ): Promise<RunOutcome<State>> {
    return this.#start(graph.plan, { kind: 'start', input }, options, null) as Promise<RunOutcome<State>>
  }

  /**
   * Answers what a paused thread asks and goes on with it: a value for its only question, or values by key. An object whose
   * keys are no open questions is a value; a Map is always by key. Some may be answered and others later; nodes whose
   * questions are all answered go on.
   *
   * Rejects with the error that ended the run, or that refused it: `THREAD_UNKNOWN`, `THREAD_NOT_PAUSED`, `THREAD_BUSY`,
   * `ASK_UNKNOWN`, `ANSWER_AMBIGUOUS`, `ANSWER_INVALID`, `ASK_EXPIRED`, `ASKER_MISSING`.
   */
  async resume<State, Update>(
    graph: Runnable<State, Update>,
    thread: string,
    answers: unknown,
    options: RunOptions = {},
  ): Promise<RunOutcome<State>> {
    return orThrow(await this.#start(graph.plan, { kind: 'resume', answers }, { ...options, thread }, null))
  }

  /**
   * Goes on with a thread whose last run failed, was cut off or was cancelled: what had settled is not done again.
   *
   * Rejects with the error that ended the run, or that refused it: `THREAD_UNKNOWN`, `THREAD_FINISHED`, `THREAD_PAUSED`,
   * `THREAD_STUCK`, `THREAD_BUSY`.
   */
  async continue<State, Update>(
    graph: Runnable<State, Update>,
    thread: string,
    options: RunOptions = {},
  ): Promise<RunOutcome<State>> {
    return orThrow(await this.#start(graph.plan, { kind: 'continue' }, { ...options, thread }, null))
  }

  /**
   * Runs a graph and yields each event as it arises; the last one is `run_end`. Leaving the loop early cancels the run, and a
   * thread can be continued from there. A run waits for a slow reader, within its time, when 1,024 events are unread.
   *
   * @throws SluiceError `STREAM_MODE` for an unknown mode; `STREAM_INPUT` for more than one of input, `resume`, `continue`.
   */
  stream<State, Update>(
    graph: Runnable<State, Update>,
    input?: Update,
    { mode = 'events', resume, continue: goOn, ...options }: StreamOptions = {},
  ): RunStream<State> {
    const taking = takingOf(input, resume, goOn)
    const signal = new Cancel()
    const queue = new EventQueue(
      () => signal.abort(new SluiceError('STREAM_CLOSED', 'the stream was closed before its last event.')),
      wantedBy(mode),
    )
    const unlink = cancelWith(signal, options.signal)
    const outcome = this.#start(graph.plan, taking, { ...options, signal }, queue).finally(() => {
      unlink()
      queue.close()
    })
    return Object.assign(queue, {
      outcome: outcome as Promise<RunOutcome<State>>,
      cancel: (reason?: unknown) => signal.abort(reason),
    })
  }

  /** Begins a branch of a thread: what is before is shared, and what comes after is its own; see {@link forkThread}. */
  fork(thread: string, options?: ForkOptions): Promise<Line> {
    return forkThread(this, thread, options)
  }

  /** Every record of a thread's branch, the oldest first. */
  history(thread: string, options?: LineOptions): Promise<readonly HistoryEntry[]> {
    return historyOf(this, thread, options)
  }

  /** The state of a thread, now or as of a record of its history; see {@link stateAt}. */
  stateAt<State, Update>(
    graph: Runnable<State, Update>,
    thread: string,
    options?: LineOptions & { readonly at?: number },
  ): Promise<StandsAt<State>> {
    return stateAt<State>(this, graph.plan, thread, options)
  }

  /** Changes a thread's state by hand, through the reducers, and says the sequence number of that; see {@link updateState}. */
  updateState<State, Update>(
    graph: Runnable<State, Update>,
    thread: string,
    values: Update,
    options?: LineOptions & { readonly create?: boolean },
  ): Promise<number> {
    return updateState(this, graph.plan, thread, values, options)
  }

  /** Drops a finished thread's past but for its state; see {@link compactThread}. */
  compact<State, Update>(graph: Runnable<State, Update>, thread: string, options?: LineOptions): Promise<number> {
    return compactThread(this, graph.plan, thread, options)
  }

  /** Every branch of a thread, the last written first; empty for an unknown thread. */
  async branches(thread: string): Promise<readonly LineSummary[]> {
    return this.store.lines(thread)
  }

  #start(plan: GraphPlan, taking: Taking, options: StartOptions, sink: Sink | null): Promise<RunOutcome<unknown>> {
    const alone = options.thread === undefined && taking.kind === 'start'
    const run = alone
      ? this.#startAlone(plan, taking.input, options, sink)
      : this.#startOnThread(plan, taking, options, sink)
    this.#underWay.add(run)
    return run.finally(() => this.#underWay.delete(run))
  }

  async #startAlone(
    plan: GraphPlan,
    input: unknown,
    options: StartOptions,
    sink: Sink | null,
  ): Promise<RunOutcome<unknown>> {
    const scope = new RunScope(this, plan, options, sink)
    if (sink !== null) scope.emit({ type: 'run_start', graphName: plan.name, runId: scope.runId })
    const conducted = await conductFrom(scope, input, options)
    const end = (await scope.hooks?.end(conducted, [])) ?? conducted
    if (sink !== null) scope.emit({ type: 'run_end', ...shownEnd(end, []) })
    return outcomeOf(scope, end)
  }

  async #startOnThread(
    plan: GraphPlan,
    taking: Taking,
    options: StartOptions,
    sink: Sink | null,
  ): Promise<RunOutcome<unknown>> {
    const { end, scope, asks, at } = await runOnThread({ runtime: this, plan, taking, options, sink })
    if (sink !== null) sink.push({ type: 'run_end', ...shownEnd(end, asks), path: [plan.name] })
    const { thread, branch = MAIN } = options
    if (scope !== undefined) return outcomeOf(scope, end, { asks, thread, branch, at })
    return {
      status: end.status,
      runId: '',
      state: undefined,
      error: end.error,
      warnings: [],
      notes: [],
      counts: NONE,
      asks,
      thread,
      branch,
      at,
    }
  }
}

/** Cancels it when `signal` aborts, for the same reason. */
function cancelWith(cancel: Cancel, signal: AbortSignal | undefined): () => void {
  if (signal === undefined) return () => {}
  const abort = () => cancel.abort(signal.reason)
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort, { once: true })
  return () => signal.removeEventListener('abort', abort)
}

/** How a stream begins. */
function takingOf(input: unknown, resume: unknown, goOn: boolean | undefined): Taking {
  const given = [input !== undefined, resume !== undefined, goOn === true].filter(Boolean).length
  if (given > 1) {
    throw new SluiceError('STREAM_INPUT', 'a stream takes one of an input, "resume" with answers, and "continue".')
  }
  if (resume !== undefined) return { kind: 'resume', answers: resume }
  return goOn ? { kind: 'continue' } : { kind: 'start', input }
}

const NONE = { supersteps: 0, retries: 0, consultations: 0, decisions: 0 }

function orThrow<State>(outcome: RunOutcome<unknown>): RunOutcome<State> {
  if (outcome.status === 'failed' || outcome.status === 'cancelled') throw outcome.error
  return outcome as RunOutcome<State>
}

function conductFrom(scope: RunScope, input: unknown, options: StartOptions): Promise<RunEnd> | RunEnd {
  try {
    requireTime(scope.timeoutMs)
    requirePrincipal(scope.runtime.gates.policies, options)
    return conduct(scope, readInput(scope.plan, input ?? {}))
  } catch (error) {
    return { status: 'failed', error, stop: false }
  }
}

const OPTIONS = [
  'policies',
  'tools',
  'models',
  'limits',
  'streams',
  'store',
  'checkJson',
  'checkApprovers',
  'decisions',
  'recording',
  'platform',
]

/** A misspelt option would mean a runtime without policies, and nobody would notice. */
function checkOptions(options: RuntimeOptions): void {
  const unknown = Object.keys(options).find((name) => !OPTIONS.includes(name))
  if (unknown !== undefined) {
    throw new SluiceError('RUNTIME_CONFIG', `a runtime has no option "${unknown}"; options are: ${OPTIONS.join(', ')}.`)
  }
  for (const policy of options.policies ?? []) {
    if (typeof policy?.subscribes === 'function' && typeof policy.consult === 'function') {
      readRules(policy, policy)
      continue
    }
    throw new SluiceError(
      'RUNTIME_CONFIG',
      'a runtime was given a policy that is none; make it with policy({ name, seams }).',
    )
  }
}

function shownEnd(
  { status, result, error }: RunEnd,
  asks: readonly Ask[],
): { status: Status; result?: JsonObject; error?: ReturnType<typeof showError>; asks?: readonly Ask[] } {
  if (status === 'completed') return { status, result }
  return status === 'paused' ? { status, asks } : { status, error: showError(error) }
}

function outcomeOf(
  scope: RunScope,
  { status, result, error }: RunEnd,
  stands?: Pick<RunOutcome<unknown>, 'asks' | 'thread' | 'branch' | 'at'>,
): RunOutcome<unknown> {
  return {
    status,
    runId: scope.runId,
    state: result ?? (status === 'paused' && scope.plan.boundary === undefined ? scope.lastState : undefined),
    error,
    asks: [],
    warnings: [...scope.warnings],
    notes: [...scope.notes],
    counts: {
      supersteps: scope.step,
      retries: scope.retries,
      consultations: scope.consultedCount,
      decisions: scope.decidedCount,
    },
    ...stands,
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
