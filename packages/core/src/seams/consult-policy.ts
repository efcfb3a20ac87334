import { SluiceError } from '../errors/error.ts'
import { equal } from '../json/equal.ts'
import { isObject, type Json, type JsonObject } from '../json/json.ts'
import { changesBetween, covers, layOver, type Parts, pathOf, project } from '../json/path.ts'
import { answerTo, ENGINE, isOver, MAX_ASKS, verdictIn } from './asks.ts'
import type { Call, SeamSpec } from './call.ts'
import { Consultation, type Question } from './consultation.ts'
import type { FailureCause } from './decision.ts'
import type { HalfLog } from './decision-log.ts'
import { askerOf, type ConsultedAt, causeOf, failurePassed, middlewareFailure, nameOf } from './failure.ts'
import type { Installed } from './installed.ts'
import { type Keeper, type KeptOptions, keptContended, MOST_TRIES } from './kept.ts'
import type { Outcome, ShownOutcome } from './outcome.ts'
import type { Policy } from './policy.ts'
import { report, warn } from './report.ts'
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

/** One half under way: when its time is over, and what is written down of it. */
export interface Going {
  endsAt: number
  readonly log: HalfLog | undefined
  readonly outcome: Outcome<unknown> | undefined
  readonly shown: ShownOutcome | undefined
}

/** A policy's turn at a half of a call. */
export interface Turn<Input extends Json = Json> {
  readonly one: Installed
  readonly at: ConsultedAt & { readonly who: Policy }
  readonly call: Call<Input>
  readonly going: Going
}

/** What a policy said; `answered` where a person did, to what it had asked. */
interface Answered {
  readonly verdict: Verdict
  readonly answered: boolean
}

/** Consults one policy and takes over what it says. Whatever goes wrong there is met by its failure rule. */
export class PolicyConsulting<Input extends Json, Value> {
  readonly #spec: SeamSpec<Input, Value>

  constructor(spec: SeamSpec<Input, Value>) {
    this.#spec = spec
  }

  /** Asks it and reads what it answered. */
  async consult(turn: Turn<Input>, revisit: boolean): Promise<Answered> {
    const { one, at, call, going } = turn
    const { site, asking } = call
    if (call.over) return never()
    const asked =
      asking === undefined || asking.asked.length === 0 || at.half === 'after'
        ? undefined
        : await answerTo(asking, at.who.name, at.input as Json)
    if (call.over) return never()
    if (asked !== undefined) going.log?.resolved(asked)
    const answered = asked && verdictIn(asked)
    if (answered !== undefined) return { verdict: answered, answered: true }
    const cameAt = site.timers.now()
    if (one.breaker?.admits(cameAt) === false) {
      going.log?.notAsked(one, 'breaker')
      return this.#said(await this.failed(turn, breakerOpen(one, cameAt), one.breaker.cause, false))
    }
    const told = { since: cameAt, waited: 0, revisit }
    try {
      const { kept } = at.who
      const person = asked?.answer?.value
      const answer = kept === undefined ? this.#ask(turn, person, told) : this.#askInTurn(turn, person, told, kept)
      const awaited = isThenable(answer) ? await answer : answer
      if (call.over) return never()
      const verdict = readVerdict(at.seam, at.half, awaited)
      going.log?.consulted(one, verdict, told)
      remark(turn, verdict)
      if (!brings(verdict)) fared(turn)
      return this.#said(verdict)
    } catch (failure) {
      if (call.over) return never()
      const cause = causeOf(failure)
      going.log?.consulted(one, one.passes ? { action: plainAt(at.half) } : FAILED, { ...told, failed: cause })
      return this.#said(await this.failed(turn, failure, cause))
    }
  }

