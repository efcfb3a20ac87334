import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { settle } from '../../testing/play.ts'
import { errorOf, setUp } from '../../testing/threads.ts'
import {
  type AgentOptions,
  type AgentState,
  agentNode,
  append,
  createAgent,
  createRuntime,
  END,
  graph,
  messages,
  middleware,
  modelNode,
  node,
  type ScriptedCall,
  START,
  scripted,
  state,
  ToolDeniedError,
  type ToolErrors,
  ToolGroupError,
  tool,
  toolNode,
} from '../index.ts'

const T = { thread: 't' }
const Input = z.object({ text: z.string() })
const cause = new TypeError('on fire')
const throws = (error: unknown, name = 'burns') =>
  tool(name, {
    description: 'd',
    input: Input,
    run: () => {
      throw error
    },
  })
const burns = throws(cause)
const denies = throws(new ToolDeniedError('denies', 'not today'), 'denies')
const dated = tool('dated', { description: 'd', input: Input, run: () => new Date(0) })
const misfit = tool('misfit', { description: 'd', input: Input, output: z.number(), run: () => 'x' as never })
const echo = tool('echo', { description: 'd', input: Input, run: ({ text }) => text })
const Nothing = state({ made: z.string().default('') })
const reader = node('reader', Nothing, (_s, ctx) => ({ made: `${ctx.context}` }))
const readsContext = tool('reads', {
  description: 'd',
  input: Input,
  run: (_args, ctx) => ctx.run(graph('reads', Nothing).edge(START, reader).edge(reader, END).check(), {}),
})
const tools = [burns, denies, dated, misfit, echo, readsContext]
const of = (name: string, args: unknown = { text: 'x' }): ScriptedCall => ({ name, arguments: args })

/** What an agent comes to that makes these calls, and then answers. */
function play(
  calls: readonly ScriptedCall[],
  toolErrors?: ToolErrors,
  rest: Pick<AgentOptions<typeof AgentState, never, never>, 'middleware'> = {},
) {
  const model = scripted([{ tool_calls: calls }, 'done'])
  const agent = createAgent({ model, tools, toolErrors, middleware: rest.middleware })
  return settle({ graph: agent, input: 'hello' }).then((outcome) => ({
    ...outcome,
    asked: model.requests.length,
    told: (model.requests[1]?.messages ?? []).filter(({ role }) => role === 'tool'),
  }))
}

describe('errors of tools that are raised', () => {
  it('I1: end the run with the very error, after one model call', async () => {
    const { error, asked } = await play([of('burns')], 'raise')
    expect(error).toBe(cause)
    expect(asked).toBe(1)
  })
  it('I1: are not raised unless it is said: the model reads them', async () => {
    expect((await play([of('burns')])).status).toBe('completed')
  })
  it('I2: are one error where there are several, with all of them in the order of the calls', async () => {
    const { error } = await play([of('dated'), of('echo'), of('burns')], 'raise')
    expect(error).toBeInstanceOf(ToolGroupError)
    expect(error).toMatchObject({
      name: 'ToolGroupError',
      code: 'TOOLS_FAILED',
      errors: [{ code: 'JSON_VALUE' }, cause],
    })
  })
  it('wait for the calls beside them to end', async () => {
    let ended = false
    const slow = tool('slow', {
      description: 'd',
      input: Input,
      run: async () => {
        for (let i = 0; i < 5; i++) await undefined
        ended = true
      },
    })
    const model = scripted([{ tool_calls: [of('burns'), of('slow')] }])
    await errorOf(createAgent({ model, tools: [burns, slow], toolErrors: 'raise' }).run('hello'))
    expect(ended).toBe(true)
  })
  it.each([
    { name: 'a tool that does not exist', call: of('ehco'), code: 'TOOL_UNKNOWN' },
    { name: 'broken arguments', call: of('echo', '{'), code: 'TOOL_ARGUMENTS' },
    { name: 'I11: arguments that its schema does not take', call: of('echo', { text: 1 }), code: 'TOOL_ARGUMENTS' },
    { name: 'I7: a result that is no JSON', call: of('dated'), code: 'JSON_VALUE' },
    { name: 'G24: a result that does not fit', call: of('misfit'), code: 'SCHEMA_MISMATCH' },
  ])('C3: are also those of $name', async ({ call, code }) => {
    expect((await play([call], 'raise')).error).toMatchObject({ code })
  })
  it.each<ToolErrors>(['raise', 'return', () => 'never asked'])(
    'are never refusals: a denied call is a text (%s)',
    async (policy) => {
      const refuse = middleware({
        name: 'refuse',
        beforeTool: (ctx) => (ctx.toolName === 'echo' ? ctx.reject('no echo') : undefined),
      })
      const { told } = await play([of('denies'), of('echo')], policy, { middleware: [refuse] })
      expect(told.map(({ content }) => content)).toEqual(['Refused: not today', 'Refused: no echo'])
    },
  )
  it('a pause comes first: what failed beside it is raised when it is answered, and not run again', async () => {
    const { store } = setUp()
    let ran = 0
    const fails = tool('fails', {
      description: 'd',
      input: Input,
      run: () => {
        ran++
        throw new TypeError('on fire')
      },
    })
    const asks = tool('asks', { description: 'd', input: Input, run: (_args, ctx) => ctx.ask('q', 'well?') })
    const calls = [of('fails'), of('asks')]
    const agent = createAgent({
      model: scripted([{ tool_calls: calls }]),
      tools: [fails, asks],
      toolErrors: 'raise',
    })
    expect((await createRuntime({ store }).run(agent, 'hello', T)).status).toBe('paused')
    const error = await errorOf(createRuntime({ store }).resume(agent, 't', 'yes'))
    expect([error?.name, error?.message, ran]).toEqual(['TypeError', 'on fire', 1])
  })
})

