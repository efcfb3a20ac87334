import type { Json } from '../json/json.ts'
import type { Call, SeamSpec } from './call.ts'
import type { Entry } from './journal.ts'
import type { Outcome } from './outcome.ts'
import { layersAt, type OwnMiddleware } from './own.ts'
import { Passage } from './passage.ts'
import { handBack, perform } from './perform.ts'
import type { Policy } from './policy.ts'
import { never } from './site.ts'
import type { Half, Seam } from './table.ts'

const NOBODY: readonly Policy[] = []

/** The compiled way through a seam: hands back the settled value, throws its error, or never settles when the run stopped. */
export type Gate<Input extends Json, Value> = (call: Call<Input>) => Value | Promise<Value>

/**
 * Compiles the way through a seam for the runs of one graph: `own` middleware around each trip, the policies right around the
 * step. `node` takes `nodeError` along, which stands inside it. A gate that nobody subscribed to is the step itself.
 */
export function compileGate<Input extends Json, Value>(
  spec: SeamSpec<Input, Value>,
  policies: readonly Policy[],
  own: readonly OwnMiddleware[] = [],
): Gate<Input, Value> {
  const subscribed = (seam: Seam, half: Half) =>
    spec.halves?.includes(half) === false ? NOBODY : policies.filter((policy) => policy.subscribes(seam, half))
  const before = subscribed(spec.seam, 'before')
  const rescue = spec.seam === 'node' ? subscribed('nodeError', 'after') : NOBODY
  const after = subscribed(spec.seam, 'after')
  const layers = layersAt(own, spec.seam)
  const nobody = layers.length + before.length + rescue.length + after.length === 0
  if (nobody) return spec.unwritten ? spec.perform : throughJournal(spec)
  const passage = new Passage(spec, { layers, before, rescue, after })
  return (call) => passage.pass(call)
}

/** With nobody to consult, all that is left of the walk is the journal; and without a journal, nothing. */
function throughJournal<Input extends Json, Value>(spec: SeamSpec<Input, Value>): Gate<Input, Value> {
  const alone = new Passage(spec, { layers: [], before: NOBODY, rescue: NOBODY, after: NOBODY })
  return (call) => {
    const { entry } = call
    if (entry === undefined) {
      if (call.over) return never()
      spec.entering?.(call)
      return spec.perform(call)
    }
    if (entry.settled !== undefined) return handBack(entry.settled as Outcome<Value>)
    return entry.recorded ? alone.pass(call) : settleAlone(spec, call, entry)
  }
}

async function settleAlone<Input extends Json, Value>(
  spec: SeamSpec<Input, Value>,
  call: Call<Input>,
  entry: Entry,
): Promise<Value> {
  spec.entering?.(call)
  const outcome = await perform(spec, call, false)
  const written = entry.settle(outcome)
  if (written !== undefined) await written
  return call.over ? never() : handBack(outcome)
}
