import { messageOf, showError } from '../errors/error.ts'
import { equal } from '../json/equal.ts'
import type { Json } from '../json/json.ts'
import { Consultation, HALF_TIMEOUT_MS, type Question } from './consultation.ts'
import { type ConsultedAt, failedBy, middlewareFailure, refusal, stepOf, suspendNeedsThread } from './failure.ts'
import type { Entry } from './journal.ts'
import { type Outcome, type ShownOutcome, showOutcome } from './outcome.ts'
import type { Policy } from './policy.ts'
import { never, type Site } from './site.ts'
import type { Subject } from './subject.ts'
import { type Half, SEAMS, type Seam } from './table.ts'
import { type Retry, readVerdict, type Verdict } from './verdict.ts'

/** The longest wait before a retry; a longer one is cut to this, with a warning. */
export const MAX_RETRY_DELAY_MS = 30_000

/** Who makes a call. Once it is over, no call of it starts or settles. */
export interface Maker {
  readonly over: boolean
}

/** One call on its way through a gate. The gate moves `input` and `attempt` on; nobody else writes them. */
export class Call<Input extends Json = Json> {
  readonly site: Site
  readonly subject: Subject
  /** What the code gave; each attempt starts from it. */
  readonly given: Input
  /** What runs: `given`, as the policies left it. */
  input: Input
  /** Counts from 1. */
  attempt: number
  readonly maxAttempts: number
  /** The name of who supplied the outcome, when the step itself did not. */
  substituted: string | undefined
  /** Where this call is written down; absent at seams that are not journaled. */
  readonly entry: Entry | undefined
  /** Policies this call is made by or nested in; they are not consulted about it. */
  readonly nestedIn: readonly Policy[]
  readonly #maker: Maker | undefined

  constructor(
    site: Site,
    subject: Subject,
    given: Input,
    { maxAttempts = 1, entry, nestedIn = NOBODY, maker }: CallOptions = {},
  ) {
    this.site = site
    this.subject = Object.freeze(subject)
    this.given = given
    this.input = given
    this.attempt = entry?.attempt ?? 1
    this.maxAttempts = maxAttempts
    this.entry = entry
    this.nestedIn = nestedIn
    this.#maker = maker
  }

  /** Nobody waits for this call any more: its run was ended from outside, or whoever made it was given up. */
  get over(): boolean {
    return this.#maker === undefined ? this.site.stopped : this.#maker.over
  }
}

export interface CallOptions {
  readonly maxAttempts?: number
  readonly entry?: Entry
  readonly nestedIn?: readonly Policy[]
  /** Absent where the run itself makes the call. */
  readonly maker?: Maker
}

const NOBODY: readonly Policy[] = []

/** How one seam does what all seams do. */
export interface SeamSpec<Input extends Json, Value> {
  readonly seam: Seam
  /** The halves this way leads through; both, where a spec does not say. */
  readonly halves?: readonly Half[]
  /** Told at the top of each attempt, before anybody is consulted. */
  entering?(call: Call<Input>): void
  /** Does the step with `call.input`. Throws, or rejects, when it fails. */
  perform(call: Call<Input>): Value | Promise<Value>
  /** Told when the step failed, before anybody is consulted about it. */
  failed?(call: Call<Input>): void
  /** Reads the `input` of a `modify`, validated like the call's own. Throws what is wrong with it. */
  readInput?(value: Json, call: Call<Input>, what: string): Input
  /** Reads the `value` of a `replace`, validated like the step's own. Throws what is wrong with it. */
  readValue?(value: Json, call: Call<Input>, what: string): Value
  /** What policies see of a value. */
  show?(value: Value): Json
  /** The error that a value tells of, where an outcome that went well is the end of something that did not. */
  errorIn?(value: Value): unknown
  /** Whether `after` is consulted about an outcome; every outcome is, where a seam does not say. */
  judged?(outcome: Outcome<Value>): boolean
  /** Whether a verdict of `after` counts. Where it does not, it is reported and the outcome stands. */
  binding?(outcome: Outcome<Value>): boolean
  /** Asked before a retry is granted; says why it may not be, if so. */
  mayRetry?(call: Call<Input>): string | undefined
  /** A retry was granted: whatever the next attempt costs is booked here. */
  retrying?(call: Call<Input>): void
}

