import { describe, expect, it } from 'vitest'
import { ASKED, Chat, chat, runtime } from '../../testing/hooks.ts'
import { END, graph, middleware, modelNode, RefusedError, START, scripted } from '../index.ts'

describe('model hooks', () => {
  it('G18: the model gets the request that beforeModel put in place; nothing of it is stored', async () => {
    const model = scripted(['hello'])
    const think = modelNode('think', Chat, { model })
    const prompt = middleware({
      name: 'prompt',
      beforeModel: (ctx) =>
        ctx.replace({ messages: [{ role: 'system', content: 'Be brief.' }, ...ctx.request.messages] }),
    })
    const made = graph('one', Chat, { middleware: [prompt] })
      .edge(START, think)
      .edge(think, END)
      .check()
    const { state: end } = await runtime.run(made, ASKED)
    expect(model.requests[0]?.messages.map(({ role }) => role)).toEqual(['system', 'user'])
    expect(end.messages.map(({ role }) => role)).toEqual(['user', 'assistant'])
  })

  it('G20: ctx.model is the name that was asked for; afterModel sees what was sent and what came', async () => {
    const seen: unknown[] = []
    const watch = middleware({
      name: 'watch',
      beforeModel: (ctx) => void seen.push([ctx.model, ctx.response]),
      afterModel: (ctx) => void seen.push([ctx.model, ctx.request.messages.length, ctx.response.content, ctx.round]),
    })
    await runtime.run(chat([watch], { model: scripted(['hi'], { model: 'gpt-x' }) }), ASKED)
    expect(seen).toEqual([
      ['gpt-x', undefined],
      ['gpt-x', 1, 'hi', 1],
    ])
  })

  it('a response is put in place after the call, or instead of it', async () => {
    const model = scripted(['secret'])
    const hides = middleware({
      name: 'hides',
      afterModel: (ctx) => ctx.replace({ ...ctx.response, content: ctx.response.content.replace('secret', '…') }),
    })
    expect((await runtime.run(chat([hides], { model }), ASKED)).state.messages.at(-1)?.content).toBe('…')
    const answers = middleware({ name: 'answers', beforeModel: (ctx) => ctx.answer({ content: 'from the cache' }) })
    const unasked = scripted([])
    expect((await runtime.run(chat([answers], { model: unasked }), ASKED)).state.messages.at(-1)?.content).toBe(
      'from the cache',
    )
    expect(unasked.requests).toEqual([])
  })

  it('a refused call fails the node, which may catch that', async () => {
    const refuses = middleware({ name: 'refuses', beforeModel: (ctx) => ctx.reject('the budget is spent') })
    const { error } = await runtime.settle(chat([refuses]), ASKED)
    expect(error).toBeInstanceOf(RefusedError)
    expect(error).toMatchObject({ reason: 'the budget is spent', at: { middleware: 'refuses', seam: 'modelCall' } })
  })

  it('onModelError recovers a call, or has it made again', async () => {
    const down = new Error('503 Service Unavailable: later')
    const recovers = middleware({ name: 'recovers', onModelError: () => ({ content: 'sorry', finish_reason: 'stop' }) })
    expect(
      (await runtime.run(chat([recovers], { model: scripted([down]) }), ASKED)).state.messages.at(-1)?.content,
    ).toBe('sorry')
    const attempts: number[] = []
    const again = middleware({
      name: 'again',
      beforeModel: (ctx) => void attempts.push(ctx.attempt),
      onModelError: (ctx) => ctx.retry(),
    })
    const model = scripted([down, down, 'there'])
    expect((await runtime.run(chat([again], { model }), ASKED)).state.messages.at(-1)?.content).toBe('there')
    expect(attempts).toEqual([1, 2, 3])
  })

  it('afterModel may have an answer that will not do made again', async () => {
    const strict = middleware({
      name: 'strict',
      afterModel: (ctx) => (ctx.response.content === 'good' ? undefined : ctx.retry()),
    })
    const { state: end } = await runtime.run(chat([strict], { model: scripted(['bad', 'good']) }), ASKED)
    expect(end.messages.at(-1)?.content).toBe('good')
  })
})

describe('round hooks', () => {
  it('afterRound knows the tools that ran; beforeRound may end the agent', async () => {
    const seen: unknown[] = []
    const counts = middleware({
      name: 'counts',
      beforeRound: (ctx) => (ctx.round > 1 ? ctx.reject(`${ctx.maxRounds} are too many`) : undefined),
      afterRound: (ctx) => void seen.push([ctx.round, ctx.toolCalls]),
    })
    const { error } = await runtime.settle(chat([counts]), ASKED)
    expect(seen).toEqual([[1, ['echo']]])
    expect(error).toMatchObject({ code: 'REFUSED', reason: '10 are too many', at: { seam: 'agentRound', round: 2 } })
  })
})
