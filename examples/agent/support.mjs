// #region tools
import { createAgent, middleware, scripted, tool } from '@sluice/core'
import { z } from 'zod'

const lookUp = tool('look_up', {
  description: 'What an order came to.',
  input: z.object({ order: z.string() }),
  run: ({ order }) => ({ order, amount: order === '991' ? 4200 : 20 }),
})

export const paid = []
const refund = tool('refund', {
  description: 'Pays money back to a customer.',
  input: z.object({ order: z.string(), amount: z.number().positive() }),
  run: ({ order, amount }) => {
    paid.push(`${order}: ${amount}`)
    return 'paid'
  },
})
// #endregion

// #region middleware
const large = middleware({
  name: 'large refunds',
  beforeTool(ctx) {
    if (ctx.toolName !== 'refund' || ctx.args.amount <= 100 || ctx.answered === true) return
    if (ctx.answered === undefined) return ctx.suspend({ question: `Pay ${ctx.args.amount} back?` })
    return ctx.reject('A person said no. Apologize.')
  },
})
// #endregion

/** A model that needs no key: it looks the order up, refunds what it came to, and says so. */
const clerk = (order) =>
  scripted([
    { tool_calls: [{ name: 'look_up', arguments: { order } }] },
    ({ messages }) => {
      const { amount } = JSON.parse(messages.at(-1).content)
      return { tool_calls: [{ name: 'refund', arguments: { order, amount } }] }
    },
    ({ messages }) =>
      messages.at(-1).content === 'paid' ? 'Your money is on its way.' : 'I am sorry, I cannot do that.',
  ])

// #region agent
export const support = (model) =>
  createAgent({
    name: 'support',
    model,
    tools: [lookUp, refund],
    middleware: [large],
    system: (_state, context) => `You help ${context.customer}. Be brief.`,
  })
// #endregion
export const supportFor = (order) => support(clerk(order))

// #region output
const Verdict = z.object({ urgent: z.boolean(), topic: z.enum(['refund', 'other']) })

export const triage = (model) => createAgent({ name: 'triage', model, output: Verdict, invalidOutput: 'repair' })
// #endregion

// #region sub-agent
export const desk = (model, agent) =>
  createAgent({
    name: 'desk',
    model,
    tools: [agent.asTool({ description: 'Knows orders, and pays money back.', middleware: 'inherit' })],
  })
// #endregion

// #region migrated
export const frugal = middleware({
  name: 'frugal',
  kept: { scope: 'thread', schema: z.object({ calls: z.number().default(0) }) }, // was stateSchema
  beforeModel(ctx) {
    if (ctx.kept.value.calls >= 3) return ctx.reject('this thread has had its three model calls') // was jumpTo
    if (!ctx.revisit) ctx.kept.update(({ calls }) => ({ calls: calls + 1 }))
  },
  async wrapModel(request, next) {
    const outcome = await next() // was handler(request), which throws; this is { ok, value } or { ok, error }
    return outcome.ok ? outcome : next({ ...request, messages: request.messages.slice(-1) })
  },
})
// #endregion

// #region errors
export const strict = (model, tools) =>
  createAgent({
    model,
    tools,
    toolErrors: (error, call) => `${call.name} failed (${error.message}). Try another way.`,
  })
// #endregion
