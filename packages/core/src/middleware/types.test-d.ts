// What the compiler says of hooks. Nothing here runs: `tsc` is the test.
import { expectTypeOf } from 'vitest'
import { z } from 'zod'
import {
  AgentState,
  agentFields,
  append,
  type ChatRequest,
  type ChatResponse,
  createAgent,
  graph,
  type Hooks,
  type Json,
  type JsonObject,
  type Kept,
  Middleware,
  middleware,
  type NodeMiddlewareContext,
  type RunOutcomeTold,
  scripted,
  state,
  ToolLimitMiddleware,
  type ToolMiddlewareContext,
  type WrapOutcome,
} from '../index.ts'

const Refund = state({ amount: z.number().default(0), log: append(z.string()) })
type RefundState = { readonly amount: number; readonly log: readonly string[] }
type Caller = { readonly user: string }
type Tally = { readonly calls: number }
const tally = { scope: 'turn', schema: z.object({ calls: z.number().default(0) }) } as const

// The function form: with a state, hooks know its fields, and what may stand in place of them.
middleware({
  name: 'typed',
  state: Refund,
  kept: tally,
  beforeGraph: (ctx) => void expectTypeOf(ctx.state).toExtend<RefundState>(),
  beforeNode(ctx) {
    expectTypeOf(ctx.state.amount).toEqualTypeOf<number>()
    expectTypeOf(ctx.kept.value).toEqualTypeOf<{ calls: number }>()
    return ctx.replace({ amount: 1, log: ['replaced'] })
  },
  afterNode(ctx) {
    expectTypeOf<number>().toExtend<typeof ctx.state.amount>()
    // @ts-expect-error the update has no such field
    ctx.state.sum
    return ctx.replace({ amount: 2 })
  },
  wrapNode: async (values, next) => {
    expectTypeOf(values.log).toExtend<readonly string[]>()
    return next({ ...values, amount: 3 })
  },
  beforeModel(ctx) {
    expectTypeOf(ctx.request).toEqualTypeOf<ChatRequest>()
    expectTypeOf(ctx.state.amount).toEqualTypeOf<number>()
    return ctx.replace({ temperature: 0 })
  },
  afterModel(ctx) {
    expectTypeOf(ctx.response).toEqualTypeOf<ChatResponse>()
    return ctx.replace({ ...ctx.response, content: 'other' })
  },
  wrapTool: async (args, next) => {
    expectTypeOf(args).toEqualTypeOf<JsonObject>()
    const outcome = await next()
    expectTypeOf(outcome).toEqualTypeOf<WrapOutcome<Json>>()
    return outcome.ok ? { ok: true, value: 'other' } : outcome
  },
})

// Without a state, any field may be read.
middleware({ name: 'for every graph', beforeNode: (ctx) => void expectTypeOf(ctx.state).toBeAny() })

// A field that is none, and a value of another type.
middleware({
  name: 'no such field',
  state: Refund,
  beforeNode(ctx) {
    // @ts-expect-error the state has no such field
    ctx.state.sum
  },
})
middleware({
  name: 'another type',
  state: Refund,
  // @ts-expect-error the node's input has a number there
  beforeNode: (ctx) => ctx.replace({ amount: 'one', log: [] }),
})
middleware({
  name: 'another field of a request',
  // @ts-expect-error temperature is a number
  beforeModel: (ctx) => ctx.replace({ temperature: 'hot' }),
})

// A word stands only where the hook admits it.
middleware({
  name: 'words',
  // @ts-expect-error a graph hook only observes: it has no words
  beforeGraph: (ctx) => ctx.reject('no'),
  // @ts-expect-error a node is retried when it failed, not before it ran
  beforeNode: (ctx) => ctx.retry(),
  // @ts-expect-error a node that has run is not asked about
  afterNode: (ctx) => ctx.suspend({ question: 'may it?' }),
  // @ts-expect-error a round has no result to stand in for it
  beforeRound: (ctx) => ctx.answer({}),
  // @ts-expect-error a round that has run cannot be refused
  afterRound: (ctx) => ctx.reject('no'),
  // @ts-expect-error a model call that has not been made cannot have failed
  beforeModel: (ctx) => ctx.fail('no'),
  // @ts-expect-error a response that is there is failed or replaced, and not refused
  afterModel: (ctx) => ctx.reject('no'),
  // @ts-expect-error a tool call admits no retry: the message that asked for it is in the conversation
  afterTool: (ctx) => ctx.retry(),
  // @ts-expect-error an observer returns nothing
  onToolError: (ctx) => ctx.answer('fine'),
})
middleware({
  name: 'words that are admitted',
  beforeNode: (ctx) => ctx.suspend({ question: 'may it?' }),
  afterNode: (ctx) => ctx.fail('no'),
  onError: (ctx) => ctx.retry({ delayMs: 10 }),
  beforeRound: (ctx) => ctx.reject('no'),
  beforeModel: (ctx) => ctx.answer({ content: 'known' }),
  onModelError: (ctx) => ctx.fail('no'),
  beforeTool: (ctx) => ctx.answer('known'),
  afterTool: (ctx) => ctx.reject('withheld'),
})

