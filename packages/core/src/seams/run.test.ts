import { describe, expect, it } from 'vitest'
import { Clock, open, quiet } from '../../testing/clock.ts'
import { type Answer, eventsOf, noting, oneNode, says, settle, Text, trying } from '../../testing/play.ts'
import { END, graph, MiddlewareError, node, START, scripted } from '../index.ts'

const before = (name: string, answer: Answer) => says(name, { 'run.before': answer })
const after = (name: string, answer: Answer) => says(name, { 'run.after': answer })
const pass = { action: 'pass' }
const broken = () => {
  throw new Error('it broke')
}

const echo = () => oneNode(({ text }) => ({ made: `made of ${text}` }))
const failing = () =>
  oneNode(() => {
    throw new Error('the node broke')
  })

describe('before a run', () => {
  it('its graph, whether it is nested, and its input are shown', async () => {
    const watch = before('Watch', { action: 'proceed' })
    await settle({
      graph: trying((ctx) => ctx.run(echo(), { text: 'inner' })).graph,
      input: { text: 'outer' },
      policies: [watch],
    })
    expect(watch.asked.map(({ subject, input }) => ({ subject, input }))).toEqual([
      { subject: { graphName: 'one', resuming: false, nested: false }, input: { text: 'outer' } },
      { subject: { graphName: 'one', resuming: false, nested: true }, input: { text: 'inner' } },
    ])
  })

  it('a modify is the whole new input', async () => {
    const { state } = await settle({
      graph: echo(),
      input: { text: 'given', made: 'x' },
      policies: [before('Rewrite', { action: 'modify', input: { text: 'changed' } })],
    })
    expect(state).toEqual({ text: 'changed', made: 'made of changed' })
  })

  it('a modify that the state does not take is the policy’s failure, and nothing runs', async () => {
    let ran = false
    const graph = oneNode(() => {
      ran = true
    })
    const { error } = await settle({ graph, policies: [before('Broken', { action: 'modify', input: { word: 'x' } })] })
    expect(error).toBeInstanceOf(MiddlewareError)
    expect((error as Error).message).toContain('policy "Broken" (plugin in-process) failed at run.before')
    expect((error as Error).message).toContain('"word"')
    expect(ran).toBe(false)
  })

  it('a reject ends it before anything runs', async () => {
    const { status, error } = await settle({
      graph: echo(),
      policies: [before('Gate', { action: 'reject', reason: 'closed' })],
    })
    expect(status).toBe('failed')
    expect(error).toMatchObject({ code: 'REFUSED', message: 'policy "Gate" refused the run of "one": closed' })
  })

  it('an input that the graph itself does not take reaches no policy', async () => {
    const watch = says('Watch', { 'run.before': { action: 'proceed' }, 'run.after': pass })
    const { error } = await settle({ graph: echo(), input: { word: 'x' } as never, policies: [watch] })
    expect(error).toMatchObject({ code: 'STATE_UPDATE' })
    expect(watch.asked).toEqual([])
  })

  it('a cancel and the run’s time end it while a policy still thinks', async () => {
    const platform = new Clock()
    const slow = before('Slow', (_, { signal }) => new Promise((resolve) => signal.addEventListener('abort', resolve)))
    const cancel = new AbortController()
    const cancelled = settle({ graph: echo(), policies: [slow], platform, signal: cancel.signal })
    const timedOut = settle({ graph: echo(), policies: [slow], platform, timeoutMs: 1_000 })
    cancel.abort()
    expect((await cancelled).status).toBe('cancelled')
    await platform.pass(1_000)
    expect((await timedOut).error).toMatchObject({ code: 'RUN_TIMED_OUT' })
    expect(platform.pending).toBe(0)
  })
})

