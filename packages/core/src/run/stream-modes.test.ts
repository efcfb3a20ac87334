import { describe, expect, it } from 'vitest'
import { open, quiet } from '../../testing/clock.ts'
import { ofType, says } from '../../testing/play.ts'
import { chain, type LogGraph, type Run, setUp, together } from '../../testing/threads.ts'
import {
  agentNode,
  createRuntime,
  END,
  graph,
  messages,
  node,
  policy,
  type RunEvent,
  type Runtime,
  START,
  type StreamMode,
  type StreamOptions,
  scripted,
  state,
} from '../index.ts'

const T = { thread: 't' }
const alone = createRuntime()

async function collect(stream: AsyncIterable<RunEvent>): Promise<readonly RunEvent[]> {
  const events: RunEvent[] = []
  for await (const event of stream) events.push(event)
  return events
}
const streamed = (g: LogGraph, options: StreamOptions, runtime: Runtime = alone) =>
  collect(runtime.stream(g, options.resume === undefined ? {} : undefined, options))
const types = (events: readonly RunEvent[]) => events.map(({ type }) => type)

/** A node that emits and logs its name. */
const emits =
  (name: string): Run =>
  (_s, ctx) => {
    ctx.emit(name)
    return { log: [name] }
  }

describe('a stream', () => {
  const g = chain({ a: emits('a'), b: () => undefined })

  it.each<{ mode: StreamMode | readonly StreamMode[]; yields: readonly string[] }>([
    { mode: 'updates', yields: ['update', 'update', 'run_end'] },
    { mode: 'values', yields: ['values', 'values', 'run_end'] },
    { mode: 'custom', yields: ['custom', 'run_end'] },
    { mode: 'tokens', yields: ['run_end'] },
    { mode: ['updates', 'custom'], yields: ['custom', 'update', 'update', 'run_end'] },
    { mode: [], yields: ['run_end'] },
  ])('J13: in mode $mode yields $yields', async ({ mode, yields }) => {
    expect(types(await streamed(g, { mode }))).toEqual(yields)
  })

  it('J13: without a mode yields what happens on the way, and no copies of the state', async () => {
    const events = await streamed(g, {})
    expect(new Set(types(events))).toEqual(new Set(['run_start', 'node_start', 'custom', 'node_complete', 'run_end']))
    expect(types(await streamed(g, { mode: 'events' }))).toEqual(types(events))
  })

  it.each([null, 'debug', 'run_end', 'update', ['updates', 'final'], [null], 7, {}])(
    'J13: knows no mode %j, and says which there are',
    async (mode) => {
      expect(() => alone.stream(g, {}, { mode: mode as never })).toThrow(
        expect.objectContaining({
          code: 'STREAM_MODE',
          message: expect.stringContaining('modes are: values, updates, tokens, custom, events'),
        }),
      )
    },
  )

  it('J16: shares values that nobody can change, so that a reader cannot touch the run', async () => {
    const seen: unknown[] = []
    const reading = chain({ a: () => ({ log: ['a'] }), b: (s) => void seen.push([...s.log]) })
    for await (const event of alone.stream(reading, {}, { mode: ['values', 'updates'] })) {
      const list = event.type === 'values' ? event.state.log : event.type === 'update' ? event.update?.log : undefined
      if (list !== undefined) expect(() => (list as unknown[]).push('by a reader')).toThrow(TypeError)
    }
    expect(seen).toEqual([['a']])
  })

  it('J18: yields what a node emits while that node still runs', async () => {
    const gate = open<void>()
    const waiting = chain({
      a: async (_s, ctx) => {
        ctx.emit('early')
        await gate.promise
      },
    })
    const stream = alone.stream(waiting, {}, { mode: 'custom' })
    expect((await stream.next()).value).toMatchObject({ type: 'custom', data: 'early', nodeName: 'a' })
    gate.resolve()
    expect((await stream.next()).value).toMatchObject({ type: 'run_end', status: 'completed' })
  })
})