  /** What it answered, or a promise of that. */
  #ask(turn: Turn<Input>, person: Json | undefined, { revisit }: { revisit: boolean }, keeper?: Keeper): unknown {
    const { at, call, going } = turn
    const consultation = new Consultation(at.who, questionOf(turn, person), revisit, keeper)
    call.site.consulted()
    const answer = at.who.consult(consultation)
    return isThenable(answer) ? consultation.within(answer, going.endsAt) : answer
  }

  /** The same for a policy that keeps something; once more where another process was first to change what it keeps. */
  async #askInTurn(
    turn: Turn<Input>,
    person: Json | undefined,
    told: { since: number; waited: number; revisit: boolean },
    options: KeptOptions,
  ): Promise<unknown> {
    const { at, call, going } = turn
    const { timers } = call.site
    const isFinalLook = told.revisit
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const cameAt = timers.now()
      const keeper = await keeperOf(at, call, options)
      told.since = timers.now()
      told.waited += told.since - cameAt
      told.revisit = isFinalLook || keeper.again
      // While other calls have their turn at what it keeps, nobody takes their time over this one.
      going.endsAt += told.since - cameAt
      try {
        if (call.over) return never()
        const answer = await this.#ask(turn, person, told, keeper)
        if (call.over || (await keeper.settled()) !== false) return answer
      } finally {
        keeper.end()
      }
    }
    throw keptContended(at.who.name)
  }

  #said(verdict: Verdict): Answered {
    return { verdict, answered: false }
  }

  /** Takes a modified input over; false when it is the same as before. `mayNot` says why it may be no other. */
  async modify(turn: Turn<Input>, verdict: Verdict & { action: 'modify' }, mayNot?: string): Promise<boolean> {
    const { one, at, call, going } = turn
    const { readInput } = this.#spec
    try {
      const whole = this.#whole(one, call.input, verdict.input)
      const read =
        readInput === undefined ? (whole as Input) : readInput(whole, call, `the input that ${nameOf(at.who)} gave`)
      const same = equal(read, call.input)
      if (!same && mayNot !== undefined) throw new NotAVerdict(mayNot)
      const changes = same || (going.log ?? one.mayModify) === undefined ? NONE : changesBetween(call.input, read)
      requireAllowed(one, changes)
      fared(turn)
      if (same) return false
      call.input = read
      going.log?.modified(one, changes)
    } catch (failure) {
      await this.failed(turn, failure)
      return false
    }
    report(call, at, verdict)
    return true
  }

  /** Where a modify would change this input. What it gives is not validated, for the call may have moved on. */
  wouldChange(one: Installed, input: Json, given: Json): readonly Parts[] {
    const whole = this.#whole(one, input, given)
    const edited = this.#spec.edits && isObject(whole) ? { ...(input as JsonObject), ...(whole as JsonObject) } : whole
    const changes = changesBetween(input, edited)
    requireAllowed(one, changes)
    return changes
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
  async take(turn: Turn<Input>, { verdict: said, answered }: Answered): Promise<Ending | undefined> {
    const { at, call } = turn
    const verdict = said as Ending['verdict']
    if (!brings(verdict)) return { verdict, at }
    try {
      const brought =
        verdict.action === 'suspend'
          ? { put: await prepareAsk(at, call, verdict.ask) }
          : { value: { read: await this.#value(turn, (verdict as { value: Json }).value) } }
      if (!answered) fared(turn)
      return { verdict, at, ...brought }
    } catch (failure) {
      if (answered) return { verdict, at, misfit: failure }
      await this.failed(turn, failure)
      return undefined
    }
  }

  #value({ at, call }: Turn<Input>, value: Json): unknown {
    const { readValue } = this.#spec
    return readValue === undefined ? value : readValue(value, call, `the value that ${nameOf(at.who)} gave`)
  }

  /** It failed. By its rule the run stops, or the failure counts as the verdict that changes nothing. */
  async failed(
    turn: Turn<Input>,
    failure: unknown,
    cause: FailureCause = 'nonsense',
    consulted = true,
  ): Promise<Verdict> {
    const { one, at, call, going } = turn
    if (call.over) return never()
    const action = plainAt(at.half)
    going.log?.failed(one, cause, one.passes ? action : 'fail')
    if (consulted && one.breaker?.failed(call.site.timers.now(), cause)) warn(call, at, breakerOpens(one.policy))
    if (one.passes) {
      warn(call, at, failurePassed(at, failure))
      return { action }
    }
    const written = this.written(call, () => going.log?.end({ by: ENGINE, verdict: FAILED }))
    if (written !== undefined) await written
    return this.stop(call, middlewareFailure(at, failure, this.errorOf(going.outcome as Outcome<Value> | undefined)))
  }

  /** A record that is required and cannot be written stops the run. */
  written(call: Call<Input>, write: () => void | Promise<void>): void | Promise<void> {
    try {
      const written = write()
      return isThenable(written) ? (written as Promise<void>).catch((error) => this.stop(call, error)) : undefined
    } catch (error) {
      return this.stop(call, error)
    }
  }

  stop(call: Call<Input>, error: unknown): Promise<never> {
    call.site.stop(error)
    return never()
  }

  errorOf(outcome: Outcome<Value> | undefined): unknown {
    if (outcome === undefined) return undefined
    return outcome.ok ? this.#spec.errorIn?.(outcome.value) : outcome.error
  }
}

const NONE: readonly never[] = []
const FAILED: Verdict = { action: 'fail', reason: 'a policy failed' }

/** Whether a verdict brings something that is still to be read. */
const brings = ({ action }: Verdict): boolean => action === 'modify' || action === 'replace' || action === 'suspend'

/** What a verdict says besides its action holds whatever comes of it. */
function remark({ at, call }: Turn, verdict: Verdict): void {
  const { labels } = call.site
  const added = verdict.labels?.filter((label) => !labels.has(label)) ?? NONE
  for (const label of added) labels.add(label)
  for (const warning of verdict.warnings ?? NONE) warn(call, at, `${nameOf(at.who)}: ${warning}`)
  if (added.length > 0 && verdict.action === plainAt(at.half)) report(call, at, verdict)
}

/** It did what it should: failures in a row begin anew. */
function fared({ at, one, call }: Turn): void {
  if (one.breaker?.succeeded()) warn(call, at, `${nameOf(at.who)} answers again; its breaker is closed.`)
}

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

const breakerOpens = (policy: Policy): string =>
  `${nameOf(policy)} has failed ${policy.breaker?.failures} times in a row; its breaker is open, and it is not consulted for ${policy.breaker?.openMs} ms.`

/**
 * What puts a middleware's question; `undefined` where there is nobody to put it to. Throws what is wrong with it, and for a
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

/** A policy's turn, with the input as it stands now and as the policy is shown it. */
export function turnOf<Input extends Json>(
  one: Installed,
  seam: Seam,
  half: Half,
  call: Call<Input>,
  going: Going,
): Turn<Input> {
  const { subject, input, round } = call
  const shown = one.fields === undefined ? input : project(input, one.fields)
  return { one, at: { who: one.policy, seam, half, subject, input: shown, round }, call, going }
}

export function questionOf({ one, at, call, going: { shown } }: Turn, answered: Json | undefined): Question {
  const { fields } = one
  return {
    site: call.site,
    seam: at.seam,
    half: at.half,
    subject: call.subject,
    input: shown === undefined || at.seam === 'toolCall' ? (at.input as Json) : undefined,
    outcome:
      fields !== undefined && shown?.ok
        ? Object.freeze({ ok: true, value: project(shown.value, fields) } as const)
        : shown,
    attempt: call.attempt,
    maxAttempts: call.maxAttempts,
    substituted: call.substituted,
    answered,
    nestedIn: call.nestedIn,
  }
}
