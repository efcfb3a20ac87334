import { describe, expect, it } from 'vitest'
import { Clock, open, quiet } from '../../testing/clock.ts'
import { type Answer, eventsOf, noting, ofType, oneNode, says, settle, Text } from '../../testing/play.ts'
import { command, createRuntime, END, graph, MiddlewareError, node, START } from '../index.ts'

/** A node that fails so many times and then makes `attempt n`. */
function failing(times: number, error: (attempt: number) => unknown = (n) => new Error(`failure ${n}`)) {
  let attempts = 0
  const step = oneNode(() => {
    attempts++
    if (attempts <= times) throw error(attempts)
    return { made: `attempt ${attempts}` }
  })
  return { graph: step, attempts: () => attempts }
}

const ALWAYS = Number.POSITIVE_INFINITY
const pass = { action: 'pass' }
const retry = { action: 'retry' }
const replace = (made: string) => ({ action: 'replace', value: { made } })
const atNodeError = (name: string, answer: Answer) => says(name, { 'nodeError.after': answer })

describe('a node that fails', () => {
  it.each([
    { name: 'A1: with no policy', policies: [] },
    { name: 'A2: with a policy that passes', policies: [atNodeError('Watch', pass)] },
  ])('fails the run with the very error, after one attempt. $name', async ({ policies }) => {
    const error = new Error('the node broke')
    const { graph, attempts } = failing(ALWAYS, () => error)
    expect((await settle({ graph, policies })).error).toBe(error)
    expect(attempts()).toBe(1)
  })

  it('A3: is retried until it succeeds, and the result is that of the last attempt', async () => {
    const { graph, attempts } = failing(2)
    const { state, counts } = await settle({ graph, policies: [atNodeError('RetryPolicy', retry)] })
    expect(state.made).toBe('attempt 3')
    expect(attempts()).toBe(3)
    expect(counts.retries).toBe(2)
  })

  it('A4: is replaced, and the run goes on to its end', async () => {
    const { graph, attempts } = failing(ALWAYS)
    const { status, state } = await settle({ graph, policies: [atNodeError('Fallback', replace('the fallback'))] })
    expect({ status, made: state.made, attempts: attempts() }).toEqual({
      status: 'completed',
      made: 'the fallback',
      attempts: 1,
    })
  })

  it('A5: is failed with an error that names policy and reason and has the node’s own as its cause', async () => {
    const { graph } = failing(ALWAYS)
    const { error } = await settle({ graph, policies: [atNodeError('Strict', { action: 'fail', reason: 'too late' })] })
    expect(error).toMatchObject({
      code: 'FAILED_BY_MIDDLEWARE',
      message: 'policy "Strict" failed node "step": too late',
      at: { policy: 'Strict', seam: 'nodeError', half: 'after', node: 'step' },
      cause: new Error('failure 1'),
    })
  })

  it('A6: is shown as subject and outcome: name and message, no stack, no state', async () => {
    const watch = atNodeError('Watch', pass)
    await settle({ graph: failing(ALWAYS).graph, policies: [watch] })
    const { at, attempt, maxAttempts, revisit, substituted, ...shown } = watch.asked[0] ?? {}
    expect(shown).toEqual({
      subject: { nodeName: 'step', nodeType: 'Node' },
      outcome: { ok: false, error: { name: 'Error', message: 'failure 1' } },
    })
  })

  it('is shown with its code, where its error has one', async () => {
    const watch = atNodeError('Watch', pass)
    const coded = Object.assign(new TypeError('no such file'), { code: 'ENOENT' })
    await settle({ graph: failing(ALWAYS, () => coded).graph, policies: [watch] })
    expect(watch.asked[0]?.outcome).toEqual({
      ok: false,
      error: { name: 'TypeError', message: 'no such file', code: 'ENOENT' },
    })
  })
})

