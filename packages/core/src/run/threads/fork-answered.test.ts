import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { says } from '../../../testing/play.ts'
import { chain, errorOf, type LogGraph, type Run, setUp, together } from '../../../testing/threads.ts'
import { type Ask, tool } from '../../index.ts'

const T = { thread: 't' }
const act = tool('act', { description: 'd', input: z.object({}), run: () => 'done' })
const fails = tool('fails', { description: 'd', input: z.object({}), run: () => Promise.reject(new Error('no')) })

const calls: Run = (_s, ctx) => ctx.callTool(act, {}).then(() => ({}))
const waits: Run = (_s, ctx) => ctx.ask('q', 'well?').then(() => ({}))
const callsAndWaits: Run = async (s, ctx) => {
  await calls(s, ctx)
  return waits(s, ctx)
}
const both: Run = async (s, ctx) => {
  await Promise.all([calls(s, ctx), waits(s, ctx)])
}
const twice: Run = async (s, ctx) => {
  await Promise.all([calls(s, ctx), calls(s, ctx)])
}
const inside =
  (run: Run): Run =>
  (_s, ctx) =>
    ctx.run(chain({ i: run }), {}).then(() => ({}))

const SUSPEND = { action: 'suspend', ask: {} }
const PROCEED = { action: 'proceed' }

/** Asks about each call of a tool, or about node `a`, and takes any answer. */
const asking = {
  toolCall: says('Gate', {
    'toolCall.before': (_shown, { answered }) => (answered === undefined ? SUSPEND : PROCEED),
  }),
  node: says('Gate', {
    'node.before': ({ subject }, { answered }) =>
      answered === undefined && subject.nodeName === 'a' ? SUSPEND : PROCEED,
  }),
}

/** What a fork of the last place comes to, once the first question of a policy or of the engine was answered. */
async function forked(
  g: LogGraph,
  { store, runtime }: ReturnType<typeof setUp>,
  { asks }: { readonly asks: readonly Ask[] },
): Promise<string> {
  const key = asks.find(({ askedBy }) => askedBy !== 'graph')?.key as string
  await errorOf(runtime.resume(g, 't', { [key]: 'retry' }))
  const error = await errorOf(runtime.fork('t'))
  expect(await store.lines('t')).toHaveLength(error === undefined ? 2 : 1)
  return error?.code ?? 'a branch'
}

describe('a fork from where an answer to a policy was given', () => {
  it.each<{ name: string; seam: 'node' | 'toolCall'; graph: LogGraph; is: string }>([
    { name: 'about a call that is settled', seam: 'toolCall', graph: chain({ a: callsAndWaits }), is: 'a branch' },
    {
      name: 'about a call of a task that is through',
      seam: 'toolCall',
      graph: together({ a: calls, b: waits }),
      is: 'a branch',
    },
    {
      name: 'about a call in a run inside',
      seam: 'toolCall',
      graph: chain({ a: inside(callsAndWaits) }),
      is: 'a branch',
    },
    {
      name: 'about a call that has to wait for a sibling',
      seam: 'toolCall',
      graph: chain({ a: both }),
      is: 'FORK_ANSWERED',
    },
    {
      name: 'about a node that has failed',
      seam: 'node',
      graph: chain({ a: (_s, ctx) => ctx.callTool(fails, {}) as Promise<never> }),
      is: 'a branch',
    },
    { name: 'about a node that waits', seam: 'node', graph: chain({ a: waits }), is: 'FORK_ANSWERED' },
    {
      name: 'about a node that waits further in',
      seam: 'node',
      graph: chain({ a: inside(waits) }),
      is: 'FORK_ANSWERED',
    },
  ])('$name comes to $is', async ({ seam, graph, is }) => {
    const up = setUp({ policies: [asking[seam]] })
    expect(await forked(graph, up, await up.runtime.run(graph, {}, T))).toBe(is)
  })
})

describe('a fork from where an answer to the engine was given', () => {
  it.each([
    { name: 'about a call that was made again', run: callsAndWaits, is: 'a branch' },
    { name: 'about a call that has to wait for another answer', run: twice, is: 'FORK_ANSWERED' },
  ])('$name comes to $is', async ({ run, is }) => {
    const g = chain({ a: run })
    const up = setUp()
    up.store.fail('before', { type: 'call' })
    await errorOf(up.runtime.run(g, {}, T))
    expect(await forked(g, up, await up.runtime.continue(g, 't'))).toBe(is)
  })
})
