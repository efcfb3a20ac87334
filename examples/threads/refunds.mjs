// #region tools
import { append, createRuntime, END, graph, node, START, state, tool } from '@sluice/core'
import { sqliteStore } from '@sluice/host'
import { z } from 'zod'

const Refund = state({ order: z.string().default(''), log: append(z.string()) })

const lookUp = tool('look_up', {
  description: 'What an order came to.',
  input: z.object({ order: z.string() }),
  run: ({ order }) => {
    console.log(`looked up ${order}`)
    return { amount: 80 }
  },
})
const pay = tool('pay', {
  description: 'Pays an amount back.',
  input: z.object({ amount: z.number() }),
  run: ({ amount }) => {
    console.log(`paid ${amount}`)
    return { paid: amount }
  },
})
// #endregion

// #region review
const review = node('review', Refund, async ({ order }, ctx) => {
  const { amount } = await ctx.callTool(lookUp, { order })
  const question = `Pay ${amount} back for order ${order}?`
  const { approved } = await ctx.ask('approve', { question }, { schema: z.object({ approved: z.boolean() }) })
  if (!approved) return { log: ['refused'] }
  await ctx.callTool(pay, { amount })
  return { log: [`paid ${amount}`] }
})

export const refunds = graph('refunds', Refund).edge(START, review).edge(review, END).check()
// #endregion

// #region runtime
export const store = sqliteStore(process.env.REFUNDS_DB ?? 'refunds.db')

export const runtime = createRuntime({
  store,
  // Another process asked: what it wrote down of the schema is checked before anything runs.
  checkJson: (schema, value) => void z.fromJSONSchema(schema).parse(value),
})
// #endregion