/** The compiled way through a seam: hands back the settled value, throws its error, or never settles when the run stopped. */
export type Gate<Input extends Json, Value> = (call: Call<Input>) => Value | Promise<Value>

/**
 * Compiles the way through a seam for one run. `node` takes `nodeError` along, which stands inside it. A gate that nobody
 * subscribed to is the step itself.
 */
export function compileGate<Input extends Json, Value>(
  spec: SeamSpec<Input, Value>,
  policies: readonly Policy[],
): Gate<Input, Value> {
  const subscribed = (seam: Seam, half: Half) =>
    spec.halves?.includes(half) === false ? NOBODY : policies.filter((policy) => policy.subscribes(seam, half))
  const before = subscribed(spec.seam, 'before')
  const rescue = spec.seam === 'node' ? subscribed('nodeError', 'after') : NOBODY
  const after = subscribed(spec.seam, 'after')
  if (before.length === 0 && rescue.length === 0 && after.length === 0) return throughJournal(spec)
  const passage = new Passage(spec, before, rescue, after)
  return (call) => passage.pass(call)
}

/** With nobody to consult, all that is left of the walk is the journal; and without a journal, nothing. */
function throughJournal<Input extends Json, Value>(spec: SeamSpec<Input, Value>): Gate<Input, Value> {
  return (call) => {
    const { entry } = call
    if (entry === undefined) {
      spec.entering?.(call)
      return spec.perform(call)
    }
    return entry.settled === undefined ? settleAlone(spec, call, entry) : handBack(entry.settled as Outcome<Value>)
  }
}

async function settleAlone<Input extends Json, Value>(
  spec: SeamSpec<Input, Value>,
  call: Call<Input>,
  entry: Entry,
): Promise<Value> {
  spec.entering?.(call)
  const outcome = await perform(spec, call)
  entry.settle(outcome)
  return handBack(outcome)
}

async function perform<Input extends Json, Value>(
  spec: SeamSpec<Input, Value>,
  call: Call<Input>,
): Promise<Outcome<Value>> {
  if (call.over) return never()
  const trip = call.entry?.start(call.attempt, call.given, call.input)
  let outcome: Outcome<Value>
  try {
    outcome = { ok: true, value: await spec.perform(call) }
  } catch (error) {
    outcome = { ok: false, error }
    spec.failed?.(call)
  }
  if (call.over) return never()
  if (trip !== undefined) trip.outcome = outcome
  return outcome
}

function handBack<Value>(outcome: Outcome<Value>): Value {
  if (outcome.ok) return outcome.value
  throw outcome.error
}

/** What a half came to. `undefined` is: go on as it stands. */
type Ending = {
  readonly verdict: Exclude<Verdict, { action: 'proceed' | 'modify' | 'pass' }>
  readonly at: ConsultedAt
}

class Passage<Input extends Json, Value> {
  readonly #spec: SeamSpec<Input, Value>
  readonly #before: readonly Policy[]
  readonly #rescue: readonly Policy[]
  readonly #after: readonly Policy[]

  constructor(
    spec: SeamSpec<Input, Value>,
    before: readonly Policy[],
    rescue: readonly Policy[],
    after: readonly Policy[],
  ) {
    this.#spec = spec
    this.#before = before
    this.#rescue = rescue
    this.#after = after
  }

  async pass(call: Call<Input>): Promise<Value> {
    if (call.entry?.settled !== undefined) return handBack(call.entry.settled as Outcome<Value>)
    for (;;) {
      const settled = await this.#attempt(call)
      if (call.over) return never()
      if (settled !== 'retry') {
        call.entry?.settle(settled)
        return handBack(settled)
      }
      call.attempt++
      call.input = call.given
      call.substituted = undefined
    }
  }

