import { FIELDS, type FieldName, type Given, type Plan, type Question, type State, type Update } from './plan.ts'

/** A task of a superstep, and what it wrote. */
export interface Done {
  readonly node: number
  readonly name: string
  /** What the node's function was given. */
  readonly received: Given
  readonly update: Update
}

export interface Superstep {
  readonly kind: 'superstep'
  /** Which one of its turn, from 0. */
  readonly step: number
  readonly before: State
  /** In the order they were scheduled. */
  readonly tasks: readonly Done[]
  readonly after: State
}

/** The questions stand in an order that does not depend on the engine. */
export interface Pause {
  readonly kind: 'pause'
  readonly questions: readonly Question[]
  readonly before: State
  /** The state as it is shown meanwhile. */
  readonly shown: State
  /** The tasks of the superstep that wait for nobody, where the engine tells them. */
  readonly through: readonly Done[]
}

interface Failed {
  readonly kind: 'failure'
  readonly why: Failure
  /** The tasks of the superstep, where the engine tells them. */
  readonly tasks: readonly Done[]
}

/** Writes that cannot be merged; too many supersteps; a node that throws. */
export type Failure = 'conflict' | 'limit' | 'node'

/** What happens to a thread, one thing after another. */
export type Happening = Superstep | Pause | Failed | { readonly kind: 'end'; readonly state: State }

/** Supersteps that one run may take, and a resumed one again. */
export const LIMIT = 6

/** Where a plan asks in a loop for ever, this many happenings do. */
const ENOUGH = 14

export const PLANNED = 'as planned'

/** Where a thread stands while a plan is played, and what has happened to it. */
export class Stand {
  readonly happenings: Happening[] = []
  state: State = { log: [], trail: [], sum: 0, turns: 0 }
  /** Supersteps of the turn that are through. */
  through = 0
  readonly #most: number
  readonly #failedAt = new Set<number>()
  #failing = 0

  constructor(most = ENOUGH) {
    this.#most = most
  }

  get enough(): boolean {
    return this.happenings.length >= this.#most
  }

  turn(input: Update): void {
    this.state = fold(this.state, [input])
    this.through = 0
    this.#failedAt.clear()
  }

  superstep(tasks: readonly Done[], after: State): void {
    this.happenings.push({ kind: 'superstep', step: this.through, before: this.state, tasks, after })
    this.state = after
    this.through++
  }

  pause(open: readonly Open[], shown: State, through: readonly Done[]): void {
    const questions = open.map(({ asked }) => asked)
    this.happenings.push({ kind: 'pause', questions, before: this.state, shown, through })
  }

  /** Throws where a node comes this far in the superstep for the first time. */
  failAt(step: number): void {
    if (this.#failedAt.has(step)) return
    this.#failing = step
    throw new Error(PLANNED)
  }

  failure(why: Failure, tasks: readonly Done[]): void {
    this.happenings.push({ kind: 'failure', why, tasks })
    if (why === 'node') this.#failedAt.add(this.#failing)
  }

  end(state: State): void {
    this.happenings.push({ kind: 'end', state })
  }
}

/** A question, and the key to answer it by. */
export interface Open {
  readonly key: string
  readonly asked: Question
}

/** All questions in an order that does not depend on the engine, and those that are answered now. */
export function answersNow(plan: Plan, open: readonly Open[]): { all: readonly Open[]; now: readonly Open[] } {
  const all = open.toSorted((a, b) => compareTexts(JSON.stringify(a.asked), JSON.stringify(b.asked)))
  return { all, now: plan.answers === 'all' ? all : all.slice(0, Math.ceil(all.length / 2)) }
}

/** What a state becomes when these are written to it one after another. */
export function fold(state: State, updates: readonly Update[]): State {
  const next: Record<string, unknown> = { ...state }
  for (const update of updates) {
    for (const [field, value] of Object.entries(update)) {
      const current = next[field]
      const kind = FIELDS[field as FieldName]
      if (kind === 'append') next[field] = [...(current as readonly string[]), ...(value as readonly string[])]
      else next[field] = kind === 'sum' ? (current as number) + (value as number) : value
    }
  }
  return next as State
}

/** Lets everything else in the process have its turn so many times. */
export async function pass(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise<void>((resolve) => setImmediate(resolve))
}

export const compareTexts = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
