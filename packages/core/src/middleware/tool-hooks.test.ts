import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { ASKED, chat, failing, runtime, twoTurns } from '../../testing/hooks.ts'
import { type Middleware, middleware, Replacement, ToolDeniedError, tool } from '../index.ts'

describe('tool hooks', () => {
  it('G21: arguments that do not fit are the call’s error, and the tool does not run', async () => {
    const ran: string[] = []
    const logs = tool('echo', {
      description: 'x',
      input: z.object({ text: z.string() }),
      run: ({ text }) => void ran.push(text),
    })
    const odd = middleware({ name: 'odd', beforeTool: (ctx) => ctx.replace({ text: 5 }) })
    const model = twoTurns()
    await runtime.run(chat([odd], { model, tools: [logs] }), ASKED)
    expect(model.requests[1]?.messages.at(-1)?.content).toMatch(/^Error: invalid arguments for tool "echo"/)
    expect(ran).toEqual([])
  })

  it('G22: the tool runs with the arguments that were put in place; what the model asked for stands as it was', async () => {
    const model = twoTurns()
    const shouts = middleware({
      name: 'shouts',
      beforeTool: (ctx) => ctx.replace({ text: String((ctx.value as { text: string }).text).toUpperCase() }),
    })
    const { state: end } = await runtime.run(chat([shouts], { model }), ASKED)
    expect(end.messages.find(({ role }) => role === 'tool')?.content).toBe('HELLO')
    expect(end.messages.find(({ tool_calls }) => tool_calls)?.tool_calls?.[0]?.arguments).toBe('{"text":"hello"}')
  })

  it.each([
    { name: 'ctx.reject', beforeTool: (ctx: { reject(why: string): never }) => ctx.reject('no mail at night') },
    {
      name: 'ToolDeniedError',
      beforeTool: () => {
        throw new ToolDeniedError('echo', 'no mail at night')
      },
    },
  ])('G25: a call denied by $name is answered with the reason, and no observer is told', async ({ beforeTool }) => {
    const model = twoTurns()
    const observed: unknown[] = []
    const denies = middleware({
      name: 'denies',
      beforeTool: beforeTool as never,
      onToolError: (_, error) => void observed.push(error),
    })
    await runtime.run(chat([denies], { model }), ASKED)
    expect(model.requests[1]?.messages.at(-1)).toMatchObject({ role: 'tool', content: 'Refused: no mail at night' })
    expect(observed).toEqual([])
  })

  it('G23, G24, G26: observers are told of a failure in reverse order; what they throw or return is a note', async () => {
    const seen: string[] = []
    const breaks = tool('echo', { description: 'x', input: z.object({ text: z.string() }), run: () => failing() })
    const watch = (name: string, then: () => unknown) =>
      middleware({
        name,
        onToolError: ((_: unknown, error: Error) => {
          seen.push(`${name}: ${error.message}`)
          return then()
        }) as never,
      })
    const {
      notes,
      warnings,
      state: end,
    } = await runtime.run(
      chat(
        [
          watch('a', () => undefined),
          watch('b', () => 5),
          watch('c', () => new Replacement('x')),
          watch('d', () => {
            throw new Error('it breaks too')
          }),
        ],
        { tools: [breaks] },
      ),
      ASKED,
    )
    expect(seen).toEqual(['d', 'c', 'b', 'a'].map((name) => `${name}: the step fails`))
    expect(notes).toEqual([
      'd.onToolError raised Error: it breaks too',
      'c.onToolError raised GraphExecutionError: c.onToolError returned ctx.replace(…); it may return nothing.',
      'b.onToolError raised TypeError: b.onToolError returned a number; it may return nothing.',
    ])
    expect(warnings).toHaveLength(3)
    expect(end.messages.find(({ role }) => role === 'tool')?.content).toBe('Error: the step fails')
  })

  it('a result is put in place, refused to the model, or ends the run', async () => {
    const asked = (own: Middleware) => {
      const model = twoTurns()
      return runtime.settle(chat([own], { model }), ASKED).then(({ status, error }) => ({
        said: model.requests[1]?.messages.at(-1)?.content,
        status,
        error,
      }))
    }
    expect(await asked(middleware({ name: 'm', afterTool: (ctx) => ctx.replace('[redacted]') }))).toMatchObject({
      said: '[redacted]',
    })
    expect(await asked(middleware({ name: 'm', afterTool: (ctx) => ctx.reject('it has a secret') }))).toMatchObject({
      said: 'Refused: it has a secret',
    })
    expect(await asked(middleware({ name: 'm', afterTool: (ctx) => ctx.fail('it has a secret') }))).toMatchObject({
      said: undefined,
      status: 'failed',
      error: { code: 'FAILED_BY_MIDDLEWARE' },
    })
    expect(await asked(middleware({ name: 'm', beforeTool: (ctx) => ctx.answer('played') }))).toMatchObject({
      said: 'played',
    })
  })
})