describe('updates', () => {
  it('J14: of one superstep come in the order of scheduling, null for a silent node, all with the record that holds them', async () => {
    const { runtime } = setUp()
    const gates = { b: open<void>() }
    const g = together({
      c: async () => {
        await gates.b.promise
        return { log: ['c'] }
      },
      b: () => {
        gates.b.resolve()
        return { log: ['b'] }
      },
      a: () => undefined,
    })
    const events = ofType(await streamed(g, { ...T, mode: ['updates', 'values'] }, runtime), 'update').slice(1)
    expect(events.map(({ nodeName, taskId, update }) => [nodeName, taskId, update])).toEqual([
      ['c', 'c', { log: ['c'] }],
      ['b', 'b', { log: ['b'] }],
      ['a', 'a', null],
    ])
    const [at, ...more] = new Set(events.map((event) => event.at))
    expect(more).toEqual([])
    expect((await runtime.stateAt(g, 't', { at })).state?.log).toEqual(['b', 'c'])
  })

  it('J14: and values of a run without a thread have no record', async () => {
    const events = await streamed(chain({ a: emits('a') }), { mode: ['updates', 'values'] })
    expect(events.map((event) => 'at' in event)).toEqual([false, false, false])
  })

  it('J15: of a task that was through before a pause come when its superstep is through, in the order of scheduling', async () => {
    const { runtime } = setUp()
    const g = together({
      a: async (_s, ctx) => ({ log: [`${await ctx.ask('q', 'well?')}`] }),
      b: () => ({ log: ['b'] }),
    })
    const options = { ...T, mode: 'updates' } as const
    const told = (events: readonly RunEvent[]) =>
      ofType(events, 'update').map(({ nodeName, update }) => [nodeName, update])
    expect(told(await streamed(g, options, runtime))).toEqual([['split', null]])
    expect(told(await streamed(g, { ...options, resume: 'yes' }, runtime))).toEqual([
      ['a', { log: ['yes'] }],
      ['b', { log: ['b'] }],
    ])
  })

  it('J17: of a run that goes on count from its own beginning, as do its supersteps', async () => {
    const { runtime } = setUp()
    const steps: number[] = []
    const counting: Run = (_s, ctx) => void steps.push(ctx.step)
    const g = chain({ a: counting, b: counting, c: async (_s, ctx) => void (await ctx.ask('q', '')), d: counting })
    const first = await runtime.run(g, {}, T)
    const second = await runtime.resume(g, 't', 1)
    expect([first.counts.supersteps, second.counts.supersteps]).toEqual([3, 2])
    expect(steps).toEqual([0, 1, 1])
    expect(first.runId).not.toBe(second.runId)
  })
})

describe('the text of models', () => {
  const Talk = state({ messages: messages() })
  const agentIn = (name: string) => {
    const model = scripted(['two words'])
    const agent = agentNode('agent', Talk, { model })
    return graph(name, Talk).edge(START, agent).edge(agent, END).check()
  }
  const tokens = async (coming: AsyncIterable<RunEvent>) => ofType(await collect(coming), 'token')

  it('D4: leaves an agent that is run by a node as it leaves the agent alone, with the way to it', async () => {
    const bare = await tokens(alone.stream(agentIn('bare'), {}, { mode: 'tokens' }))
    const inner = agentIn('inner')
    const lead = node('lead', Talk, async (_s, ctx) => ({ messages: [...(await ctx.run(inner, {})).messages] }))
    const outer = graph('outer', Talk).edge(START, lead).edge(lead, END).check()
    const nested = await tokens(alone.stream(outer, {}, { mode: 'tokens' }))
    expect(nested.map(({ text }) => text)).toEqual(bare.map(({ text }) => text))
    expect(nested.map(({ text }) => text)).toEqual(['two ', 'words'])
    expect(nested[0]).toMatchObject({ nodeName: 'agent', path: ['outer', 'lead', 'inner'] })
  })

  it('D4: leaves sub-agents too, each under the way to it', async () => {
    const g = chain({
      a: async (_s, ctx) => void (await ctx.gather(ctx.spawn([{ graph: agentIn('x') }, { graph: agentIn('y') }]))),
    })
    const paths = (await tokens(alone.stream(g, {}, { mode: 'tokens' }))).map(({ path }) => path.join('/'))
    expect(paths.toSorted()).toEqual(['g/a/x', 'g/a/x', 'g/a/y', 'g/a/y'])
  })

  it("D1: of a policy's own calls stays out of every stream of the user", async () => {
    const summary = scripted(['a summary of the policy'], { model: 'small' })
    const summariser = policy({
      name: 'Summariser',
      model: summary,
      seams: {
        modelCall: {
          before: async (_shown, ctx) => {
            const { content } = await ctx.callModel({ messages: [] })
            return { action: 'proceed', warnings: [content] }
          },
        },
      },
    })
    const runtime = createRuntime({ policies: [summariser] })
    const events = await collect(runtime.stream(agentIn('g'), {}, { mode: ['events', 'tokens', 'values', 'updates'] }))
    expect(ofType(events, 'token').map(({ text }) => text)).toEqual(['two ', 'words'])
    expect(summary.requests).toHaveLength(1)
    expect(ofType(events, 'warning').map(({ policy }) => policy)).toEqual(['Summariser'])
  })

  it('is not told again when its node is entered anew: what a journal hands back is no news', async () => {
    const { store } = setUp()
    const model = scripted(['two words'])
    const g = chain({
      a: async (_s, ctx) => {
        const { content } = await ctx.callModel(model, { messages: [] })
        return { log: [content, `${await ctx.ask('q', 'well?')}`] }
      },
    })
    const mode = 'tokens'
    const first = await streamed(g, { ...T, mode }, createRuntime({ store }))
    expect(types(first)).toEqual(['token', 'token', 'run_end'])
    const second = await streamed(g, { ...T, mode, resume: 'yes' }, createRuntime({ store }))
    expect(types(second)).toEqual(['run_end'])
  })
})

