import type { GraphPlan } from '../../graph/graph.ts'
import type { Json, JsonObject } from '../../json/json.ts'
import type { Asking } from '../../seams/asks.ts'
import { Call, type SeamSpec } from '../../seams/call.ts'
import type { RunEdge } from '../edge.ts'
import type { RunEnd, RunScope } from '../scope.ts'
import { AskingHere } from './ask-here.ts'

const subjectOf = ({ plan, parent, on }: RunScope) => ({
  graphName: plan.name,
  resuming: on?.begun ?? false,
  nested: parent !== undefined,
})

/** A run at its door. It has begun, so time, a cancel and a policy's refusal end it here as they do anywhere in it. */
export class RunStart extends Call<JsonObject> {
  readonly scope: RunScope
  readonly work: (input: JsonObject) => Promise<JsonObject | undefined>

  constructor(
    scope: RunScope,
    input: JsonObject,
    work: (input: JsonObject) => Promise<JsonObject | undefined>,
    asking?: Asking,
  ) {
    super(scope, subjectOf(scope), input, { nestedIn: scope.nestedIn, asking })
    this.scope = scope
    this.work = work
  }

  override askHere(): AskingHere {
    const { scope, subject } = this
    const { name } = scope.plan
    return new AskingHere({
      scope,
      subject,
      prefix: scope.prefix === '' ? name : scope.prefix,
      about: () => ({ graph: name }),
    })
  }
}

export const runStartSpec: SeamSpec<JsonObject, JsonObject | undefined> = {
  seam: 'run',
  halves: ['before'],
  perform: (call) => (call as RunStart).work(call.input),
  readInput: (value, call, what) => {
    const { plan, on } = (call as RunStart).scope
    if (on?.begun) throw new Error('it modified the input of a run that goes on where it was, and has none')
    const { state, boundary } = plan
    if (boundary !== undefined) return boundary.checkInput(value)
    const input = state.check(value, what, true)
    const held = on?.position?.slots
    if (held === undefined) state.start(input)
    else state.apply(held.slice(), input, { writer: what })
    return input
  },
}

/** A run that has come to its end, however it did. It is judged from outside, for inside nothing settles after a stop. */
export class RunEnding extends Call<JsonObject> {
  readonly plan: GraphPlan
  readonly end: RunEnd

  constructor(scope: RunScope, edge: RunEdge, input: JsonObject, end: RunEnd) {
    super(edge, subjectOf(scope), input, { nestedIn: scope.nestedIn })
    this.plan = scope.plan
    this.end = end
  }
}

export const runEndSpec: SeamSpec<JsonObject, RunEnd> = {
  seam: 'run',
  halves: ['after'],
  perform: (call) => (call as RunEnding).end,
  readValue: (value, call, what) => ({
    status: 'completed',
    result: readResult(call as RunEnding, value, what),
    stop: false,
  }),
  show: ({ status, result }): Json =>
    result === undefined ? Object.freeze({ status }) : Object.freeze({ status, outputs: result }),
  errorIn: ({ error }) => error,
  judged: (outcome) => outcome.ok && outcome.value.status !== 'paused',
  binding: (outcome) => outcome.ok && outcome.value.status === 'completed',
}

/** Where the result is the state itself, it must be one. */
const readResult = ({ plan }: RunEnding, value: Json, what: string): JsonObject =>
  plan.boundary === undefined ? plan.state.checkWhole(value, what) : plan.boundary.checkResult(value)
