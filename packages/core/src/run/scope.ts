import type { ChatRequest, ChatResponse } from '../chat/chat.ts'
import { SluiceError, showError } from '../errors/error.ts'
import type { GraphPlan } from '../graph/graph.ts'
import type { Json, JsonObject } from '../json/json.ts'
import type { Consultation } from '../seams/consultation.ts'
import type { Principal } from '../seams/decision.ts'
import type { DecisionPlace } from '../seams/decision-log.ts'
import { askerOf } from '../seams/failure.ts'
import type { KeptValues } from '../seams/kept.ts'
import type { Policy } from '../seams/policy.ts'
import type { Shadows } from '../seams/shadow.ts'
import type { Decision, LogLevel, Site, Timers, Warning } from '../seams/site.ts'
import { never } from '../seams/site.ts'
import type { Subject } from '../seams/subject.ts'
import type { Schema } from '../state/schema.ts'
import type { Ready, ThreadRecord, Untimed, Within } from '../store/records.ts'
import { MAIN } from '../store/store.ts'
import type { ChildOptions } from '../tools/inside.ts'
import { type Gates, gatesOf } from './calls/gates.ts'
import { callModelFrom, runToolFrom } from './calls/inner-calls.ts'
import type { CancelSignal } from './cancel.ts'
import { Beside } from './edge.ts'
import type { RunEvent, Sink, Status, Unplaced } from './event.ts'
import type { Limits } from './limits.ts'
import type { Runtime } from './runtime.ts'
import { GraphHooks } from './steps/graph-hooks.ts'
import type { Task } from './task.ts'
import { keptOf, labelsOf } from './threads/labels-kept.ts'
import { RunMemories } from './threads/memories.ts'
import type { Position } from './threads/position.ts'
import { rememberSchema } from './threads/schemas.ts'
import { snapshotOf } from './threads/snapshot.ts'
import type { Thread } from './threads/thread.ts'

/** What a run came to. */
export interface RunEnd {
  readonly status: Status
  /** The state, or what the graph makes of it; only after `completed`. */
  readonly result?: JsonObject
  readonly error?: unknown
  /** Whether it was ended from outside, so that the runs above it end too. */
  readonly stop: boolean
}

/** Where in a thread a run is written down. */
export interface OnThread {
  readonly thread: Thread
  readonly within: Within
  /** What the keys of asks inside it begin with; empty for the outermost run. */
  readonly prefix: string
  /** Where it stands; absent in a run that nothing was written about yet. */
  readonly position: Position | undefined
  /** Whether it goes on in the middle, and not from its input. */
  readonly begun: boolean
  /** Tells this run from all others of all threads; the same when it goes on elsewhere. */
  readonly address: string
  /** The ids of the outermost run. */
  readonly ids?: { readonly runId: string; readonly turn: string }
  /** Whether the next run of its node goes on from where it ends. */
  readonly remember?: boolean
}

export interface RunOptions {
  /** Cancels the run. */
  readonly signal?: AbortSignal
  /** Milliseconds; at most the runtime's limit. */
  readonly timeoutMs?: number
  /** Handed to every node and tool as `ctx.context`, and to the runs that they start. It is never stored: give it again on a resume. */
  readonly context?: unknown
  /** The thread it goes on: everything is written down, so that it may pause, be cut off, and go on elsewhere. */
  readonly thread?: string
  /** The branch of the thread; `main` without it. */
  readonly branch?: string
  /** The id of the run, which nobody else may have; made up without it. */
  readonly runId?: string
  /** On whose behalf it runs; stands in decision records and is told to nobody else. What policies keep by principal is theirs. */
  readonly principal?: Principal
  /** The id of the principal who began the turn, where that is another one: what policies keep by principal is theirs then. */
  readonly startedBy?: string
}

/** Options of a run as its runtime starts it. */
export type StartOptions = Omit<RunOptions, 'signal'> & { readonly signal?: CancelSignal }

type ScopeOptions = StartOptions & Omit<ChildOptions, 'signal'> & { readonly onActive?: () => void }

/** At most this many warnings are kept for the outcome; events go on. */
const MAX_WARNINGS = 1_000

/** The clock is read every so many supersteps at most: fewer while they are slow, for reading it costs as much as a fast one. */
const MOST_STEPS_BETWEEN_LOOKS = 64
const SLOW_MS = 1
const MS_BETWEEN_TURNS = 10

