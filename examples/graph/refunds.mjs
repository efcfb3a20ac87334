// #region graph
import { append, createRuntime, END, graph, node, policy, START, state } from '@sluice/core'
import { z } from 'zod'

const Refund = state({
  amount: z.number().default(0),
  approved: z.boolean().default(false),
  log: append(z.string()), // a reducer: what nodes return is added
})

const check = node('check', Refund, (s) => ({ approved: s.amount <= 50, log: ['checked'] }))
const review = node('review', Refund, (s) => ({ log: [`${s.amount} needs a person`] }))

export const refunds = graph('refunds', Refund)
  .edge(START, check)
  .when(check, (s) => s.approved, { then: END, otherwise: review })
  .edge(review, END)
  .check() // one error that lists every fault
// #endregion

// #region policy
const ceiling = policy({
  name: 'Ceiling',
  seams: {
    node: {
      before: ({ input }) =>
        Number(input.amount) > 10_000 ? { action: 'reject', reason: 'no refund above 10,000' } : { action: 'proceed' },
    },
  },
})

export const runtime = createRuntime({ policies: [ceiling] })
// #endregion
