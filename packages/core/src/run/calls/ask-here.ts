import type { Json, JsonObject } from '../../json/json.ts'
import { own } from '../../json/own.ts'
import type { Asked, Asking } from '../../seams/asks.ts'
import { askerOf, type ConsultedAt, suspendNeedsThread } from '../../seams/failure.ts'
import type { Subject } from '../../seams/subject.ts'
import type { RunScope } from '../scope.ts'
import type { Task } from '../task.ts'
import { AskCall, closedAtOnce, digestFor, isPolicy, type Question, questionOf, refusedQuestion } from './ask-call.ts'

/** A call that asks, where nothing is written down. */
interface AskedHere {
  readonly scope: RunScope
  /** Absent at the door of a run. */
  readonly task?: Task
  readonly subject: Subject
  /** What the keys of its questions begin with. */
  readonly prefix: string
  /** What a question says of the call, before what its asker says: `input` is what the asker was shown. */
  about(input: Json): JsonObject
}

/** How a call of a run without a thread asks: policies at `ask`, and own middleware, may answer. Where nobody does, the run stops. */
export class AskingHere implements Asking {
  readonly #at: AskedHere
  readonly #put = new Map<string, Question>()
  readonly asked: Asked[] = []

  constructor(at: AskedHere) {
    this.#at = at
  }

  digest(input: Json): string | Promise<string> {
    return digestFor(this.#at.scope, input)
  }

  async prepare(at: ConsultedAt, ask: JsonObject): Promise<() => Promise<void>> {
    const input = at.input as Json
    const digest = await this.digest(input)
    const question = await questionOf(this.#at.scope.runtime, at.who, ask, this.#at.about(input), digest)
    return () => this.#ask(at, { ...question, id: this.#idOf(at) })
  }

  again(at: ConsultedAt, { id }: Asked, why: string): Promise<void> {
    return this.#ask(at, { ...refusedQuestion(this.#put.get(id) as Question, why), id: this.#idOf(at) })
  }

  #idOf({ who }: ConsultedAt): string {
    const before = this.asked.filter(({ by }) => by === askerOf(who)).length
    return `@${who.name}${before === 0 ? '' : `.${before + 1}`}`
  }

  async #ask(at: ConsultedAt, question: Question): Promise<void> {
    const { scope, task, prefix, subject: of } = this.#at
    const { id, askedBy, about } = question
    this.#put.set(id, question)
    const subject = { nodeName: of.nodeName, nodeType: of.nodeType, key: `${prefix}${id}`, askedBy }
    const nestedIn = isPolicy(at.who) ? [...scope.nestedIn, at.who] : scope.nestedIn
    const put = { ...question, unanswered: suspendNeedsThread(at) }
    const call = new AskCall(scope, task, subject, put, nestedIn)
    const value = own(await scope.gates.ask(call))
    const { digest = '', asResult = false } = about ?? {}
    this.asked.push({ id, by: askerOf(at.who), digest, asResult, answer: { value }, closed: closedAtOnce(call) })
  }

  // Nothing is handed over from an earlier run, and nothing was cut off in one.
  async handOver(): Promise<void> {}
  async orphaned(): Promise<void> {}
}
