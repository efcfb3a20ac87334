// #region class
import { estimateUsage, Middleware, middleware } from '@sluice/core'
import { z } from 'zod'

/** Says which nodes run, and how a run ended. */
export class PrintSteps extends Middleware {
  beforeNode(ctx) {
    console.log(`${ctx.step}: ${ctx.nodeName}`)
  }
  onRunEnd(ctx, outcome) {
    console.log(`${ctx.graphName}: ${outcome.status}`)
  }
}
// #endregion

// #region words
export const quietHours = (isNight) =>
  middleware({
    name: 'quiet hours',
    beforeTool: (ctx) =>
      ctx.toolName === 'send_mail' && isNight() ? ctx.reject('No mail at night. Draft it instead.') : undefined,
    afterTool: (ctx) => ctx.replace(String(ctx.value).replace(/\S+@\S+/g, '[address]')),
  })
// #endregion

// #region kept
export const spend = middleware({
  name: 'spend',
  kept: { scope: 'thread', schema: z.object({ tokens: z.number().default(0) }) },
  beforeModel: (ctx) =>
    ctx.kept.value.tokens > 50_000 ? ctx.reject('50,000 tokens are the budget of a thread') : undefined,
  afterModel: (ctx) => {
    const { totalTokens: used } = ctx.response.usage ?? estimateUsage(ctx.request, ctx.response)
    if (!ctx.revisit) ctx.kept.update(({ tokens }) => ({ tokens: tokens + used }))
  },
})
// #endregion

// #region wrap
export const secondOpinion = (other) =>
  middleware({
    name: 'second opinion',
    wrapModel: async (request, next) => {
      const outcome = await next(request)
      if (outcome.ok || outcome.refused) return outcome
      return next(request, { model: other })
    },
  })
// #endregion

// #region ask
export const askFirst = middleware({
  name: 'AskFirst',
  beforeTool: (ctx) => {
    if (ctx.toolName !== 'send_mail') return undefined
    if (ctx.answered === undefined) return ctx.suspend({ question: `Send it to ${ctx.args.to}?` })
    return ctx.answered === true ? undefined : ctx.reject('a person said no')
  },
})
// #endregion
