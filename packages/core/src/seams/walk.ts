import { SluiceError } from '../errors/error.ts'
import { equal } from '../json/equal.ts'
import { isObject, type Json, type JsonObject } from '../json/json.ts'
import { changesBetween, covers, layOver, type Parts, pathOf, project } from '../json/path.ts'
import { answerTo, ENGINE, isOver, MAX_ASKS, verdictIn } from './asks.ts'
import type { Call, SeamSpec } from './call.ts'
import { Consultation, HALF_TIMEOUT_MS, type Question } from './consultation.ts'
import type { FailureCause } from './decision.ts'
import { HalfLog, type NotAsked } from './decision-log.ts'
import {
  askerOf,
  type ConsultedAt,
  causeOf,
  failureInShadow,
  failurePassed,
  middlewareFailure,
  nameOf,
  stepOf,
} from './failure.ts'
import type { Installed } from './installed.ts'
import type { Keeper, KeptOptions } from './kept.ts'
import { type Outcome, type ShownOutcome, showOutcome } from './outcome.ts'
import type { Policy } from './policy.ts'
import { decisionOf, overrule, report, warn } from './report.ts'
import { selects } from './selector.ts'
import { never } from './site.ts'
import type { Half, Seam } from './table.ts'
import { isThenable } from './thenable.ts'
import { NotAVerdict, plainAt, readVerdict, type Verdict } from './verdict.ts'

/** The verdict that ended a walk, and whose it was. */
export interface Ending {
  readonly verdict: Exclude<Verdict, { action: 'proceed' | 'modify' | 'pass' }>
  readonly at: ConsultedAt
  /** Of a policy's replace: its value, as read. */
  readonly value?: { readonly read: unknown }
  /** A person's answer was to be the result and does not fit. */
  readonly misfit?: unknown
  /** Of a policy's suspend: puts its question. */
  readonly put?: () => Promise<void>
}

/** The policies of one half at a call site, in order, and those that are left out there. */
export interface Judges {
  readonly policies: readonly Installed[]
  readonly apart: readonly NotAsked[]
}

interface PolicyAt extends ConsultedAt {
  readonly who: Policy
}

/** One half under way: when its time is over, and what is written down of it. */
interface Going {
  endsAt: number
  readonly log: HalfLog | undefined
  readonly outcome: Outcome<unknown> | undefined
  readonly shown: ShownOutcome | undefined
}

/** The walks past the policies of one seam; `undefined` is: go on as it stands. */
export class Walk<Input extends Json, Value> {
  readonly #spec: SeamSpec<Input, Value>

  constructor(spec: SeamSpec<Input, Value>) {
    this.#spec = spec
  }

