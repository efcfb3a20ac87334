import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Clock, open, quiet } from '../../testing/clock.ts'
import { FailingStore } from '../../testing/failing-store.ts'
import { says } from '../../testing/play.ts'
import { Log, logNode } from '../../testing/threads.ts'
import {
  append,
  command,
  createRuntime,
  END,
  graph,
  type Keeping,
  MemoryStore,
  middleware,
  node,
  type Policy,
  policy,
  START,
  state,
  tool,
} from '../index.ts'
import type { Schema } from '../state/schema.ts'
import type { KeptOptions, OwnKeptScope } from './kept.ts'

const S = state({ log: append(z.string()) })
const act = tool('act', {
  description: 'acts',
  input: z.object({ n: z.number() }),
  idempotent: true,
  run: ({ n }) => n,
})

/** Counts calls of tools, and refuses the fourth. */
const limit = (scope: 'turn' | 'thread') =>
  policy({
    name: 'Limit',
    kept: { scope, schema: z.object({ calls: z.number().default(0) }) },
    seams: {
      toolCall: {
        before: async (_shown, ctx) => {
          await Promise.resolve()
          if (!ctx.revisit) ctx.kept.update(({ calls }) => ({ calls: calls + 1 }))
          return ctx.kept.value.calls > 3 ? { action: 'reject', reason: 'enough' } : { action: 'proceed' }
        },
      },
    },
  })

function runtimes(policies: readonly Policy[]) {
  const store = new MemoryStore()
  return { store, again: () => createRuntime({ store, policies }) }
}

/** A node that calls the tool some times at once, and then asks. */
const asking = (times: number) => {
  const work = node('work', S, async (_s, ctx) => {
    const calls = Array.from({ length: times }, (_, n) => ctx.callTool(act, { n }).then(String, () => 'refused'))
    const results = await Promise.all(calls)
    await ctx.ask('q', 'go on?')
    return { log: results }
  })
  return graph('g', S).edge(START, work).edge(work, END).check()
}

