import type { Json } from '../json/json.ts'
import type { Call, SeamSpec } from './call.ts'
import type { Outcome } from './outcome.ts'
import { never } from './site.ts'

/** Makes one trip: the raw outcome is written down before anybody judges it. */
export async function perform<Input extends Json, Value>(
  spec: SeamSpec<Input, Value>,
  call: Call<Input>,
): Promise<Outcome<Value>> {
  if (call.over) return never()
  const trip = call.entry?.start(call.attempt, call.given, call.input)
  let outcome: Outcome<Value>
  try {
    outcome = { ok: true, value: await spec.perform(call) }
  } catch (error) {
    outcome = { ok: false, error }
    spec.failed?.(call)
  }
  if (call.over) return never()
  if (trip !== undefined) trip.outcome = outcome
  return outcome
}

export function handBack<Value>(outcome: Outcome<Value>): Value {
  if (outcome.ok) return outcome.value
  throw outcome.error
}
