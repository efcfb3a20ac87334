import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Cut, FailingStore } from '../../testing/failing-store.ts'
import { says } from '../../testing/play.ts'
import {
  append,
  createRuntime,
  END,
  graph,
  MemoryStore,
  MiddlewareError,
  messageOf,
  middleware,
  node,
  type Policy,
  type PolicyOptions,
  policy,
  type RunOptions,
  START,
  type Store,
  state,
  tool,
} from '../index.ts'
import { MOST_TRIES } from './kept.ts'

const S = state({ log: append(z.string()) })
const act = tool('act', {
  description: 'acts',
  input: z.object({ n: z.number() }),
  idempotent: true,
  run: ({ n }) => n,
})

const SCHEMA = z.object({ calls: z.number().default(0) })
type Counted = z.infer<typeof SCHEMA>
type Before = NonNullable<NonNullable<PolicyOptions<Counted>['seams']['toolCall']>['before']>

const by = (name: string): Required<Pick<RunOptions, 'principal'>> => ({ principal: { kind: 'token', id: name } })

const keeping = (before: Before, rules: Partial<PolicyOptions<Counted>> = {}): Policy =>
  policy({ name: 'Limit', kept: { scope: 'principal', schema: SCHEMA }, seams: { toolCall: { before } }, ...rules })

/** Counts what it lets through, and refuses the fourth; waits in between, so that calls at once could overtake it. */
const limit: Before = async (_shown, ctx) => {
  const { calls } = ctx.kept.value
  await new Promise((resolve) => setImmediate(resolve))
  if (ctx.revisit) return { action: 'proceed' }
  if (calls === 3) return { action: 'reject', reason: 'enough' }
  ctx.kept.update(() => ({ calls: calls + 1 }))
  return { action: 'proceed' }
}

const count: Before = (_shown, ctx) => {
  if (!ctx.revisit) ctx.kept.update(({ calls }) => ({ calls: calls + 1 }))
  return { action: 'proceed' }
}

/** A graph whose one node calls the tool so many times at once. */
function calling(times: number) {
  const work = node('work', S, async (_state, ctx) => ({
    log: await Promise.all(
      Array.from({ length: times }, (_, n) => ctx.callTool(act, { n }).then(String, () => 'refused')),
    ),
  }))
  return graph('g', S).edge(START, work).edge(work, END).check()
}

const keptOf = async (store: Store, principal: string, name = 'Limit') => {
  const text = await store.kept.read(name, principal)
  return text === undefined ? undefined : JSON.parse(text)
}
const inAll = (logs: readonly (readonly string[])[]) => logs.flat().filter((entry) => entry !== 'refused').length

