import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { agentGraph, calls, contents, processes, strict, user } from '../../../testing/agent.ts'
import { says } from '../../../testing/play.ts'
import {
  agentNode,
  CallTimeoutMiddleware,
  createRuntime,
  END,
  graph,
  type Middleware,
  messages,
  middleware,
  node,
  type ScriptedReply,
  START,
  scripted,
  state,
  type Tool,
  ToolDeniedError,
  ToolErrorMiddleware,
  type ToolErrorOptions,
  ToolRetryMiddleware,
  tool,
} from '../../index.ts'

//#region use
const errors = new ToolErrorMiddleware({ maxErrors: 5 })
//#endregion

//#region say
const inOurWords = new ToolErrorMiddleware({
  say: {
    unknown: ({ toolName }) => `We have no "${toolName}". Use what is offered.`,
    failed: 'It is out of order today. Go on without it.',
  },
  perTool: { pay: { timeout: 'The payment may have gone through. Call "look_up" before you pay again.' } },
})
//#endregion

const HELLO = user('hello')
const T = { thread: 't' }
const broke = new Error('the disk is full')

const search = tool('search', {
  description: 'Finds.',
  input: z.object({ q: z.string() }),
  run: ({ q }) => `found ${q}`,
})
const breaks = tool('breaks', {
  description: 'Breaks.',
  input: z.object({}),
  output: z.object({ rows: z.number() }),
  run: () => {
    throw broke
  },
})
const pay = tool('pay', { description: 'Hangs.', input: z.object({}), run: () => new Promise(() => {}) })
const TOOLS = [search, breaks, pay]

/** What the model reads of its calls in the next request. */
async function reads(own: readonly Middleware[], reply: ScriptedReply, tools: readonly Tool[] = TOOLS) {
  const { clock, another } = processes()
  const model = strict([reply, 'done'])
  const running = another().settle(agentGraph({ middleware: own, model, tools }), HELLO)
  await clock.pass(600_000)
  await running
  return model.requests[1]?.messages.flatMap(({ role, content }) => (role === 'tool' ? [content] : []))
}

const broken: ScriptedReply = { tool_calls: [{ name: 'search', arguments: '{"q": ' }] }

describe('C3: what the model reads of a call that went wrong', () => {
  const timeout = new CallTimeoutMiddleware({ toolMs: 1_000 })
  const late = 'tool "pay" timed out after 1000 ms'
  it.each([
    {
      name: 'unknown tool',
      reply: calls(['serch', {}]),
      by: errors,
      read: /^Error: there is no tool "serch"; tools are: search, breaks, pay/,
    },
    {
      name: 'broken JSON',
      reply: broken,
      by: errors,
      read: /^Error: the arguments are no JSON .* Call it again with arguments that fit\.$/,
    },
    {
      name: 'arguments that do not fit',
      reply: calls(['search', { q: 1 }]),
      by: errors,
      read: /^Error: invalid arguments for tool "search": .*q.* Call it again/,
    },
    { name: 'thrown', reply: calls(['breaks', {}]), by: errors, read: /^Error: the disk is full$/ },
    {
      name: 'time-out',
      reply: calls(['pay', {}]),
      by: errors,
      read: `Error: ${late}. It may have done its work all the same: look before you call it again.`,
    },
    {
      name: 'unknown tool, in your words',
      reply: calls(['serch', {}]),
      by: inOurWords,
      read: 'We have no "serch". Use what is offered.',
    },
    {
      name: 'thrown, in your words',
      reply: calls(['breaks', {}]),
      by: inOurWords,
      read: 'It is out of order today. Go on without it.',
    },
    {
      name: 'time-out, in words for one tool',
      reply: calls(['pay', {}]),
      by: inOurWords,
      read: 'The payment may have gone through. Call "look_up" before you pay again.',
    },
  ])('$name', async ({ reply, by, read }) => {
    const [said] = (await reads([timeout, by], reply)) ?? []
    expect(said).toMatch(typeof read === 'string' ? new RegExp(`^${read.replace(/[.?"]/g, '\\$&')}$`) : read)
  })

  it('is the result of the call where nothing went wrong: it changes nothing', async () => {
    expect(await reads([errors], calls(['search', { q: 'x' }]))).toEqual(await reads([], calls(['search', { q: 'x' }])))
  })

  it('stays as it is where a function says nothing', async () => {
    const silent = new ToolErrorMiddleware({ say: { failed: () => undefined } })
    expect(await reads([silent], calls(['breaks', {}]))).toEqual(['Error: the disk is full'])
  })

  it('is a refusal where the call was refused, by the tool itself too', async () => {
    const denies = tool('denies', {
      description: 'Denies.',
      input: z.object({}),
      run: () => {
        throw new ToolDeniedError('denies', 'not on a Sunday')
      },
    })
    expect(await reads([inOurWords], calls(['denies', {}]), [denies])).toEqual(['Refused: not on a Sunday'])
  })
})

