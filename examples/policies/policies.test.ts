import { fileURLToPath } from 'node:url'
import {
  createRuntime,
  END,
  graph,
  type JsonObject,
  makeNode,
  type NodeContext,
  type Policy,
  policy,
  type SeamHandlers,
  START,
  scripted,
  state,
  tool,
} from '@sluice/core'
import { loadPlugins } from '@sluice/host'
import { handlersOf } from '@sluice/plugin'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { builtRuntime } from '../../packages/host/src/testing/runtime.ts'

const runtime = builtRuntime()
const manifest = fileURLToPath(new URL('./policies.json', import.meta.url))

/** Installs one of the policies, as an operator would. */
type Install = (name: string, component?: JsonObject) => Promise<Policy>

const overTheWire: Install = async (name, component = {}) => {
  const plugins = await loadPlugins([manifest], { runtime, config: { [name]: component } })
  onTestFinished(() => plugins.close())
  return plugins.policies.find((policy) => policy.name === name) as Policy
}

const inProcess: Install = async (name, component = {}) => {
  const handlers = await handlersOf(new URL('./policies.mjs', import.meta.url))
  return policy({ name, seams: handlers[name] as SeamHandlers, component })
}

const State = state({ value: z.unknown().optional() })

/** Runs one node past policies, and says what came of it. */
async function play(installing: readonly Promise<Policy>[], run: (ctx: NodeContext) => unknown, type = 'ToolNode') {
  const step = makeNode(type, 'step', async (_: never, ctx) => ({ value: await run(ctx) }))
  const plan = graph('play', State).edge(START, step).edge(step, END).check()
  const policies = await Promise.all(installing)
  const events = []
  for await (const event of createRuntime({ policies }).stream(plan, {})) events.push(event)
  const end = events.at(-1)
  return {
    events,
    value: end?.type === 'run_end' ? (end.result as { value?: unknown } | undefined)?.value : undefined,
    error: end?.type === 'run_end' ? end.error : undefined,
  }
}

const failing = (message: string) => () => {
  throw new Error(message)
}

