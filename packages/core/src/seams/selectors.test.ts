import { describe, expect, it } from 'vitest'
import { eventsOf, noting, says, settle, trying } from '../../testing/play.ts'
import { agentLoop, createRuntime, type Policy, type Selected, type Selector, scripted } from '../index.ts'

const proceed = { action: 'proceed' }
const reject = { action: 'reject', reason: 'no' }

/** A selector that notes what it was shown. */
function select(reads: Selector['reads'], matches: (shown: Selected) => unknown) {
  const shown: Selected[] = []
  const match: Selector = {
    reads,
    matches: (given) => {
      shown.push(given)
      return matches(given) as boolean
    },
  }
  return { match, shown }
}

/** Calls the tools `act` and `look` past these policies. */
async function calls(policies: readonly Policy[], times = 1) {
  const [act, look] = [noting(), noting(undefined, 'look')]
  const { graph, seen } = trying(async (ctx) => {
    for (let i = 0; i < times; i++) {
      await ctx.callTool(act, { text: `${i}` })
      await ctx.callTool(look, { text: `${i}` })
    }
  })
  return { ...(await settle({ graph, policies })), seen, ran: [...act.ran, ...look.ran] }
}

describe('a selector that reads the subject', () => {
  it('is decided once per call site and remembered, over all runs of a process', async () => {
    const { match, shown } = select('subject', ({ subject }) => subject.toolName === 'act')
    const gate = says('Gate', { 'toolCall.before': proceed, 'toolCall.after': { action: 'pass' } }, { match })
    const { graph } = trying(async (ctx) => {
      for (let i = 0; i < 3; i++) {
        await ctx.callTool(noting(), { text: 'x' })
        await ctx.callTool(noting(undefined, 'look'), { text: 'x' })
      }
    })
    const runtime = createRuntime({ policies: [gate] })
    await runtime.run(graph, {})
    await runtime.run(graph, {})
    expect(shown.map(({ subject }) => subject.toolName)).toEqual(['act', 'look'])
    expect(gate.asked.map(({ at, subject }) => `${at} ${subject.toolName}`)).toEqual(
      Array.from({ length: 6 }, () => ['toolCall.before act', 'toolCall.after act']).flat(),
    )
  })

  it('is not shown what differs from call to call', async () => {
    const { match, shown } = select('subject', () => true)
    await calls([says('Gate', { 'toolCall.before': proceed }, { match })])
    expect(shown[0]).toEqual({
      subject: { nodeName: 'step', nodeType: 'Node', toolName: 'act', caller: 'node', source: 'code' },
      labels: [],
    })
  })

  it('is decided at each seam for itself', async () => {
    const { match } = select(
      'subject',
      ({ subject }) => subject.toolName === undefined && subject.nodeName !== undefined,
    )
    const gate = says('Gate', { 'toolCall.before': reject, 'node.before': proceed, 'run.before': reject }, { match })
    expect(await calls([gate])).toMatchObject({ status: 'completed' })
    expect(gate.asked.map(({ at }) => at)).toEqual(['node.before'])
  })
})

describe('a selector that reads the call', () => {
  it('is decided at each call, with the input as the policies before left it', async () => {
    const { match, shown } = select('call', ({ input }) => (input as { text: string }).text === 'changed')
    const change = says('Change', {
      'toolCall.before': ({ subject }) =>
        subject.toolName === 'act' ? { action: 'modify', input: { text: 'changed' } } : proceed,
    })
    const gate = says('Gate', { 'toolCall.before': reject }, { match })
    const { seen } = await calls([change, gate])
    expect(seen.error).toMatchObject({ code: 'REFUSED' })
    expect(shown.map(({ input }) => input)).toEqual([{ text: 'changed' }])
  })

  it('sees the labels, so that a rule may hold from a result on', async () => {
    const { match } = select('call', ({ labels }) => labels.includes('untrusted'))
    const mark = says('Mark', { 'toolCall.after': { action: 'pass', labels: ['untrusted'] } })
    const gate = says('Gate', { 'toolCall.before': reject }, { match })
    const { seen, ran } = await calls([mark, gate])
    expect(seen.error).toMatchObject({ reason: 'no', at: { tool: 'look' } })
    expect(ran).toEqual([{ text: '0' }])
  })

  it('sees the outcome in after, and at a tool call the arguments that ran', async () => {
    const { match, shown } = select('call', () => false)
    await calls([says('Gate', { 'toolCall.after': { action: 'fail', reason: 'no' } }, { match })])
    expect(shown[0]).toMatchObject({ input: { text: '0' }, outcome: { ok: true, value: 'done' } })
  })

  it('is decided once more in the final look: what did not match may match what will run', async () => {
    const { match } = select('call', ({ input }) => (input as { text: string }).text === 'rm')
    const gate = says('Gate', { 'toolCall.before': reject }, { match })
    const { seen, ran } = await calls([
      gate,
      says('Change', { 'toolCall.before': { action: 'modify', input: { text: 'rm' } } }),
    ])
    expect(seen.error).toMatchObject({ reason: 'no' })
    expect(ran).toEqual([])
    expect(gate.asked).toMatchObject([{ revisit: false, input: { text: 'rm' } }])
  })
})

