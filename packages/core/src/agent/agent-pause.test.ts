import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Clock, quiet } from '../../testing/clock.ts'
import { says } from '../../testing/play.ts'
import { errorOf, setUp } from '../../testing/threads.ts'
import { faultsOf } from '../../testing/transcript.ts'
import {
  agentLoop,
  agentNode,
  append,
  type ChatMessage,
  type ChatRequest,
  type Consultation,
  createRuntime,
  END,
  type Graph,
  graph,
  type JsonObject,
  messages,
  node,
  type Policy,
  type ScriptedReply,
  START,
  type StateOf,
  scripted,
  state,
  type Tool,
  tool,
  type UpdateFor,
} from '../index.ts'

const T = { thread: 't' }
const Talk = state({ messages: messages() })
const hello = { messages: [{ role: 'user', content: 'hello' }] } as const

/** Tools that note what they ran with, in order. */
function noting(...names: string[]) {
  const ran: string[] = []
  const tools = names.map((name) =>
    tool(name, {
      description: `Does ${name}.`,
      input: z.object({ n: z.number() }),
      run: ({ n }) => {
        ran.push(`${name} ${n}`)
        return `${name} ${n} done`
      },
    }),
  )
  return { ran, tools }
}

const calls = (...made: readonly (readonly [name: string, n: number])[]): ScriptedReply => ({
  tool_calls: made.map(([name, n]) => ({ name, arguments: { n } })),
})

/** Asks about the calls of these tools; `true` lets one run, an object changes its arguments, anything else refuses it. */
const gate = (...names: string[]): Policy =>
  says('Gate', {
    'toolCall.before': ({ subject }, { answered }: Consultation) => {
      if (!names.includes(subject.toolName ?? '') || answered === true) return { action: 'proceed' }
      if (answered === undefined) return { action: 'suspend', ask: {} }
      if (typeof answered === 'object') return { action: 'modify', input: answered as JsonObject }
      return { action: 'reject', reason: `${answered}` }
    },
  })

/** A provider that is strict about conversations: it refuses one that another provider would refuse. */
const strict = (replies: readonly ScriptedReply[], model?: string) => {
  const check = (reply: ScriptedReply) => (request: ChatRequest) => {
    const faults = faultsOf(request.messages)
    if (faults.length > 0) throw new Error(faults.join('; '))
    return reply
  }
  return scripted(replies.map(check), { model })
}

const agentGraph = (model: ReturnType<typeof scripted>, tools: readonly Tool[]) => {
  const agent = agentNode('agent', Talk, { model, tools })
  return graph('g', Talk).edge(START, agent).edge(agent, END).check()
}
const contents = (said: readonly ChatMessage[]) => said.map(({ role, content }) => `${role}: ${content}`)

