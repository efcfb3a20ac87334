import { describe, expect, it } from 'vitest'
import { agentGraph, calls, numbered, strict, Talk, user } from '../../../testing/agent.ts'
import {
  agentNode,
  type ChatRequest,
  createRuntime,
  END,
  graph,
  MemoryStore,
  Middleware,
  node,
  type ScriptedReply,
  START,
  scripted,
  type ToolMiddlewareContext,
  ToolSelectionMiddleware,
  type ToolSelectionOptions,
} from '../../index.ts'

const NAMES = ['look', 'pay', 'send', 'read', 'note', 'plan'] as const
const T = { thread: 't' }

const choosing = (...names: readonly string[]): ScriptedReply => JSON.stringify({ tools: names })
const offered = ({ requests }: { readonly requests: readonly ChatRequest[] }) =>
  requests.map(({ tools }) => (tools ?? []).map(({ name }) => name).join(' '))

/** An agent with six tools that looks and answers, and a model that chooses. */
async function selecting(replies: readonly ScriptedReply[], options: Partial<ToolSelectionOptions> = {}) {
  const [chooser, model] = [scripted(replies, { model: 'chooser' }), strict([calls(['look', 1]), 'done'])]
  const { ran, tools } = numbered(...NAMES)
  const middleware = [new ToolSelectionMiddleware({ model: chooser, maxTools: 2, ...options })]
  const { warnings } = await createRuntime().run(
    agentGraph({ model, tools, middleware, system: 'be kind' }),
    user('pay it'),
  )
  return { chooser, offered: offered(model), ran, warnings: warnings.map(({ message }) => message) }
}

describe('tools that a model chooses', () => {
  it('are all that a request offers, in the order they had; it is asked once a turn', async () => {
    const chooser = scripted([choosing('send', 'pay')])
    const { tools } = numbered(...NAMES)
    const model = strict([calls(['pay', 1]), 'done'])
    //#region select
    const agent = agentNode('agent', Talk, { model, tools })
    const middleware = [new ToolSelectionMiddleware({ model: chooser, maxTools: 2, always: ['look'] })]
    const support = graph('support', Talk, { middleware }).edge(START, agent).edge(agent, END).check()
    //#endregion
    await createRuntime().run(support, user('pay and tell them'))
    expect(offered(model)).toEqual(['look pay send', 'look pay send'])
    expect(chooser.requests).toHaveLength(1)
  })

  it('are chosen by what was said, from names and descriptions', async () => {
    const { chooser } = await selecting([choosing('look')])
    const [request] = chooser.requests
    expect(request?.messages[1]).toEqual({ role: 'user', content: 'user: pay it' })
    expect(request?.messages[0]?.content).toContain('Choose at most 2.\n\nTools:\n- look: Does look.\n- pay: Does pay.')
    expect(request?.tools).toBeUndefined()
    expect(request?.responseFormat).toMatchObject({
      type: 'json_schema',
      schema: { properties: { tools: { type: 'array' } } },
    })
  })

  it('are chosen anew for each call where that is asked for', async () => {
    const every = await selecting([choosing('look'), choosing('pay')], { every: 'call' })
    expect(every.offered).toEqual(['look', 'pay'])
  })

  it('are no more than there may be: the first that were named', async () => {
    expect((await selecting([choosing('plan', 'note', 'read')])).offered[0]).toBe('note plan')
  })

  it('that there are not are left out, with a warning', async () => {
    const { offered, warnings } = await selecting([choosing('fly', 'look')])
    expect(offered[0]).toBe('look')
    expect(warnings).toEqual(['middleware "ToolSelectionMiddleware": the model chose tools that there are not: fly.'])
  })

  it('may stand among words', async () => {
    expect((await selecting(['Sure!\n```json\n{"tools":["look"]}\n```'])).offered[0]).toBe('look')
  })

  it('may be none: only what is always offered is left', async () => {
    expect((await selecting([choosing()], { always: ['plan'] })).offered[0]).toBe('plan')
  })

  it.each([
    { name: 'is no JSON', reply: 'look and pay' },
    { name: 'has no list', reply: '{"tool":"look"}' },
    { name: 'did not come', reply: new Error('503') },
  ])('are all of them, with a warning, when the choice $name', async ({ reply }) => {
    const { offered, warnings } = await selecting([reply, reply])
    expect(offered).toEqual([NAMES.join(' '), NAMES.join(' ')])
    expect(warnings[0]).toContain('tools could not be chosen, so all are offered')
  })

  it('are not chosen where there are few enough', async () => {
    const { chooser, offered } = await selecting([], { maxTools: 6 })
    expect(offered[0]).toBe(NAMES.join(' '))
    expect(chooser.requests).toEqual([])
  })

  it('D1: nothing of the choosing reaches the user’s stream', async () => {
    const { tools } = numbered(...NAMES)
    const chooser = scripted([choosing('look')])
    const agent = agentGraph({
      model: strict(['hello']),
      tools,
      middleware: [new ToolSelectionMiddleware({ model: chooser, maxTools: 1 })],
    })
    const tokens: string[] = []
    for await (const event of createRuntime().stream(agent, user('hi')))
      if (event.type === 'token') tokens.push(event.text)
    expect(tokens).toEqual(['hello'])
  })

  it('are chosen once for calls at the same time', async () => {
    const chooser = scripted([choosing('look')])
    const model = scripted(['a', 'b', 'c'])
    const definitions = numbered(...NAMES).tools.map(({ name, description, parameters }) => ({
      name,
      description,
      parameters,
    }))
    const ask = node('ask', Talk, async (_s, ctx) => {
      await Promise.all([1, 2, 3].map(() => ctx.callModel(model, { messages: [], tools: definitions })))
    })
    const middleware = [new ToolSelectionMiddleware({ model: chooser, maxTools: 1 })]
    await createRuntime().run(graph('g', Talk, { middleware }).edge(START, ask).edge(ask, END).check(), {}, T)
    expect(offered(model)).toEqual(['look', 'look', 'look'])
    expect(chooser.requests).toHaveLength(1)
  })
})

