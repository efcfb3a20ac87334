import type { Json } from '@sluice/core'
import type { Resolved } from './approval.ts'
import { type AgentContext, withTarget } from './context.ts'
import { setAt } from './path.ts'
import { hostDeny, isOfHost, type Verdict } from './verdict.ts'

export const PROFILES = [
  'sequential/first_deny',
  'sequential/run_all',
  'parallel/strictest',
  'parallel/unanimous',
] as const

/** How the verdicts of several interceptors become one. The host says so, and each record repeats it. */
export interface Composition {
  readonly profile: (typeof PROFILES)[number]
  /** `sequential/first_deny`: whether those behind a denial that was lifted are asked; `stop` without it. */
  readonly on_approval?: 'stop' | 'resume'
  /** `parallel/unanimous`: whether a disagreement may be lifted; `deny` without it. */
  readonly on_disagreement?: 'deny' | 'approval'
  /** `parallel/strictest`: whether two edits of one value may be arbitrated; `deny` without it. */
  readonly on_transform_conflict?: 'deny' | 'approval'
}

/** What one emission came to. */
export interface Combined {
  readonly verdict: Verdict
  /** Whose verdict it is; `null` where nobody objected, or it is the host's own. */
  readonly decidedBy: number | null
  /** All that were given, in the order in which interceptors are listed. */
  readonly slots: readonly Slot[]
  /** Whether some were never asked. */
  readonly truncated: boolean
  readonly resolvedBy?: Resolved['by']
  /** What counts from here on, where the verdict is no denial. */
  readonly target: Json
}

interface Slot {
  readonly index: number
  readonly verdict: Verdict
}

export interface Asked {
  readonly context: AgentContext
  readonly count: number
  /** Never rejects: an interceptor that fails has denied. */
  ask(index: number, context: AgentContext): Promise<Verdict>
  /** What became of a denial that may be lifted; `undefined` where nobody is there to lift it. */
  lift(denial: Verdict, context: AgentContext): Resolved | undefined
}

export function compose(composition: Composition, asked: Asked): Promise<Combined> {
  switch (composition.profile) {
    case 'sequential/first_deny':
      return firstDeny(asked, composition.on_approval === 'resume')
    case 'sequential/run_all':
      return runAll(asked)
    case 'parallel/strictest':
      return strictest(asked, composition.on_transform_conflict === 'approval')
    case 'parallel/unanimous':
      return unanimous(asked, composition.on_disagreement === 'approval')
  }
}

/** Each sees what the ones before it made of the target; the first denial that stands ends it. */
async function firstDeny({ context, count, ask, lift }: Asked, resumes: boolean): Promise<Combined> {
  const slots: Slot[] = []
  const so = new SoFar(context)
  for (let index = 0; index < count; index++) {
    const verdict = await ask(index, so.context)
    slots.push({ index, verdict })
    const rest = { slots, truncated: index < count - 1 }
    if (verdict.decision !== 'deny') {
      if (!so.take(index, verdict)) return so.ended(rest)
      continue
    }
    const resolved = verdict.approval && lift(verdict, so.context)
    if (!so.takeResolved(index, verdict, resolved)) return so.ended(rest)
    if (!resumes) return so.ended(rest)
  }
  return so.ended({ slots, truncated: false })
}

/** Each sees the edits before it, and all are asked: the most severe verdict counts. */
async function runAll(asked: Asked): Promise<Combined> {
  const { context, count, ask } = asked
  const slots: Slot[] = []
  const so = new SoFar(context)
  for (let index = 0; index < count; index++) {
    const verdict = await ask(index, so.context)
    slots.push({ index, verdict })
    if (!so.take(index, verdict)) return so.ended({ slots, truncated: index < count - 1 })
  }
  return settleDenials(asked, so, slots)
}

/** All see the same target. The most severe verdict counts, and two edits are a conflict. */
async function strictest(asked: Asked, arbitrates: boolean): Promise<Combined> {
  const slots = await askAll(asked)
  const so = new SoFar(asked.context)
  const edits = slots.filter(({ verdict }) => verdict.decision === 'transform')
  const denial = severest(slots)
  if (edits.length > 1) {
    // Lifting a denial settles no conflict: with one, it stands.
    if (denial !== undefined) return so.denied(denial, slots)
    return arbitrate(asked, slots, hostDeny('transform_conflict'), arbitrates)
  }
  for (const { index, verdict } of edits) if (!so.take(index, verdict)) return so.ended({ slots, truncated: false })
  return settleDenials(asked, so, slots)
}

