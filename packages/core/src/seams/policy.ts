import type { ChatModel } from '../chat/model.ts'
import { SluiceError } from '../errors/error.ts'
import { isObject, type Json, type JsonObject } from '../json/json.ts'
import { ownObject } from '../json/own.ts'
import type { Path } from '../json/path.ts'
import type { Consultation } from './consultation.ts'
import type { KeptOptions } from './kept.ts'
import type { ShownOutcome } from './outcome.ts'
import { readRules } from './rules.ts'
import type { Subject } from './subject.ts'
import { admits, HALVES, type Half, SEAM_NAMES, type Seam } from './table.ts'
import type { AfterVerdict, BeforeVerdict, Shown } from './verdict.ts'

/** Milliseconds a policy may take to answer, the time in its own hands. */
export const DEFAULT_POLICY_TIMEOUT_MS = 5_000

/** Whether its verdicts count, are only recorded, or it is not consulted at all. */
export type PolicyMode = 'enforce' | 'shadow' | 'off'

/** Which calls a policy is consulted about. */
export interface Selector {
  /**
   * `subject`: it reads nothing but the subject, and of that neither `toolCallId` nor, at `ask`, `key`, which it is not shown.
   * It is decided once per call site and remembered. `call`: whatever else it reads, it is decided at each call.
   */
  readonly reads: 'subject' | 'call'
  /** Synchronous. One that throws cannot be evaluated, and matches. */
  matches(shown: Selected): boolean
}

/** What a selector may read. `input` and `outcome` are there where the half shows them, as a whole. */
export interface Selected {
  readonly subject: Subject
  readonly labels: readonly string[]
  readonly input?: Json
  readonly outcome?: ShownOutcome
}

/** After so many failures in a row a policy is not consulted for so many milliseconds; then one try decides. */
export interface BreakerOptions {
  readonly failures: number
  readonly openMs: number
}

/** What the operator decides about a policy; absent is the default. */
export interface PolicyRules {
  /** Of its plugin, for the decision log. */
  readonly version?: string
  /** Where it was installed, for people: `sluice.yaml:8`, `--plugin gate.json`. */
  readonly origin?: string
  /** `enforce` without it. */
  readonly mode?: PolicyMode
  /** `fail` without it: its failure ends the run. `pass`: its failure counts as proceed or pass, and is a warning. */
  readonly onFailure?: 'fail' | 'pass'
  readonly breaker?: BreakerOptions
  /** Absent: consulted about every call. Where it does not match, the policy is as if it were not installed. */
  readonly match?: Selector
  /** Only these parts of `input`, or of `outcome.value`, are shown to it. A modify is laid over the rest. */
  readonly fields?: readonly Path[]
  /** A modify that changes anything else is its failure. Without it, `fields` hold; without both, all may be changed. */
  readonly mayModify?: readonly Path[]
}

/** An installed policy, in this process or in another one. */
export interface Policy extends PolicyRules {
  /** Its component type, for example `RetryPolicy`. */
  readonly name: string
  readonly plugin: string
  /** The operator's settings; `{}` when there are none. */
  readonly component: JsonObject
  readonly timeoutMs: number
  /** `pass`: streamed parts are not held back for this policy's `modelCall.after`. */
  readonly stream?: 'hold' | 'pass'
  /** What it keeps from consultation to consultation as `ctx.kept`. */
  readonly kept?: KeptOptions
  /** The model that its `ctx.callModel` asks; absent where its settings name none. */
  readonly model?: ChatModel
  subscribes(seam: Seam, half: Half): boolean
  /** Answers with a verdict, or a promise of one. What it answers is read by the gate, so it may be anything. */
  consult(consultation: Consultation): unknown
}

type MaybePromise<T> = T | Promise<T>

type BeforeHandler<S extends Seam, K> = (
  shown: { readonly subject: Subject; readonly input: Shown[S]['input'] },
  ctx: Consultation<K>,
) => MaybePromise<BeforeVerdict<S>>

type AfterHandler<S extends Seam, K> = (
  shown: {
    readonly subject: Subject
    readonly outcome: OutcomeShown<S>
    /** At `toolCall` only: the arguments that ran. */
    readonly input: Shown[S]['input']
  },
  ctx: Consultation<K>,
) => MaybePromise<AfterVerdict<S>>