describe('what a policy keeps', () => {
  it('is changed by one consultation at a time, so parallel calls cannot slip past a limit', async () => {
    const { again } = runtimes([limit('turn')])
    const g = asking(6)
    await again().run(g, {}, { thread: 't' })
    const { state } = await again().resume(g, 't', 'yes')
    expect(state.log.filter((entry) => entry === 'refused')).toHaveLength(3)
  })

  it.each([
    { scope: 'turn', second: ['0', '1'] },
    { scope: 'thread', second: ['0', 'refused'] },
  ] as const)('holds for the $scope it was declared for', async ({ scope, second }) => {
    const { again } = runtimes([limit(scope)])
    const g = asking(2)
    for (const turn of [1, 2]) {
      await again().run(g, {}, { thread: 't' })
      const { state } = await again().resume(g, 't', turn)
      if (turn === 2) expect(state.log.slice(2)).toEqual(second)
    }
  })

  it('survives a pause and another process, and a call entered anew is not counted again', async () => {
    const seen: [calls: number, revisit: boolean][] = []
    const gate = policy({
      name: 'Gate',
      kept: { scope: 'turn', schema: z.object({ calls: z.number() }).default({ calls: 0 }) },
      seams: {
        toolCall: {
          before: (_shown, ctx) => {
            if (!ctx.revisit) ctx.kept.update(({ calls }) => ({ calls: calls + 1 }))
            seen.push([ctx.kept.value.calls, ctx.revisit])
            return ctx.answered === undefined
              ? { action: 'suspend', ask: { question: 'may it?' } }
              : { action: 'proceed' }
          },
        },
      },
    })
    const { again } = runtimes([gate])
    const work = node('work', S, async (_s, ctx) => ({ log: [String(await ctx.callTool(act, { n: 1 }))] }))
    const g = graph('g', S).edge(START, work).edge(work, END).check()
    await again().run(g, {}, { thread: 't' })
    expect((await again().resume(g, 't', 'yes')).state.log).toEqual(['1'])
    expect(seen).toEqual([
      [1, false],
      [1, true],
    ])
  })

  it('is counted anew at each visit of a node: only the same call entered again is a revisit', async () => {
    const { again } = runtimes([limit('turn')])
    const work = node('work', S, async (_s, ctx) => ({
      log: [await ctx.callTool(act, { n: 1 }).then(String, () => 'refused')],
    }))
    const g = graph('g', S)
      .edge(START, work)
      .when(work, (s) => s.log.length < 5, { then: work, otherwise: END })
      .check()
    expect((await again().run(g, {}, { thread: 't' })).state.log).toEqual(['1', '1', '1', 'refused', 'refused'])
  })

  it('is counted anew in each execution of a node: a retry makes other calls', async () => {
    const store = new MemoryStore()
    const retry = says('Retry', { 'nodeError.after': { action: 'retry' } })
    const work = node('work', S, async (_s, ctx) => {
      const result = await ctx.callTool(act, { n: ctx.attempt }).then(String, () => 'refused')
      if (ctx.attempt < 5) throw new Error('once more')
      return { log: [result] }
    })
    const g = graph('g', S).edge(START, work).edge(work, END).check()
    const runtime = createRuntime({ store, policies: [limit('turn'), retry], limits: { maxNodeAttempts: 5 } })
    expect((await runtime.run(g, {}, { thread: 't' })).state.log).toEqual(['refused'])
  })

  it.each([
    { seam: 'toolCall', retries: 0 },
    { seam: 'toolCall', retries: 1 },
    { seam: 'node', retries: 0 },
  ] as const)(
    'is counted anew at $seam when a run has failed, after $retries retries, and is continued',
    async ({ seam, retries }) => {
      let done = 0
      const fails = tool('fails', {
        description: 'fails at first',
        input: z.object({}),
        run: () => {
          if (++done <= retries + 1) throw new Error('broken')
          return done
        },
      })
      const counts = policy({
        name: 'Counts',
        kept: { scope: 'thread', schema: z.number().default(0) },
        seams: {
          [seam]: {
            before: (_shown: unknown, ctx: { revisit: boolean; kept: { update(to: (n: number) => number): void } }) => {
              if (!ctx.revisit) ctx.kept.update((n) => n + 1)
              return { action: 'proceed' }
            },
          },
        },
      })
      const retry = says('Retry', { 'nodeError.after': { action: 'retry' } })
      const work = node('work', S, async (_s, ctx) => void (await ctx.callTool(fails, {})))
      const g = graph('g', S).edge(START, work).edge(work, END).check()
      const runtime = createRuntime({ policies: [counts, retry], limits: { maxNodeAttempts: retries + 1 } })
      expect((await runtime.settle(g, {}, { thread: 't' })).status).toBe('failed')
      await runtime.continue(g, 't')
      const kept = (await runtime.history('t')).flatMap((record) => record.kept ?? [])
      expect([done, kept.at(-1)?.value]).toEqual([retries + 2, retries + 2])
    },
  )

  it('knows which consultations have changed it for as long as they may come again: until the superstep is through', async () => {
    const known: boolean[][] = []
    const { again } = runtimes([
      says(
        'Limit',
        {
          'node.before': async (_shown, ctx) => {
            const marks = (await again().history('t')).flatMap(({ kept }) => kept?.map(({ mark }) => mark) ?? [])
            known.push(marks.map((mark) => ctx.question.site.kept.wasChangedAt('Limit', mark)))
            ctx.kept.update(() => ({ calls: marks.length }))
            return { action: 'proceed' }
          },
        },
        { kept: { scope: 'turn', schema: z.object({ calls: z.number().default(0) }) } },
      ),
    ])
    const [a, b, c] = [logNode('a', () => ({})), logNode('b', () => ({})), logNode('c', () => ({}))]
    const g = graph('g', Log).edge(START, a).edge(a, b).edge(b, c).edge(c, END).check()
    await again().run(g, {}, { thread: 't' })
    expect(known).toEqual([[], [false], [false, false]])
  })

  it('is never rolled back: not by a refusal, not by a policy after it, not by a retry of the node', async () => {
    const { again } = runtimes([limit('turn'), says('No', { 'toolCall.before': { action: 'reject', reason: 'no' } })])
    const g = asking(4)
    await again().run(g, {}, { thread: 't' })
    const records = await again().history('t')
    const last = records.flatMap((record) => record.kept ?? []).at(-1)
    expect(last).toMatchObject({ by: 'Limit', scope: 'turn', value: { calls: 4 } })
  })

  it('goes along with a fork, and from there each branch has its own', async () => {
    const { again } = runtimes([limit('thread')])
    const g = asking(2)
    await again().run(g, {}, { thread: 't' })
    await again().resume(g, 't', 1)
    await again().fork('t', { name: 'b' })
    for (const branch of ['main', 'b']) {
      await again().run(g, {}, { thread: 't', branch })
      const { state } = await again().resume(g, 't', 2, { branch })
      expect(state.log.slice(2)).toEqual(['0', 'refused'])
    }
  })

  it('is in a fork what it was at the place that was forked, not what came of it since', async () => {
    const { again } = runtimes([limit('thread')])
    const g = asking(2)
    await again().run(g, {}, { thread: 't' })
    await again().resume(g, 't', 1)
    const at = (await again().history('t')).at(-1)?.seq as number
    const turn = async (branch: string) => {
      await again().run(g, {}, { thread: 't', branch })
      return (await again().resume(g, 't', 2, { branch })).state.log.slice(2)
    }
    expect(await turn('main')).toEqual(['0', 'refused'])
    await again().fork('t', { at, name: 'b' })
    expect(await turn('b')).toEqual(['0', 'refused'])
  })

  it('is kept for the run where there is no thread', async () => {
    const work = node('work', S, async (_s, ctx) => {
      const results: string[] = []
      for (const n of [1, 2, 3, 4]) results.push(await ctx.callTool(act, { n }).then(String, () => 'refused'))
      return { log: results }
    })
    const g = graph('g', S).edge(START, work).edge(work, END).check()
    const runtime = createRuntime({ policies: [limit('thread')] })
    for (const _ of [1, 2]) expect((await runtime.run(g, {})).state.log).toEqual(['1', '2', '3', 'refused'])
  })

  it.each([
    { name: 'a value that its schema refuses', change: () => ({ calls: 'many' }), says: 'keeps what it may not' },
    { name: 'a value that is no JSON', change: () => ({ calls: 1, at: new Map() }), says: 'keeps what it may not' },
    { name: 'more than 64 KiB', change: () => ({ calls: 1, text: 'x'.repeat(70_000) }), says: 'keeps more than 65536' },
  ])('may not be $name: that is the policy’s failure', async ({ change, says: why }) => {
    const bad = policy({
      name: 'Bad',
      kept: { scope: 'turn', schema: z.looseObject({ calls: z.number().default(0) }) },
      seams: {
        toolCall: {
          before: (_shown, ctx) => {
            ctx.kept.update(change as never)
            return { action: 'proceed' }
          },
        },
      },
    })
    const { again } = runtimes([bad])
    await expect(again().run(asking(1), {}, { thread: 't' })).rejects.toThrow(why)
  })

  it.each(['before', 'after'] as const)(
    'counts each call once, whichever write is lost in a crash, also when its outcome was there and not judged yet (%s)',
    async (cut) => {
      const looks = says('Looks', { 'toolCall.after': { action: 'pass' } })
      const work = node('work', S, async (_s, ctx) => {
        const calls = [1, 2, 3].map((n) => ctx.callTool(act, { n }).then(String))
        return { log: await Promise.all(calls) }
      })
      const g = graph('g', S).edge(START, work).edge(work, END).check()
      const play = async (nth: number) => {
        const store = new FailingStore({ late: true }).fail(cut, { nth })
        const runtime = () => createRuntime({ store, policies: [limit('thread'), looks] })
        const { status } = await runtime().settle(g, {}, { thread: 't' })
        if (status === 'failed') {
          const went = await runtime()
            .continue(g, 't')
            .catch((error) => ({ code: error.code }))
          if ('code' in went && went.code === 'THREAD_UNKNOWN') await runtime().run(g, {}, { thread: 't' })
        }
        const kept = (await runtime().history('t')).flatMap((record) => record.kept ?? []).at(-1)
        return { status, kept: kept?.value }
      }
      let nth = 1
      for (; ; nth++) {
        const { status, kept } = await play(nth)
        expect({ nth, kept }).toEqual({ nth, kept: { calls: 3 } })
        if (status === 'completed') break
      }
      expect(nth).toBeGreaterThan(5)
    },
  )

  it('is there for the tools of a middleware that declares it', async () => {
    const asked = (keeping: Keeping<{ calls: number }>) => {
      const count = tool('count', {
        description: 'counts',
        input: z.object({}),
        run: (_args, ctx) => ctx.keptOf(keeping).update(({ calls }) => ({ calls: calls + 1 })),
      })
      const work = node('work', S, async (_s, ctx) => ({ log: [JSON.stringify(await ctx.callTool(count, {}))] }))
      return graph('g', S).edge(START, work).edge(work, END).check()
    }
    const { again } = runtimes([])
    const kept = { scope: 'thread', schema: z.object({ calls: z.number().default(0) }) } as const
    for (const _ of [1, 2]) await again().run(asked({ name: 'Counter', kept }), {}, { thread: 't' })
    const { state } = await again().stateAt(asked({ name: 'Counter', kept }), 't')
    expect(state?.log).toEqual(['{"calls":1}', '{"calls":2}'])
    await expect(again().run(asked({ name: 'Forgetful' }), {})).rejects.toMatchObject({ code: 'KEPT_MISSING' })
  })

  it('is there only for a policy that declares it', async () => {
    const nosy = policy({
      name: 'Nosy',
      seams: {
        toolCall: { before: (_shown, ctx) => (ctx.kept.value === 1 ? { action: 'proceed' } : { action: 'proceed' }) },
      },
    })
    const { again } = runtimes([nosy])
    await expect(again().run(asking(1), {}, { thread: 't' })).rejects.toMatchObject({ code: 'MIDDLEWARE_FAILED' })
  })
})