describe('an agent that raises the errors of its tools', () => {
  const Talk = state({ messages: messages() })
  const raising = (own: readonly Middleware[], replies: readonly ScriptedReply[]) => {
    const model = scripted(replies)
    const agent = agentNode('agent', Talk, { model, tools: TOOLS, toolErrors: 'raise' })
    return graph('g', Talk, { middleware: own }).edge(START, agent).edge(agent, END).check()
  }
  it('hands them to the model all the same', async () => {
    const { state } = await createRuntime().run(raising([inOurWords], [calls(['breaks', {}]), 'done']), HELLO)
    expect(contents(state.messages)[2]).toBe('tool: It is out of order today. Go on without it.')
  })

  it('still raises those that a function leaves as they are, as the very object', async () => {
    const silent = new ToolErrorMiddleware({ say: { failed: () => undefined } })
    const { error } = await createRuntime().settle(raising([silent], [calls(['breaks', {}])]), HELLO)
    expect(error).toBe(broke)
  })
})

describe('C4: a model that goes on calling what does not work', () => {
  const wrong = calls(['serch', { q: 'x' }])
  const right = calls(['search', { q: 'x' }])
  const bounded = (replies: readonly ScriptedReply[], options: ToolErrorOptions = { maxErrors: 3 }) =>
    agentGraph({ middleware: [new ToolErrorMiddleware(options)], model: strict(replies), tools: TOOLS })

  it('may be wrong as often as the limit says', async () => {
    const { state } = await createRuntime().run(bounded([wrong, broken, right, 'done']), HELLO)
    expect(contents(state.messages).slice(-2)).toEqual(['tool: found x', 'assistant: done'])
  })

  it('is not asked again after that, and the error says why', async () => {
    const chat = bounded([wrong, broken, wrong, wrong, 'not asked'])
    const { error } = await createRuntime().settle(chat, HELLO)
    expect(error).toMatchObject({
      code: 'REFUSED',
      at: { middleware: 'ToolErrorMiddleware' },
      reason: '4 tool calls of this turn went wrong, and 3 are the most.',
    })
  })

  it('is counted for errors of tools as well, and for each call of a round', async () => {
    const round = calls(['breaks', {}], ['serch', {}], ['breaks', {}], ['search', { q: 1 }])
    const { error } = await createRuntime().settle(bounded([round, 'not asked']), HELLO)
    expect(error).toMatchObject({ reason: expect.stringContaining('4 tool calls') })
  })

  it('is counted over a pause in another process, and no fault twice', async () => {
    const { another } = processes()
    const ask = tool('ask', {
      description: 'Asks.',
      input: z.object({}),
      run: async (_args, ctx) => String(await ctx.ask('q', 'Yes?')),
    })
    const chat = (replies: readonly ScriptedReply[]) =>
      agentGraph({
        middleware: [new ToolErrorMiddleware({ maxErrors: 3 })],
        model: strict(replies),
        tools: [...TOOLS, ask],
      })
    const both = calls(['breaks', {}], ['serch', {}], ['ask', {}])
    expect((await another().settle(chat([both]), HELLO, T)).status).toBe('paused')
    const going = [wrong, 'done'] as const
    const { state } = await another().resume(chat([() => 'not asked', ...going].slice(1)), 't', 'yes')
    expect(contents(state.messages).at(-1)).toBe('assistant: done')
    expect((await another().settle(chat([wrong, wrong, wrong, wrong]), HELLO, T)).error).toMatchObject({
      reason: expect.stringContaining('4 tool calls'),
    })
  })

  it('is counted once where the model call is tried again', async () => {
    const again = middleware({
      name: 'again',
      onModelError: (ctx) => (ctx.attempt < 3 ? ctx.retry() : undefined),
    })
    const busy = new Error('429 Too Many Requests')
    const own = [new ToolErrorMiddleware({ maxErrors: 1 }), again]
    const model = scripted([wrong, busy, busy, 'done'])
    const { status } = await createRuntime().settle(agentGraph({ middleware: own, model, tools: TOOLS }), HELLO)
    expect(status).toBe('completed')
  })
})

