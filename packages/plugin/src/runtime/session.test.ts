import { describe, expect, it, vi } from 'vitest'
import { MAX_LINE_BYTES } from '../wire/frames.ts'
import { Outbox } from '../wire/outbox.ts'
import type { Served } from './invoke.ts'
import { Session } from './session.ts'

interface Line {
  readonly id?: unknown
  readonly method?: string
  readonly params?: { readonly call: number; readonly [name: string]: unknown }
  readonly result?: unknown
  readonly error?: { readonly code: number; readonly message: string; readonly data?: object }
}

const CAPABILITIES = ['runTool', 'emitEvent', 'log', 'callModel']

/** A session that was told what it may do, and what it has written since. */
function session(
  handlers: Served['handlers'],
  { tools = {}, shutdown = undefined as (() => unknown) | undefined } = {},
) {
  const written: Line[] = []
  const exit = vi.fn()
  const outbox = new Outbox((text) =>
    written.push(
      ...text
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ),
  )
  const one = new Session({ served: { handlers, tools }, outbox, shutdown, exit })
  const tell = async (message: object) => {
    one.receive(JSON.stringify({ jsonrpc: '2.0', ...message }))
    await new Promise((resolve) => setImmediate(resolve))
  }
  const ask = async (method: string, params: object, id = 7) => {
    await tell({ id, method, params })
    return written.find((line) => line.id === id && line.method === undefined)
  }
  one.receive(JSON.stringify({ id: 1, method: 'init', params: { protocol: 1, capabilities: CAPABILITIES } }))
  return { one, tell, ask, written, exit }
}

const before = { componentType: 'Gate', seam: 'toolCall', subject: {}, input: {} }
const gate = (handler: unknown) => ({ Gate: { toolCall: { before: handler } } })

describe('a plugin at the wire', () => {
  it('answers init with the version it speaks, and that it tests itself', async () => {
    const { written, tell } = session({})
    await tell({})
    expect(written).toEqual([{ jsonrpc: '2.0', id: 1, result: { protocol: 1, selfTest: true } }])
  })

  it('calls handlers as members of what they belong to', async () => {
    class Halves {
      word = 'mine'
      before() {
        return this.word
      }
    }
    const { ask } = session({ Gate: { toolCall: new Halves() } })
    expect(await ask('before', before)).toMatchObject({ result: 'mine' })
  })

  it('runs handlers concurrently, each with its own answer', async () => {
    let first = (_value: string) => {}
    const slow = new Promise<string>((resolve) => {
      first = resolve
    })
    const { ask, written } = session(gate(({ input }: { input: { n: number } }) => (input.n === 1 ? slow : 'second')))
    await ask('before', { ...before, input: { n: 1 } }, 11)
    expect(await ask('before', { ...before, input: { n: 2 } }, 12)).toMatchObject({ result: 'second' })
    first('first')
    await slow
    await new Promise((resolve) => setImmediate(resolve))
    expect(written.at(-1)).toMatchObject({ id: 11, result: 'first' })
  })

  it.each([
    { name: 'a bigint', value: 1n, why: 'BigInt' },
    { name: 'a function', value: () => 1, why: 'is a function, which is no JSON' },
    { name: 'more than a line may have', value: 'x'.repeat(MAX_LINE_BYTES), why: 'longer than 8388608 bytes' },
  ])('tells what is wrong with an answer that cannot be sent: $name', async ({ value, why }) => {
    const { ask } = session(gate(() => value))
    expect((await ask('before', before))?.error?.message).toContain(why)
  })

  it.each([
    { name: 'an error', thrown: new RangeError('no'), error: { message: 'no', data: { name: 'RangeError' } } },
    {
      name: 'one with a code',
      thrown: Object.assign(new Error('no'), { code: 'E1' }),
      error: { message: 'no', data: { name: 'Error', code: 'E1' } },
    },
    { name: 'a text', thrown: 'no', error: { message: 'no' } },
  ])('tells what a handler threw or rejected with: $name', async ({ thrown, error }) => {
    const throwing = session(
      gate(() => {
        throw thrown
      }),
    )
    const rejecting = session(gate(() => Promise.reject(thrown)))
    for (const { ask } of [throwing, rejecting]) {
      expect((await ask('before', before))?.error).toEqual({ code: -32000, ...error })
    }
  })

  it.each([
    {
      name: 'a component that is not served',
      method: 'before',
      params: { ...before, componentType: 'Other' },
      write: 'serve({ Other: { toolCall: { before({ subject, input }, ctx) { … } } } })',
    },
    {
      name: 'a half that is not served (C8)',
      method: 'after',
      params: before,
      write: 'serve({ Gate: { toolCall: { after({ subject, outcome }, ctx) { … } } } })',
    },
    {
      name: 'a member that every object has',
      method: 'execute',
      params: { componentType: 'constructor' },
      write: 'serve({ constructor: { execute(input, ctx) { … } } })',
    },
    {
      name: 'a node',
      method: 'execute',
      params: { componentType: 'Gate' },
      write: 'serve({ Gate: { execute(input, ctx) { … } } })',
    },
    {
      name: 'a transform',
      method: 'apply',
      params: { componentType: 'Gate' },
      write: 'serve({ Gate: { apply(messages, ctx) { … } } })',
    },
    {
      name: 'a provider',
      method: 'chat',
      params: { componentType: 'Gate' },
      write: 'serve({ Gate: { chat(request, ctx) { … } } })',
    },
    {
      name: 'an encoder',
      method: 'encode',
      params: { componentType: 'Gate' },
      write: 'serve({ Gate: { encode(event, ctx) { … } } })',
    },
    {
      name: 'discovery',
      method: 'listTools',
      params: {},
      write: 'serve({ … }, { listTools() { … }, tools: { … } })',
    },
    {
      name: 'a tool',
      method: 'callTool',
      params: { tool: 't' },
      write: 'serve({ … }, { tools: { t(input, ctx) { … } } })',
    },
  ])('says which handler to write for $name', async ({ method, params, write }) => {
    const { ask } = session(gate(() => 1))
    expect((await ask(method, params))?.error).toMatchObject({ code: -32004, message: expect.stringContaining(write) })
  })

  it('refuses a method it does not know', async () => {
    expect((await session({}).ask('paint', {}))?.error).toMatchObject({ code: -32601 })
  })

  it.each([
    { name: 'output', returned: { output: 1 }, result: { output: 1 } },
    { name: 'output and stderr', returned: { output: 1, stderr: 'x' }, result: { output: 1, stderr: 'x' } },
    { name: 'anything else', returned: { output: 1, more: 2 }, result: { output: { output: 1, more: 2 } } },
    { name: 'nothing', returned: undefined, result: { output: {} } },
  ])('takes what a tool returns, $name', async ({ returned, result }) => {
    const { ask } = session({}, { tools: { t: () => returned } })
    expect(await ask('callTool', { tool: 't', input: {} })).toMatchObject({ result })
  })
})

