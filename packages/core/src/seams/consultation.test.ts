import { describe, expect, it } from 'vitest'
import { Clock, open, quiet } from '../../testing/clock.ts'
import { type Answer, eventsOf, noting, oneNode, says, settle, trying } from '../../testing/play.ts'
import { agentLoop, type Consultation, MiddlewareError, policy, scripted } from '../index.ts'

const proceed = { action: 'proceed' }
const never = () => new Promise(() => undefined)

/** A run whose only node calls a tool, on a clock of its own. */
function play(policies: readonly ReturnType<typeof says>[], act = noting()) {
  const platform = new Clock()
  const { graph, seen } = trying((ctx) => ctx.callTool(act, { text: 'x' }))
  let ended: Awaited<ReturnType<typeof settle>> | undefined
  const run = settle({ graph, policies, platform, tools: [noting(never, 'slow'), noting(undefined, 'quick')] })
  run.then((outcome) => {
    ended = outcome as typeof ended
  })
  return { platform, run, act, seen, ended: () => ended }
}

const before = (name: string, answer: Answer, timeoutMs?: number) =>
  says(name, { 'toolCall.before': answer }, { timeoutMs })

describe('a policy that never answers', () => {
  it('has 5 s; then the run ends with a MiddlewareError that says it timed out, and nothing runs', async () => {
    const { platform, run, act, ended } = play([before('Slow', never)])
    await platform.pass(4_999)
    expect(ended()).toBeUndefined()
    await platform.pass(1)
    const { error } = await run
    expect(error).toBeInstanceOf(MiddlewareError)
    expect((error as Error).message).toBe(
      'policy "Slow" (plugin in-process) failed at toolCall.before of node "step": timed out after 5000 ms.',
    )
    expect((error as Error).cause).toMatchObject({ code: 'POLICY_TIMED_OUT' })
    expect(act.ran).toEqual([])
    expect(platform.pending).toBe(0)
  })

  it('has the time that the operator gives it', async () => {
    const { platform, ended } = play([before('Slow', never, 250)])
    await platform.pass(249)
    expect(ended()).toBeUndefined()
    await platform.pass(1)
    expect(ended()?.error).toMatchObject({ message: expect.stringContaining('timed out after 250 ms') })
  })

  it('is told that its answer is no longer wanted, and what it answers then is dropped', async () => {
    const late = open<unknown>()
    let signal: AbortSignal | undefined
    const slow = before('Slow', (_, ctx) => {
      signal = ctx.signal
      return late.promise
    })
    const { platform, run, act } = play([slow])
    await platform.pass(5_000)
    expect(signal?.aborted).toBe(true)
    late.resolve(proceed)
    expect((await run).status).toBe('failed')
    await quiet()
    expect(act.ran).toEqual([])
  })

  it.each(['toolCall.before', 'toolCall.after', 'node.before', 'node.after', 'run.before', 'run.after'] as const)(
    'is treated alike at every half: %s',
    async (at) => {
      const { platform, run } = play([says('Slow', { [at]: never })])
      await platform.pass(5_000)
      expect((await run).error).toMatchObject({
        code: 'MIDDLEWARE_FAILED',
        message: expect.stringContaining('timed out'),
      })
    },
  )
})

