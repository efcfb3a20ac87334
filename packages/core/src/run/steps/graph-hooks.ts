import type { JsonObject } from '../../json/json.ts'
import { Call } from '../../seams/call.ts'
import { consultHook, hookAt, keptBeside } from '../../seams/consult-hook.ts'
import { HALF_TIMEOUT_MS } from '../../seams/consultation.ts'
import { middlewareFailure } from '../../seams/failure.ts'
import { readSaid, WrongReturn } from '../../seams/hooks.ts'
import { endKept } from '../../seams/kept.ts'
import type { Hook, Layer } from '../../seams/own.ts'
import { never } from '../../seams/site.ts'
import { after } from '../../seams/timer.ts'
import type { Ask } from '../../store/records.ts'
import type { CallSite } from '../calls/call-site.ts'
import { RunEdge } from '../edge.ts'
import type { Status } from '../event.ts'
import type { RunEnd, RunScope } from '../scope.ts'

/** How a run ended, as `onRunEnd` is told. */
export interface RunOutcomeTold {
  readonly status: Status
  /** The open questions by key; empty unless the run paused. */
  readonly interrupts: Readonly<Record<string, Ask>>
  /** What the run threw; only after `failed`. */
  readonly error: unknown
}

/** The place at which the hooks around a run are consulted. */
export class GraphPoint extends Call<JsonObject> {
  readonly scope: RunScope

  constructor(scope: RunScope, site: CallSite) {
    const { plan, parent } = scope
    super(site, { graphName: plan.name, resuming: scope.resuming, nested: parent !== undefined }, {})
    this.scope = scope
  }
}

/** The hooks of own middleware around one run. They observe, and each run consults them once. */
export class GraphHooks {
  readonly #scope: RunScope
  readonly #layers: readonly Layer[]
  /** Those whose `beforeGraph` was reached: the run's end is theirs to know. */
  #entered = 0

  constructor(scope: RunScope) {
    this.#scope = scope
    this.#layers = scope.gates.graphHooks
  }

  async before(): Promise<void> {
    const call = new GraphPoint(this.#scope, this.#scope)
    for (const layer of this.#layers) {
      if (this.#scope.stopped) return never()
      this.#entered++
      if (layer.before !== undefined) await consultHook(call, layer, layer.before, undefined)
    }
  }

  /** The run has come to its end by itself. */
  async after(): Promise<void> {
    const call = new GraphPoint(this.#scope, this.#scope)
    for (const layer of [...this.#layers].reverse()) {
      if (this.#scope.stopped) return never()
      if (layer.after !== undefined) await consultHook(call, layer, layer.after, { value: undefined })
    }
  }

  /**
   * The run has ended, however it did: everybody whose `beforeGraph` was reached is told. When the run had not failed, the
   * first failure of a hook is what its caller gets; all others are notes.
   */
  async end(end: RunEnd, asks: readonly Ask[]): Promise<RunEnd> {
    if (this.#entered === 0) return end
    const scope = this.#scope
    const outcome: RunOutcomeTold = Object.freeze({
      status: end.status,
      interrupts: Object.freeze(Object.fromEntries(asks.map((ask) => [ask.key, ask]))),
      error: end.status === 'failed' ? end.error : undefined,
    })
    let left = end
    for (const layer of this.#layers.slice(0, this.#entered).reverse()) {
      if (layer.end === undefined) continue
      const failure = await tell(scope, layer, layer.end, outcome)
      if (failure === undefined) continue
      if (left.status === 'failed') scope.note(`${layer.middleware.name}.onRunEnd`, failure)
      else left = { status: 'failed', error: failure, stop: true }
    }
    return left
  }
}

/** Tells one of them, who has the time of a policy's half; hands back what went wrong. What they still do then is dropped. */
function tell(scope: RunScope, layer: Layer, hook: Hook<RunOutcomeTold>, outcome: RunOutcomeTold): Promise<unknown> {
  return new Promise((resolve) => {
    const settle = (failure?: unknown) => {
      done()
      if (consulted.kept !== undefined) endKept(consulted.kept)
      resolve(failure)
    }
    const edge = new RunEdge(scope, settle)
    const call = new GraphPoint(scope, edge)
    const consulted = keptBeside(call, layer, hook)
    const failed = (failure: unknown) =>
      failure instanceof WrongReturn ? failure.error : middlewareFailure(hookAt(call, layer, hook), failure)
    const tooLong = new Error(`it took longer than ${HALF_TIMEOUT_MS} ms`)
    const done = after(scope.timers, edge.signal, HALF_TIMEOUT_MS, () => edge.stop(failed(tooLong)))
    const told = async () => readSaid(await hook.run(call, outcome, consulted), hook.name, layer.middleware.name)
    told().then(
      () => settle(),
      (failure) => settle(failed(failure)),
    )
  })
}