describe('two middleware of one name in one turn', () => {
  interface Counted {
    readonly calls: number
  }
  type Declared = KeptOptions<Counted, OwnKeptScope>
  const counts = () => z.object({ calls: z.number().default(0) })
  const bare = (): Schema<unknown, Counted> => ({
    '~standard': { version: 1, vendor: 'test', validate: (held = { calls: 0 }) => ({ value: held as Counted }) },
  })
  /** Counts tool calls under the name that the other one has too. */
  const counter = (kept: Declared, seen: unknown[] = []) =>
    middleware({
      name: 'Limit',
      kept,
      beforeTool: ({ kept }) => void seen.push(kept.update(({ calls }) => ({ calls: calls + 1 }))),
    })
  const caller = (own: ReturnType<typeof counter>) => {
    const work = node('work', S, async (_s, ctx) => void (await ctx.callTool(act, { n: 1 })))
    return graph('inner', S, { middleware: [own] })
      .edge(START, work)
      .edge(work, END)
      .check()
  }
  /** Calls the tool, and then has another graph call it. */
  const outer = (own: ReturnType<typeof counter>, child: ReturnType<typeof caller>, asks = false) => {
    const work = node('work', S, async (_s, ctx) => {
      await ctx.callTool(act, { n: 1 })
      if (asks) await ctx.ask('q', 'go on?')
      await ctx.run(child, {})
    })
    return graph('outer', S, { middleware: [own] })
      .edge(START, work)
      .edge(work, END)
      .check()
  }

  it.each([
    { name: 'the very same declaration', own: counts(), other: undefined },
    { name: 'schemas of one JSON Schema', own: counts(), other: counts() },
  ])('share what they keep with $name, so that a limit counts across graphs', async ({ own, other }) => {
    const seen: unknown[] = []
    const child = caller(counter({ scope: 'turn', schema: other ?? own }, seen))
    await createRuntime().run(outer(counter({ scope: 'turn', schema: own }, seen), child), {})
    expect(seen).toEqual([{ calls: 1 }, { calls: 2 }])
  })

  it.each<{ name: string; own?: Schema<unknown, Counted>; other: KeptOptions<unknown, OwnKeptScope>; says: string }>([
    {
      name: 'another scope',
      other: { scope: 'thread', schema: counts() },
      says: 'one for the turn and one for the thread',
    },
    {
      name: 'another schema',
      other: { scope: 'turn', schema: z.object({ tokens: z.number() }) },
      says: 'another schema',
    },
    {
      name: 'schemas that have no JSON Schema',
      own: bare(),
      other: { scope: 'turn', schema: bare() },
      says: 'another schema',
    },
  ])('are refused with $name, before the run inside begins', async ({ own, other, says: why }) => {
    const seen: unknown[] = []
    const g = outer(counter({ scope: 'turn', schema: own ?? counts() }, seen), caller(counter(other as Declared, seen)))
    const { error } = await createRuntime().settle(g, {})
    expect(error).toMatchObject({ code: 'KEPT_OTHER', at: { middleware: 'Limit' } })
    expect((error as Error).message).toContain(why)
    expect(seen).toEqual([{ calls: 1 }])
  })

  it('are refused by a tool that reads what the other one keeps', async () => {
    const other: Keeping<unknown> = { name: 'Limit', kept: { scope: 'turn', schema: z.object({ tokens: z.number() }) } }
    const reads = tool('reads', {
      description: 'reads',
      input: z.object({}),
      run: (_args, ctx) => ctx.keptOf(other).value,
    })
    const work = node('work', S, async (_s, ctx) => void (await ctx.callTool(reads, {})))
    const g = graph('g', S, { middleware: [counter({ scope: 'turn', schema: counts() })] })
      .edge(START, work)
      .edge(work, END)
      .check()
    await expect(createRuntime().run(g, {})).rejects.toMatchObject({ code: 'KEPT_OTHER' })
  })

  it('are refused when the run goes on elsewhere just the same', async () => {
    const { again } = runtimes([])
    const make = () =>
      outer(counter({ scope: 'turn', schema: counts() }), caller(counter({ scope: 'thread', schema: counts() })), true)
    await again().run(make(), {}, { thread: 't' })
    await expect(again().resume(make(), 't', 'yes')).rejects.toMatchObject({ code: 'KEPT_OTHER' })
  })

  it.each<{ name: string; then: KeptOptions<unknown, OwnKeptScope>; says: string }>([
    {
      name: 'for another scope',
      then: { scope: 'turn', schema: counts() },
      says: 'for the thread, and it declares the turn',
    },
    {
      name: 'what does not fit the schema',
      then: { scope: 'thread', schema: z.object({ calls: z.number(), since: z.string() }) },
      says: 'since: ',
    },
  ])('are told apart in another process where the first one kept $name', async ({ then, says: why }) => {
    const { again } = runtimes([])
    await again().run(caller(counter({ scope: 'thread', schema: counts() })), {}, { thread: 't' })
    const { error } = await again().settle(caller(counter(then as Declared)), {}, { thread: 't' })
    expect(error).toMatchObject({ code: 'MIDDLEWARE_FAILED', cause: { code: 'KEPT_OTHER' } })
    expect((error as Error).message).toContain(why)
  })

  it('go on, in another process, with a schema that has grown by what has a default', async () => {
    const seen: unknown[] = []
    const { again } = runtimes([])
    await again().run(caller(counter({ scope: 'thread', schema: counts() })), {}, { thread: 't' })
    const grown = z.object({ calls: z.number().default(0), since: z.string().default('long') })
    const look = middleware({
      name: 'Limit',
      kept: { scope: 'thread', schema: grown },
      beforeTool: ({ kept }) => void seen.push(kept.value),
    })
    await again().run(caller(look as never), {}, { thread: 't' })
    expect(seen).toEqual([{ calls: 1, since: 'long' }])
  })
})