describe('an agent whose tool call is asked about', () => {
  it('J5: goes on where it was: the model is not asked again, calls that were made are not, those not reached are', async () => {
    const { store } = setUp()
    const { ran, tools } = noting('look', 'pay')
    const model = strict([calls(['look', 1]), calls(['look', 2], ['pay', 3], ['look', 4]), 'done'])
    const g = agentGraph(model, tools)
    const runtime = () => createRuntime({ store, platform: new Clock(), policies: [gate('pay')] })
    const paused = await runtime().run(g, hello, T)
    expect(paused.asks).toMatchObject([{ key: 'agent:pay@Gate', payload: { tool: 'pay', arguments: { n: 3 } } }])
    expect(ran).toEqual(['look 1', 'look 2', 'look 4'])
    expect(model.requests).toHaveLength(2)
    const { state } = await runtime().resume(g, 't', true)
    expect(ran).toEqual(['look 1', 'look 2', 'look 4', 'pay 3'])
    expect(model.requests).toHaveLength(3)
    expect(contents(state.messages)).toEqual([
      'user: hello',
      'assistant: ',
      'tool: look 1 done',
      'assistant: ',
      'tool: look 2 done',
      'tool: pay 3 done',
      'tool: look 4 done',
      'assistant: done',
    ])
  })

  it.each([
    { what: 'approved', answer: true, ran: ['pay 1'], content: 'pay 1 done' },
    { what: 'changed', answer: { n: 7 }, ran: ['pay 7'], content: 'pay 7 done' },
    { what: 'refused', answer: 'too much', ran: [], content: 'Refused: too much' },
  ])(
    'B10: may be $what by the answer, and its model reads what came of it',
    async ({ answer, ran: expected, content }) => {
      const { store } = setUp()
      const { ran, tools } = noting('pay')
      const g = agentGraph(strict([calls(['pay', 1]), 'done']), tools)
      const runtime = () => createRuntime({ store, platform: new Clock(), policies: [gate('pay')] })
      await runtime().run(g, hello, T)
      const { state } = await runtime().resume(g, 't', answer)
      expect(ran).toEqual(expected)
      expect(state.messages[2]).toEqual({ role: 'tool', tool_call_id: 'call-1-1', content })
    },
  )

  it('Z2: and another one of the same round is asked about too; both run when both are answered, each by its own answer', async () => {
    const { store } = setUp()
    const { ran, tools } = noting('pay')
    const model = strict([calls(['pay', 1], ['pay', 2]), 'done'])
    const g = agentGraph(model, tools)
    const runtime = () => createRuntime({ store, platform: new Clock(), policies: [gate('pay')] })
    const paused = await runtime().run(g, hello, T)
    const keys = paused.asks.map(({ key }) => key)
    expect(keys).toEqual(['agent:pay@Gate', 'agent:pay[1]@Gate'])
    const half = await runtime().resume(g, 't', new Map([[keys[1], 'not this one']]))
    expect(half.asks.map(({ key }) => key)).toEqual([keys[0]])
    expect(ran).toEqual([])
    const { state } = await runtime().resume(g, 't', true)
    expect(ran).toEqual(['pay 1'])
    expect(contents(state.messages).slice(2)).toEqual([
      'tool: pay 1 done',
      'tool: Refused: not this one',
      'assistant: done',
    ])
  })

  it('B3: leaves its finished siblings alone: each call is a unit of its own', async () => {
    const { store } = setUp()
    const { ran, tools } = noting('fast', 'pay')
    const g = agentGraph(strict([calls(['fast', 1], ['pay', 2], ['fast', 3]), 'done']), tools)
    const runtime = () => createRuntime({ store, platform: new Clock(), policies: [gate('pay')] })
    await runtime().run(g, hello, T)
    await runtime().resume(g, 't', true)
    expect(ran).toEqual(['fast 1', 'fast 3', 'pay 2'])
  })

  it('B12: sends each result once, over gated calls of several rounds', async () => {
    const { store } = setUp()
    const { ran, tools } = noting('pay')
    const model = strict([calls(['pay', 1]), calls(['pay', 2]), calls(['pay', 3]), 'done'])
    const g = agentGraph(model, tools)
    const runtime = () => createRuntime({ store, platform: new Clock(), policies: [gate('pay')] })
    let outcome = await runtime().run(g, hello, T)
    for (let i = 0; outcome.status === 'paused'; i++) {
      expect(outcome.asks[0]?.payload).toMatchObject({ arguments: { n: i + 1 } })
      outcome = await runtime().resume(g, 't', true)
    }
    expect(ran).toEqual(['pay 1', 'pay 2', 'pay 3'])
    expect(model.requests.map((request) => request.messages.length)).toEqual([1, 3, 5, 7])
    expect(faultsOf(outcome.state.messages)).toEqual([])
  })

  it('Z1: as a whole, at its node: the answer lets it run, from its beginning', async () => {
    const { store } = setUp()
    const { ran, tools } = noting('look')
    const model = strict([calls(['look', 1]), 'done'])
    const g = agentGraph(model, tools)
    const atNode = () =>
      says('AtNode', {
        'node.before': (_shown, { answered }) =>
          answered === undefined ? { action: 'suspend', ask: {} } : { action: 'proceed' },
      })
    const runtime = () => createRuntime({ store, platform: new Clock(), policies: [atNode()] })
    const paused = await runtime().run(g, hello, T)
    expect(paused.asks.map(({ key }) => key)).toEqual(['agent@AtNode'])
    expect(model.requests).toEqual([])
    expect((await runtime().resume(g, 't', 'yes')).state.messages.at(-1)?.content).toBe('done')
    expect(ran).toEqual(['look 1'])
  })

  it('Z14: tells nothing of its instructions and of what was said before in the stream that goes on', async () => {
    const { store } = setUp()
    const { tools } = noting('pay')
    const model = strict([calls(['pay', 1]), 'done'])
    const agent = agentNode('agent', Talk, { model, tools, system: 'be discreet' })
    const g = graph('g', Talk).edge(START, agent).edge(agent, END).check()
    const runtime = () => createRuntime({ store, platform: new Clock(), policies: [gate('pay')] })
    await runtime().run(g, { messages: [{ role: 'user', content: 'a secret' }] }, T)
    const told: string[] = []
    for await (const event of runtime().stream(g, undefined, { ...T, resume: true })) {
      if (event.type !== 'run_end' && event.type !== 'node_complete') told.push(JSON.stringify(event))
    }
    expect(told.length).toBeGreaterThan(2)
    expect(told.filter((text) => /discreet|secret/.test(text))).toEqual([])
  })

  it('B7: has its conversation and the call in the store by the time the pause is announced', async () => {
    const { store } = setUp()
    const { tools } = noting('pay')
    const g = agentGraph(strict([calls(['pay', 1]), 'done']), tools)
    await createRuntime({ store, platform: new Clock(), policies: [gate('pay')] }).run(g, hello, T)
    const elsewhere = createRuntime({ store })
    const stands = await elsewhere.stateAt(g, 't')
    expect(stands.state?.messages).toEqual(hello.messages)
    expect(stands.asks).toMatchObject([{ payload: { tool: 'pay', arguments: { n: 1 } } }])
    const [call] = (await elsewhere.history('t')).filter(({ type }) => type === 'call')
    expect(call).toMatchObject({ kind: 'model', ok: true, value: { tool_calls: [{ name: 'pay' }] } })
  })

  it('C6: keeps a conversation that any provider takes, whatever is asked, answered, refused and broken', async () => {
    const round = fc.array(fc.tuple(fc.constantFrom('look', 'pay', 'fail', 'nobody'), fc.nat(9)), {
      minLength: 1,
      maxLength: 4,
    })
    const answers = fc.infiniteStream(fc.constantFrom<unknown>(true, { n: 5 }, 'no'))
    await fc.assert(
      fc.asyncProperty(fc.array(round, { maxLength: 4 }), answers, fc.boolean(), async (rounds, given, one) => {
        const { store } = setUp()
        const { tools } = noting('look', 'pay')
        const fail = tool('fail', {
          description: 'Fails.',
          input: z.object({ n: z.number() }),
          run: () => {
            throw new Error('no')
          },
        })
        const g = agentGraph(strict([...rounds.map((made) => calls(...made)), 'done']), [...tools, fail])
        const runtime = () => createRuntime({ store, platform: new Clock(), policies: [gate('pay', 'fail')] })
        let outcome = await runtime().run(g, hello, T)
        for (let left = 99; outcome.status === 'paused' && left > 0; left--) {
          const asked = one ? outcome.asks.slice(0, 1) : outcome.asks
          outcome = await runtime().resume(g, 't', new Map(asked.map(({ key }) => [key, given.next().value])))
        }
        expect(outcome.status).toBe('completed')
        expect(faultsOf(outcome.state.messages)).toEqual([])
        const asked = rounds.flat().length
        expect(outcome.state.messages.filter(({ role }) => role === 'tool')).toHaveLength(asked)
      }),
      { numRuns: 40 },
    )
  })
})

