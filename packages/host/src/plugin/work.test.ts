import { ResponseAssembler, type RunEvent, type Tool } from '@sluice/core'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { liveChildren } from '../child/child.ts'
import type { LoadOptions } from '../plugins/load.ts'
import { load as loadWith } from '../testing/plugin.ts'
import { RAW } from '../testing/raw.ts'
import { loadBy, ROUTES, type RoutedPlugin } from '../testing/routes.ts'
import { builtRuntime } from '../testing/runtime.ts'
import { toolContext } from '../testing/tool-context.ts'
import { SilenceLimit } from './silence.ts'

const runtime = builtRuntime()
const signal = new AbortController().signal
const ctx = { signal }
const toolCtx = toolContext(signal)

describe.each(ROUTES)('%s', (route) => {
  const load = (plugin: RoutedPlugin, options: LoadOptions = {}) => loadBy(route, plugin, { runtime, ...options })

  const node = (execute: string, manifest = {}) => ({
    handlers: `{ Match: { execute: async (input, ctx) => { ${execute} } } }`,
    manifest: { components: [{ componentType: 'Match' }], ...manifest },
  })

  describe('a plugin node', () => {
    it('is given its input, and the component as the document writes it', async () => {
      const plugins = await load(
        node('return { output: { hit: input.text === ctx.node.pattern, same: ctx.component.pattern } }'),
      )
      expect(await plugins.execute('Match', { pattern: 'a' }, { text: 'a' }, ctx)).toEqual({
        output: { hit: true, same: 'a' },
      })
    })

    it.each([
      { name: 'a branch', answer: `{ output: { n: 1 }, branch: 'yes' }`, result: { output: { n: 1 }, branch: 'yes' } },
      { name: 'the output itself', answer: `{ n: 1 }`, result: { output: { n: 1 } } },
      {
        name: 'an output that has an output',
        answer: `{ output: { n: 1 }, m: 2 }`,
        result: { output: { output: { n: 1 }, m: 2 } },
      },
      { name: 'nothing', answer: 'undefined', result: { output: {} } },
    ])('returns $name', async ({ answer, result }) => {
      const plugins = await load(node(`return ${answer}`))
      expect(await plugins.execute('Match', {}, {}, ctx)).toEqual(result)
    })

    it('fails with the name and the message of what it threw', async () => {
      const plugins = await load(node(`throw new RangeError('429 Too Many Requests')`))
      await expect(plugins.execute('Match', {}, {}, ctx)).rejects.toMatchObject({
        name: 'RangeError',
        message: '429 Too Many Requests',
      })
    })

    it.each([
      { name: 'a list as output', answer: '{ output: [1] }' },
      { name: 'a number', answer: '7' },
      { name: 'a branch that is no text', answer: '{ output: {}, branch: 3 }' },
    ])('is refused with what was expected: $name', async ({ answer }) => {
      const plugins = await load(node(`return ${answer}`))
      await expect(plugins.execute('Match', {}, {}, ctx)).rejects.toMatchObject({ code: 'PLUGIN_ANSWER' })
    })

    it('may use what its caller offers, and nothing else', async () => {
      const manifest = { capabilities: ['runTool', 'emitEvent', 'callModel'] }
      const plugins = await load(
        node(`ctx.emitEvent('seen', 1); return { output: await ctx[input.use]('t', {}) }`, manifest),
      )
      const events: unknown[] = []
      const offers = {
        signal,
        emitEvent: (...event: unknown[]) => events.push(event),
        runTool: async () => ({ ran: true }),
      }
      expect(await plugins.execute('Match', {}, { use: 'runTool' }, offers)).toEqual({ output: { ran: true } })
      expect(events).toEqual([['seen', 1]])
      await expect(plugins.execute('Match', {}, { use: 'callModel' }, offers)).rejects.toThrow(
        'this call offers no callModel',
      )
    })

    it('rejects with the reason as soon as it is aborted (L6)', async () => {
      const abort = new AbortController()
      const plugins = await load(
        node('ctx.emitEvent("here"); await new Promise(() => {})', { capabilities: ['emitEvent'] }),
      )
      const going = plugins.execute(
        'Match',
        {},
        {},
        { signal: abort.signal, emitEvent: () => abort.abort(new Error('enough')) },
      )
      await expect(going).rejects.toThrow('enough')
    })

    it('may not be silent for longer than its budget (L5)', async () => {
      const plugins = await load(node('await new Promise(() => {})'), { silenceMs: 50 })
      await expect(plugins.execute('Match', {}, {}, ctx)).rejects.toMatchObject({
        code: 'PLUGIN_TIMED_OUT',
        message: 'plugin "tested" timed out: it said nothing for 50 ms of "execute".',
      })
    })

    it('has its time anew with each word, and none passes while it is served (L5)', async () => {
      const [heard, held] = [vi.spyOn(SilenceLimit.prototype, 'heard'), vi.spyOn(SilenceLimit.prototype, 'held')]
      onTestFinished(() => void vi.restoreAllMocks())
      const words = async (execute: string) => {
        const capabilities = ['emitEvent', 'log', 'runTool']
        const plugins = await load(node(execute, { capabilities }))
        heard.mockClear()
        held.mockClear()
        const offers = { signal, emitEvent: () => {}, log: () => {}, runTool: async () => ({}) }
        await plugins.execute('Match', {}, {}, offers)
        return [heard.mock.calls.length, held.mock.calls.length]
      }
      const [silent = 0] = await words('return {}')
      expect(await words(`ctx.log('info', 'x'); ctx.emitEvent('x'); ctx.extend(); return {}`)).toEqual([silent + 3, 0])
      expect(await words(`await ctx.runTool('t', {}); return {}`)).toEqual([silent + 1, 1])
    })

    it.each([
      ['emitEvent', `'x'`],
      ['log', `'info', 'x'`],
      ['runTool', `'t', {}`],
      ['callModel', '{ messages: [] }'],
    ])('does not use %s without having requested it (L11)', async (capability, given) => {
      const plugins = await load(node(`await ctx.${capability}(${given}); return {}`))
      const offers = { signal, [capability]: () => expect.unreachable('it was used') }
      await expect(plugins.execute('Match', {}, {}, offers)).rejects.toThrow(
        `${capability} was not requested; add "${capability}" to "capabilities"`,
      )
    })

    it('says nothing more once its call is over: what it reports is refused with a warning, what it asks for fails (L10, L12)', async () => {
      const late = `globalThis.late ??= []
        if (input.now) { for (const ctx of globalThis.late) { ctx.log('info', 'late'); ctx.emitEvent('late') }
          return { why: await globalThis.late[0].runTool('t', {}).catch(({ message }) => message) } }
        globalThis.late.push(ctx); return {}`
      onTestFinished(() => void Reflect.deleteProperty(globalThis, 'late'))
      const plugins = await load(node(late, { capabilities: ['log', 'emitEvent', 'runTool'] }))
      const told: unknown[] = []
      const tell = (...all: unknown[]) => void told.push(all)
      const offers = { signal, log: tell, emitEvent: tell, runTool: async () => void told.push('ran') }
      await plugins.execute('Match', {}, {}, offers as never)
      const { output } = await plugins.execute('Match', {}, { now: true }, offers as never)
      expect(output.why).toContain('must name the call it was made inside')
      expect(told).toEqual([])
      expect(plugins.warnings).toEqual([expect.stringContaining('log'), expect.stringContaining('emitEvent')])
    })

    it('is found by type and kind', async () => {
      const plugins = await load(node('return {}'))
      await expect(plugins.execute('Other', {}, {}, ctx)).rejects.toThrow(
        /no plugin provides a node of type "Other"; provided are: Match/,
      )
      expect(() => plugins.model('Match', {})).toThrow(
        /no plugin provides a provider of type "Match"; provided are: none/,
      )
    })
  })

  describe('a plugin transform', () => {
    const call = { component: { word: 'x' }, phase: 'pre', messages: [{ role: 'user', content: 'hi' }] } as const
    const transform = (answer: string) => ({
      handlers: `{ Scrub: { apply: (messages, ctx) => (${answer}) } }`,
      manifest: { components: [{ componentType: 'Scrub', kind: 'transform', phase: 'both' }] },
    })

    it.each([
      { name: 'passes', answer: `{ action: 'pass' }`, verdict: { action: 'pass' } },
      {
        name: 'modifies',
        answer: `{ action: 'modify', messages: [{ role: 'user', content: messages[0].content + ctx.component.word + ctx.phase }] }`,
        verdict: { action: 'modify', messages: [{ role: 'user', content: 'hixpre' }] },
      },
      { name: 'rejects', answer: `{ action: 'reject', reason: 'no' }`, verdict: { action: 'reject', reason: 'no' } },
      {
        name: 'rejects with messages',
        answer: `{ action: 'reject', reason: 'no', messages }`,
        verdict: { action: 'reject', reason: 'no', messages: call.messages },
      },
    ])('$name', async ({ answer, verdict }) => {
      const plugins = await load(transform(answer))
      expect(await plugins.apply('Scrub', call, ctx)).toEqual(verdict)
    })

    it.each(['{}', `{ action: 'modify' }`, `{ action: 'reject' }`, `{ action: 'modify', messages: [1] }`, 'null'])(
      'is refused when it answers %s',
      async (answer) => {
        const plugins = await load(transform(answer))
        await expect(plugins.apply('Scrub', call, ctx)).rejects.toThrow(/is not \{ action|must be an object/)
      },
    )
  })

  describe('a plugin provider', () => {
    const request = { model: 'm', messages: [{ role: 'user', content: 'hi' }] } as const
    const provider = (chat: string, stream = true) => ({
      handlers: `{ Llm: { chat: async (request, ctx) => { ${chat} } } }`,
      manifest: { components: [{ componentType: 'Llm', kind: 'provider', stream }] },
    })
    const gathered = async (chunks: AsyncIterable<object>) => {
      const whole = new ResponseAssembler()
      for await (const chunk of chunks) whole.add(chunk)
      return whole.response()
    }

    it('answers a request, with the settings that the document gives', async () => {
      const plugins = await load(
        provider(`return { content: ctx.component.url + request.messages[0].content, finish_reason: 'stop', extra: 1,
        tool_calls: [{ id: 'c', name: 't', arguments: '{}' }] }`),
      )
      const model = plugins.model('Llm', { model_id: 'big', url: 'u:' })
      expect(model.model).toBe('big')
      expect(await model.chat(request, ctx)).toEqual({
        content: 'u:hi',
        finish_reason: 'stop',
        tool_calls: [{ id: 'c', name: 't', arguments: '{}' }],
      })
    })

    it('has its time anew with each piece of a stream (L5)', async () => {
      const heard = vi.spyOn(SilenceLimit.prototype, 'heard')
      onTestFinished(() => void vi.restoreAllMocks())
      const words = async (chat: string) => {
        const model = (await load(provider(chat))).model('Llm', {})
        heard.mockClear()
        await gathered(model.stream?.(request, ctx) as AsyncIterable<object>)
        return heard.mock.calls.length
      }
      const silent = await words(`return { content: 'Hi' }`)
      const piece = `ctx.partial({ content: 'Hi' });`
      expect(await words(`${piece} ${piece} return { finish_reason: 'stop' }`)).toBe(silent + 2)
    })

    it('streams when its manifest says so, and only then (M10)', async () => {
      const chat = `if (!ctx.stream) return { content: 'whole' }
      ctx.partial({ content: 'Hel' })
      ctx.partial({ content: 'lo', tool_calls: [{ index: 0, id: 'c', name: 't', arguments: '{' }] })
      return { finish_reason: 'stop', tool_calls: [{ index: 0, arguments: '}' }] }`
      const model = (await load(provider(chat))).model('Llm', {})
      expect(await gathered(model.stream?.(request, ctx) as AsyncIterable<object>)).toEqual({
        content: 'Hello',
        finish_reason: 'stop',
        tool_calls: [{ id: 'c', name: 't', arguments: '{}' }],
      })
      expect((await load(provider(chat, false))).model('Llm', {}).stream).toBeUndefined()
    })

    it('fails as a whole when its stream fails midway (M10)', async () => {
      const chat = `ctx.partial({ content: 'Hel' }); throw new Error('502 Bad Gateway')`
      const model = (await load(provider(chat))).model('Llm', {})
      await expect(gathered(model.stream?.(request, ctx) as AsyncIterable<object>)).rejects.toThrow('502 Bad Gateway')
    })

    it('is told when the reader of its stream leaves early', async () => {
      const plugins = await load(
        provider(
          `if (!ctx.stream) return { content: String(globalThis.left) }
       ctx.signal.addEventListener('abort', () => { globalThis.left = true })
       ctx.partial({ content: 'Hel' }); await new Promise(() => {})`,
        ),
      )
      const model = plugins.model('Llm', {})
      for await (const _ of model.stream?.(request, ctx) ?? []) break
      expect(await model.chat(request, ctx)).toMatchObject({ content: 'true' })
    })

    it.each([`ctx.partial({ content: 1 })`, `ctx.partial('text')`, `ctx.partial({ tool_calls: [{}] })`])(
      'fails when a piece is none: %s',
      async (piece) => {
        const model = (await load(provider(`${piece}; return {}`))).model('Llm', {})
        await expect(gathered(model.stream?.(request, ctx) as AsyncIterable<object>)).rejects.toMatchObject({
          code: 'PLUGIN_ANSWER',
        })
      },
    )

    it.each(['runTool', 'callModel'])('makes no calls of its own: %s (L14)', async (capability) => {
      const given = { runTool: `'t', {}`, callModel: '{ messages: [] }' }[capability]
      const asking = provider(`await ctx.${capability}(${given}); return { content: 'x' }`)
      const plugins = await load({ ...asking, manifest: { ...asking.manifest, capabilities: [capability] } })
      await expect(plugins.model('Llm', {}).chat(request, ctx)).rejects.toThrow(`this call offers no ${capability}`)
    })

    it('fails when its answer is no response', async () => {
      const model = (await load(provider(`return { text: 'hi' }`))).model('Llm', {})
      await expect(model.chat(request, ctx)).rejects.toThrow('needs a string "content"')
    })
  })

  describe('a tool that a plugin serves', () => {
    const inputSchema = {
      type: 'object',
      properties: { key: { type: 'string' }, n: { type: 'integer', default: 1 } },
      required: ['key'],
    }
    const tool = (run: string, declared = {}) => ({
      handlers: '{ Box: { execute: () => ({}) } }',
      options: `{ tools: { lookup: async (input, ctx) => { ${run} } } }`,
      manifest: {
        components: [{ componentType: 'Box' }],
        tools: [{ name: 'lookup', componentType: 'Box', description: 'Looks up.', inputSchema, ...declared }],
      },
    })
    it('is a tool like any other', async () => {
      const { tools } = await load(tool('return { output: { got: input, name: ctx.tool } }'))
      const [lookup] = tools as [Tool]
      expect(lookup).toMatchObject({
        name: 'lookup',
        description: 'Looks up.',
        parameters: inputSchema,
        source: 'plugin:tested',
      })
      expect(await lookup.run(lookup.readArguments({ key: 'a' }), toolCtx)).toEqual({
        got: { key: 'a', n: 1 },
        name: 'lookup',
      })
    })

    it('checks its arguments and its result', async () => {
      const outputSchema = { type: 'object', required: ['found'] }
      const { tools } = await load(tool('return {}', { outputSchema }))
      const [lookup] = tools as [Tool]
      expect(() => lookup.readArguments({ n: 'x' })).toThrow(
        /the arguments of tool "lookup".*must have required property 'key'.*n: must be integer/,
      )
      expect(() => lookup.readResult({})).toThrow(/the result of tool "lookup".*found/)
    })

    it('says which handler to write when it has none', async () => {
      const { tools } = await load({ ...tool(''), options: '{}' })
      await expect((tools[0] as Tool).run({}, toolCtx)).rejects.toThrow('tools: { lookup(input, ctx) { … } }')
    })
  })

  describe('an encoder', () => {
    const encoder = (members: string) => ({
      handlers: `{ Lines: { ${members} } }`,
      manifest: {
        components: [{ componentType: 'Lines', kind: 'encoder', protocol: 'lines', contentType: 'text/plain' }],
      },
    })
    const event: RunEvent = { type: 'custom', nodeName: 'n', nodeType: 'Node', data: 1, path: ['g'] }

    it('renders each event as frames, in order, and what it held back at the end', async () => {
      const plugins = await load(
        encoder(`held: [],
        async encode(event, ctx) { this.held.push(event.data); return this.held.length < 2 ? [] : [{ event: 'pair', data: this.held.splice(0) }] },
        finish(ctx) { return [{ data: this.held }] }`),
      )
      const lines = plugins.encoder('lines')
      expect([lines.protocol, lines.contentType]).toEqual(['lines', 'text/plain'])
      const rendering = lines.start()
      expect(await rendering.encode(event)).toEqual([])
      expect(await rendering.encode({ ...event, data: 2 })).toEqual([{ event: 'pair', data: [1, 2] }])
      expect(await rendering.encode({ ...event, data: 3 })).toEqual([])
      expect(await rendering.finish()).toEqual([{ data: [3] }])
    })

    it('tells streams apart by ctx.streamId, and need not finish', async () => {
      const lines = (await load(encoder('encode: (event, { streamId }) => [{ data: streamId }]'))).encoder('lines')
      const [one, two] = [lines.start(), lines.start()]
      const ids = [await one.encode(event), await two.encode(event), await one.encode(event)].map(
        ([frame]) => frame?.data,
      )
      expect(ids[0]).toBe(ids[2])
      expect(ids[0]).not.toBe(ids[1])
      expect(await one.finish()).toEqual([])
    })

    it.each([
      { name: 'no list', frames: '{}' },
      { name: 'a frame without data', frames: `[{ event: 'x' }]` },
      { name: 'a name that is no text', frames: '[{ event: 1, data: 1 }]' },
      { name: 'a name of two lines, which would forge a frame', frames: `[{ event: 'a\\ndata: b', data: 1 }]` },
    ])('is refused when it answers $name', async ({ frames }) => {
      const rendering = (await load(encoder(`encode: () => (${frames})`))).encoder('lines').start()
      await expect(rendering.encode(event)).rejects.toMatchObject({ code: 'PLUGIN_ANSWER' })
    })

    it('fails with what it threw', async () => {
      const rendering = (await load(encoder(`encode() { throw new RangeError('no such event') }`)))
        .encoder('lines')
        .start()
      await expect(rendering.encode(event)).rejects.toMatchObject({ name: 'RangeError', message: 'no such event' })
    })

    it('is found by its protocol; the host renders its own, each event under its type', async () => {
      const plugins = await load(encoder('encode: () => []'))
      expect(() => plugins.encoder('ag-ui')).toThrow('nobody renders protocol "ag-ui"; protocols are: sluice, lines.')
      const own = plugins.encoder('sluice').start()
      expect(await own.encode(event)).toEqual([{ event: 'custom', data: event }])
      expect(await own.finish()).toEqual([])
    })
  })

  describe('a plugin that is asked for its tools', () => {
    const TOOL = { name: 'search', description: 'Searches.', inputSchema: { type: 'object', required: ['q'] } }
    const telling = (tools: string, manifest: object = {}) => ({
      handlers: '{}',
      options: `{ listTools: async () => (${tools}), tools: { search: (input) => ({ output: input }) } }`,
      manifest: { discoverTools: true, ...manifest },
    })
    const allowed = { discoverTools: true }

    it('serves what it tells of (M5)', async () => {
      const { tools } = await load(telling(JSON.stringify([TOOL])), allowed)
      const [search] = tools as [Tool]
      expect(search).toMatchObject({ name: 'search', description: 'Searches.', source: 'plugin:tested' })
      expect(() => search.readArguments({})).toThrow("must have required property 'q'")
      expect(await search.run({ q: 'x' }, toolCtx)).toEqual({ q: 'x' })
    })

    it('is asked for them once (M5)', async () => {
      const asked = telling(`[{ name: 'search' + (globalThis.asked = (globalThis.asked ?? 0) + 1) }]`)
      onTestFinished(() => void Reflect.deleteProperty(globalThis, 'asked'))
      const tools = `{ search1: () => ({ output: { asked: globalThis.asked } }) }`
      const options = asked.options.replace(/tools: .*/, `tools: ${tools} }`)
      const { tools: found } = await load({ ...asked, options }, allowed)
      expect(found.map(({ name }) => name)).toEqual(['search1'])
      expect(await (found[0] as Tool).run({}, toolCtx)).toEqual({ asked: 1 })
      expect(await (found[0] as Tool).run({}, toolCtx)).toEqual({ asked: 1 })
    })

    it('is asked only where the operator allows it (M5)', async () => {
      const refused = load(telling(`(() => { throw new Error('asked') })()`))
      await expect(refused).rejects.toMatchObject({
        code: 'PLUGIN_DISCOVERY',
        message: expect.stringContaining('allow that with --discover-tools'),
      })
    })

    it.each([
      { name: 'what is no list', tools: '{}', why: 'must be a list' },
      { name: 'nothing', tools: 'undefined', why: 'must be a list' },
      { name: 'a bad name', tools: `[{ name: 'my tool' }]`, why: '[0].name is "my tool"' },
      { name: 'one twice', tools: `[{ name: 'a' }, { name: 'a' }]`, why: 'declares "a" more than once' },
      {
        name: 'a program elsewhere',
        tools: `[{ name: 'a', path: '../../bin/sh' }]`,
        why: "leaves the manifest's folder",
      },
      { name: 'both ways', tools: `[{ name: 'a', path: 'x', componentType: 'T' }]`, why: 'must have either "path"' },
      { name: 'a type of nobody', tools: `[{ name: 'a', componentType: 'T' }]`, why: '[0].componentType is "T"' },
    ])('is refused like a manifest when it tells of $name (M5)', async ({ tools, why }) => {
      await expect(load(telling(tools), allowed)).rejects.toMatchObject({
        code: 'PLUGIN_DISCOVERY',
        message: expect.stringContaining(why),
      })
    })

    it('may not tell of a tool that its manifest declares', async () => {
      const manifest = { components: [{ componentType: 'Box' }], tools: [{ ...TOOL, componentType: 'Box' }] }
      await expect(load(telling(JSON.stringify([TOOL]), manifest), allowed)).rejects.toThrow('"search" more than once')
    })

    it('fails as a whole with what it threw', async () => {
      await expect(load(telling(`(() => { throw new Error('no index') })()`), allowed)).rejects.toThrow('no index')
    })
  })

  describe('a component that stands in others', () => {
    it('is asked nothing', async () => {
      const plugins = await load({
        handlers: '{}',
        manifest: { components: [{ componentType: 'Rule', kind: 'component' }] },
      })
      expect(plugins.types.get('Rule')?.kind).toBe('component')
      await expect(plugins.execute('Rule', {}, {}, ctx)).rejects.toMatchObject({ code: 'PLUGIN_TYPE' })
    })
  })
})

describe('a plugin in a process of its own', () => {
  const load = (plugin: { readonly program: string; readonly manifest: object }, options = {}) =>
    loadWith(plugin, { runtime, ...options })

  it('starts no process when it was aborted before (L7)', async () => {
    const plugins = await load(
      { program: 'console.log("started")', manifest: { components: [{ componentType: 'Match' }] } },
      {
        onStderr: () => expect.unreachable('a process was started'),
      },
    )
    await expect(plugins.execute('Match', {}, {}, { signal: AbortSignal.abort(new Error('enough')) })).rejects.toThrow(
      'enough',
    )
    await plugins.close()
  })

  it('fails as a whole when its stream dies midway (M10)', async () => {
    const plugins = await load({
      program: `serve({ Llm: { async chat(request, ctx) {
        ctx.partial({ content: 'Hel' }); setImmediate(() => process.exit(2)); await new Promise(() => {})
      } } })`,
      manifest: { components: [{ componentType: 'Llm', kind: 'provider', stream: true }] },
    })
    const request = { model: 'm', messages: [{ role: 'user', content: 'hi' }] } as const
    const chunks = plugins.model('Llm', {}).stream?.(request, ctx) as AsyncIterable<object>
    await expect(drained(chunks)).rejects.toThrow('ended with exit code 2')
  })

  it('runs a tool only inside a call that offers it: one of a tool offers none (L10)', async () => {
    const program = `${RAW}
      let call
      listen((m) => {
        if (m.method === 'callTool') { call = m.id; say({ id: 'q', method: 'runTool', params: { call, name: 'other', input: {} } }) }
        if (m.id === 'q') say({ id: call, result: { output: m.error } })
      })`
    const manifest = {
      capabilities: ['runTool'],
      components: [{ componentType: 'Box' }],
      tools: [{ name: 'lookup', componentType: 'Box' }],
    }
    const { tools } = await load({ program, manifest })
    expect(await (tools[0] as Tool).run({}, toolCtx)).toMatchObject({ message: 'this call offers no runTool' })
  })

  it('is not started to be asked for its tools where the operator does not allow it, and ends when it tells of wrong ones (M5)', async () => {
    const plugin = {
      program: `serve({}, { listTools: () => [{ name: 'a b' }] })`,
      manifest: { components: [], discoverTools: true },
    }
    await expect(load(plugin)).rejects.toMatchObject({ code: 'PLUGIN_DISCOVERY' })
    expect(liveChildren()).toBe(0)
    await expect(load(plugin, { discoverTools: true })).rejects.toThrow('is "a b"')
    expect(liveChildren()).toBe(0)
  })
})

async function drained(chunks: AsyncIterable<object>): Promise<void> {
  for await (const _ of chunks);
}