// A wrap exchanges outcomes.
// @ts-expect-error a wrap returns an outcome, and not the value itself
middleware({ name: 'no outcome', wrapModel: async () => ({ content: 'mine', finish_reason: 'stop' }) })

// A hook that is misspelled.
// @ts-expect-error there is no such hook
middleware({ name: 'misspelled', beforeTols: () => undefined })

export class Misspelled extends Middleware {
  // @ts-expect-error it overrides nothing
  override beforeTools() {}
}

// A class for one state, one context and what it keeps.
export class Typed extends Middleware<RefundState, Caller, Tally> {
  override readonly kept = tally
  override beforeTool(ctx: ToolMiddlewareContext<RefundState, Caller, Tally>) {
    expectTypeOf(ctx.state.amount).toEqualTypeOf<number>()
    return ctx.kept.value.calls > 3 ? ctx.reject(`${ctx.context.user} has called enough`) : undefined
  }
}

export class Wrong extends Middleware<RefundState> {
  // @ts-expect-error afterNode admits no reject
  override afterNode(ctx: NodeMiddlewareContext<RefundState>) {
    return ctx.reject('no')
  }
}

// In a graph's list stands what is for its state, for a part of it, or for any.
const Part = state({ amount: z.number() })
const part = middleware({ name: 'part', state: Part })
const any = middleware({ name: 'any' })
graph('whole', Refund, { middleware: [new Typed(), new Wrong(), part, any, new ToolLimitMiddleware()] })
graph('inline', Refund, {
  middleware: [
    middleware({
      name: 'with a state',
      state: Refund,
      beforeNode: (ctx) => void expectTypeOf(ctx.state.amount).toBeNumber(),
    }),
    middleware({ name: 'without', beforeNode: (ctx) => void expectTypeOf(ctx.state).toBeAny() }),
  ],
})

// What is for another state does not.
const Ticket = state({ title: z.string() })
// @ts-expect-error there is no "amount" in a ticket
graph('another', Ticket, { middleware: [part] })
// @ts-expect-error nor for a class
graph('another', Ticket, { middleware: [any, new Typed()] })
// @ts-expect-error "amount" is a number here and a text there
graph('another type', state({ amount: z.string() }), { middleware: [part] })

// An agent has the fields of an agent, and what its state has more.
const model = scripted([])
const talk = middleware({ name: 'talk', state: AgentState, beforeTool: (ctx) => void ctx.state.messages })
const Customer = state({ ...agentFields, customer: z.string() })
const served = middleware({ name: 'served', state: Customer, beforeTool: (ctx) => void ctx.state.customer })
createAgent({ model, middleware: [talk, any, new ToolLimitMiddleware()] })
createAgent({ model, state: Customer, middleware: [talk, served] })
createAgent({ model, output: z.object({ n: z.number() }), middleware: [talk] })
// @ts-expect-error this agent has no customer
createAgent({ model, middleware: [served] })

// G1: every hook gets the same typed context.
interface Same {
  readonly context: Caller
  readonly kept: Kept<Tally>
  readonly runId: string
  readonly rootRunId: string
  readonly threadId: string | undefined
  readonly labels: readonly string[]
  readonly signal: AbortSignal
  readonly scratch?: Record<string, unknown>
}
declare function same(ctx: Same): undefined
const all: Required<Hooks<RefundState, Partial<RefundState>, Caller, Tally>> = {
  beforeGraph: (ctx) => same(ctx),
  afterGraph: (ctx) => same(ctx),
  onRunEnd: (ctx, outcome) => {
    expectTypeOf(outcome).toEqualTypeOf<RunOutcomeTold>()
    return same(ctx)
  },
  beforeNode: (ctx) => same(ctx),
  afterNode: (ctx) => same(ctx),
  onError: (ctx) => same(ctx),
  wrapNode: async (values, next, ctx) => same(ctx) ?? next(values),
  beforeRound: (ctx) => same(ctx),
  afterRound: (ctx) => same(ctx),
  beforeModel: (ctx) => same(ctx),
  afterModel: (ctx) => same(ctx),
  onModelError: (ctx) => same(ctx),
  wrapModel: async (request, next, ctx) => same(ctx) ?? next(request),
  beforeTool: (ctx) => same(ctx),
  afterTool: (ctx) => same(ctx),
  onToolError: (ctx) => same(ctx),
  wrapTool: async (args, next, ctx) => same(ctx) ?? next(args),
  onInterrupt: (ctx) => same(ctx),
}
expectTypeOf(all).toHaveProperty('beforeTool')