describe('two agents in one node', () => {
  it("go on beside each other's question, through all their rounds, however long policies take over a round", async () => {
    const { store } = setUp()
    const { ran, tools } = noting('pay', 'look')
    const slow = () =>
      says('Slow', {
        'agentRound.before': async () => {
          for (let i = 0; i < 5; i++) await quiet()
          return { action: 'proceed' }
        },
        'agentRound.after': async () => {
          for (let i = 0; i < 5; i++) await quiet()
          return { action: 'pass' }
        },
      })
    const [payer, looker] = [
      strict([calls(['pay', 1]), 'paid'], 'payer'),
      strict([calls(['look', 1]), calls(['look', 2]), calls(['look', 3]), 'looked'], 'looker'),
    ]
    const both = node('both', Talk, async (_s, ctx) => {
      const results = await Promise.all(
        [payer, looker].map((model) => agentLoop(ctx, { model, tools, messages: [...hello.messages] })),
      )
      return { messages: results.map(({ content }) => ({ role: 'assistant' as const, content })) }
    })
    const g = graph('g', Talk).edge(START, both).edge(both, END).check()
    const runtime = () => createRuntime({ store, platform: new Clock(), policies: [slow(), gate('pay')] })
    expect((await runtime().run(g, {}, T)).asks.map(({ key }) => key)).toEqual(['both:pay@Gate'])
    expect(ran).toEqual(['look 1', 'look 2', 'look 3'])
    expect((await runtime().resume(g, 't', true)).state.messages.map(({ content }) => content)).toEqual([
      'paid',
      'looked',
    ])
    expect([payer, looker].map(({ requests }) => requests.length)).toEqual([2, 4])
  })
})

