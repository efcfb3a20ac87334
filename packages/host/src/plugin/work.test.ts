import { ResponseAssembler, type Tool } from '@sluice/core'
import { describe, expect, it } from 'vitest'
import { load as loadWith, type TestPlugin } from '../testing/plugin.ts'
import { RAW } from '../testing/raw.ts'
import { builtRuntime } from '../testing/runtime.ts'
import { toolContext } from '../testing/tool-context.ts'

const runtime = builtRuntime()
const load = (plugin: TestPlugin, options = {}) => loadWith(plugin, { runtime, ...options })
const signal = new AbortController().signal
const ctx = { signal }

const node = (execute: string, manifest = {}) => ({
  program: `serve({ Match: { execute: async (input, ctx) => { ${execute} } } })`,
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

  it('starts no process when it was aborted before (L7)', async () => {
    const plugins = await load(node('console.log("started"); return {}'), {
      onStderr: () => expect.unreachable('a process was started'),
    })
    await expect(plugins.execute('Match', {}, {}, { signal: AbortSignal.abort(new Error('enough')) })).rejects.toThrow(
      'enough',
    )
    await plugins.close()
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
    program: `serve({ Scrub: { apply: (messages, ctx) => (${answer}) } })`,
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
    program: `serve({ Llm: { chat: async (request, ctx) => { ${chat} } } })`,
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

  it('fails as a whole when its stream dies midway (M10)', async () => {
    const model = (
      await load(
        provider(`ctx.partial({ content: 'Hel' }); setImmediate(() => process.exit(2)); await new Promise(() => {})`),
      )
    ).model('Llm', {})
    await expect(gathered(model.stream?.(request, ctx) as AsyncIterable<object>)).rejects.toThrow(
      'ended with exit code 2',
    )
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
    program: `serve({ Box: { execute: () => ({}) } }, { tools: { lookup: async (input, ctx) => { ${run} } } })`,
    manifest: {
      components: [{ componentType: 'Box' }],
      tools: [{ name: 'lookup', componentType: 'Box', description: 'Looks up.', inputSchema, ...declared }],
    },
  })
  const toolCtx = toolContext(signal)

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

  it('runs a tool only inside a call: it offers none (L10)', async () => {
    const program = `${RAW}
      let call
      listen((m) => {
        if (m.method === 'callTool') { call = m.id; say({ id: 'q', method: 'runTool', params: { call, name: 'other', input: {} } }) }
        if (m.id === 'q') say({ id: call, result: { output: m.error } })
      })`
    const { tools } = await load({
      ...tool(''),
      program,
      manifest: { ...tool('').manifest, capabilities: ['runTool'] },
    })
    expect(await (tools[0] as Tool).run({}, toolCtx)).toMatchObject({ message: 'this call offers no runTool' })
  })

  it('says which handler to write when it has none', async () => {
    const { tools } = await load({ ...tool(''), program: 'serve({ Box: {} })' })
    await expect((tools[0] as Tool).run({}, toolCtx)).rejects.toThrow('tools: { lookup(input, ctx) { … } }')
  })
})
