import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { agentGraph, calls, contents, processes, Talk, user } from '../../testing/agent.ts'
import { Clock } from '../../testing/clock.ts'
import { noting, ofType, says, Text } from '../../testing/play.ts'
import {
  agentNode,
  CallTimeoutMiddleware,
  type ChatModel,
  createRuntime,
  DynamicPromptMiddleware,
  END,
  graph,
  HOOKS,
  type HookName,
  type Middleware,
  ModelFallbackMiddleware,
  ModelLimitMiddleware,
  ModelRetryMiddleware,
  middleware,
  node,
  PatchCallsMiddleware,
  type Policy,
  ResponseCacheMiddleware,
  type RunEvent,
  START,
  scripted,
  type Tool,
  ToolDeniedError,
  ToolEmulationMiddleware,
  ToolErrorMiddleware,
  ToolRetryMiddleware,
  type WrapOutcome,
} from '../index.ts'

const HELLO = user('hello')
const T = { thread: 't' }
const act = (text: string) => calls(['act', { text }])

/** Runs an agent that calls `act` once with "a", and tells what the model reads of it. */
async function reads(
  own: readonly Middleware[],
  policies: readonly Policy[] = [],
  tools: readonly Tool[] = [noting()],
) {
  const chat = agentGraph({ middleware: own, model: scripted([act('a'), 'done']), tools })
  const outcome = await createRuntime({ policies }).settle(chat, HELLO)
  return { ...outcome, read: contents(outcome.state?.messages ?? [])[2] }
}

describe('own hooks and policies', () => {
  it('compose on the way out, and policies come last', async () => {
    const adds = (name: string) =>
      middleware({ name, afterTool: (ctx) => ctx.replace(`${ctx.value as string}, ${name}`) })
    const seen: unknown[] = []
    const last = says('Last', {
      'toolCall.after': ({ outcome }) => {
        seen.push(outcome)
        return { action: 'replace', value: 'the last word' }
      },
    })
    const { read } = await reads([adds('outer'), adds('inner')], [last])
    expect(seen).toEqual([{ ok: true, value: 'done, inner, outer' }])
    expect(read).toBe('tool: the last word')
  })

  it('a policy that replaces takes nothing from a hook that counts', async () => {
    const told: unknown[] = []
    const counts = middleware({
      name: 'counts',
      kept: { scope: 'turn', schema: z.object({ calls: z.number().default(0) }) },
      beforeTool: ({ kept, revisit }) => {
        if (!revisit) kept.update(({ calls }) => ({ calls: calls + 1 }))
      },
      afterTool: ({ kept, value, substituted }) => void told.push([kept.value.calls, value, substituted]),
    })
    const tool = noting()
    await reads([counts], [says('Gate', { 'toolCall.before': { action: 'replace', value: 'a stub' } })], [tool])
    expect(told).toEqual([[1, 'a stub', 'Gate']])
    expect(tool.ran).toEqual([])
  })

  it('onError comes before nodeError: a policy hears of what nobody recovered', async () => {
    const judge = says('Judge', { 'nodeError.after': { action: 'replace', value: { made: 'by the policy' } } })
    const fails = (own: readonly Middleware[]) => {
      const step = node('step', Text, () => {
        throw new Error('broke')
      })
      return graph('g', Text, { middleware: own }).edge(START, step).edge(step, END).check()
    }
    const looks = middleware({ name: 'looks', onError: () => undefined })
    const recovers = middleware({ name: 'recovers', onError: () => ({ made: 'by the hook' }) })
    const runtime = createRuntime({ policies: [judge] })
    expect((await runtime.run(fails([looks]), {})).state.made).toBe('by the policy')
    expect((await runtime.run(fails([looks, recovers]), {})).state.made).toBe('by the hook')
    expect(judge.asked).toHaveLength(1)
  })

  it('a hook that throws ends the run: nothing catches it, and nobody is consulted about what is left', async () => {
    const broke = middleware({
      name: 'broke',
      afterTool: () => {
        throw new Error('a mistake')
      },
    })
    const catches = middleware({
      name: 'catches',
      wrapTool: async (_args, next) => {
        const outcome = await next().catch(() => undefined)
        return outcome ?? { ok: true, value: 'caught' }
      },
      onError: () => ({ messages: [] }),
    })
    const last = says('Last', { 'toolCall.after': { action: 'pass' } })
    const { status, error } = await reads([catches, broke], [last])
    expect(status).toBe('failed')
    expect(error).toMatchObject({
      code: 'MIDDLEWARE_FAILED',
      at: { middleware: 'broke', hook: 'afterTool', tool: 'act' },
    })
    expect(last.asked).toEqual([])
  })

  it('a ToolDeniedError of beforeTool is a refusal: the model reads the reason, and observers hear nothing', async () => {
    const told: string[] = []
    const watch = middleware({
      name: 'watch',
      onToolError: () => void told.push('onToolError'),
      afterTool: () => void told.push('afterTool'),
    })
    const denies = middleware({
      name: 'denies',
      beforeTool: ({ toolName }) => {
        throw new ToolDeniedError(toolName, 'not today')
      },
    })
    const tool = noting()
    expect((await reads([watch, denies], [], [tool])).read).toBe('tool: Refused: not today')
    expect([tool.ran, told]).toEqual([[], []])
  })
})

