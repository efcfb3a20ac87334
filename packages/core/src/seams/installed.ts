import type { Parts } from '../json/path.ts'
import { Breaker } from './breaker.ts'
import type { Policy, PolicyMode } from './policy.ts'
import { readRules } from './rules.ts'

/** A policy as gates hold it: its rules, read once, and how it fares in this process. There is one for each policy object. */
export class Installed {
  readonly policy: Policy
  readonly mode: PolicyMode
  /** Whether its failure counts as proceed or pass. */
  readonly passes: boolean
  readonly breaker: Breaker | undefined
  readonly fields: readonly Parts[] | undefined
  readonly mayModify: readonly Parts[] | undefined

  private constructor(policy: Policy) {
    const { fields, mayModify } = readRules(policy, policy)
    this.policy = policy
    this.mode = policy.mode ?? 'enforce'
    this.passes = policy.onFailure === 'pass'
    this.breaker = policy.breaker && new Breaker(policy.breaker)
    this.fields = fields
    this.mayModify = mayModify ?? fields
  }

  static readonly #known = new WeakMap<Policy, Installed>()

  /** @throws SluiceError as {@link readRules}. */
  static of(policy: Policy): Installed {
    const known = Installed.#known.get(policy)
    if (known !== undefined) return known
    const installed = new Installed(policy)
    Installed.#known.set(policy, installed)
    return installed
  }

  get enforces(): boolean {
    return this.mode === 'enforce'
  }
}
