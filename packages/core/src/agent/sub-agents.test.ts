import { describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { eventsOf, noting, ofType, says } from '../../testing/play.ts'
import { errorOf, setUp } from '../../testing/threads.ts'
import { faultsOf } from '../../testing/transcript.ts'
import {
  type ChatMessage,
  type ChatRequest,
  createAgent,
  createRuntime,
  type Json,
  type JsonObject,
  middleware,
  type RuntimeOptions,
  type ScriptedReply,
  scripted,
  type Tool,
  tool,
} from '../index.ts'
import { expectNeutral } from '../testing/index.ts'

const T = { thread: 't' }
const delegate = (name: string, task = 'do it'): ScriptedReply => ({ tool_calls: [{ name, arguments: { task } }] })
const act = (text: string): ScriptedReply => ({ tool_calls: [{ name: 'act', arguments: { text } }] })
/** A model that answers by how far the conversation is, so that another process may go on with it. */
const steady = (replies: readonly ScriptedReply[]) =>
  scripted(
    Array.from({ length: 20 }, () => ({ messages }: ChatRequest) => {
      const turn = messages.filter(({ role }) => role === 'assistant').length
      return replies[turn] ?? new Error('there is nothing left to say')
    }),
  )
const contents = (messages: readonly ChatMessage[]) => messages.map(({ role, content }) => `${role}: ${content}`)
/** Asks about every call of `act`: `true` lets it run, an object changes its arguments, a text refuses it. */
const gate = () =>
  middleware({
    name: 'gate',
    beforeTool: (ctx) => {
      if (ctx.toolName !== 'act' || ctx.answered === true) return undefined
      if (ctx.answered === undefined) return ctx.suspend({ question: 'May it?' })
      return typeof ctx.answered === 'string' ? ctx.reject(ctx.answered) : ctx.replace(ctx.answered as JsonObject)
    },
  })

describe('an agent as a tool of another', () => {
  it('is told the task, and its answer is the result', async () => {
    const inner = scripted(['It is in the ledger.'])
    const outer = scripted([delegate('researcher', 'find it'), 'done'])
    const researcher = createAgent({ name: 'researcher', model: inner }).asTool({ description: 'Looks things up.' })
    const { state } = await createAgent({ model: outer, tools: [researcher] }).run('hello')
    expect(inner.requests[0]?.messages).toEqual([{ role: 'user', content: 'find it' }])
    expect(contents(state.messages)).toEqual([
      'user: hello',
      'assistant: ',
      'tool: It is in the ledger.',
      'assistant: done',
    ])
    expect(outer.requests[0]?.tools).toMatchObject([
      { name: 'researcher', description: 'Looks things up.', parameters: { required: ['task'] } },
    ])
  })
  it('is called with a task, and with nothing else', async () => {
    const inner = scripted([])
    const tools = [createAgent({ name: 'inner', model: inner }).asTool({ description: 'd' })]
    const outer = scripted([{ tool_calls: [{ name: 'inner', arguments: { job: 'x' } }] }, 'done'])
    const { state } = await createAgent({ model: outer, tools }).run('hello')
    expect(state.messages[2]?.content).toBe(
      'Error: invalid arguments for tool "inner": the arguments of tool "inner" does not fit its schema: task: expected a text',
    )
    expect(inner.requests).toEqual([])
  })
  it('may be called with what its tool asks for, told it in its own words, and answer with what is made of its state', async () => {
    const inner = scripted(['42', '43'])
    const agent = createAgent({ name: 'inner', model: inner })
    const input = z.object({ order: z.string() })
    const plain = agent.asTool({ name: 'plain', description: 'd', input })
    const mapped = agent.asTool({
      name: 'mapped',
      description: 'd',
      input,
      in: ({ order }) => {
        expectTypeOf(order).toEqualTypeOf<string>()
        return `What of order ${order}?`
      },
      out: ({ finalText, messages }) => ({ says: finalText, after: messages.length }),
    })
    const both = ['plain', 'mapped'].map(
      (name): ScriptedReply => ({ tool_calls: [{ name, arguments: { order: '9' } }] }),
    )
    const { state } = await createAgent({ model: scripted([...both, 'done']), tools: [plain, mapped] }).run('hello')
    expect(inner.requests.map(({ messages }) => messages[0]?.content)).toEqual(['{"order":"9"}', 'What of order 9?'])
    expect(state.messages.filter(({ role }) => role === 'tool').map(({ content }) => content)).toEqual([
      '42',
      '{"says":"43","after":2}',
    ])
  })
  it('answers with its output, where it has one', async () => {
    const agent = createAgent({ name: 'inner', model: scripted(['{"n": 1}']), output: z.object({ n: z.number() }) })
    const model = scripted([delegate('inner'), 'done'])
    const { state } = await createAgent({ model, tools: [agent.asTool({ description: 'd' })] }).run('hello')
    expect(state.messages[2]?.content).toBe('{"n":1}')
  })
  it('that fails is a failed call: the model reads why', async () => {
    const inner = createAgent({ name: 'inner', model: scripted([new Error('503 out of order')]) })
    const tools = [inner.asTool({ description: 'd' })]
    const { state } = await createAgent({ model: scripted([delegate('inner'), 'done']), tools }).run('hello')
    expect(state.messages[2]?.content).toBe('Error: 503 out of order')
  })
  it('begins anew at each call, or goes on from its last one where it remembers', async () => {
    for (const [remember, said] of [
      [false, [1, 1]],
      [true, [1, 3]],
    ] as const) {
      const { runtime } = setUp()
      const inner = scripted(['one', 'two'])
      const tools = [createAgent({ name: 'inner', model: inner }).asTool({ description: 'd', remember })]
      await runtime.run(createAgent({ model: scripted([delegate('inner'), delegate('inner'), 'done']), tools }), 'a', T)
      expect(inner.requests.map(({ messages }) => messages.length)).toEqual(said)
    }
  })
  it('D4: streams with its path, and its tokens are those of the bare agent', async () => {
    const inner = () => createAgent({ name: 'inner', model: scripted(['one two']) })
    const outer = createAgent({
      model: scripted([delegate('inner'), 'done']),
      tools: [inner().asTool({ description: 'd' })],
    })
    const tokens = async (graph: typeof outer) => ofType(await eventsOf({ graph, input: 'x' }), 'token')
    const bare = (await tokens(inner())).map(({ text }) => text)
    const nested = (await tokens(outer)).filter(({ path }) => path.length > 1)
    expect(nested.map(({ text }) => text)).toEqual(bare)
    expect(nested[0]?.path).toEqual(['agent', 'agent', 'inner'])
  })
})

interface Options {
  readonly description: string
  readonly middleware?: 'inherit'
  context?(context: unknown): unknown
}

/** Three agents, each the tool of the one before; the lowest has these tools. */
function nested(
  lowest: readonly ScriptedReply[],
  tools: readonly Tool[],
  options: Options = { description: 'd' },
  own: readonly ReturnType<typeof gate>[] = [],
) {
  const low = createAgent({ name: 'low', model: steady(lowest), tools })
  const middle = createAgent({
    name: 'middle',
    model: steady([delegate('low'), 'from the middle']),
    tools: [low.asTool(options)],
  })
  return createAgent({
    name: 'top',
    model: steady([delegate('middle'), 'from the top']),
    tools: [middle.asTool(options)],
    middleware: own,
  })
}

describe('what holds around an agent holds in those that are its tools', () => {
  it('G2: the context, three levels down, in prompts, hooks and tools', async () => {
    const seen: unknown[] = []
    const look = tool('act', {
      description: 'd',
      input: z.object({ text: z.string() }),
      run: (_args, ctx) => seen.push(ctx.context),
    })
    const hook = middleware({
      name: 'hook',
      beforeTool: (ctx) => void (ctx.toolName === 'act' && seen.push(ctx.context)),
    })
    const marker = { user: 'Ada' }
    const top = nested([act('x'), 'done'], [look], { description: 'd', middleware: 'inherit' }, [hook])
    await top.run('hello', { context: marker })
    expect(seen).toEqual([marker, marker])
    expect(seen[0]).toBe(marker)
  })
  it('G2: or as much of it as the tool lets through', async () => {
    const seen: unknown[] = []
    const look = tool('act', {
      description: 'd',
      input: z.object({ text: z.string() }),
      run: (_args, ctx) => seen.push(ctx.context),
    })
    const narrow = { description: 'd', context: (context: unknown) => ({ user: (context as { user: string }).user }) }
    await nested([act('x'), 'done'], [look], narrow).run('hello', { context: { user: 'Ada', key: 'secret' } })
    expect(seen).toEqual([{ user: 'Ada' }])
  })
  it('the policies of the runtime, always', async () => {
    const tight = noting()
    const deny = says('Deny', {
      'toolCall.before': ({ subject }: { subject: { toolName?: string } }) =>
        subject.toolName === 'act' ? { action: 'reject', reason: 'never' } : { action: 'proceed' },
    })
    const runtime = createRuntime({ policies: [deny] })
    await runtime.run(nested([act('x'), 'done'], [tight]), 'hello')
    expect(tight.ran).toEqual([])
    expect(deny.asked.map(({ subject }) => `${subject.nodeName} ${subject.toolName}`)).toEqual([
      'top middle',
      'middle low',
      'low act',
    ])
  })
  it.each([
    { name: 'not unless it is said', inherit: undefined, calls: ['middle'] },
    { name: 'where it is said', inherit: 'inherit', calls: ['middle', 'low', 'act'] },
  ] as const)('the middleware of the one that calls: $name', async ({ inherit, calls }) => {
    const seen: string[] = []
    const note = middleware({ name: 'note', beforeTool: (ctx) => void seen.push(ctx.toolName) })
    await nested([act('x'), 'done'], [noting()], { description: 'd', middleware: inherit }, [note]).run('hello')
    expect(seen).toEqual(calls)
  })
  it('the rounds, for those that ask for no other number', async () => {
    const acts = Array.from({ length: 9 }, () => act('x'))
    const run = async (inner: number | undefined, limits?: RuntimeOptions['limits']) => {
      const model = scripted(acts)
      const low = createAgent({ name: 'low', model, tools: [noting()], maxRounds: inner })
      const tools = [low.asTool({ description: 'd' })]
      await createRuntime({ limits }).run(
        createAgent({ model: scripted([delegate('low'), 'done']), tools, maxRounds: 3 }),
        'hello',
      )
      return model.requests.length
    }
    expect(await run(undefined)).toBe(3)
    expect(await run(2)).toBe(2)
    expect(await run(5)).toBe(5)
    expect(await run(5, { maxToolRounds: 4 })).toBe(4)
  })
})

describe('a question inside an agent that is a tool', () => {
  it('B11: three levels down shows at the top, with the way to it, and is answered there', async () => {
    const { store } = setUp()
    const acted = noting()
    const top = () => nested([act('x'), 'done'], [acted], { description: 'd', middleware: 'inherit' }, [gate()])
    const { asks } = await createRuntime({ store }).run(top(), 'hello', T)
    expect(asks.map(({ key, payload }) => [key, (payload as JsonObject).question])).toEqual([
      [expect.stringMatching(/^top:middle\/middle:low\/low:act/), 'May it?'],
    ])
    expect(acted.ran).toEqual([])
    const { status, state } = await createRuntime({ store }).resume(top(), 't', true)
    expect([status, state.finalText, acted.ran]).toEqual(['completed', 'from the top', [{ text: 'x' }]])
    expect(contents(state.messages)).toEqual([
      'user: hello',
      'assistant: ',
      'tool: from the middle',
      'assistant: from the top',
    ])
  })
  it('in a run without a thread ends it, and says so', async () => {
    const top = nested([act('x')], [noting()], { description: 'd', middleware: 'inherit' }, [gate()])
    expect(await errorOf(top.run('hello'))).toMatchObject({ code: 'SUSPEND_NEEDS_THREAD' })
  })

  describe('B10: may be put in every round, and answered in every way, each time in another process:', () => {
    const play = async (gated: boolean, answers: readonly Json[]) => {
      const { store } = setUp()
      const acted = noting(({ text }) => `did ${text}`)
      const models = {
        inner: scripted([act('a'), act('b'), act('c'), 'inner done']),
        outer: scripted([delegate('inner'), 'outer done']),
      }
      const agent = () => {
        const own = gated ? [gate()] : []
        const inner = createAgent({ name: 'inner', model: models.inner, tools: [acted], middleware: own })
        return createAgent({ model: models.outer, tools: [inner.asTool({ description: 'd' })] })
      }
      let outcome = await createRuntime({ store }).run(agent(), 'hello', T)
      for (const answer of answers) outcome = await createRuntime({ store }).resume(agent(), 't', answer)
      for (const { messages } of [...models.inner.requests, ...models.outer.requests]) {
        expect(faultsOf(messages)).toEqual([])
      }
      return {
        outcome,
        ran: acted.ran,
        asked: models.inner.requests.length,
        told: models.inner.requests.at(-1)?.messages,
      }
    }
    it('approved three times, what is done and said is what is done and said without a question', async () => {
      const free = await play(false, [])
      const gated = await play(true, [true, true, true])
      expect(gated.outcome.state.messages).toEqual(free.outcome.state.messages)
      expect([gated.ran, gated.asked, gated.told]).toEqual([free.ran, free.asked, free.told])
    })
    it('edited, refused and approved, each call comes to that', async () => {
      const { outcome, ran, told } = await play(true, [{ text: 'A' }, 'not that', true])
      expect(outcome.state.finalText).toBe('outer done')
      expect(ran).toEqual([{ text: 'A' }, { text: 'c' }])
      expect(told?.filter(({ role }) => role === 'tool').map(({ content }) => content)).toEqual([
        'did A',
        'Refused: not that',
        'did c',
      ])
    })
  })
  it('does not hold up or repeat what runs beside it', async () => {
    const { store } = setUp()
    const acted = noting()
    const inner = (name: string) =>
      createAgent({
        name,
        model: scripted([act(name), `${name} done`]),
        tools: [acted],
        middleware: name === 'b' ? [gate()] : [],
      }).asTool({ description: 'd' })
    const all = ['a', 'b', 'c'].map((name) => ({ name, arguments: { task: 'x' } }))
    const outer = createAgent({ model: scripted([{ tool_calls: all }, 'done']), tools: ['a', 'b', 'c'].map(inner) })
    expect((await createRuntime({ store }).run(outer, 'hello', T)).status).toBe('paused')
    expect(acted.ran).toEqual([{ text: 'a' }, { text: 'c' }])
    const { state } = await createRuntime({ store }).resume(outer, 't', true)
    expect(acted.ran).toEqual([{ text: 'a' }, { text: 'c' }, { text: 'b' }])
    expect(state.messages.filter(({ role }) => role === 'tool').map(({ content }) => content)).toEqual([
      'a done',
      'b done',
      'c done',
    ])
  })
})

it('C1: middleware that does nothing changes nothing of an agent whose tool is an agent: prompt, repair, errors and questions', async () => {
  await expectNeutral((own) => {
    const burns = tool('burns', {
      description: 'd',
      input: z.object({}),
      run: () => {
        throw new TypeError('on fire')
      },
    })
    const inner = createAgent({
      name: 'inner',
      model: steady([act('x'), { tool_calls: [{ name: 'burns' }, { name: 'ehco' }] }, 'no JSON', '{"n":1}']),
      tools: [noting(), burns],
      middleware: [gate()],
      output: z.object({ n: z.number() }),
      invalidOutput: 'repair',
    })
    const graph = createAgent({
      model: steady([delegate('inner'), 'done']),
      tools: [inner.asTool({ description: 'd', middleware: 'inherit' })],
      system: () => 'Be brief.',
      middleware: own,
    })
    return { graph, input: 'hello', answer: () => true }
  })
})

it('an agent that is a tool goes on where it was when its process dies: only a tool of its own that was cut off is asked about', async () => {
  const done: string[] = []
  const once = tool('once', { description: 'd', input: z.object({}), run: () => done.push('once') })
  const process = () => {
    const model = steady([{ tool_calls: [{ name: 'once' }] }, 'inner done'])
    const inner = createAgent({ name: 'inner', model, tools: [once], system: async () => 'Be brief.' })
    return createAgent({
      model: steady([delegate('inner'), 'outer done']),
      tools: [inner.asTool({ description: 'd' })],
    })
  }
  const cutOff: string[] = []
  let deaths = 0
  for (let nth = 1; ; nth++) {
    done.length = 0
    const { store } = setUp()
    store.fail('before', { nth })
    const died = await errorOf(createRuntime({ store }).run(process(), 'hello', T))
    if (died === undefined) break
    deaths++
    // Before the first write there is no thread.
    if (nth === 1) continue
    let outcome = await createRuntime({ store }).continue(process(), 't')
    if (outcome.status === 'paused') {
      cutOff.push(...outcome.asks.map(({ key }) => key))
      outcome = await createRuntime({ store }).resume(process(), 't', { result: 1 })
    }
    const { status, state } = outcome
    expect([status, state.finalText, done], `dead before write ${nth}`).toEqual(['completed', 'outer done', ['once']])
  }
  expect(deaths).toBeGreaterThan(5)
  expect(cutOff).toEqual(['agent:inner/inner:once@engine'])
})