  /** Consults each policy on the input as the ones before it left it; then, if it was changed, shows earlier ones what will run. */
  async before(call: Call<Input>, judges: Judges): Promise<Ending | undefined> {
    const { seam } = this.#spec
    const { policies } = judges
    const going = this.#begin(call, seam, 'before', judges.apart)
    const consulted: Installed[] = []
    let lastChange = -1
    for (const [i, one] of policies.entries()) {
      if (!this.#isAsked(one, call, seam, going)) continue
      if (one.mode === 'shadow') {
        this.#shadow(one, call, seam, 'before', going)
        continue
      }
      consulted.push(one)
      const at = placeAt(one, seam, 'before', call)
      const { verdict, answered } = await this.#consult(at, one, call, going, false)
      if (verdict.action === 'modify') {
        if (await this.#modify(at, one, call, going, verdict)) lastChange = i
      } else if (verdict.action !== 'proceed') {
        const ending = await this.#take(at, one, call, going, verdict as Ending['verdict'], answered)
        if (ending !== undefined) return this.#end(call, going, ending, policies.slice(i + 1))
      }
    }
    const looked =
      lastChange < 1
        ? undefined
        : await this.#finalLook(
            call,
            policies.slice(0, lastChange),
            consulted,
            policies[lastChange] as Installed,
            going,
          )
    return this.#end(call, going, looked)
  }

  /** What runs is what was judged: policies that stand before the last change are shown the final value. */
  async #finalLook(
    call: Call<Input>,
    earlier: readonly Installed[],
    consulted: readonly Installed[],
    changer: Installed,
    going: Going,
  ): Promise<Ending | undefined> {
    const { seam } = this.#spec
    for (const one of earlier) {
      // A selector that did not match the value as it was may match what will run.
      if (one.mode === 'shadow' || !this.#isAsked(one, call, seam, going, true)) continue
      const at = placeAt(one, seam, 'before', call)
      const { verdict, answered } = await this.#consult(at, one, call, going, consulted.includes(one))
      if (verdict.action === 'modify') {
        const judged = call.input
        const why = `it changed again what policy "${changer.policy.name}" had changed after it, and nobody would judge the result`
        if (await this.#modify(at, one, call, going, verdict, why)) call.input = judged
      } else if (verdict.action !== 'proceed') {
        const ending = await this.#take(at, one, call, going, verdict as Ending['verdict'], answered)
        if (ending !== undefined) return ending
      }
    }
    return undefined
  }

  async after(
    seam: Seam,
    judges: Judges,
    call: Call<Input>,
    outcome: Outcome<Value>,
    binding = this.#spec.binding?.(outcome) ?? true,
  ): Promise<Ending | undefined> {
    const { policies } = judges
    const shown = showOutcome(outcome, (value) => this.#show(value))
    const going = this.#begin(call, seam, 'after', judges.apart, outcome, shown)
    let warned = false
    for (const [i, one] of policies.entries()) {
      if (!this.#isAsked(one, call, seam, going)) continue
      if (one.mode === 'shadow') {
        this.#shadow(one, call, seam, 'after', going)
        continue
      }
      const at = placeAt(one, seam, 'after', call)
      const { verdict } = await this.#consult(at, one, call, going, false)
      if (verdict.action === 'pass') continue
      if (!binding) {
        overrule(call, at, verdict)
        continue
      }
      if (verdict.action !== 'retry' || call.attempt < call.maxAttempts) {
        const ending = await this.#take(at, one, call, going, verdict as Ending['verdict'], false)
        if (ending !== undefined) return this.#end(call, going, ending, policies.slice(i + 1))
        continue
      }
      if (!warned)
        warn(
          call,
          at,
          `policy "${one.policy.name}" asked for a retry of ${stepOf(at)}, which is refused: attempt ${call.attempt} of ${call.maxAttempts} was the last. The policies after it still have a say.`,
        )
      warned = true
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
    for (const one of behind) if (!call.nestedIn.includes(one.policy)) log.notAsked(one, 'settled')
    const written = this.#write(call, () => {
      if (ending === undefined) return log.end()
      const { verdict, at, value } = ending
      const final = value === undefined || at.half === 'before' ? undefined : this.#show(value.read as Value)
      return log.end({ by: at.who.name, verdict, value: final })
    })
    return written === undefined ? ending : written.then(() => ending)
  }

  /** A record that is required and cannot be written stops the run. */
  #write(call: Call<Input>, write: () => void | Promise<void>): void | Promise<void> {
    try {
      const written = write()
      return isThenable(written) ? (written as Promise<void>).catch((error) => this.stop(call, error)) : undefined
    } catch (error) {
      return this.stop(call, error)
    }
  }

  /** Whether a policy is consulted about this call, as it stands now. */
  #isAsked(one: Installed, call: Call<Input>, seam: Seam, { shown, log }: Going, again = false): boolean {
    const { policy } = one
    if (call.nestedIn.length > 0 && call.nestedIn.includes(policy)) return false
    const { match } = policy
    if (match === undefined || match.reads === 'subject') return true
    const { subject, site } = call
    const labels = site.labels.size === 0 ? NONE : [...site.labels]
    const input = shown === undefined || seam === 'toolCall' ? { input: call.input } : undefined
    const selected = { subject, labels, ...input, ...(shown === undefined ? {} : { outcome: shown }) }
    if (selects(match, selected)) return true
    if (!again) log?.notAsked(one, 'match')
    return false
  }

  /** Asks one policy and reads what it answered. */
  async #consult(
    at: PolicyAt,
    one: Installed,
    call: Call<Input>,
    going: Going,
    revisit: boolean,
  ): Promise<{ readonly verdict: Verdict; readonly answered: boolean }> {
    const { site } = call
    const { log } = going
    if (call.over) return never()
    const { asking } = call
    const asked =
      asking === undefined || asking.asked.length === 0 || at.half === 'after'
        ? undefined
        : await answerTo(asking, at.who.name, at.input as Json)
    if (call.over) return never()
    if (asked !== undefined) log?.resolved(asked)
    const answered = asked && verdictIn(asked)
    if (answered !== undefined) return { verdict: answered, answered: true }
    const cameAt = site.timers.now()
    if (one.breaker?.admits(cameAt) === false) {
      log?.notAsked(one, 'breaker')
      const { cause } = one.breaker
      return saying(await this.#failed(at, one, call, going, breakerOpen(one, cameAt), { cause, consulted: false }))
    }
    const keeper = at.who.kept === undefined ? undefined : await keeperOf(at, call, at.who.kept)
    const since = site.timers.now()
    // While other calls have their turn at what it keeps, nobody takes their time over this one.
    if (keeper !== undefined) going.endsAt += since - cameAt
    const again = revisit || (keeper?.again ?? false)
    const told = { since, waited: since - cameAt, revisit: again }
    try {
      if (call.over) return never()
      const question = questionOf(at, one, call, going.shown, asked?.answer?.value)
      const consultation = new Consultation(at.who, question, again, keeper)
      site.consulted()
      const answer = at.who.consult(consultation)
      const awaited = isThenable(answer) ? await consultation.within(answer, going.endsAt) : answer
      if (call.over) return never()
      const verdict = readVerdict(at.seam, at.half, awaited)
      log?.consulted(one, verdict, told)
      this.#remarks(at, call, verdict)
      if (!brings(verdict)) this.#fared(at, one, call)
      return saying(verdict)
    } catch (failure) {
      if (call.over) return never()
      const cause = causeOf(failure)
      log?.consulted(one, one.passes ? { action: plainAt(at.half) } : FAILED, { ...told, failed: cause })
      return saying(await this.#failed(at, one, call, going, failure, { cause }))
    } finally {
      keeper?.end()
    }
  }

  /** What a verdict says besides its action holds whatever comes of it. */
  #remarks(at: PolicyAt, call: Call<Input>, verdict: Verdict): void {
    const { labels } = call.site
    const added = verdict.labels?.filter((label) => !labels.has(label)) ?? NONE
    for (const label of added) labels.add(label)
    for (const warning of verdict.warnings ?? NONE) warn(call, at, `${nameOf(at.who)}: ${warning}`)
    if (added.length > 0 && verdict.action === plainAt(at.half)) report(call, at, verdict)
  }

  /** It did what it should: failures in a row begin anew. */
  #fared(at: PolicyAt, { breaker }: Installed, call: Call<Input>): void {
    if (breaker?.succeeded()) warn(call, at, `${nameOf(at.who)} answers again; its breaker is closed.`)
  }

