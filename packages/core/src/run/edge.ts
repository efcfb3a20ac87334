import type { ChatRequest, ChatResponse } from '../chat/chat.ts'
import type { Json, JsonObject } from '../json/json.ts'
import type { Consultation } from '../seams/consultation.ts'
import type { DecisionPlace } from '../seams/decision-log.ts'
import type { KeptValues } from '../seams/kept.ts'
import type { Policy } from '../seams/policy.ts'
import type { Shadows } from '../seams/shadow.ts'
import type { Decision, LogLevel, Site, Timers, Warning } from '../seams/site.ts'
import type { Subject } from '../seams/subject.ts'
import type { CallSite } from './calls/call-site.ts'
import { callModelFrom, runToolFrom } from './calls/inner-calls.ts'
import type { Sink, Unplaced } from './event.ts'
import type { Runtime } from './runtime.ts'
import type { RunScope } from './scope.ts'

/**
 * The site of `run.after`: just outside the run, so that policies can be consulted, and make calls of their own, about a run
 * that was stopped. What stops here ends the run as a whole.
 */
export class RunEdge implements CallSite {
  readonly consultations = new Set<Consultation>()
  stopped = false
  readonly #controller = new AbortController()
  readonly #scope: RunScope
  readonly #ended: (error: unknown) => void

  constructor(scope: RunScope, ended: (error: unknown) => void) {
    this.#scope = scope
    this.#ended = ended
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }
  get runtime(): Runtime {
    return this.#scope.runtime
  }
  get sink(): Sink | null {
    return this.#scope.sink
  }
  get context(): unknown {
    return this.#scope.context
  }
  get path(): readonly string[] {
    return this.#scope.path
  }
  get timers(): Timers {
    return this.#scope.timers
  }
  get kept(): KeptValues {
    return this.#scope.kept
  }
  get labels(): Set<string> {
    return this.#scope.labels
  }
  get decisions(): DecisionPlace | undefined {
    return this.#scope.decisions
  }
  get shadows(): Shadows {
    return this.#scope.shadows
  }
  beside(): Site {
    return new Beside(this.#scope)
  }
  stop(error: unknown): void {
    if (this.stopped) return
    this.stopped = true
    for (const consultation of this.consultations) consultation.abandon()
    this.#ended(error)
    this.#controller.abort(error)
  }
  emit(event: Unplaced): void {
    this.#scope.emit(event)
  }
  nextCallId(): string {
    return this.#scope.nextCallId()
  }
  warn(warning: Warning): void {
    this.#scope.warn(warning)
  }
  note(where: string, failure: unknown): void {
    this.#scope.note(where, failure)
  }
  consulted(): void {
    this.#scope.consulted()
  }
  decided(decision: Decision): void {
    this.#scope.decided(decision)
  }
  emitFrom(policy: Policy, subject: Subject, name: string, data: Json): void {
    this.#scope.emitFrom(policy, subject, name, data)
  }
  logFrom(policy: Policy, subject: Subject, level: LogLevel, message: string): void {
    this.#scope.logFrom(policy, subject, level, message)
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

/** Where a policy in shadow is consulted: it may outlast the run, whatever stops there stops nothing, and nothing is counted. */
export class Beside extends RunEdge {
  constructor(scope: RunScope) {
    super(scope, () => undefined)
  }

  /** What stops in a call that it makes is its own failure. */
  override stop(error: unknown): void {
    // A handler may get there before it has promised its answer.
    void Promise.resolve().then(() => {
      for (const consultation of this.consultations) consultation.fail(error)
    })
  }
  override warn(warning: Warning): void {
    this.emit({ type: 'warning', ...warning })
  }
  override note(): void {}
  override consulted(): void {}
  override decided(decision: Decision): void {
    this.emit({ type: 'decision', ...decision })
  }
}
