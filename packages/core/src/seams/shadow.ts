import { SluiceError } from '../errors/error.ts'
import { Consultation, HALF_TIMEOUT_MS, type Question } from './consultation.ts'
import type { HalfLog } from './decision-log.ts'
import { causeOf } from './failure.ts'
import type { Installed } from './installed.ts'
import { type Keeper, keptContended, MOST_TRIES } from './kept.ts'
import type { Policy } from './policy.ts'
import { isThenable } from './thenable.ts'
import { plainAt, readVerdict, type Verdict } from './verdict.ts'

/** Consultations that a policy in shadow may have under way at once; more are dropped, and counted. */
const MOST_IN_FLIGHT = 64

/** How a policy in shadow has fared in this process. */
export interface ShadowCounts {
  readonly policy: string
  readonly consulted: number
  /** Verdicts that would have changed something, by name. */
  readonly would: Readonly<Record<string, number>>
  /** It threw, timed out, died or answered nonsense. */
  readonly failed: number
  /** It was not consulted, because too many consultations were under way. */
  readonly dropped: number
}

type Counted = { -readonly [K in keyof ShadowCounts]: ShadowCounts[K] } & { would: Record<string, number> }

/** What is done with what a policy in shadow says. */
export interface ShadowTask {
  readonly question: Question
  /** Its turn at what it keeps, if it keeps something. */
  readonly keeper: (() => Promise<Keeper>) | undefined
  readonly log: HalfLog | undefined
  /** Whether the verdict would have changed something; told of it. Throws what is wrong with it. */
  said(verdict: Verdict): boolean
  failed(failure: unknown): void
}

/** The policies in shadow of a process: consulted beside the calls, awaited by none of them, bounded in flight. */
export class Shadows {
  readonly #counts = new Map<Installed, Counted>()
  readonly #inFlight = new Map<Installed, number>()
  readonly #underWay = new Set<Promise<void>>()

  /** Each policy that was to be consulted so far. */
  get counts(): readonly ShadowCounts[] {
    return [...this.#counts.values()].map((counts) => ({ ...counts, would: { ...counts.would } }))
  }

  /** Settles when each has answered, or its time is over. */
  async settled(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay)
  }

  /** Whether it is consulted, and not dropped. */
  consult(one: Installed, make: () => ShadowTask): boolean {
    const counts = this.#countsOf(one)
    const inFlight = this.#inFlight.get(one) ?? 0
    if (inFlight >= MOST_IN_FLIGHT) {
      counts.dropped++
      return false
    }
    counts.consulted++
    const under = this.#consult(one, make(), counts)
    if (under === undefined) return true
    this.#inFlight.set(one, inFlight + 1)
    this.#underWay.add(under)
    under.then(() => {
      this.#underWay.delete(under)
      this.#inFlight.set(one, (this.#inFlight.get(one) as number) - 1)
    })
    return true
  }

  /** Never throws or rejects. What answers at once is done with at once. */
  #consult(one: Installed, task: ShadowTask, counts: Counted): Promise<void> | undefined {
    const { question, log } = task
    const { seam, half, site } = question
    const seq = log?.reserve()
    const since = site.timers.now()
    const say = (answer: unknown) => {
      const verdict = readVerdict(seam, half, answer)
      if (task.said(verdict)) counts.would[verdict.action] = (counts.would[verdict.action] ?? 0) + 1
      log?.consulted(one, verdict, { since })
    }
    const fail = (failure: unknown) => {
      counts.failed++
      const [action, cause] = [plainAt(half), causeOf(failure)]
      log?.consulted(one, { action }, { since, failed: cause })
      log?.failed(one, cause, action)
      task.failed(failure)
    }
    const end = () => (seq === undefined ? undefined : log?.shadow(seq))
    try {
      const answer = ask(one.policy, task, since)
      if (isThenable(answer)) return Promise.resolve(answer).then(say).catch(fail).then(end)
      say(answer)
    } catch (failure) {
      fail(failure)
    }
    end()
    return undefined
  }

  #countsOf(one: Installed): Counted {
    const known = this.#counts.get(one)
    if (known !== undefined) return known
    const counts = { policy: one.policy.name, consulted: 0, would: {}, failed: 0, dropped: 0 }
    this.#counts.set(one, counts)
    return counts
  }
}

function ask(policy: Policy, { question, keeper }: ShadowTask, since: number): unknown {
  return keeper === undefined ? consult(policy, question) : inTurn(policy, question, keeper, since)
}

async function inTurn(
  policy: Policy,
  question: Question,
  keeper: () => Promise<Keeper>,
  since: number,
): Promise<unknown> {
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const kept = await keeper()
    const waited = Math.round(question.site.timers.now() - since)
    try {
      if (waited >= policy.timeoutMs) {
        const why = `timed out after ${waited} ms of waiting for its turn at what it keeps`
        throw new SluiceError('POLICY_TIMED_OUT', why, { policy: policy.name })
      }
      const answer = await consult(policy, question, kept)
      if ((await kept.settled()) !== false) return answer
    } finally {
      kept.end()
    }
  }
  throw keptContended(policy.name)
}

function consult(policy: Policy, question: Question, keeper?: Keeper): unknown {
  const consultation = new Consultation(policy, question, keeper?.again ?? false, keeper)
  const answer = policy.consult(consultation)
  return isThenable(answer) ? consultation.within(answer, question.site.timers.now() + HALF_TIMEOUT_MS) : answer
}