  /** A policy failed. By its rule the run stops, or the failure counts as the verdict that changes nothing. */
  async #failed(
    at: PolicyAt,
    one: Installed,
    call: Call<Input>,
    { log, outcome }: Going,
    failure: unknown,
    { cause = 'nonsense', consulted = true }: { readonly cause?: FailureCause; readonly consulted?: boolean } = {},
  ): Promise<Verdict> {
    if (call.over) return never()
    const { passes, breaker, policy } = one
    const action = plainAt(at.half)
    const opened = consulted && breaker?.failed(call.site.timers.now(), cause)
    const counts = passes ? action : 'fail'
    log?.failed(one, cause, counts)
    if (opened) {
      const { failures, openMs } = policy.breaker as NonNullable<Policy['breaker']>
      warn(
        call,
        at,
        `${nameOf(at.who)} has failed ${failures} times in a row; its breaker is open, and it is not consulted for ${openMs} ms.`,
      )
    }
    if (passes) {
      warn(call, at, failurePassed(at, failure))
      return { action }
    }
    const written = this.#write(call, () => log?.end({ by: ENGINE, verdict: FAILED }))
    if (written !== undefined) await written
    return this.stop(call, middlewareFailure(at, failure, this.errorOf(outcome as Outcome<Value> | undefined)))
  }

  /** Takes a modified input over; false when it is the same as before. `mayNot` says why it may be no other. */
  async #modify(
    at: PolicyAt,
    one: Installed,
    call: Call<Input>,
    going: Going,
    verdict: Verdict & { action: 'modify' },
    mayNot?: string,
  ): Promise<boolean> {
    const { readInput } = this.#spec
    try {
      const whole = this.#whole(one, call.input, verdict.input)
      const what = `the input that ${nameOf(at.who)} gave`
      const read = readInput === undefined ? (whole as Input) : readInput(whole, call, what)
      const same = equal(read, call.input)
      if (!same && mayNot !== undefined) throw new NotAVerdict(mayNot)
      const changes = same || (going.log ?? one.mayModify) === undefined ? NONE : changesBetween(call.input, read)
      requireAllowed(one, changes)
      this.#fared(at, one, call)
      if (same) return false
      call.input = read
      going.log?.modified(one, changes)
    } catch (failure) {
      await this.#failed(at, one, call, going, failure)
      return false
    }
    report(call, at, verdict)
    return true
  }

  /** What a policy gave that is shown parts only, laid over the rest. */
  #whole({ fields }: Installed, input: Json, given: Json): Json {
    if (fields === undefined) return given
    const shown = project(input, fields)
    if (!this.#spec.edits) return layOver(input, shown, given)
    if (!isObject(given)) return given
    const laid = layOver(input, shown, { ...(shown as JsonObject), ...(given as JsonObject) }) as JsonObject
    return Object.fromEntries(Object.keys(given).map((field) => [field, laid[field] as Json]))
  }

  /** Makes an ending of a verdict, once what it brings is read. `undefined` where that failed, and failures pass. */
  async #take(
    at: PolicyAt,
    one: Installed,
    call: Call<Input>,
    going: Going,
    verdict: Ending['verdict'],
    answered: boolean,
  ): Promise<Ending | undefined> {
    if (!brings(verdict)) return { verdict, at }
    try {
      const brought = verdict.action === 'suspend' ? { put: await prepareAsk(at, call, verdict.ask) } : undefined
      const ending = { verdict, at, ...(brought ?? { value: await this.#value(at, call, verdict as Replacing) }) }
      if (!answered) this.#fared(at, one, call)
      return ending
    } catch (failure) {
      if (answered) return { verdict, at, misfit: failure }
      await this.#failed(at, one, call, going, failure)
      return undefined
    }
  }

  async #value(at: PolicyAt, call: Call<Input>, { value }: Replacing): Promise<{ readonly read: unknown }> {
    const { readValue } = this.#spec
    const what = `the value that ${nameOf(at.who)} gave`
    return { read: readValue === undefined ? value : await readValue(value, call, what) }
  }

  /** Consults a policy whose verdict is recorded and not obeyed; nobody waits for it. */
  #shadow(one: Installed, call: Call<Input>, seam: Seam, half: Half, { shown }: Going): void {
    call.site.shadows.consult(one, () => {
      const { subject, attempt, input } = call
      const site = call.site.beside()
      const at = placeAt(one, seam, half, call)
      const { kept } = one.policy
      const log = site.decisions && new HalfLog(site.decisions, call, seam, half, NONE, shown)
      return {
        question: { ...questionOf(at, one, call, shown, undefined), site },
        keeper: kept && (() => keeperOf(at, call, kept, `shadow:${one.policy.name}`)),
        log,
        said: (verdict) => {
          const changes = verdict.action === 'modify' ? this.#wouldChange(one, input, verdict.input) : NONE
          if (changes.length > 0) log?.modified(one, changes)
          const plain = verdict.action === plainAt(half) || (verdict.action === 'modify' && changes.length === 0)
          if (!plain) site.decided({ ...decisionOf({ subject, attempt }, at, verdict), mode: 'shadow' })
          return !plain
        },
        failed: (failure) => warn({ site, subject }, at, failureInShadow(at, failure)),
      }
    })
  }

  /** Where a modify would have changed the input. What it gives is not validated: the call may have moved on. */
  #wouldChange(one: Installed, input: Json, given: Json): readonly Parts[] {
    const whole = this.#whole(one, input, given)
    const edited = this.#spec.edits && isObject(whole) ? { ...(input as JsonObject), ...(whole as JsonObject) } : whole
    const changes = changesBetween(input, edited)
    requireAllowed(one, changes)
    return changes
  }

  stop(call: Call<Input>, error: unknown): Promise<never> {
    call.site.stop(error)
    return never()
  }

  errorOf(outcome: Outcome<Value> | undefined): unknown {
    if (outcome === undefined) return undefined
    return outcome.ok ? this.#spec.errorIn?.(outcome.value) : outcome.error
  }

  #show(value: Value): Json {
    return this.#spec.show === undefined ? (value as Json) : this.#spec.show(value)
  }
}

