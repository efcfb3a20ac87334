import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { agentGraph, asking, calls, contents, processes, user } from '../../../testing/agent.ts'
import { open, quiet } from '../../../testing/clock.ts'
import { aborted } from '../../../testing/play.ts'
import { CallTimeoutMiddleware, type ChatModel, scripted, tool } from '../../index.ts'

//#region use
const timeouts = new CallTimeoutMiddleware({ modelMs: 30_000, toolMs: 10_000, perTool: { crawl: 120_000 } })
//#endregion

const never = () => new Promise<never>(() => {})
const T = { thread: 't' }

/** A tool that never comes to its end, and notes when it is given up. */
function hangs(name: string) {
  const gaveUp: unknown[] = []
  const made = tool(name, {
    description: 'Hangs.',
    input: z.object({ text: z.string() }),
    run: async (_args, { signal }) => {
      aborted(signal).then(() => gaveUp.push((signal.reason as Error).message))
      return never()
    },
  })
  return Object.assign(made, { gaveUp })
}

/** A model that never answers, and notes when it is given up. */
function silent() {
  const gaveUp: unknown[] = []
  const model: ChatModel = {
    model: 'slow',
    chat: async (_request, { signal }) => {
      aborted(signal).then(() => gaveUp.push((signal.reason as Error).message))
      return never()
    },
  }
  return { model, gaveUp }
}

describe('a model call', () => {
  it('fails when its time is over, and the model is told', async () => {
    const { clock, another } = processes()
    const { model, gaveUp } = silent()
    const running = another().settle(agentGraph({ middleware: [timeouts], model }), user('hello'))
    await clock.pass(30_000)
    const { status, error } = await running
    expect(status).toBe('failed')
    expect(error).toMatchObject({ code: 'CALL_TIMED_OUT', message: 'model "slow" timed out after 30000 ms' })
    expect(gaveUp).toEqual(['model "slow" timed out after 30000 ms'])
  })

  it('is as it was when it is in time, and leaves no timer behind', async () => {
    const { clock, another } = processes()
    const done = await another().run(agentGraph({ middleware: [timeouts], model: scripted(['hi']) }), user('hello'))
    expect(contents(done.state.messages)).toEqual(['user: hello', 'assistant: hi'])
    expect(clock.pending).toBe(0)
  })

  it('sends no more parts when its time is over', async () => {
    const { clock, another } = processes()
    const [first, second] = [open<void>(), open<void>()]
    const model: ChatModel = {
      ...silent().model,
      async *stream() {
        await first.promise
        yield { content: 'early ' }
        await second.promise
        yield { content: 'late' }
      },
    }
    const told: string[] = []
    const stream = another().stream(agentGraph({ middleware: [timeouts], model }), user('hello'))
    const listening = (async () => {
      for await (const event of stream) {
        if (event.type === 'token') told.push(event.text)
        if (event.type === 'retracted') told.push(`${event.tokens} retracted`)
      }
    })()
    first.resolve()
    await clock.pass(30_000)
    second.resolve()
    await listening
    expect(told).toEqual(['early ', '1 retracted'])
  })
})

describe('a tool call', () => {
  it('becomes an error that the model reads, and the agent goes on', async () => {
    const { clock, another } = processes()
    const slow = hangs('slow')
    const running = another().run(
      agentGraph({
        middleware: [timeouts],
        model: scripted([calls(['slow', { text: 'a' }]), 'too bad']),
        tools: [slow],
      }),
      user('hello'),
    )
    await clock.pass(10_000)
    expect(contents((await running).state.messages)).toContain('tool: Error: tool "slow" timed out after 10000 ms')
    expect(slow.gaveUp).toEqual(['tool "slow" timed out after 10000 ms'])
  })

  it('has the time that stands for its name, and each call of a round its own', async () => {
    const { clock, another } = processes()
    const tools = [hangs('slow'), hangs('crawl')]
    const model = scripted([calls(['slow', { text: 'a' }], ['crawl', { text: 'b' }]), 'too bad'])
    const running = another().run(agentGraph({ middleware: [timeouts], model, tools }), user('hello'))
    await clock.pass(10_000)
    expect(tools.map(({ gaveUp }) => gaveUp.length)).toEqual([1, 0])
    await clock.pass(110_000)
    expect(tools.map(({ gaveUp }) => gaveUp.length)).toEqual([1, 1])
    await running
  })

  it('has its whole time again when it waited for a person and goes on in another process', async () => {
    const { clock, another } = processes()
    const ask = asking('slow')
    const chat = () =>
      agentGraph({ middleware: [timeouts], model: scripted([calls(['slow', { text: 'a' }]), 'done']), tools: [ask] })
    await another().settle(chat(), user('hello'), T)
    expect(clock.pending).toBe(0)
    await clock.pass(60_000)
    const { state } = await another().resume(
      agentGraph({ middleware: [timeouts], model: scripted([() => 'done']), tools: [ask] }),
      't',
      'yes',
    )
    expect(contents(state.messages)).toContain('tool: a: yes')
  })

  it('takes its timer away when the run is cancelled', async () => {
    const { clock, another } = processes()
    const controller = new AbortController()
    const model = scripted([calls(['slow', { text: 'a' }])])
    const running = another().settle(
      agentGraph({ middleware: [timeouts], model, tools: [hangs('slow')] }),
      user('hello'),
      { signal: controller.signal },
    )
    await quiet()
    controller.abort()
    expect((await running).status).toBe('cancelled')
    expect(clock.pending).toBe(0)
  })
})

describe('its options', () => {
  it.each([
    { name: 'no time', options: {}, error: 'give modelMs, toolMs or perTool' },
    {
      name: 'one that there is not',
      options: { model: 5 },
      error: 'CallTimeoutMiddleware has no "model"; it has: name',
    },
    { name: 'no time above 0', options: { modelMs: 0 }, error: 'modelMs must be milliseconds above 0, not 0' },
    { name: 'a time that is none', options: { toolMs: '5s' }, error: 'toolMs must be milliseconds above 0, not "5s"' },
    {
      name: 'a tool with none',
      options: { perTool: { crawl: -1 } },
      error: 'crawl must be milliseconds above 0, not -1',
    },
  ])('$name: refused', ({ options, error }) => {
    expect(() => new CallTimeoutMiddleware(options as never)).toThrow(error)
  })
})