/** All see the same target, and only where every one allows is there no disagreement. */
async function unanimous(asked: Asked, arbitrates: boolean): Promise<Combined> {
  const slots = await askAll(asked)
  if (slots.every(({ verdict }) => verdict.decision === 'allow')) {
    return new SoFar(asked.context).ended({ slots, truncated: false })
  }
  // What failed to judge cannot be outvoted.
  const mayLift = arbitrates && !slots.some(({ verdict }) => isOfHost(verdict))
  return arbitrate(asked, slots, hostDeny('composition_disagreement'), mayLift)
}

const askAll = ({ context, count, ask }: Asked): Promise<readonly Slot[]> =>
  Promise.all(Array.from({ length: count }, async (_, index) => ({ index, verdict: await ask(index, context) })))

/** A denial of the host's own, about what the interceptors came to together. */
function arbitrate({ context, lift }: Asked, slots: readonly Slot[], denial: Verdict, mayLift: boolean): Combined {
  const so = new SoFar(context)
  const liftable = { ...denial, approval: {} }
  const resolved = mayLift ? lift(liftable, context) : undefined
  so.takeResolved(null, mayLift ? liftable : denial, resolved)
  return so.ended({ slots, truncated: false })
}

/** A plain denial stands; where all denials may be lifted, one question decides about them. */
function settleDenials({ lift }: Asked, so: SoFar, slots: readonly Slot[]): Combined {
  const denial = severest(slots)
  if (denial?.verdict.approval === undefined) {
    return denial === undefined ? so.ended({ slots, truncated: false }) : so.denied(denial, slots)
  }
  so.takeResolved(denial.index, denial.verdict, lift(denial.verdict, so.context))
  return so.ended({ slots, truncated: false })
}

/** The first denial that cannot be lifted, else the first one. */
function severest(slots: readonly Slot[]): Slot | undefined {
  const denials = slots.filter(({ verdict }) => verdict.decision === 'deny')
  return denials.find(({ verdict }) => verdict.approval === undefined) ?? denials[0]
}

/** The target as edits have left it, and whose verdict counts so far. */
class SoFar {
  context: AgentContext
  #verdict: Verdict = { decision: 'allow' }
  #decidedBy: number | null = null
  #resolvedBy: Resolved['by'] | undefined

  constructor(context: AgentContext) {
    this.context = context
  }

  /** Takes an edit over; false when it cannot be made, which is a denial. */
  take(index: number | null, verdict: Verdict): boolean {
    const { transform } = verdict
    if (transform === undefined) return true
    const point = this.context.interception_point
    const isForbidden = point === 'agent_startup' || point === 'agent_shutdown'
    const target = isForbidden ? undefined : setAt(this.context.target, transform.path, transform.value)
    if (target === undefined) {
      this.#decide(index, hostDeny(isForbidden ? 'transform_target_forbidden' : 'transform_invalid'))
      return false
    }
    this.context = withTarget(this.context, target)
    this.#decide(index, verdict)
    return true
  }

  /** Takes over what became of a denial; false when one stands. */
  takeResolved(index: number | null, denial: Verdict, resolved: Resolved | undefined): boolean {
    if (resolved === undefined) {
      this.#decide(index, denial)
      return false
    }
    this.#resolvedBy = resolved.by
    const { verdict } = resolved
    if (verdict.decision === 'transform') return this.take(index, verdict)
    // An edit that was made before counts on beside a permit.
    if (verdict.decision === 'deny' || this.#verdict.decision !== 'transform') this.#decide(index, verdict)
    return verdict.decision !== 'deny'
  }

  denied({ index, verdict }: Slot, slots: readonly Slot[]): Combined {
    this.#decide(index, verdict)
    return this.ended({ slots, truncated: false })
  }

  /** Warnings and labels of all that were asked stand on what it came to. */
  ended({ slots, truncated }: { readonly slots: readonly Slot[]; readonly truncated: boolean }): Combined {
    const given = [...new Set([...slots.map(({ verdict }) => verdict), this.#verdict])]
    const warnings = given.flatMap((verdict) => verdict.warnings ?? [])
    const labels = [...new Set(given.flatMap((verdict) => verdict.result_labels ?? []))]
    return {
      verdict: {
        ...this.#verdict,
        ...(warnings.length > 0 && { warnings }),
        ...(labels.length > 0 && { result_labels: labels }),
      },
      decidedBy: this.#decidedBy,
      slots,
      truncated,
      ...(this.#resolvedBy !== undefined && { resolvedBy: this.#resolvedBy }),
      target: this.context.target,
    }
  }

  #decide(index: number | null, verdict: Verdict): void {
    this.#verdict = verdict
    this.#decidedBy = index
  }
}
