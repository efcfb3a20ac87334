// #region policy
import type { PolicyHandlers } from '@sluice/plugin'

export const SpendLimit: PolicyHandlers<{ readonly spent: number }> = {
  toolCall: {
    before({ input }, ctx) {
      if (ctx.revisit) return { action: 'proceed' }
      const spent = ctx.kept.value.spent + Number(input.amount)
      if (spent > 100) return { action: 'reject', reason: 'more than 100' }
      ctx.kept.update(() => ({ spent }))
      return { action: 'proceed' }
    },
  },
}
// #endregion
