import { describe, expect, it } from 'vitest'
import { liveChildren } from '../child/child.ts'
import { load as loadWith, type TestPlugin } from '../testing/plugin.ts'
import { gateProgram, RAW } from '../testing/raw.ts'
import { builtAuthorModule, builtRuntime } from '../testing/runtime.ts'
import { ask, consultation } from '../testing/site.ts'

const runtime = builtRuntime()
const imported = builtAuthorModule()
const load = (plugin: TestPlugin, options = {}) => loadWith(plugin, { runtime, ...options })

/** Answers `proceed`, and does `first` for the first message that is no `init`. */
const raw = (first: string, init = 'say({ id: m.id, result: { protocol: 1 } })') => `${RAW}
let calls = 0
listen((m) => {
  if (m.method === 'init') return ${init}
  if (m.method === 'shutdown') process.exit(0)
  if (m.id === undefined) return
  if (calls++ === 0) { ${first} } else say({ id: m.id, result: { action: 'proceed', calls } })
})`

describe('the handshake', () => {
  it('comes before the first question, with the granted capabilities and every half (L1)', async () => {
    const program = `${RAW}
      const methods = []
      listen((m) => {
        methods.push(m.method === 'init' ? m : m.method)
        if (m.method === 'before') say({ id: m.id, result: { methods } })
      })`
    const { gate } = await load({ program, manifest: { capabilities: ['log'] } })
    expect(await ask(gate)).toMatchObject({
      methods: [
        {
          method: 'init',
          params: {
            protocol: 1,
            capabilities: ['log'],
            seams: { nodeError: { before: [], after: expect.any(Array) } },
          },
        },
        'before',
      ],
    })
  })

  it('fails the call and later ones when the plugin speaks another version (L2)', async () => {
    const { gate } = await load({ program: raw('', 'say({ id: m.id, result: { protocol: 2 } })') })
    const fault = { code: 'PLUGIN_PROTOCOL', message: expect.stringContaining('speaks version 2') }
    await expect(ask(gate)).rejects.toMatchObject(fault)
    expect(() => gate.consult(consultation(gate))).toThrow(expect.objectContaining(fault))
  })

  it.each([
    { name: 'refuses it', init: "say({ id: m.id, error: { code: -32601, message: 'what?' } })" },
    { name: 'ignores it', init: 'undefined' },
    { name: 'answers vaguely', init: "say({ id: m.id, result: { protocol: 'one' } })" },
  ])('takes a plugin that $name for version 1 (L2)', async ({ init }) => {
    const { gate } = await load({ program: raw("say({ id: m.id, result: 'fine' })", init) })
    expect(await ask(gate)).toBe('fine')
  })
})

describe('the time that a process takes to start', () => {
  it('is not the time of the policies that wait for it', async () => {
    const slow = `await new Promise((go) => setTimeout(go, 1_500)); ${gateProgram(`return 'at last'`)}`
    const { gate } = await load({ program: slow }, { timeoutMs: 1_000 })
    expect(await ask(gate)).toBe('at last')
  })

  it('is bounded: whoever says nothing by then has had its start', async () => {
    const { gate } = await load({ program: 'process.stdin.resume()' }, { timeoutMs: 10, startMs: 50 })
    await expect(ask(gate)).rejects.toThrow('timed out')
  })
})

describe('a line that is no message', () => {
  it.each([
    { name: 'no JSON (L3)', line: 'starting up…' },
    { name: 'a number (L4)', line: '17' },
    { name: 'a text (L4)', line: '"ready"' },
    { name: 'null (L4)', line: 'null' },
    { name: 'a list (L4)', line: '[]' },
    { name: 'an object without a version', line: '{"id":1,"result":{}}' },
    { name: 'an answer without a result', line: '{"jsonrpc":"2.0","id":2}' },
  ])('fails the only call in flight, and the next one is answered (Z10): $name', async ({ line }) => {
    const { gate, warnings } = await load({ program: raw(`process.stdout.write(${JSON.stringify(`${line}\n`)})`) })
    await expect(ask(gate)).rejects.toMatchObject({
      code: 'PLUGIN_STRAY_LINE',
      message: expect.stringContaining('print to stderr'),
    })
    expect(await ask(gate)).toMatchObject({ action: 'proceed' })
    expect(warnings[0]).toContain(line)
  })

  it('is a warning while several calls are in flight', async () => {
    const program = `${RAW}
      const asked = []
      listen((m) => {
        if (m.method !== 'before') return
        asked.push(m.id)
        if (asked.length < 2) return
        process.stdout.write('hello\\n')
        for (const id of asked) say({ id, result: id })
      })`
    const { gate, warnings } = await load({ program })
    await expect(Promise.all([ask(gate), ask(gate)])).resolves.toHaveLength(2)
    expect(warnings).toEqual([expect.stringContaining('plugin "tested" printed a line that is no message, "hello"')])
  })
})

