import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Clock } from '../../testing/clock.ts'
import { ASKED, chat, runtime, step, twoTurns } from '../../testing/hooks.ts'
import {
  type ChatModel,
  type ChatRequest,
  createRuntime,
  type Middleware,
  type MiddlewareError,
  middleware,
  scripted,
  tool,
} from '../index.ts'

describe('wraps', () => {
  it('exchange outcomes: an error is the very object, a result may be another', async () => {
    const seen: unknown[] = []
    const boom = new Error('boom')
    const watch = middleware({
      name: 'watch',
      wrapNode: async (input, next) => {
        const outcome = await next(input)
        seen.push(outcome)
        return outcome
      },
    })
    const { error } = await runtime.settle(
      step([watch], () => {
        throw boom
      }),
      {},
    )
    expect(error).toBe(boom)
    expect(seen).toEqual([{ ok: false, error: boom }])
    const other = middleware({
      name: 'other',
      wrapTool: async (args, next) => {
        const outcome = await next({ ...args, text: 'changed' })
        return outcome.ok ? { ok: true, value: `${outcome.value}!` } : outcome
      },
    })
    const model = twoTurns()
    await runtime.run(chat([other], { model }), ASKED)
    expect(model.requests[1]?.messages.at(-1)?.content).toBe('changed!')
  })

  it('one that throws is told by its name', async () => {
    const odd = middleware({
      name: 'Odd',
      wrapTool: () => {
        throw new Error('boom')
      },
    })
    const { error } = await runtime.settle(chat([odd]), ASKED)
    expect((error as Error).message).toBe('middleware "Odd" failed at toolCall (wrapTool) of node "think": boom.')
    const at = { middleware: 'Odd', hook: 'wrapTool', seam: 'toolCall', node: 'think', tool: 'echo' }
    expect((error as MiddlewareError).at).toEqual(at)
  })

  it('what is no outcome ends the run with a TypeError', async () => {
    const odd = middleware({ name: 'odd', wrapModel: (async () => 'hello') as never })
    const { error } = await runtime.settle(chat([odd]), ASKED)
    expect(error).toBeInstanceOf(TypeError)
    expect((error as Error).message).toBe(
      'odd.wrapModel returned a string; a wrap returns an outcome: what next() gave, { ok: true, value } or { ok: false, error }.',
    )
  })

  it('next may name another model, and another one again', async () => {
    const [first, second] = [scripted([new Error('down')]), scripted(['hi from the second'], { model: 'second' })]
    const third = scripted(['hi from the third'], { model: 'third' })
    const fourth = scripted(['hi from the fourth'], { model: 'provider/fourth' })
    const known = new Map<string, ChatModel>([
      ['third', third],
      ['fast', fourth],
    ])
    const here = createRuntime({ models: (name) => known.get(name) })
    const falls = (to: Partial<ChatRequest>, options?: { model: ChatModel | string }) =>
      middleware({
        name: 'falls',
        wrapModel: async (request, next) => {
          const outcome = await next(request)
          return outcome.ok ? outcome : next(to, options)
        },
      })
    const said = async (own: Middleware, model = first) =>
      (await here.run(chat([own], { model }), ASKED)).state.messages.at(-1)?.content
    expect(await said(falls({}, { model: second }))).toBe('hi from the second')
    expect(second.requests[0]?.model).toBe('second')
    expect(await said(falls({ model: 'third' }), scripted([new Error('down')]))).toBe('hi from the third')
    expect(await said(falls({}, { model: 'fast' }), scripted([new Error('down')]))).toBe('hi from the fourth')
    expect(fourth.requests[0]?.model).toBe('provider/fourth')
  })

  it('a signal ends that trip alone', async () => {
    const hangs = tool('echo', {
      description: 'x',
      input: z.object({ text: z.string() }),
      run: ({ text }) => (text === 'hello' ? new Promise<string>(() => undefined) : text),
    })
    const limits = middleware({
      name: 'limits',
      wrapTool: async (args, next) => {
        const controller = new AbortController()
        const first = next(args, { signal: controller.signal })
        controller.abort(new Error('timed out'))
        const outcome = await first
        expect(outcome).toEqual({ ok: false, error: new Error('timed out') })
        return next({ text: 'shorter' })
      },
    })
    const model = twoTurns()
    await runtime.run(chat([limits], { model, tools: [hangs] }), ASKED)
    expect(model.requests[1]?.messages.at(-1)?.content).toBe('shorter')
  })

  it.each([
    { ended: 'by the signal of its trip', bound: {}, own: true },
    { ended: 'by its own time', bound: { timeoutMs: 1_000 }, own: false },
  ])('a run that a tool has started ends with the tool: $ended', async ({ bound, own }) => {
    const clock = new Clock()
    const ends: string[] = []
    const watch = middleware({ name: 'watch', onRunEnd: (_, { status }) => void ends.push(status) })
    const child = step([watch], () => new Promise<object>(() => undefined))
    const starts = tool('echo', {
      description: 'x',
      input: z.object({ text: z.string() }),
      ...bound,
      run: async (_, ctx) => String((await ctx.run(child, {})).n),
    })
    const limits = middleware({
      name: 'limits',
      wrapTool: (args, next, ctx) =>
        own ? ctx.within(1_000, 'the tool', (signal) => next(args, { signal })) : next(args),
    })
    const model = twoTurns()
    const running = createRuntime({ platform: clock }).run(chat([limits], { model, tools: [starts] }), ASKED)
    await clock.pass(1_000)
    await running
    expect(model.requests[1]?.messages.at(-1)?.content).toMatch(/timed out after 1000 ms/)
    expect(ends).toEqual(['cancelled'])
  })

  it('only a model call may be sent to another model, and the compiler knows', async () => {
    const odd = middleware({
      name: 'odd',
      // @ts-expect-error a tool call has no model
      wrapTool: (args, next) => next(args, { model: scripted([]) }),
    })
    const { status } = await runtime.settle(chat([odd]), ASKED)
    expect(status).toBe('completed')
  })
})
