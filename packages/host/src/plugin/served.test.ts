import { describe, expect, it, vi } from 'vitest'
import { load as loadWith, type TestPlugin } from '../testing/plugin.ts'
import { gateProgram, RAW } from '../testing/raw.ts'
import { builtRuntime } from '../testing/runtime.ts'
import { ask, consultation, fakeSite } from '../testing/site.ts'

const runtime = builtRuntime()
const load = (plugin: TestPlugin, options = {}) => loadWith(plugin, { runtime, ...options })

const ALL = { capabilities: ['runTool', 'callModel', 'emitEvent', 'log'] }

/** A plugin that sends `frame` inside each call, with `call` at hand, and answers with what it was answered. */
const sending = (frame: string) => `${RAW}
  let call
  listen((m) => {
    if (m.method === 'before') { call = m.id; say(${frame}) }
    else if (m.id === 'q') say({ id: call, result: m.error ?? m.result })
  })`

describe('a policy at work', () => {
  it('emits events and logs, published under its name', async () => {
    const site = fakeSite()
    const answer = `ctx.emitEvent('checked', { cmd: input.cmd }); ctx.emitEvent('bare'); ctx.log('warn', 'hm'); return 1`
    const { gate } = await load({ program: gateProgram(answer), manifest: ALL })
    await ask(gate, { site })
    expect(site.events).toEqual([
      { name: 'checked', data: { cmd: 'ls' } },
      { name: 'bare', data: null },
    ])
    expect(site.logs).toEqual([{ level: 'warn', message: 'hm' }])
  })

  it('may take the functions out of its ctx', async () => {
    const site = fakeSite()
    const program = `serve({ Gate: { toolCall: { before: (_, { log }) => { log('info', 'taken'); return 1 } } } })`
    const { gate } = await load({ program, manifest: ALL })
    await ask(gate, { site })
    expect(site.logs).toHaveLength(1)
  })

  it('runs a tool of the run that asked (L10)', async () => {
    const { gate } = await load({ program: gateProgram(`return ctx.runTool('search', input)`), manifest: ALL })
    const runs = ['one', 'two'].map((run) =>
      ask(gate, { site: fakeSite({ runToolFrom: async (_from, name, input) => ({ run, name, input }) }) }),
    )
    expect(await Promise.all(runs)).toEqual([
      { run: 'one', name: 'search', input: { cmd: 'ls' } },
      { run: 'two', name: 'search', input: { cmd: 'ls' } },
    ])
  })

  it('asks the model of its own settings (L14)', async () => {
    const asking = `return ctx.callModel({ messages: [{ role: 'user', content: 'safe?' }], temperature: 0 })`
    const { gate } = await load({ program: gateProgram(asking), manifest: ALL })
    const site = fakeSite({
      callModelFrom: async (_from, request) => ({ content: JSON.stringify(request), finish_reason: '' }),
    })
    expect(await ask(gate, { site })).toEqual({
      content: '{"messages":[{"role":"user","content":"safe?"}],"temperature":0}',
      finish_reason: '',
    })
  })

  it('gets what fails there as an error with its name and code', async () => {
    const answer = `try { await ctx.runTool('nope', {}) } catch ({ name, message, code }) { return { name, message, code } }`
    const { gate } = await load({ program: gateProgram(answer), manifest: ALL })
    const refused = Object.assign(new RangeError('no tool "nope"'), { code: 'TOOL_UNKNOWN' })
    const site = fakeSite({ runToolFrom: () => Promise.reject(refused) })
    expect(await ask(gate, { site })).toEqual({ name: 'RangeError', message: 'no tool "nope"', code: 'TOOL_UNKNOWN' })
  })

  it.each([
    { name: 'messages that are no list', request: '{ messages: 1 }' },
    { name: 'a message without content', request: `{ messages: [{ role: 'user' }] }` },
  ])('makes its own mistake with $name (L14)', async ({ request }) => {
    const { gate } = await load({ program: gateProgram(`return ctx.callModel(${request})`), manifest: ALL })
    await expect(ask(gate)).rejects.toMatchObject({
      code: 'PLUGIN_HANDLER',
      message: expect.stringMatching(/messages|content/),
    })
  })
})

