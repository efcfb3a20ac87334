// No more than a limit is spent on a thread, over all its runs. serve() is a global; nothing is imported.

// #region policy
serve({
  SpendLimit: {
    toolCall: {
      before({ subject, input }, ctx) {
        const { tool = 'pay', limit = 100 } = ctx.component
        // Who counts, counts when `revisit` is false: this payment was let in before, in this process or in another one.
        if (subject.toolName !== tool || ctx.revisit) return { action: 'proceed' }
        const { spent } = ctx.kept.value
        if (spent + input.amount > limit)
          return { action: 'reject', reason: `${spent} of ${limit} are spent; ${input.amount} more are too much` }
        ctx.kept.update(() => ({ spent: spent + input.amount }))
        return { action: 'proceed' }
      },
    },
  },
})
// #endregion
