import type { Json } from '../json/json.ts'
import type { Call, SeamSpec } from './call.ts'
import type { Trip } from './journal.ts'
import type { Outcome } from './outcome.ts'
import { never } from './site.ts'
import { isThenable } from './thenable.ts'

/** Makes one trip: the raw outcome is written down before anybody judges it, if somebody does. */
export async function perform<Input extends Json, Value>(
  spec: SeamSpec<Input, Value>,
  call: Call<Input>,
  judged: boolean,
): Promise<Outcome<Value>> {
  if (call.over) return never()
  const { entry } = call
  const started = entry?.start(call.attempt, call.given, call.input)
  const trip = isThenable(started) ? ((await started) as Trip) : started
  if (call.over) return never()
  let outcome: Outcome<Value>
  try {
    outcome = { ok: true, value: await spec.perform(call) }
  } catch (error) {
    outcome = { ok: false, error }
    spec.failed?.(call)
  }
  if (call.over) return never()
  if (entry === undefined || trip === undefined || !judged) return outcome
  const written = entry.performed(trip, outcome)
  if (written !== undefined) await written
  return call.over ? never() : outcome
}

export function handBack<Value>(outcome: Outcome<Value>): Value {
  if (outcome.ok) return outcome.value
  throw outcome.error
}