describe('what a handler asks of the host', () => {
  it('names the call it was made inside, and is settled by the answer', async () => {
    const { tell, ask, written } = session(
      gate((_: unknown, ctx: { runTool(name: string, input: object): unknown }) => ctx.runTool('t', { a: 1 })),
    )
    await ask('before', before)
    const asked = written.at(-1)
    expect(asked).toMatchObject({ method: 'runTool', params: { call: 7, name: 't', input: { a: 1 } } })
    await tell({ id: asked?.id, result: { found: 1 } })
    expect(written.at(-1)).toMatchObject({ id: 7, result: { found: 1 } })
  })

  it('is given up with the call', async () => {
    const handler = async (_: unknown, ctx: { signal: AbortSignal; callModel(request: object): Promise<unknown> }) => {
      const refused = await ctx.callModel({ messages: [] }).catch((error: Error) => error.message)
      return { refused, aborted: ctx.signal.aborted }
    }
    const { tell, ask, written } = session(gate(handler))
    await ask('before', before)
    await tell({ method: 'cancel', params: { call: 7 } })
    expect(written.at(-1)).toMatchObject({
      id: 7,
      result: { refused: 'the call this was asked in was given up', aborted: true },
    })
    await tell({ method: 'cancel', params: { call: 7 } })
    await tell({ id: 1, result: 'late' })
  })
})

interface Asks {
  runTool(name: string, input: object): Promise<unknown>
  emitEvent(name: string, data: unknown): void
}

describe('what a handler asks of the host, and', () => {
  it.each([
    { name: 'runTool', ask: (ctx: Asks) => ctx.runTool('t', { text: 'x'.repeat(MAX_LINE_BYTES) }) },
    { name: 'emitEvent', ask: (ctx: Asks) => ctx.emitEvent('e', 'x'.repeat(MAX_LINE_BYTES)) },
  ])('is longer than a line may be, is an error of that call alone: $name', async ({ name, ask: asks }) => {
    const { ask, written } = session(gate((_: unknown, ctx: Asks) => asks(ctx)))
    expect((await ask('before', before))?.error).toMatchObject({
      code: -32006,
      message: `this ${name} is longer than 8388608 bytes`,
    })
    expect(written.filter(({ method }) => method !== undefined)).toEqual([])
  })

  it('does not wait for yet, may be given up without an unhandled rejection', async () => {
    const unhandled = vi.fn()
    process.on('unhandledRejection', unhandled)
    const { tell, ask } = session(
      gate((_: unknown, ctx: Asks) => {
        void ctx.runTool('t', {})
        return new Promise(() => {})
      }),
    )
    await ask('before', before)
    await tell({ method: 'cancel', params: { call: 7 } })
    await new Promise((resolve) => setImmediate(resolve))
    process.off('unhandledRejection', unhandled)
    expect(unhandled).not.toHaveBeenCalled()
  })
})

describe('the end of a plugin', () => {
  it('aborts what is going on, runs the hook, answers and exits', async () => {
    let signal: AbortSignal | undefined
    const hook = vi.fn()
    const { ask, exit } = session(
      gate((_: unknown, ctx: { signal: AbortSignal }) => {
        signal = ctx.signal
        return new Promise(() => {})
      }),
      { shutdown: hook },
    )
    await ask('before', before)
    expect(await ask('shutdown', {}, 8)).toMatchObject({ result: null })
    expect([signal?.aborted, hook.mock.calls.length, exit.mock.calls.length]).toEqual([true, 1, 1])
  })

  it('comes once, whoever asks for it, and though the hook fails', async () => {
    const { one, ask, exit } = session({}, { shutdown: () => Promise.reject(new Error('pool is gone')) })
    expect((await ask('shutdown', {}))?.error?.message).toBe('pool is gone')
    await one.end()
    expect(exit).toHaveBeenCalledOnce()
  })
})
