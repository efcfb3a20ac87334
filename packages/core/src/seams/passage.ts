import { messageOf, showError } from '../errors/error.ts'
import type { Json, JsonObject } from '../json/json.ts'
import { answerTo, ENGINE, isOver, MAX_ASKS, PERSON, readOrphanAnswer, skipped, verdictIn } from './asks.ts'
import type { Call, SeamSpec } from './call.ts'
import { type Ending, prepareAsk } from './consult-policy.ts'
import {
  askerOf,
  type ConsultedAt,
  failedBy,
  middlewareFailure,
  nameOf,
  refusal,
  stepOf,
  suspendNeedsThread,
} from './failure.ts'
import type { Entry } from './journal.ts'
import { type Core, Onion, passedOf } from './onion.ts'
import type { Outcome } from './outcome.ts'
import type { Layer, NextOptions, Passed } from './own.ts'
import { handBack, perform } from './perform.ts'
import { report, warn, whatBecame } from './report.ts'
import { never } from './site.ts'
import { SEAMS } from './table.ts'
import { isThenable } from './thenable.ts'
import { wait } from './timer.ts'
import type { Retry } from './verdict.ts'
import { type Judges, Walk } from './walk.ts'
import type { Left, Way } from './way.ts'

/** The longest wait before a retry; a longer one is cut to this, with a warning. */
const MAX_RETRY_DELAY_MS = 30_000

/** Who is consulted at a seam: own middleware in its order, then the policies in theirs. */
export interface Chain {
  readonly layers: readonly Layer[]
  readonly before: Judges
  readonly rescue: Judges
  readonly after: Judges
}

/** The way of calls through a seam that somebody watches: attempt by attempt, until one is settled. */
export class Passage<Input extends Json, Value> implements Core<Input, Value> {
  readonly #spec: SeamSpec<Input, Value>
  readonly #walk: Walk<Input, Value>
  readonly #chain: Chain
  readonly #onion: Onion<Input, Value> | undefined
  /** Whether somebody looks at raw outcomes, which are then written down before. */
  readonly #judged: boolean
  /** Whether an attempt may make several trips. */
  readonly #wrapped: boolean
  /** Whether calls that nothing is written down about may go through without a wait. */
  readonly #glides: boolean

  constructor(spec: SeamSpec<Input, Value>, chain: Chain) {
    this.#spec = spec
    this.#walk = new Walk(spec)
    this.#chain = chain
    this.#onion = chain.layers.length === 0 ? undefined : new Onion(spec, chain.layers, this)
    this.#glides =
      [chain.before, chain.rescue, chain.after].every(({ policies }) => policies.length === 0) &&
      chain.layers.every(({ middleware, wrap }) => middleware.kept === undefined && wrap === undefined)
    this.#wrapped = chain.layers.some(({ wrap }) => wrap !== undefined)
    this.#judged =
      chain.after.policies.some((one) => one.enforces) ||
      chain.layers.some(({ wrap, after, rescue }) => wrap ?? after ?? rescue)
  }

  pass(call: Call<Input>): Value | Promise<Value> {
    const asked = call.asking !== undefined && call.asking.asked.length > 0
    if (!this.#glides || this.#onion === undefined || call.entry !== undefined || asked) return this.#pass(call)
    this.#spec.entering?.(call)
    const passed = this.#onion.glide(call)
    return isThenable(passed) ? this.#pass(call, passed as Promise<Passed<Value> | Left>) : handBack(passed.outcome)
  }

  /** @param begun the first attempt, where it is under way. */
  async #pass(call: Call<Input>, begun?: Promise<Passed<Value> | Left>): Promise<Value> {
    let coming = begun
    const { entry, asking } = call
    if (entry?.settled !== undefined) return handBack(entry.settled as Outcome<Value>)
    call.told = undefined
    if (asking !== undefined && asking.asked.length > 0) await asking.handOver()
    for (;;) {
      const settled = await this.#attempt(call, coming)
      coming = undefined
      if (call.over) return never()
      if (settled === 'again') {
        call.input = call.given
        call.told = undefined
        continue
      }
      if (settled !== 'retry') {
        const written = entry?.settle(settled, call.told)
        if (written !== undefined) await written
        return call.over ? never() : handBack(settled)
      }
      call.attempt++
      call.input = call.given
      call.told = undefined
      call.substituted = undefined
    }
  }