describe('a call given up', () => {
  const program = `${RAW}
    listen((m) => {
      if (m.method === 'cancel') return say({ id: m.params.call, result: 'late' })
      if (m.method !== 'before') return
      if (m.params.input.cmd === 'answer') say({ id: m.id, result: { pid: process.pid } })
    })`

  it('is dropped and the plugin told; the process goes on for others (L6, Z11)', async () => {
    const { gate, warnings } = await load({ program })
    const { pid } = (await ask(gate, { input: { cmd: 'answer' } })) as { pid: number }
    const hanging = consultation(gate, { input: { cmd: 'hang' } })
    gate.consult(hanging)
    const other = ask(gate, { input: { cmd: 'answer' } })
    hanging.abandon()
    expect(await other).toEqual({ pid })
    expect(await ask(gate, { input: { cmd: 'answer' } })).toEqual({ pid })
    expect(warnings).toEqual([])
  })

  it('aborts the signal of its handler', async () => {
    const { gate } = await load({
      program: `
        let aborted = 'no'
        serve({ Gate: { toolCall: { before: async ({ input }, { signal }) => {
          if (input.cmd === 'read') return aborted
          if (input.cmd === 'wait') signal.addEventListener('abort', () => { aborted = 'yes' })
        } } } })`,
    })
    await ask(gate, { input: { cmd: 'warm' } })
    const waiting = consultation(gate, { input: { cmd: 'wait' } })
    gate.consult(waiting)
    waiting.abandon()
    expect(await ask(gate, { input: { cmd: 'read' } })).toBe('yes')
  })

  it('is answered too late without harm, and one answered twice is a warning', async () => {
    const { gate, warnings } = await load({
      program: raw("say({ id: m.id, result: 'a' }); say({ id: m.id, result: 'b' })"),
    })
    expect(await ask(gate)).toBe('a')
    expect(await ask(gate)).toMatchObject({ action: 'proceed' })
    expect(warnings).toEqual([expect.stringContaining('answered call 2, which does not wait for an answer')])
  })

  it('costs the process only when more than 32 stay unanswered; what is in flight ends first (Z11)', async () => {
    const silent = `${RAW}
      const asked = []
      listen((m) => {
        if (m.method === 'shutdown') process.exit(0)
        if (m.method !== 'before') return
        if (m.params.input.cmd === 'pid') return say({ id: m.id, result: process.pid })
        asked.push(m)
        if (m.params.input.cmd === 'release') for (const { id, params } of asked) if (params.input.cmd !== 'hang') say({ id, result: process.pid })
      })`
    const { gate, warnings } = await load({ program: silent })
    const first = await ask(gate, { input: { cmd: 'pid' } })
    const live = ask(gate, { input: { cmd: 'live' } })
    const release = ask(gate, { input: { cmd: 'release' } })
    const hanging = Array.from({ length: 33 }, () => consultation(gate, { input: { cmd: 'hang' } }))
    for (const one of hanging) gate.consult(one)
    for (const one of hanging) one.abandon()
    const second = await ask(gate, { input: { cmd: 'pid' } })
    expect(second).not.toBe(first)
    expect(await Promise.all([live, release])).toEqual([first, first])
    expect(warnings).toEqual([expect.stringContaining('a new process takes its place')])
  })
})

describe('a process that ends', () => {
  it('is started again at the next call, as a new one that knows nothing of before (L9, L13)', async () => {
    const program = gateProgram(`globalThis.calls = (globalThis.calls ?? 0) + 1
      if (input.cmd === 'die') process.exit(7)
      return { calls, pid: process.pid }`)
    const { gate } = await load({ program })
    const first = (await ask(gate)) as { pid: number }
    await expect(ask(gate, { input: { cmd: 'die' } })).rejects.toMatchObject({
      code: 'PLUGIN_DIED',
      message: 'plugin "tested" ended with exit code 7 and said nothing on stderr.',
    })
    const second = (await ask(gate)) as { pid: number }
    expect([first, second]).toMatchObject([{ calls: 1 }, { calls: 1 }])
    expect(second.pid).not.toBe(first.pid)
  })

  it('fails all its calls, and the error quotes the end of its stderr', async () => {
    const { gate } = await load({ program: `console.error('x'.repeat(5000)); throw new Error('no config')` })
    const ends = await Promise.allSettled([ask(gate), ask(gate)])
    for (const end of ends) {
      const { message } = (end as PromiseRejectedResult).reason
      expect(message).toContain('Error: no config')
      expect(message.length).toBeLessThan(4_300)
    }
  })

  it('stays dead after five deaths in a row without an answer', async () => {
    const { gate } = await load({ program: 'process.exit(1)' })
    for (let i = 0; i < 5; i++) await expect(ask(gate)).rejects.toMatchObject({ code: 'PLUGIN_DIED' })
    expect(() => gate.consult(consultation(gate))).toThrow(
      /died 5 times in a row and is not started again.*exit code 1/,
    )
  })

  it('is started again as often as it takes when it answers in between', async () => {
    const { gate } = await load({ program: gateProgram(`if (input.cmd === 'die') process.exit(1); return 'fine'`) })
    for (let i = 0; i < 6; i++) {
      expect(await ask(gate)).toBe('fine')
      await expect(ask(gate, { input: { cmd: 'die' } })).rejects.toMatchObject({ code: 'PLUGIN_DIED' })
    }
  })

  it('does not harm the host when it kills itself (L13)', async () => {
    const { gate } = await load({ program: gateProgram(`process.kill(process.pid, 'SIGKILL')`) })
    await expect(ask(gate)).rejects.toThrow('was ended by SIGKILL')
  })

  it('is told apart from one that cannot be started', async () => {
    const { gate } = await load({ program: '', manifest: { command: ['./not-there'] } })
    await expect(ask(gate)).rejects.toMatchObject({
      code: 'PLUGIN_START',
      message: expect.stringMatching(/could not be started: .*ENOENT/),
    })
  })
})

