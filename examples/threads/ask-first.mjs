// A policy that asks a person about every shell command. serve() is a global; nothing is imported.

// #region policy
serve({
  AskFirst: {
    toolCall: {
      before({ subject }, { answered }) {
        if (subject.toolName !== 'shell') return { action: 'proceed' }
        if (answered === undefined)
          return { action: 'suspend', ask: { question: 'May this run?', schema: { type: 'boolean' } } }
        return answered ? { action: 'proceed' } : { action: 'reject', reason: 'a person said no' }
      },
    },
  },
})
// #endregion