  /** One go from the top, through own middleware and past the policies. */
  async #attempt(call: Call<Input>, begun: Promise<Passed<Value> | Left> | undefined): Promise<Outcome<Value> | Left> {
    if (begun === undefined) this.#spec.entering?.(call)
    const passed = await (begun ?? this.#onion?.around(call) ?? this.trip(call))
    if (typeof passed === 'string') return passed
    if (call.over) return never()
    call.substituted = passed.substituted
    return passed.refused && !passed.performed ? passed.outcome : this.#judge(call, passed.outcome)
  }

  /** One trip with `call.input`: past the policies, the step itself, and what is made of its failure. */
  async trip(call: Call<Input>, options?: NextOptions, way?: Way): Promise<Passed<Value> | Left> {
    const { entry, input: given } = call
    const made = entry === undefined ? call.tripMade(given) : entry.made(call.attempt, call.trip, given)
    if (made !== undefined) {
      call.input = made.input as Input
      return this.#rescue(call, made.outcome as Outcome<Value>, way)
    }
    const adopted = entry?.orphaned ? await this.#adopt(call, entry) : undefined
    if (adopted !== undefined) return adopted
    call.tripSignal = options?.signal
    this.#spec.setOut?.(call, options)
    const { before } = this.#chain
    const ending = before.policies.length === 0 ? undefined : await this.#walk.before(call, before)
    if (way?.over) return never()
    if (ending === undefined) {
      const outcome = await perform(this.#spec, call, this.#judged, given, way)
      if (this.#wrapped && entry === undefined) call.keepTrip(given, outcome)
      return this.#rescue(call, outcome, way)
    }
    if (ending.verdict.action === 'replace') return this.#substitute(call, ending, undefined)
    const refused = await this.refuse(call, ending)
    return typeof refused === 'string' ? refused : { ...passedOf(refused), refused: true }
  }

  tripNow(call: Call<Input>): Passed<Value> | Promise<Passed<Value> | Left> {
    this.#spec.setOut?.(call, undefined)
    try {
      const made = this.#spec.perform(call)
      return isThenable(made) ? this.#madeLater(call, made) : passedOf({ ok: true, value: made })
    } catch (error) {
      return this.#failedTrip(call, error)
    }
  }

  async #madeLater(call: Call<Input>, coming: PromiseLike<Value>): Promise<Passed<Value> | Left> {
    try {
      const value = await coming
      return call.over ? never() : passedOf({ ok: true, value })
    } catch (error) {
      return this.#failedTrip(call, error)
    }
  }

  #failedTrip(call: Call<Input>, error: unknown): Promise<Passed<Value> | Left> {
    if (call.over) return never()
    this.#spec.failed?.(call)
    return this.#rescue(call, { ok: false, error })
  }