describe('closing', () => {
  it('starts nothing, and refuses later calls', async () => {
    const plugins = await load({ program: gateProgram('return 1') })
    const before = liveChildren()
    await plugins.close()
    expect(liveChildren()).toBe(before)
    expect(() => plugins.gate.consult(consultation(plugins.gate))).toThrow(
      expect.objectContaining({ code: 'PLUGIN_CLOSED' }),
    )
  })

  it('asks first, and runs the shutdown hook of the author (L8)', async () => {
    const said: string[] = []
    const program = `serve({ Gate: { toolCall: { before: () => 1 } } }, { shutdown: () => console.log('closing the pool') })`
    const plugins = await load({ program }, { onStderr: (_plugin: string, text: string) => said.push(text) })
    await ask(plugins.gate)
    await plugins.close()
    expect(said.join('')).toBe('closing the pool\n')
  })

  it('rejects what is in flight and aborts its signal', async () => {
    const said: string[] = []
    const program = gateProgram(
      `ctx.signal.addEventListener('abort', () => console.log('aborted')); console.log('asked'); await new Promise(() => {})`,
    )
    let asked = () => {}
    const onStderr = (_plugin: string, text: string) => {
      said.push(text)
      asked()
    }
    const plugins = await load({ program }, { onStderr })
    const waiting = expect(ask(plugins.gate)).rejects.toMatchObject({ code: 'PLUGIN_CLOSED' })
    await new Promise<void>((resolve) => {
      asked = resolve
    })
    await Promise.all([waiting, plugins.close()])
    expect(said.join('')).toContain('aborted')
  })

  it('kills a process that ignores both the request and the closed stdin (L8)', async () => {
    const before = liveChildren()
    const program = `${RAW}
      process.on('SIGTERM', () => {})
      setInterval(() => {}, 1000)
      listen((m) => { if (m.method === 'before') say({ id: m.id, result: 1 }) })`
    const plugins = await load({ program })
    await ask(plugins.gate)
    expect(liveChildren()).toBe(before + 1)
    await plugins.close()
    expect(liveChildren()).toBe(before)
  })
})

describe('a program', () => {
  it('may import serve instead of having it', async () => {
    const program = `import { serve } from ${JSON.stringify(imported)}; serve({ Gate: { toolCall: { before: () => 'imported' } } })`
    const { gate } = await load({ program })
    expect(await ask(gate)).toBe('imported')
  })

  it('may be executable, and then brings its own', async () => {
    const { gate } = await load({ program: `#!${process.execPath}\n${raw('say({ id: m.id, result: typeof serve })')}` })
    expect(await ask(gate)).toBe('undefined')
  })

  it('prints what it logs to stderr', async () => {
    const said: string[] = []
    const program = gateProgram(`console.log('a'); console.info('b'); console.debug('c'); return 1`)
    const plugins = await load({ program }, { onStderr: (plugin: string, text: string) => said.push(plugin, text) })
    expect(await ask(plugins.gate)).toBe(1)
    await plugins.close()
    expect(said.join('')).toMatch(/^tested.*a\n.*b\n.*c\n$/s)
  })

  it('calls serve once', async () => {
    const { gate } = await load({ program: 'serve({}); serve({})' })
    await expect(ask(gate)).rejects.toThrow('serve() was called a second time')
  })
})

describe('what a process starts with', () => {
  it('is an empty environment, plus what the operator names, in the folder of its manifest (L13)', async () => {
    const program = gateProgram('return { env: Object.keys(process.env), folder: process.cwd() }')
    const { gate } = await load({ program }, { env: { TOKEN: 'x' } })
    expect(await ask(gate)).toEqual({ env: ['TOKEN'], folder: expect.stringContaining('sluice-test-') })
  })
})