type Replacing = Verdict & { action: 'replace' }

const NONE: readonly never[] = []
const FAILED: Verdict = { action: 'fail', reason: 'a policy failed' }

const saying = (verdict: Verdict) => ({ verdict, answered: false })

/** Whether a verdict brings something that is still to be read. */
const brings = ({ action }: Verdict): boolean => action === 'modify' || action === 'replace' || action === 'suspend'

/** @throws NotAVerdict for a change that the operator does not allow this policy. */
function requireAllowed({ mayModify }: Installed, changes: readonly Parts[]): void {
  if (mayModify === undefined) return
  const wrong = changes.find((change) => !covers(mayModify, change))
  if (wrong === undefined) return
  const may = mayModify.map((path) => `"${pathOf(path)}"`).join(', ') || 'nothing'
  throw new NotAVerdict(`changed "${pathOf(wrong)}", and may change only ${may}`)
}

const breakerOpen = ({ breaker, policy }: Installed, now: number): SluiceError =>
  new SluiceError(
    'POLICY_BREAKER_OPEN',
    `its breaker is open after ${policy.breaker?.failures} failures in a row; it is consulted again in ${breaker?.waits(now)} ms`,
    { policy: policy.name },
  )

/**
 * What puts a policy's question; `undefined` where there is nobody to put it to. Throws what is wrong with it, and for a
 * fourth one.
 */
