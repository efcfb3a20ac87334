import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { Clock } from '../../testing/clock.ts'
import { type Answer, noting, oneNode, says, trying } from '../../testing/play.ts'
import {
  agentLoop,
  createRuntime,
  type DecisionRecord,
  type DecisionSink,
  MemoryStore,
  type Policy,
  type RunOptions,
  type RuntimeOptions,
  scripted,
} from '../index.ts'

const proceed = { action: 'proceed' }
const reject = { action: 'reject', reason: 'no' }

function sink(write?: (record: DecisionRecord) => void | Promise<void>, required?: boolean) {
  const records: DecisionRecord[] = []
  const decisions: DecisionSink = {
    write: (record) => {
      const written = write?.(record)
      records.push(record)
      return written
    },
    ...(required && { required }),
  }
  return { decisions, records }
}

/** Calls a tool past these policies; what is written down of it. */
async function log(policies: readonly Policy[], options: RuntimeOptions & RunOptions = {}) {
  const { decisions, records } = sink()
  const act = noting()
  const { graph, seen } = trying((ctx) => ctx.callTool(act, { text: 'given' }))
  const runtime = createRuntime({ policies, decisions, platform: new Clock(), ...options })
  const outcome = await runtime.settle(graph, {})
  await runtime.drain()
  return { records, outcome, seen, ran: act.ran }
}

const at = (answer: Answer, name = 'Gate', rules: object = {}) => says(name, { 'toolCall.before': answer }, rules)

