import { describe, expect, expectTypeOf, it } from 'vitest'
import {
  type AfterVerdict,
  type BeforeVerdict,
  type ChatRequest,
  type ChatResponse,
  type Consultation,
  checkSubscriptions,
  createRuntime,
  DEFAULT_POLICY_TIMEOUT_MS,
  type Half,
  type JsonObject,
  policy,
  type Round,
  type RoundResult,
  type Seam,
  type SeamHandlers,
  type ShownOutcome,
  type Subject,
} from '../index.ts'

const proceed = () => ({ action: 'proceed' }) as const
const SEAM_LIST = 'run, node, nodeError, agentRound, modelCall, toolCall, ask'

describe('making a policy', () => {
  it('takes a name and a handler for each half it subscribes to; the rest has a default', () => {
    const made = policy({ name: 'Gate', seams: { toolCall: { before: proceed } } })
    expect(made).toMatchObject({
      name: 'Gate',
      plugin: 'in-process',
      component: {},
      timeoutMs: DEFAULT_POLICY_TIMEOUT_MS,
    })
    expect(made.subscribes('toolCall', 'before')).toBe(true)
    expect(made.subscribes('toolCall', 'after')).toBe(false)
    expect(made.subscribes('node', 'before')).toBe(false)
  })

  it('owns its settings: they are copied and frozen, and must be JSON', () => {
    const settings = { words: ['rm'] }
    const made = policy({ name: 'Gate', component: settings, seams: { toolCall: { before: proceed } } })
    settings.words.push('mv')
    expect(made.component).toEqual({ words: ['rm'] })
    const component = { check: () => true } as unknown as JsonObject
    expect(() => policy({ name: 'Gate', component, seams: { toolCall: { before: proceed } } })).toThrow(
      'the settings of policy "Gate" is not JSON at check',
    )
  })

  it.each<{ name: string; seams: unknown; says: string }>([
    { name: 'E1: without seams', seams: undefined, says: `subscribes to no seam; seams are: ${SEAM_LIST}` },
    { name: 'with no seam', seams: {}, says: `subscribes to no seam; seams are: ${SEAM_LIST}` },
    {
      name: 'E3: with a seam that does not exist',
      seams: { toolResult: { after: proceed } },
      says: `subscribes to "toolResult", a seam that does not exist; seams are: ${SEAM_LIST}`,
    },
    {
      name: 'with a seam named like a member of every object',
      seams: { constructor: { after: proceed } },
      says: 'subscribes to "constructor", a seam that does not exist',
    },
    {
      name: 'E4: with a half that its seam does not have',
      seams: { nodeError: { before: proceed } },
      says: 'subscribes to nodeError.before, a half that does not exist; nodeError has: after',
    },
    {
      name: 'with a half that no seam has',
      seams: { node: { around: proceed } },
      says: 'subscribes to node.around, a half that does not exist; node has: before, after',
    },
    {
      name: 'with no half',
      seams: { node: {} },
      says: 'must say which halves of node it subscribes to: a list of before and after',
    },
    {
      name: 'with something that is no function',
      seams: { node: { before: {} } },
      says: 'gives a node.before that is no function',
    },
    {
      name: 'with a handler that is not there, which would be a gate that stands open',
      seams: { toolCall: { before: undefined } },
      says: 'gives a toolCall.before that is no function',
    },
  ])('is refused $name', ({ seams, says }) => {
    const make = () => policy({ name: 'Gate', seams: seams as SeamHandlers })
    expect(make).toThrow(expect.objectContaining({ code: 'POLICY_SEAMS' }))
    expect(make).toThrow(`policy "Gate" ${says}`)
  })
})