describe('after a run', () => {
  it('its status and its outputs are shown', async () => {
    const watch = after('Watch', pass)
    await settle({ graph: echo(), policies: [watch] })
    expect(watch.asked[0]?.outcome).toEqual({
      ok: true,
      value: { status: 'completed', outputs: { text: 'given', made: 'made of given' } },
    })
  })

  it('a replace is what the caller gets, checked like the state it is', async () => {
    const swap = (value: object) => settle({ graph: echo(), policies: [after('Swap', { action: 'replace', value })] })
    expect((await swap({ text: '-', made: 'redacted' })).state).toEqual({ text: '-', made: 'redacted' })
    const { error } = await swap({ word: 'x' })
    expect(error).toBeInstanceOf(MiddlewareError)
    expect((error as Error).message).toContain('failed at run.after')
  })

  it('what policies say there is published before run_end, which shows the final outcome', async () => {
    const swap = after('Swap', (_, ctx) => {
      ctx.emitEvent('seen')
      ctx.log('info', 'noted')
      return { action: 'replace', value: { made: 'swapped' } }
    })
    const events = await eventsOf({ graph: echo(), policies: [swap] })
    expect(events.slice(-5).map(({ type }) => type)).toEqual([
      'plugin:Swap:seen',
      'plugin_log',
      'decision',
      'warning',
      'run_end',
    ])
    expect(events.at(-1)).toMatchObject({ status: 'completed', result: { made: 'swapped' } })
  })

  it('in a child run it judges what the node that started it gets, which node.after judges again', async () => {
    const policies = [
      after('Swap', ({ subject }) => (subject.nested ? { action: 'replace', value: { made: 'swapped' } } : pass)),
      says('Watch', { 'node.after': pass }),
    ]
    const parent = oneNode(async (_state, ctx) => ({ made: (await ctx.run(echo(), {})).made }))
    const { state } = await settle({ graph: parent, policies })
    expect(state.made).toBe('swapped')
    expect(policies[1]?.asked.map(({ outcome }) => outcome)).toEqual([
      { ok: true, value: { made: 'made of given' } },
      { ok: true, value: { made: 'swapped' } },
    ])
  })
})

describe('a graph with inputs and outputs of its own, as a flow has them', () => {
  const step = node('step', Text, ({ text }) => ({ made: `made of ${text}` }))
  const bounded = graph('bounded', Text)
    .edge(START, step)
    .edge(step, END)
    .boundary({
      checkInput: (input) => {
        const { query } = input as { query?: unknown }
        if (typeof query !== 'string') throw new Error('"query" is missing')
        return { query }
      },
      update: ({ query }) => ({ text: query ?? '' }),
      checkResult: (result) => {
        const { answer } = result as { answer?: string }
        if (typeof answer !== 'string') throw new Error('"answer" is missing')
        return { answer }
      },
      result: (values) => ({ answer: values.get('made') ?? '' }),
    })
    .check()
  const play = (policies: readonly ReturnType<typeof says>[]) =>
    settle({ graph: bounded, input: { query: 'given' } as never, policies })

  it('shows those', async () => {
    const watch = says('Watch', { 'run.before': { action: 'proceed' }, 'run.after': pass })
    await play([watch])
    expect(watch.asked).toMatchObject([
      { input: { query: 'given' } },
      { outcome: { value: { status: 'completed', outputs: { answer: 'made of given' } } } },
    ])
  })

  it('takes those from a policy, and checks them', async () => {
    const swapped = await play([
      before('Rewrite', { action: 'modify', input: { query: 'changed' } }),
      after('Swap', { action: 'replace', value: { answer: 'swapped' } }),
    ])
    expect(swapped.state).toEqual({ answer: 'swapped' })
    const { error } = await play([before('Broken', { action: 'modify', input: { text: 'x' } })])
    expect(error).toBeInstanceOf(MiddlewareError)
    expect((error as Error).message).toContain('failed at run.before: "query" is missing')
    const { error: late } = await play([after('Broken', { action: 'replace', value: { made: 'x' } })])
    expect((late as Error).message).toContain('failed at run.after: "answer" is missing')
  })
})

