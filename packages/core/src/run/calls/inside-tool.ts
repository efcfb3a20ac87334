import type { GraphPlan } from '../../graph/graph.ts'
import type { Json } from '../../json/json.ts'
import type { Entry } from '../../seams/journal.ts'
import { never } from '../../seams/site.ts'
import type { OutputOf, Schema } from '../../state/schema.ts'
import type { AskOptions, ChildOptions, Startable } from '../../tools/inside.ts'
import type { RunScope } from '../scope.ts'
import type { Task } from '../task.ts'
import { CallLog, labelOf } from '../threads/call-log.ts'
import { Flight, type Flown, UNFLOWN } from '../threads/flight.ts'
import { type Asker, askPerson } from './ask-call.ts'
import { eitherOf, runChild } from './child.ts'

/** What a tool that a node called may do in the run itself: ask people, and run graphs. It is written down below the call. */
export class InsideTool implements Asker {
  readonly task: Task
  readonly #outer: CallLog | undefined
  readonly #entry: Entry | undefined
  readonly #toolName: string
  readonly #flown: Flown
  readonly askIds = new Set<string>()
  #log: CallLog | undefined

  constructor(task: Task, toolName: string, outer: CallLog | undefined, entry: Entry | undefined, flown: Flown) {
    this.task = task
    this.#toolName = toolName
    this.#outer = outer
    this.#entry = entry
    this.#flown = flown
  }

  async ask<S extends Schema>(id: string, payload: Json, options?: AskOptions<S>): Promise<OutputOf<S>> {
    if (this.task.over) return never()
    const { log } = this
    const ask = async (flown: Flown) => {
      await this.#note()
      return askPerson(this, id, payload, options, flown)
    }
    const answer = await (log === undefined ? ask(UNFLOWN) : log.flight.question(ask))
    return (this.task.over ? never() : answer) as OutputOf<S>
  }

  /** @param until ends the run as it ends the tool, where that has an end of its own. */
  async run<State, Update>(
    graph: Startable<State, Update>,
    input: Update,
    given: ChildOptions = {},
    until?: AbortSignal,
  ): Promise<State> {
    if (this.task.over) return never()
    const options = until === undefined ? given : { ...given, signal: eitherOf(given.signal, until) }
    const { task, log } = this
    const work = async (flown: Flown) => {
      await this.#note()
      const child = () => runChild(task, task, log, graph.plan as GraphPlan, input, options, flown)
      const { counted } = this.#flown
      return counted === undefined ? child() : counted.rest(child)
    }
    return (await (log === undefined ? work(UNFLOWN) : log.flight.through(work))) as State
  }

  /** The tool begins from its top: it may ask again what it has asked in an earlier trip, and has the answer. */
  setOut(): void {
    this.askIds.clear()
  }

  /** The tool gives a sign of life. */
  active(): void {
    this.task.active()
  }

  /** Whether one of its questions is open. What it returns meanwhile waits until none is. */
  get asking(): boolean {
    return this.#log?.flight.asking === true
  }
  async answered(): Promise<void> {
    await this.#log?.flight.answered()
  }

  /** What happens inside a call is found again by the call, so it is written down before. */
  async #note(): Promise<void> {
    if (this.#entry !== undefined && !this.#entry.noted) await this.#outer?.note(this.#entry)
  }

  get scope(): RunScope {
    return this.task.scope
  }
  get at(): Asker['at'] {
    return this.task.at
  }
  get keyPrefix(): string {
    return `${this.task.keyPrefix}:${this.#entry === undefined ? this.#toolName : labelOf(this.#entry)}`
  }

  get log(): CallLog | undefined {
    const [outer, entry] = [this.#outer, this.#entry]
    if (outer === undefined || entry === undefined) return undefined
    if (this.#log !== undefined) return this.#log
    const flight = new Flight(
      () => outer.turn(),
      () => this.#flown.waits(),
    )
    const within = [...outer.within, entry.key]
    const { scope, thread } = outer
    this.#log = new CallLog(scope, thread, within, this.keyPrefix, flight, outer.inside(entry.key))
    return this.#log
  }
}