describe('C8: an end of a run', () => {
  const ends = [
    { name: 'that is through', work: () => undefined, status: 'completed' },
    { name: 'that failed', work: () => Promise.reject(new Error('no')), status: 'failed' },
    { name: 'that was cancelled', work: () => new Promise(() => {}), cancel: true, status: 'cancelled' },
    { name: 'that a policy refused', work: () => undefined, refused: true, status: 'failed' },
  ]

  it.each(ends)(
    '$name is shown to run.after once, and is the last event: $status',
    async ({ work, cancel, refused, status }) => {
      const after = says('After', { 'run.after': { action: 'pass' } })
      const gate = says('Gate', {
        'node.before': refused ? { action: 'reject', reason: 'no' } : { action: 'proceed' },
      })
      const controller = new AbortController()
      const g = chain({ a: work as Run })
      const running = streamed(g, { signal: controller.signal }, createRuntime({ policies: [after, gate] }))
      await quiet()
      if (cancel) controller.abort()
      const events = await running
      expect(after.asked.map(({ outcome }) => outcome)).toMatchObject([{ ok: true, value: { status } }])
      expect(events.at(-1)).toMatchObject({ type: 'run_end', status })
      expect(ofType(events, 'run_end')).toHaveLength(1)
    },
  )

  it('that pauses is none: run.after comes when the turn has ended, and the last event says that it waits', async () => {
    const { store } = setUp()
    const after = says('After', { 'run.after': { action: 'pass' } })
    const runtime = createRuntime({ store, policies: [after] })
    const g = chain({ a: async (_s, ctx) => void (await ctx.ask('q', 'well?')) })
    expect((await streamed(g, T, runtime)).at(-1)).toMatchObject({
      type: 'run_end',
      status: 'paused',
      asks: [{ key: 'a:q' }],
    })
    expect(after.asked).toEqual([])
    await runtime.resume(g, 't', 'yes')
    expect(after.asked).toMatchObject([{ outcome: { ok: true, value: { status: 'completed' } } }])
  })
})

describe('C9: policies', () => {
  it.each([0, 10])('spend none of the rounds and supersteps of a run: %d of them at every seam', async (many) => {
    const Talk = state({ messages: messages() })
    const rounds = Array.from({ length: 9 }, () => ({ tool_calls: [{ name: 'nobody', arguments: {} }] }))
    const agent = agentNode('agent', Talk, { model: scripted([...rounds, 'done']) })
    const g = graph('g', Talk).edge(START, agent).edge(agent, END).check()
    const policies = Array.from({ length: many }, (_, i) =>
      says(`P${i}`, {
        'run.before': { action: 'proceed' },
        'run.after': { action: 'pass' },
        'node.before': { action: 'proceed' },
        'node.after': { action: 'pass' },
        'agentRound.before': { action: 'proceed' },
        'modelCall.before': { action: 'proceed' },
        'modelCall.after': { action: 'pass' },
      }),
    )
    const runtime = createRuntime({ policies, limits: { maxIterations: 1, maxToolRounds: 10 } })
    expect(await runtime.run(g, {})).toMatchObject({ status: 'completed', counts: { supersteps: 1 } })
  })
})