describe('what an operator decides about a policy', () => {
  const seams = { toolCall: { before: proceed } }
  it.each<{ name: string; rules: object; says: string; code?: string }>([
    { name: 'a mode', rules: { mode: 'shadwo' }, says: 'has the mode "shadwo"; modes are: enforce, shadow, off' },
    {
      name: 'a failure rule',
      rules: { onFailure: 'open' },
      says: 'has the failure rule "open"; rules are: fail, pass',
    },
    { name: 'a breaker', rules: { breaker: { failures: 0, openMs: 5 } }, says: 'has a breaker that is none' },
    { name: 'a breaker for ever', rules: { breaker: { failures: 1, openMs: Infinity } }, says: 'has a breaker' },
    {
      name: 'a selector',
      rules: { match: { reads: 'all', matches: () => true } },
      says: 'has a selector that is none',
    },
    { name: 'fields', rules: { fields: 'cmd' }, says: 'has fields that are no list of paths' },
    {
      name: 'a path',
      rules: { fields: ['a..b'] },
      says: 'a path in fields of policy "Gate" is "a..b"',
      code: 'JSON_PATH',
    },
    { name: 'a path of another', rules: { mayModify: [''] }, says: 'a path in mayModify of', code: 'JSON_PATH' },
  ])('is refused where it is none: $name', ({ rules, says, code = 'POLICY_RULES' }) => {
    const make = () => policy({ name: 'Gate', seams, ...rules })
    expect(make).toThrow(expect.objectContaining({ code }))
    expect(make).toThrow(says)
  })

  it('is checked of any policy that a runtime is given', () => {
    const foreign = { ...policy({ name: 'Gate', seams }), mode: 'none' as 'off' }
    expect(() => createRuntime({ policies: [foreign] })).toThrow(expect.objectContaining({ code: 'POLICY_RULES' }))
  })
})

it('E5: a manifest’s subscriptions are refused by the same rules and in the same words', () => {
  const check = (seams: object) => () =>
    checkSubscriptions(seams as { [seam: string]: unknown }, (why) => new Error(`component "Gate" ${why}`))
  expect(check({ node: ['before', 'after'], nodeError: ['after'] })).not.toThrow()
  expect(check({ toolResult: ['after'] })).toThrow(
    `component "Gate" subscribes to "toolResult", a seam that does not exist; seams are: ${SEAM_LIST}`,
  )
  expect(check({ nodeError: ['before'] })).toThrow('component "Gate" subscribes to nodeError.before')
  expect(check({ node: 'before' })).toThrow('must say which halves of node it subscribes to')
})

type Action<V> = V extends { action: infer A } ? A : never

