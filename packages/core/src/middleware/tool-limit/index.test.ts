import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { agentGraph, calls, contents, numbered, strict, Talk, user } from '../../../testing/agent.ts'
import { FailingStore } from '../../../testing/failing-store.ts'
import { says } from '../../../testing/play.ts'
import {
  agentNode,
  type ChatModel,
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
  type Tool,
  ToolLimitMiddleware,
  type ToolMiddlewareContext,
  tool,
} from '../../index.ts'

const T = { thread: 't' }
const LIMIT = 'Refused: the limit of 2 tool calls in a turn is reached. Go on without further calls.'

/** Asks about each call of the tools that it is for. */
class Gate extends Middleware {
  readonly #tools: readonly string[]
  constructor(...tools: readonly string[]) {
    super()
    this.#tools = tools
  }
  override beforeTool(ctx: ToolMiddlewareContext) {
    if (!this.#tools.includes(ctx.toolName) || ctx.answered === true) return undefined
    return ctx.answered === undefined ? ctx.suspend({}) : ctx.reject(String(ctx.answered))
  }
}

//#region limit
/** An agent that may call tools twice in a turn. */
const limited = (model: ChatModel, tools: readonly Tool[]) => {
  const agent = agentNode('agent', Talk, { model, tools })
  const middleware = [new ToolLimitMiddleware({ maxCalls: 2 })]
  return graph('support', Talk, { middleware }).edge(START, agent).edge(agent, END).check()
}
//#endregion

//#region per-tool
const oncePaid = new ToolLimitMiddleware({ maxCalls: 3, perTool: { pay: 1 } })
//#endregion

describe('a limit of tool calls', () => {
  it('lets so many calls of a turn run, and tells the model of the rest', async () => {
    const { ran, tools } = numbered('look')
    const model = strict([calls(['look', 1], ['look', 2], ['look', 3]), calls(['look', 4]), 'done'])
    const { state } = await createRuntime().run(limited(model, tools), user('look around'))
    expect(ran).toEqual(['look 1', 'look 2'])
    expect(contents(state.messages).slice(2)).toEqual([
      'tool: look 1 done',
      'tool: look 2 done',
      `tool: ${LIMIT}`,
      'assistant: ',
      `tool: ${LIMIT}`,
      'assistant: done',
    ])
  })

  it('is 50 where nobody says', async () => {
    const { ran, tools } = numbered('look')
    const many = Array.from({ length: 51 }, (_, n) => ['look', n] as const)
    const agent = agentGraph({
      model: strict([calls(...many), 'done']),
      tools,
      middleware: [new ToolLimitMiddleware()],
    })
    await createRuntime().run(agent, user('look around'))
    expect(ran).toHaveLength(50)
  })

  it('may be one of a single tool; others go on, and a call that it refuses spends nothing', async () => {
    const { ran, tools } = numbered('look', 'pay')
    const model = strict([calls(['pay', 1], ['pay', 2], ['look', 3], ['look', 4], ['look', 5]), 'done'])
    const agent = agentGraph({ model, tools, middleware: [oncePaid] })
    const { state } = await createRuntime().run(agent, user('pay'))
    expect(ran).toEqual(['pay 1', 'look 3', 'look 4'])
    expect(contents(state.messages)[3]).toBe(
      'tool: Refused: the limit of 1 calls of "pay" in a turn is reached. Go on without it.',
    )
  })

  it('counts our calls, whatever ids a provider gives them', async () => {
    const { ran, tools } = numbered('look')
    const same = (n: number) => ({ tool_calls: [{ id: 'call_0', name: 'look', arguments: { n } }] })
    const agent = agentGraph({
      model: strict([same(1), same(2), same(3), 'done']),
      tools,
      middleware: [new ToolLimitMiddleware({ maxCalls: 2 })],
    })
    await createRuntime().run(agent, user('look around'), T)
    expect(ran).toEqual(['look 1', 'look 2'])
  })

  it('holds for every caller: for a node’s own call it is an error', async () => {
    const { ran, tools } = numbered('look')
    const work = node('work', Talk, async (_s, ctx) => {
      for (const n of [1, 2, 3]) await ctx.callTool(tools[0] as Tool, { n })
    })
    const middleware = [new ToolLimitMiddleware({ maxCalls: 2 })]
    const g = graph('g', Talk, { middleware }).edge(START, work).edge(work, END).check()
    await expect(createRuntime().run(g, {})).rejects.toMatchObject({ code: 'REFUSED' })
    expect(ran).toEqual(['look 1', 'look 2'])
  })
})

describe('what a limit counts over', () => {
  it('H12: pauses: of three approved calls the third is one too many', async () => {
    const { ran, tools } = numbered('pay')
    const model = strict([calls(['pay', 1]), calls(['pay', 2]), calls(['pay', 3]), 'done'])
    const agent = agentGraph({ model, tools, middleware: [new ToolLimitMiddleware({ maxCalls: 2 }), new Gate('pay')] })
    const store = new MemoryStore()
    let outcome = await createRuntime({ store }).run(agent, user('pay'), T)
    while (outcome.status === 'paused') outcome = await createRuntime({ store }).resume(agent, 't', true)
    expect(ran).toEqual(['pay 1', 'pay 2'])
    expect(contents(outcome.state.messages).slice(-2)).toEqual([`tool: ${LIMIT}`, 'assistant: done'])
  })

  it('H15: another process, which has not seen the start of the turn', async () => {
    const { ran, tools } = numbered('look', 'pay')
    const parts = () => ({ tools, middleware: [new ToolLimitMiddleware({ maxCalls: 3 }), new Gate('pay')] })
    const store = new MemoryStore()
    const round = calls(['look', 1], ['look', 2], ['pay', 3])
    await createRuntime({ store }).run(agentGraph({ model: strict([round]), ...parts() }), user('pay'), T)
    const elsewhere = agentGraph({ model: strict([calls(['look', 4]), 'done']), ...parts() })
    await createRuntime({ store }).resume(elsewhere, 't', true)
    expect(ran).toEqual(['look 1', 'look 2', 'pay 3'])
  })

  it('a failure: who continues has what was left', async () => {
    const { ran, tools } = numbered('look')
    const model = strict([calls(['look', 1], ['look', 2]), new Error('503'), calls(['look', 3]), 'done'])
    const agent = agentGraph({ model, tools, middleware: [new ToolLimitMiddleware({ maxCalls: 2 })] })
    const runtime = createRuntime({ store: new MemoryStore() })
    await expect(runtime.run(agent, user('look'), T)).rejects.toThrow('503')
    await runtime.continue(agent, 't')
    expect(ran).toEqual(['look 1', 'look 2'])
  })

  it.each([{ on: {} }, { on: T }])('retries of the node, on $on', async ({ on }) => {
    const { ran, tools } = numbered('look')
    const model = strict([calls(['look', 1], ['look', 2]), new Error('503'), calls(['look', 3]), 'done'])
    const agent = agentGraph({ model, tools, middleware: [new ToolLimitMiddleware({ maxCalls: 2 })] })
    const policies = [says('Retry', { 'nodeError.after': { action: 'retry' } })]
    await createRuntime({ policies }).run(agent, user('look'), on)
    expect(ran).toEqual(['look 1', 'look 2'])
  })

  it('sub-agents that stand under a limit of the same name', async () => {
    const { ran, tools } = numbered('look')
    const limit = new ToolLimitMiddleware({ maxCalls: 2 })
    const model = strict([calls(['look', 1], ['look', 2]), 'done', calls(['look', 3], ['look', 4]), 'done'])
    const agent = agentGraph({ model, tools, middleware: [limit] })
    const both = node('both', Talk, async (_s, ctx) => {
      await ctx.run(agent, user('look'))
      await ctx.run(agent, user('look'))
    })
    const g = graph('g', Talk).edge(START, both).edge(both, END).check()
    await createRuntime().run(g, {}, T)
    expect(ran).toEqual(['look 1', 'look 2'])
  })

  it('one turn: the next one begins anew', async () => {
    const { ran, tools } = numbered('look')
    const model = strict([calls(['look', 1], ['look', 2]), 'done', calls(['look', 3]), 'done'])
    const agent = agentGraph({ model, tools, middleware: [new ToolLimitMiddleware({ maxCalls: 2 })] })
    const runtime = createRuntime({ store: new MemoryStore() })
    for (const _ of [1, 2]) await runtime.run(agent, user('look'), T)
    expect(ran).toEqual(['look 1', 'look 2', 'look 3'])
  })

  it('H13: and one run: two of one agent at once have a limit each', async () => {
    const { ran, tools } = numbered('look')
    const round = () => calls(['look', 1], ['look', 2], ['look', 3])
    const model = strict([round(), round(), 'done', 'done'])
    const agent = agentGraph({ model, tools, middleware: [new ToolLimitMiddleware({ maxCalls: 3 })] })
    const runtime = createRuntime()
    await Promise.all([runtime.run(agent, user('look')), runtime.run(agent, user('look'))])
    expect(ran).toHaveLength(6)
  })
})

describe('calls of one round', () => {
  it('do not slip past a limit, however long somebody looks at each', async () => {
    const { ran, tools } = numbered('look')
    const slow = says('Slow', {
      'toolCall.before': async () => {
        await new Promise((resolve) => setImmediate(resolve))
        return { action: 'proceed' }
      },
    })
    const ten = Array.from({ length: 10 }, (_, n) => ['look', n] as const)
    const agent = agentGraph({
      model: strict([calls(...ten), 'done']),
      tools,
      middleware: [new ToolLimitMiddleware({ maxCalls: 2 })],
    })
    await createRuntime({ policies: [slow] }).run(agent, user('look'), T)
    expect(ran).toEqual(['look 0', 'look 1'])
  })

  it('have the places they had, when some of them waited for a person meanwhile', async () => {
    const { ran, tools } = numbered('look', 'pay')
    const model = strict([calls(['pay', 1], ['look', 2], ['look', 3]), 'done'])
    const agent = agentGraph({ model, tools, middleware: [new ToolLimitMiddleware({ maxCalls: 2 }), new Gate('pay')] })
    const store = new MemoryStore()
    await createRuntime({ store }).run(agent, user('pay'), T)
    const { state } = await createRuntime({ store }).resume(agent, 't', true)
    expect(ran).toEqual(['look 2', 'pay 1'])
    expect(contents(state.messages).slice(2, 5)).toEqual(['tool: pay 1 done', 'tool: look 2 done', `tool: ${LIMIT}`])
  })

  it('run as often as in one go, whichever write is lost in a crash', async () => {
    const play = async (nth: number, cut: 'before' | 'after') => {
      const ran = new Set<number>()
      const look = tool('look', {
        description: 'Looks.',
        input: z.object({ n: z.number() }),
        idempotent: true,
        run: ({ n }) => {
          ran.add(n)
          return `looked ${n}`
        },
      })
      const store = new FailingStore({ late: true }).fail(cut, { nth })
      // It answers by what it is asked, for after a crash it may be asked again.
      const byRound = [calls(['look', 0], ['look', 1]), calls(['look', 2], ['look', 3], ['look', 4]), 'done']
      const said = ({ messages }: ChatRequest) => messages.filter(({ role }) => role === 'assistant').length
      const model = scripted(Array.from({ length: 10 }, () => (request) => byRound[said(request)] as ScriptedReply))
      const agent = agentGraph({ model, tools: [look], middleware: [new ToolLimitMiddleware({ maxCalls: 3 })] })
      const runtime = () => createRuntime({ store })
      const { status } = await runtime().settle(agent, user('look'), T)
      if (status === 'failed') {
        const { error } = await runtime()
          .continue(agent, 't')
          .catch((error) => ({ error }))
        if (error?.code === 'THREAD_UNKNOWN') await runtime().run(agent, user('look'), T)
      }
      const stands = await runtime().stateAt(agent, 't')
      return { status, ran: [...ran], said: contents(stands.state?.messages ?? []) }
    }
    const whole = await play(1_000, 'before')
    expect(whole.ran).toEqual([0, 1, 2])
    for (const cut of ['before', 'after'] as const) {
      let nth = 1
      for (; ; nth++) {
        const { status, ran, said } = await play(nth, cut)
        if (status === 'completed') break
        expect({ cut, nth, ran, said }).toEqual({ cut, nth, ran: whole.ran, said: whole.said })
      }
      expect(nth).toBeGreaterThan(8)
    }
  })

  it('are as many as the limits let through, over random rounds and pauses', async () => {
    const names = ['look', 'pay', 'send'] as const
    const round = fc.array(fc.constantFrom(...names), { minLength: 1, maxLength: 6 })
    await fc.assert(
      fc.asyncProperty(
        fc.array(round, { minLength: 1, maxLength: 4 }),
        fc.nat(8),
        fc.record({ pay: fc.nat(3), send: fc.nat(3) }, { requiredKeys: [] }),
        async (rounds, maxCalls, perTool) => {
          const { ran, tools } = numbered(...names)
          const replies = rounds.map((made) => calls(...made.map((name, n) => [name, n] as const)))
          const model = strict([...replies, 'done'])
          const agent = agentGraph({
            model,
            tools,
            middleware: [new ToolLimitMiddleware({ maxCalls, perTool }), new Gate('pay')],
          })
          const store = new MemoryStore()
          let outcome = await createRuntime({ store }).run(agent, user('go'), T)
          while (outcome.status === 'paused') {
            const first = new Map([[outcome.asks[0]?.key, true]])
            outcome = await createRuntime({ store }).resume(agent, 't', first)
          }
          const left: Record<string, number | undefined> = { ...perTool }
          const expected = rounds.flat().filter((name) => left[name] === undefined || (left[name] as number)-- > 0)
          expect(ran.map((each) => each.split(' ')[0]).toSorted()).toEqual(expected.slice(0, maxCalls).toSorted())
        },
      ),
      { numRuns: 40 },
    )
  })
})

describe('the options of a limit', () => {
  it.each([
    { name: 'a negative limit', options: { maxCalls: -1 }, error: RangeError, says: 'maxCalls is -1' },
    { name: 'half a call', options: { perTool: { pay: 0.5 } }, error: RangeError, says: 'perTool.pay is 0.5' },
    { name: 'a text', options: { maxCalls: '3' }, error: RangeError, says: 'maxCalls is 3' },
    { name: 'an option it does not have', options: { max: 3 }, error: TypeError, says: 'has no "max"' },
  ])('are refused where they are none: $name', ({ options, error, says: why }) => {
    expect(() => new ToolLimitMiddleware(options as never)).toThrow(error)
    expect(() => new ToolLimitMiddleware(options as never)).toThrow(why)
  })

  it('may be 0, and Infinity', async () => {
    const { ran, tools } = numbered('look', 'pay')
    const model = strict([calls(['look', 1], ['pay', 2]), 'done'])
    const none = new ToolLimitMiddleware({ maxCalls: Number.POSITIVE_INFINITY, perTool: { pay: 0 } })
    await createRuntime().run(agentGraph({ model, tools, middleware: [none] }), user('go'))
    expect(ran).toEqual(['look 1'])
  })
})