describe('errors of tools that the model reads', () => {
  it.each([
    { name: 'a tool that does not exist', call: of('ehco'), says: /^Error: there is no tool "ehco"/ },
    { name: 'broken arguments', call: of('echo', '{'), says: /^Error: the arguments are no JSON/ },
    { name: 'what a tool throws', call: of('burns'), says: /^Error: on fire$/ },
    { name: 'I7: a result that is no JSON', call: of('dated'), says: /^Error: the result of tool "dated" is not JSON/ },
  ])('I3: $name is a text with the id of the call', async ({ call, says }) => {
    const { told } = await play([{ ...call, id: 'c1' }], 'return')
    expect(told).toEqual([{ role: 'tool', tool_call_id: 'c1', content: expect.stringMatching(says) }])
  })
  it('may be put in other words, by the error and the call', async () => {
    const { told } = await play([of('burns'), of('ehco')], (error, { name }) => `${name}: ${(error as Error).name}`)
    expect(told.map(({ content }) => content)).toEqual(['burns: TypeError', 'ehco: SluiceError'])
  })
  it('I5: must be put in words: what is no text is a TypeError', async () => {
    const { error } = await play([of('burns')], (() => 7) as never)
    expect(error).toEqual(new TypeError('toolErrors made a number of an error of tool "burns"; it must make a text.'))
  })
  it.each<ToolErrors>(['return', () => 'never mind'])(
    'I4: are not the mistakes of whoever wrote or starts the agent: those end the run (%s)',
    async (policy) => {
      expect((await play([of('reads')], policy)).error).toMatchObject({ code: 'CONTEXT_MISSING' })
      const inner = createAgent({ name: 'inner', model: 'nobody' }).asTool({ description: 'd' })
      const model = scripted([{ tool_calls: [of('inner', { task: 'x' })] }])
      const outer = createAgent({ model, tools: [inner], toolErrors: policy })
      expect((await settle({ graph: outer, input: 'hello' })).error).toMatchObject({ code: 'MODEL_UNKNOWN' })
    },
  )
})

describe('an observer of tool errors', () => {
  const observe = () => {
    const seen: unknown[] = []
    return { seen, own: middleware({ name: 'observer', onToolError: (_ctx, error) => void seen.push(error) }) }
  }
  it.each<{ policy: ToolErrors; status: string }>([
    { policy: 'raise', status: 'failed' },
    { policy: 'return', status: 'completed' },
  ])('G23: is told the same error before it is known what becomes of it ($policy)', async ({ policy, status }) => {
    const { seen, own } = observe()
    const outcome = await play([of('burns')], policy, { middleware: [own] })
    expect(seen).toEqual([cause])
    expect(seen[0]).toBe(cause)
    expect(outcome.status).toBe(status)
  })
  it('G24: is told of a result that does not fit', async () => {
    const { seen, own } = observe()
    await play([of('misfit')], 'return', { middleware: [own] })
    expect(seen).toMatchObject([{ code: 'SCHEMA_MISMATCH' }])
  })
  it('G25: is not told of a call that was denied, or that could not be made', async () => {
    const { seen, own } = observe()
    const deny = middleware({
      name: 'deny',
      beforeTool: (ctx) => {
        if (ctx.toolName === 'burns') throw new ToolDeniedError('burns')
      },
    })
    await play([of('burns'), of('ehco'), of('echo', '{')], 'return', { middleware: [own, deny] })
    expect(seen).toEqual([])
  })
})

it('G22: arguments that middleware changed run; the call of the model stays as it was', async () => {
  const edit = middleware({ name: 'edit', beforeTool: (ctx) => ctx.replace({ text: `${ctx.args.text}!` }) })
  const { state } = await play([of('echo')], 'return', { middleware: [edit] })
  expect(state.messages[1]?.tool_calls?.[0]?.arguments).toBe('{"text":"x"}')
  expect(state.messages[2]?.content).toBe('x!')
})

describe('the same words hold', () => {
  const Talk = state({ messages: messages(), log: append(z.string()) })
  it('in a toolNode', async () => {
    const think = modelNode('think', Talk, { model: scripted([{ tool_calls: [of('burns'), of('dated')] }]), tools })
    const act = toolNode('act', Talk, { tools, toolErrors: 'raise' })
    const byHand = graph('g', Talk).edge(START, think).edge(think, act).edge(act, END).check()
    expect((await settle({ graph: byHand, input: {} })).error).toMatchObject({
      errors: [cause, { code: 'JSON_VALUE' }],
    })
  })
  it('in an agentNode', async () => {
    const model = scripted([{ tool_calls: [of('burns')] }])
    const agent = agentNode('agent', Talk, { model, tools, toolErrors: 'raise' })
    const whole = graph('g', Talk).edge(START, agent).edge(agent, END).check()
    expect((await settle({ graph: whole, input: {} })).error).toBe(cause)
  })
})