/** `nodeError` is consulted on failures only, `agentRound.after` on rounds that went well only. */
type OutcomeShown<S extends Seam> = S extends 'nodeError'
  ? Extract<ShownOutcome, { ok: false }>
  : S extends 'agentRound'
    ? { readonly ok: true; readonly value: Shown[S]['value'] }
    : ShownOutcome<Shown[S]['value']>

/** A handler for each half of each seam that a policy subscribes to: the same object that a plugin hands to `serve`. */
export type SeamHandlers<KeptValue = unknown> = {
  readonly [S in Seam]?: {
    readonly [H in Half as Admits<S, H> extends never ? never : H]?: H extends 'before'
      ? BeforeHandler<S, KeptValue>
      : AfterHandler<S, KeptValue>
  }
}
type Admits<S extends Seam, H extends Half> = H extends 'before' ? BeforeVerdict<S> : AfterVerdict<S>

export interface PolicyOptions<KeptValue = unknown> extends PolicyRules {
  readonly name: string
  readonly seams: SeamHandlers<KeptValue>
  readonly plugin?: string
  readonly component?: JsonObject
  readonly timeoutMs?: number
  readonly stream?: 'hold' | 'pass'
  /** What it keeps: `ctx.kept` in its handlers. */
  readonly kept?: KeptOptions<KeptValue>
  readonly model?: ChatModel
}

/**
 * A policy in this process.
 *
 * @throws SluiceError `POLICY_SEAMS` when it subscribes to nothing, to a seam or a half that does not exist, or gives
 *   something that is no function; `POLICY_RULES` and `JSON_PATH` for rules that are none.
 */
export function policy<KeptValue = unknown>(options: PolicyOptions<KeptValue>): Policy {
  const { seams, plugin = 'in-process', component = {}, timeoutMs = DEFAULT_POLICY_TIMEOUT_MS, ...rest } = options
  const handlers = seams as Handlers
  checkHandlers(rest.name, handlers)
  readRules(options, options)
  return {
    ...rest,
    plugin,
    component: ownObject(component, `the settings of policy "${rest.name}"`),
    timeoutMs,
    subscribes: (seam, half) => handlers[seam]?.[half] !== undefined,
    consult: (consultation) => handlers[consultation.seam]?.[consultation.half]?.(consultation.shown, consultation),
  }
}

type Handlers = { readonly [seam: string]: { readonly [half: string]: (shown: unknown, ctx: Consultation) => unknown } }

function checkHandlers(name: string, handlers: Handlers): void {
  const refuse = (why: string) => new SluiceError('POLICY_SEAMS', `policy "${name}" ${why}`, { policy: name })
  if (!isObject(handlers) || Object.keys(handlers).length === 0) {
    throw refuse(`subscribes to no seam; seams are: ${SEAM_NAMES.join(', ')}.`)
  }
  checkSubscriptions(
    Object.fromEntries(
      Object.entries(handlers).map(([seam, halves]) => [seam, isObject(halves) ? Object.keys(halves) : halves]),
    ),
    refuse,
  )
  for (const [seam, halves] of Object.entries(handlers)) {
    for (const half of HALVES) {
      if (Object.hasOwn(halves, half) && typeof halves[half] !== 'function')
        throw refuse(`gives a ${seam}.${half} that is no function.`)
    }
  }
}

/**
 * Checks what a policy subscribes to, `{ nodeError: ['after'] }`, as a manifest writes it.
 *
 * @throws the error that `refuse` makes of the reason: an unknown seam (the text lists the known ones), a half that the seam
 *   does not have, or no half at all.
 */
export function checkSubscriptions(seams: { readonly [seam: string]: unknown }, refuse: (why: string) => Error): void {
  for (const [seam, halves] of Object.entries(seams)) {
    if (!SEAM_NAMES.includes(seam as Seam)) {
      throw refuse(`subscribes to "${seam}", a seam that does not exist; seams are: ${SEAM_NAMES.join(', ')}.`)
    }
    if (!Array.isArray(halves) || halves.length === 0) {
      throw refuse(
        `must say which halves of ${seam} it subscribes to: a list of ${halvesOf(seam as Seam).join(' and ')}.`,
      )
    }
    for (const half of halves) {
      if (!halvesOf(seam as Seam).includes(half)) {
        throw refuse(
          `subscribes to ${seam}.${String(half)}, a half that does not exist; ${seam} has: ${halvesOf(seam as Seam).join(', ')}.`,
        )
      }
    }
  }
}

export const halvesOf = (seam: Seam): readonly Half[] => HALVES.filter((half) => admits(seam, half).length > 0)