describe('among others', () => {
  it('stands around what tries again, wherever it is listed: only the last failure is a fault', async () => {
    let ran = 0
    const flaky = tool('flaky', {
      description: 'Fails once.',
      input: z.object({}),
      idempotent: true,
      run: () => {
        if (ran++ === 0) throw new Error('503 Service Unavailable')
        return 'there'
      },
    })
    const own = [new ToolRetryMiddleware({ random: () => 0 }), new ToolErrorMiddleware({ maxErrors: 1 })]
    expect(await reads(own, calls(['flaky', {}]), [flaky])).toEqual(['there'])
  })

  it('policies see what the tool said, and have the last word', async () => {
    const gate = says('Gate', { 'toolCall.after': { action: 'replace', value: { rows: 0 } } })
    const chat = agentGraph({
      middleware: [inOurWords],
      model: scripted([calls(['breaks', {}]), 'done']),
      tools: TOOLS,
    })
    const { state } = await createRuntime({ policies: [gate] }).run(chat, HELLO)
    expect(gate.asked[0]?.outcome).toMatchObject({
      ok: false,
      error: { code: 'TOOL_REPLY', message: 'the disk is full' },
    })
    expect(contents(state.messages)[2]).toBe('tool: {"rows":0}')
  })

  it('leaves calls that code makes alone: the very error is thrown', async () => {
    const S = state({ seen: z.string().default('') })
    const work = node(
      'work',
      S,
      async (_s, ctx) =>
        ctx.callTool(breaks, {}).then(undefined, (error) => ({ seen: String(error === broke) })) as never,
    )
    const g = graph('g', S, { middleware: [errors] })
      .edge(START, work)
      .edge(work, END)
      .check()
    expect((await createRuntime().run(g, {})).state.seen).toBe('true')
  })
})

describe('its options', () => {
  it.each([
    {
      name: 'a kind there is not',
      options: { say: { thrown: 'x' } },
      error: 'say has no "thrown"; it has: unknown, arguments, timeout, failed',
    },
    {
      name: 'no text',
      options: { perTool: { pay: { failed: 1 } } },
      error: 'pay.failed must be a text, or a function that makes one, not a number',
    },
    {
      name: 'no error at all',
      options: { maxErrors: 0 },
      error: 'maxErrors must be a whole number of 1 or more, not 0',
    },
    { name: 'one there is not', options: { limit: 3 }, error: 'ToolErrorMiddleware has no "limit"' },
  ])('$name: refused', ({ options, error }) => {
    expect(() => new ToolErrorMiddleware(options as never)).toThrow(error)
  })

  it('a text that is none ends the run, for it is a mistake of the author', async () => {
    const odd = new ToolErrorMiddleware({ say: { failed: (() => 7) as never } })
    const { error } = await createRuntime().settle(
      agentGraph({ middleware: [odd], model: scripted([calls(['breaks', {}])]), tools: TOOLS }),
      HELLO,
    )
    expect(error).toMatchObject({ code: 'MIDDLEWARE_FAILED', message: expect.stringContaining('it made a number') })
  })
})
