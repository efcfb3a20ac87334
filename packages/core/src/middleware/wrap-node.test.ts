import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { processes } from '../../testing/agent.ts'
import { type TextState, Text as Told } from '../../testing/play.ts'
import {
  END,
  graph,
  type Middleware,
  middleware,
  type NodeContext,
  node,
  policy,
  START,
  tool,
  type WrapOutcome,
} from '../index.ts'

const T = { thread: 't' }

type Step = (state: TextState, ctx: NodeContext) => Promise<unknown>

function around(own: readonly Middleware[], run: Step) {
  const step = node('step', Told, run as () => Promise<undefined>)
  return graph('one', Told, { middleware: own }).edge(START, step).edge(step, END).check()
}

/** A tool that notes each time it runs; one that is not idempotent. */
function counting() {
  const ran: string[] = []
  const act = tool('act', {
    description: 'Acts.',
    input: z.object({}),
    run: (_args, { callId }) => {
      ran.push(callId)
      return `result ${ran.length}`
    },
  })
  return { ran, act }
}

/** Goes through the node so often, and hands on what came last. */
const trips = (count: number, end?: (made: number) => AbortSignal | undefined) =>
  middleware({
    name: 'trips',
    wrapNode: async (_input, next) => {
      let outcome: WrapOutcome = { ok: false, error: undefined }
      for (let made = 1; made <= count; made++)
        outcome = (await next(undefined, { signal: end?.(made) })) as WrapOutcome
      return outcome as never
    },
  })

/** How the first trip ends, in the node that makes it. */
const firstTrips = [
  { first: 'fails', wrap: () => ({ own: trips(2), ends: () => Promise.reject(new Error('not yet')) }) },
  { first: 'goes well', wrap: () => ({ own: trips(2), ends: () => Promise.resolve({ made: 'first' }) }) },
  {
    first: 'is ended by a signal',
    wrap: () => {
      const given = [new AbortController(), new AbortController()]
      const ends = () => {
        given[0]?.abort(new Error('too long'))
        return new Promise(() => undefined)
      }
      return { own: trips(2, (made) => given[made - 1]?.signal), ends }
    },
  },
] as const

describe.each(firstTrips)('a second next of wrapNode, where the first trip $first', ({ wrap }) => {
  it.each([{ on: undefined }, { on: T }])(
    'is an execution of its own: it calls, asks, and does once ($on)',
    async ({ on }) => {
      const { own, ends } = wrap()
      const { ran, act } = counting()
      const [answers, done] = [[] as unknown[], [] as number[]]
      const replies = middleware({ name: 'replies', onInterrupt: (_ctx, payload) => `${payload} yes` })
      let trip = 0
      const g = around([own, replies], async (_state, ctx) => {
        const made = ++trip
        await ctx.callTool(act, {})
        answers.push(await ctx.ask('q', `trip ${made}?`))
        const once = await ctx.once('mark', () => done.push(made))
        return made === 1 ? ends() : { made: `second, ${once} marks` }
      })
      const { status, state } = await processes().another().run(g, {}, on)
      expect({ status, made: state.made }).toEqual({ status: 'completed', made: 'second, 2 marks' })
      expect({ answers, done }).toEqual({ answers: ['trip 1? yes', 'trip 2? yes'], done: [1, 2] })
      expect(new Set(ran).size).toBe(2)
    },
  )

  it('goes on in another process with what each of the two had come to', async () => {
    const { ran, act } = counting()
    const done: number[] = []
    const process = processes()
    const build = () => {
      const { own, ends } = wrap()
      let trip = 0
      return around([own], async (_state, ctx) => {
        const made = ++trip
        const result = await ctx.callTool(act, {})
        const once = await ctx.once('mark', () => done.push(made))
        if (made === 1) return ends()
        const answer = await ctx.ask('q', 'How?')
        return { made: `${result}, ${once} marks, ${answer}, ${await ctx.callTool(act, {})}` }
      })
    }
    const { asks } = await process.another().run(build(), {}, T)
    expect(asks.map(({ key }) => key)).toEqual(['step##2:q'])
    const { state } = await process.another().resume(build(), 't', 'so')
    expect(state.made).toBe('result 2, 2 marks, so, result 3')
    expect({ ran: ran.length, done }).toEqual({ ran: 3, done: [1, 2] })
  })
})

