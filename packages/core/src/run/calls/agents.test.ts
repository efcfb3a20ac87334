import { describe, expect, it } from 'vitest'
import { Clock, open, quiet } from '../../../testing/clock.ts'
import { aborted } from '../../../testing/play.ts'
import {
  chain,
  errorOf,
  Log,
  type LogGraph,
  type LogState,
  logNode,
  type Run,
  setUp,
} from '../../../testing/threads.ts'
import {
  type AgentGroupError,
  type AgentTimeoutError,
  createRuntime,
  END,
  graph,
  type NodeContext,
  START,
  type SubAgentResult,
} from '../../index.ts'

const T = { thread: 't' }
const alone = createRuntime()

/** A graph of this name whose one node `work` does this. */
const agent = (name: string, run: Run): LogGraph => {
  const work = logNode('work', run)
  return graph(name, Log).edge(START, work).edge(work, END).check()
}
const says = (name: string) => agent(name, () => ({ log: [name] }))
const fails = (name: string) =>
  agent(name, () => {
    throw new Error(`${name} broke`)
  })
/** A node that spawns and gathers; what it returns is appended to the log. */
const spawning = (work: (ctx: NodeContext) => Promise<unknown>): LogGraph =>
  chain({ a: async (_s, ctx) => ({ log: [JSON.stringify((await work(ctx)) ?? null)] }) })
const logOf = ({ state }: SubAgentResult) => (state as { log?: readonly string[] } | undefined)?.log?.join()
const told = (results: readonly SubAgentResult[]) => results.map(({ name, status }) => `${name} ${status}`)

describe('sub-agents', () => {
  it('run beside each other, each with a state of its own, and are gathered in the order asked for', async () => {
    const gates = { x: open<void>(), y: open<void>() }
    const started: string[] = []
    const slow = (name: 'x' | 'y') =>
      agent(name, async (s) => {
        started.push(name)
        await gates[name].promise
        return { log: [`${name} of ${s.x}`] }
      })
    const g = spawning(async (ctx) => {
      const [x, y] = ctx.spawn([
        { graph: slow('x'), input: { x: 'one' } },
        { graph: slow('y'), input: { x: 'two' } },
      ])
      return (await ctx.gather([y?.id ?? '', x ?? ''])).map(logOf)
    })
    const running = alone.run(g)
    await quiet()
    expect(started).toEqual(['x', 'y'])
    gates.y.resolve()
    gates.x.resolve()
    expect((await running).state.log).toEqual(['["y of two","x of one"]'])
  })

  it('are named after their graph or as told, and each has an id of its own', async () => {
    const g = spawning(async (ctx) => {
      const handles = ctx.spawn([{ graph: says('x') }, { graph: says('x') }, { graph: says('x'), name: 'named' }])
      await ctx.gather(handles)
      return handles
    })
    expect((await alone.run(g)).state.log).toEqual([
      JSON.stringify([
        { id: 'a/x', name: 'x' },
        { id: 'a/x[1]', name: 'x' },
        { id: 'a/named', name: 'named' },
      ]),
    ])
  })

  it('are given what `in` makes of their input, and come to what `out` makes of their state', async () => {
    const g = spawning(async (ctx) => {
      const handles = ctx.spawn([
        {
          graph: agent('x', ({ x }) => ({ log: [x] })),
          input: 7,
          in: (n: number) => ({ x: `${n}` }),
          out: (s: LogState) => s.log[0],
        },
      ])
      return (await ctx.gather(handles)).map(({ state }) => state)
    })
    expect((await alone.run(g)).state.log).toEqual(['["7"]'])
  })

  it('J5: start all or none: when the input of one cannot be made, nothing of the others has run', async () => {
    const { ran, says: noting } = setUp()
    const g = spawning(async (ctx) => {
      const broken = () => {
        throw new Error('no input')
      }
      ctx.spawn([{ graph: agent('x', noting('x')) }, { graph: agent('y', noting('y')), in: broken }])
    })
    expect(await errorOf(alone.run(g))).toMatchObject({ message: 'no input' })
    await quiet()
    expect(ran).toEqual([])
  })

  it.each([
    { name: 'completed', work: async () => ({ log: ['done'] }) },
    { name: 'failed', work: () => Promise.reject(new Error('no')) },
    { name: 'are still at work', work: (_s: unknown, ctx: NodeContext) => aborted(ctx.signal) },
  ])(
    'J1: that $name and were never gathered fail their node, which names them, and are cancelled',
    async ({ work }) => {
      const signals: AbortSignal[] = []
      const left = agent('left', (s, ctx) => {
        signals.push(ctx.signal)
        return work(s, ctx)
      })
      const g = spawning(async (ctx) => {
        ctx.spawn([{ graph: left }, { graph: left }])
        await quiet()
      })
      const error = await errorOf(alone.run(g))
      expect(error).toMatchObject({ code: 'AGENTS_UNGATHERED', at: { node: 'a' } })
      expect(error?.message).toContain('"a/left", "a/left[1]"')
      await quiet()
      expect(signals.map(({ aborted }) => aborted)).toEqual([true, true])
    },
  )
})

