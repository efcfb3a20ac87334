import type { ChatRequest, ChatResponse, Json, JsonObject } from '../generated/chat.ts'
import type { Half, SEAMS, Seam, Subject } from '../generated/seams.ts'

/** What each seam shows: the value that `before` is given as `input`, and the value of an outcome that went well. */
export interface Shown {
  run: { input: JsonObject; value: Json }
  node: { input: JsonObject; value: JsonObject }
  nodeError: { input: never; value: JsonObject }
  agentRound: {
    input: { readonly round: number; readonly maxRounds: number }
    value: { readonly round: number; readonly toolCalls: readonly string[] }
  }
  modelCall: { input: ChatRequest; value: ChatResponse }
  toolCall: { input: JsonObject; value: Json }
  ask: { input: Json; value: Json }
}

interface ShownError {
  readonly name: string
  readonly message: string
  readonly code?: string
}

/** How a step went. */
export type ShownOutcome<Value = Json> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly error: ShownError }

/** `nodeError` is consulted on failures only, `agentRound.after` on rounds that went well only. */
type OutcomeOf<S extends Seam> = S extends 'nodeError'
  ? Extract<ShownOutcome, { ok: false }>
  : S extends 'agentRound'
    ? Extract<ShownOutcome<Shown[S]['value']>, { ok: true }>
    : ShownOutcome<Shown[S]['value']>

export interface BeforeShown<S extends Seam> {
  readonly subject: Subject
  readonly input: Shown[S]['input']
}

export interface AfterShown<S extends Seam> {
  readonly subject: Subject
  readonly outcome: OutcomeOf<S>
  /** At `toolCall` only: the arguments that ran. */
  readonly input: Shown[S]['input']
}

/** What any verdict may carry besides its action. */
interface Remarks {
  readonly code?: string
  readonly warnings?: readonly string[]
  readonly labels?: readonly string[]
  readonly annotations?: Readonly<Record<string, string>>
}

/** Every verdict; which of them a half admits is in the table of seams. */
type AnyVerdict<Input, Value> = Remarks &
  (
    | { readonly action: 'proceed' | 'pass' }
    | { readonly action: 'modify'; readonly input: Input }
    | { readonly action: 'replace'; readonly value: Value }
    | { readonly action: 'reject' | 'fail'; readonly reason: string }
    | { readonly action: 'suspend'; readonly ask: JsonObject }
    | { readonly action: 'retry' /** Milliseconds; clamped to 30,000. */; readonly delayMs?: number }
  )

type Admitted<S extends Seam, H extends Half> = (typeof SEAMS)[S][H][number]

type VerdictOf<A extends string, Input, Value, V = AnyVerdict<Input, Value>> = V extends { action: string }
  ? V['action'] & A extends never
    ? never
    : V & { readonly action: A }
  : never

/** At `modelCall` a modification is an edit: the fields to change. Elsewhere it is the whole new value. */
type Modified<S extends Seam> = S extends 'modelCall' ? Partial<ChatRequest> : Shown[S]['input']

/** The verdicts that `before` of a seam admits. */
export type BeforeVerdict<S extends Seam> = VerdictOf<Admitted<S, 'before'>, Modified<S>, Shown[S]['value']>
/** The verdicts that `after` of a seam admits. */
export type AfterVerdict<S extends Seam> = VerdictOf<Admitted<S, 'after'>, never, Shown[S]['value']>
