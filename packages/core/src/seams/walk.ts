import { equal } from '../json/equal.ts'
import type { Json } from '../json/json.ts'
import { answerTo, verdictIn } from './asks.ts'
import type { Call, SeamSpec } from './call.ts'
import { Consultation, HALF_TIMEOUT_MS, type Question } from './consultation.ts'
import { askerOf, type ConsultedAt, middlewareFailure, nameOf, stepOf } from './failure.ts'
import type { Keeper, KeptOptions } from './kept.ts'
import { type Outcome, type ShownOutcome, showOutcome } from './outcome.ts'
import type { Policy } from './policy.ts'
import { overrule, report, warn } from './report.ts'
import { never } from './site.ts'
import type { Half, Seam } from './table.ts'
import { isThenable } from './thenable.ts'
import { readVerdict, type Verdict } from './verdict.ts'

/** The verdict that ended a walk, and whose it was. */
export interface Ending {
  readonly verdict: Exclude<Verdict, { action: 'proceed' | 'modify' | 'pass' }>
  readonly at: ConsultedAt
}

interface PolicyAt extends ConsultedAt {
  readonly who: Policy
}

/** The walks past the policies of one seam; `undefined` is: go on as it stands. */
export class Walk<Input extends Json, Value> {
  readonly #spec: SeamSpec<Input, Value>

  constructor(spec: SeamSpec<Input, Value>) {
    this.#spec = spec
  }

  /** Consults each policy on the input as the ones before it left it; then, if it was changed, shows earlier ones what will run. */
  async before(call: Call<Input>, policies: readonly Policy[]): Promise<Ending | undefined> {
    const { seam } = this.#spec
    const asked = this.#asked(policies, call)
    const time = halfOf(call)
    let lastChange = -1
    for (const [i, policy] of asked.entries()) {
      const at = placeAt(policy, seam, 'before', call)
      const verdict = await this.#consult(at, call, undefined, false, time)
      if (verdict.action === 'modify') {
        if (await this.#modify(call, verdict.input, at)) {
          report(call, at, verdict)
          lastChange = i
        }
      } else if (verdict.action !== 'proceed') return { verdict: verdict as Ending['verdict'], at }
    }
    return lastChange < 1
      ? undefined
      : this.#finalLook(call, asked.slice(0, lastChange), asked[lastChange] as Policy, time)
  }