describe('the trips of a node', () => {
  it('ask under the same id, each its own question, and are found again in their order', async () => {
    const process = processes()
    const started: string[] = []
    const build = () =>
      around([trips(3)], async (_state, ctx) => {
        const said = await ctx.ask('q', 'What?')
        started.push(String(said))
        return { made: said }
      })
    const keys: string[] = []
    let run = await process.another().run(build(), {}, T)
    for (const answer of ['one', 'two', 'three']) {
      keys.push(...run.asks.map(({ key }) => key))
      run = await process.another().resume(build(), 't', answer)
    }
    expect(keys).toEqual(['step:q', 'step##2:q', 'step##3:q'])
    expect(run.state.made).toBe('three')
    expect(started).toEqual(['one', 'one', 'two', 'one', 'two', 'three'])
  })

  it('have each the questions of the hooks inside the wrap, and share their scratch', async () => {
    const process = processes()
    const scratch: unknown[] = []
    const build = () => {
      const outer = middleware({
        name: 'outer',
        beforeNode: (ctx) => {
          ctx.scratch.of = 'all'
        },
      })
      const inner = middleware({
        name: 'inner',
        beforeNode: async (ctx) => {
          await ctx.ask('may', 'May it?')
          scratch.push(ctx.scratch.of)
        },
      })
      return around([outer, trips(2), inner], async () => ({ made: 'done' }))
    }
    const first = await process.another().run(build(), {}, T)
    const second = await process.another().resume(build(), 't', true)
    expect([...first.asks, ...second.asks].map(({ key }) => key)).toEqual(['step:may', 'step##2:may'])
    expect((await process.another().resume(build(), 't', true)).status).toBe('completed')
    expect(scratch).toEqual(['all', 'all', 'all'])
  })

  it('each start a run of their own, and ask further in', async () => {
    const process = processes()
    const begun: string[] = []
    const build = () => {
      const inside = node('inside', Told, async ({ text }, ctx) => {
        begun.push(text)
        return { made: String(await ctx.ask('q', 'What?')) }
      })
      const child = graph('child', Told).edge(START, inside).edge(inside, END).check()
      let trip = 0
      return around([trips(2)], async (_state, ctx) => ({ made: (await ctx.run(child, { text: `${++trip}` })).made }))
    }
    const first = await process.another().run(build(), {}, T)
    const second = await process.another().resume(build(), 't', 'one')
    const third = await process.another().resume(build(), 't', 'two')
    expect([...first.asks, ...second.asks].map(({ key }) => key)).toEqual(['step/inside:q', 'step##2/inside:q'])
    expect(third.state.made).toBe('two')
    expect(begun).toEqual(['1', '1', '2', '2'])
  })

  it('are all void once the node is tried again', async () => {
    const { ran, act } = counting()
    const process = processes()
    let trip = 0
    const build = () => {
      const patient = middleware({ name: 'patient', onError: (ctx) => (trip === 2 ? ctx.retry() : undefined) })
      return around([trips(2), patient], async (_state, ctx) => {
        const made = ++trip
        await ctx.callTool(act, {})
        if (made < 4) throw new Error(`trip ${made}`)
        return { made: String(await ctx.ask('q', 'What?')) }
      })
    }
    const { asks } = await process.another().run(build(), {}, T)
    expect(asks.map(({ key }) => key)).toEqual(['step##2:q'])
    trip = 2
    expect((await process.another().resume(build(), 't', 'so')).state.made).toBe('so')
    expect(new Set(ran).size).toBe(4)
    expect(ran).toHaveLength(4)
  })

  it('are found again when a failed thread is continued: only what the last of them failed at is made anew', async () => {
    const process = processes()
    const made: string[] = []
    let broken = true
    const build = () => {
      let trip = 0
      const fetch = tool('fetch', {
        description: 'Fetches.',
        input: z.object({ trip: z.number() }),
        run: ({ trip: of }) => {
          made.push(`trip ${of}`)
          if (broken) throw new Error(`down in trip ${of}`)
          return 'up'
        },
      })
      return around([trips(2)], async (_state, ctx) => ({ made: String(await ctx.callTool(fetch, { trip: ++trip })) }))
    }
    expect((await process.another().settle(build(), {}, T)).status).toBe('failed')
    broken = false
    expect((await process.another().continue(build(), 't')).state.made).toBe('up')
    expect(made).toEqual(['trip 1', 'trip 2', 'trip 2'])
  })

  it('name their calls apart, the first as if it were the only one', async () => {
    const single = counting()
    const twice = counting()
    const call = (act: typeof single.act) => async (_: unknown, ctx: NodeContext) => {
      await ctx.callTool(act, {})
      return {}
    }
    await processes()
      .another()
      .run(around([], call(single.act)), {}, T)
    await processes()
      .another()
      .run(around([trips(2)], call(twice.act)), {}, T)
    expect(twice.ran[0]).not.toBe(twice.ran[1])
    expect(twice.ran[0]).toBe(single.ran[0])
  })

  it('meet the policies each, and are written down one below the other', async () => {
    const seen: string[] = []
    const counts = policy({
      name: 'Counts',
      seams: {
        toolCall: {
          before: ({ subject }) => {
            seen.push(String(subject.toolName))
            return { action: 'proceed' }
          },
        },
      },
    })
    const { act } = counting()
    const runtime = processes({ policies: [counts] }).another()
    await runtime.run(
      around([trips(2)], async (_state, ctx) => ({ made: String(await ctx.callTool(act, {})) })),
      {},
      T,
    )
    const written = (await runtime.history('t')).flatMap((record) =>
      record.type === 'call' ? [record.within.join(' ')] : [],
    )
    expect({ seen, written }).toEqual({ seen: ['act', 'act'], written: ['step', 'step trip:2'] })
  })
})
