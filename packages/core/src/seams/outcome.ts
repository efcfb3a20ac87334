import { type ShownError, showError } from '../errors/error.ts'
import type { Json } from '../json/json.ts'

/** How a step went, inside the engine: `error` is the very object that was thrown. */
export type Outcome<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly error: unknown }

/** How a step went, as a policy sees it: no stack, no cause. */
export type ShownOutcome<Value = Json> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly error: ShownError }

export const showOutcome = <Value, Shown>(
  outcome: Outcome<Value>,
  show: (value: Value) => Shown,
): ShownOutcome<Shown> =>
  Object.freeze(
    outcome.ok
      ? { ok: true, value: show(outcome.value) }
      : { ok: false, error: Object.freeze(showError(outcome.error)) },
  )