describe('what a plugin may not do', () => {
  it.each(['emitEvent', 'log', 'callModel', 'runTool'])(
    '%s without having requested it, and is told so by name (L11)',
    async (capability) => {
      const { gate } = await load({ program: gateProgram(`await ctx.${capability}('debug', 'x')`) })
      await expect(ask(gate)).rejects.toThrow(`${capability} was not requested; add "${capability}" to "capabilities"`)
    },
  )

  it('the same by hand: a request is answered with an error that names the capability (L11)', async () => {
    const frame = `{ id: 'q', method: 'runTool', params: { call, name: 'search', input: {} } }`
    const { gate } = await load({ program: sending(frame) })
    expect(await ask(gate)).toMatchObject({
      code: -32002,
      message: expect.stringContaining('runTool was not requested'),
    })
  })

  it.each([
    { name: 'without a call', frame: `{ id: 'q', method: 'runTool', params: { name: 's', input: {} } }` },
    { name: 'in an ended call', frame: `{ id: 'q', method: 'runTool', params: { call: 99, name: 's', input: {} } }` },
    { name: 'in a lifecycle call', frame: `{ id: 'q', method: 'runTool', params: { call: 1, name: 's', input: {} } }` },
  ])('runTool $name (L10)', async ({ frame }) => {
    const { gate } = await load({ program: sending(frame), manifest: ALL })
    expect(await ask(gate)).toMatchObject({
      code: -32003,
      message: expect.stringContaining('a tool call must name the call it was made inside'),
    })
  })

  it.each([
    { name: 'an unknown method', frame: `{ id: 'q', method: 'readFile', params: { call } }`, code: -32601 },
    {
      name: 'runTool without a name',
      frame: `{ id: 'q', method: 'runTool', params: { call, input: {} } }`,
      code: -32602,
    },
    {
      name: 'runTool with a list',
      frame: `{ id: 'q', method: 'runTool', params: { call, name: 's', input: [] } }`,
      code: -32602,
    },
    { name: 'callModel without messages', frame: `{ id: 'q', method: 'callModel', params: { call } }`, code: -32602 },
    {
      name: 'a piece of a response at a gate',
      frame: `{ id: 'q', method: 'partial', params: { call, chunk: {} } }`,
      code: -32003,
    },
  ])('$name', async ({ frame, code }) => {
    const { gate } = await load({ program: sending(frame), manifest: ALL })
    expect(await ask(gate)).toMatchObject({ code })
  })

  it.each([
    {
      name: 'emitEvent without a call',
      frame: `{ method: 'emitEvent', params: { name: 'x' } }`,
      why: 'must name the call',
    },
    {
      name: 'log in an ended call',
      frame: `{ method: 'log', params: { call: 99, level: 'info', message: 'x' } }`,
      why: '99 is not',
    },
    {
      name: 'log in a lifecycle call',
      frame: `{ method: 'log', params: { call: 1, level: 'info', message: 'x' } }`,
      why: '1 is not',
    },
    {
      name: 'a bad level',
      frame: `{ method: 'log', params: { call, level: 'loud', message: 'x' } }`,
      why: 'levels are',
    },
    { name: 'a log without a message', frame: `{ method: 'log', params: { call, level: 'info' } }`, why: 'no text' },
    { name: 'an event without a name', frame: `{ method: 'emitEvent', params: { call } }`, why: 'a name matches' },
  ])('$name: refused with a warning, for nobody waits for an answer (L12)', async ({ frame, why }) => {
    const site = fakeSite()
    const program = `${RAW}
      listen((m) => {
        const call = m.id
        if (m.method !== 'before') return
        say(${frame})
        say({ id: m.id, result: 'fine' })
      })`
    const { gate, warnings } = await load({ program, manifest: ALL })
    expect(await ask(gate, { site })).toBe('fine')
    expect(warnings).toEqual([expect.stringContaining(why)])
    expect([site.events, site.logs]).toEqual([[], []])
  })

  it.each([
    { name: 'an event name with a space', use: `ctx.emitEvent('a b')`, why: 'a name matches' },
    { name: 'a level that is none', use: `ctx.log('loud', 'x')`, why: 'levels are: debug, info, warn, error' },
    { name: 'a log without a message', use: `ctx.log('info')`, why: 'is text' },
    { name: 'a piece of a response outside of a chat', use: 'ctx.partial({})', why: 'a chat that streams' },
  ])('$name, told where it is used (L12)', async ({ use, why }) => {
    const { gate } = await load({ program: gateProgram(use), manifest: ALL })
    await expect(ask(gate)).rejects.toThrow(why)
  })

  it('ask for more than 32 things at a time in one call', async () => {
    const answer = `const all = await Promise.allSettled(Array.from({ length: 33 }, () => ctx.runTool('slow', {})));
      return all.filter(({ status }) => status === 'rejected').map(({ reason }) => reason.message)`
    const { gate } = await load({ program: gateProgram(answer), manifest: ALL })
    let release = () => {}
    let served = 0
    const gateOpen = new Promise<void>((resolve) => {
      release = resolve
    })
    const runToolFrom = async () => {
      if (++served === 32) setImmediate(release)
      await gateOpen
      return {}
    }
    expect(await ask(gate, { site: fakeSite({ runToolFrom }) })).toEqual([expect.stringContaining('32 requests')])
  })
})

