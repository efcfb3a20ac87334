import type { Middleware } from '../middleware/middleware.ts'
import { middleware } from '../middleware/middleware.ts'
import type { WrapOutcome } from '../seams/own.ts'

/** One hook that was called, and what it was shown. */
export interface Recorded {
  readonly hook: string
  /** The node; the graph's name at the hooks around a run. */
  readonly at: string
  /** The input in `before…` hooks and wraps, the value in `after…` hooks, the error in `on…` hooks. */
  readonly shown?: unknown
}

export interface Recorder extends Middleware {
  /** Every hook that was called, in order. */
  readonly recorded: readonly Recorded[]
  /** The same in words, `beforeTool at think`: two runs were treated alike when their traces are equal. */
  readonly trace: readonly string[]
}

interface AtNode {
  readonly nodeName: string
}

/** A middleware that says nothing and notes every hook it is called at. */
export function recorder(name = 'recorder'): Recorder {
  const recorded: Recorded[] = []
  const note = (hook: string, at: string, shown?: unknown) => {
    recorded.push({ hook, at, shown })
  }
  const around =
    (hook: string) =>
    async <Input, Value>(
      input: Input,
      next: (input: Input) => Promise<WrapOutcome<Value>>,
      { nodeName }: AtNode,
    ): Promise<WrapOutcome<Value>> => {
      note(hook, nodeName, input)
      return next(input)
    }
  const made = middleware({
    name,
    beforeGraph: (ctx) => note('beforeGraph', ctx.graphName, ctx.state),
    afterGraph: (ctx) => note('afterGraph', ctx.graphName, ctx.state),
    onRunEnd: (ctx, outcome) => note('onRunEnd', ctx.graphName, outcome.status),
    beforeNode: (ctx) => note('beforeNode', ctx.nodeName, ctx.state),
    afterNode: (ctx) => note('afterNode', ctx.nodeName, ctx.state),
    onError: (ctx, error) => note('onError', ctx.nodeName, error),
    wrapNode: around('wrapNode'),
    beforeRound: (ctx) => note('beforeRound', ctx.nodeName, ctx.round),
    afterRound: (ctx) => note('afterRound', ctx.nodeName, ctx.toolCalls),
    beforeModel: (ctx) => note('beforeModel', ctx.nodeName, ctx.request),
    afterModel: (ctx) => note('afterModel', ctx.nodeName, ctx.response),
    onModelError: (ctx, error) => note('onModelError', ctx.nodeName, error),
    wrapModel: around('wrapModel') as never,
    beforeTool: (ctx) => note('beforeTool', ctx.nodeName, ctx.value),
    afterTool: (ctx) => note('afterTool', ctx.nodeName, ctx.value),
    onToolError: (ctx, error) => note('onToolError', ctx.nodeName, error),
    wrapTool: around('wrapTool'),
    onInterrupt: (ctx, payload) => note('onInterrupt', ctx.nodeName, payload),
  })
  return Object.defineProperties(made as Recorder, {
    recorded: { get: () => recorded },
    trace: { get: () => recorded.map(({ hook, at }) => `${hook} at ${at}`) },
  })
}