describe('what a policy keeps of a principal', () => {
  it('holds over all that is run for them, on threads and without, at once and one after the other', async () => {
    const store = new MemoryStore()
    const one = () => createRuntime({ store, policies: [keeping(limit)] })
    const [first, second] = [one(), one()]
    const runs = [
      first.run(calling(2), {}, { ...by('ann'), thread: 't' }),
      first.run(calling(2), {}, { ...by('ann'), thread: 'u' }),
      second.run(calling(2), {}, by('ann')),
    ]
    expect(inAll((await Promise.all(runs)).map(({ state }) => state.log))).toBe(3)
    expect((await one().run(calling(1), {}, { ...by('ann'), thread: 'v' })).state.log).toEqual(['refused'])
    expect(await keptOf(store, 'ann')).toEqual({ calls: 3 })
  })

  it('binds nobody else, and is not gone with a thread or a fork of it', async () => {
    const store = new MemoryStore()
    const one = createRuntime({ store, policies: [keeping(limit)] })
    await one.run(calling(3), {}, { ...by('ann'), thread: 't' })
    const branch = await one.fork('t', { at: 1 })
    expect((await one.run(calling(1), {}, { ...by('ann'), ...branch })).state.log.at(-1)).toBe('refused')
    await store.remove('t')
    expect((await one.run(calling(1), {}, { ...by('ann'), thread: 't' })).state.log).toEqual(['refused'])
    expect((await one.run(calling(1), {}, by('bob'))).state.log).toEqual(['0'])
  })

  it('is that of whoever began the turn, whoever goes on with it', async () => {
    const store = new MemoryStore()
    const one = createRuntime({ store, policies: [keeping(count)] })
    const work = node('work', S, async (_s, ctx) => {
      await ctx.ask('q', 'go on?')
      return { log: [String(await ctx.callTool(act, { n: 1 }))] }
    })
    const g = graph('g', S).edge(START, work).edge(work, END).check()
    await one.run(g, {}, { ...by('ann'), thread: 't' })
    await one.resume(g, 't', 'yes', { ...by('bob'), startedBy: 'ann' })
    expect([await keptOf(store, 'ann'), await keptOf(store, 'bob')]).toEqual([{ calls: 1 }, undefined])
  })

  it('is shared by graphs in graphs', async () => {
    const store = new MemoryStore()
    const child = calling(2)
    const work = node('work', S, async (_s, ctx) => ({ log: (await ctx.run(child, {})).log }))
    const g = graph('outer', S).edge(START, work).edge(work, END).check()
    await createRuntime({ store, policies: [keeping(count)] }).run(g, {}, by('ann'))
    expect(await keptOf(store, 'ann')).toEqual({ calls: 2 })
  })

  it('is counted once for a call that waited for a person: entered anew it is a revisit, also elsewhere', async () => {
    const store = new MemoryStore()
    const seen: boolean[] = []
    const asking: Before = (shown, ctx) => {
      seen.push(ctx.revisit)
      count(shown, ctx)
      return ctx.answered === undefined ? { action: 'suspend', ask: { question: 'may it?' } } : { action: 'proceed' }
    }
    const again = () => createRuntime({ store, policies: [keeping(asking)] })
    await again().run(calling(1), {}, { ...by('ann'), thread: 't' })
    await again().resume(calling(1), 't', 'yes', by('ann'))
    expect([seen, await keptOf(store, 'ann')]).toEqual([[false, true], { calls: 1 }])
  })

  it('is counted anew for a call that is made again in a fork: it is made in both', async () => {
    const store = new MemoryStore()
    const one = createRuntime({ store, policies: [keeping(count)] })
    let done = 0
    const asks = tool('act', {
      description: 'asks, and acts',
      input: z.object({}),
      run: async (_input, ctx) => {
        await ctx.ask('q', 'go on?')
        return ++done
      },
    })
    const work = node('work', S, async (_s, ctx) => ({ log: [String(await ctx.callTool(asks, {}))] }))
    const g = graph('g', S).edge(START, work).edge(work, END).check()
    await one.run(g, {}, { ...by('ann'), thread: 't' })
    const { branch } = await one.fork('t', {})
    for (const line of [{}, { branch }]) await one.resume(g, 't', 'yes', { ...by('ann'), ...line })
    expect([done, await keptOf(store, 'ann')]).toEqual([2, { calls: 2 }])
  })

  it('is counted anew for a call that is made again because the run failed and was continued', async () => {
    const store = new MemoryStore()
    const one = createRuntime({ store, policies: [keeping(count)] })
    let done = 0
    const fails = tool('act', {
      description: 'fails once',
      input: z.object({}),
      run: () => {
        if (++done === 1) throw new Error('broken')
        return done
      },
    })
    const work = node('work', S, async (_s, ctx) => ({ log: [String(await ctx.callTool(fails, {}))] }))
    const g = graph('g', S).edge(START, work).edge(work, END).check()
    expect((await one.settle(g, {}, { ...by('ann'), thread: 't' })).status).toBe('failed')
    await one.continue(g, 't', by('ann'))
    expect([done, await keptOf(store, 'ann')]).toEqual([2, { calls: 2 }])
  })

  it('is counted anew for a call that was cancelled while it was made, and is made again', async () => {
    const store = new MemoryStore()
    const one = createRuntime({ store, policies: [keeping(count)] })
    const cancel = new AbortController()
    let done = 0
    const hangs = tool('act', {
      description: 'hangs at first',
      input: z.object({}),
      idempotent: true,
      run: () => {
        if (++done > 1) return done
        cancel.abort()
        return new Promise<number>(() => {})
      },
    })
    const work = node('work', S, async (_s, ctx) => ({ log: [String(await ctx.callTool(hangs, {}))] }))
    const g = graph('g', S).edge(START, work).edge(work, END).check()
    const options = { ...by('ann'), thread: 't', signal: cancel.signal }
    expect((await one.settle(g, {}, options)).status).toBe('cancelled')
    expect((await one.history('t')).flatMap(({ kept = [] }) => kept)).toHaveLength(1)
    await one.continue(g, 't', by('ann'))
    expect([done, await keptOf(store, 'ann')]).toEqual([2, { calls: 2 }])
  })

  it('is counted once for an outcome that is judged again where the run was cut off', async () => {
    const store = new MemoryStore()
    let broken = true
    const after = keeping(count, {
      seams: {
        toolCall: {
          after: (_shown, ctx) => {
            if (!ctx.revisit) ctx.kept.update(({ calls }) => ({ calls: calls + 1 }))
            return { action: 'pass' }
          },
        },
      },
    })
    const breaks = policy({
      name: 'Breaks',
      seams: {
        toolCall: {
          after: () => {
            if (broken) throw new Error('not now')
            return { action: 'pass' }
          },
        },
      },
    })
    const one = createRuntime({ store, policies: [after, breaks] })
    expect((await one.settle(calling(1), {}, { ...by('ann'), thread: 't' })).status).toBe('failed')
    broken = false
    await one.continue(calling(1), 't', by('ann'))
    expect(await keptOf(store, 'ann')).toEqual({ calls: 1 })
  })

  it('is counted once for a call that is looked at a last time', async () => {
    const store = new MemoryStore()
    const modifies = says('Other', { 'toolCall.before': { action: 'modify', input: { n: 7 } } })
    const one = createRuntime({ store, policies: [keeping(count), modifies] })
    expect((await one.run(calling(1), {}, by('ann'))).state.log).toEqual(['7'])
    expect(await keptOf(store, 'ann')).toEqual({ calls: 1 })
  })

  it.each([
    {
      what: 'the thread’s',
      fails: (store: FailingStore, ...fault: Fault) => void store.fail(fault[0], { nth: fault[1] }),
    },
    { what: 'its own', fails: (store: FailingStore, ...fault: Fault) => failKept(store, ...fault) },
  ])(
    'is never less than what was done, whichever of $what writes fails, and is not told to the thread',
    async ({ fails }) => {
      for (const cut of ['before', 'after'] as const) {
        for (let nth = 1; nth <= 6; nth++) {
          const store = new FailingStore()
          fails(store, cut, nth)
          let done = 0
          const acts = tool('act', { description: 'acts', input: z.object({}), idempotent: true, run: () => ++done })
          const work = node('work', S, async (_s, ctx) => {
            for (let i = 0; i < 2; i++) await ctx.callTool(acts, {})
            return {}
          })
          const g = graph('g', S).edge(START, work).edge(work, END).check()
          const one = createRuntime({ store, policies: [keeping(count)] })
          const { status } = await one.settle(g, {}, { ...by('ann'), thread: 't' })
          const goOn = () => one.continue(g, 't', by('ann'))
          if (status === 'failed') await goOn().catch(() => one.run(g, {}, { ...by('ann'), thread: 't' }))
          expect((await keptOf(store, 'ann')).calls).toBeGreaterThanOrEqual(done)
          for (const { kept = [] } of await one.history('t')) for (const { value } of kept) expect(value).toBeNull()
        }
      }
    },
  )
})

