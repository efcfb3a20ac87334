import type { Json } from '../json/json.ts'
import type { Call, SeamSpec } from './call.ts'
import { type Ending, type Going, keeperOf, PolicyConsulting, questionOf, type Turn, turnOf } from './consult-policy.ts'
import { HALF_TIMEOUT_MS } from './consultation.ts'
import { HalfLog, type NotAsked } from './decision-log.ts'
import { failureInShadow, stepOf } from './failure.ts'
import type { Installed } from './installed.ts'
import { type Outcome, type ShownOutcome, showOutcome } from './outcome.ts'
import { decisionOf, overrule, warn } from './report.ts'
import { selects } from './selector.ts'
import type { ShadowTask } from './shadow.ts'
import type { Half, Seam } from './table.ts'
import { plainAt, type Verdict } from './verdict.ts'

/** The policies of one half at a call site, in order, and those that are left out there. */
export interface Judges {
  readonly policies: readonly Installed[]
  readonly apart: readonly NotAsked[]
}

/** The walks past the policies of one seam; `undefined` is: go on as it stands. */
export class Walk<Input extends Json, Value> {
  readonly #spec: SeamSpec<Input, Value>
  readonly #consulting: PolicyConsulting<Input, Value>

  constructor(spec: SeamSpec<Input, Value>) {
    this.#spec = spec
    this.#consulting = new PolicyConsulting(spec)
  }

  /** Consults each policy on the input as the ones before it left it; then, if it was changed, shows earlier ones what will run. */
  async before(call: Call<Input>, { policies, apart }: Judges): Promise<Ending | undefined> {
    const { seam } = this.#spec
    const going = this.#begin(call, seam, 'before', apart)
    const consulted: Installed[] = []
    let lastChange = -1
    for (const [i, one] of policies.entries()) {
      const turn = this.#turnOf(one, call, seam, 'before', going)
      if (turn === undefined) continue
      consulted.push(one)
      const said = await this.#consulting.consult(turn, false)
      if (said.verdict.action === 'modify') {
        if (await this.#consulting.modify(turn, said.verdict)) lastChange = i
      } else if (said.verdict.action !== 'proceed') {
        const ending = await this.#consulting.take(turn, said)
        if (ending !== undefined) return this.#end(call, going, ending, policies.slice(i + 1))
      }
    }
    if (lastChange < 1) return this.#end(call, going, undefined)
    const changer = (policies[lastChange] as Installed).policy.name
    return this.#end(call, going, await this.#finalLook(call, policies.slice(0, lastChange), consulted, changer, going))
  }

  /** What runs is what was judged: policies that stand before the last change are shown the final value. */
  async #finalLook(
    call: Call<Input>,
    earlier: readonly Installed[],
    consulted: readonly Installed[],
    changer: string,
    going: Going,
  ): Promise<Ending | undefined> {
    const { seam } = this.#spec
    for (const one of earlier) {
      // A selector that did not match the value as it was may match what will run.
      if (!one.enforces || !isAsked(one, call, seam, going)) continue
      const turn = turnOf(one, seam, 'before', call, going)
      const said = await this.#consulting.consult(turn, consulted.includes(one))
      if (said.verdict.action === 'modify') {
        const why = `it changed again what policy "${changer}" had changed after it, and nobody would judge the result`
        await this.#consulting.modify(turn, said.verdict, why)
      } else if (said.verdict.action !== 'proceed') {
        const ending = await this.#consulting.take(turn, said)
        if (ending !== undefined) return ending
      }
    }
    return undefined
  }

  /** Consults each policy on the outcome; the first verdict but pass ends it. Where it is not `binding`, none does. */
  async after(
    seam: Seam,
    { policies, apart }: Judges,
    call: Call<Input>,
    outcome: Outcome<Value>,
    binding = this.#spec.binding?.(outcome) ?? true,
  ): Promise<Ending | undefined> {
    const shown = showOutcome(outcome, (value) => this.#show(value))
    const going = this.#begin(call, seam, 'after', apart, outcome, shown)
    let warned = false
    for (const [i, one] of policies.entries()) {
      const turn = this.#turnOf(one, call, seam, 'after', going)
      if (turn === undefined) continue
      const said = await this.#consulting.consult(turn, false)
      const { action } = said.verdict
      if (action === 'pass') continue
      if (!binding) overrule(call, turn.at, said.verdict)
      else if (action !== 'retry' || call.attempt < call.maxAttempts) {
        const ending = await this.#consulting.take(turn, said)
        if (ending !== undefined) return this.#end(call, going, ending, policies.slice(i + 1))
      } else {
        if (!warned) refuseRetry(turn)
        warned = true
      }
    }
    return this.#end(call, going, undefined)
  }

  #begin(
    call: Call<Input>,
    seam: Seam,
    half: Half,
    apart: readonly NotAsked[],
    outcome?: Outcome<Value>,
    shown?: ShownOutcome,
  ): Going {
    const { timers, decisions } = call.site
    const log = decisions && new HalfLog(decisions, call, seam, half, apart, shown)
    return { endsAt: timers.now() + HALF_TIMEOUT_MS, log, outcome, shown }
  }

