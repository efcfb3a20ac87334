import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { agentGraph, calls, contents, Talk, user } from '../../../testing/agent.ts'
import { faultsOf } from '../../../testing/transcript.ts'
import {
  agentNode,
  type ChatMessage,
  ContextEditingMiddleware,
  type ContextEditingOptions,
  createRuntime,
  END,
  estimateInputTokens,
  graph,
  MemoryStore,
  Middleware,
  node,
  START,
  scripted,
  type ToolMiddlewareContext,
  tool,
} from '../../index.ts'

/** A tool that answers with 400 characters: 100 tokens. */
const read = tool('read', {
  description: 'Reads a page.',
  input: z.object({ n: z.number() }),
  run: ({ n }) => `${n}`.padEnd(400, '.'),
})
const note = tool('note', {
  description: 'Reads a note.',
  input: z.object({ n: z.number() }),
  run: ({ n }) => `note ${n}`.padEnd(400, '.'),
})

/** What the results were in a request: their first word, or `–` for a cleared one. */
const results = (messages: readonly ChatMessage[]) =>
  messages
    .filter(({ role }) => role === 'tool')
    .map(({ content }) => (content.startsWith('[') ? '–' : content.replace(/\.+$/, '')))

/** The requests of an agent that reads four pages, one a round. */
async function reading(options: ContextEditingOptions, rounds = [1, 2, 3, 4]) {
  const model = scripted([...rounds.map((n) => calls(['read', n])), 'done'])
  const agent = agentGraph({ model, tools: [read], middleware: [new ContextEditingMiddleware(options)] })
  const { state, warnings } = await createRuntime().run(agent, user('read'))
  return { requests: model.requests, state, warnings }
}

/** Tokens of a request, but for its tools and what is short. */
const size = {
  countTokens: ({ messages }: { messages: readonly ChatMessage[] }) =>
    messages.filter(({ content }) => content.length === 400).length * 100,
}

