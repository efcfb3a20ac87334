import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Clock } from '../../testing/clock.ts'
import { type Answer, eventsOf, noting, ofType, oneNode, says } from '../../testing/play.ts'
import { agentLoop, type Consultation, createRuntime, type Policy, type PolicyOptions, scripted } from '../index.ts'

const everywhere = (answer: Answer) => ({
  'run.before': answer,
  'run.after': answer,
  'node.before': answer,
  'node.after': answer,
  'agentRound.before': answer,
  'agentRound.after': answer,
  'modelCall.before': answer,
  'modelCall.after': answer,
  'toolCall.before': answer,
  'toolCall.after': answer,
})

const shadow = (answers: Parameters<typeof says>[1], rules: Partial<PolicyOptions> = {}) =>
  says('Shadow', answers, { mode: 'shadow', ...rules })

const graph = () =>
  oneNode(async (_, ctx) => {
    const model = scripted([{ tool_calls: [{ name: 'act', arguments: { text: 'x' } }] }, 'done'])
    return { made: (await agentLoop(ctx, { model, tools: [noting()], messages: [] })).content ?? '' }
  })

async function play(policies: readonly Policy[], platform?: Clock) {
  const runtime = createRuntime({ policies, ...(platform && { platform }) })
  const { runId: _, counts, ...outcome } = await runtime.settle(graph(), {})
  return { outcome, counts, runtime }
}

/** Any verdict that changes something, wherever it stands. */
const meddles: Answer = (_, { half, admits }: Consultation) => {
  const action = admits.find((verdict) => ['reject', 'fail'].includes(verdict)) ?? admits[0]
  return half === 'before' && admits.includes('modify')
    ? { action: 'modify', input: {} }
    : { action, reason: 'it would not', labels: ['meant'] }
}

