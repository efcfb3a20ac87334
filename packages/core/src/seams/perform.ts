import type { Json } from '../json/json.ts'
import type { Call, SeamSpec } from './call.ts'
import type { Trip } from './journal.ts'
import type { Outcome } from './outcome.ts'
import { never } from './site.ts'
import { isThenable } from './thenable.ts'
import type { Way } from './way.ts'

/**
 * Makes one trip with `call.input`: the raw outcome is written down before anybody judges it, if somebody does. `given` is what
 * the trip was asked to make, before policies changed it. Where the trip has a signal of its own, it ends with that.
 */
export async function perform<Input extends Json, Value>(
  spec: SeamSpec<Input, Value>,
  call: Call<Input>,
  judged: boolean,
  given: Json = call.given,
  way?: Way,
): Promise<Outcome<Value>> {
  const { entry, tripSignal } = call
  const over = () => way?.over ?? call.over
  if (over()) return never()
  if (tripSignal?.aborted) return { ok: false, error: tripSignal.reason }
  const started = entry?.start(call.attempt, call.trip, given, call.input)
  const trip = isThenable(started) ? ((await started) as Trip) : started
  if (over()) return never()
  let outcome: Outcome<Value>
  if (way !== undefined) way.performing = true
  try {
    const work = spec.perform(call)
    outcome = { ok: true, value: await (tripSignal === undefined ? work : until(tripSignal, work)) }
  } catch (error) {
    outcome = { ok: false, error }
    if (!over()) spec.failed?.(call)
  } finally {
    if (way !== undefined) way.performing = false
  }
  if (over()) return never()
  if (entry === undefined || trip === undefined || !judged || entry.settled !== undefined) return outcome
  const written = entry.performed(trip, outcome)
  if (written !== undefined) await written
  return over() ? never() : outcome
}

/** What the work comes to, or the signal's reason if that is there before. */
function until<Value>(signal: AbortSignal, work: Value | Promise<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    const end = () => reject(signal.reason)
    if (signal.aborted) end()
    signal.addEventListener('abort', end, { once: true })
    Promise.resolve(work)
      .then(resolve, reject)
      .finally(() => signal.removeEventListener('abort', end))
  })
}

export function handBack<Value>(outcome: Outcome<Value>): Value {
  if (outcome.ok) return outcome.value
  throw outcome.error
}
