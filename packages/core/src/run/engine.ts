import type { GraphPlan } from '../graph/graph.ts'
import type { AnyNode } from '../graph/node.ts'
import type { JsonObject } from '../json/json.ts'
import { own } from '../json/own.ts'
import { CallAsking } from './calls/ask-call.ts'
import { RunEnding, RunStart } from './calls/run-call.ts'
import { RunEdge } from './edge.ts'
import type { RunEnd, RunScope } from './scope.ts'
import { Supersteps } from './steps/supersteps.ts'
import { CallLog } from './threads/call-log.ts'
import { Flight } from './threads/flight.ts'
import { askOf } from './threads/position.ts'
import type { Thread } from './threads/thread.ts'

/** A task of the next superstep, before it is given its input. */
export interface Seed {
  readonly node: AnyNode
  readonly payload: JsonObject | undefined
}

/** Takes a run to its end and says what it came to; never rejects. Runs around it wait for that, where hooks are told of it. */
export function conduct(scope: RunScope, input: JsonObject): Promise<RunEnd> {
  const coming = conductAlone(scope, input)
  if (scope.hooks === undefined) return coming
  for (let { parent } = scope; parent !== undefined; { parent } = parent) parent.ends(coming)
  return coming
}

async function conductAlone(scope: RunScope, input: JsonObject): Promise<RunEnd> {
  // Nothing of the user's but the input's schemas runs inside the call to run().
  await undefined
  const end = await carry(scope, input)
  const judged = scope.gates.runEnd === undefined ? end : await judgeEnd(scope, input, end)
  if (scope.endsInside.size > 0) await Promise.all(scope.endsInside)
  if (scope.hooks === undefined || scope.parent === undefined) return judged
  const asks = [...(scope.thread?.asks.values() ?? [])].filter(({ within }) => scope.isWithin(within))
  return scope.hooks.end(judged, asks.map(askOf))
}

/** @throws SluiceError for an input that does not fit. */
export function readInput(plan: GraphPlan, input: unknown): JsonObject {
  const what = `the input of "${plan.name}"`
  if (plan.boundary !== undefined) return plan.boundary.checkInput(own(input, what))
  return plan.state.check(plan.accepts === undefined ? input : plan.accepts(input), what)
}

/** Runs the supersteps; settles when they are through, or at once when the run is ended from outside. */
function carry(scope: RunScope, input: JsonObject): Promise<RunEnd> {
  return new Promise((resolve) => {
    scope.begin(resolve)
    enter(scope, input).then(
      (result) =>
        scope.end(
          result === undefined ? { status: 'paused', stop: false } : { status: 'completed', result, stop: false },
        ),
      (error) => scope.fail(error),
    )
  })
}

/** In through the door, past whoever stands at it, and through the supersteps. `undefined` when it can only wait. */
async function enter(scope: RunScope, input: JsonObject): Promise<JsonObject | undefined> {
  const { hooks } = scope
  const supersteps = new Supersteps(scope, input)
  scope.values = supersteps
  if (hooks === undefined) return enterDoor(scope, input, supersteps)
  await hooks.before()
  const result = await enterDoor(scope, input, supersteps)
  if (result !== undefined) await hooks.after()
  return result
}

function enterDoor(scope: RunScope, input: JsonObject, supersteps: Supersteps): Promise<JsonObject | undefined> {
  const { runStart } = scope.gates
  const work = (admitted: JsonObject) => supersteps.run(admitted)
  if (runStart === undefined) return work(input)
  const { thread } = scope
  if (thread === undefined) return Promise.resolve(runStart(new RunStart(scope, input, work)))
  return new Promise((resolve, reject) => {
    const asking = askingAtDoor(scope, thread, () => resolve(undefined))
    Promise.resolve(runStart(new RunStart(scope, input, work, asking))).then(resolve, reject)
  })
}

/** How the door of a run asks people; `paused` is told when it can only wait for them. */
function askingAtDoor(scope: RunScope, thread: Thread, paused: () => void): CallAsking {
  const { plan, within } = scope
  const flight = new Flight(() => thread.platform.turn(), paused)
  const prefix = scope.prefix === '' ? plan.name : scope.prefix
  const log = new CallLog(scope, thread, within, prefix, flight, scope.on?.position?.door)
  return new CallAsking({
    scope,
    log,
    subject: { graphName: plan.name },
    about: () => ({ graph: plan.name }),
    waits: () => flight.asks(),
  })
}

/** Lets the policies judge how a run ended; a stop there is the end of it, and so is the end of the run above. */
function judgeEnd(scope: RunScope, input: JsonObject, end: RunEnd): Promise<RunEnd> {
  return new Promise((resolve) => {
    const edge = new RunEdge(scope, (error) => settle({ status: 'failed', error, stop: true }))
    const forget = scope.parent?.onEnd(() => edge.stop(end.error))
    const settle = (judged: RunEnd) => {
      forget?.()
      resolve(judged)
    }
    Promise.resolve(scope.gates.runEnd?.(new RunEnding(scope, edge, input, end)) ?? end).then(settle, (error) =>
      edge.stop(error),
    )
  })
}
