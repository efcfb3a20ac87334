import { messageOf, showError } from '../errors/error.ts'
import type { Json, JsonObject } from '../json/json.ts'
import { ENGINE, isOver, PERSON, readOrphanAnswer, skipped } from './asks.ts'
import type { Call, SeamSpec } from './call.ts'
import { type ConsultedAt, failedBy, middlewareFailure, refusal, stepOf, suspendNeedsThread } from './failure.ts'
import type { Entry } from './journal.ts'
import type { Outcome } from './outcome.ts'
import { handBack, perform } from './perform.ts'
import type { Policy } from './policy.ts'
import { report, warn, whatBecame } from './report.ts'
import { never, type Site } from './site.ts'
import { SEAMS } from './table.ts'
import type { Retry } from './verdict.ts'
import { type Ending, Walk } from './walk.ts'

/** The longest wait before a retry; a longer one is cut to this, with a warning. */
const MAX_RETRY_DELAY_MS = 30_000

/** Questions that one policy may put about one call, and the engine about one go at it. */
const MAX_ASKS = 3

/** What an attempt came to: the outcome, a granted retry, or a question that was answered at once, so that the walk begins again. */
type Settled<Value> = Outcome<Value> | 'retry' | 'again'

/** The way of calls through a seam that policies watch: attempt by attempt, until one is settled. */
export class Passage<Input extends Json, Value> {
  readonly #spec: SeamSpec<Input, Value>
  readonly #walk: Walk<Input, Value>
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
    this.#walk = new Walk(spec)
    this.#before = before
    this.#rescue = rescue
    this.#after = after
  }

  async pass(call: Call<Input>): Promise<Value> {
    const { entry, asking } = call
    if (entry?.settled !== undefined) return handBack(entry.settled as Outcome<Value>)
    if (asking !== undefined && asking.asked.length > 0) await asking.handOver()
    for (;;) {
      const settled = entry?.orphaned ? await this.#adopt(call, entry) : await this.#attempt(call)
      if (call.over) return never()
      if (settled === 'again') {
        call.input = call.given
        continue
      }
      if (settled !== 'retry') {
        const written = entry?.settle(settled)
        if (written !== undefined) await written
        return call.over ? never() : handBack(settled)
      }
      call.attempt++
      call.input = call.given
      call.substituted = undefined
    }
  }

  /** One go from the top: before, perform, rescue, after. A trip already made and not yet judged goes straight to `after`. */
  async #attempt(call: Call<Input>): Promise<Settled<Value>> {
    const made = call.entry?.made(call.attempt, call.given)
    if (made !== undefined) {
      call.input = made.input as Input
      return this.#judge(call, made.outcome as Outcome<Value>)
    }
    this.#spec.entering?.(call)
    const entered = this.#before.length === 0 ? undefined : await this.#walk.before(call, this.#before)
    if (entered === undefined) return this.#judge(call, await perform(this.#spec, call, this.#after.length > 0))
    if (entered.verdict.action === 'replace') return this.#judge(call, await this.#substitute(call, entered, undefined))
    return this.#refuse(call, entered)
  }

  /** A call that was cut off while it may have done its work: a person has said what became of it, or is asked. */
  async #adopt(call: Call<Input>, entry: Entry): Promise<Settled<Value>> {
    const { go } = entry
    const answer = call.asking?.asked.findLast(({ by, digest }) => by === ENGINE && digest === go)?.answer
    if (answer === undefined) {
      await call.asking?.orphaned(go)
      return 'again'
    }
    const decision = readOrphanAnswer(answer.value)
    if (decision.action === 'skip') return { ok: false, error: skipped(call.subject) }
    if (decision.action === 'retry') return this.#attempt(call)
    const { readValue } = this.#spec
    try {
      const what = 'the result that a person gave'
      const value = readValue === undefined ? (decision.result as Value) : readValue(decision.result, call, what)
      call.substituted = PERSON
      return this.#judge(call, { ok: true, value })
    } catch (misfit) {
      const asked = call.asking?.asked.filter(({ by, digest }) => by === ENGINE && digest === go) ?? []
      if (asked.length >= MAX_ASKS) return { ok: false, error: misfit }
      await call.asking?.orphaned(go, messageOf(misfit))
      return 'again'
    }
  }

  /** What the step came to, as rescue and after leave it. */
  async #judge(call: Call<Input>, raw: Outcome<Value>): Promise<Settled<Value>> {
    let outcome = raw
    if (!outcome.ok && this.#rescue.length > 0) {
      const rescued = await this.#walk.after('nodeError', this.#rescue, call, outcome)
      if (rescued?.verdict.action === 'retry') return this.#retry(call, rescued, outcome)
      if (rescued?.verdict.action === 'replace') outcome = await this.#substitute(call, rescued, outcome)
      else if (rescued !== undefined) return this.#failRescue(call, rescued, outcome)
    }
    if (this.#after.length === 0 || this.#spec.judged?.(outcome) === false) return outcome
    const judged = await this.#walk.after(this.#spec.seam, this.#after, call, outcome)
    if (judged === undefined) return outcome
    if (judged.verdict.action === 'retry') return this.#retry(call, judged, outcome)
    if (judged.verdict.action === 'replace') return this.#substitute(call, judged, outcome)
    return judged.verdict.action === 'reject' ? this.#refuse(call, judged) : this.#fail(call, judged, outcome)
  }

  async #substitute(
    call: Call<Input>,
    { verdict, at }: Ending,
    from: Outcome<Value> | undefined,
  ): Promise<Outcome<Value>> {
    const { value } = verdict as { value: Json }
    const what = `the value that policy "${at.policy.name}" gave`
    const { readValue } = this.#spec
    const read = await this.#walk.orFail(call, at, from, () =>
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
    const booked = this.#spec.retrying?.(call)
    if (booked !== undefined) await booked
    if (call.over) return never()
    const written = call.entry?.retry(call.attempt + 1)
    if (written !== undefined) await written
    if (call.over) return never()
    report(call, at, verdict)
    warn(
      call,
      at,
      `policy "${at.policy.name}" retries ${stepOf(at)} in ${delayMs} ms${clamped}, attempt ${call.attempt} of ${call.maxAttempts}${cause}`,
    )
    if (delayMs > 0) await wait(call.site, delayMs)
    return call.over ? never() : 'retry'
  }

  #refuse(call: Call<Input>, { verdict, at }: Ending): Promise<'again'> | Outcome<Value> {
    if (verdict.action === 'suspend') return this.#suspend(call, verdict.ask, at, verdict)
    report(call, at, verdict)
    const { reason } = verdict as { reason: string }
    const error = refusal(at, reason)
    if (SEAMS[at.seam].reject === 'stop') return this.#walk.stop(call, error)
    warn(call, at, error.message)
    return { ok: false, error }
  }

  async #suspend(call: Call<Input>, ask: JsonObject, at: ConsultedAt, verdict: Ending['verdict']): Promise<'again'> {
    const { asking } = call
    if (asking === undefined) return this.#walk.stop(call, suspendNeedsThread(at))
    if (asking.asked.filter((asked) => asked.by === at.policy.name && isOver(asked)).length >= MAX_ASKS) {
      const why = `it has asked ${MAX_ASKS} times about this call and would ask again`
      return this.#walk.stop(call, middlewareFailure(at, new Error(why)))
    }
    report(call, at, verdict)
    await asking.suspend(at, ask)
    return 'again'
  }

  #fail(call: Call<Input>, { verdict, at }: Ending, outcome: Outcome<Value>): Promise<never> | Outcome<Value> {
    report(call, at, verdict)
    const error = failedBy(at, (verdict as { reason: string }).reason, this.#walk.errorOf(outcome))
    return SEAMS[at.seam].fail === 'stop' ? this.#walk.stop(call, error) : { ok: false, error }
  }

  /** `nodeError` failed the node: the run stops, and `node.after` is told of it before, where only `pass` counts. */
  async #failRescue(call: Call<Input>, { verdict, at }: Ending, outcome: Outcome<Value>): Promise<never> {
    report(call, at, verdict)
    const error = failedBy(at, (verdict as { reason: string }).reason, this.#walk.errorOf(outcome))
    await this.#walk.after(this.#spec.seam, this.#after, call, { ok: false, error }, false)
    return this.#walk.stop(call, error)
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