describe('an agent as a tool', () => {
  /** A tool `name` that runs an agent of its own with these replies and tools. */
  const asTool = (name: string, replies: readonly ScriptedReply[], tools: readonly Tool[]) => {
    const model = strict(replies)
    const inner = agentNode('agent', Talk, { model, tools })
    const g = graph(`${name}-agent`, Talk).edge(START, inner).edge(inner, END).check()
    return tool(name, {
      description: `Asks ${name}.`,
      input: z.object({ n: z.number() }),
      run: async ({ n }, ctx) =>
        (await ctx.run(g, { messages: [{ role: 'user', content: `${n}` }] })).messages.at(-1)?.content,
    })
  }

  it('B10: may be asked about in many rounds, and leaves the conversation above as it would be without', async () => {
    const play = async (policies: () => readonly Policy[]) => {
      const { store } = setUp()
      const { ran, tools } = noting('pay')
      const helper = asTool('helper', [calls(['pay', 1]), calls(['pay', 2]), calls(['pay', 3]), 'helped'], tools)
      const g = agentGraph(strict([calls(['helper', 1]), 'done']), [helper])
      const runtime = () => createRuntime({ store, platform: new Clock(), policies: policies() })
      const asked: unknown[] = []
      let outcome = await runtime().run(g, hello, T)
      while (outcome.status === 'paused') {
        asked.push(outcome.asks.map(({ key }) => key))
        outcome = await runtime().resume(g, 't', true)
      }
      return { asked, ran, messages: outcome.state.messages }
    }
    const free = await play(() => [])
    const gated = await play(() => [gate('pay')])
    expect(gated.messages).toEqual(free.messages)
    expect(gated.ran).toEqual(free.ran)
    expect(gated.asked).toEqual([
      ['agent:helper/agent:pay@Gate'],
      ['agent:helper/agent:pay[1]@Gate'],
      ['agent:helper/agent:pay[2]@Gate'],
    ])
  })

  it('B11: three deep: the question shows at the top with the way to it, and the answer goes on inside', async () => {
    const { store } = setUp()
    const { ran, tools } = noting('pay', 'look')
    const third = asTool('third', [calls(['look', 1]), calls(['pay', 2]), 'third done'], tools)
    const second = asTool('second', [calls(['third', 3]), 'second done'], [third])
    const first = asTool('first', [calls(['second', 4]), 'first done'], [second])
    const g = agentGraph(strict([calls(['first', 5]), 'done']), [first])
    const runtime = () => createRuntime({ store, platform: new Clock(), policies: [gate('pay')] })
    const paused = await runtime().run(g, hello, T)
    expect(paused.asks).toMatchObject([
      { key: 'agent:first/agent:second/agent:third/agent:pay@Gate', nodeName: 'agent', askedBy: 'policy:Gate' },
    ])
    const { state } = await runtime().resume(g, 't', true)
    expect(contents(state.messages)).toEqual(['user: hello', 'assistant: ', 'tool: first done', 'assistant: done'])
    expect(ran).toEqual(['look 1', 'pay 2'])
  })

  it('two of one round: each is asked about by itself, and goes on by itself', async () => {
    const { store } = setUp()
    const { ran, tools } = noting('pay')
    const model = strict([calls(['pay', 1]), calls(['pay', 2]), 'helped', 'helped'])
    const inner = agentNode('agent', Talk, { model, tools })
    const one = graph('helper-agent', Talk).edge(START, inner).edge(inner, END).check()
    const helper = tool('helper', {
      description: 'Helps.',
      input: z.object({ n: z.number() }),
      run: async ({ n }, ctx) =>
        (await ctx.run(one, { messages: [{ role: 'user', content: `${n}` }] })).messages.at(-1)?.content,
    })
    const g = agentGraph(strict([calls(['helper', 1], ['helper', 2]), 'done']), [helper])
    const runtime = () => createRuntime({ store, platform: new Clock(), policies: [gate('pay')] })
    const { asks } = await runtime().run(g, hello, T)
    const keys = asks.map(({ key }) => key)
    expect(keys).toEqual(['agent:helper/agent:pay@Gate', 'agent:helper[1]/agent:pay@Gate'])
    const half = await runtime().resume(g, 't', new Map([[keys[1], true]]))
    expect(half.asks.map(({ key }) => key)).toEqual([keys[0]])
    expect(ran).toEqual(['pay 2'])
    const { state } = await runtime().resume(g, 't', true)
    expect(ran).toEqual(['pay 2', 'pay 1'])
    expect(contents(state.messages).slice(2)).toEqual(['tool: helped', 'tool: helped', 'assistant: done'])
  })
})

