// A policy in the server's own process: a person has to agree before money leaves.
const schema = { type: 'object', properties: { approved: { type: 'boolean' } }, required: ['approved'] }

export default {
  manifest: {
    name: 'ask-first',
    version: '1.0.0',
    capabilities: [],
    components: [{ componentType: 'AskFirst', kind: 'middleware', seams: { toolCall: ['before'] } }],
  },
  handlers: {
    AskFirst: {
      toolCall: {
        before({ subject, input }, ctx) {
          if (subject.toolName !== 'refund') return { action: 'proceed' }
          if (ctx.answered == null)
            return { action: 'suspend', ask: { question: `Pay order ${input.order} back?`, schema } }
          return ctx.answered.approved ? { action: 'proceed' } : { action: 'reject', reason: 'A person said no.' }
        },
      },
    },
  },
}