  /** The half is over: what came of it is written down before it is acted on. */
  #end(
    call: Call<Input>,
    { log }: Going,
    ending: Ending | undefined,
    behind: readonly Installed[] = [],
  ): Ending | undefined | Promise<Ending | undefined> {
    if (log === undefined) return ending
    for (const one of behind) log.notAsked(one, call.nestedIn.includes(one.policy) ? 'own' : 'settled')
    const written = this.#consulting.written(call, () => {
      if (ending === undefined) return log.end()
      const { verdict, at, value } = ending
      const final = value === undefined || at.half === 'before' ? undefined : this.#show(value.read as Value)
      return log.end({ by: at.who.name, verdict, value: final })
    })
    return written === undefined ? ending : written.then(() => ending)
  }

  /** The turn of a policy that is awaited. `undefined` for one that is not asked, or in shadow: that one is asked beside. */
  #turnOf(one: Installed, call: Call<Input>, seam: Seam, half: Half, going: Going): Turn<Input> | undefined {
    if (call.nestedIn.length > 0 && call.nestedIn.includes(one.policy)) {
      going.log?.notAsked(one, 'own')
      return undefined
    }
    if (!isAsked(one, call, seam, going)) {
      going.log?.notAsked(one, 'match')
      return undefined
    }
    if (one.enforces) return turnOf(one, seam, half, call, going)
    const consulted = call.site.shadows.consult(one, () => this.#shadow(turnOf(one, seam, half, call, going)))
    if (!consulted) going.log?.notAsked(one, 'dropped')
    return undefined
  }

  /** What a policy in shadow is asked, and what becomes of its verdict: it is recorded and not obeyed. */
  #shadow(turn: Turn<Input>): ShadowTask {
    const { one, at, call, going } = turn
    const { subject, attempt, input } = call
    const site = call.site.beside()
    const { kept } = one.policy
    const log = site.decisions && new HalfLog(site.decisions, call, at.seam, at.half, [], going.shown)
    const isPlain = (verdict: Verdict): boolean => {
      if (verdict.action !== 'modify') return verdict.action === plainAt(at.half)
      const changes = this.#consulting.wouldChange(one, input, verdict.input)
      log?.modified(one, changes)
      return changes.length === 0
    }
    return {
      question: { ...questionOf(turn, undefined), site },
      keeper: kept && (() => keeperOf(at, call, kept, `shadow:${one.policy.name}`)),
      log,
      said: (verdict) => {
        const changes = !isPlain(verdict)
        if (changes) site.decided({ ...decisionOf({ subject, attempt }, at, verdict), mode: 'shadow' })
        return changes
      },
      failed: (failure) => warn({ site, subject }, at, failureInShadow(at, failure)),
    }
  }

  stop(call: Call<Input>, error: unknown): Promise<never> {
    return this.#consulting.stop(call, error)
  }

  errorOf(outcome: Outcome<Value> | undefined): unknown {
    return this.#consulting.errorOf(outcome)
  }

  #show(value: Value): Json {
    return this.#spec.show === undefined ? (value as Json) : this.#spec.show(value)
  }
}

/** Whether a policy that may be asked at this call site is asked about this call, as it stands now. */
function isAsked({ policy }: Installed, call: Call, seam: Seam, { shown }: Going): boolean {
  if (call.nestedIn.length > 0 && call.nestedIn.includes(policy)) return false
  const { match } = policy
  if (match === undefined || match.reads === 'subject') return true
  const { subject, input, site } = call
  return selects(match, {
    subject,
    labels: [...site.labels],
    ...(shown === undefined || seam === 'toolCall' ? { input } : {}),
    ...(shown === undefined ? {} : { outcome: shown }),
  })
}

function refuseRetry({ at, call }: Turn): void {
  const which = `attempt ${call.attempt} of ${call.maxAttempts} was the last`
  const message = `policy "${at.who.name}" asked for a retry of ${stepOf(at)}, which is refused: ${which}. The policies after it still have a say.`
  warn(call, at, message)
}