describe('over a pause', () => {
  class Gate extends Middleware {
    override beforeTool(ctx: ToolMiddlewareContext) {
      return ctx.answered === undefined ? ctx.suspend({}) : undefined
    }
  }

  it('another process goes on with what was chosen, and does not ask again', async () => {
    const store = new MemoryStore()
    const { tools } = numbered(...NAMES)
    const chooser = scripted([choosing('look')])
    const model = strict([calls(['look', 1]), 'done'])
    const parts = () => ({
      model,
      tools,
      middleware: [new ToolSelectionMiddleware({ model: chooser, maxTools: 1 }), new Gate()],
    })
    await createRuntime({ store }).run(agentGraph(parts()), user('look'), T)
    await createRuntime({ store }).resume(agentGraph(parts()), 't', true)
    expect(offered(model)).toEqual(['look', 'look'])
    expect(chooser.requests).toHaveLength(1)
  })

  it('the next turn chooses anew', async () => {
    const { tools } = numbered(...NAMES)
    const chooser = scripted([choosing('look'), choosing('pay')])
    const model = strict(['a', 'b'])
    const agent = agentGraph({
      model,
      tools,
      middleware: [new ToolSelectionMiddleware({ model: chooser, maxTools: 1 })],
    })
    const runtime = createRuntime({ store: new MemoryStore() })
    for (const said of ['look', 'pay']) await runtime.run(agent, user(said), T)
    expect(offered(model)).toEqual(['look', 'pay'])
  })
})

describe('the options', () => {
  const model = scripted([])
  it.each([
    { name: 'no model', options: {}, says: 'give the model that chooses' },
    { name: 'no tools', options: { model, maxTools: 0 }, says: 'maxTools is 0' },
    { name: 'another word', options: { model, every: 'round' }, says: 'every is "round"' },
    { name: 'another option', options: { model, max: 3 }, says: 'has no "max"' },
  ])('are refused where they are none: $name', ({ options, says }) => {
    expect(() => new ToolSelectionMiddleware(options as ToolSelectionOptions)).toThrow(says)
  })
})