const nothing = { scope: 'turn', schema: z.object({ calls: z.number().default(0) }) } as const
const forEver = () => new Promise<undefined>(() => {})

/** A graph of one node that calls the tool so many times at once. */
const calling = (times = 1) => {
  const work = node('work', S, async (_s, ctx) => {
    await Promise.all(Array.from({ length: times }, (_, n) => ctx.callTool(act, { n })))
  })
  return graph('calling', S).edge(START, work).edge(work, END).check()
}

/** A graph whose node runs another one for a second at most, and calls the tool after that. */
const outliving = (child: ReturnType<typeof calling>, own: Parameters<typeof graph>[2] = {}) => {
  const work = node('work', S, async (_s, ctx) => {
    const code = await ctx.run(child, {}, { timeoutMs: 1_000 }).then(
      () => 'in time',
      (error) => error.code,
    )
    await ctx.callTool(act, { n: 1 })
    return { log: [code] }
  })
  return graph('outliving', S, own).edge(START, work).edge(work, END).check()
}

describe('the turn at what a middleware keeps', () => {
  /** Hangs at the first tool call, and has a say in how the run ended. */
  const hanging = () => {
    let calls = 0
    return says(
      'Limit',
      {
        'toolCall.before': () => (calls++ === 0 ? forEver() : { action: 'proceed' }),
        'run.after': { action: 'pass' },
      },
      { kept: nothing },
    )
  }

  it.each([{ thread: undefined }, { thread: 't' }])(
    'is given back when the run is cancelled while its policy is consulted (thread: $thread)',
    async ({ thread }) => {
      const limit = hanging()
      const cancel = new AbortController()
      const ending = createRuntime({ policies: [limit] }).settle(calling(), {}, { thread, signal: cancel.signal })
      await quiet()
      cancel.abort()
      expect((await ending).status).toBe('cancelled')
      expect(limit.asked.map(({ at }) => at)).toEqual(['toolCall.before', 'run.after'])
    },
  )

  it.each([
    { name: 'throws', answer: () => Promise.reject(new Error('it broke')) },
    { name: 'answers nonsense', answer: () => 5 },
  ])('is given back by a policy that $name and has a say in how the run ended', async ({ answer }) => {
    const halves = { 'toolCall.before': answer as never, 'run.after': { action: 'pass' } } as const
    const limit = says('Limit', halves, { kept: nothing })
    const { error } = await createRuntime({ policies: [limit] }).settle(calling(), {})
    expect(error).toMatchObject({ code: 'MIDDLEWARE_FAILED' })
    expect(limit.asked.map(({ at }) => at)).toEqual(['toolCall.before', 'run.after'])
  })

  it('is given back when the time of the run is over', async () => {
    const platform = new Clock()
    const ending = createRuntime({ policies: [hanging()], platform }).settle(calling(), {}, { timeoutMs: 1_000 })
    await platform.pass(1_000)
    expect((await ending).error).toMatchObject({ code: 'RUN_TIMED_OUT' })
  })

  it('is given back when the time of a child run is over: the run that started it goes on', async () => {
    const platform = new Clock()
    const ending = createRuntime({ policies: [hanging()], platform }).settle(outliving(calling()), {})
    await platform.pass(1_000)
    expect((await ending).state).toEqual({ log: ['RUN_TIMED_OUT'] })
  })

  it('is given back by a hook that waits for what never comes, once nobody waits for its call', async () => {
    const platform = new Clock()
    let calls = 0
    const own = middleware({ name: 'own', kept: nothing, beforeTool: () => (calls++ === 0 ? forEver() : undefined) })
    const work = node('work', S, async (_s, ctx) => void (await ctx.callTool(act, { n: 1 })), { timeoutMs: 1_000 })
    const saved = middleware({ name: 'saved', onError: (ctx) => ctx.retry() })
    const g = graph('g', S, { middleware: [own, saved] })
      .edge(START, work)
      .edge(work, END)
      .check()
    const ending = createRuntime({ platform }).settle(g, {})
    await platform.pass(1_000)
    expect((await ending).status).toBe('completed')
    expect(calls).toBe(2)
  })

  it('is given back by a hook whose model is asked in a run that has ended', async () => {
    const platform = new Clock()
    const silent = { model: 'silent', chat: () => new Promise<never>(() => {}) }
    let calls = 0
    const own = middleware({
      name: 'own',
      kept: nothing,
      beforeTool: async (ctx) => {
        if (calls++ === 0) await ctx.callModel(silent, { messages: [{ role: 'user', content: 'may it?' }] })
      },
    })
    const work = node('work', S, async (_s, ctx) => void (await ctx.callTool(act, { n: 1 })))
    const child = graph('child', S, { middleware: [own] })
      .edge(START, work)
      .edge(work, END)
      .check()
    const ending = createRuntime({ platform }).settle(outliving(child, { middleware: [own] }), {})
    await platform.pass(1_000)
    expect((await ending).state).toEqual({ log: ['RUN_TIMED_OUT'] })
  })

  it('is given to others while a hook waits for a person, and then taken again', async () => {
    const { again } = runtimes([])
    const own = middleware({
      name: 'own',
      kept: nothing,
      beforeNode: async (ctx) => {
        if (ctx.nodeName === 'split') return
        await ctx.ask('q', ctx.nodeName)
        await Promise.resolve()
        ctx.kept.update(({ calls }) => ({ calls: calls + 1 }))
      },
    })
    const [a, b] = [logNode('a', () => ({ log: ['a'] })), logNode('b', () => ({ log: ['b'] }))]
    const split = logNode('split', () => command({ goto: [a, b] }), { goto: [a, b] })
    const g = graph('g', Log, { middleware: [own] })
      .edge(START, split)
      .edge(a, END)
      .edge(b, END)
      .check()
    const { asks } = await again().run(g, {}, { thread: 't' })
    expect(asks.map(({ key }) => key)).toEqual(['a:q', 'b:q'])
    const { state } = await again().resume(g, 't', { 'a:q': 1, 'b:q': 2 })
    expect(state.log).toEqual(['a', 'b'])
    const records = await again().history('t')
    expect(records.flatMap(({ kept }) => kept ?? []).at(-1)?.value).toEqual({ calls: 2 })
  })

  it('is not taken any more in a run that was cancelled: nobody is consulted then', async () => {
    const first = open<void>()
    const limit = says(
      'Limit',
      { 'toolCall.before': () => first.promise.then(() => ({ action: 'proceed' })) },
      { kept: nothing },
    )
    const cancel = new AbortController()
    const ending = createRuntime({ policies: [limit] }).settle(calling(3), {}, { signal: cancel.signal })
    await quiet()
    cancel.abort()
    expect((await ending).status).toBe('cancelled')
    first.resolve()
    await quiet()
    expect(limit.asked).toHaveLength(1)
  })

  it('is waited for at nobody’s expense: the time of a half begins anew when it is there', async () => {
    const platform = new Clock()
    const limit = says(
      'Limit',
      {
        'toolCall.before': () =>
          new Promise((resolve) => {
            platform.set(4_000, () => resolve({ action: 'proceed' }))
          }),
      },
      { kept: nothing },
    )
    const ending = createRuntime({ policies: [limit], platform }).settle(calling(5), {})
    await platform.pass(20_000)
    expect((await ending).status).toBe('completed')
  })
})