/** One run: what it may spend, who listens, and how it is ended from outside. */
export class RunScope implements Site {
  readonly runtime: Runtime
  readonly plan: GraphPlan
  readonly limits: Limits
  readonly parent: RunScope | undefined
  readonly path: readonly string[]
  readonly sink: Sink | null
  readonly depth: number
  /** Milliseconds this run may take, whatever is left of its parent's. */
  readonly timeoutMs: number
  readonly endsAt: number
  readonly labels: Set<string>
  readonly kept: KeptValues
  readonly consultations = new Set<Consultation>()
  readonly warnings: Warning[]
  /** What went wrong too late to count. */
  readonly notes: string[]
  /** The ways through the seams: past the runtime's policies, and through the middleware of this run's graph. */
  readonly gates: Gates
  readonly hooks: GraphHooks | undefined
  /** The task that started it; absent for an outermost run. */
  readonly startedBy: Task | undefined
  /** The values of its state, as of the last superstep. */
  values: { readonly state: JsonObject } | undefined
  /** What the hooks around the run share. */
  #scratch: Record<string, unknown> | undefined
  /** Policies whose own call this run is nested in. */
  readonly nestedIn: readonly Policy[]
  readonly on: OnThread | undefined
  /** What the keys of asks inside it begin with; empty for the outermost run. */
  readonly prefix: string
  /** The tasks of the superstep in which it can only wait for people, in their order. */
  waiting: readonly string[] = []
  /** The updates of a superstep could not be merged: going on would come to the same. */
  stuck = false
  /** Records of tasks that are through and not written down yet, because their whole superstep may be through in a moment. */
  readonly unwritten = new Set<Untimed>()
  /** What of these was left, here and further in, when the run was ended. */
  left: readonly Untimed[] = []
  /** Runs inside it whose hooks are still to be told how they ended. */
  readonly endsInside = new Set<Promise<unknown>>()
  stopped = false
  draining = false
  /** Calls of the run and of those inside it that are under way. */
  #flying = 0
  step = 0
  /** How many tasks the superstep has. */
  superstepSize = 0
  retries = 0
  /** How many supersteps of its turn are through, those of earlier runs included; counted on a thread. */
  superstep = 0
  consultedCount = 0
  decidedCount = 0
  #runId: string | undefined
  #controller: AbortController | undefined
  #reason: unknown
  #ended: ((end: RunEnd) => void) | undefined
  /** How it was ended before it had begun. */
  #early: RunEnd | undefined
  #calls = 0
  #timer: unknown
  #lastTurn: number
  #lookedAt: number
  #stepsBetweenLooks = 1
  #nextLook = 2
  #cancelling: (() => void) | undefined
  #memories: RunMemories | undefined
  #decisions: DecisionPlace | undefined
  #decisionCount: number
  readonly #options: ScopeOptions
  readonly #children = new Set<RunScope>()
  readonly #endings = new Set<() => void>()

  constructor(
    runtime: Runtime,
    plan: GraphPlan,
    options: ScopeOptions,
    sink: Sink | null,
    startedBy?: Task,
    on?: OnThread,
    prefix = on?.prefix ?? '',
  ) {
    const parent = startedBy?.scope
    this.runtime = runtime
    this.plan = plan
    this.startedBy = startedBy
    this.limits = runtime.limits
    this.parent = parent
    this.path = parent === undefined ? [plan.name] : [...parent.path, startedBy?.node.name ?? '', plan.name]
    this.sink = sink
    this.depth = parent === undefined ? 1 : parent.depth + 1
    this.on = on
    this.prefix = prefix
    this.#runId = on?.ids?.runId ?? options.runId
    this.superstep = on?.begun ? (on.position?.supersteps ?? 0) : 0
    this.labels = parent?.labels ?? labelsOf(on)
    this.kept = parent?.kept ?? keptOf(on, runtime.store, options.startedBy ?? options.principal?.id)
    this.#decisionCount = on?.position?.decisions ?? 0
    this.warnings = parent?.warnings ?? []
    this.notes = parent?.notes ?? []
    this.gates = gatesOf(runtime, plan, parent, options.middleware)
    for (const { name, kept } of this.gates.own) if (kept !== undefined) this.kept.declare(askerOf({ name }), kept)
    this.hooks = this.gates.graphHooks.length === 0 ? undefined : new GraphHooks(this)
    this.nestedIn = parent?.nestedIn ?? []
    this.#options = options
    const now = runtime.platform.now()
    this.#lookedAt = this.#lastTurn = now
    this.timeoutMs = Math.min(options.timeoutMs ?? this.limits.timeoutMs, this.limits.timeoutMs)
    this.endsAt = Math.min(now + this.timeoutMs, parent?.endsAt ?? Number.POSITIVE_INFINITY)
  }