describe('gather', () => {
  const group = (ctx: NodeContext) => ctx.spawn([{ graph: says('good') }, { graph: fails('bad') }])

  it('J2: throws when one of them did not complete, with what came of each', async () => {
    let error: AgentGroupError | undefined
    const g = spawning(async (ctx) => {
      error = (await errorOf(ctx.gather(group(ctx)))) as AgentGroupError
    })
    await alone.run(g)
    expect(error).toMatchObject({ name: 'AgentGroupError', code: 'AGENTS_FAILED', at: { node: 'a' } })
    expect(error?.message).toBe('node "a": of 2 sub-agents 1 did not complete: bad failed (bad broke).')
    expect(told(error?.results ?? [])).toEqual(['good completed', 'bad failed'])
    expect(error?.results[1]?.error).toMatchObject({ message: 'bad broke' })
  })

  it('J2: hands all of them back with `settle`', async () => {
    const g = spawning(async (ctx) => told(await ctx.gather(group(ctx), { settle: true })))
    expect((await alone.run(g)).state.log).toEqual(['["good completed","bad failed"]'])
  })

  it('J3: in time or not at all: the others are cancelled, the error says what was there, and none can be gathered again', async () => {
    const clock = new Clock()
    const errors: unknown[] = []
    const signals: AbortSignal[] = []
    const slow = agent('slow', (_s, ctx) => {
      signals.push(ctx.signal)
      return aborted(ctx.signal)
    })
    const g = spawning(async (ctx) => {
      const handles = ctx.spawn([{ graph: says('good') }, { graph: slow }])
      errors.push(await errorOf(ctx.gather(handles, { timeoutMs: 1_000 })))
      for (const handle of handles) errors.push(await errorOf(ctx.gather([handle])))
    })
    const running = createRuntime({ platform: clock }).run(g)
    await clock.pass(999)
    expect(errors).toEqual([])
    await clock.pass(1)
    expect((await running).status).toBe('completed')
    const [error, ...lost] = errors
    expect(error).toMatchObject({ name: 'AgentTimeoutError', code: 'AGENTS_TIMED_OUT', pending: ['a/slow'] })
    expect((error as Error).message).toBe('node "a": sub-agents timed out after 1000 ms: a/slow.')
    expect(told((error as AgentTimeoutError).completed)).toEqual(['good completed'])
    expect(lost).toMatchObject([{ code: 'AGENT_LOST' }, { code: 'AGENT_LOST' }])
    expect(signals[0]?.aborted).toBe(true)
  })

  it('has time to spare when all are there in time', async () => {
    const clock = new Clock()
    const g = spawning(async (ctx) => told(await ctx.gather(ctx.spawn([{ graph: says('x') }]), { timeoutMs: 1_000 })))
    const running = createRuntime({ platform: clock }).run(g)
    await clock.pass(0)
    expect((await running).state.log).toEqual(['["x completed"]'])
    expect(clock.pending).toBe(0)
  })

  it.each([
    { name: 'in the same run', ends: false },
    { name: 'after a pause', ends: true },
  ])('J4: of what another node has spawned is refused, $name: the progress is kept with the node', async ({ ends }) => {
    const { runtime } = setUp()
    const spawns: Run = async (_s, ctx) => {
      const handles = ctx.spawn([{ graph: says('x') }])
      await ctx.gather(handles)
      return { x: handles[0]?.id }
    }
    const gathers: Run = async ({ x }, ctx) => {
      if (ends) await ctx.ask('q', 'go on?')
      return { log: told(await ctx.gather([x])) }
    }
    const g = chain({ a: spawns, b: gathers })
    const running = ends ? runtime.run(g, {}, T).then(() => runtime.resume(g, 't', 1)) : runtime.run(g, {}, T)
    const error = await errorOf(running)
    expect(error).toMatchObject({ code: 'AGENT_LOST', at: { node: 'b' } })
    expect(error?.message).toContain('"a/x", which it did not start')
  })

  it('J4: of what was gathered already, and of an id that nobody has, is refused', async () => {
    const errors: unknown[] = []
    const g = spawning(async (ctx) => {
      const handles = ctx.spawn([{ graph: says('x') }])
      await ctx.gather(handles)
      errors.push(await errorOf(ctx.gather(handles)), await errorOf(ctx.gather(['a/nobody'])))
    })
    await alone.run(g)
    expect(errors).toMatchObject([{ code: 'AGENT_LOST' }, { code: 'AGENT_LOST' }])
  })
})

