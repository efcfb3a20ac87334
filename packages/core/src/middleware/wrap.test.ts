import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { agentGraph, asking, calls, contents, processes, user } from '../../testing/agent.ts'
import { noting } from '../../testing/play.ts'
import { type ChatResponse, middleware, type ScriptedReply, scripted, tool, type WrapOutcome } from '../index.ts'

const T = { thread: 't' }
const tally = { scope: 'thread', schema: z.object({ count: z.number().default(0) }) } as const

/** Calls `next` as often as there is need, three times at most. */
const again = middleware({
  name: 'again',
  wrapModel: async (_request, next) => {
    let outcome = await next()
    for (let trip = 2; trip <= 3 && !outcome.ok; trip++) outcome = await next()
    return outcome
  },
})

describe('what middleware keeps inside a wrap', () => {
  it('counts each trip: a hook inside a wrap is told of no revisit on the second next', async () => {
    const told: string[] = []
    const counts = middleware({
      name: 'counts',
      kept: tally,
      beforeModel: ({ revisit, kept }) => {
        if (!revisit) kept.update(({ count }) => ({ count: count + 1 }))
        told.push(`${kept.value.count}${revisit ? ' again' : ''}`)
      },
    })
    const model = scripted([new Error('busy'), new Error('busy'), 'hi'])
    await processes()
      .another()
      .run(agentGraph({ middleware: [again, counts], model }), user('hello'), T)
    expect(told).toEqual(['1', '2', '3'])
  })

  it('counts a way in that another middleware answered as well', async () => {
    const told: number[] = []
    const counts = middleware({
      name: 'counts',
      kept: tally,
      beforeModel: ({ revisit, kept }) => {
        if (!revisit) kept.update(({ count }) => ({ count: count + 1 }))
        told.push(kept.value.count)
      },
    })
    const refuses = middleware({ name: 'refuses', beforeModel: (ctx) => ctx.reject('not now') })
    await processes()
      .another()
      .settle(agentGraph({ middleware: [again, counts, refuses], model: scripted([]) }), user('hello'), T)
    expect(told).toEqual([1, 2, 3])
  })

  it('is known to a wrap that is entered anew in another process: ctx.revisit is true there', async () => {
    const told: boolean[] = []
    const counts = middleware({
      name: 'counts',
      kept: tally,
      wrapTool: (_args, next, { revisit, kept }) => {
        told.push(revisit)
        if (!revisit) kept.update(({ count }) => ({ count: count + 1 }))
        return next()
      },
      afterGraph: ({ kept }) => {
        told.push(kept.value.count === 1)
      },
    })
    const { another } = processes()
    const chat = () =>
      agentGraph({ middleware: [counts], model: scripted([calls(['ask', { text: 'a' }]), 'done']), tools: [asking()] })
    expect((await another().settle(chat(), user('hello'), T)).status).toBe('paused')
    const model = scripted([() => 'done'])
    await another().resume(agentGraph({ middleware: [counts], model, tools: [asking()] }), 't', 'yes')
    expect(told).toEqual([false, true, true])
  })
})

describe('what next gives to a wrap', () => {
  it('is the reason of a signal that has aborted before, and the step is not made', async () => {
    const act = noting()
    const given: WrapOutcome[] = []
    const late = middleware({
      name: 'late',
      wrapTool: async (_args, next) => {
        const outcome = await next(undefined, { signal: AbortSignal.abort('too late') })
        given.push(outcome)
        return { ok: true, value: 'nothing' }
      },
    })
    await processes()
      .another()
      .run(
        agentGraph({ middleware: [late], model: scripted([calls(['act', { text: 'a' }]), 'done']), tools: [act] }),
        user('hello'),
      )
    expect(given).toEqual([{ ok: false, error: 'too late' }])
    expect(act.ran).toEqual([])
  })

  it('is known to the wraps inside: their signal aborts with it, and a wait of theirs ends at once', async () => {
    const told: string[] = []
    const outer = middleware({
      name: 'outer',
      wrapModel: (_request, next, ctx) => ctx.within(100, 'it', (signal) => next(undefined, { signal })),
    })
    const inner = middleware({
      name: 'inner',
      wrapModel: async (_request, next, ctx) => {
        await ctx.wait(1_000)
        told.push(`waited to ${ctx.platform.now()}, aborted: ${ctx.signal.aborted}`)
        return next()
      },
    })
    const { clock, another } = processes()
    const model = scripted(['never asked'])
    const running = another().settle(agentGraph({ middleware: [outer, inner], model }), user('hello'))
    await clock.pass(100)
    expect((await running).error).toMatchObject({ code: 'CALL_TIMED_OUT' })
    expect(told).toEqual(['waited to 100, aborted: true'])
    expect(model.requests).toEqual([])
    expect(clock.pending).toBe(0)
  })

  it('says who supplied the value, where the step itself did not', async () => {
    const given: (string | undefined)[] = []
    const looks = middleware({
      name: 'looks',
      wrapModel: async (_request, next) => {
        const outcome: WrapOutcome<ChatResponse> = await next()
        given.push(outcome.ok ? outcome.substituted : 'failed')
        return outcome
      },
    })
    const once = middleware({
      name: 'once',
      beforeModel: (ctx) => (given.length === 0 ? ctx.answer({ content: 'from me', tool_calls: [] }) : undefined),
    })
    const { another } = processes()
    for (const _turn of [1, 2])
      await another().run(agentGraph({ middleware: [looks, once], model: scripted(['from the model']) }), user('hello'))
    expect(given).toEqual(['once', undefined])
  })

  it('says so to hooks on the way out as well', async () => {
    const told: (string | undefined)[] = []
    const looks = middleware({ name: 'looks', afterModel: ({ substituted }) => void told.push(substituted) })
    const once = middleware({
      name: 'once',
      beforeModel: (ctx) => (told.length === 0 ? ctx.answer({ content: 'from me', tool_calls: [] }) : undefined),
    })
    for (const _turn of [1, 2]) {
      const agent = agentGraph({ middleware: [looks, once], model: scripted(['from the model']) })
      await processes().another().run(agent, user('hello'))
    }
    expect(told).toEqual(['once', undefined])
  })
})

describe('a tool that is called again by a wrap', () => {
  it('may ask the same question, and has its answer at once', async () => {
    const twice = middleware({
      name: 'twice',
      wrapTool: async (_args, next) => {
        const first = await next()
        return first.ok ? first : next()
      },
    })
    const heard: string[] = []
    const moody = tool('moody', {
      description: 'Fails the first time.',
      input: z.object({}),
      run: async (_args, ctx) => {
        heard.push(String(await ctx.ask('go', 'May I?')))
        if (heard.length === 1) throw new Error('not in the mood')
        return 'done'
      },
    })
    const { another } = processes()
    const chat = (replies: readonly ScriptedReply[]) =>
      agentGraph({ middleware: [twice], model: scripted(replies), tools: [moody] })
    await another().settle(chat([calls(['moody', {}])]), user('hello'), T)
    const { state } = await another().resume(chat([() => 'fine']), 't', 'yes')
    expect(heard).toEqual(['yes', 'yes'])
    expect(contents(state.messages)).toContain('tool: done')
  })
})
