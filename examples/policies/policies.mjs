// Five policies and a model that needs no key. Nothing is imported: the host provides serve().

const any = (patterns, text) => patterns.find((pattern) => text.includes(pattern))

/** Tries a failed node again, a little later each time; when its attempts are spent, it supplies a result of its own. */
const RetryPolicy = {
  nodeError: {
    after({ subject, outcome }, ctx) {
      const {
        maxAttempts = 3,
        retryOn = ['timed out', '429', 'unavailable'],
        backoffMs = 200,
        substitute,
      } = ctx.component
      if (any(retryOn, outcome.error.message) === undefined) return { action: 'pass' }
      if (ctx.attempt < Math.min(maxAttempts, ctx.maxAttempts))
        return { action: 'retry', delayMs: backoffMs * ctx.attempt }
      if (substitute === undefined) return { action: 'pass' }
      ctx.emitEvent('substituted', { node: subject.nodeName, attempts: ctx.attempt })
      return { action: 'replace', value: substitute }
    },
  },
}

/** Refuses tool calls whose arguments match a pattern, and withholds results that are too large. Guards nothing by default. */
const ApprovalGate = {
  toolCall: {
    before({ subject, input }, ctx) {
      const patterns = ctx.component.guard?.[subject.toolName] ?? []
      const found = patterns.find((pattern) => new RegExp(pattern).test(JSON.stringify(input)))
      return found === undefined
        ? { action: 'proceed' }
        : { action: 'reject', reason: `matches the guarded pattern "${found}"` }
    },
    after({ outcome }, ctx) {
      const { maxResultBytes } = ctx.component
      if (!outcome.ok || maxResultBytes === undefined) return { action: 'pass' }
      const bytes = Buffer.byteLength(JSON.stringify(outcome.value))
      return bytes <= maxResultBytes
        ? { action: 'pass' }
        : { action: 'replace', value: { note: `a result of ${bytes} bytes was withheld` } }
    },
  },
}

/** Says of every node how it went; answers for the types that are only to be rehearsed. */
const NodeAudit = {
  node: {
    before: ({ subject }, ctx) =>
      (ctx.component.dryRun ?? []).includes(subject.nodeType)
        ? { action: 'replace', value: ctx.component.stub ?? {} }
        : { action: 'proceed' },
    after({ subject, outcome }, ctx) {
      ctx.emitEvent('node', { node: subject.nodeName, type: subject.nodeType, ok: outcome.ok, attempt: ctx.attempt })
      return { action: 'pass' }
    },
  },
}

/** Counts model calls of the last minute in this process, and refuses those above the rate; asks again where a provider is busy. */
const calls = []
const RateLimit = {
  modelCall: {
    before(_shown, ctx) {
      const { callsPerMinute } = ctx.component
      if (callsPerMinute === undefined) return { action: 'proceed' }
      while (calls.length > 0 && calls[0] < Date.now() - 60_000) calls.shift()
      if (calls.length >= callsPerMinute)
        return { action: 'reject', reason: `429: ${callsPerMinute} model calls a minute is the limit` }
      if (!ctx.revisit) calls.push(Date.now())
      return { action: 'proceed' }
    },
    after({ outcome }, ctx) {
      const { retryOn = ['429', 'timed out'], backoffMs = 1_000 } = ctx.component
      if (outcome.ok || any(retryOn, outcome.error.message) === undefined) return { action: 'pass' }
      return { action: 'retry', delayMs: backoffMs }
    },
  },
}

/** Ends an agent that keeps calling tools, before the model is asked once more. */
const RoundBudget = {
  agentRound: {
    before({ input }, ctx) {
      const cap = Math.min(ctx.component.maxRounds ?? 3, input.maxRounds)
      return input.round > cap ? { action: 'reject', reason: `${cap} rounds is the budget` } : { action: 'proceed' }
    },
  },
}

/** Asks for one shell command, then tells what became of it. */
const StubModelConfig = {
  chat({ messages }) {
    const last = messages.at(-1)
    if (last.role === 'tool') return { content: `The shell said: ${last.content}`, finish_reason: 'stop' }
    const call = { id: 'call-1', name: 'shell', arguments: JSON.stringify({ cmd: 'rm -rf /var/data' }) }
    return { content: '', finish_reason: 'tool_calls', tool_calls: [call] }
  },
}

serve({ RetryPolicy, ApprovalGate, NodeAudit, RateLimit, RoundBudget, StubModelConfig })
