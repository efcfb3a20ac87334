import { beforeEach, describe, expect, it, vi } from 'vitest'
import { oneNode, settle, trying } from '../../testing/play.ts'
import { type ChatModel, createRuntime, scripted, tool } from '../index.ts'

describe('a runtime', () => {
  it.each([
    {
      name: 'an option that is none, for it would be one without policies',
      options: { policy: [] },
      says: 'no option "policy"; options are: policies',
    },
    {
      name: 'a policy that is none',
      options: { policies: [{ name: 'x' }] },
      says: 'make it with policy({ name, seams })',
    },
  ])('refuses $name', ({ options, says }) => {
    expect(() => createRuntime(options as never)).toThrow(says)
  })
})

describe('the default runtime', () => {
  /** A fresh copy of the whole package, as a new process has it. */
  const load = async () => {
    const core = await import('../index.ts')
    const { z } = await import('zod')
    const S = core.state({ made: z.string().default('nothing') })
    const step = core.node('step', S, async (_, ctx) => ({ made: String(await ctx.callTool('act', {})) }))
    const g = core.graph('g', S).edge(core.START, step).edge(step, core.END).check()
    const withAct = (made: string) =>
      core.createRuntime({ tools: [core.tool('act', { description: 'd', input: z.object({}), run: () => made })] })
    return { ...core, g, withAct }
  }
  beforeEach(() => vi.resetModules())

  it('is what graph.run() and graph.stream() use', async () => {
    const { g, withAct, setDefaultRuntime, getDefaultRuntime } = await load()
    const runtime = withAct('yes')
    setDefaultRuntime(runtime)
    expect(getDefaultRuntime()).toBe(runtime)
    expect((await g.run({})).state.made).toBe('yes')
    let last: unknown
    for await (const event of g.stream({})) last = event
    expect(last).toMatchObject({ type: 'run_end', result: { made: 'yes' } })
  })
  it('is set once: a second time is refused', async () => {
    const { withAct, setDefaultRuntime } = await load()
    setDefaultRuntime(withAct('yes'))
    expect(() => setDefaultRuntime(withAct('no'))).toThrow(expect.objectContaining({ code: 'RUNTIME_SEALED' }))
  })
  it('cannot be set once a run has used the built-in one, which has no policies, tools or models', async () => {
    const { g, withAct, setDefaultRuntime } = await load()
    await expect(g.run({})).rejects.toMatchObject({ code: 'TOOL_UNKNOWN' })
    expect(() => setDefaultRuntime(withAct('yes'))).toThrow('the default runtime is set once, before the first run')
  })
  it('is not changed by a runtime of your own beside it', async () => {
    const { g, withAct, setDefaultRuntime } = await load()
    setDefaultRuntime(withAct('default'))
    expect((await withAct('mine').run(g, {})).state.made).toBe('mine')
    expect((await g.run({})).state.made).toBe('default')
  })
})

describe('a runtime', () => {
  it('cannot be changed', () => {
    expect(Object.isFrozen(createRuntime())).toBe(true)
  })
  const named = (name: string) =>
    tool(name, {
      description: 'd',
      input: { '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }) } },
      parameters: {},
      run: () => name,
    })

  it('is what nodes call tools and models of by name', async () => {
    const asked: string[] = []
    const models = (name: string): ChatModel | undefined => {
      asked.push(name)
      return name === 'small' ? scripted(['hello']) : undefined
    }
    const { seen, graph } = trying(async (ctx) => [
      await ctx.callTool('a', {}),
      (await ctx.callModel('small', { messages: [] })).content,
    ])
    await settle({ graph, tools: [named('a')], models })
    expect(seen.value).toEqual(['a', 'hello'])
    expect(asked).toEqual(['small'])
  })
  it('does not have every tool: a name it does not know is an error in the node, which lists the ones there are', async () => {
    const { seen, graph } = trying((ctx) => ctx.callTool('c', {}))
    expect((await settle({ graph, tools: [named('a'), named('b')] })).status).toBe('completed')
    expect(seen.error).toMatchObject({
      code: 'TOOL_UNKNOWN',
      at: { tool: 'c' },
      message: 'there is no tool "c"; tools are: a, b.',
    })
  })
  it('does not have every model: a name it does not know is an error in the node', async () => {
    const { seen, graph } = trying((ctx) => ctx.callModel('huge', { messages: [] }))
    expect((await settle({ graph })).status).toBe('completed')
    expect(seen.error).toMatchObject({
      code: 'MODEL_UNKNOWN',
      at: { node: 'step', model: 'huge' },
      message: 'node "step" asks for model "huge", which the runtime does not have.',
    })
  })
  it('refuses two tools of one name', () => {
    expect(() => createRuntime({ tools: [named('a'), named('a')] })).toThrow(
      expect.objectContaining({ code: 'TOOL_DUPLICATE' }),
    )
  })
  it('says how a run ended without throwing, or throws the very error that ended it', async () => {
    const error = new Error('no')
    const graph = oneNode(() => Promise.reject(error))
    expect(await createRuntime().settle(graph, {})).toMatchObject({ status: 'failed', error })
    await expect(createRuntime().run(graph, {})).rejects.toBe(error)
  })
  it('cannot be given other gates', () => {
    const { gates } = createRuntime()
    expect(() => Object.assign(gates, { toolCall: () => 'open' })).toThrow(TypeError)
  })
})