describe('a request that has grown too long', () => {
  it('has its oldest tool results cleared, until it fits', async () => {
    //#region editing
    const middleware = [new ContextEditingMiddleware({ maxTokens: 400, keep: 1 })]
    //#endregion
    const model = scripted([...[1, 2, 3, 4].map((n) => calls(['read', n])), 'done'])
    const agent = agentNode('agent', Talk, { model, tools: [read] })
    await createRuntime().run(
      graph('g', Talk, { middleware }).edge(START, agent).edge(agent, END).check(),
      user('read'),
    )
    expect(model.requests.map(({ messages }) => results(messages))).toEqual([
      [],
      ['1'],
      ['1', '2'],
      ['1', '2', '3'],
      ['–', '2', '3', '4'],
    ])
    for (const request of model.requests) expect(estimateInputTokens(request)).toBeLessThanOrEqual(400)
  })

  it('keeps the newest results, however long they are, and says that it is still too long', async () => {
    const { requests, warnings } = await reading({ maxTokens: 1, keep: 2, ...size })
    expect(results(requests[4]?.messages ?? [])).toEqual(['–', '–', '3', '4'])
    expect(warnings.at(-1)?.message).toContain('the request has 199 tokens more than 1, and nothing more to clear')
  })

  it('C7: counts what is sent: tools and the system prompt too', async () => {
    const large = { ...read, parameters: { type: 'object', description: 'x'.repeat(4_000) } }
    const parts = { tools: [large], middleware: [new ContextEditingMiddleware({ maxTokens: 1_000, keep: 0 })] }
    const model = scripted([calls(['read', 1]), 'done'])
    await createRuntime().run(agentGraph({ model, ...parts }), user('read'))
    expect(results(model.requests[1]?.messages ?? [])).toEqual(['–'])
  })

  it('clears in steps where it is told to, so that what was sent before stays the same for some rounds', async () => {
    const rounds = [1, 2, 3, 4, 5, 6]
    const { requests } = await reading({ maxTokens: 200, keep: 1, clearAtLeast: 200, ...size }, rounds)
    expect(requests.slice(3).map(({ messages }) => results(messages).join(' '))).toEqual([
      '– – 3',
      '– – 3 4',
      '– – – – 5',
      '– – – – 5 6',
    ])
  })

  it('leaves the results of tools that are excluded', async () => {
    const model = scripted([calls(['note', 1], ['read', 2]), calls(['read', 3]), 'done'])
    const middleware = [
      new ContextEditingMiddleware({ maxTokens: 1, keep: 0, excludeTools: ['note'], placeholder: '[gone]' }),
    ]
    await createRuntime().run(agentGraph({ model, tools: [read, note], middleware }), user('read'))
    expect(results(model.requests[2]?.messages ?? [])).toEqual(['note 1', '–', '–'])
    expect(model.requests[2]?.messages[3]?.content).toBe('[gone]')
  })

  it('loses the arguments of cleared calls only where it is told to', async () => {
    const long = calls(['read', { n: 1, why: 'x'.repeat(400) }], ['read', { n: 2 }])
    for (const clearArguments of [false, true]) {
      const model = scripted([long, 'done'])
      const middleware = [new ContextEditingMiddleware({ maxTokens: 1, keep: 1, clearArguments })]
      await createRuntime().run(agentGraph({ model, tools: [read], middleware }), user('read'))
      const said = model.requests[1]?.messages[1]?.tool_calls?.map((call) => call.arguments)
      expect(said?.[0] === '{}').toBe(clearArguments)
      expect(said?.[1]).toBe('{"n":2}')
    }
  })

  it('is edited for the request only: the conversation keeps every result', async () => {
    const { state } = await reading({ maxTokens: 1, keep: 0 })
    expect(results(state.messages)).toEqual(['1', '2', '3', '4'])
  })

  it('that fits is sent as it is', async () => {
    const { requests, state } = await reading({})
    expect(contents(requests[4]?.messages ?? [])).toEqual(contents(state.messages).slice(0, -1))
  })

  it('C6: stays one that a provider takes, over random conversations and sizes', async () => {
    const turn = fc.array(fc.tuple(fc.constantFrom('read', 'note'), fc.nat(300)), { maxLength: 4 })
    await fc.assert(
      fc.asyncProperty(
        fc.array(turn, { maxLength: 8 }),
        fc.record({
          maxTokens: fc.integer({ min: 1, max: 400 }),
          keep: fc.nat(3),
          clearAtLeast: fc.nat(100),
          clearArguments: fc.boolean(),
        }),
        async (turns, options) => {
          const said: ChatMessage[] = [{ role: 'user', content: 'hello' }]
          for (const [i, made] of turns.entries()) {
            if (made.length === 0) said.push({ role: 'assistant', content: 'yes' }, { role: 'user', content: 'go on' })
            else {
              const tool_calls = made.map(([name], j) => ({ id: `c${i}-${j}`, name, arguments: '{"n":1}' }))
              said.push({ role: 'assistant', content: '', tool_calls })
              said.push(
                ...made.map(
                  ([, length], j) =>
                    ({ role: 'tool', tool_call_id: `c${i}-${j}`, content: 'x'.repeat(length) }) as const,
                ),
              )
            }
          }
          const model = scripted(['ok'])
          const ask = node('ask', Talk, async (_s, ctx) => void (await ctx.callModel(model, { messages: said })))
          const middleware = [new ContextEditingMiddleware(options)]
          await createRuntime().run(graph('g', Talk, { middleware }).edge(START, ask).edge(ask, END).check(), {})
          const sent = model.requests[0]?.messages ?? []
          expect(faultsOf(sent)).toEqual([])
          expect(sent.map(({ role, tool_call_id }) => [role, tool_call_id])).toEqual(
            said.map(({ role, tool_call_id }) => [role, tool_call_id]),
          )
          const last = said.filter(({ role }) => role === 'tool').slice(-options.keep || said.length)
          if (options.keep > 0) expect(sent.filter(({ role }) => role === 'tool').slice(-options.keep)).toEqual(last)
        },
      ),
      { numRuns: 100 },
    )
  })
})

describe('over a pause', () => {
  class Gate extends Middleware {
    override beforeTool(ctx: ToolMiddlewareContext) {
      return ctx.answered === undefined && ctx.args.n === 3 ? ctx.suspend({}) : undefined
    }
  }

  it('another process sends what one in one go would have sent, results of parallel calls included', async () => {
    const store = new MemoryStore()
    const model = scripted([calls(['read', 1], ['read', 2]), calls(['read', 3]), 'done'])
    const parts = () => ({
      model,
      tools: [read],
      middleware: [new ContextEditingMiddleware({ maxTokens: 150, keep: 1, ...size }), new Gate()],
    })
    await createRuntime({ store }).run(agentGraph(parts()), user('read'), { thread: 't' })
    await createRuntime({ store }).resume(agentGraph(parts()), 't', true)
    expect(model.requests.map(({ messages }) => results(messages))).toEqual([[], ['–', '2'], ['–', '–', '3']])
  })
})

describe('the options', () => {
  it.each([
    { name: 'no room', options: { maxTokens: 0 }, says: 'maxTokens is 0' },
    { name: 'half a result', options: { keep: 0.5 }, says: 'keep is 0.5' },
    { name: 'a step back', options: { clearAtLeast: -1 }, says: 'clearAtLeast is -1' },
    { name: 'another option', options: { trigger: 5 }, says: 'has no "trigger"' },
  ])('are refused where they are none: $name', ({ options, says }) => {
    expect(() => new ContextEditingMiddleware(options as ContextEditingOptions)).toThrow(says)
  })
})
