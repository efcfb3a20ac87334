import type { ChatRequest, ChatResponse } from '../chat/chat.ts'
import type { Json, JsonObject } from '../json/json.ts'
import type { Consultation } from './consultation.ts'
import type { DecisionPlace } from './decision-log.ts'
import type { KeptValues } from './kept.ts'
import type { Policy } from './policy.ts'
import type { Shadows } from './shadow.ts'
import type { Subject } from './subject.ts'
import type { Half, Seam } from './table.ts'

/** Time, handed in. */
export interface Timers {
  /** Milliseconds on a clock that only goes forward. */
  now(): number
  set(ms: number, then: () => void): unknown
  clear(timer: unknown): void
}

/** Something a person should know that did not end the run: a substituted result, a granted or refused retry, a clamped delay. */
export interface Warning {
  readonly message: string
  readonly policy?: string
  /** Own middleware, where it was no policy. */
  readonly middleware?: string
  readonly seam?: Seam
  readonly half?: Half
  readonly nodeName?: string
}

/** A verdict that changed something, as reported. Plain ones are counted only. */
export interface Decision {
  readonly policy?: string
  readonly plugin?: string
  /** Own middleware, where it was no policy. */
  readonly middleware?: string
  readonly seam: Seam
  readonly half: Half
  readonly action: string
  readonly subject: Subject
  readonly attempt: number
  readonly reason?: string
  readonly code?: string
  /** It was recorded only: what the policy would have said. */
  readonly mode?: 'shadow'
  readonly warnings?: readonly string[]
  /** What it added to the labels. */
  readonly labels?: readonly string[]
  readonly annotations?: Readonly<Record<string, string>>
}

/** What a gate needs of the run it belongs to. */
export interface Site {
  /** True once the run has been ended from outside; from then on no call of it settles. */
  readonly stopped: boolean
  /** Aborts when the run ends before its calls did. Made when first read. */
  readonly signal: AbortSignal
  readonly timers: Timers
  /** One set for the whole turn; it only grows. */
  readonly labels: Set<string>
  /** What middleware keeps: one for the whole turn, like labels. */
  readonly kept: KeptValues
  /** Consultations under way, so that a stop can give them up. */
  readonly consultations: Set<Consultation>
  /** Ends the run from outside. */
  stop(error: unknown): void
  warn(warning: Warning): void
  /** Something that went wrong too late to count: kept for the outcome, and a warning. */
  note(where: string, failure: unknown): void
  decided(decision: Decision): void
  consulted(): void
  /** Where decisions are written down; absent where nobody takes them. */
  readonly decisions: DecisionPlace | undefined
  /** Policies of the process that are consulted beside its calls. */
  readonly shadows: Shadows
  /** Where one of them is consulted: it may end after the run, and nothing that goes wrong there reaches that. */
  beside(): Site
  /** Publishes what a policy emits, as `plugin:<Type>:<name>`. */
  emitFrom(policy: Policy, subject: Subject, name: string, data: Json): void
  logFrom(policy: Policy, subject: Subject, level: LogLevel, message: string): void
  /** A policy's own calls. They pass the other policies, and none of those the call is nested in. */
  callModelFrom(
    consultation: Consultation,
    request: Omit<ChatRequest, 'model'> & { model?: string },
  ): Promise<ChatResponse>
  runToolFrom(consultation: Consultation, name: string, input: JsonObject): Promise<Json>
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'
export const LOG_LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error']

/** A promise for a call of a run that has been stopped: nothing inside can catch, retry or replace a stop. */
export const never = <Value>(): Promise<Value> => new Promise<Value>(() => {})