type Fault = readonly [cut: Cut, nth: number]

/** The `nth` write of what is kept fails, once. */
function failKept({ kept }: FailingStore, cut: Cut, nth: number): void {
  const write = kept.write.bind(kept)
  let left = nth
  kept.write = (...change) => {
    const fails = --left === 0
    if (fails && cut === 'before') throw new Error('not written')
    const written = write(...change)
    if (fails) throw new Error('written, and nobody is told')
    return written
  }
}

describe('a policy whose principal another process has counted meanwhile', () => {
  /** Counts, and so does somebody else each time before it has answered, so many times. */
  const raced = (store: Store, times: number, rules: Partial<PolicyOptions<Counted>> = {}) => {
    const seen: [calls: number, revisit: boolean][] = []
    const before: Before = async (_shown, ctx) => {
      const { calls } = ctx.kept.value
      seen.push([calls, ctx.revisit])
      if (seen.length <= times) {
        const was = await store.kept.read('Limit', 'ann')
        await store.kept.write('Limit', 'ann', JSON.stringify({ calls: calls + 10 }), was)
      }
      ctx.kept.update(() => ({ calls: calls + 1 }))
      return { action: 'proceed', labels: [`saw-${calls}`], warnings: [`saw ${calls}`] }
    }
    return { seen, gate: keeping(before, rules) }
  }

  it('is consulted again with what is kept then, and what it said before is as if it had not been said', async () => {
    const store = new MemoryStore()
    const { seen, gate } = raced(store, 2)
    const { warnings, state } = await createRuntime({ store, policies: [gate] }).run(calling(1), {}, by('ann'))
    expect(seen).toEqual([
      [0, false],
      [10, false],
      [20, false],
    ])
    expect(await keptOf(store, 'ann')).toEqual({ calls: 21 })
    expect(state.log).toEqual(['0'])
    expect(warnings.map(({ message }) => message)).toEqual(['policy "Limit": saw 20'])
  })

  it('has failed when that never ends', async () => {
    const store = new MemoryStore()
    const { seen, gate } = raced(store, Number.POSITIVE_INFINITY)
    const { error } = await createRuntime({ store, policies: [gate] }).settle(calling(1), {}, by('ann'))
    expect(error).toBeInstanceOf(MiddlewareError)
    expect((error as MiddlewareError).cause).toMatchObject({ code: 'KEPT_CONTENDED' })
    expect(seen).toHaveLength(MOST_TRIES)
  })

  it('is passed then, if that is its failure rule', async () => {
    const store = new MemoryStore()
    const { gate } = raced(store, Number.POSITIVE_INFINITY, { onFailure: 'pass' })
    const { state, warnings } = await createRuntime({ store, policies: [gate] }).run(calling(1), {}, by('ann'))
    expect(state.log).toEqual(['0'])
    expect(warnings[0]?.message).toContain('100 times in a row another process')
  })
})

