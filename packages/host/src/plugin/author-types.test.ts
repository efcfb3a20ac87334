import type * as core from '@sluice/core'
import {
  type AfterVerdict,
  type BeforeVerdict,
  type ChatChunk,
  type ChatRequest,
  type ChatResponse,
  type Handlers,
  type PolicyHandlers,
  SEAMS,
  type Seam,
  type Shown,
  type Subject,
  testPolicy,
} from '@sluice/plugin'
import { describe, expectTypeOf, it } from 'vitest'

type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : never) : never
type SameVerdicts<S extends Seam> = Same<BeforeVerdict<S>, core.BeforeVerdict<S>> &
  Same<AfterVerdict<S>, core.AfterVerdict<S>>

describe('the types for authors', () => {
  it('are those of core, which their package does not depend on', () => {
    expectTypeOf<Seam>().toEqualTypeOf<core.Seam>()
    expectTypeOf<Subject>().toEqualTypeOf<core.Subject>()
    expectTypeOf<Same<Shown, core.Shown>>().toEqualTypeOf<true>()
    expectTypeOf<ChatRequest>().toEqualTypeOf<core.ChatRequest>()
    expectTypeOf<ChatResponse>().toEqualTypeOf<core.ChatResponse>()
    expectTypeOf<ChatChunk>().toEqualTypeOf<core.ChatChunk>()
  })

  it('admit at each half what the table admits', () => {
    expectTypeOf<{ [S in Seam]: SameVerdicts<S> }[Seam]>().toEqualTypeOf<true>()
    expectTypeOf<BeforeVerdict<'nodeError'>>().toBeNever()
    expectTypeOf(SEAMS.toolCall.after).toEqualTypeOf<readonly ['pass', 'replace', 'reject', 'fail']>()
  })

  it('know what a handler may answer', () => {
    const handlers: PolicyHandlers = {
      nodeError: {
        after: ({ outcome }, ctx) =>
          ctx.attempt < ctx.maxAttempts && /429/.test(outcome.error.message)
            ? { action: 'retry', delayMs: 500 }
            : { action: 'pass' },
      },
      toolCall: {
        // @ts-expect-error a tool call admits no retry: the message that asked for it is already in the conversation
        after: () => ({ action: 'retry' }),
      },
    }
    // @ts-expect-error nothing comes before an error
    const early: PolicyHandlers = { nodeError: { before: () => ({ action: 'proceed' }) } }
    expectTypeOf([handlers, early]).toExtend<object>()
  })

  it('know what a policy keeps', () => {
    const SpendLimit: PolicyHandlers<{ readonly spent: number }> = {
      toolCall: {
        before: (_shown, ctx) => {
          expectTypeOf(ctx.kept.value).toEqualTypeOf<{ readonly spent: number }>()
          // @ts-expect-error the whole new value, as the schema has it
          ctx.kept.update(() => ({ spend: 1 }))
          expectTypeOf(ctx.kept.update(({ spent }) => ({ spent: spent + 1 }))).toEqualTypeOf<{
            readonly spent: number
          }>()
          return { action: 'proceed' }
        },
      },
    }
    const served: Handlers = { SpendLimit }
    expectTypeOf(served).toExtend<object>()
  })

  it('know what a test shows, and what comes back', () => {
    const consult = (handlers: PolicyHandlers) => [
      testPolicy(handlers, { seam: 'agentRound', input: { round: 1, maxRounds: 10 } }),
      // @ts-expect-error a round is shown its number
      testPolicy(handlers, { seam: 'agentRound', input: { cmd: 'ls' } }),
      // @ts-expect-error an input or an outcome
      testPolicy(handlers, { seam: 'toolCall' }),
      // @ts-expect-error nothing comes before an error
      testPolicy(handlers, { seam: 'nodeError', input: {} }),
    ]
    expectTypeOf(consult).toBeFunction()
    const tested = () => testPolicy({}, { seam: 'agentRound', input: { round: 1, maxRounds: 10 } })
    expectTypeOf<Awaited<ReturnType<typeof tested>>['verdict']['action']>().toEqualTypeOf<
      'proceed' | 'reject' | 'pass' | 'fail'
    >()
  })
})
