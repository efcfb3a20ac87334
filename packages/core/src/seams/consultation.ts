import type { ChatRequest, ChatResponse } from '../chat/chat.ts'
import { SluiceError } from '../errors/error.ts'
import type { Json, JsonObject } from '../json/json.ts'
import { own } from '../json/own.ts'
import type { Keeper, Kept } from './kept.ts'
import type { ShownOutcome } from './outcome.ts'
import type { Policy } from './policy.ts'
import { LOG_LEVELS, type LogLevel, never, type Site } from './site.ts'
import type { Subject } from './subject.ts'
import { type Action, admits, type Half, type Seam } from './table.ts'

/** Milliseconds that a whole half may take, every policy and all their own calls together. */
export const HALF_TIMEOUT_MS = 15_000

/** What is being asked: the step, the half, and what this policy is shown of it. */
export interface Question {
  readonly site: Site
  readonly seam: Seam
  readonly half: Half
  readonly subject: Subject
  readonly input: Json | undefined
  readonly outcome: ShownOutcome | undefined
  readonly attempt: number
  readonly maxAttempts: number
  readonly substituted: string | undefined
  /** What a person answered to this policy's own question about this very input. */
  readonly answered: Json | undefined
  /** Policies whose consultation this call is nested in; they are not consulted about it. */
  readonly nestedIn: readonly Policy[]
}

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/

/** One policy asked about one half of one call: the `ctx` of a handler. */
export class Consultation<KeptValue = unknown> {
  readonly policy: Policy
  readonly question: Question
  /**
   * True in the final look, and where an earlier consultation about the same half of the same attempt has changed what this
   * policy keeps: who counts in `kept`, counts when it is false.
   */
  readonly revisit: boolean
  #controller: AbortController | undefined
  #abandoned = false
  #deadline: Deadline | undefined
  #reject: ((error: unknown) => void) | undefined
  /** Set by a policy in another process: called once when nobody waits for the answer any more. */
  onAbandon: (() => void) | undefined

  readonly #keeper: Keeper | undefined

  constructor(policy: Policy, question: Question, revisit: boolean, keeper?: Keeper) {
    this.policy = policy
    this.question = question
    this.revisit = revisit
    this.#keeper = keeper
  }