describe('what a policy has set of what it keeps of a principal', () => {
  const set = async (before: Before, rules: Partial<PolicyOptions<Counted>> = {}) => {
    const store = new MemoryStore()
    const end = await createRuntime({ store, policies: [keeping(before, rules)] }).settle(calling(1), {}, by('ann'))
    return { ...end, kept: await keptOf(store, 'ann') }
  }

  it('is not written when it throws: there is no answer', async () => {
    const throwing: Before = (shown, ctx) => {
      count(shown, ctx)
      throw new Error('broken')
    }
    expect(await set(throwing)).toMatchObject({ status: 'failed', kept: undefined })
  })

  it('is written when its answer is nonsense: what is let through all the same was counted', async () => {
    const nonsense: Before = (shown, ctx) => {
      count(shown, ctx)
      return { action: 'maybe' } as never
    }
    expect(await set(nonsense, { onFailure: 'pass' })).toMatchObject({ status: 'completed', kept: { calls: 1 } })
  })

  it('is written whatever becomes of the call', async () => {
    const refusing: Before = (shown, ctx) => {
      count(shown, ctx)
      return { action: 'reject', reason: 'no' }
    }
    expect(await set(refusing)).toMatchObject({ state: { log: ['refused'] }, kept: { calls: 1 } })
  })

  it('is written once it has answered, and not changed after that', async () => {
    let ctxOf: Parameters<Before>[1] | undefined
    const before: Before = (shown, ctx) => {
      ctxOf = ctx
      return count(shown, ctx)
    }
    expect(await set(before)).toMatchObject({ kept: { calls: 1 } })
    expect(() => ctxOf?.kept.update(() => ({ calls: 99 }))).toThrow(expect.objectContaining({ code: 'KEPT_LATE' }))
  })

  it('is its failure when what was kept is something else', async () => {
    const store = new MemoryStore()
    store.kept.write('Limit', 'ann', '{"calls":"many"}', undefined)
    const { error } = await createRuntime({ store, policies: [keeping(count)] }).settle(calling(1), {}, by('ann'))
    expect((error as Error).cause).toMatchObject({ code: 'KEPT_OTHER' })
  })

  it('is its failure when the store cannot say what is kept', async () => {
    const store = new MemoryStore()
    store.kept.read = () => {
      throw new Error('the disk is gone')
    }
    const one = (rules: Partial<PolicyOptions<Counted>>) =>
      createRuntime({ store, policies: [keeping(count, rules)] }).settle(calling(2), {}, by('ann'))
    const { error } = await one({})
    expect([error instanceof MiddlewareError, messageOf(error)]).toEqual([
      true,
      expect.stringContaining('the disk is gone'),
    ])
    expect((await one({ onFailure: 'pass' })).state.log).toEqual(['0', '1'])
  })
})