  /** What runs is what was judged: policies consulted before the last change are shown the final value. */
  async #finalLook(
    call: Call<Input>,
    earlier: readonly Policy[],
    changer: Policy,
    time: HalfTime,
  ): Promise<Ending | undefined> {
    for (const policy of earlier) {
      const at = placeAt(policy, this.#spec.seam, 'before', call)
      const verdict = await this.#consult(at, call, undefined, true, time)
      if (verdict.action === 'modify') {
        const judged = call.input
        if (await this.#modify(call, verdict.input, at)) {
          call.input = judged
          const why = `it changed again what policy "${changer.name}" had changed after it, and nobody would judge the result`
          return this.stop(call, middlewareFailure(at, new Error(why)))
        }
      } else if (verdict.action !== 'proceed') return { verdict: verdict as Ending['verdict'], at }
    }
    return undefined
  }

  /** Takes a modified input over; false when it is the same as before. */
  async #modify(call: Call<Input>, input: Json, at: ConsultedAt): Promise<boolean> {
    const what = `the input that ${nameOf(at.who)} gave`
    const { readInput } = this.#spec
    const read = await this.orFail(call, at, undefined, () =>
      readInput === undefined ? (input as Input) : readInput(input, call, what),
    )
    if (equal(read, call.input)) return false
    call.input = read
    return true
  }

  async after(
    seam: Seam,
    policies: readonly Policy[],
    call: Call<Input>,
    outcome: Outcome<Value>,
    binding = this.#spec.binding?.(outcome) ?? true,
  ): Promise<Ending | undefined> {
    const shown = showOutcome(outcome, (value) => this.#show(value))
    const time = halfOf(call)
    let warned = false
    for (const policy of this.#asked(policies, call)) {
      const at = placeAt(policy, seam, 'after', call)
      const verdict = await this.#consult(at, call, outcome, false, time, shown)
      if (verdict.action === 'pass') continue
      if (!binding) {
        overrule(call, at, verdict)
        continue
      }
      if (verdict.action !== 'retry' || call.attempt < call.maxAttempts)
        return { verdict: verdict as Ending['verdict'], at }
      if (!warned)
        warn(
          call,
          at,
          `policy "${policy.name}" asked for a retry of ${stepOf(at)}, which is refused: attempt ${call.attempt} of ${call.maxAttempts} was the last. The policies after it still have a say.`,
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
    at: PolicyAt,
    call: Call<Input>,
    outcome: Outcome<Value> | undefined,
    revisit: boolean,
    time: HalfTime,
    shown?: ShownOutcome,
  ): Promise<Verdict> {
    const { site } = call
    if (call.over) return never()
    const { asking } = call
    const asked =
      asking === undefined || asking.asked.length === 0 || at.half === 'after'
        ? undefined
        : await answerTo(asking, at.who.name, call.input)
    if (call.over) return never()
    const answered = asked && verdictIn(asked)
    if (answered !== undefined) return answered
    const question = questionOf(at, call, shown, asked?.answer?.value)
    const cameAt = site.timers.now()
    const keeper = at.who.kept === undefined ? undefined : await keeperOf(at, call, at.who.kept)
    // While other calls have their turn at what it keeps, nobody takes their time over this one.
    if (keeper !== undefined) time.endsAt += site.timers.now() - cameAt
    try {
      if (call.over) return never()
      const again = revisit || (keeper?.again ?? false)
      const consultation = new Consultation(at.who, question, again, keeper)
      site.consulted()
      const answer = at.who.consult(consultation)
      const awaited = isThenable(answer) ? await consultation.within(answer, time.endsAt) : answer
      if (call.over) return never()
      const verdict = readVerdict(at.seam, at.half, awaited)
      for (const label of verdict.labels ?? []) site.labels.add(label)
      for (const warning of verdict.warnings ?? []) warn(call, at, `${nameOf(at.who)}: ${warning}`)
      return verdict
    } catch (failure) {
      return this.stop(call, middlewareFailure(at, failure, this.errorOf(outcome)))
    } finally {
      keeper?.end()
    }
  }

  stop(call: Call<Input>, error: unknown): Promise<never> {
    call.site.stop(error)
    return never()
  }

  /** Reads what a policy gave; what is wrong with it is that policy's failure. */
  orFail<Read>(
    call: Call<Input>,
    at: ConsultedAt,
    from: Outcome<Value> | undefined,
    read: () => Read | Promise<Read>,
  ): Read | Promise<Read> {
    const failed = (failure: unknown) => this.stop(call, middlewareFailure(at, failure, this.errorOf(from)))
    try {
      const reading = read()
      return reading instanceof Promise ? reading.catch(failed) : reading
    } catch (failure) {
      return failed(failure)
    }
  }

  errorOf(outcome: Outcome<Value> | undefined): unknown {
    if (outcome === undefined) return undefined
    return outcome.ok ? this.#spec.errorIn?.(outcome.value) : outcome.error
  }

  #show(value: Value): Json {
    return this.#spec.show === undefined ? (value as Json) : this.#spec.show(value)
  }
}

/** Names a consultation about one half of one trip, the same when the call is entered anew. */
export function markOf({ seam }: ConsultedAt, part: string, { place, attempt, trip }: Call): string | undefined {
  return place && JSON.stringify([...place, seam, part, attempt, ...(trip > 1 ? [trip] : [])])
}

/** What a middleware keeps, for this one consultation, which others of it wait for. */
export const keeperOf = (at: ConsultedAt, call: Call, options: KeptOptions): Promise<Keeper> =>
  call.site.kept.keeper(askerOf(at.who), options, markOf(at, at.hook ?? at.half, call))

/** When the time of a half is over. */
interface HalfTime {
  endsAt: number
}

const halfOf = ({ site }: Call): HalfTime => ({ endsAt: site.timers.now() + HALF_TIMEOUT_MS })

function placeAt(policy: Policy, seam: Seam, half: Half, { subject, input, round }: Call): PolicyAt {
  return { who: policy, seam, half, subject, input, round }
}

function questionOf(
  at: ConsultedAt,
  call: Call,
  shown: ShownOutcome | undefined,
  answered: Json | undefined,
): Question {
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
    answered,
    nestedIn: call.nestedIn,
  }
}
