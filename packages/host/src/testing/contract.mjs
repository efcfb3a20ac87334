// The policies of the contract suite. The same handlers are run in this process and served from one of their own.

const pass = () => ({ action: 'pass' })
const proceed = () => ({ action: 'proceed' })
const made = (text) => ({ action: 'replace', value: { made: text } })
const told = (shown, ctx) => {
  const { seam, half, attempt, maxAttempts, admits, revisit, substituted, component } = ctx
  ctx.emitEvent('asked', {
    ...shown,
    deep: [1, { nothing: null, text: 'ü\n' }],
    ctx: { seam, half, attempt, maxAttempts, admits, revisit, substituted: substituted ?? null, component },
  })
  ctx.log('info', `asked at ${seam}.${half}`)
  return half === 'before' ? { action: 'proceed' } : { action: 'pass' }
}
const throws = () => {
  throw new TypeError('no such key')
}

/** What each does, by its name; `Watch` tells all that it is asked. */
export const handlers = {
  Watch: {
    run: { before: told, after: told },
    node: { before: told, after: told },
    nodeError: { after: told },
    agentRound: { before: told, after: told },
    modelCall: { before: told, after: told },
    toolCall: { before: told, after: told },
    ask: { before: told, after: told },
  },
  Still: {
    run: { before: proceed, after: pass },
    node: { before: async () => ({ action: 'proceed' }), after: pass },
    nodeError: { after: async () => ({ action: 'pass' }) },
    modelCall: { before: proceed, after: pass },
    toolCall: { before: proceed, after: pass },
    agentRound: { before: proceed, after: pass },
    ask: { before: proceed, after: pass },
  },

  RefuseRun: { run: { before: () => ({ action: 'reject', reason: 'closed' }) } },
  ChangeRun: {
    run: {
      before: ({ input }) => ({ action: 'modify', input: { ...input, text: 'changed' } }),
      after: ({ outcome }) => ({ action: 'replace', value: { ...outcome.value.outputs, made: 'replaced' } }),
    },
  },
  FailRun: { run: { after: () => ({ action: 'fail', reason: 'unfit' }) } },

  Retry: { nodeError: { after: () => ({ action: 'retry' }) } },
  Patient: { nodeError: { after: () => ({ action: 'retry', delayMs: 3_600_000 }) } },
  Fallback: { nodeError: { after: () => made('the fallback') } },
  Careful: { nodeError: { after: (_, ctx) => (ctx.attempt < ctx.maxAttempts ? { action: 'retry' } : made('last')) } },
  Strict: { nodeError: { after: () => ({ action: 'fail', reason: 'too late' }) } },
  Unknown: { nodeError: { after: () => ({ action: 'ignore' }) } },
  Mute: { nodeError: { after: () => ({ action: 'fail', reason: ' ' }) } },
  Broken: { nodeError: { after: throws } },
  Absent: { nodeError: {} },

  Change: { node: { before: ({ input }) => ({ action: 'modify', input: { ...input, text: 'changed' } }) } },
  Answer: { node: { before: () => made('the answer') } },
  AnswerStep: { node: { before: ({ subject }) => (subject.nodeName === 'step' ? made('-') : proceed()) } },
  Refuse: { node: { before: () => ({ action: 'reject', reason: 'not here' }) } },
  Swap: { node: { after: () => made('swapped') } },
  Fail: { node: { after: () => ({ action: 'fail', reason: 'unfit' }) } },
  RetryAfter: { node: { after: () => ({ action: 'retry' }) } },
  BrokenAfter: { node: { after: throws } },

  RefuseTool: {
    toolCall: { before: ({ input }) => ({ action: 'reject', reason: `no ${input.text}` }) },
  },
  ChangeTool: { toolCall: { before: () => ({ action: 'modify', input: { text: 'changed' } }) } },
  AnswerTool: { toolCall: { before: () => ({ action: 'replace', value: 'the answer' }) } },
  SwapTool: { toolCall: { after: () => ({ action: 'replace', value: 'swapped' }) } },
  WithholdTool: { toolCall: { after: () => ({ action: 'reject', reason: 'secret' }) } },
  FailTool: { toolCall: { after: () => ({ action: 'fail', reason: 'unfit' }) } },
  RetryTool: { toolCall: { after: () => ({ action: 'retry' }) } },
  BrokenTool: { toolCall: { before: throws } },
  AbsentTool: { toolCall: {} },

  ChangeModel: { modelCall: { before: () => ({ action: 'modify', input: { temperature: 0.5 } }) } },
  AnswerModel: { modelCall: { before: () => ({ action: 'replace', value: { content: 'cached' } }) } },
  RefuseModel: { modelCall: { before: () => ({ action: 'reject', reason: 'spent' }) } },
  BadMessages: { modelCall: { before: () => ({ action: 'modify', input: { messages: 'hello' } }) } },
  BadMessage: { modelCall: { before: () => ({ action: 'modify', input: { messages: [{ role: 'user' }] } }) } },
  BadRole: { modelCall: { before: () => ({ action: 'modify', input: { messages: [{ role: 'x', content: '' }] } }) } },
  BadTemperature: { modelCall: { before: () => ({ action: 'modify', input: { temperature: 'hot' } }) } },
  BadModel: { modelCall: { before: () => ({ action: 'modify', input: { model: '' } }) } },
  RetryModel: { modelCall: { after: ({ outcome }) => (outcome.ok ? pass() : { action: 'retry' }) } },
  SwapModel: { modelCall: { after: () => ({ action: 'replace', value: { content: 'sorry' } }) } },
  FailModel: { modelCall: { after: () => ({ action: 'fail', reason: 'never mind' }) } },

  RefuseFirst: { agentRound: { before: () => ({ action: 'reject', reason: 'not today' }) } },
  TwoRounds: {
    agentRound: {
      before: ({ input }) =>
        input.round > Math.min(2, input.maxRounds) ? { action: 'reject', reason: 'enough' } : { action: 'proceed' },
    },
  },
  FailRound: { agentRound: { after: () => ({ action: 'fail', reason: 'off topic' }) } },
  ChangeRound: { agentRound: { before: () => ({ action: 'modify', input: { round: 1 } }) } },
  RetryRound: { agentRound: { after: () => ({ action: 'retry' }) } },

  Runs: {
    node: {
      before: async ({ input }, ctx) => {
        const text = await ctx.runTool('act', { text: input.text })
        return { action: 'modify', input: { ...input, text } }
      },
    },
  },
  Asks: {
    node: {
      before: async ({ input }, ctx) => {
        const { content } = await ctx.callModel({ messages: [{ role: 'user', content: input.text }] })
        return { action: 'modify', input: { ...input, text: content } }
      },
    },
  },
  AsksNobody: {
    node: {
      before: async (_, ctx) => {
        await ctx.callModel({ messages: [{ role: 'user', content: 'hi' }] })
        return proceed()
      },
    },
  },

  AnswerAsk: { ask: { before: () => ({ action: 'replace', value: 'yes' }) } },
}

/** A half that is declared and not served. */
const ABSENT = { Absent: { nodeError: ['after'] }, AbsentTool: { toolCall: ['before'] } }

export const components = Object.entries(handlers).map(([componentType, seams]) => ({
  componentType,
  kind: 'middleware',
  seams:
    ABSENT[componentType] ??
    Object.fromEntries(Object.entries(seams).map(([seam, halves]) => [seam, Object.keys(halves)])),
}))