describe('a wrap', () => {
  const gate = () => says('Gate', { 'toolCall.before': { action: 'proceed' }, 'toolCall.after': { action: 'pass' } })

  it.each([
    {
      name: 'that calls next twice makes two trips: each meets the policies, and the last word comes once',
      wrapTool: async (_args: unknown, next: () => Promise<WrapOutcome>) => {
        await next()
        return next()
      },
      ran: [{ text: 'a' }, { text: 'a' }],
      asked: ['before', 'before', 'after'],
      substituted: undefined,
    },
    {
      name: 'that never calls next supplies an outcome, on which the policies have the last word',
      wrapTool: async () => ({ ok: true, value: 'from the wrap' }) as const,
      ran: [],
      asked: ['after'],
      substituted: 'wraps',
    },
    {
      name: 'that calls next with another input has that judged, and run',
      wrapTool: (_args: unknown, next: (input: object) => Promise<WrapOutcome>) => next({ text: 'b' }),
      ran: [{ text: 'b' }],
      asked: ['before', 'after'],
      substituted: undefined,
    },
    {
      name: 'that does not wait for next hands on what it has, and what comes later is dropped',
      wrapTool: async (_args: unknown, next: () => Promise<WrapOutcome>) => {
        void next()
        return { ok: true, value: 'early' } as const
      },
      ran: undefined,
      asked: undefined,
      substituted: 'wraps',
    },
  ])('$name', async ({ wrapTool, ran, asked, substituted }) => {
    const policy = gate()
    const tool = noting()
    await reads([middleware({ name: 'wraps', wrapTool: wrapTool as never })], [policy], [tool])
    if (ran !== undefined) expect(tool.ran).toEqual(ran)
    if (asked !== undefined) expect(policy.asked.map(({ at }) => at.slice('toolCall.'.length))).toEqual(asked)
    expect(policy.asked.filter(({ at }) => at === 'toolCall.after').map((one) => one.substituted)).toEqual([
      substituted,
    ])
  })

  it('is left when a retry is granted inside it: its next stays pending, and a new attempt begins at the top', async () => {
    const told: string[] = []
    const wraps = middleware({
      name: 'wraps',
      wrapModel: async (_request, next, { attempt }) => {
        told.push(`in ${attempt}`)
        try {
          return await next()
        } finally {
          told.push(`out ${attempt}`)
        }
      },
    })
    const again = middleware({ name: 'again', onModelError: (ctx) => (ctx.attempt === 1 ? ctx.retry() : undefined) })
    const model = scripted([new Error('busy'), 'hi'])
    await createRuntime().run(agentGraph({ middleware: [wraps, again], model }), HELLO)
    expect(told).toEqual(['in 1', 'in 2', 'out 2'])
  })

  it('that hands on a refusal leaves it one: no after is consulted', async () => {
    const told: string[] = []
    const outer = middleware({
      name: 'outer',
      wrapTool: async (_args, next) => {
        const outcome = await next()
        told.push(outcome.ok ? 'ok' : `refused: ${outcome.refused}`)
        // The same error in another object is the same refusal.
        return outcome.ok ? outcome : { ok: false, error: outcome.error }
      },
      afterTool: () => void told.push('afterTool'),
    })
    const policy = says('Gate', {
      'toolCall.before': { action: 'reject', reason: 'no' },
      'toolCall.after': { action: 'pass' },
    })
    expect((await reads([outer], [policy])).read).toBe('tool: Refused: no')
    expect(told).toEqual(['refused: true'])
    expect(policy.asked.map(({ at }) => at)).toEqual(['toolCall.before'])
  })

  it('that makes something else of a refusal supplies that, and the policies have the last word on it', async () => {
    const outer = middleware({
      name: 'outer',
      wrapTool: async (_args, next) => {
        await next()
        return { ok: true, value: 'as if nothing had been' }
      },
    })
    const policy = says('Gate', {
      'toolCall.before': { action: 'reject', reason: 'no' },
      'toolCall.after': ({ outcome }, { substituted }) =>
        outcome.ok && substituted === 'outer' ? { action: 'reject', reason: 'still no' } : { action: 'pass' },
    })
    const tool = noting()
    expect((await reads([outer], [policy], [tool])).read).toBe('tool: Refused: still no')
    expect(tool.ran).toEqual([])
  })
})