  /** A call that was cut off while it may have done its work: a person has said what became of it, or is asked. */
  async #adopt(call: Call<Input>, entry: Entry): Promise<Passed<Value> | 'again' | undefined> {
    const { go } = entry
    const answer = call.asking?.asked.findLast(({ by, digest }) => by === ENGINE && digest === go)?.answer
    if (answer === undefined) {
      await call.asking?.orphaned(go)
      return 'again'
    }
    const decision = readOrphanAnswer(answer.value)
    if (decision.action === 'skip') return { ...passedOf({ ok: false, error: skipped(call.subject) }), refused: true }
    if (decision.action === 'retry') return undefined
    const { readValue } = this.#spec
    try {
      const what = 'the result that a person gave'
      const value = readValue === undefined ? (decision.result as Value) : await readValue(decision.result, call, what)
      return { outcome: { ok: true, value }, substituted: PERSON, refused: false }
    } catch (misfit) {
      const asked = call.asking?.asked.filter(({ by, digest }) => by === ENGINE && digest === go) ?? []
      if (asked.length >= MAX_ASKS) return { ...passedOf({ ok: false, error: misfit }), refused: true }
      await call.asking?.orphaned(go, messageOf(misfit))
      return 'again'
    }
  }

  /** What a trip came to, as own middleware and the policies that look after failures leave it. */
  async #rescue(call: Call<Input>, raw: Outcome<Value>, way?: Way): Promise<Passed<Value> | Left> {
    if (raw.ok) return passedOf(raw)
    const own = await this.#onion?.rescue(call, raw, way)
    if (way?.over) return never()
    if (own !== undefined) return own
    const { rescue } = this.#chain
    const rescued = rescue.policies.length === 0 ? undefined : await this.#walk.after('nodeError', rescue, call, raw)
    if (rescued === undefined) return passedOf(raw)
    if (rescued.verdict.action === 'retry') return this.retry(call, rescued, raw)
    return rescued.verdict.action === 'replace'
      ? this.#substitute(call, rescued, raw)
      : this.#failRescue(call, rescued, raw)
  }

  /** The policies' last word on what the call has come to. */
  async #judge(call: Call<Input>, outcome: Outcome<Value>): Promise<Outcome<Value> | Left> {
    const { after } = this.#chain
    if (after.policies.length === 0 || this.#spec.judged?.(outcome) === false) return outcome
    const judged = await this.#walk.after(this.#spec.seam, after, call, outcome)
    if (judged === undefined) return outcome
    if (judged.verdict.action === 'retry') return this.retry(call, judged, outcome)
    if (judged.verdict.action === 'reject') return this.refuse(call, judged)
    if (judged.verdict.action !== 'replace') return this.fail(call, judged, outcome)
    const supplied = await this.#substitute(call, judged, outcome)
    if (typeof supplied === 'string') return supplied
    call.substituted = supplied.substituted
    return supplied.outcome
  }

  async #substitute(
    call: Call<Input>,
    { verdict, at, value, misfit }: Ending,
    from: Outcome<Value> | undefined,
  ): Promise<Passed<Value> | 'again'> {
    if (value === undefined) {
      const refused = await this.misfit(call, at, misfit)
      return refused ?? this.#walk.stop(call, middlewareFailure(at, misfit, this.#walk.errorOf(from)))
    }
    report(call, at, verdict)
    warn(call, at, `${nameOf(at.who)} supplied a result for ${stepOf(at)}; ${whatBecame(from)}`)
    return { outcome: { ok: true, value: value.read as Value }, substituted: at.who.name, refused: false }
  }

  /**
   * What a person answered was to be the result and does not fit: they are asked again, and in the end it is the call's error.
   * `undefined` where it was no answer.
   */
  async misfit(call: Call<Input>, at: ConsultedAt, error: unknown): Promise<Passed<Value> | 'again' | undefined> {
    const { asking } = call
    const by = askerOf(at.who)
    const asked = asking && (await answerTo(asking, by, at.input as Json))
    if (asking === undefined || asked === undefined || verdictIn(asked)?.action !== 'replace') return undefined
    if (asking.asked.filter((other) => other.by === by && isOver(other)).length >= MAX_ASKS) {
      return { ...passedOf<Value>({ ok: false, error }), refused: true }
    }
    await asking.again(at, asked, messageOf(error))
    return 'again'
  }

  async retry(call: Call<Input>, { verdict, at }: Ending, outcome: Outcome<Value>): Promise<'retry'> {
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
      `${nameOf(at.who)} retries ${stepOf(at)} in ${delayMs} ms${clamped}, attempt ${call.attempt} of ${call.maxAttempts}${cause}`,
    )
    if (delayMs > 0) await wait(call.site.timers, call.site.signal, delayMs)
    return call.over ? never() : 'retry'
  }

  refuse(call: Call<Input>, ending: Ending): Promise<'again'> | Outcome<Value> {
    const { verdict, at } = ending
    report(call, at, verdict)
    if (verdict.action === 'suspend') return this.#suspend(call, ending, verdict.ask)
    const { reason } = verdict as { reason: string }
    const error = refusal(at, reason)
    if (SEAMS[at.seam].reject === 'stop') return this.#walk.stop(call, error)
    warn(call, at, error.message)
    return { ok: false, error }
  }

  async #suspend(call: Call<Input>, { at, put }: Ending, ask: JsonObject): Promise<'again'> {
    try {
      const question = put ?? (await prepareAsk(at, call, ask))
      if (question === undefined) return this.#walk.stop(call, suspendNeedsThread(at))
      await question()
      return 'again'
    } catch (failure) {
      return this.#walk.stop(call, middlewareFailure(at, failure))
    }
  }

  fail(call: Call<Input>, ending: Ending, outcome: Outcome<Value>): Promise<never> | Outcome<Value> {
    const { verdict, at } = ending
    if (at.seam === 'nodeError') return this.#failRescue(call, ending, outcome)
    report(call, at, verdict)
    const error = failedBy(at, (verdict as { reason: string }).reason, this.#walk.errorOf(outcome))
    return SEAMS[at.seam].fail === 'stop' ? this.#walk.stop(call, error) : { ok: false, error }
  }

  /** `nodeError` failed the node: the run stops, and `node.after` is told of it before, where only `pass` counts. */
  async #failRescue(call: Call<Input>, { verdict, at }: Ending, outcome: Outcome<Value>): Promise<never> {
    report(call, at, verdict)
    const error = failedBy(at, (verdict as { reason: string }).reason, this.#walk.errorOf(outcome))
    await this.#walk.after(this.#spec.seam, this.#chain.after, call, { ok: false, error }, false)
    return this.#walk.stop(call, error)
  }
}