describe('run.after comes after every end, and counts only after completed', () => {
  const over = { maxIterations: 1 }
  const [first, second] = [node('first', Text, () => ({})), node('second', Text, () => ({}))]
  const two = graph('two', Text).edge(START, first).edge(first, second).edge(second, END).check()
  const hanging = () => oneNode(() => new Promise(() => undefined))
  const gate = (at: 'node.before' | 'run.before', answer: Answer) => says('Gate', { [at]: answer })

  it.each([
    { name: 'a node that threw', play: { graph: failing() }, status: 'failed', error: 'the node broke' },
    {
      name: 'a stop by a verdict',
      play: { graph: echo(), policies: [gate('node.before', { action: 'reject', reason: 'no' })] },
      status: 'failed',
      error: 'policy "Gate" refused node "step": no',
    },
    {
      name: 'a stop by a policy that failed',
      play: { graph: echo(), policies: [gate('node.before', broken)] },
      status: 'failed',
      error: 'policy "Gate" (plugin in-process) failed at node.before of node "step": it broke.',
    },
    {
      name: 'a refusal at its door',
      play: { graph: echo(), policies: [gate('run.before', { action: 'reject', reason: 'closed' })] },
      status: 'failed',
      error: 'policy "Gate" refused the run of "one": closed',
    },
    {
      name: 'a policy that failed at its door',
      play: { graph: echo(), policies: [gate('run.before', broken)] },
      status: 'failed',
      error: 'policy "Gate" (plugin in-process) failed at run.before: it broke.',
    },
    {
      name: 'iterations spent',
      play: { graph: two, limits: over },
      status: 'failed',
      error: 'the run of "two" exceeded max iterations: 1. Look for a loop that never ends, or raise maxIterations.',
    },
    {
      name: 'Z18: time spent, and the error says so',
      play: { graph: hanging(), timeoutMs: 1_000 },
      status: 'failed',
      error: 'the run of "one" timed out after 1000 ms. Raise timeoutMs (--timeout).',
    },
    {
      name: 'a cancel',
      play: { graph: hanging(), signal: AbortSignal.abort() },
      status: 'cancelled',
      error: 'the run of "one" was cancelled.',
    },
  ])('$name', async ({ play, status, error }) => {
    const platform = new Clock()
    const watch = after('Watch', { action: 'replace', value: { made: 'all is well' } })
    const audit = after('Audit', pass)
    const { policies = [], ...rest } = play as { policies?: []; graph: typeof two }
    const run = settle({ ...rest, platform, policies: [...policies, watch, audit] })
    await platform.pass(1_000)
    const outcome = await run
    expect([watch, audit].map(({ asked }) => asked.map((at) => at.outcome))).toEqual([
      [{ ok: true, value: { status } }],
      [{ ok: true, value: { status } }],
    ])
    expect({ status: outcome.status, error: (outcome.error as Error).message }).toEqual({ status, error })
    expect(outcome.warnings.at(-1)?.message).toBe(
      `policy "Watch" answered "replace" about the run of "${rest.graph.plan.name}", whose end is already settled; it does not count.`,
    )
  })

  it('a policy that fails there, about a run that had failed, tells both', async () => {
    const { error } = await settle({ graph: failing(), policies: [after('Broken', broken)] })
    expect(error).toMatchObject({
      message:
        'policy "Broken" (plugin in-process) failed at run.after: it broke. The step itself had failed: the node broke',
      cause: new Error('the node broke'),
    })
  })
})

describe('a policy’s own calls', () => {
  it('are made at the edge of a run that is over, too', async () => {
    const model = scripted(['a summary'])
    const act = noting(({ text }) => `kept ${text}`)
    const seen: unknown[] = []
    const reporter = says(
      'Reporter',
      {
        'run.after': async (_, ctx) => {
          const { content } = await ctx.callModel({ messages: [{ role: 'user', content: 'what went wrong?' }] })
          seen.push(await ctx.runTool('act', { text: content }))
          return pass
        },
      },
      { model },
    )
    const { error } = await settle({ graph: failing(), policies: [reporter], tools: [act] })
    expect(seen).toEqual(['kept a summary'])
    expect((error as Error).message).toBe('the node broke')
  })

  it.each(['run.before', 'run.after'] as const)(
    'at %s are judged, and a policy that fails about one ends the run',
    async (at) => {
      const asker = says('Asker', {
        [at]: async (_: unknown, ctx: { runTool(name: string, input: object): Promise<unknown> }) => {
          await ctx.runTool('act', { text: 'x' }).catch(() => undefined)
          return { action: at === 'run.before' ? 'proceed' : 'pass' }
        },
      })
      const { error } = await settle({
        graph: echo(),
        policies: [asker, says('Gate', { 'toolCall.before': broken })],
        tools: [noting()],
        platform: new Clock(),
      })
      expect(error).toBeInstanceOf(MiddlewareError)
      expect((error as Error).message).toContain('policy "Gate" (plugin in-process) failed at toolCall.before')
    },
  )

  it('start no more once the consultation is given up', async () => {
    const platform = new Clock()
    const act = noting()
    const gate = open<void>()
    const late = says('Late', {
      'node.before': async (_, ctx) => {
        await gate.promise
        await ctx.runTool('act', { text: 'x' })
      },
    })
    const run = settle({ graph: echo(), policies: [late], tools: [act], platform })
    await platform.pass(5_000)
    expect((await run).error).toBeInstanceOf(MiddlewareError)
    gate.resolve()
    await quiet()
    expect(act.ran).toEqual([])
  })
})