describe('a selector that cannot be evaluated matches', () => {
  it.each<{ name: string; reads: Selector['reads']; matches: () => unknown }>([
    {
      name: 'it throws, and reads the subject',
      reads: 'subject',
      matches: () => {
        throw new Error('no such key')
      },
    },
    {
      name: 'it throws, and reads the call',
      reads: 'call',
      matches: () => {
        throw new Error('no such key')
      },
    },
    { name: 'it answers with something else than true and false', reads: 'call', matches: () => undefined },
  ])('$name', async ({ reads, matches }) => {
    const { match } = select(reads, matches)
    expect((await calls([says('Gate', { 'toolCall.before': reject }, { match })])).seen.error).toMatchObject({
      reason: 'no',
    })
  })
})

describe('where a policy does not match', () => {
  const never: Selector = { reads: 'subject', matches: ({ subject }) => subject.nodeName === 'other' }

  it('it is as if it were not installed: the same events', async () => {
    const model = () => scripted([{ tool_calls: [{ name: 'act', arguments: { text: 'x' } }] }, 'done'])
    const play = (policies: readonly Policy[]) => {
      const { graph } = trying((ctx) => agentLoop(ctx, { model: model(), tools: [noting()], messages: [] }))
      return eventsOf({ graph, policies })
    }
    const everywhere = says(
      'Gate',
      {
        'node.before': reject,
        'node.after': { action: 'fail', reason: 'no' },
        'agentRound.before': reject,
        'modelCall.before': reject,
        'modelCall.after': { action: 'fail', reason: 'no' },
        'toolCall.before': reject,
        'toolCall.after': { action: 'fail', reason: 'no' },
      },
      { match: never },
    )
    const without = (events: readonly object[]) => JSON.stringify(events).replace(/"runId":"[^"]*"/g, '')
    expect(without(await play([everywhere]))).toBe(without(await play([])))
    expect(everywhere.asked).toEqual([])
  })

  it('streams are not held for it', async () => {
    let seen: () => void = () => undefined
    const firstPartSeen = new Promise<void>((resolve) => {
      seen = resolve
    })
    const model = {
      ...scripted([]),
      async *stream() {
        yield { content: 'one ' }
        // Were it held, nobody would ever see it.
        await firstPartSeen
        yield { content: 'two', finish_reason: 'stop' }
      },
    }
    const hold = says('Hold', { 'modelCall.after': { action: 'fail', reason: 'no' } }, { match: never })
    const { graph } = trying((ctx) => ctx.callModel(model, { messages: [{ role: 'user', content: 'x' }] }))
    const texts: string[] = []
    for await (const event of createRuntime({ policies: [hold] }).stream(graph, {})) {
      if (event.type !== 'token') continue
      texts.push(event.text)
      seen()
    }
    expect(texts).toEqual(['one ', 'two'])
  })
})

it('a policy that is off is consulted nowhere', async () => {
  const gate = says('Gate', { 'toolCall.before': reject, 'run.before': reject }, { mode: 'off' })
  expect(await calls([gate])).toMatchObject({ status: 'completed', counts: { consultations: 0 } })
  expect(gate.asked).toEqual([])
})
