import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Clock } from '../../testing/clock.ts'
import { type Answer, eventsOf, noting, ofType, oneNode, says, settle, trying } from '../../testing/play.ts'
import {
  admits,
  agentLoop,
  type Half,
  MiddlewareError,
  type NodeContext,
  type Policy,
  type PolicyOptions,
  type RunOutcome,
  SEAM_NAMES,
  type Seam,
  scripted,
} from '../index.ts'
import { HALVES } from './table.ts'

/** How a policy may fail at a half. */
const FAILURES: { readonly [how: string]: { readonly answer: Answer; readonly says: RegExp } } = {
  throws: {
    answer: () => {
      throw new Error('it broke')
    },
    says: /it broke/,
  },
  rejects: { answer: () => Promise.reject(new Error('it died')), says: /it died/ },
  'answers nonsense': { answer: 5, says: /answered a number, which is no verdict/ },
  'answers what the half does not admit': { answer: { action: 'allow' }, says: /answered "allow"/ },
  'gives a code of the engine': { answer: { action: 'proceed', code: 'sluice:x' }, says: /./ },
  'keeps what it may not': {
    answer: (_, ctx) => {
      ctx.kept.update(() => ({ n: 'many' }))
      return {}
    },
    says: /keeps what it may not/,
  },
}

const kept: PolicyOptions['kept'] = { scope: 'turn', schema: z.object({ n: z.number().default(0) }) }

/** Something happens at every half but those of `nodeError`; what is asked, `Answers` answers. */
const busy = async (ctx: NodeContext) => {
  const { content } = await agentLoop(ctx, {
    model: scripted([{ tool_calls: [{ name: 'act', arguments: { text: 'x' } }] }, 'done']),
    tools: [noting()],
    messages: [],
  })
  await ctx.ask('q', 'well?')
  return content
}
const answers = () => says('Answers', { 'ask.before': { action: 'replace', value: 'yes' } })

const halves = SEAM_NAMES.flatMap((seam) =>
  HALVES.filter((half) => admits(seam, half).length > 0).map((half) => ({ seam, half })),
)

const graphFor = (seam: Seam) =>
  seam === 'nodeError'
    ? oneNode(() => {
        throw new Error('the node fails')
      })
    : oneNode(async (_, ctx) => ({ made: (await busy(ctx)) ?? '' }))

const failsAt = (seam: Seam, half: Half, answer: Answer, rules: Partial<PolicyOptions> = {}) =>
  says('Gate', { [`${seam}.${half}`]: answer }, { kept, ...rules })

describe.each(halves)('a policy that fails at $seam.$half', ({ seam, half }) => {
  it.each(Object.entries(FAILURES))('%s: it ends the run, for that is the rule', async (_, { answer, says }) => {
    const policies = [failsAt(seam, half, answer), answers()]
    const { status, error } = await settle({ graph: graphFor(seam), policies })
    expect(status).toBe('failed')
    expect(error).toBeInstanceOf(MiddlewareError)
    expect((error as Error).message).toMatch(says)
    expect(error).toMatchObject({ at: { policy: 'Gate', seam, half } })
  })

  it.each(Object.entries(FAILURES))(
    '%s: it counts as nothing said, where failures pass',
    async (_, { answer, says }) => {
      const gate = failsAt(seam, half, answer, { onFailure: 'pass' })
      const played = await settle({ graph: graphFor(seam), policies: [gate, answers()] })
      expect(outcome(played)).toEqual(outcome(await settle({ graph: graphFor(seam), policies: [answers()] })))
      expect(gate.asked.length).toBeGreaterThan(0)
      const warnings = played.warnings.filter(({ policy }) => policy === 'Gate')
      expect(warnings).toHaveLength(gate.asked.length)
      expect(warnings[0]).toMatchObject({ policy: 'Gate', seam, half, message: expect.stringMatching(says) })
      expect(warnings[0]?.message).toMatch(/By its failure rule that counts as (proceed|pass)\.$/)
    },
  )
})

const outcome = ({ status, state, error }: RunOutcome<unknown>) => ({ status, state, error })

/** Calls a tool from a node past these policies. */
async function call(policies: readonly Policy[], platform?: Clock) {
  const act = noting()
  const { graph, seen } = trying((ctx) => ctx.callTool(act, { text: 'given' }))
  return { ...(await settle({ graph, policies, ...(platform && { platform }) })), seen, ran: act.ran }
}

const proceed = { action: 'proceed' }
const passing = { onFailure: 'pass' } as const