describe('D3: a guard that judges beside the call', () => {
  /** Judges what the user said while the model answers already; parts are held until both are there. */
  //#region beside
  const guard = (judge: (text: string) => Promise<boolean>) =>
    middleware({
      name: 'guard',
      stream: 'hold',
      wrapModel: async (request, next) => {
        const said = request.messages.findLast(({ role }) => role === 'user')
        const [fine, outcome] = await Promise.all([judge(said?.content ?? ''), next()])
        return fine ? outcome : { ok: false, error: new Error('the guard let nothing through') }
      },
    })
  //#endregion

  async function heard(fine: boolean) {
    const { clock, another } = processes()
    const later = <Value>(value: Value) => new Promise<Value>((resolve) => clock.set(300, () => resolve(value)))
    const model: ChatModel = {
      model: 'slow',
      chat: () => later({ content: 'hi', finish_reason: 'stop' }),
      async *stream() {
        yield { content: await later('hi') }
        yield { finish_reason: 'stop' }
      },
    }
    const told: string[] = []
    const listening = (async () => {
      const chat = agentGraph({ middleware: [guard(() => later(fine))], model })
      for await (const event of another().stream(chat, HELLO)) {
        if (event.type === 'token') told.push(`${event.text} at ${clock.now()}`)
      }
    })()
    await clock.pass(1_000)
    await listening
    return told
  }

  it('costs no time of its own: both take 300 ms, and the first part leaves after 300', async () => {
    expect(await heard(true)).toEqual(['hi at 300'])
  })

  it('lets nothing leave when it says no', async () => {
    expect(await heard(false)).toEqual([])
  })
})

