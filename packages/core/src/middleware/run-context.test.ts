import { expect, it } from 'vitest'
import { z } from 'zod'
import { agentGraph, calls, Talk, user } from '../../testing/agent.ts'
import {
  createRuntime,
  END,
  graph,
  HOOKS,
  type HookName,
  type Hooks,
  MemoryStore,
  middleware,
  node,
  START,
  scripted,
  tool,
} from '../index.ts'

it('G1: every hook is given the run’s context, its ids and what it keeps', async () => {
  const told = new Map<string, unknown>()
  const look = (
    hook: HookName,
    ctx: { context: unknown; threadId?: string | undefined; rootRunId: string; kept: { value: unknown } },
  ) => {
    told.set(hook, { context: ctx.context, thread: ctx.threadId, turn: ctx.rootRunId.length > 0, kept: ctx.kept.value })
    return undefined
  }
  const names = Object.keys(HOOKS) as HookName[]
  const hooks: Record<string, unknown> = {}
  for (const name of names) {
    hooks[name] = name.startsWith('wrap')
      ? (_input: unknown, next: () => unknown, ctx: never) => look(name, ctx) ?? next()
      : (ctx: never) => look(name, ctx)
  }
  const kept = { scope: 'turn', schema: z.object({ calls: z.number().default(0) }) } as const
  const looks = middleware({ name: 'looks', kept, ...(hooks as Hooks) })
  const broken = tool('broken', {
    description: 'Fails.',
    input: z.object({}),
    run: () => Promise.reject(new Error('broken')),
  })
  const fine = tool('fine', { description: 'Works.', input: z.object({}), run: () => 'fine' })
  const model = scripted([calls(['broken', {}], ['fine', {}]), 'done', new Error('503')])
  const agent = agentGraph({ model, tools: [broken, fine], middleware: [looks] })
  const runtime = createRuntime({ store: new MemoryStore() })
  const context = { user: 'ada' }
  await runtime.run(agent, user('go'), { thread: 't', context })
  // The second turn fails in the model, and with it the node; then a node asks.
  await runtime.settle(agent, user('go'), { thread: 't', context })
  const asks = node('asks', Talk, async (_s, ctx) => void (await ctx.ask('q', 'may it?')))
  const asking = graph('asking', Talk, { middleware: [looks] })
    .edge(START, asks)
    .edge(asks, END)
    .check()
  await runtime.run(asking, {}, { thread: 'asks', context })
  for (const name of names) {
    const thread = name === 'onInterrupt' ? 'asks' : expect.stringMatching(/^(t|asks)$/)
    expect({ name, told: told.get(name) }).toEqual({ name, told: { context, thread, turn: true, kept: { calls: 0 } } })
  }
})