describe('what a policy gives and does not fit is its failure too, and where failures pass the walk goes on behind it', () => {
  it.each<{ name: string; verdict: object; says: RegExp }>([
    { name: 'a modified input', verdict: { action: 'modify', input: { text: 5 } }, says: /invalid arguments/ },
    {
      name: 'a fourth question',
      verdict: { action: 'suspend', ask: {} },
      says: /asked 3 times .* and would ask again/,
    },
    {
      name: 'a question whose default does not fit its schema',
      verdict: { action: 'suspend', ask: { schema: { type: 'string' }, default: 5 } },
      says: /default of its question does not fit/,
    },
  ])('$name', async ({ verdict, says: why }) => {
    const answers = says('Answers', { 'ask.before': { action: 'replace', value: 'yes' } })
    const next = says('Next', { 'toolCall.before': proceed })
    const bad = says('Bad', { 'toolCall.before': verdict }, passing)
    const { ran, warnings } = await call([answers, bad, next])
    expect(ran).toEqual([{ text: 'given' }])
    expect(next.asked).toHaveLength(1)
    expect(warnings.map(({ message }) => message)).toContainEqual(expect.stringMatching(why))
    expect((await call([answers, says('Bad', { 'toolCall.before': verdict }), next])).error).toBeInstanceOf(
      MiddlewareError,
    )
  })

  it('a value in place of a result: the step is made, or its own result used', async () => {
    const bad = { action: 'replace', value: { n: 'none' } }
    for (const half of ['before', 'after'] as const) {
      const { graph, seen } = trying((ctx) =>
        ctx.callModel(scripted(['own']), { messages: [{ role: 'user', content: 'x' }] }),
      )
      const next = says('Next', { [`modelCall.${half}`]: half === 'before' ? proceed : { action: 'pass' } })
      await settle({ graph, policies: [says('Bad', { [`modelCall.${half}`]: bad }, passing), next] })
      expect(seen.value?.content).toBe('own')
      expect(next.asked).toHaveLength(1)
    }
  })

  it('a change in the final look: what was judged runs', async () => {
    const again = says('Again', { 'toolCall.before': { action: 'modify', input: { text: 'mine' } } }, passing)
    const other = says('Other', { 'toolCall.before': { action: 'modify', input: { text: 'theirs' } } })
    const { ran, warnings } = await call([again, other])
    expect(ran).toEqual([{ text: 'theirs' }])
    expect(warnings[0]?.message).toContain('it changed again what policy "Other" had changed after it')
  })
})

describe('time', () => {
  const silent = () => new Promise(() => undefined)

  it('F1: silence is met by the rule when the policy’s time is over', async () => {
    const clock = new Clock()
    const running = call([says('Slow', { 'toolCall.before': silent }, { ...passing, timeoutMs: 50 })], clock)
    await clock.pass(50)
    const { ran, warnings } = await running
    expect(ran).toHaveLength(1)
    expect(warnings[0]?.message).toContain('timed out after 50 ms')
  })

  it('and so is that of the whole half: whoever has none left is met by their own rule', async () => {
    const clock = new Clock()
    const slow = says('Slow', { 'toolCall.before': silent }, { ...passing, timeoutMs: 60_000 })
    const next = says('Next', { 'toolCall.before': silent })
    const running = call([slow, next], clock)
    await clock.pass(15_000)
    const { error, ran } = await running
    expect(error).toMatchObject({
      at: { policy: 'Next' },
      message: expect.stringContaining('the 15000 ms of the whole half were over'),
    })
    expect(ran).toEqual([])
  })
})

it('F3: a guard that breaks blocks, and an observer that breaks does not, in both halves alike', async () => {
  const broken = () => {
    throw new Error('broken')
  }
  for (const half of ['toolCall.before', 'toolCall.after', 'modelCall.after'] as const) {
    const guarded = await settle({
      graph: graphFor('toolCall'),
      policies: [says('Guard', { [half]: broken }), answers()],
    })
    expect(guarded.error).toMatchObject({ code: 'MIDDLEWARE_FAILED' })
    const observed = await settle({
      graph: graphFor('toolCall'),
      policies: [says('Observer', { [half]: broken }, passing), answers()],
    })
    expect(observed).toMatchObject({ status: 'completed', state: { made: 'done' } })
  }
})

it('a failure that passes is a warning event that names policy, seam and half', async () => {
  const broken = says('Gate', { 'toolCall.before': 'none' }, passing)
  const events = ofType(await eventsOf({ graph: graphFor('toolCall'), policies: [broken, answers()] }), 'warning')
  expect(events.slice(0, 1)).toMatchObject([{ policy: 'Gate', seam: 'toolCall', half: 'before', nodeName: 'step' }])
})
