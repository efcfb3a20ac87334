import fc from 'fast-check'
import { FIELD_NAMES, type FieldName, type Plan, type PlanNode, type Target, targetsOf, type Way } from './plan.ts'

/** Names in no order of theirs: capitals, digits and letters beyond ASCII sort where one may not expect them. */
export const NAMES = ['b', 'A', 'c10', 'c9', 'ä', '_']

const fields = (maxLength: number) => fc.uniqueArray(fc.constantFrom(...FIELD_NAMES), { maxLength })
const test = fc.record({ field: fc.constantFrom(...FIELD_NAMES), below: fc.nat({ max: 9 }) })

function way(own: number, ids: readonly number[]): fc.Arbitrary<Way> {
  const following = fc.constant((own + 1) % ids.length)
  const id = fc.oneof({ weight: 2, arbitrary: following }, { weight: 3, arbitrary: fc.constantFrom(...ids) })
  const to = fc.oneof({ weight: 3, arbitrary: id }, { weight: 1, arbitrary: fc.constant(null) })
  const target: fc.Arbitrary<Target> = fc.oneof(
    { weight: 3, arbitrary: fc.record({ to }) },
    { weight: 1, arbitrary: fc.record({ send: id, values: fields(3) }) },
  )
  const targets = fc.oneof(
    { weight: 2, arbitrary: fc.array(target, { minLength: 2, maxLength: 3 }) },
    { weight: 1, arbitrary: fc.array(target, { maxLength: 1 }) },
  )
  const choose = { kind: fc.constant('choose' as const), test, then: targets }
  return fc.oneof(
    fc.record({ kind: fc.constant('edge' as const), to }),
    fc.record({ kind: fc.constant('when' as const), test, then: to, otherwise: to }),
    fc.record({
      kind: fc.constant('branch' as const),
      on: fc.constantFrom<FieldName>('sum', 'turns', 'log'),
      ways: fc.array(to, { minLength: 1, maxLength: 3 }),
    }),
    { weight: 3, arbitrary: fc.record({ ...choose, otherwise: targets }) },
    fc.record({ ...choose, edge: to }),
  )
}

const node = (id: number, name: string, ids: readonly number[]): fc.Arbitrary<PlanNode> =>
  fc.record({
    id: fc.constant(id),
    name: fc.constant(name),
    reads: fields(3),
    writes: fields(3),
    asks: fc.oneof({ weight: 2, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.constantFrom(1, 2) }),
    waits: fc.nat({ max: 3 }),
    fails: fc.oneof({ weight: 9, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
    way: way(id, ids),
  })

const input = fc.record(
  {
    left: fc.nat({ max: 9 }),
    right: fc.nat({ max: 9 }),
    log: fc.array(fc.constantFrom('x', 'y'), { maxLength: 2 }),
    sum: fc.nat({ max: 3 }),
  },
  { requiredKeys: [] },
)

/** Graphs of two to six nodes, in which every node may be reached. */
export const plans: fc.Arbitrary<Plan> = fc
  .tuple(fc.integer({ min: 2, max: 6 }), fc.shuffledSubarray(NAMES, { minLength: 6 }))
  .chain(([count, names]) => {
    const ids = Array.from({ length: count }, (_, id) => id)
    return fc.record({
      nodes: fc.tuple(...ids.map((id) => node(id, names[id] as string, ids))),
      turns: fc.array(input, { minLength: 1, maxLength: 2 }),
      answers: fc.constantFrom('all' as const, 'half' as const),
    })
  })
  .map((plan) => ({ ...plan, nodes: reached(plan.nodes) }))
  .filter(({ nodes }) => nodes.length > 1)

function reached(nodes: readonly PlanNode[]): readonly PlanNode[] {
  const found = new Set<number>([0])
  for (const id of found) for (const target of targetsOf(nodes[id] as PlanNode)) found.add(target)
  return [...found].map((id) => nodes[id] as PlanNode)
}