export async function prepareAsk(
  at: ConsultedAt,
  call: Call,
  ask: JsonObject,
): Promise<(() => Promise<void>) | undefined> {
  call.asking ??= call.askHere()
  const { asking } = call
  if (asking === undefined) return undefined
  if (asking.asked.filter((asked) => asked.by === askerOf(at.who) && isOver(asked)).length >= MAX_ASKS) {
    throw new NotAVerdict(`it has asked ${MAX_ASKS} times about this call and would ask again`)
  }
  return asking.prepare(at, ask)
}

/** Names a consultation about one half of one trip, the same when the call is entered anew. */
export function markOf({ seam }: ConsultedAt, part: string, { place, attempt, trip }: Call): string | undefined {
  return place && JSON.stringify([...place, seam, part, attempt, ...(trip > 1 ? [trip] : [])])
}

/** What a middleware keeps, for this one consultation, which others of it wait for. */
export const keeperOf = (
  at: ConsultedAt,
  call: Call,
  options: KeptOptions,
  by: string = askerOf(at.who),
): Promise<Keeper> => call.site.kept.keeper(by, options, markOf(at, at.hook ?? at.half, call))

function placeAt({ policy, fields }: Installed, seam: Seam, half: Half, { subject, input, round }: Call): PolicyAt {
  const shown = fields === undefined ? input : project(input, fields)
  return { who: policy, seam, half, subject, input: shown, round }
}

function questionOf(
  at: ConsultedAt,
  { fields }: Installed,
  call: Call,
  shown: ShownOutcome | undefined,
  answered: Json | undefined,
): Question {
  const outcome =
    fields !== undefined && shown?.ok
      ? Object.freeze({ ok: true, value: project(shown.value, fields) } as const)
      : shown
  return {
    site: call.site,
    seam: at.seam,
    half: at.half,
    subject: call.subject,
    input: shown === undefined || at.seam === 'toolCall' ? (at.input as Json) : undefined,
    outcome,
    attempt: call.attempt,
    maxAttempts: call.maxAttempts,
    substituted: call.substituted,
    answered,
    nestedIn: call.nestedIn,
  }
}