describe('a no is a no', () => {
  it.each([
    { name: 'own middleware', isPolicy: false },
    { name: 'a policy', isPolicy: true },
  ])('A1: a call that $name refused does not run, whatever another middleware does with it', async ({ isPolicy }) => {
    const approval = middleware({
      name: 'approval',
      beforeTool: (ctx) => (ctx.args.text === 'a' ? ctx.reject('a person said no') : undefined),
    })
    const gate = says('Gate', {
      'toolCall.before': ({ input }) =>
        input.text === 'a' ? { action: 'reject', reason: 'a person said no' } : { action: 'proceed' },
    })
    const forces = middleware({
      name: 'forces',
      wrapTool: async (args, next) => {
        const outcome = await next()
        return outcome.ok ? outcome : next({ ...args })
      },
    })
    const tool = noting()
    const model = scripted([calls(['act', { text: 'a' }], ['act', { text: 'b' }]), 'done'])
    const own = isPolicy ? [forces] : [forces, approval]
    const chat = agentGraph({ middleware: own, model, tools: [tool] })
    const { state } = await createRuntime({ policies: isPolicy ? [gate] : [] }).run(chat, HELLO)
    expect(tool.ran).toEqual([{ text: 'b' }])
    expect(contents(state.messages).slice(2, 4)).toEqual(['tool: Refused: a person said no', 'tool: done'])
  })

  it.each([
    { name: 'a hook', changes: middleware({ name: 'changes', beforeTool: (ctx) => ctx.replace({ text: 'b' }) }) },
    { name: 'a wrap', changes: middleware({ name: 'changes', wrapTool: (_args, next) => next({ text: 'b' }) }) },
  ])('A2: a policy sees what would run, though $name changed it', async ({ changes }) => {
    const gate = says('Gate', {
      'toolCall.before': ({ input }) =>
        input.text === 'a' ? { action: 'proceed' } : { action: 'reject', reason: `not ${input.text}` },
    })
    const tool = noting()
    expect((await reads([changes], [gate], [tool])).read).toBe('tool: Refused: not b')
    expect(tool.ran).toEqual([])
  })

  const approvesAll = () =>
    middleware({
      name: 'approves',
      beforeTool: (ctx) => (ctx.answered === undefined ? ctx.suspend({ question: 'May it?' }) : undefined),
    })

  it('A5: a slow policy is waited for, though every question is answered with yes: the tool does not start before', async () => {
    const clock = new Clock()
    const late = { action: 'reject', reason: 'late, but no' }
    const slow = says('Slow', {
      'toolCall.before': () => new Promise((resolve) => clock.set(200, () => resolve(late))),
    })
    const tool = noting()
    const asked: unknown[] = []
    const auto = middleware({
      name: 'auto',
      onInterrupt: (_ctx, payload) => {
        asked.push(payload)
        return true
      },
    })
    const chat = agentGraph({ middleware: [approvesAll(), auto], model: scripted([act('a'), 'done']), tools: [tool] })
    const running = createRuntime({ platform: clock, policies: [slow] }).run(chat, HELLO)
    await clock.pass(199)
    expect(asked).toMatchObject([{ question: 'May it?' }])
    expect(tool.ran).toEqual([])
    await clock.pass(1)
    expect(contents((await running).state.messages)[2]).toBe('tool: Refused: late, but no')
    expect(tool.ran).toEqual([])
  })

  it('A6: an approval of everything answers that question only; a policy still refuses', async () => {
    const gate = says('Gate', {
      'toolCall.before': ({ subject }) =>
        subject.toolName === 'act' ? { action: 'reject', reason: 'not on this machine' } : { action: 'proceed' },
    })
    const tool = noting()
    const { another } = processes({ policies: [gate] })
    const chat = () => agentGraph({ middleware: [approvesAll()], model: scripted([act('a'), 'done']), tools: [tool] })
    const paused = await another().settle(chat(), HELLO, T)
    expect(paused.status).toBe('paused')
    const going = agentGraph({ middleware: [approvesAll()], model: scripted([() => 'done']), tools: [tool] })
    const { state } = await another().resume(going, 't', true)
    expect(contents(state.messages)[2]).toBe('tool: Refused: not on this machine')
    expect(tool.ran).toEqual([])
  })
})

