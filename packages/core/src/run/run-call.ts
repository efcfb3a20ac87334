import type { Json, JsonObject } from '../json/json.ts'
import { ownObject } from '../json/own.ts'
import { Call, type SeamSpec } from '../seams/gate.ts'
import type { RunEdge } from './edge.ts'
import type { RunEnd, RunScope } from './scope.ts'

/** A run on its way through its own gate. What happens there stands outside the run, so that its end can still be judged. */
export class RunCall extends Call<JsonObject> {
  readonly work: (input: JsonObject) => Promise<RunEnd>

  constructor(scope: RunScope, edge: RunEdge, input: JsonObject, work: (input: JsonObject) => Promise<RunEnd>) {
    const subject = { graphName: scope.plan.name, resuming: false, nested: scope.parent !== undefined }
    super(edge, subject, input, { nestedIn: scope.nestedIn })
    this.work = work
  }
}

export const runSpec: SeamSpec<JsonObject, RunEnd> = {
  seam: 'run',
  perform: (call) => (call as RunCall).work(call.input),
  readInput: (value, _call, what) => ownObject(value, what),
  readValue: (value, _call, what) => ({ status: 'completed', result: ownObject(value, what), stop: false }),
  show: (end): Json =>
    end.result === undefined ? { status: end.status } : { status: end.status, outputs: end.result },
  judged: (outcome) => outcome.ok && outcome.value.status !== 'paused',
  binding: (outcome) => outcome.ok && outcome.value.status === 'completed',
}
