import type { Json } from '../json/json.ts'
import type { Call, SeamSpec } from './call.ts'
import { CallSites } from './call-sites.ts'
import { Installed } from './installed.ts'
import type { Entry } from './journal.ts'
import type { Outcome } from './outcome.ts'
import { layersAt, type OwnMiddleware } from './own.ts'
import { type Chain, Passage } from './passage.ts'
import { handBack, perform } from './perform.ts'
import type { Policy } from './policy.ts'
import { selectsSite } from './selector.ts'
import { never } from './site.ts'
import type { Subject } from './subject.ts'
import { HALVES, type Half, type Seam } from './table.ts'
import type { Judges } from './walk.ts'

const NOBODY: Judges = { policies: [], apart: [] }

/** The compiled way through a seam: hands back the settled value, throws its error, or never settles when the run stopped. */
export interface Gate<Input extends Json, Value> {
  (call: Call<Input>): Value | Promise<Value>
  /** Where selectors choose by the subject: the way for a call site. */
  at?(subject: Subject): Gate<Input, Value>
}

/**
 * Compiles the way through a seam for the runs of one graph: `own` middleware around each trip, the policies right around the
 * step. `node` takes `nodeError` along, which stands inside it. A gate that nobody subscribed to is the step itself, and so it
 * is at a call site at which no policy's selector matches.
 */
export function compileGate<Input extends Json, Value>(
  spec: SeamSpec<Input, Value>,
  policies: readonly Policy[],
  own: readonly OwnMiddleware[] = [],
): Gate<Input, Value> {
  const layers = layersAt(own, spec.seam)
  const here = policies.filter((policy) => halvesAt(spec).some(([seam, half]) => policy.subscribes(seam, half)))
  if (!here.some(({ match, mode }) => match?.reads === 'subject' && mode !== 'off')) {
    return compileFor(spec, chainOf(spec, layers, here))
  }
  const gates = new Map<string, Gate<Input, Value>>()
  const sites = new CallSites((site) => {
    const left = here.map((policy) => selectsSite(policy, site))
    const known = gates.get(left.join())
    if (known !== undefined) return known
    const gate = compileFor(
      spec,
      chainOf(spec, layers, here, (policy) => left[here.indexOf(policy)] === true),
    )
    gates.set(left.join(), gate)
    return gate
  })
  const at = (subject: Subject) => sites.at(subject)
  return Object.assign((call: Call<Input>) => at(call.subject)(call), { at })
}

/** The halves that a gate leads through, with those of `nodeError` inside `node`. */
const halvesAt = ({ seam, halves = HALVES }: Pick<SeamSpec<never, unknown>, 'seam' | 'halves'>) => [
  ...halves.map((half) => [seam, half] as const),
  ...(seam === 'node' ? [['nodeError', 'after'] as const] : []),
]

function chainOf(
  spec: Pick<SeamSpec<never, unknown>, 'seam' | 'halves'>,
  layers: Chain['layers'],
  policies: readonly Policy[],
  matches: (policy: Policy) => boolean = () => true,
): Chain {
  const judges = (seam: Seam, half: Half): Judges => {
    if (!halvesAt(spec).some(([other, halfOf]) => other === seam && halfOf === half)) return NOBODY
    const there = policies.filter((policy) => policy.subscribes(seam, half)).map(Installed.of)
    const why = ({ mode, policy }: Installed) => (mode === 'off' ? 'off' : matches(policy) ? undefined : 'match')
    return {
      policies: there.filter((one) => why(one) === undefined),
      apart: there.flatMap((one) => {
        const left = why(one)
        return left === undefined ? [] : [{ name: one.policy.name, why: left }]
      }),
    }
  }
  return {
    layers,
    before: judges(spec.seam, 'before'),
    rescue: judges('nodeError', 'after'),
    after: judges(spec.seam, 'after'),
  }
}

function compileFor<Input extends Json, Value>(spec: SeamSpec<Input, Value>, chain: Chain): Gate<Input, Value> {
  const { layers, before, rescue, after } = chain
  const consulted = layers.length + [before, rescue, after].reduce((sum, { policies }) => sum + policies.length, 0)
  if (consulted === 0) return spec.unwritten ? spec.perform : throughJournal(spec)
  const passage = new Passage(spec, chain)
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