describe('A12: hooks are the same, in the same order,', () => {
  /** Notes each hook of an agent's node, wraps on their way in. */
  function traced() {
    const trace: string[] = []
    const hooks: Partial<Record<HookName, unknown>> = {}
    for (const name of Object.keys(HOOKS) as HookName[]) {
      if (['beforeGraph', 'afterGraph', 'onRunEnd', 'onInterrupt'].includes(name)) continue
      hooks[name] = name.startsWith('wrap')
        ? (_input: unknown, next: () => unknown, { nodeName }: { nodeName: string }) => {
            trace.push(`${nodeName}.${name}`)
            return next()
          }
        : ({ nodeName }: { nodeName: string }) => void trace.push(`${nodeName}.${name}`)
    }
    const of = () => trace.filter((line) => line.startsWith('agent.'))
    return { own: middleware({ name: 'trace', ...hooks } as { name: string }), of }
  }

  /** A node that may ask, and then an agent with a call that goes well and one that fails. */
  function chatOf(own: Middleware, asks: boolean) {
    const model = scripted([calls(['act', { text: 'a' }]), calls(['act', { text: 'b' }]), 'done'])
    const tool = noting(({ text }) => {
      if (text === 'b') throw new Error('broke')
      return 'done'
    })
    const agent = agentNode('agent', Talk, { model, tools: [tool] })
    const door = node('door', Talk, async (_s, ctx) => void (asks && (await ctx.ask('in', 'May it?'))))
    return graph('g', Talk, { middleware: [own] })
      .edge(START, door)
      .edge(door, agent)
      .edge(agent, END)
      .check()
  }

  const modes: Readonly<Record<string, (own: Middleware) => Promise<unknown>>> = {
    'run on a thread': (own) => processes().another().run(chatOf(own, false), HELLO, T),
    stream: async (own) => {
      const events: RunEvent[] = []
      for await (const event of processes().another().stream(chatOf(own, false), HELLO)) events.push(event)
      expect(ofType(events, 'token')).not.toEqual([])
    },
    resume: async (own) => {
      const { another } = processes()
      await another().settle(chatOf(own, true), HELLO, T)
      return another().resume(chatOf(own, true), 't', true)
    },
    'a stream of a resume': async (own) => {
      const { another } = processes()
      await another().settle(chatOf(own, true), HELLO, T)
      for await (const _event of another().stream(chatOf(own, true), undefined, { ...T, resume: true }));
    },
  }

  it.each(Object.entries(modes))('in %s as in a plain run', async (_name, play) => {
    const [plain, other] = [traced(), traced()]
    await createRuntime().run(chatOf(plain.own, false), HELLO)
    await play(other.own)
    expect(plain.of()).toContain('agent.onToolError')
    expect(other.of()).toEqual(plain.of())
  })
})

describe('C1: a call with bad arguments', () => {
  const other = scripted([], { model: 'other' })
  const leaves = () => undefined
  const builtIn = (): readonly Middleware[] => [
    new CallTimeoutMiddleware({ modelMs: 60_000, toolMs: 60_000 }),
    new DynamicPromptMiddleware(leaves),
    new ModelFallbackMiddleware({ models: [other] }),
    new ModelLimitMiddleware({ perTurn: 10 }),
    new ModelRetryMiddleware(),
    new PatchCallsMiddleware(),
    new ResponseCacheMiddleware(),
    new ToolEmulationMiddleware({ model: other, tools: ['another'] }),
    new ToolErrorMiddleware({ say: { unknown: leaves, arguments: leaves, timeout: leaves, failed: leaves } }),
    new ToolRetryMiddleware(),
  ]

  /** What is said where a model names a wrong tool, sends bad arguments, and meets a tool that throws. */
  async function talk(own: readonly Middleware[]) {
    const broke = noting(() => {
      throw new Error('broke')
    })
    const model = scripted([calls(['akt', {}]), calls(['act', { text: 1 }]), calls(['act', { text: 'a' }]), 'done'])
    const { another } = processes()
    const outcome = await another().settle(agentGraph({ middleware: own, model, tools: [broke] }), HELLO, T)
    return { status: outcome.status, said: contents(outcome.state?.messages ?? []), warnings: outcome.warnings }
  }

  it.each(builtIn().map((own) => ({ name: own.name, own })))('is the same to the model with $name', async ({ own }) => {
    const plain = await talk([])
    expect(plain.status).toBe('completed')
    expect(await talk([own])).toEqual(plain)
  })

  it('is the same with all of them', async () => expect(await talk(builtIn())).toEqual(await talk([])))
})