describe('the attempts at a node', () => {
  it('A7: are 3 at most; then its own error stands, and a warning says that the retry was refused', async () => {
    const { graph, attempts } = failing(ALWAYS)
    const { error, warnings } = await settle({ graph, policies: [atNodeError('RetryPolicy', retry)] })
    expect(error).toEqual(new Error('failure 3'))
    expect(attempts()).toBe(3)
    expect(warnings.at(-1)?.message).toBe(
      'policy "RetryPolicy" asked for a retry of node "step", which is refused: attempt 3 of 3 was the last. ' +
        'The policies after it still have a say.',
    )
  })

  it('A8: spent, still admit a replace, and the policy knows that they are', async () => {
    const { graph } = failing(ALWAYS)
    const careful = atNodeError('Careful', (_, ctx) =>
      ctx.attempt < ctx.maxAttempts ? retry : replace('the fallback'),
    )
    const { state } = await settle({ graph, policies: [careful], limits: { maxNodeAttempts: 2 } })
    expect(careful.asked.map(({ attempt }) => attempt)).toEqual([1, 2])
    expect(state.made).toBe('the fallback')
  })

  it('A9: spent, hand the say to the policies after the one that retries', async () => {
    const fallback = atNodeError('Fallback', replace('the fallback'))
    const policies = [atNodeError('RetryPolicy', retry), fallback]
    const { graph } = failing(ALWAYS)
    const { state, warnings } = await settle({ graph, policies, limits: { maxNodeAttempts: 2 } })
    expect(fallback.asked).toHaveLength(1)
    expect(state.made).toBe('the fallback')
    expect(warnings.map(({ policy, message }) => [policy, message.includes('which is refused')])).toEqual([
      ['RetryPolicy', false],
      ['RetryPolicy', true],
      ['Fallback', false],
    ])
  })

  it('A10: spend iterations of the run, and the error at the end of those says how many were retries', async () => {
    const { graph, attempts } = failing(ALWAYS)
    const limits = { maxNodeAttempts: 100, maxIterations: 4 }
    const { error, counts, warnings } = await settle({ graph, policies: [atNodeError('RetryPolicy', retry)], limits })
    expect(attempts()).toBe(4)
    expect(error).toMatchObject({ code: 'MAX_ITERATIONS' })
    expect((error as Error).message).toContain('exceeded max iterations: 4, 3 of them retries')
    expect(counts).toMatchObject({ supersteps: 1, retries: 3 })
    expect(warnings).toHaveLength(3)
  })

  it('A11: count anew each time the node is arrived at', async () => {
    let runs = 0
    const loop = node('loop', Text, () => {
      if (++runs % 2 === 1) throw new Error('every other time')
      return { text: `${runs}` }
    })
    const twice = graph('twice', Text)
      .edge(START, loop)
      .when(loop, ({ text }) => text === '4', { then: END, otherwise: loop })
      .check()
    const watch = atNodeError('RetryPolicy', retry)
    const { status } = await settle({ graph: twice, policies: [watch], limits: { maxNodeAttempts: 2 } })
    expect(status).toBe('completed')
    expect(watch.asked.map(({ attempt }) => attempt)).toEqual([1, 1])
  })
})

describe('the wait before a retry', () => {
  it('A12: is 30 s at most, and a warning names both numbers', async () => {
    const platform = new Clock()
    const { graph, attempts } = failing(1)
    const run = settle({ graph, policies: [atNodeError('Patient', { ...retry, delayMs: 3_600_000 })], platform })
    await platform.pass(29_999)
    expect(attempts()).toBe(1)
    await platform.pass(1)
    expect(attempts()).toBe(2)
    expect((await run).warnings[0]?.message).toContain('in 30000 ms (3600000 ms asked, 30000 ms is the most)')
  })

  it('A13: is cut short by a cancel, and leaves no timer behind', async () => {
    const platform = new Clock()
    const { graph, attempts } = failing(1)
    const cancel = new AbortController()
    const policies = [atNodeError('RetryPolicy', { ...retry, delayMs: 5_000 })]
    const run = settle({ graph, policies, platform, signal: cancel.signal })
    await platform.pass(1_000)
    cancel.abort(new Error('the user left'))
    expect(await run).toMatchObject({ status: 'cancelled', error: { code: 'RUN_CANCELLED' } })
    expect(platform.pending).toBe(0)
    await platform.pass(60_000)
    expect(attempts()).toBe(1)
  })

  it('A14: does not arise when the run was ended already: nobody is consulted', async () => {
    const cancel = new AbortController()
    const watch = says('Watch', { 'nodeError.after': retry, 'node.after': pass })
    const graph = oneNode(() => {
      cancel.abort()
      throw new Error('aborted')
    })
    const { status } = await settle({ graph, policies: [watch], signal: cancel.signal })
    await quiet()
    expect(status).toBe('cancelled')
    expect(watch.asked).toEqual([])
  })
})