  /** One go from the top: before, perform, rescue, after. A trip already made and not yet judged goes straight to `after`. */
  async #attempt(call: Call<Input>): Promise<Outcome<Value> | 'retry'> {
    const made = call.entry?.made(call.attempt, call.given)
    if (made !== undefined) {
      call.input = made.input as Input
      return this.#judge(call, made.outcome as Outcome<Value>)
    }
    this.#spec.entering?.(call)
    const entered = this.#before.length === 0 ? undefined : await this.#walkBefore(call)
    if (entered === undefined) return this.#judge(call, await perform(this.#spec, call))
    if (entered.verdict.action === 'replace') return this.#judge(call, await this.#substitute(call, entered, undefined))
    return this.#refuse(call, entered)
  }

  /** What the step came to, as rescue and after leave it. */
  async #judge(call: Call<Input>, raw: Outcome<Value>): Promise<Outcome<Value> | 'retry'> {
    let outcome = raw
    if (!outcome.ok && this.#rescue.length > 0) {
      const rescued = await this.#walkAfter('nodeError', this.#rescue, call, outcome)
      if (rescued?.verdict.action === 'retry') return this.#retry(call, rescued, outcome)
      if (rescued?.verdict.action === 'replace') outcome = await this.#substitute(call, rescued, outcome)
      else if (rescued !== undefined) return this.#failRescue(call, rescued, outcome)
    }
    if (this.#after.length === 0 || this.#spec.judged?.(outcome) === false) return outcome
    const judged = await this.#walkAfter(this.#spec.seam, this.#after, call, outcome)
    if (judged === undefined) return outcome
    if (judged.verdict.action === 'retry') return this.#retry(call, judged, outcome)
    if (judged.verdict.action === 'replace') return this.#substitute(call, judged, outcome)
    return judged.verdict.action === 'reject' ? this.#refuse(call, judged) : this.#fail(call, judged, outcome)
  }

  /** Consults each policy on the input as the ones before it left it; then, if it was changed, shows earlier ones what will run. */
  async #walkBefore(call: Call<Input>): Promise<Ending | undefined> {
    const { seam } = this.#spec
    const asked = this.#asked(this.#before, call)
    const ends = call.site.timers.now() + HALF_TIMEOUT_MS
    let lastChange = -1
    for (const [i, policy] of asked.entries()) {
      const at = { policy, seam, half: 'before', subject: call.subject, input: call.input } as const
      const verdict = await this.#consult(at, call, undefined, false, ends)
      if (verdict.action === 'modify') {
        if (await this.#modify(call, verdict.input, at)) {
          report(call, at, verdict)
          lastChange = i
        }
      } else if (verdict.action !== 'proceed') return { verdict: verdict as Ending['verdict'], at }
    }
    return lastChange < 1
      ? undefined
      : this.#finalLook(call, asked.slice(0, lastChange), asked[lastChange] as Policy, ends)
  }

  /** What runs is what was judged: policies consulted before the last change are shown the final value. */
  async #finalLook(
    call: Call<Input>,
    earlier: readonly Policy[],
    changer: Policy,
    ends: number,
  ): Promise<Ending | undefined> {
    for (const policy of earlier) {
      const at = { policy, seam: this.#spec.seam, half: 'before', subject: call.subject, input: call.input } as const
      const verdict = await this.#consult(at, call, undefined, true, ends)
      if (verdict.action === 'modify') {
        const judged = call.input
        if (await this.#modify(call, verdict.input, at)) {
          call.input = judged
          const why = `it changed again what policy "${changer.name}" had changed after it, and nobody would judge the result`
          return this.#stop(call, middlewareFailure(at, new Error(why)))
        }
      } else if (verdict.action !== 'proceed') return { verdict: verdict as Ending['verdict'], at }
    }
    return undefined
  }

  /** Takes a modified input over; false when it is the same as before. */
  async #modify(call: Call<Input>, input: Json, at: ConsultedAt): Promise<boolean> {
    const what = `the input that policy "${at.policy.name}" gave`
    const { readInput } = this.#spec
    const read = await this.#orFail(call, at, undefined, () =>
      readInput === undefined ? (input as Input) : readInput(input, call, what),
    )
    if (equal(read, call.input)) return false
    call.input = read
    return true
  }

  async #walkAfter(
    seam: Seam,
    policies: readonly Policy[],
    call: Call<Input>,
    outcome: Outcome<Value>,
    binding = this.#spec.binding?.(outcome) ?? true,
  ): Promise<Ending | undefined> {
    const shown = showOutcome(outcome, (value) => this.#show(value))
    const ends = call.site.timers.now() + HALF_TIMEOUT_MS
    let warned = false
    for (const policy of this.#asked(policies, call)) {
      const at = { policy, seam, half: 'after', subject: call.subject, input: call.input } as const
      const verdict = await this.#consult(at, call, outcome, false, ends, shown)
      if (verdict.action === 'pass') continue
      if (!binding) {
        overrule(call, at, verdict)
        continue
      }
      const refused = verdict.action === 'retry' ? this.#whyNoRetry(call) : undefined
      if (refused === undefined) return { verdict: verdict as Ending['verdict'], at }
      if (!warned)
        warn(
          call,
          at,
          `policy "${policy.name}" asked for a retry of ${stepOf(at)}, which is refused: ${refused}. The policies after it still have a say.`,
        )
      warned = true
    }
    return undefined
  }

  #asked(policies: readonly Policy[], call: Call<Input>): readonly Policy[] {
    return call.nestedIn.length === 0 ? policies : policies.filter((policy) => !call.nestedIn.includes(policy))
  }

  /** Asks one policy and reads what it answered; whatever goes wrong there stops the run. */
  async #consult(
    at: ConsultedAt,
    call: Call<Input>,
    outcome: Outcome<Value> | undefined,
    revisit: boolean,
    halfEndsAt: number,
    shown?: ShownOutcome,
  ): Promise<Verdict> {
    const { site } = call
    if (call.over) return never()
    const consultation = new Consultation(at.policy, questionOf(at, call, shown), revisit)
    site.consulted()
    try {
      const answer = at.policy.consult(consultation)
      const awaited = isThenable(answer) ? await consultation.within(answer, halfEndsAt) : answer
      if (call.over) return never()
      const verdict = readVerdict(at.seam, at.half, awaited)
      for (const label of verdict.labels ?? []) site.labels.add(label)
      for (const warning of verdict.warnings ?? []) warn(call, at, `policy "${at.policy.name}": ${warning}`)
      return verdict
    } catch (failure) {
      return this.#stop(call, middlewareFailure(at, failure, this.#errorOf(outcome)))
    }
  }

  async #substitute(
    call: Call<Input>,
    { verdict, at }: Ending,
    from: Outcome<Value> | undefined,
  ): Promise<Outcome<Value>> {
    const { value } = verdict as { value: Json }
    const what = `the value that policy "${at.policy.name}" gave`
    const { readValue } = this.#spec
    const read = await this.#orFail(call, at, from, () =>
      readValue === undefined ? (value as Value) : readValue(value, call, what),
    )
    call.substituted = at.policy.name
    report(call, at, verdict)
    warn(call, at, `policy "${at.policy.name}" supplied a result for ${stepOf(at)}; ${whatBecame(from)}`)
    return { ok: true, value: read }
  }

  async #retry(call: Call<Input>, { verdict, at }: Ending, outcome: Outcome<Value>): Promise<'retry'> {
    const wanted = (verdict as Retry).delayMs ?? 0
    const delayMs = Math.min(wanted, MAX_RETRY_DELAY_MS)
    const clamped = wanted > delayMs ? ` (${wanted} ms asked, ${MAX_RETRY_DELAY_MS} ms is the most)` : ''
    const cause = outcome.ok ? '' : `: ${showError(outcome.error).message}`
    this.#spec.retrying?.(call)
    if (call.over) return never()
    call.entry?.retry(call.attempt + 1)
    report(call, at, verdict)
    warn(
      call,
      at,
      `policy "${at.policy.name}" retries ${stepOf(at)} in ${delayMs} ms${clamped}, attempt ${call.attempt} of ${call.maxAttempts}${cause}`,
    )
    if (delayMs > 0) await wait(call.site, delayMs)
    return call.over ? never() : 'retry'
  }

  #whyNoRetry(call: Call<Input>): string | undefined {
    if (call.attempt >= call.maxAttempts) return `attempt ${call.attempt} of ${call.maxAttempts} was the last`
    return this.#spec.mayRetry?.(call)
  }

  #refuse(call: Call<Input>, { verdict, at }: Ending): Promise<never> | Outcome<Value> {
    if (verdict.action === 'suspend') return this.#stop(call, suspendNeedsThread(at))
    report(call, at, verdict)
    const { reason } = verdict as { reason: string }
    const error = refusal(at, reason)
    if (SEAMS[at.seam].reject === 'stop') return this.#stop(call, error)
    warn(call, at, error.message)
    return { ok: false, error }
  }

  #fail(call: Call<Input>, { verdict, at }: Ending, outcome: Outcome<Value>): Promise<never> | Outcome<Value> {
    report(call, at, verdict)
    const error = failedBy(at, (verdict as { reason: string }).reason, this.#errorOf(outcome))
    return SEAMS[at.seam].fail === 'stop' ? this.#stop(call, error) : { ok: false, error }
  }

  /** `nodeError` failed the node: the run stops, and `node.after` is told of it before, where only `pass` counts. */
  async #failRescue(call: Call<Input>, { verdict, at }: Ending, outcome: Outcome<Value>): Promise<never> {
    report(call, at, verdict)
    const error = failedBy(at, (verdict as { reason: string }).reason, this.#errorOf(outcome))
    await this.#walkAfter(this.#spec.seam, this.#after, call, { ok: false, error }, false)
    return this.#stop(call, error)
  }

  #stop(call: Call<Input>, error: unknown): Promise<never> {
    call.site.stop(error)
    return never()
  }

  /** Reads what a policy gave; what is wrong with it is that policy's failure. */
  #orFail<Read>(
    call: Call<Input>,
    at: ConsultedAt,
    from: Outcome<Value> | undefined,
    read: () => Read,
  ): Read | Promise<never> {
    try {
      return read()
    } catch (failure) {
      return this.#stop(call, middlewareFailure(at, failure, this.#errorOf(from)))
    }
  }

  #errorOf(outcome: Outcome<Value> | undefined): unknown {
    if (outcome === undefined) return undefined
    return outcome.ok ? this.#spec.errorIn?.(outcome.value) : outcome.error
  }

  #show(value: Value): Json {
    return this.#spec.show === undefined ? (value as Json) : this.#spec.show(value)
  }
}