describe('an ask beneath a tool call beneath a sub-agent', () => {
  const Report = state({ said: append(z.string()) })
  type ReportGraph = Graph<StateOf<typeof Report>, UpdateFor<typeof Report>>
  const confirm = (ran: string[]) =>
    tool('confirm', {
      description: 'Asks a person.',
      input: z.object({ n: z.number() }),
      run: async ({ n }, ctx) => {
        ran.push(`confirm ${n}`)
        return ctx.ask('sure', { n }, { schema: z.boolean() })
      },
    })

  it('shows at the top with its whole way, and is answered there by every process', async () => {
    const { store } = setUp()
    const ran: string[] = []
    const model = strict([calls(['confirm', 1]), calls(['confirm', 2]), 'agreed'])
    const step = node('step', Report, async (_s, ctx) => {
      const { content } = await agentLoop(ctx, {
        model,
        messages: [...hello.messages],
        tools: [confirm(ran)],
      })
      return { said: [content] }
    })
    const sub: ReportGraph = graph('sub', Report).edge(START, step).edge(step, END).check()
    const lead = node('lead', Report, async (_s, ctx) => {
      const results = await ctx.gather(ctx.spawn([{ graph: sub }]))
      return { said: results.flatMap(({ state }) => (state as StateOf<typeof Report>).said) }
    })
    const g = graph('g', Report).edge(START, lead).edge(lead, END).check()
    const runtime = () => createRuntime({ store })
    const first = await runtime().run(g, {}, T)
    expect(first.asks).toMatchObject([
      { key: 'lead/step:confirm:sure', taskId: 'lead/step:confirm', payload: { n: 1 } },
    ])
    expect(await errorOf(runtime().resume(g, 't', 'maybe'))).toMatchObject({ code: 'ANSWER_INVALID' })
    const second = await runtime().resume(g, 't', true)
    expect(second.asks).toMatchObject([{ key: 'lead/step:confirm[1]:sure', payload: { n: 2 } }])
    expect((await runtime().resume(g, 't', false)).state.said).toEqual(['agreed'])
    expect(ran).toEqual(['confirm 1', 'confirm 1', 'confirm 2', 'confirm 2'])
  })
})
