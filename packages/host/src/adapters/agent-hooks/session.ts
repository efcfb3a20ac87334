import { randomUUID } from 'node:crypto'
import { isObject, type Json, type Kept, type KeptOptions } from '@sluice/core'

/** An emission that waits for an answer, or was answered: it goes on under the name that it was asked by. */
interface Waiting {
  /** What tells it from others where identities do not. */
  readonly key: string
  readonly identity: string | null
  readonly timestamp: string
  readonly sequence: number
  /** Questions put about it so far. */
  readonly asked: number
  /** Answers by the number of their question, from 1. */
  readonly answers: { readonly [question: string]: Json }
}

/** What one session has come to: it begins at the start of a turn, and ends with it. */
export interface Session {
  readonly id: string
  /** Whether it has begun, and then whether nobody objected to that. */
  readonly phase: 'none' | 'begun' | 'open'
  readonly next: number
  readonly waiting: readonly Waiting[]
  /** By node: the model that was asked last; `after` of a model call does not show it. */
  readonly models: { readonly [nodeName: string]: string }
}

/** Emissions whose answers are remembered; the oldest is forgotten first. */
const MAX_WAITING = 32

/** What the bridge keeps over a turn. */
export const SESSION: KeptOptions<Session> = {
  scope: 'turn',
  schema: {
    '~standard': {
      version: 1,
      vendor: 'sluice',
      validate: (value) => (isSession(value) ? { value } : { value: fresh() }),
    },
  },
}

const isSession = (value: unknown): value is Session => isObject(value) && Array.isArray(value.waiting)

const fresh = (): Session => ({ id: randomUUID(), phase: 'none', next: 0, waiting: [], models: {} })

/** Where an emission stands in its session. */
export interface Place {
  readonly timestamp: string
  readonly sequence: number
}

export class Sessions {
  readonly #kept: Kept<Session>

  constructor(kept: Kept<Session>) {
    this.#kept = kept
  }

  get id(): string {
    return this.#kept.value.id
  }
  get phase(): Session['phase'] {
    return this.#kept.value.phase
  }

  modelOf(nodeName: string): string {
    return this.#kept.value.models[nodeName] ?? ''
  }

  asksModel(nodeName: string, model: string): void {
    if (this.modelOf(nodeName) === model) return
    this.#kept.update((session) => ({ ...session, models: { ...session.models, [nodeName]: model } }))
  }

  begin(): void {
    this.#kept.update(() => ({ ...fresh(), phase: 'begun' }))
  }

  open(): void {
    this.#kept.update((session) => ({ ...session, phase: 'open' }))
  }

  close(): void {
    this.#kept.update((session) => ({ ...session, phase: 'none' }))
  }

  /** The place of an emission: the one that it was asked about at, or the next one. */
  place(key: string, answered: Json | undefined): Place {
    const waiting = this.#find(key, answered)
    if (waiting !== undefined && answered !== undefined) {
      const question = String(questionOf(answered))
      this.#put({ ...waiting, answers: { ...waiting.answers, [question]: answered } })
      return waiting
    }
    const { next } = this.#kept.update((session) => ({ ...session, next: session.next + 1 }))
    return { timestamp: new Date().toISOString(), sequence: next - 1 }
  }

  /** The answer to this question about an emission: the one just given, or one that was given before it. */
  answer(question: number, { sequence }: Place, answered: Json | undefined): Json | undefined {
    const waiting = this.#kept.value.waiting.find((emission) => emission.sequence === sequence)
    if (waiting === undefined || answered === undefined) return undefined
    return questionOf(answered) === question ? answered : waiting.answers[String(question)]
  }

  /** An emission waits for the answer to this question. */
  wait(key: string, identity: string | null, { timestamp, sequence }: Place, asked: number): void {
    const before = this.#kept.value.waiting.find((waiting) => waiting.sequence === sequence)
    this.#put({ key, identity, timestamp, sequence, asked, answers: before?.answers ?? {} })
  }

  /** An answer quotes the identity of what was asked; one that quotes none of these is about the same step. */
  #find(key: string, answered: Json | undefined): Waiting | undefined {
    if (answered === undefined) return undefined
    const { waiting } = this.#kept.value
    const quoted = isObject(answered) ? answered.context_identity : undefined
    const alike = waiting.filter((emission) => emission.key === key)
    return alike.find(({ identity }) => identity !== null && identity === quoted) ?? alike.at(-1)
  }

  #put(emission: Waiting): void {
    this.#kept.update((session) => {
      const others = session.waiting.filter(({ sequence }) => sequence !== emission.sequence)
      return { ...session, waiting: [...others, emission].slice(-MAX_WAITING) }
    })
  }
}

/** A second question about one emission is answered with its number, `question`. */
const questionOf = (answered: Json): number =>
  isObject(answered) && typeof answered.question === 'number' ? answered.question : 1