describe('onProgress of a sub-agent', () => {
  const three = () => {
    const [a, b, c] = ['a', 'b', 'c'].map((name) => logNode(name, () => ({ log: [name] }))) as [never, never, never]
    return graph('three', Log).edge(START, a).edge(a, b).edge(b, c).edge(c, END).check()
  }

  it('is told after each superstep which nodes ran', async () => {
    const seen: unknown[] = []
    const g = spawning(async (ctx) => {
      await ctx.gather(ctx.spawn([{ graph: three(), onProgress: (progress) => void seen.push(progress) }]))
    })
    await alone.run(g)
    expect(seen).toEqual([
      { step: 1, nodes: ['a'] },
      { step: 2, nodes: ['b'] },
      { step: 3, nodes: ['c'] },
    ])
  })

  it('J6: that throws ends its sub-agent with that error, and is not called again', async () => {
    let called = 0
    const onProgress = () => {
      called++
      throw new Error('no progress')
    }
    const g = spawning(async (ctx) => {
      const results = await ctx.gather(ctx.spawn([{ graph: three(), onProgress }]), { settle: true })
      return results.map(({ status, error }) => [status, (error as Error).message])
    })
    expect((await alone.run(g)).state.log).toEqual(['[["failed","no progress"]]'])
    expect(called).toBe(1)
  })
})