describe.each([
  { route: 'in process', installed: inProcess },
  { route: 'over the wire', installed: overTheWire },
])('$route', ({ installed }) => {
  describe('RetryPolicy (S1)', () => {
    it('retries what its list names, waiting longer each time, and then supplies its substitute and says so', async () => {
      const { events, value } = await play(
        [installed('RetryPolicy', { backoffMs: 1, substitute: { value: 'ours' } })],
        failing('service unavailable'),
      )
      const warnings = events.filter((event) => event.type === 'warning').map((event) => event.message)
      expect(warnings[0]).toContain('in 1 ms, attempt 1 of 3')
      expect(warnings[1]).toContain('in 2 ms, attempt 2 of 3')
      expect(events).toContainEqual(
        expect.objectContaining({ type: 'plugin:RetryPolicy:substituted', data: { node: 'step', attempts: 3 } }),
      )
      expect(value).toBe('ours')
    })

    it('leaves other failures alone', async () => {
      const { events, error } = await play([installed('RetryPolicy', { backoffMs: 1 })], failing('no such account'))
      expect(error?.message).toBe('no such account')
      expect(events.filter((event) => event.type === 'node_error')).toHaveLength(1)
    })
  })

  describe('ApprovalGate (S2)', () => {
    const shell = (result: unknown = 'done') =>
      tool('shell', { description: 'Runs.', input: z.object({ cmd: z.string() }), run: () => result })
    const call = (cmd: string, result?: unknown) => (ctx: NodeContext) => ctx.callTool(shell(result), { cmd })

    it('refuses a listed pattern and names it', async () => {
      const { error } = await play([installed('ApprovalGate', { guard: { shell: ['rm -rf'] } })], call('rm -rf /'))
      expect(error).toMatchObject({ code: 'REFUSED', message: expect.stringContaining('"rm -rf"') })
    })

    it.each([
      { name: 'what no pattern matches', component: { guard: { shell: ['rm -rf'] } } },
      { name: 'everything, when nothing is guarded', component: {} },
    ])('lets through $name', async ({ component }) => {
      expect((await play([installed('ApprovalGate', component as JsonObject)], call('ls'))).value).toBe('done')
    })

    it('withholds a result that is too large', async () => {
      const { value } = await play([installed('ApprovalGate', { maxResultBytes: 10 })], call('ls', 'x'.repeat(100)))
      expect(value).toEqual({ note: 'a result of 102 bytes was withheld' })
    })

    it('leaves failures alone', async () => {
      const broken = tool('shell', { description: 'Runs.', input: z.object({}), run: failing('broken') })
      expect(
        (await play([installed('ApprovalGate', { maxResultBytes: 1 })], (ctx) => ctx.callTool(broken, {}))).error
          ?.message,
      ).toBe('broken')
    })
  })

  describe('NodeAudit (S3)', () => {
    const audited = (events: readonly { type: string }[]) =>
      events.filter(({ type }) => type === 'plugin:NodeAudit:node')

    it.each([
      { name: 'success', run: () => 1, ok: true },
      { name: 'failure', run: failing('no'), ok: false },
    ])('publishes one event for a node that settled, $name', async ({ run, ok }) => {
      const { events } = await play([installed('NodeAudit')], run)
      expect(audited(events)).toEqual([
        expect.objectContaining({ data: { node: 'step', type: 'ToolNode', ok, attempt: 1 } }),
      ])
    })

    it('answers for the types that are rehearsed and touches no other', async () => {
      const rehearsing = installed('NodeAudit', { dryRun: ['ToolNode'], stub: { value: 'rehearsed' } })
      expect((await play([rehearsing], () => 'real')).value).toBe('rehearsed')
      expect((await play([rehearsing], () => 'real', 'LlmNode')).value).toBe('real')
    })
  })

  describe('RateLimit (S4)', () => {
    const ask = (model: ReturnType<typeof scripted>) => async (ctx: NodeContext) =>
      (await ctx.callModel(model, { messages: [{ role: 'user', content: 'hi' }] })).content

    it('does nothing without a rate', async () => {
      const model = scripted(['one', 'two'])
      expect(
        (await play([installed('RateLimit')], async (ctx) => [await ask(model)(ctx), await ask(model)(ctx)])).value,
      ).toEqual(['one', 'two'])
    })

    it('refuses calls above the rate, counted in its process', async () => {
      const model = scripted(['one', 'two'])
      const limited = installed('RateLimit', { callsPerMinute: 1 })
      expect((await play([limited], ask(model))).value).toBe('one')
      expect((await play([limited], ask(model))).error).toMatchObject({
        code: 'REFUSED',
        message: expect.stringContaining('429: 1 model calls a minute'),
      })
      expect(model.requests).toHaveLength(1)
    })

    it('asks again where the provider is busy', async () => {
      const model = scripted([new Error('429 Too Many Requests: slow down'), 'now'])
      expect((await play([installed('RateLimit', { backoffMs: 1 })], ask(model))).value).toBe('now')
    })
  })

  describe('all of them in one chain (S5)', () => {
    it('are each consulted at their own seam only', async () => {
      const names = ['RetryPolicy', 'ApprovalGate', 'NodeAudit', 'RateLimit', 'RoundBudget']
      const asked = names.map(async (name): Promise<Policy> => {
        const one = await installed(name)
        const { plugin, component, timeoutMs } = one
        return {
          ...{ name, plugin, component, timeoutMs },
          subscribes: (seam, half) => one.subscribes(seam, half),
          consult: (ctx) => seen.push(`${name} at ${ctx.seam}`) && one.consult(ctx),
        }
      })
      const seen: string[] = []
      const shell = tool('shell', { description: 'Runs.', input: z.object({}), run: () => 'done' })
      await play(asked, async (ctx) => {
        await ctx.callTool(shell, {})
        return (await ctx.callModel(scripted(['hi']), { messages: [{ role: 'user', content: 'hi' }] })).content
      })
      expect([...new Set(seen)].sort()).toEqual([
        'ApprovalGate at toolCall',
        'NodeAudit at node',
        'RateLimit at modelCall',
      ])
    })
  })
})