describe('the time of a policy', () => {
  it('is its own: one that answers late does not spend that of the next', async () => {
    const platform = new Clock()
    const after = (ms: number) => new Promise((resolve) => platform.set(ms, () => resolve(proceed)))
    const { graph } = trying((ctx) => ctx.callTool(noting(), { text: 'x' }))
    const policies = ['First', 'Second', 'Third'].map((name) => before(name, () => after(4_900)))
    const run = settle({ graph, policies, platform })
    await platform.pass(3 * 4_900)
    expect((await run).status).toBe('completed')
  })

  it('ends at 15 s for all the policies of a half together, and the error says so', async () => {
    const platform = new Clock()
    const after = (ms: number) => new Promise((resolve) => platform.set(ms, () => resolve(proceed)))
    const { graph } = trying((ctx) => ctx.callTool(noting(), { text: 'x' }))
    const policies = ['1', '2', '3', '4'].map((name) => before(name, () => after(4_900)))
    const run = settle({ graph, policies, platform })
    await platform.pass(15_000)
    expect((await run).error).toMatchObject({
      at: { policy: '4' },
      message: expect.stringContaining('timed out after 300 ms, when the 15000 ms of the whole half were over'),
    })
  })

  it.each([
    { name: 'as the first thing it does', wait: false },
    { name: 'later', wait: true },
  ])('stands still while its own call is served, made $name; that of the half does not', async ({ wait }) => {
    const patient = before('Patient', async (_, ctx) => {
      if (wait) await undefined
      await ctx.runTool('slow', { text: 'x' })
      return proceed
    })
    const { platform, ended } = play([patient])
    await platform.pass(14_999)
    expect(ended()).toBeUndefined()
    await platform.pass(1)
    expect(ended()?.error).toMatchObject({ message: expect.stringContaining('whole half') })
  })

  it('goes on where it stood when the call has been served', async () => {
    const served = open<string>()
    const quick = noting(() => served.promise, 'quick')
    const platform = new Clock()
    const asker = before('Asker', async (_, ctx) => {
      await ctx.runTool('quick', { text: 'x' })
      return never()
    })
    const { graph } = trying((ctx) => ctx.callTool(noting(), { text: 'x' }))
    let failed: unknown
    const run = settle({ graph, policies: [asker], platform, tools: [quick] })
    run.then(({ error }) => {
      failed = error
    })
    await platform.pass(6_000)
    served.resolve('served')
    await platform.pass(4_999)
    expect(failed).toBeUndefined()
    await platform.pass(1)
    expect(failed).toMatchObject({ message: expect.stringContaining('timed out after 11000 ms') })
  })

  it('is not moved by what it logs and emits', async () => {
    const chatty = before('Chatty', (_, ctx) => {
      ctx.log('info', 'still here')
      ctx.emitEvent('progress', 1)
      return never()
    })
    const { platform, run } = play([chatty])
    await platform.pass(5_000)
    expect((await run).error).toMatchObject({ code: 'MIDDLEWARE_FAILED' })
  })

  it.each([
    { name: 'asked for at once', wait: false },
    { name: 'asked for later', wait: true },
  ])('may be had once more, once, $name', async ({ wait }) => {
    const slow = before('Slow', async (_, ctx) => {
      if (wait) await undefined
      ctx.extend()
      ctx.extend()
      return never()
    })
    const { platform, ended } = play([slow])
    await platform.pass(9_999)
    expect(ended()).toBeUndefined()
    await platform.pass(1)
    expect(ended()?.error).toMatchObject({ message: expect.stringContaining('timed out after 10000 ms') })
  })

  it('costs nothing where it answers at once: no timer is set for it', async () => {
    const { platform, run } = play([before('Quick', proceed)])
    await run
    expect(platform.waits).toEqual([300_000])
  })
})

describe('a consultation', () => {
  it('knows where it stands: seam, half, attempt, settings, labels, and the verdicts that this half admits (Z7)', async () => {
    const seen: unknown[] = []
    const nosy = (admitted: object) => (_: unknown, ctx: Consultation) => {
      const { seam, half, attempt, maxAttempts, component, labels, admits, answered, revisit, substituted } = ctx
      seen.push({ seam, half, attempt, maxAttempts, component, labels, admits, answered, revisit, substituted })
      return admitted
    }
    const { run } = play([
      says(
        'Nosy',
        { 'toolCall.before': nosy({ ...proceed, labels: ['seen'] }), 'toolCall.after': nosy({ action: 'pass' }) },
        { component: { level: 3 } },
      ),
    ])
    await run
    const always = { attempt: 1, maxAttempts: 1, component: { level: 3 }, answered: undefined, revisit: false }
    expect(seen).toEqual([
      {
        ...always,
        seam: 'toolCall',
        half: 'before',
        labels: [],
        admits: ['proceed', 'modify', 'replace', 'reject', 'suspend'],
        substituted: undefined,
      },
      {
        ...always,
        seam: 'toolCall',
        half: 'after',
        labels: ['seen'],
        admits: ['pass', 'replace', 'reject', 'fail'],
        substituted: undefined,
      },
    ])
  })

  it('E9: without settings has {} as its component', async () => {
    const seen: unknown[] = []
    await play([
      before('Plain', (_, { component }) => {
        seen.push(component)
        return proceed
      }),
    ]).run
    expect(seen).toEqual([{}])
  })

  it('shows read-only values: what a handler writes to them throws, and the next policy sees them unchanged', async () => {
    const attempts: unknown[] = []
    const vandal = says('Vandal', {
      'toolCall.after': ({ subject, input, outcome }, { admits, component }) => {
        for (const shown of [subject, input, outcome, admits, component] as Record<string, unknown>[]) {
          try {
            Object.assign(shown, { 0: 'x', toolName: 'x', text: 'x', value: 'x' })
            attempts.push(shown)
          } catch {
            // It must throw.
          }
        }
        return { action: 'pass' }
      },
    })
    const watch = says('Watch', { 'toolCall.after': { action: 'pass' } })
    const { run, seen } = play([vandal, watch])
    await run
    expect(attempts).toEqual([])
    expect(watch.asked[0]).toMatchObject({
      subject: { toolName: 'act' },
      input: { text: 'x' },
      outcome: { value: 'done' },
    })
    expect(seen.value).toBe('done')
  })

  it('about an agent’s round shows a list of tools that nobody can change either', async () => {
    const frozen: boolean[] = []
    const watch = says('Watch', {
      'agentRound.after': ({ outcome }) => {
        const { value } = outcome as unknown as { value: { toolCalls: string[] } }
        frozen.push(Object.isFrozen(value), Object.isFrozen(value.toolCalls))
        return { action: 'pass' }
      },
    })
    const model = scripted([{ tool_calls: [{ name: 'act', arguments: { text: 'x' } }] }, 'done'])
    const graph = oneNode(async (_state, ctx) => {
      await agentLoop(ctx, { model, tools: [noting()], messages: [] })
    })
    await settle({ graph, policies: [watch] })
    expect(frozen).toEqual([true, true])
  })

  it.each([
    { name: 'an event whose name is no identifier', call: 'emitEvent', args: ['not a name'] },
    { name: 'an event whose data is no JSON', call: 'emitEvent', args: ['name', () => 1] },
    { name: 'a level that does not exist', call: 'log', args: ['loud', 'x'] },
    { name: 'a message that is no text', call: 'log', args: ['info', 5] },
  ] as const)('refuses $name', async ({ call, args }) => {
    const broken = before('Broken', (_, ctx) => {
      ;(ctx as unknown as Record<string, (...args: unknown[]) => void>)[call]?.(...args)
      return proceed
    })
    expect((await play([broken]).run).error).toBeInstanceOf(MiddlewareError)
  })
})