describe('a plugin that is served', () => {
  it('is told that an answer is too long for a line, and lives on', async () => {
    const answer = `return [process.pid, await ctx.runTool('big', {}).catch((error) => error.message)]`
    const { gate } = await load({ program: gateProgram(answer), manifest: ALL })
    const runToolFrom = async () => 'x'.repeat(9 * 1024 * 1024)
    const [pid, why] = (await ask(gate, { site: fakeSite({ runToolFrom }) })) as unknown[]
    expect(why).toBe('the answer is longer than 8388608 bytes')
    expect(await ask(gate)).toEqual([pid, expect.anything()])
  })

  it('is ended when it asks on and on and reads nothing', async () => {
    const program = `${RAW}
      let n = 0
      listen((m) => {
        if (m.method !== 'before') return
        process.stdin.pause()
        setInterval(() => say({ id: n++, method: 'runTool', params: { call: m.id, name: 'big', input: {} } }), 1)
      })`
    const { gate } = await load({ program, manifest: ALL })
    const big = 'x'.repeat(4 * 1024 * 1024)
    await expect(ask(gate, { site: fakeSite({ runToolFrom: async () => big }) })).rejects.toMatchObject({
      code: 'PLUGIN_BUSY',
      message: expect.stringContaining('does not read what it asked for'),
    })
  })

  it('may write a character to stderr in two pieces', async () => {
    const said: string[] = []
    const answer = `process.stderr.write(Buffer.from([0xc3])); await new Promise((resolve) => setTimeout(resolve, 50))
      process.stderr.write(Buffer.from([0xa9])); await new Promise((resolve) => setTimeout(resolve, 50)); return 1`
    const onStderr = (_: string, text: string) => said.push(text)
    await ask((await load({ program: gateProgram(answer) }, { onStderr })).gate)
    expect(said.join('')).toBe('é')
  })
})

describe('the time of a policy', () => {
  it('is taken once more when it says so (extend)', async () => {
    const { gate } = await load({ program: gateProgram('ctx.extend(); return 1') })
    const asked = consultation(gate)
    const extend = vi.spyOn(asked, 'extend')
    expect(await gate.consult(asked)).toBe(1)
    expect(extend).toHaveBeenCalledOnce()
  })
})