describe('sub-agents on a thread', () => {
  it('that are through are not run again when their node is entered anew; those that ask go on where they were', async () => {
    const { runtime, ran, says: noting } = setUp()
    const asks = agent('asks', async (_s, ctx) => {
      ran.push('asks')
      return { log: [`asks ${await ctx.ask('q', 'well?')}`] }
    })
    const g = spawning(async (ctx) =>
      (
        await ctx.gather(ctx.spawn([{ graph: agent('x', noting('x')) }, { graph: asks }, { graph: fails('y') }]), {
          settle: true,
        })
      ).map((result) => logOf(result) ?? result.status),
    )
    const paused = await runtime.run(g, {}, T)
    expect(paused.asks).toMatchObject([{ askedBy: 'graph', nodeName: 'work', payload: 'well?' }])
    expect((await runtime.resume(g, 't', 'yes')).state.log).toEqual(['["x","asks yes","failed"]'])
    expect(ran).toEqual(['x', 'asks', 'asks'])
  })

  it('put each question under a key of its own, of one graph or of several', async () => {
    const { runtime } = setUp()
    const asks = (name: string) => agent(name, async (_s, ctx) => ({ log: [`${name} ${await ctx.ask('q', name)}`] }))
    const [x, y] = [asks('x'), asks('y')]
    const g = spawning(async (ctx) =>
      (await ctx.gather(ctx.spawn([{ graph: x }, { graph: x }, { graph: y }, { graph: y }]))).map(logOf),
    )
    const { asks: put } = await runtime.run(g, {}, T)
    const keys = put.map(({ key }) => key)
    expect(put.map(({ payload }) => payload)).toEqual(['x', 'x', 'y', 'y'])
    expect(new Set(keys).size).toBe(4)
    for (const [i, key] of [...keys.entries()].reverse()) {
      const { asks: left } = await runtime.resume(g, 't', new Map([[key, i]]))
      expect(left.map(({ key }) => key)).toEqual(keys.slice(0, i))
    }
    expect((await runtime.stateAt(g, 't')).state?.log).toEqual(['["x 0","x 1","y 2","y 3"]'])
  })

  it('that were too slow to be gathered are so too when their node is entered anew', async () => {
    const { store } = setUp()
    const platform = new Clock()
    const slow = agent('slow', (_s, ctx) => aborted(ctx.signal))
    const seen: unknown[] = []
    const g = spawning(async (ctx) => {
      const handles = ctx.spawn([{ graph: says('good') }, { graph: slow }])
      const error = (await errorOf(ctx.gather(handles, { timeoutMs: 1_000 }))) as AgentTimeoutError
      seen.push([error.code, told(error.completed), error.pending])
      return ctx.ask('q', 'go on?')
    })
    const running = createRuntime({ store, platform }).run(g, {}, T)
    await platform.pass(1_000)
    expect((await running).asks).toHaveLength(1)
    expect((await createRuntime({ store, platform }).resume(g, 't', 'yes')).state.log).toEqual(['"yes"'])
    expect(seen).toEqual([
      ['AGENTS_TIMED_OUT', ['good completed'], ['a/slow']],
      ['AGENTS_TIMED_OUT', ['good completed'], ['a/slow']],
    ])
  })

  it('that were in time are so too when their node is entered anew', async () => {
    const { runtime } = setUp()
    const g = spawning(async (ctx) => {
      const results = told(await ctx.gather(ctx.spawn([{ graph: says('x') }]), { timeoutMs: 1_000 }))
      return [await ctx.ask('q', 'go on?'), ...results]
    })
    await runtime.run(g, {}, T)
    expect((await runtime.resume(g, 't', 'yes')).state.log).toEqual(['["yes","x completed"]'])
  })

  it('that are given up while they wait for a person take their questions with them', async () => {
    const { store } = setUp()
    const platform = new Clock()
    const asks = agent('asks', async (_s, ctx) => ({ log: [`${await ctx.ask('q', 'well?')}`] }))
    const slow = agent('slow', (_s, ctx) => aborted(ctx.signal))
    const g = spawning(async (ctx) => {
      const error = await errorOf(ctx.gather(ctx.spawn([{ graph: asks }, { graph: slow }]), { timeoutMs: 1_000 }))
      return [error?.code, await ctx.ask('own', 'go on?')]
    })
    const running = createRuntime({ store, platform }).run(g, {}, T)
    await platform.pass(1_000)
    expect((await running).asks.map(({ key }) => key)).toEqual(['a:own'])
    const done = await createRuntime({ store, platform }).resume(g, 't', 'yes')
    expect(done.state.log).toEqual(['["AGENTS_TIMED_OUT","yes"]'])
  })

  it('J1: do not fail a node that pauses before it gathers: they go on, and are gathered when the answer is there', async () => {
    const { runtime, ran, says: noting } = setUp()
    const g = spawning(async (ctx) => {
      const handles = ctx.spawn([{ graph: agent('x', noting('x')) }])
      const answer = await ctx.ask('q', 'go on?')
      return [answer, ...told(await ctx.gather(handles))]
    })
    expect((await runtime.run(g, {}, T)).status).toBe('paused')
    expect((await runtime.resume(g, 't', 'yes')).state.log).toEqual(['["yes","x completed"]'])
    expect(ran).toEqual(['x'])
  })
})
