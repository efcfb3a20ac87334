import { SluiceError } from '../../errors/error.ts'
import { digestOf } from '../../json/digest.ts'
import type { Json } from '../../json/json.ts'
import { own } from '../../json/own.ts'
import { RefusedError } from '../../seams/failure.ts'
import { handBack } from '../../seams/perform.ts'
import { revivedOutcome, type StoredOutcome, type ThreadRecord } from '../../store/records.ts'

type RecordedCall = Extract<ThreadRecord, { type: 'call' }>

/** What the calls of a thread came to when it ran, to be handed out in place of making them. Each is handed out once. */
export class Recording {
  readonly #left = new Map<string, RecordedCall[]>()

  constructor(records: readonly ThreadRecord[]) {
    for (const record of records) {
      if (record.type !== 'call') continue
      const calls = this.#left.get(keyOf(record)) ?? []
      calls.push(record)
      this.#left.set(keyOf(record), calls)
    }
  }

  /**
   * What such a call came to: the first one that was made with this input, else the first that is left.
   *
   * @throws the error that it came to; SluiceError `REPLAY_UNRECORDED` where none is left, and where it was refused.
   */
  outcomeOf<Value>(kind: 'model' | 'tool' | 'once', name: string, given: Json): Value {
    const calls = this.#left.get(keyOf({ kind, name })) ?? []
    const digest = calls.length > 1 ? digestOf(given) : undefined
    const fitting = calls.findIndex((call) => call.digest === digest)
    const [call] = calls.splice(Math.max(0, fitting), 1)
    if (call === undefined) throw unrecorded(kind, name, 'it was not made so often')
    const outcome = revivedOutcome(call as StoredOutcome)
    if (!outcome.ok && outcome.error instanceof RefusedError) throw unrecorded(kind, name, 'it was refused')
    return handBack(outcome.ok ? { ok: true, value: own(outcome.value) as Value } : outcome)
  }
}

const keyOf = ({ kind, name }: { readonly kind: string; readonly name: string }) => `${kind}:${name}`

const unrecorded = (kind: string, name: string, why: string) =>
  new SluiceError(
    'REPLAY_UNRECORDED',
    `nobody knows what this call of ${kind} "${name}" would have come to: when the thread ran, ${why}.`,
    { [kind]: name },
  )