  /**
   * What this policy keeps, in the scope that it declared: durable on a thread, or of a principal, and changed by one consultation
   * at a time.
   *
   * @throws SluiceError `POLICY_CALL` when it declared nothing.
   */
  get kept(): Kept<KeptValue> {
    if (this.#keeper !== undefined) return this.#keeper.kept as Kept<KeptValue>
    throw this.#refuse('reads ctx.kept and declares none; give it kept: { scope, schema }.')
  }

  get seam(): Seam {
    return this.question.seam
  }
  get half(): Half {
    return this.question.half
  }
  /** The operator's settings; `{}` when there are none. */
  get component(): JsonObject {
    return this.policy.component
  }
  /** Counts from 1. */
  get attempt(): number {
    return this.question.attempt
  }
  get maxAttempts(): number {
    return this.question.maxAttempts
  }
  /** The verdicts that this half admits. */
  get admits(): readonly Action[] {
    return admits(this.question.seam, this.question.half)
  }
  /** Who supplied the outcome, if the step itself did not. */
  get substituted(): string | undefined {
    return this.question.substituted
  }
  get labels(): readonly string[] {
    return [...this.question.site.labels]
  }
  /** A person's answer to what this policy asked when it was shown this very input; nobody else sees it. */
  get answered(): Json | undefined {
    return this.question.answered
  }
  /** Aborts when the answer is no longer wanted: the time is over, or the run ended. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController()
    if (this.#abandoned) this.#controller.abort()
    return this.#controller.signal
  }
  /** What a handler is given beside `ctx`. */
  get shown(): { readonly subject: Subject; readonly input?: Json; readonly outcome?: ShownOutcome } {
    const { subject, input, outcome } = this.question
    if (outcome === undefined) return { subject, input }
    return input === undefined ? { subject, outcome } : { subject, outcome, input }
  }

  /**
   * Publishes an event named `plugin:<Type>:<name>`.
   *
   * @throws SluiceError `POLICY_CALL` for a name that is no identifier; `JSON_VALUE` for data that is not JSON.
   */
  emitEvent(name: string, data: unknown = null): void {
    if (typeof name !== 'string' || !NAME.test(name)) {
      throw this.#refuse(`emits an event named ${JSON.stringify(name)}; a name matches ${NAME.source}.`)
    }
    const { site, subject } = this.question
    if (!this.#abandoned) site.emitFrom(this.policy, subject, name, own(data, `the data of event "${name}"`))
  }

  /** @throws SluiceError `POLICY_CALL` for an unknown level or a message that is no text. */
  log(level: LogLevel, message: string): void {
    if (!LOG_LEVELS.includes(level))
      throw this.#refuse(`logs at level "${String(level)}"; levels are: ${LOG_LEVELS.join(', ')}.`)
    if (typeof message !== 'string') throw this.#refuse('logs a message that is no text.')
    const { site, subject } = this.question
    if (!this.#abandoned) site.logFrom(this.policy, subject, level, message)
  }

  /** Asks the model that this policy's own settings name. The call passes the other policies. */
  callModel(request: Omit<ChatRequest, 'model'> & { model?: string }): Promise<ChatResponse> {
    return this.#held(() => this.question.site.callModelFrom(this, request))
  }

  /**
   * Runs a tool of the run. The call passes the other policies.
   *
   * Rejects with SluiceError `POLICY_CALL` in shadow, where nothing may come of what a policy does.
   */
  async runTool(name: string, input: JsonObject): Promise<Json> {
    if (this.policy.mode === 'shadow') throw this.#refuse('is in shadow, where it runs no tools.')
    return this.#held(() => this.question.site.runToolFrom(this, name, input))
  }

  /** Lets this policy take its time once more, once; a second `extend` changes nothing. */
  extend(): void {
    this.#time.extend(this.policy.timeoutMs)
  }

  /** The policy has nothing to work on yet, for the host is still busy with it: until {@link release}, its time stands still. */
  hold(): void {
    this.#time.hold()
  }
  release(): void {
    if (!this.#abandoned) this.#time.release()
  }

  /** Waits for a promised answer, at most the policy's time in its own hands and the half's time in all. */
  within(answer: PromiseLike<unknown>, halfEndsAt: number): Promise<unknown> {
    const { site } = this.question
    if (site.stopped) {
      // The run was ended before the promise was made: nobody would give it up later.
      this.abandon()
      return never()
    }
    site.consultations.add(this)
    return new Promise((resolve, reject) => {
      this.#reject = reject
      const deadline = this.#time
      deadline.start(halfEndsAt, (waited) => {
        site.consultations.delete(this)
        this.abandon()
        reject(new SluiceError('POLICY_TIMED_OUT', `timed out after ${waited}`, { policy: this.policy.name }))
      })
      const settle = (then: (value: unknown) => void) => (value: unknown) => {
        deadline.clear()
        site.consultations.delete(this)
        then(value)
      }
      answer.then(settle(resolve), settle(reject))
    })
  }

  /** Nothing comes of it any more: a call that it makes was stopped. */
  fail(error: unknown): void {
    this.question.site.consultations.delete(this)
    this.abandon()
    this.#reject?.(error)
  }

  /** Gives the consultation up: the answer is no longer wanted, and what the policy keeps is the next one's to change. */
  abandon(): void {
    if (this.#abandoned) return
    this.#abandoned = true
    this.#keeper?.end()
    this.#deadline?.clear()
    this.#controller?.abort()
    this.onAbandon?.()
  }

  /** A handler may call and extend before it has promised an answer, so its time is there as soon as it is spoken of. */
  get #time(): Deadline {
    this.#deadline ??= new Deadline(this.question.site, this.policy.timeoutMs)
    return this.#deadline
  }

  /** Serves a call of the policy's own. Once the consultation is given up, none starts. */
  async #held<Value>(serve: () => Promise<Value>): Promise<Value> {
    if (this.#abandoned) return never()
    this.#time.hold()
    try {
      return await serve()
    } finally {
      this.#time.release()
    }
  }

  #refuse(why: string): SluiceError {
    return new SluiceError('POLICY_CALL', `policy "${this.policy.name}" ${why}`, { policy: this.policy.name })
  }
}

/** Two clocks in one timer: the time in the policy's hands, which stands still while it is served, and the half's, which does not. */
class Deadline {
  readonly #site: Site
  readonly #startedAt: number
  #halfEndsAt = 0
  /** Told when the time is over; absent until somebody waits. */
  #over: ((waited: string) => void) | undefined
  #leftMs: number
  #runningSince: number
  #holds = 0
  #extended = false
  #timer: unknown
  #cleared = false

  constructor(site: Site, ms: number) {
    this.#site = site
    this.#leftMs = ms
    this.#startedAt = this.#runningSince = site.timers.now()
  }

  start(halfEndsAt: number, over: (waited: string) => void): void {
    this.#halfEndsAt = halfEndsAt
    this.#over = over
    this.#arm()
  }

  hold(): void {
    if (this.#holds++ > 0) return
    this.#leftMs -= this.#site.timers.now() - this.#runningSince
    this.#arm()
  }

  release(): void {
    if (--this.#holds > 0) return
    this.#runningSince = this.#site.timers.now()
    this.#arm()
  }

  extend(ms: number): void {
    if (this.#extended) return
    this.#extended = true
    this.#leftMs += ms
    this.#arm()
  }

  clear(): void {
    this.#cleared = true
    this.#site.timers.clear(this.#timer)
  }

  #arm(): void {
    this.#site.timers.clear(this.#timer)
    const over = this.#over
    if (this.#cleared || over === undefined) return
    const now = this.#site.timers.now()
    const half = this.#halfEndsAt - now
    const hands = this.#holds > 0 ? half : this.#leftMs - (now - this.#runningSince)
    const spent = hands < half ? '' : `, when the ${HALF_TIMEOUT_MS} ms of the whole half were over`
    this.#timer = this.#site.timers.set(Math.max(0, Math.min(half, hands)), () =>
      over(`${Math.round(this.#site.timers.now() - this.#startedAt)} ms${spent}`),
    )
  }
}
