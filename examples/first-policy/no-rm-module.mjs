export default {
  manifest: {
    name: 'no-rm',
    version: '1.0.0',
    components: [{ componentType: 'NoRm', kind: 'middleware', seams: { toolCall: ['before'] } }],
  },
  handlers: {
    NoRm: {
      toolCall: {
        before: ({ subject, input }) =>
          subject.toolName === 'shell' && /\brm\b/.test(input.cmd)
            ? { action: 'reject', reason: 'nothing is deleted on this machine' }
            : { action: 'proceed' },
      },
    },
  },
}