  get runId(): string {
    this.#runId ??= this.runtime.platform.uuid()
    return this.#runId
  }
  get rootRunId(): string {
    return this.parent?.rootRunId ?? this.on?.ids?.turn ?? this.runId
  }
  get context(): unknown {
    return this.#options.context ?? this.parent?.context
  }
  get principal(): Principal | undefined {
    return this.root.#options.principal
  }
  /** Something happens in it, which is a sign of life of the node that started it. */
  active(): void {
    this.#options.onActive?.()
  }
  /** Whether somebody is told of its progress. */
  get watched(): boolean {
    return this.#options.onProgress !== undefined
  }
  /** Tells whoever started this run how far it is. */
  progress(nodes: readonly string[]): void {
    this.#options.onProgress?.({ step: this.step, nodes })
  }
  get thread(): Thread | undefined {
    return this.on?.thread
  }
  /** Whether it goes on in the middle, and not from its input. */
  get resuming(): boolean {
    return this.on?.begun ?? false
  }
  /** The state as of the last superstep. */
  get lastState(): JsonObject {
    return this.values?.state ?? {}
  }
  get scratch(): Record<string, unknown> {
    this.#scratch ??= {}
    return this.#scratch
  }
  /** The way down to it in its thread. */
  get within(): Within {
    return this.on?.within ?? []
  }
  /** Whether something was written down by this run, or by one inside it. */
  isWithin(within: Within): boolean {
    return this.within.every((step, i) => within[i] === step)
  }
  get timers(): Timers {
    return this.runtime.platform
  }
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.stopped) this.#controller.abort(this.#reason)
    }
    return this.#controller.signal
  }

  /** Begins: `ended` is told once how the run came to its end. From here on time and the caller's signal can end it. */
  begin(ended: (end: RunEnd) => void): void {
    if (this.parent?.stopped) this.cancel(this.parent.#reason)
    if (this.#early !== undefined) {
      ended(this.#early)
      return
    }
    this.#ended = ended
    if (this.parent !== undefined) this.parent.#children.add(this)
    else this.runtime.began(this)
    const { signal } = this.#options
    if (signal !== undefined) {
      const cancel = () => this.cancel(signal.reason)
      signal.addEventListener('abort', cancel, { once: true })
      this.#cancelling = cancel
    }
    const { platform } = this.runtime
    this.#timer = platform.set(Math.max(0, this.endsAt - platform.now()), () => this.#timeOut())
    if (signal?.aborted) this.cancel(signal.reason)
  }

  /** Ends the run as it should; nothing happens when it was already ended from outside. */
  end(end: RunEnd): void {
    const ended = this.#ended
    if (ended === undefined) return
    this.#ended = undefined
    // What code still does after its run has ended neither starts nor settles.
    this.stopped = true
    this.runtime.platform.clear(this.#timer)
    if (this.#cancelling !== undefined) this.#options.signal?.removeEventListener('abort', this.#cancelling)
    if (this.parent !== undefined) this.parent.#children.delete(this)
    else this.runtime.ended(this)
    for (const consultation of this.consultations) consultation.abandon()
    this.consultations.clear()
    ended(end)
    // Whatever is still under way, nobody waits for it any more.
    for (const then of [...this.#endings]) then()
    for (const child of [...this.#children]) child.cancel(new Error(`the run of "${this.plan.name}" has ended`))
    this.#controller?.abort(end.error)
  }

  /** Calls `then` when the run ends, unless what this hands back is called before. */
  onEnd(then: () => void): () => void {
    this.#endings.add(then)
    return () => this.#endings.delete(then)
  }

  /** It comes to its own end after that of this run inside it, which never rejects. */
  ends(inside: Promise<unknown>): void {
    this.endsInside.add(inside)
    inside.then(() => this.endsInside.delete(inside))
  }

  /** Tells its superstep from all others of all threads. */
  get address(): string {
    return `${this.on?.address ?? this.runId}/${this.superstep}`
  }

  get root(): RunScope {
    return this.parent?.root ?? this
  }

  /** The process wants to end: the run stops before its next call or superstep, and goes on elsewhere. */
  drain(): void {
    this.draining = true
  }

  /** Whether a call may begin. While the process drains none does, and the last one that is under way ends the run. */
  callBegins(): boolean {
    const { root } = this
    if (root.draining) {
      root.#drained()
      return false
    }
    root.#flying++
    return true
  }

  /** A call goes on after what happened inside it. */
  callGoesOn(): void {
    this.root.#flying++
  }

  callEnds(): void {
    const { root } = this
    root.#flying--
    if (root.draining) root.#drained()
  }

  #drained(): void {
    if (this.#flying > 0) return
    const error = new SluiceError(
      'RUN_DRAINED',
      `the run of "${this.plan.name}" was stopped because its process ends; continue its thread elsewhere.`,
      { graph: this.plan.name },
    )
    this.#endEarly({ status: 'cancelled', error, stop: false })
  }

  /** Ends the run from outside: nothing in it can catch, retry or replace that. */
  stop(error: unknown): void {
    this.#endEarly({ status: 'failed', error, stop: true })
  }

  /** The same, for who would go on: it never does. */
  halt(error: unknown): Promise<never> {
    this.stop(error)
    return never()
  }

  /** Policies of that name, which are not consulted about a question that one of them put. */
  policiesNamed(name: string): readonly Policy[] {
    return [...this.nestedIn, ...this.runtime.gates.policies.filter((policy) => policy.name === name)]
  }

  /** Keeps the schema of a question, so that an answer can be checked before anything runs. */
  remember(key: string, schema: Schema): void {
    if (this.parent !== undefined) this.parent.remember(key, schema)
    else if (this.thread !== undefined) {
      rememberSchema({ plan: this.plan, store: this.runtime.store, line: this.thread.line, key }, schema)
    }
  }

  /** What runs remember that nodes of this one have started. */
  get memories(): RunMemories {
    this.#memories ??= new RunMemories(this.on?.position?.stable)
    return this.#memories
  }
  /** The same, where there are any: most runs start none. */
  get heldMemories(): RunMemories | undefined {
    return this.#memories
  }

  /** All that the next run of its node needs to know of this one. */
  get memory(): ThreadRecord {
    return { ...this.snapshot([]), within: [], time: 0 } as ThreadRecord
  }

  /** All that is needed to go on from here. */
  snapshot(next: readonly Ready[], status?: Status): Untimed & { type: 'snapshot' } {
    const { plan, runId, parent } = this
    // What is the branch's stands with its outermost run.
    const ofBranch = parent === undefined
    return snapshotOf({
      graph: plan.name,
      runId,
      turn: this.rootRunId,
      state: this.lastState,
      supersteps: this.superstep,
      next,
      labels: ofBranch ? this.labels : [],
      kept: ofBranch ? this.kept.all : [],
      decisions: ofBranch ? this.#decisionCount : 0,
      stable: this.#memories?.settled ?? this.on?.position?.stable ?? new Map(),
      status,
      ...(ofBranch && status === undefined ? { atDoor: this.on?.position?.atDoor } : {}),
    })
  }

  /** A task failed: its siblings are given up, and the run fails with the very error that was thrown. */
  fail(error: unknown): void {
    this.#endEarly({ status: 'failed', error, stop: false })
  }

  cancel(reason: unknown): void {
    this.#endEarly({ status: 'cancelled', error: this.cancelled(reason), stop: false })
  }

  cancelled(reason: unknown): SluiceError {
    const { name } = this.plan
    return new SluiceError('RUN_CANCELLED', `the run of "${name}" was cancelled.`, { graph: name }, reason)
  }

  #endEarly(end: RunEnd): void {
    if (this.#ended === undefined) {
      if (!this.stopped) this.#early = end
      this.stopped = true
      return
    }
    this.stopped = true
    this.#reason = end.error
    this.left = this.#unwrittenWithin()
    for (const child of [...this.#children]) child.#endEarly({ ...end, stop: false })
    this.end(end)
  }

  #unwrittenWithin(): readonly Untimed[] {
    return [...this.unwritten, ...[...this.#children].flatMap((child) => child.#unwrittenWithin())]
  }

  /** Time that is over for the parent too is the parent's to speak of, and ends both. */
  #timeOut(): void {
    if (this.parent !== undefined && this.parent.endsAt <= this.endsAt) {
      this.parent.#timeOut()
      return
    }
    const error = new SluiceError(
      'RUN_TIMED_OUT',
      `the run of "${this.plan.name}" timed out after ${this.timeoutMs} ms. Raise timeoutMs (--timeout).`,
      { graph: this.plan.name },
    )
    this.#endEarly({ status: 'failed', error, stop: false })
  }

  /** Books one superstep or one granted retry; ends the run instead when there is none left. */
  spendIteration(retry: boolean): void {
    const { maxIterations } = this.limits
    if (this.step + this.retries < maxIterations) {
      if (retry) this.retries++
      else this.step++
      return
    }
    const retries = this.retries === 0 ? '' : `, ${this.retries} of them retries`
    this.#endEarly({
      status: 'failed',
      stop: false,
      error: new SluiceError(
        'MAX_ITERATIONS',
        `the run of "${this.plan.name}" exceeded max iterations: ${maxIterations}${retries}. Look for a loop that never ends, or raise maxIterations.`,
        { graph: this.plan.name },
      ),
    })
  }

  /** Counts a superstep, and now and then lets timers, sockets and an abort in. */
  nextStep(): Promise<void> | undefined {
    if (this.root.draining) this.root.#drained()
    this.spendIteration(false)
    return this.step < this.#nextLook ? undefined : this.#look()
  }

  #look(): Promise<void> | undefined {
    const { platform } = this.runtime
    const now = platform.now()
    const quick = now - this.#lookedAt < SLOW_MS
    this.#stepsBetweenLooks = quick ? Math.min(this.#stepsBetweenLooks * 2, MOST_STEPS_BETWEEN_LOOKS) : 1
    this.#nextLook = this.step + this.#stepsBetweenLooks
    this.#lookedAt = now
    if (now >= this.endsAt) this.#timeOut()
    if (this.stopped || now - this.#lastTurn < MS_BETWEEN_TURNS) return undefined
    return platform.turn().then(() => {
      this.#lookedAt = this.#lastTurn = platform.now()
    })
  }

  /** An id for a tool call that no model asked for; counts within the turn. */
  nextCallId(): string {
    return this.parent?.nextCallId() ?? `call-${++this.#calls}`
  }

  /** Adds the origin to a fresh event, in place: a copy for each event would be felt. */
  emit(event: Unplaced): void {
    this.sink?.push(Object.assign(event, { path: this.path }) as RunEvent)
  }

  warn(warning: Warning): void {
    if (this.warnings.length < MAX_WARNINGS) this.warnings.push(warning)
    if (this.sink !== null) this.emit({ type: 'warning', ...warning })
  }

  note(where: string, failure: unknown): void {
    const { name, message } = showError(failure)
    const note = `${where} raised ${name}: ${message}`
    if (this.notes.length < MAX_WARNINGS) this.notes.push(note)
    this.warn({ message: `${note}; it came too late to count.` })
  }

  get decisions(): DecisionPlace | undefined {
    const { decisions: writer, platform } = this.runtime
    if (writer === undefined) return undefined
    this.#decisions ??= {
      writer,
      platform,
      ...(this.thread === undefined ? {} : placeOf(this.thread.line)),
      run: this.runId,
      ...(this.principal === undefined ? {} : { principal: this.principal }),
      next: () => this.root.#nextDecision(),
    }
    return this.#decisions
  }
  get shadows(): Shadows {
    return this.runtime.shadows
  }
  beside(): Site {
    return new Beside(this)
  }

  /** Counts on over all runs of its thread's branch. */
  #nextDecision(): number {
    this.#decisionCount++
    this.thread?.decided(this.#decisionCount)
    return this.#decisionCount
  }

  consulted(): void {
    this.consultedCount++
    if (this.parent !== undefined) this.parent.consulted()
  }

  decided(decision: Decision): void {
    this.#countDecided()
    if (this.sink !== null) this.emit({ type: 'decision', ...decision })
  }

  #countDecided(): void {
    this.decidedCount++
    if (this.parent !== undefined) this.parent.#countDecided()
  }

  emitFrom(policy: Policy, subject: Subject, name: string, data: Json): void {
    if (this.sink !== null)
      this.emit({
        type: `plugin:${policy.name}:${name}`,
        nodeName: subject.nodeName ?? '',
        nodeType: policy.name,
        data,
      })
  }

  logFrom(policy: Policy, subject: Subject, level: LogLevel, message: string): void {
    if (this.sink !== null)
      this.emit({ type: 'plugin_log', nodeName: subject.nodeName ?? '', nodeType: policy.name, level, message })
  }

  callModelFrom(
    consultation: Consultation,
    request: Omit<ChatRequest, 'model'> & { model?: string },
  ): Promise<ChatResponse> {
    return callModelFrom(this, consultation, request)
  }

  runToolFrom(consultation: Consultation, name: string, input: JsonObject): Promise<Json> {
    return runToolFrom(this, consultation, name, input)
  }
}

const placeOf = ({ thread, branch }: { readonly thread: string; readonly branch: string }) =>
  branch === MAIN ? { thread } : { thread, branch }