describe('the rules of a seam are types', () => {
  it('each half admits its verdicts and no other', () => {
    expectTypeOf<Action<BeforeVerdict<'run'>>>().toEqualTypeOf<'proceed' | 'modify' | 'reject' | 'suspend'>()
    expectTypeOf<Action<AfterVerdict<'run'>>>().toEqualTypeOf<'pass' | 'replace' | 'fail'>()
    expectTypeOf<Action<BeforeVerdict<'node'>>>().toEqualTypeOf<
      'proceed' | 'modify' | 'replace' | 'reject' | 'suspend'
    >()
    expectTypeOf<Action<AfterVerdict<'node'>>>().toEqualTypeOf<'pass' | 'replace' | 'fail'>()
    expectTypeOf<BeforeVerdict<'nodeError'>>().toBeNever()
    expectTypeOf<Action<AfterVerdict<'nodeError'>>>().toEqualTypeOf<'pass' | 'replace' | 'retry' | 'fail'>()
    expectTypeOf<Action<BeforeVerdict<'agentRound'>>>().toEqualTypeOf<'proceed' | 'reject'>()
    expectTypeOf<Action<AfterVerdict<'agentRound'>>>().toEqualTypeOf<'pass' | 'fail'>()
    expectTypeOf<Action<BeforeVerdict<'modelCall'>>>().toEqualTypeOf<
      'proceed' | 'modify' | 'replace' | 'reject' | 'suspend'
    >()
    expectTypeOf<Action<AfterVerdict<'modelCall'>>>().toEqualTypeOf<'pass' | 'replace' | 'retry' | 'fail'>()
    expectTypeOf<Action<BeforeVerdict<'toolCall'>>>().toEqualTypeOf<
      'proceed' | 'modify' | 'replace' | 'reject' | 'suspend'
    >()
    expectTypeOf<Action<AfterVerdict<'toolCall'>>>().toEqualTypeOf<'pass' | 'replace' | 'reject' | 'fail'>()
    expectTypeOf<Action<BeforeVerdict<'ask'>>>().toEqualTypeOf<'proceed' | 'replace'>()
    expectTypeOf<Action<AfterVerdict<'ask'>>>().toEqualTypeOf<'pass'>()
  })

  it('a verdict brings what its seam takes', () => {
    const edit: BeforeVerdict<'modelCall'> = { action: 'modify', input: { temperature: 0 } }
    const answer: AfterVerdict<'modelCall'> = { action: 'replace', value: { content: 'x', finish_reason: 'stop' } }
    const marked: AfterVerdict<'toolCall'> = { action: 'reject', reason: 'no', code: 'acme:1', labels: ['l'] }
    expect([edit.action, answer.action, marked.action]).toEqual(['modify', 'replace', 'reject'])
    // @ts-expect-error a round may happen or not, nothing else
    const pause: BeforeVerdict<'agentRound'> = { action: 'suspend', ask: {} }
    // @ts-expect-error the message that asked for the call is already in the conversation
    const again: AfterVerdict<'toolCall'> = { action: 'retry' }
    // @ts-expect-error an outcome is replaced, not modified
    const edited: AfterVerdict<'node'> = { action: 'modify', input: {} }
    // @ts-expect-error a refusal says why
    const mute: BeforeVerdict<'toolCall'> = { action: 'reject' }
    // @ts-expect-error a response has content
    const empty: AfterVerdict<'modelCall'> = { action: 'replace', value: { finish_reason: 'stop' } }
    // @ts-expect-error a node’s output is an object
    const scalar: BeforeVerdict<'node'> = { action: 'replace', value: 'x' }
    expect([pause, again, edited, mute, empty, scalar]).toHaveLength(6)
  })

  it('a handler is given what its half shows', () => {
    type Handlers<S extends Seam> = Required<NonNullable<SeamHandlers[S]>>
    type Shown<S extends Seam, H extends Half> = Handlers<S>[H & keyof Handlers<S>] extends (
      shown: infer Given,
      ctx: never,
    ) => unknown
      ? Given
      : never
    expectTypeOf<Shown<'toolCall', 'before'>>().toEqualTypeOf<{
      readonly subject: Subject
      readonly input: JsonObject
    }>()
    expectTypeOf<Shown<'modelCall', 'before'>['input']>().toEqualTypeOf<ChatRequest>()
    expectTypeOf<Shown<'modelCall', 'after'>['outcome']>().toEqualTypeOf<ShownOutcome<ChatResponse>>()
    expectTypeOf<Shown<'agentRound', 'before'>['input']>().toEqualTypeOf<Round>()
    expectTypeOf<Shown<'agentRound', 'after'>['outcome']>().toEqualTypeOf<{
      readonly ok: true
      readonly value: RoundResult
    }>()
    expectTypeOf<Shown<'nodeError', 'after'>['outcome']['ok']>().toEqualTypeOf<false>()
    expectTypeOf<Shown<'toolCall', 'after'>['input']>().toEqualTypeOf<JsonObject>()
  })

  it('handlers stand under seams and halves that exist, may be async, and are given a consultation', () => {
    const handlers: SeamHandlers = {
      nodeError: {
        after: ({ outcome }, ctx) => {
          expectTypeOf(ctx).toEqualTypeOf<Consultation>()
          return /timed out/.test(outcome.error.message) ? { action: 'retry', delayMs: 5 } : { action: 'pass' }
        },
      },
      toolCall: { before: async () => ({ action: 'proceed' }) },
    }
    // @ts-expect-error there is no such seam
    const seam: SeamHandlers = { toolResult: { after: () => ({ action: 'pass' }) } }
    // @ts-expect-error a node that failed has no before
    const half: SeamHandlers = { nodeError: { before: () => ({ action: 'proceed' }) } }
    // @ts-expect-error a tool call is not retried
    const verdict: SeamHandlers = { toolCall: { after: () => ({ action: 'retry' }) } }
    // @ts-expect-error a handler answers
    const nothing: SeamHandlers = { toolCall: { before: () => undefined } }
    expect([handlers, seam, half, verdict, nothing]).toHaveLength(5)
  })
})
