serve({
  NoRm: {
    toolCall: {
      before: ({ subject, input }) =>
        subject.toolName === 'shell' && /\brm\b/.test(input.cmd)
          ? { action: 'reject', reason: 'nothing is deleted on this machine' }
          : { action: 'proceed' },
    },
  },
})