describe('a substituted result is not a route', () => {
  const arrived = (made: string) => node(made, Text, () => ({ made }))
  const [hot, cold] = [arrived('hot'), arrived('cold')]
  const routing = (fails: boolean, plain: boolean) => {
    let runs = 0
    const choose = node('choose', Text, () => {
      runs++
      if (fails && runs > 1) throw new Error('no idea')
      return command({ update: { text: `${runs}` }, branch: 'hot' })
    })
    const begun = graph('routing', Text).edge(START, choose).edge(choose, hot, { branch: 'hot' })
    const edges = plain ? begun.edge(choose, cold).edge(cold, END) : begun.edge(choose, END, { branch: 'cold' })
    return edges.when(hot, ({ text }) => text === '1' && fails, { then: choose, otherwise: END }).check()
  }

  it('B1: a replaced node leaves by its unlabelled edge, whatever it chose the time before', async () => {
    const { state } = await settle({ graph: routing(true, true), policies: [atNodeError('Fallback', replace('-'))] })
    expect(state.made).toBe('cold')
  })

  it('B2: where every edge is labelled, the error names the policy and says so', async () => {
    const { error } = await settle({ graph: routing(true, false), policies: [atNodeError('Fallback', replace('-'))] })
    expect(error).toMatchObject({
      code: 'GRAPH_ROUTE',
      message: expect.stringMatching(
        /^node "choose": policy "Fallback" supplied its result, and a result is not a route/,
      ),
    })
  })

  it('B3: the same holds for a healthy node that was answered before it ran', async () => {
    const dry = says('DryRun', {
      'node.before': ({ subject }) => (subject.nodeName === 'choose' ? replace('-') : { action: 'proceed' }),
    })
    const { error } = await settle({ graph: routing(false, false), policies: [dry] })
    expect((error as Error).message).toContain('policy "DryRun" supplied its result, and a result is not a route')
    expect((error as Error).message).not.toContain('fail')
  })

  it.each([
    {
      name: 'a failed node',
      policy: atNodeError('Fallback', replace('-')),
      says: 'policy "Fallback" supplied a result for node "step"; it had failed: failure 1',
    },
    {
      name: 'a node that did not run',
      policy: says('Fallback', { 'node.before': replace('-') }),
      says: 'policy "Fallback" supplied a result for node "step"; it did not run.',
    },
  ])('B4, Z15: a warning in outcome and events says that the node did not make it: $name', async ({ policy, says }) => {
    const playing = { policies: [policy] }
    const { warnings } = await settle({ graph: failing(1).graph, ...playing })
    const events = await eventsOf({ graph: failing(1).graph, ...playing })
    expect(warnings.map(({ message }) => message)).toEqual([says])
    expect(ofType(events, 'warning').map(({ message, nodeName }) => [message, nodeName])).toEqual([[says, 'step']])
    expect(ofType(events, 'node_complete')[0]).toMatchObject({ substituted: 'Fallback' })
  })
})

describe('several policies', () => {
  it('C1, Z17: are consulted in load order, and the first verdict but pass ends the walk', async () => {
    const policies = [
      atNodeError('First', pass),
      atNodeError('Second', replace('second')),
      atNodeError('Third', replace('third')),
    ]
    const { state } = await settle({ graph: failing(ALWAYS).graph, policies })
    expect(policies.map(({ asked }) => asked.length)).toEqual([1, 1, 0])
    expect(state.made).toBe('second')
  })

  it('C2: the one that replaces wins over one that passes, whichever is first', async () => {
    const [outer, inner] = [atNodeError('Outer', replace('outer')), atNodeError('Inner', pass)]
    for (const policies of [
      [outer, inner],
      [inner, outer],
    ])
      expect((await settle({ graph: failing(ALWAYS).graph, policies })).state.made).toBe('outer')
  })
})

describe('a policy that fails', () => {
  it('C3: ends the run with a MiddlewareError that names it, tells both failures, and has the node’s as its cause', async () => {
    const broken = says(
      'Broken',
      {
        'nodeError.after': () => {
          throw new Error('no such key: ../settings.')
        },
      },
      { plugin: 'acme' },
    )
    const { error } = await settle({ graph: failing(ALWAYS).graph, policies: [broken] })
    expect(error).toBeInstanceOf(MiddlewareError)
    expect(error).toMatchObject({
      code: 'MIDDLEWARE_FAILED',
      message:
        'policy "Broken" (plugin acme) failed at nodeError.after of node "step": no such key: ../settings. ' +
        'The step itself had failed: failure 1',
      at: { policy: 'Broken', plugin: 'acme', seam: 'nodeError', half: 'after', node: 'step' },
      cause: new Error('failure 1'),
    })
  })

  it.each([
    {
      name: 'C4: an unknown action is answered with the ones that the half admits',
      answer: { action: 'ignore' },
      says: 'answered "ignore", which nodeError.after does not admit; it admits: pass, replace, retry, fail',
    },
    {
      name: 'C5: a fail says why',
      answer: { action: 'fail', reason: ' ' },
      says: 'answered "fail" without a "reason" that says why',
    },
  ])('$name', async ({ answer, says }) => {
    const { error } = await settle({ graph: failing(ALWAYS).graph, policies: [atNodeError('Broken', answer)] })
    expect(error).toBeInstanceOf(MiddlewareError)
    expect((error as Error).message).toContain(says)
  })

  it('C9: and one that never has reason to act changes nothing', async () => {
    const watch = says('Watch', {
      'run.before': { action: 'proceed' },
      'run.after': pass,
      'node.before': { action: 'proceed' },
      'node.after': pass,
      'nodeError.after': pass,
    })
    const playing = (policies: (typeof watch)[]) => ({ graph: failing(0).graph, policies, platform: new Clock() })
    const { counts, ...bare } = await settle(playing([]))
    const { counts: watched, ...same } = await settle(playing([watch]))
    expect(same).toEqual(bare)
    expect({ ...watched, consultations: 0 }).toEqual(counts)
    expect(watched.consultations).toBe(4)
    expect(await eventsOf(playing([watch]))).toEqual(await eventsOf(playing([])))
  })
})