describe('what any verdict may carry', () => {
  it('warnings are reported under the policy’s name', async () => {
    const { run } = play([before('Careful', { ...proceed, warnings: ['looks odd'] })])
    expect((await run).warnings).toEqual([
      {
        message: 'policy "Careful": looks odd',
        policy: 'Careful',
        seam: 'toolCall',
        half: 'before',
        nodeName: 'step',
      },
    ])
  })

  it('labels hold for everything after it: parent and child runs share one set, which only grows', async () => {
    const seen: (readonly string[])[] = []
    const marks = says('Marks', {
      'node.before': ({ subject }, ctx) => {
        seen.push(ctx.labels)
        return { ...proceed, labels: [`at ${subject.nodeName} ${seen.length}`] }
      },
      'node.after': (_, ctx) => {
        seen.push(ctx.labels)
        return { action: 'pass' }
      },
    })
    const child = oneNode(() => undefined)
    await settle({ graph: oneNode((_state, ctx) => ctx.run(child, {}).then(() => undefined)), policies: [marks] })
    expect(seen).toEqual([[], ['at step 1'], ['at step 1', 'at step 2'], ['at step 1', 'at step 2']])
  })

  it('a label holds also when its verdict refuses the call', async () => {
    const labels: string[] = []
    const policies = [
      before('Gate', { action: 'reject', reason: 'no', labels: ['refused'] }),
      says('Watch', {
        'node.after': (_, ctx) => {
          labels.push(...ctx.labels)
          return { action: 'pass' }
        },
      }),
    ]
    await play(policies).run
    expect(labels).toEqual(['refused'])
  })

  it('a code stands in the decision, beside policy, plugin, seam, half, subject, attempt and reason', async () => {
    const gate = policy({
      name: 'Gate',
      plugin: 'acme',
      seams: { toolCall: { before: () => ({ action: 'reject', reason: 'no', code: 'acme:7' }) } },
    })
    const { graph } = trying((ctx) => ctx.callTool(noting(), { text: 'x' }))
    const events = await eventsOf({ graph, policies: [gate] })
    expect(events.filter(({ type }) => type === 'decision')).toEqual([
      {
        type: 'decision',
        path: ['one'],
        policy: 'Gate',
        plugin: 'acme',
        seam: 'toolCall',
        half: 'before',
        action: 'reject',
        subject: {
          nodeName: 'step',
          nodeType: 'Node',
          toolName: 'act',
          toolCallId: 'call-1',
          caller: 'node',
          source: 'code',
        },
        attempt: 1,
        reason: 'no',
        code: 'acme:7',
      },
    ])
  })

  it('plain verdicts are counted and not reported', async () => {
    const watch = says('Watch', { 'toolCall.before': proceed, 'toolCall.after': { action: 'pass' } })
    const { counts } = await play([watch]).run
    expect(counts).toMatchObject({ consultations: 2, decisions: 0 })
  })
})