describe('a record', () => {
  it('says where and when a half was consulted about what, by whom, and what came of it', async () => {
    const gate = at({ action: 'proceed', code: 'acme:ok', annotations: { rule: '7' } }, 'Gate', { version: '1.2.0' })
    const { records, outcome } = await log([gate])
    expect(records).toEqual([
      {
        id: expect.stringMatching(/^[0-9a-f]{12}-id-\d+$/),
        time: '2026-01-01T00:00:00.000Z',
        durationMs: 0,
        run: outcome.runId,
        task: 'step',
        seq: 1,
        seam: 'toolCall',
        half: 'before',
        attempt: 1,
        subject: { kind: 'tool', name: 'act', node: 'step', source: 'code', caller: 'node', callId: 'call-1' },
        inputDigest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
        finalDigest: records[0]?.inputDigest,
        outcome: 'proceed',
        by: 'engine',
        policies: [
          { name: 'Gate', version: '1.2.0', mode: 'enforce', verdict: 'proceed', code: 'acme:ok', durationMs: 0 },
        ],
        annotations: { rule: '7' },
      },
    ])
  })

  it('is one for each half consulted, plain ones too, in the order of their seq', async () => {
    const { decisions, records } = sink()
    const answers = ['run', 'node', 'modelCall', 'toolCall'].flatMap((seam) => [
      [`${seam}.before`, proceed],
      [`${seam}.after`, { action: 'pass' }],
    ])
    const everywhere = says('Gate', {
      ...Object.fromEntries(answers),
      'agentRound.before': proceed,
      'agentRound.after': { action: 'pass' },
    })
    const graph = oneNode(async (_, ctx) => {
      const model = scripted([{ tool_calls: [{ name: 'act', arguments: { text: 'x' } }] }, 'done'])
      return { made: (await agentLoop(ctx, { model, tools: [noting()], messages: [] })).content ?? '' }
    })
    await createRuntime({ policies: [everywhere], decisions, platform: new Clock() }).run(graph, {})
    expect(
      records.map(({ seq, seam, half, subject }) => `${seq} ${seam}.${half} ${subject.kind} ${subject.name}`),
    ).toEqual([
      '1 run.before run one',
      '2 node.before node step',
      '3 agentRound.before round step',
      '4 modelCall.before model scripted',
      '5 modelCall.after model scripted',
      '6 toolCall.before tool act',
      '7 toolCall.after tool act',
      '8 agentRound.after round step',
      '9 agentRound.before round step',
      '10 modelCall.before model scripted',
      '11 modelCall.after model scripted',
      '12 node.after node step',
      '13 run.after run one',
    ])
    expect(records).toHaveLength(everywhere.asked.length)
  })

  it('says what changed and who changed it, in digests and paths', async () => {
    const change = at({ action: 'modify', input: { text: 'new' } }, 'Change')
    const { records } = await log([at(proceed, 'First'), change])
    expect(records[0]).toMatchObject({
      outcome: 'modify',
      by: 'Change',
      changed: ['text'],
      policies: [
        { name: 'First', verdict: 'proceed' },
        { name: 'Change', verdict: 'modify' },
        { name: 'First', verdict: 'proceed', revisit: true },
      ],
    })
    expect(records[0]?.finalDigest).not.toBe(records[0]?.inputDigest)
  })

  it.each<{ name: string; half: 'before' | 'after'; verdict: object; comes: object; differs: boolean }>([
    {
      name: 'a refusal',
      half: 'before',
      verdict: { ...reject, code: 'acme:no' },
      comes: { outcome: 'reject', reason: 'no', code: 'acme:no' },
      differs: false,
    },
    {
      name: 'a result supplied',
      half: 'before',
      verdict: { action: 'replace', value: 'other' },
      comes: { outcome: 'replace' },
      differs: false,
    },
    {
      name: 'another result',
      half: 'after',
      verdict: { action: 'replace', value: 'other' },
      comes: { outcome: 'replace' },
      differs: true,
    },
    {
      name: 'a result withheld',
      half: 'after',
      verdict: reject,
      comes: { outcome: 'reject', reason: 'no' },
      differs: false,
    },
    {
      name: 'the end of the run',
      half: 'after',
      verdict: { action: 'fail', reason: 'no' },
      comes: { outcome: 'fail' },
      differs: false,
    },
    {
      name: 'a question',
      half: 'before',
      verdict: { action: 'suspend', ask: {} },
      comes: { outcome: 'suspend' },
      differs: false,
    },
  ])('says who decided: $name', async ({ half, verdict, comes, differs }) => {
    const { records } = await log([
      says('Gate', { [`toolCall.${half}`]: verdict }),
      says('Behind', { [`toolCall.${half}`]: half === 'before' ? proceed : { action: 'pass' } }),
    ])
    expect(records[0]).toMatchObject({ by: 'Gate', ...comes, notAsked: [{ name: 'Behind', why: 'settled' }] })
    expect(records[0]?.inputDigest !== records[0]?.finalDigest).toBe(differs)
  })

  it('says who was not asked, and why', async () => {
    const no = (reads: 'subject' | 'call') => ({ match: { reads, matches: () => false } })
    const { records } = await log([
      at(proceed, 'Off', { mode: 'off' }),
      at(proceed, 'Elsewhere', no('subject')),
      at(proceed, 'Gate'),
      at(proceed, 'Other', no('call')),
    ])
    expect(records[0]?.notAsked).toEqual([
      { name: 'Off', why: 'off' },
      { name: 'Elsewhere', why: 'match' },
      { name: 'Other', why: 'match' },
    ])
  })

  it('says that a policy was not asked about a call inside its own', async () => {
    const both = says('Both', {
      'node.before': async (_shown, ctx) => {
        await ctx.runTool('act', { text: 'x' })
        return proceed
      },
      'toolCall.before': reject,
    })
    for (const mine of [proceed, { action: 'replace', value: 'other' }]) {
      const { records } = await log([says('Gate', { 'toolCall.before': mine }), both], { tools: [noting()] })
      const inside = records.find(({ subject }) => subject.caller === 'middleware')
      expect(inside).toMatchObject({ policies: [{ name: 'Gate' }], notAsked: [{ name: 'Both', why: 'own' }] })
    }
  })

  it('says that a policy in shadow was not asked, for too many of its consultations are under way', async () => {
    const { decisions, records } = sink()
    const slow = at(() => new Promise(() => undefined), 'Shadow', { mode: 'shadow' })
    const many = oneNode(async (_, ctx) => {
      for (let i = 0; i < 65; i++) await ctx.callTool(noting(), { text: `${i}` })
    })
    await createRuntime({ policies: [slow, at(proceed)], decisions, platform: new Clock() }).run(many, {})
    expect(records.map(({ notAsked }) => notAsked).filter((skipped) => skipped !== undefined)).toEqual([
      [{ name: 'Shadow', why: 'dropped' }],
    ])
  })

  it('is none where nobody is consulted', async () => {
    const { records } = await log([
      at(proceed, 'Off', { mode: 'off' }),
      at(proceed, 'No', { match: { reads: 'call', matches: () => false } }),
    ])
    expect(records).toEqual([])
  })

  it.each<{ name: string; answer: Answer; cause: string }>([
    { name: 'it threw', answer: () => Promise.reject(new Error('MARKER')), cause: 'threw' },
    { name: 'nonsense', answer: 'MARKER', cause: 'nonsense' },
    { name: 'what it gave did not fit', answer: { action: 'modify', input: { text: 5 } }, cause: 'nonsense' },
  ])('says how a policy failed, by cause only: $name', async ({ answer, cause }) => {
    for (const onFailure of ['pass', 'fail'] as const) {
      const { records } = await log([at(answer, 'Gate', { onFailure })])
      const counts = onFailure === 'pass' ? 'proceed' : 'fail'
      expect(records).toMatchObject([
        {
          outcome: counts,
          by: 'engine',
          error: { policy: 'Gate', cause },
          policies: [{ verdict: counts, failed: cause }],
        },
      ])
      expect(JSON.stringify(records)).not.toContain('MARKER')
    }
  })

  it('is there for an open breaker, which consults nobody', async () => {
    const { decisions, records } = sink()
    const gate = at('none', 'Gate', { onFailure: 'pass', breaker: { failures: 1, openMs: 1_000 } })
    const graph = oneNode(async (_, ctx) => ({ made: await ctx.callTool(noting(), { text: 'x' }) }))
    const runtime = createRuntime({ policies: [gate], decisions, platform: new Clock() })
    await runtime.run(graph, {})
    await runtime.run(graph, {})
    expect(records[1]).toMatchObject({
      policies: [],
      notAsked: [{ name: 'Gate', why: 'breaker' }],
      error: { policy: 'Gate', cause: 'nonsense' },
    })
  })

  it('of a policy in shadow is one of its own, says its mode, and what it would have said', async () => {
    const { records, ran } = await log([at(reject, 'Shadow', { mode: 'shadow' }), at(proceed)])
    expect(ran).toHaveLength(1)
    expect(records).toMatchObject([
      {
        seq: 1,
        outcome: 'proceed',
        by: 'engine',
        policies: [{ name: 'Shadow', mode: 'shadow', verdict: 'reject', reason: 'no' }],
      },
      { seq: 2, outcome: 'proceed', policies: [{ name: 'Gate', mode: 'enforce' }] },
    ])
  })

  it('is free of payload, whatever is decided', async () => {
    const texts = ['MARKER', 'OTHER-MARKER']
    const verdicts: Answer[] = [
      proceed,
      { action: 'modify', input: { text: texts[1] } },
      { action: 'replace', value: texts[1] },
      { action: 'suspend', ask: { question: texts[1] } },
    ]
    for (const verdict of verdicts) {
      const { decisions, records } = sink()
      const { graph } = trying((ctx) =>
        ctx.callTool(
          noting(() => texts[0]),
          { text: texts[0] as string },
        ),
      )
      await createRuntime({
        policies: [at(verdict), says('After', { 'toolCall.after': { action: 'pass' } })],
        decisions,
      }).settle(graph, {})
      for (const text of texts) expect(JSON.stringify(records)).not.toContain(text)
    }
  })

  it('has a reason of 256 bytes at most, without control characters', async () => {
    const { records } = await log([at({ action: 'reject', reason: `\u001b[31mred\n${'é'.repeat(500)}` })])
    const reason = records[0]?.reason as string
    expect(reason).toMatch(/^\\u001b\[31mred\\u000aé+$/)
    expect(Buffer.byteLength(reason)).toBeLessThanOrEqual(256)
  })
})

describe('the record of a half that goes by an answer', () => {
  const ann = { kind: 'token', id: 'ann' }
  const bob = { kind: 'token', id: 'bob' }
  /** Asks whether a tool may be called. What it makes of the answer is up to it. */
  const asking = (then: (answer: unknown) => object, ask: object = {}) =>
    at((_shown, { answered }) => (answered === undefined ? { action: 'suspend', ask } : then(answered)))

  /** A thread that waits for the answer; how it goes on, and what is written down of it. */
  async function waiting(gate: Policy, others: readonly Policy[] = []) {
    const { decisions, records } = sink()
    const act = noting()
    const graph = oneNode(async (_, ctx) => ({ made: await ctx.callTool(act, { text: 'x' }) }))
    const platform = new Clock()
    const runtime = createRuntime({ policies: [gate, ...others], decisions, store: new MemoryStore(), platform })
    const { status } = await runtime.settle(graph, {}, { thread: 't', principal: ann })
    return { runtime, graph, platform, records, status }
  }
  const digest = `sha256:${createHash('sha256').update('{"text":"x"}').digest('hex')}`

  it('says when which question about what was answered, and by whom, where that is known', async () => {
    for (const principal of [bob, undefined]) {
      const { runtime, graph, platform, records } = await waiting(asking(() => proceed))
      await platform.pass(5_000)
      await runtime.resume(graph, 't', true, principal && { principal })
      expect(records.map(({ outcome, principal, resolved }) => ({ outcome, principal, resolved }))).toEqual([
        { outcome: 'suspend', principal: ann, resolved: undefined },
        {
          outcome: 'proceed',
          principal,
          resolved: {
            by: 'person',
            ...(principal && { principal }),
            at: '2026-01-01T00:00:05.000Z',
            ask: 'act@Gate',
            digest,
          },
        },
      ])
    }
  })

  it('has who answered, whoever lets the run go on after that', async () => {
    let fails = true
    const gate = asking(() => {
      if (!fails) return proceed
      fails = false
      throw new Error('not now')
    })
    const { runtime, graph, platform, records } = await waiting(gate)
    await runtime.resume(graph, 't', true, { principal: bob }).catch(() => undefined)
    await platform.pass(5_000)
    await runtime.continue(graph, 't', { principal: ann })
    expect(
      records.map(({ outcome, principal, resolved }) => [outcome, principal?.id, resolved?.principal?.id]),
    ).toEqual([
      ['suspend', 'ann', undefined],
      ['fail', 'bob', 'bob'],
      ['proceed', 'ann', 'bob'],
    ])
    expect(records[2]?.resolved).toEqual({ ...records[1]?.resolved, at: '2026-01-01T00:00:00.000Z' })
  })

  it('says that nobody answered in time', async () => {
    const gate = asking(() => proceed, { expiresInMs: 1_000 })
    const { runtime, graph, platform, records } = await waiting(gate)
    await platform.pass(1_000)
    await runtime.continue(graph, 't', { principal: bob }).catch(() => undefined)
    expect(records[1]).toMatchObject({ outcome: 'reject', principal: bob })
    expect(records[1]?.resolved).toEqual({ by: 'expiry', at: '2026-01-01T00:00:01.000Z', ask: 'act@Gate', digest })
  })

  it('says that a policy answered, and no person', async () => {
    const clerk = says('Clerk', { 'ask.before': { action: 'replace', value: true } })
    const { status, records } = await waiting(
      asking(() => proceed),
      [clerk],
    )
    expect(status).toBe('completed')
    const last = records.findLast(({ seam }) => seam === 'toolCall')
    expect(last?.resolved).toEqual({ by: 'Clerk', at: '2026-01-01T00:00:00.000Z', ask: 'act@Gate', digest })
  })
})

describe('seq', () => {
  it('counts per thread over all its runs, whoever makes them, and no further than what was made', async () => {
    const store = new MemoryStore()
    const { decisions, records } = sink()
    const graph = oneNode(async (_, ctx) => ({ made: await ctx.callTool(noting(), { text: 'x' }) }))
    for (let i = 0; i < 3; i++) {
      const runtime = createRuntime({ policies: [at(proceed)], decisions, store, platform: new Clock() })
      await runtime.run(graph, {}, { thread: 't' })
      await runtime.run(graph, {}, { thread: 'other' })
    }
    const of = (thread: string) => records.filter((record) => record.thread === thread).map(({ seq }) => seq)
    expect(of('t')).toEqual([1, 2, 3])
    expect(of('other')).toEqual([1, 2, 3])
  })

  it('of a fork goes on from where it left', async () => {
    const { decisions, records } = sink()
    const graph = oneNode(async (_, ctx) => ({ made: await ctx.callTool(noting(), { text: 'x' }) }))
    const runtime = createRuntime({
      policies: [at(proceed)],
      decisions,
      store: new MemoryStore(),
      platform: new Clock(),
    })
    await runtime.run(graph, {}, { thread: 't' })
    const { branch } = await runtime.fork('t')
    await runtime.run(graph, {}, { thread: 't', branch })
    expect(records.map((record) => [record.branch, record.seq])).toEqual([
      [undefined, 1],
      [branch, 2],
    ])
  })
})

describe('a sink that fails', () => {
  const graph = () =>
    oneNode(async (_, ctx) => {
      for (let i = 0; i < 4; i++) await ctx.callTool(noting(), { text: `${i}` })
    })
  const failing = (how: 'throws' | 'rejects') => {
    let count = 0
    return () => {
      if (![2, 3].includes(++count)) return undefined
      if (how === 'rejects') return Promise.reject(new Error('disk full'))
      throw new Error('disk full')
    }
  }

  it.each(['throws', 'rejects'] as const)('loses records, which are counted in the next one: it %s', async (how) => {
    const { decisions, records } = sink(failing(how))
    const runtime = createRuntime({ policies: [at(proceed)], decisions, platform: new Clock() })
    expect((await runtime.settle(graph(), {})).status).toBe('completed')
    await runtime.drain()
    expect(records.filter(({ seq }) => seq === 1 || seq === 4).map(({ seq, dropped }) => [seq, dropped])).toEqual([
      [1, undefined],
      [4, 2],
    ])
  })

  it.each(['throws', 'rejects'] as const)('is a warning once it begins to lose records: it %s', async (how) => {
    const { decisions } = sink(failing(how))
    const runtime = createRuntime({ policies: [at(proceed)], decisions, platform: new Clock() })
    const { warnings } = await runtime.settle(graph(), {})
    expect(warnings).toEqual([{ message: 'decisions are not written, and lost: their sink failed with Error.' }])
  })

  it.each(['throws', 'rejects'] as const)(
    'stops the run where it is required, before anything comes of the verdict: it %s',
    async (how) => {
      const { decisions } = sink(failing(how), true)
      const act = noting()
      const two = oneNode(async (_, ctx) => {
        for (let i = 0; i < 4; i++) await ctx.callTool(act, { text: `${i}` })
      })
      const outcome = await createRuntime({ policies: [at(proceed)], decisions, platform: new Clock() }).settle(two, {})
      expect(outcome).toMatchObject({
        status: 'failed',
        error: { code: 'DECISION_LOG_FAILED', cause: { message: 'disk full' } },
      })
      expect(act.ran).toEqual([{ text: '0' }])
    },
  )

  it('is waited for where it is required, and else is not', async () => {
    for (const required of [true, false]) {
      let write: () => void = () => undefined
      const { decisions } = sink(
        () =>
          new Promise<void>((resolve) => {
            write = resolve
          }),
        required,
      )
      const act = noting()
      const one = oneNode(async (_, ctx) => ({ made: await ctx.callTool(act, { text: 'x' }) }))
      const clock = new Clock()
      const running = createRuntime({ policies: [at(proceed)], decisions, platform: clock }).run(one, {})
      await clock.pass(0)
      expect(act.ran).toHaveLength(required ? 0 : 1)
      write()
      expect((await running).status).toBe('completed')
    }
  })

  it('and what a policy in shadow would have said never stops a run', async () => {
    const { decisions } = sink(() => {
      throw new Error('disk full')
    }, true)
    const { outcome } = await log([at(reject, 'Shadow', { mode: 'shadow' })], { decisions })
    expect(outcome.status).toBe('completed')
  })
})

it('nothing is made where nobody takes records: the same results, events and records of the thread', async () => {
  const play = async (decisions?: DecisionSink) => {
    const store = new MemoryStore()
    const graph = oneNode(async (_, ctx) => ({ made: await ctx.callTool(noting(), { text: 'x' }) }))
    const runtime = createRuntime({
      policies: [at(proceed)],
      store,
      platform: new Clock(),
      ...(decisions && { decisions }),
    })
    const { state, warnings } = await runtime.run(graph, {}, { thread: 't' })
    return { state, warnings, history: (await runtime.history('t')).length }
  }
  expect(await play(sink().decisions)).toEqual(await play())
})