function questionOf(at: ConsultedAt, call: Call, shown: ShownOutcome | undefined): Question {
  const input = shown === undefined || at.seam === 'toolCall' ? call.input : undefined
  return {
    site: call.site,
    seam: at.seam,
    half: at.half,
    subject: call.subject,
    input,
    outcome: shown,
    attempt: call.attempt,
    maxAttempts: call.maxAttempts,
    substituted: call.substituted,
    nestedIn: call.nestedIn,
  }
}

/** Waits. When the run ends meanwhile the timer goes with it, so that nothing keeps the process alive. */
function wait({ timers, signal }: Site, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const giveUp = () => timers.clear(timer)
    const timer = timers.set(ms, () => {
      signal.removeEventListener('abort', giveUp)
      resolve()
    })
    signal.addEventListener('abort', giveUp, { once: true })
  })
}

export const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'

function report(call: Call, { policy, seam, half }: ConsultedAt, verdict: Verdict): void {
  const { reason, code } = verdict as { reason?: string; code?: string }
  call.site.decided({
    policy: policy.name,
    plugin: policy.plugin,
    seam,
    half,
    action: verdict.action,
    subject: call.subject,
    attempt: call.attempt,
    ...(reason === undefined ? {} : { reason }),
    ...(code === undefined ? {} : { code }),
  })
}

/** A verdict that comes too late to count is recorded; the policies after it are still consulted. */
function overrule(call: Call, at: ConsultedAt, verdict: Verdict): void {
  report(call, at, verdict)
  warn(
    call,
    at,
    `policy "${at.policy.name}" answered "${verdict.action}" about ${stepOf(at)}, whose end is already settled; it does not count.`,
  )
}

function warn(call: Call, { policy, seam, half }: ConsultedAt, message: string): void {
  const { nodeName } = call.subject
  call.site.warn({ message, policy: policy.name, seam, half, ...(nodeName === undefined ? {} : { nodeName }) })
}

function whatBecame(from: Outcome<unknown> | undefined): string {
  if (from === undefined) return 'it did not run.'
  return from.ok ? 'its own result is not used.' : `it had failed: ${messageOf(from.error)}`
}