describe('a policy in shadow', () => {
  it.each<{ name: string; answer: Answer }>([
    { name: 'says what would change everything', answer: meddles },
    { name: 'F2: crashes at every call', answer: () => Promise.reject(new Error('crash')) },
    {
      name: 'throws',
      answer: () => {
        throw new Error('thrown')
      },
    },
    { name: 'answers nonsense', answer: 5 },
    { name: 'never answers', answer: () => new Promise(() => undefined) },
  ])('changes nothing when it $name', async ({ answer }) => {
    const watcher = shadow(everywhere(answer), { timeoutMs: 20 })
    const { outcome, counts } = await play([watcher])
    const bare = await play([])
    expect(outcome).toEqual(bare.outcome)
    expect(counts).toEqual(bare.counts)
    expect(watcher.asked.length).toBeGreaterThan(8)
  })

  it('is counted: consulted, what it would have done, and how often it failed', async () => {
    const { runtime } = await play([
      shadow({ 'toolCall.before': { action: 'reject', reason: 'no' }, 'node.before': 5 }),
    ])
    expect(runtime.shadows.counts).toEqual([
      { policy: 'Shadow', consulted: 2, would: { reject: 1 }, failed: 1, dropped: 0 },
    ])
  })

  it('is seen: each verdict that would have changed something is a decision event that says so', async () => {
    const watcher = shadow({
      'toolCall.before': { action: 'reject', reason: 'no' },
      'toolCall.after': { action: 'pass' },
    })
    const events = await eventsOf({ graph: graph(), policies: [watcher] })
    expect(ofType(events, 'decision')).toMatchObject([
      { policy: 'Shadow', seam: 'toolCall', half: 'before', action: 'reject', reason: 'no', mode: 'shadow' },
    ])
  })

  it('and so is its failure, as an event that does not stand in the outcome', async () => {
    const watcher = shadow({ 'toolCall.before': 5 })
    const events = await eventsOf({ graph: graph(), policies: [watcher] })
    expect(ofType(events, 'warning')).toMatchObject([
      { policy: 'Shadow', message: expect.stringContaining('which is in shadow, failed at toolCall.before') },
    ])
  })

  it('is never awaited, and nothing it says comes after the end of the run', async () => {
    const clock = new Clock()
    const watcher = shadow({ 'toolCall.before': () => new Promise(() => undefined) }, { timeoutMs: 50 })
    const events = await eventsOf({ graph: graph(), policies: [watcher], platform: clock })
    expect(events.at(-1)?.type).toBe('run_end')
    expect(clock.pending).toBe(1)
  })

  it('is awaited by the end of the process, up to its time', async () => {
    const clock = new Clock()
    const { runtime } = await play(
      [shadow({ 'toolCall.before': () => new Promise(() => undefined) }, { timeoutMs: 50 })],
      clock,
    )
    let drained = false
    const draining = runtime.drain().then(() => {
      drained = true
    })
    await clock.pass(49)
    expect(drained).toBe(false)
    await clock.pass(1)
    await draining
    expect(runtime.shadows.counts).toMatchObject([{ consulted: 1, failed: 1 }])
  })

  it('sees the frozen value at its place, whatever comes after, and once only', async () => {
    const modify = (text: string) => ({ action: 'modify', input: { text } })
    const watcher = shadow({ 'toolCall.before': { action: 'proceed' } })
    await play([
      says('A', { 'toolCall.before': ({ input }) => (input.text === 'x' ? modify('a') : { action: 'proceed' }) }),
      watcher,
      says('B', { 'toolCall.before': modify('b') }),
    ])
    expect(watcher.asked).toMatchObject([{ input: { text: 'a' }, revisit: false }])
    expect(Object.isFrozen(watcher.asked[0]?.input)).toBe(true)
  })

  it('is not consulted behind the verdict that ended the walk', async () => {
    const watcher = shadow({ 'toolCall.before': { action: 'proceed' } })
    await play([says('Gate', { 'toolCall.before': { action: 'reject', reason: 'no' } }), watcher])
    expect(watcher.asked).toEqual([])
  })

  it('has 64 consultations under way at most; the rest are dropped and counted', async () => {
    const clock = new Clock()
    const watcher = shadow({ 'toolCall.before': () => new Promise(() => undefined) }, { timeoutMs: 50 })
    const act = noting()
    const many = oneNode(async (_, ctx) => {
      for (let i = 0; i < 100; i++) await ctx.callTool(act, { text: `${i}` })
    })
    const runtime = createRuntime({ policies: [watcher], platform: clock })
    await runtime.run(many, {})
    expect(act.ran).toHaveLength(100)
    expect(runtime.shadows.counts).toMatchObject([{ consulted: 64, dropped: 36 }])
    await clock.pass(50)
    await runtime.run(many, {})
    expect(runtime.shadows.counts).toMatchObject([{ consulted: 128, dropped: 72, failed: 64 }])
  })

  it('keeps what it keeps for itself: what an enforcing policy of its name keeps is not touched', async () => {
    const kept: PolicyOptions['kept'] = { scope: 'turn', schema: z.object({ n: z.number().default(0) }) }
    const seen: number[] = []
    const counting: Answer = (_, ctx) => {
      seen.push((ctx.kept.update((k) => ({ n: (k as { n: number }).n + 1 })) as { n: number }).n)
      return { action: 'proceed' }
    }
    const answers = { 'modelCall.before': counting }
    const { runtime } = await play([says('Count', answers, { kept }), says('Count', answers, { kept, mode: 'shadow' })])
    await runtime.drain()
    expect(seen.toSorted()).toEqual([1, 1, 2, 2])
  })

  it('runs no tools', async () => {
    const watcher = shadow({ 'toolCall.before': (_, ctx) => ctx.runTool('act', { text: 'y' }) })
    const { runtime } = await play([watcher])
    await runtime.drain()
    expect(runtime.shadows.counts).toMatchObject([{ failed: 1 }])
  })

  it('may ask its model, and what stops there stops no run', async () => {
    const model = scripted(['opinion'], { model: 'judge' })
    const watcher = shadow(
      {
        'toolCall.before': async (_, ctx) => {
          const { content } = await ctx.callModel({ messages: [{ role: 'user', content: 'well?' }] })
          return content === 'opinion' ? { action: 'reject', reason: content } : { action: 'proceed' }
        },
      },
      { model, timeoutMs: 20 },
    )
    const told = await play([watcher])
    await told.runtime.drain()
    expect(told.runtime.shadows.counts).toMatchObject([{ would: { reject: 1 } }])
    const breaks = says('Breaks', {
      'modelCall.before': ({ input }) => (input.model === 'judge' ? 5 : { action: 'proceed' }),
    })
    const { outcome, runtime } = await play([watcher, breaks])
    await runtime.drain()
    expect(outcome.status).toBe('completed')
    expect(runtime.shadows.counts).toMatchObject([{ consulted: 1, failed: 1 }])
  })

  it('holds no stream', async () => {
    const watcher = shadow({ 'modelCall.after': { action: 'replace', value: { content: 'other' } } })
    const tokens = ofType(await eventsOf({ graph: graph(), policies: [watcher] }), 'token')
    expect(tokens.map(({ text, substituted }) => [text, substituted])).toEqual([['done', undefined]])
  })
})
