import { type Consultation, canonical, type Json } from '@sluice/core'
import { type ApprovalRequest, type Resolved, resolve } from './approval.ts'
import { type Combined, type Composition, compose } from './compose.ts'
import type { AgentContext, Shown } from './context.ts'
import { withTarget } from './context.ts'
import { type IdentityProvider, identityOf, providerName } from './identity.ts'
import type { AgentHooksOptions, Interceptor } from './options.ts'
import { recordOf } from './record.ts'
import { type Place, type Session, Sessions } from './session.ts'
import { hostDeny, NotAVerdict, readVerdict, type Verdict } from './verdict.ts'

const SPEC = 'agent-hooks/0.1'
const TIMEOUT_MS = 5_000

/** A question about an emission that has no answer yet. */
export interface Open {
  readonly request: ApprovalRequest
  /** Its number among those about this emission, from 1. */
  readonly question: number
}

/** What an emission came to, or what a person has to answer before. */
export type Emitted = { readonly combined: Combined } | { readonly open: Open }

/** Leaves the composition where an answer is missing: all of it runs again when it is there. */
class Unanswered extends Error {
  readonly open: Open
  constructor(open: Open) {
    super('an answer is missing')
    this.open = open
  }
}

type Asking = Consultation<Session>

/** Shows contexts to interceptors, one emission after another, and records what came of each. */
export class Emitter {
  readonly #options: AgentHooksOptions
  readonly #intercept: readonly Interceptor[]
  readonly #names: readonly (string | undefined)[]
  readonly #composition: Composition
  readonly #provider: IdentityProvider

  constructor(options: AgentHooksOptions) {
    const {
      interceptors,
      composition = { profile: 'sequential/first_deny' },
      identityProvider = 'jcs-sha256',
    } = options
    this.#options = options
    this.#intercept = interceptors.map((one) => (typeof one === 'function' ? one : one.intercept))
    this.#names = interceptors.map((one) => (typeof one === 'function' ? undefined : one.name))
    this.#composition = composition
    this.#provider = identityProvider
  }

  /** One emission. Where nothing is enforced, it is recorded and nobody is asked for an approval. */
  async emit(ctx: Asking, shown: Shown): Promise<Emitted> {
    const sessions = new Sessions(ctx.kept)
    // Nobody asks after the step: there is no half that could wait.
    const answered = ctx.half === 'before' ? ctx.answered : undefined
    const key = keyOf(shown)
    const place = sessions.place(key, answered)
    const context = this.#contextOf(shown, sessions.id, place, ctx.labels)
    const lift = (denial: Verdict, about: AgentContext, question: number) =>
      this.#lift(ctx, sessions, { key, place, answered, question }, denial, about)
    try {
      return { combined: await this.#combine(ctx, context, lift) }
    } catch (error) {
      if (error instanceof Unanswered) return { open: error.open }
      throw error
    }
  }

  async #combine(
    ctx: Asking,
    context: AgentContext,
    lift: (denial: Verdict, about: AgentContext, question: number) => Resolved | undefined,
  ): Promise<Combined> {
    let input: string | null
    try {
      input = identityOf(this.#provider, context)
    } catch (cause) {
      return this.#record(context, this.#ofHost(context, hostDeny('context_invalid', (cause as Error).message)), [
        null,
        null,
      ])
    }
    if (this.#intercept.length === 0) {
      return this.#record(context, this.#ofHost(context, hostDeny('no_interceptor')), [input, input])
    }
    let questions = 0
    const combined = await compose(this.#composition, {
      context,
      count: this.#intercept.length,
      ask: (index, about) => this.#ask(index, about, ctx.signal),
      lift: (denial, about) => lift(denial, about, ++questions),
    })
    return this.#recordApplied(context, combined, input)
  }

  /** What was made of the target must have an identity too: one that has none is a denial. */
  #recordApplied(context: AgentContext, combined: Combined, input: string | null): Combined {
    const { verdict, target } = combined
    const isApplied = verdict.decision !== 'deny' && this.#options.evaluateOnly !== true && target !== context.target
    if (!isApplied) return this.#record(context, combined, [input, input])
    try {
      return this.#record(context, combined, [input, identityOf(this.#provider, withTarget(context, target))])
    } catch (cause) {
      const denied = { ...combined, verdict: hostDeny('context_invalid', (cause as Error).message), decidedBy: null }
      return this.#record(context, denied, [input, input])
    }
  }

  #record(context: AgentContext, combined: Combined, identities: readonly [string | null, string | null]): Combined {
    this.#options.onRecord?.(
      recordOf({
        context,
        combined,
        identities,
        provider: providerName(this.#provider),
        composition: this.#composition,
        evaluatesOnly: this.#options.evaluateOnly === true,
        names: this.#names,
      }),
    )
    return combined
  }

  #ofHost(context: AgentContext, verdict: Verdict): Combined {
    return { verdict, decidedBy: null, slots: [], truncated: this.#intercept.length > 0, target: context.target }
  }

  /** Asks one interceptor, with a copy of its own. Whatever goes wrong with it is its denial. */
  async #ask(index: number, context: AgentContext, signal: AbortSignal): Promise<Verdict> {
    const { interceptorTimeoutMs: ms = TIMEOUT_MS } = this.#options
    const intercept = this.#intercept[index] as Interceptor
    const time = AbortSignal.timeout(ms)
    try {
      const answer = await Promise.race([
        (async () => intercept(structuredClone(context), { signal: AbortSignal.any([signal, time]) }))(),
        new Promise<never>((_, reject) => time.addEventListener('abort', () => reject(time.reason), { once: true })),
      ])
      return readVerdict(answer)
    } catch (failure) {
      if (failure instanceof NotAVerdict) return hostDeny('verdict_invalid', failure.message)
      return time.aborted ? hostDeny('interceptor_timeout', `${ms} ms were over`) : hostDeny('interceptor_failed')
    }
  }

  /** Asks for an approval, or reads the one that was given. */
  #lift(
    ctx: Asking,
    sessions: Sessions,
    { key, place, answered, question }: { key: string; place: Place; answered: Json | undefined; question: number },
    denial: Verdict,
    about: AgentContext,
  ): Resolved | undefined {
    const { approvals, evaluateOnly, redact = (context: AgentContext) => context } = this.#options
    if (approvals === false || evaluateOnly === true || ctx.half === 'after') return undefined
    const context = redact(about)
    const request: ApprovalRequest = {
      context_identity: identityOf(this.#provider, context),
      interception_point: context.interception_point,
      verdict: denial,
      context,
    }
    const answer = sessions.answer(question, place, answered)
    if (answer !== undefined) return resolve(answer, request)
    sessions.wait(key, request.context_identity, place, question)
    throw new Unanswered({ request, question })
  }

  #contextOf(shown: Shown, session: string, place: Place, labels: readonly string[]): AgentContext {
    const { agent = { id: 'sluice' } } = this.#options
    return {
      spec: SPEC,
      interception_point: shown.point,
      ...place,
      agent: { framework: 'sluice', ...agent },
      session: { id: session },
      ...shown.fields,
      target: shown.target,
      ...(labels.length > 0 && { extensions: { sluice: { labels } } }),
    }
  }
}

const keyOf = ({ point, fields }: Shown): string => `${point} ${canonical(fields)}`
