import type { Path } from '../json/path.ts'
import type { PolicyMode } from './policy.ts'
import type { Caller } from './subject.ts'
import type { Action, Half, Seam } from './table.ts'

/**
 * Why a policy that is subscribed was not consulted: its mode, its selector, a verdict before it, its breaker; `own`, where the
 * call is made inside its own; `dropped`, where it is in shadow and has too many consultations under way.
 */
export type NotAskedWhy = 'off' | 'match' | 'settled' | 'breaker' | 'own' | 'dropped'

/** How a policy failed. */
export type FailureCause = 'threw' | 'timeout' | 'died' | 'nonsense'

/** Who a run is for, as whoever lets it in knows them. */
export interface Principal {
  /** `token` and the like; `local` where nobody has to say who they are. */
  readonly kind: string
  readonly id: string
}

/** What a decision was about, as the host resolved it. */
export interface DecisionSubject {
  readonly kind: 'run' | 'node' | 'round' | 'model' | 'tool' | 'ask'
  /** Of the graph, node, model or tool; the key of an ask. */
  readonly name: string
  readonly node?: string
  readonly source?: string
  readonly caller?: Caller
  readonly callId?: string
  /** The agent's round, from 1. */
  readonly round?: number
}

/** One policy of a half, as it was consulted. */
export interface ConsultedPolicy {
  readonly name: string
  readonly version?: string
  readonly mode: PolicyMode
  readonly verdict: Action
  readonly code?: string
  /** Of a policy in shadow only: what it would have said. At most 256 bytes. */
  readonly reason?: string
  readonly durationMs: number
  readonly revisit?: true
  /** It failed, and `verdict` is what that counted as. */
  readonly failed?: FailureCause
  /** Milliseconds it waited for its turn at what it keeps. */
  readonly waited?: number
}

/** The question of a policy that is over, whose answer a half goes by. */
interface ResolvedAsk {
  /** `person`; `expiry` where nobody answered in time; else the policy, or own middleware, that answered before it opened. */
  readonly by: string
  /** The person, where whoever let the answer in knows them. */
  readonly principal?: Principal
  /** RFC 3339, when it was answered or found expired; a half goes by it when the run goes on, which may be later. */
  readonly at: string
  /** Names the question among those of its task. */
  readonly ask: string
  /** `sha256:` over the RFC 8785 form of the input that its asker was shown. */
  readonly digest: string
}

/**
 * One half of one call about which policies were consulted: who, in which order, and what came of it. It is free of payload:
 * digests and names, no inputs, results or messages of errors. A half of which every policy is off or does not match is none.
 * The verdict of a policy in shadow is a record of its own, for nobody waits for it.
 */
export interface DecisionRecord {
  /** Unique, and sorted by time as text. */
  readonly id: string
  /** RFC 3339, when the half began. */
  readonly time: string
  /** The whole half. */
  readonly durationMs: number
  readonly thread?: string
  /** Absent on `main`. */
  readonly branch?: string
  readonly run: string
  readonly task?: string
  /** Counts the records of a thread's branch, or of a turn without one, from 1 and without gaps. */
  readonly seq: number
  readonly trace?: { readonly traceId: string; readonly spanId: string }
  /** Digest of the policy file and plugin versions in force; who writes the records knows it. */
  readonly revision?: string
  readonly seam: Seam
  readonly half: Half
  readonly attempt: number
  readonly subject: DecisionSubject
  /** Who let the run go on: whoever began it, or, of one that goes on with answers, whoever gave these. */
  readonly principal?: Principal
  /** `sha256:` over the RFC 8785 form of { seam, subject, input } (after: outcome), before and after the half. Equal: nothing changed. */
  readonly inputDigest: string
  readonly finalDigest: string
  /** What the half came to: a verdict's name. */
  readonly outcome: Action
  readonly code?: string
  /** For people: at most 256 bytes, control characters escaped. */
  readonly reason?: string
  /** What modifies touched, no values; at most 16. */
  readonly changed?: readonly Path[]
  /** The policy that decided, or `engine`. */
  readonly by: string
  /** All that were consulted, in order. */
  readonly policies: readonly ConsultedPolicy[]
  readonly notAsked?: readonly { readonly name: string; readonly why: NotAskedWhy }[]
  /** An answer decided, or was shown to the policy that had asked. */
  readonly resolved?: ResolvedAsk
  readonly warnings?: readonly string[]
  readonly labels?: readonly string[]
  readonly annotations?: Readonly<Record<string, string>>
  readonly error?: { readonly policy: string; readonly cause: FailureCause }
  /** Hash of the record before it, where whoever writes them chains them. */
  readonly prev?: string
  /** Records lost before this one. */
  readonly dropped?: number
}

/** Where decision records go. */
export interface DecisionSink {
  /** May be asynchronous; records come in the order of their `seq` per thread. */
  write(record: DecisionRecord): void | Promise<void>
  /** A record that cannot be written stops the run; without it, it counts as dropped. */
  readonly required?: boolean
}