describe('the events around a retry', () => {
  const playing = { policies: [atNodeError('RetryPolicy', retry)] }

  it('D1: number the attempts', async () => {
    const events = await eventsOf({ ...playing, graph: failing(2).graph })
    const attempts = (type: 'node_start' | 'node_error' | 'node_complete') =>
      ofType(events, type).map(({ attempt }) => attempt)
    expect(attempts('node_start')).toEqual([1, 2, 3])
    expect(attempts('node_error')).toEqual([1, 2])
    expect(attempts('node_complete')).toEqual([3])
  })

  it('D2: warn of each that is granted, with attempt, limit and cause', async () => {
    const events = await eventsOf({ ...playing, graph: failing(2).graph })
    expect(ofType(events, 'warning').map(({ message }) => message)).toEqual([
      'policy "RetryPolicy" retries node "step" in 0 ms, attempt 1 of 3: failure 1',
      'policy "RetryPolicy" retries node "step" in 0 ms, attempt 2 of 3: failure 2',
    ])
  })

  it('D3: a policy’s own are filed under the failing node and carry its type, their data as it gave them', async () => {
    const reporter = atNodeError('Reporter', (_, ctx) => {
      ctx.emitEvent('failed', { times: [1, { deep: null }] })
      ctx.log('info', 'noted')
      return pass
    })
    const events = await eventsOf({ graph: failing(ALWAYS).graph, policies: [reporter] })
    const at = { nodeName: 'step', nodeType: 'Reporter', path: ['one'] }
    expect(events).toContainEqual({ type: 'plugin:Reporter:failed', ...at, data: { times: [1, { deep: null }] } })
    expect(events).toContainEqual({ type: 'plugin_log', ...at, level: 'info', message: 'noted' })
  })
})

describe('what an attempt that was given up still does', () => {
  it('is dropped, whether or not somebody listens: its open calls never settle, and a consulted one never runs', async () => {
    for (const listening of [false, true]) {
      const settled: string[] = []
      let attempts = 0
      const held = says('Held', { 'toolCall.before': () => quiet().then(() => ({ action: 'proceed' })) })
      const act = noting()
      const graph = oneNode(async (_state, ctx) => {
        if (++attempts > 1) return quiet().then(quiet)
        ctx.callTool(act, { text: 'x' }).then(() => settled.push('settled'))
        throw new Error('failed beside its own call')
      })
      const runtime = createRuntime({ policies: [held, atNodeError('RetryPolicy', retry)] })
      if (listening) for await (const _ of runtime.stream(graph));
      else await runtime.settle(graph)
      expect({ attempts, ran: act.ran, settled }).toEqual({ attempts: 2, ran: [], settled: [] })
    }
  })

  it('is dropped when its time was over, too: what a policy then admits does not run', async () => {
    const platform = new Clock()
    const admitted = open<object>()
    const act = noting()
    const graph = oneNode((_state, ctx) => ctx.callTool(act, { text: 'x' }).then(() => undefined), { timeoutMs: 100 })
    const policies = [
      says('Slow', { 'toolCall.before': () => admitted.promise }),
      atNodeError('Fallback', replace('the fallback')),
    ]
    const run = settle({ graph, policies, platform })
    await platform.pass(100)
    admitted.resolve({ action: 'proceed' })
    await quiet()
    expect((await run).state.made).toBe('the fallback')
    expect(act.ran).toEqual([])
  })

  it('is dropped with the runs it had started: they are cancelled, and go no further beside the next attempt', async () => {
    const [entered, later] = [open<void>(), noting(undefined, 'later')]
    const child = oneNode(async (_state, ctx) => {
      await entered.promise
      await ctx.callTool(later, { text: 'x' })
    })
    let attempts = 0
    const graph = oneNode(async (_state, ctx) => {
      if (++attempts > 1) return quiet()
      await Promise.all([ctx.run(child, {}), Promise.reject(new Error('the other half failed'))])
    })
    const run = settle({ graph, policies: [atNodeError('RetryPolicy', retry)] })
    await quiet()
    entered.resolve()
    expect((await run).status).toBe('completed')
    await quiet()
    expect({ attempts, ran: later.ran }).toEqual({ attempts: 2, ran: [] })
  })
})
