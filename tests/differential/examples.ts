import type { DifferenceId } from './differences.ts'
import type { Plan, PlanNode, Way } from './plan.ts'

interface Example {
  readonly id: DifferenceId
  readonly shows: string
  readonly plan: Plan
  /** What happens after it is not compared. */
  readonly parts?: true
}

const END: Way = { kind: 'edge', to: null }

const node = (id: number, way: Way, more: Partial<PlanNode> = {}): PlanNode => ({
  id,
  name: 'abcd'[id] as string,
  reads: [],
  writes: [],
  waits: 0,
  asks: 0,
  fails: false,
  way,
  ...more,
})

/** A node that goes to these, and sends to those. */
const fan = (to: readonly number[], send: readonly number[] = []): PlanNode =>
  node(0, {
    kind: 'choose',
    test: { field: 'turns', below: 1 },
    then: [...to.map((id) => ({ to: id })), ...send.map((id) => ({ send: id, values: [] }))],
    otherwise: [],
  })

const plan = (...nodes: readonly PlanNode[]): Plan => ({ nodes, turns: [{}], answers: 'all' })

const alone = plan(node(0, END, { writes: ['log'] }))

/** The smallest graphs that show each of the differences. */
export const EXAMPLES: readonly Example[] = [
  {
    id: 'order',
    shows: 'updates of sent tasks merge in their place among the names, and there after all others',
    plan: plan(fan([2], [1]), node(1, END, { writes: ['log'] }), node(2, END, { writes: ['log'] })),
  },
  {
    id: 'sent',
    shows: 'a sent task is given the state with the payload laid over it, and there the payload alone',
    plan: plan(fan([], [1]), node(1, END)),
  },
  {
    id: 'one-node',
    shows: 'several tasks of one node may replace a field, and the last one stands; there that is an error',
    plan: plan(fan([], [1, 1]), node(1, END, { writes: ['left'] })),
    parts: true,
  },
  {
    id: 'routes',
    shows: 'ways are decided on the merged state, and there on what the node itself has written',
    plan: plan(
      fan([1, 2]),
      node(1, END, { writes: ['log'] }),
      node(2, { kind: 'when', test: { field: 'log', below: 1 }, then: 3, otherwise: null }),
      node(3, END),
    ),
    parts: true,
  },
  {
    id: 'pause',
    shows: 'a pause shows the state before its superstep, and there what others of it have written too',
    plan: plan(fan([1, 2]), node(1, END, { writes: ['log'] }), node(2, END, { asks: 1 })),
  },
  {
    id: 'pause',
    shows: 'updates that cannot be merged are found when the superstep is through, and there before a pause',
    plan: plan(
      fan([2, 3], [1]),
      node(1, END),
      ...[2, 3].map((id) => node(id, END, { writes: ['left'], asks: id - 2 })),
    ),
  },
  {
    id: 'edges',
    shows: 'what a node chooses takes the place of its edge, and there both are followed',
    plan: plan(node(0, { kind: 'choose', test: { field: 'sum', below: 1 }, then: [{ to: 1 }], edge: 0 }), node(1, END)),
  },
  { id: 'start', shows: 'the first node runs in superstep 0, and there in superstep 1 or later', plan: alone },
  {
    id: 'limit',
    shows: 'a run that needs one superstep more than allowed fails before it, and there after it',
    plan: plan(node(0, { kind: 'edge', to: 0 })),
  },
  {
    id: 'told',
    shows: 'updates are told when their superstep is through, and there as each task is, once more after a pause',
    plan: plan(fan([1, 2]), node(1, END, { writes: ['log'] }), node(2, END, { asks: 1 })),
  },
  {
    id: 'silence',
    shows: 'the state is told after each superstep, and there after one that wrote something',
    plan: plan(node(0, END)),
  },
  {
    id: 'entered',
    shows: 'a node whose question stays open waits, and there it is run again and asks again',
    plan: { ...plan(fan([1, 2]), node(1, END, { asks: 1 }), node(2, END, { asks: 1 })), answers: 'half' },
  },
  {
    id: 'answers',
    shows: 'an answer is kept when its run fails, and there it is asked for again',
    plan: plan(fan([1, 2]), node(1, END, { asks: 1, fails: true }), node(2, END, { asks: 1, waits: 3 })),
  },
]