describe('a policy that keeps by principal, in a run that is for nobody', () => {
  const store = () => new MemoryStore()
  const refused = { code: 'KEPT_PRINCIPAL', message: expect.stringContaining('policy "Limit" keeps by principal') }

  it('refuses the run before it begins, on a thread and without', async () => {
    const one = createRuntime({ store: store(), policies: [keeping(limit)] })
    await expect(one.run(calling(1), {})).rejects.toMatchObject(refused)
    await expect(one.run(calling(1), {}, { thread: 't' })).rejects.toMatchObject(refused)
    expect(await one.branches('t')).toEqual([])
    await one.run(calling(1), {}, { ...by('ann'), thread: 't' })
    await expect(one.continue(calling(1), 't')).rejects.toMatchObject(refused)
    await expect(one.resume(calling(1), 't', 1)).rejects.toMatchObject(refused)
    const { error } = await one.stream(calling(1), {}).outcome
    expect(error).toMatchObject(refused)
  })

  it('is not asked for when it is off', async () => {
    const one = createRuntime({ store: store(), policies: [keeping(limit, { mode: 'off' })] })
    expect((await one.run(calling(1), {})).state.log).toEqual(['0'])
  })

  it('fails in shadow, where it stops nothing', async () => {
    const one = createRuntime({ store: store(), policies: [keeping(limit, { mode: 'shadow' })] })
    expect((await one.run(calling(1), {})).state.log).toEqual(['0'])
    await one.drain()
    expect(one.shadows.counts).toMatchObject([{ policy: 'Limit', failed: 1 }])
  })
})

it('a policy in shadow keeps by principal what is its own, and counts on when it is raced', async () => {
  const store = new MemoryStore()
  let raced = false
  const before: Before = (shown, ctx) => {
    if (!raced) store.kept.write('shadow:Limit', 'ann', '{"calls":5}', undefined)
    raced = true
    return count(shown, ctx)
  }
  const one = createRuntime({ store, policies: [keeping(before, { mode: 'shadow' })] })
  await one.run(calling(2), {}, by('ann'))
  await one.drain()
  expect(await keptOf(store, 'ann', 'shadow:Limit')).toEqual({ calls: 7 })
  expect(await keptOf(store, 'ann')).toBeUndefined()
})

it('own middleware may not keep by principal: a graph does not know for whom it runs', () => {
  const kept = { scope: 'principal', schema: SCHEMA } as never
  expect(() => middleware({ name: 'Own', kept })).toThrow(
    new TypeError(
      'middleware "Own" keeps for "principal"; that scope is for policies, for a graph does not know for whom it runs. Install it as a policy, or take turn, thread.',
    ),
  )
})

it('a policy keeps for what there is: a misspelt scope is refused', () => {
  const kept = { scope: 'principals', schema: SCHEMA } as never
  expect(() => keeping(count, { kept })).toThrow(
    expect.objectContaining({ code: 'POLICY_RULES', message: expect.stringContaining('turn, thread, principal') }),
  )
})
