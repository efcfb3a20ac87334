import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { agentGraph, calls, contents, numbered, strict, Talk, user } from '../../../testing/agent.ts'
import { faultsOf } from '../../../testing/transcript.ts'
import {
  agentNode,
  allFields,
  anyField,
  type ChatModel,
  createRuntime,
  END,
  eq,
  ge,
  graph,
  gt,
  type InterruptRule,
  type Json,
  type JsonObject,
  le,
  lt,
  MemoryStore,
  Middleware,
  matches,
  middleware,
  node,
  type Policy,
  policy,
  type ScriptedReply,
  START,
  shouldInterrupt,
  type Tool,
  ToolInterruptMiddleware,
  type ToolMiddlewareContext,
  type ToolPredicate,
  tool,
} from '../../index.ts'

const T = { thread: 't' }

//#region rules
/** An agent that pays small amounts by itself, and asks about the rest and about every mail. */
const support = (model: ChatModel, tools: readonly Tool[]) => {
  const agent = agentNode('agent', Talk, { model, tools })
  const approvals = new ToolInterruptMiddleware({
    rules: [{ tool: 'pay', match: gt('amount', 100) }, { tool: 'send_mail' }],
  })
  return graph('support', Talk, { middleware: [approvals] })
    .edge(START, agent)
    .edge(agent, END)
    .check()
}
//#endregion

/** Pays, and notes what it paid. */
function paying() {
  const paid: object[] = []
  const pay = tool('pay', {
    description: 'Pays.',
    input: z.object({ to: z.string(), amount: z.number().positive() }),
    run: (args) => {
      paid.push(args)
      return `paid ${args.amount} to ${args.to}`
    },
  })
  return { paid, pay }
}

const everyPay = () => [new ToolInterruptMiddleware({ rules: [{ tool: 'pay' }] })]

/** An agent is asked about one payment, and goes on with the answer in another process. */
async function answered(
  answer: unknown,
  rules: readonly InterruptRule[] = [{ tool: 'pay' }],
  policies: readonly Policy[] = [],
) {
  const { paid, pay } = paying()
  const model = strict([calls(['pay', { to: 'ann', amount: 120 }]), 'done'])
  const agent = () => agentGraph({ model, tools: [pay], middleware: [new ToolInterruptMiddleware({ rules })] })
  const store = new MemoryStore()
  const paused = await createRuntime({ store, policies }).run(agent(), user('pay ann'), T)
  const { state } = await createRuntime({ store, policies }).resume(agent(), 't', answer)
  return { paid, asks: paused.asks, said: state.messages }
}

describe('a tool call that a rule is about', () => {
  it('pauses the run, and shows a person what would run and what may be answered', async () => {
    const { paid, pay } = paying()
    const model = strict([calls(['pay', { to: 'ann', amount: 99 }], ['pay', { to: 'bob', amount: 101 }])])
    const { status, asks } = await createRuntime().run(support(model, [pay]), user('pay both'), T)
    expect(status).toBe('paused')
    expect(paid).toEqual([{ to: 'ann', amount: 99 }])
    expect(asks).toMatchObject([
      {
        key: 'agent:pay[1]@ToolInterruptMiddleware',
        payload: {
          tool: 'pay',
          arguments: { to: 'bob', amount: 101 },
          kind: 'tool_interrupt',
          toolCallId: 'call-1-2',
        },
        schema: { anyOf: [{ type: 'boolean' }, {}, {}, {}] },
      },
    ])
  })

  it.each([
    { answer: true },
    { answer: { action: 'approve' } },
    { answer: { action: 'approve', arguments: null, message: null } },
  ])('H2: runs when it is approved: $answer', async ({ answer }) => {
    const { paid, said } = await answered(answer)
    expect(paid).toEqual([{ to: 'ann', amount: 120 }])
    expect(contents(said).slice(2)).toEqual(['tool: paid 120 to ann', 'assistant: done'])
  })

  it.each([
    { answer: false, reason: 'denied by reviewer' },
    { answer: null, reason: 'denied by reviewer' },
    { answer: 'deny', reason: 'denied by reviewer: the answer is no decision' },
    { answer: 0, reason: 'denied by reviewer: the answer is no decision' },
    { answer: 1, reason: 'denied by reviewer: the answer is no decision' },
    { answer: 'true', reason: 'denied by reviewer: the answer is no decision' },
    { answer: [], reason: 'denied by reviewer: the answer is no decision' },
    { answer: { approved: true }, reason: 'denied by reviewer: the answer is no decision' },
    { answer: { action: 'allow' }, reason: 'denied by reviewer: the answer is no decision' },
    {
      answer: { action: 'approve', arguments: { amount: 1 } },
      reason: 'denied by reviewer: the answer is no decision',
    },
    { answer: { action: 'deny' }, reason: 'denied by reviewer' },
    { answer: { action: 'deny', message: 'ask him first' }, reason: 'ask him first' },
  ])('H1: does not run when it is answered $answer, and the model is told', async ({ answer, reason }) => {
    const { paid, said } = await answered(answer)
    expect(paid).toEqual([])
    expect(contents(said).slice(2)).toEqual([`tool: Refused: ${reason}`, 'assistant: done'])
  })

  it('H3: runs with an edit merged over its arguments; the conversation keeps what the model asked for', async () => {
    const { paid, said } = await answered({ action: 'edit', arguments: { amount: 20 } })
    expect(paid).toEqual([{ to: 'ann', amount: 20 }])
    expect(said[1]?.tool_calls).toMatchObject([{ arguments: '{"to":"ann","amount":120}' }])
  })

  it('runs with an edit, and the model is told below the result: policies judge the result alone', async () => {
    const judged: unknown[] = []
    const judge = policy({
      name: 'Judge',
      seams: {
        toolCall: {
          after: ({ outcome }) => {
            judged.push(outcome)
            return { action: 'pass' }
          },
        },
      },
    })
    const { said } = await answered({ action: 'edit', arguments: { amount: 20 } }, undefined, [judge])
    expect(judged).toEqual([{ ok: true, value: 'paid 20 to ann' }])
    expect(contents(said)[2]).toBe(
      'tool: paid 20 to ann\n\n[A reviewer changed the arguments of this call to {"to":"ann","amount":20}]',
    )
  })

  it('runs with an edit that a policy changes further, and of the policy nobody is told', async () => {
    const cap = policy({
      name: 'Cap',
      seams: { toolCall: { before: ({ input }) => ({ action: 'modify', input: { ...input, amount: 5 } }) } },
    })
    const { paid, said } = await answered({ action: 'edit', arguments: { amount: 20 } }, undefined, [cap])
    expect(paid).toEqual([{ to: 'ann', amount: 5 }])
    expect(contents(said)[2]).toBe(
      'tool: paid 5 to ann\n\n[A reviewer changed the arguments of this call to {"to":"ann","amount":20}]',
    )
    const approved = await answered(true, undefined, [cap])
    expect(contents(approved.said)[2]).toBe('tool: paid 5 to ann')
  })

  it('that was edited and is done by then is told of by another process, which goes on after another question', async () => {
    const { paid, pay } = paying()
    const { ran, tools } = numbered('send')
    const model = strict([calls(['pay', { to: 'ann', amount: 120 }], ['send', 1]), 'done'])
    const clerk = new ToolInterruptMiddleware({ name: 'clerk', rules: [{ tool: '*' }] })
    const boss = new ToolInterruptMiddleware({ name: 'boss', rules: [{ tool: 'send' }] })
    const agent = agentGraph({ model, tools: [pay, ...tools], middleware: [clerk, boss] })
    const store = new MemoryStore()
    await createRuntime({ store }).run(agent, user('pay and send'), T)
    const answers = new Map<string, Json>([
      ['agent:pay@clerk', { action: 'edit', arguments: { amount: 20 } }],
      ['agent:send@clerk', true],
    ])
    const { asks } = await createRuntime({ store }).resume(agent, 't', answers)
    expect(asks.map(({ key }) => key)).toEqual(['agent:send@boss'])
    expect(paid).toEqual([{ to: 'ann', amount: 20 }])
    const { state } = await createRuntime({ store }).resume(agent, 't', true)
    expect([paid.length, ran]).toEqual([1, ['send 1']])
    expect(contents(state.messages).slice(2)).toEqual([
      'tool: paid 20 to ann\n\n[A reviewer changed the arguments of this call to {"to":"ann","amount":20}]',
      'tool: send 1 done',
      'assistant: done',
    ])
  })

  it.each([
    { name: 'a misspelt member', answer: { action: 'edit', args: { amount: 20 } } },
    { name: 'none', answer: { action: 'edit' } },
    { name: 'no object', answer: { action: 'edit', arguments: [20] } },
  ])('H4: does not run with an edit that is none: $name', async ({ answer }) => {
    const { paid, said } = await answered(answer)
    expect(paid).toEqual([])
    expect(contents(said)[2]).toBe('tool: Refused: denied by reviewer: the answer is no decision')
  })

  it('is not run with an edit that does not fit: the model reads what is wrong', async () => {
    const { paid, said } = await answered({ action: 'edit', arguments: { amount: -5 } })
    expect(paid).toEqual([])
    expect(contents(said)[2]).toMatch(/^tool: Error: invalid arguments for tool "pay": .*amount/)
    expect(faultsOf(said)).toEqual([])
  })

  it('may be answered by whoever checks answers only with a decision: nothing is run, and it can be answered again', async () => {
    const { paid, pay } = paying()
    const model = strict([calls(['pay', { to: 'ann', amount: 120 }]), 'done'])
    const agent = agentGraph({ model, tools: [pay], middleware: everyPay() })
    const checkJson = (schema: JsonObject, value: unknown) => void z.fromJSONSchema(schema).parse(value)
    const runtime = createRuntime({ store: new MemoryStore(), checkJson })
    await runtime.run(agent, user('pay ann'), T)
    for (const wrong of ['deny', { action: 'edit', args: {} }, { action: 'approve', message: 5 }]) {
      await expect(runtime.resume(agent, 't', wrong)).rejects.toMatchObject({ code: 'ANSWER_INVALID' })
    }
    for (const right of [{ action: 'edit', arguments: { amount: 3 } }]) await runtime.resume(agent, 't', right)
    expect(paid).toEqual([{ to: 'ann', amount: 3 }])
  })

  it('cannot be asked about in a run without a thread, and does not run', async () => {
    const { paid, pay } = paying()
    const model = strict([calls(['pay', { to: 'ann', amount: 120 }])])
    const agent = agentGraph({ model, tools: [pay], middleware: everyPay() })
    await expect(createRuntime().run(agent, user('pay'))).rejects.toMatchObject({ code: 'SUSPEND_NEEDS_THREAD' })
    expect(paid).toEqual([])
  })

  it('is asked about again when what would run is something else by then', async () => {
    const { paid, pay } = paying()
    let factor = 1
    const rate = middleware({
      name: 'rate',
      beforeTool: (ctx) => ctx.replace({ ...ctx.args, amount: (ctx.args.amount as number) * factor }),
    })
    const model = strict([calls(['pay', { to: 'ann', amount: 120 }]), 'done'])
    const agent = agentGraph({ model, tools: [pay], middleware: [rate, ...everyPay()] })
    const store = new MemoryStore()
    await createRuntime({ store }).run(agent, user('pay'), T)
    factor = 2
    const again = await createRuntime({ store }).resume(agent, 't', true)
    expect(again.asks).toMatchObject([{ payload: { arguments: { to: 'ann', amount: 240 } } }])
    expect(paid).toEqual([])
    await createRuntime({ store }).resume(agent, 't', true)
    expect(paid).toEqual([{ to: 'ann', amount: 240 }])
  })
})

describe('several calls', () => {
  it('H5: may be answered one by one, each in its own way', async () => {
    const { ran, tools } = numbered('pay')
    const model = strict([calls(['pay', 1], ['pay', 2]), 'done'])
    const agent = agentGraph({ model, tools, middleware: everyPay() })
    const store = new MemoryStore()
    const { asks } = await createRuntime({ store }).run(agent, user('pay'), T)
    const [first, second] = asks.map(({ key }) => key).sort()
    const half = await createRuntime({ store }).resume(agent, 't', new Map([[second, true]]))
    expect(half.asks.map(({ key }) => key)).toEqual([first])
    const { state } = await createRuntime({ store }).resume(agent, 't', { action: 'deny', message: 'not this one' })
    expect(ran).toEqual(['pay 2'])
    expect(contents(state.messages).slice(2, 4)).toEqual(['tool: Refused: not this one', 'tool: pay 2 done'])
  })

  it('H6: leave those that nobody is asked about alone: they run once, before the pause', async () => {
    const { ran, tools } = numbered('look', 'pay')
    const model = strict([calls(['look', 1], ['pay', 2]), 'done'])
    const agent = agentGraph({ model, tools, middleware: everyPay() })
    const store = new MemoryStore()
    await createRuntime({ store }).run(agent, user('pay'), T)
    expect(ran).toEqual(['look 1'])
    await createRuntime({ store }).resume(agent, 't', true)
    expect(ran).toEqual(['look 1', 'pay 2'])
  })

  it('A3: of which one is denied, one approved and one not asked about come to one result each, in order', async () => {
    const { ran, tools } = numbered('pay', 'look')
    const model = strict([calls(['pay', 1], ['look', 2], ['pay', 3]), 'done'])
    const agent = agentGraph({ model, tools, middleware: everyPay() })
    const store = new MemoryStore()
    const { asks } = await createRuntime({ store }).run(agent, user('pay'), T)
    const [first, second] = asks.map(({ key }) => key).sort()
    const answers = new Map([
      [first, false],
      [second, true],
    ])
    const { state } = await createRuntime({ store }).resume(agent, 't', answers)
    expect(ran).toEqual(['look 2', 'pay 3'])
    expect(contents(state.messages).slice(2)).toEqual([
      'tool: Refused: denied by reviewer',
      'tool: look 2 done',
      'tool: pay 3 done',
      'assistant: done',
    ])
  })

  it('B12: of several rounds are asked about each, and every result is sent once', async () => {
    const { ran, tools } = numbered('pay')
    const model = strict([calls(['pay', 1]), calls(['pay', 2]), 'done'])
    const agent = agentGraph({ model, tools, middleware: everyPay() })
    const store = new MemoryStore()
    let outcome = await createRuntime({ store }).run(agent, user('pay'), T)
    for (; outcome.status === 'paused'; outcome = await createRuntime({ store }).resume(agent, 't', true)) {
      expect(outcome.asks).toHaveLength(1)
    }
    expect(ran).toEqual(['pay 1', 'pay 2'])
    expect(model.requests.map(({ messages }) => messages.length)).toEqual([1, 3, 5])
  })

  it('H7: have keys of their own, whatever ids a provider gives', async () => {
    const { ran, tools } = numbered('pay')
    const ids = ['fc:1', 'fc.3a1', 'a|b', 'a|b']
    const reply: ScriptedReply = {
      tool_calls: ids.map((id, n) => ({ id, name: 'pay', arguments: { n } })),
    }
    const agent = agentGraph({ model: { model: 'm', chat: strictly(reply) }, tools, middleware: everyPay() })
    const store = new MemoryStore()
    const { asks } = await createRuntime({ store }).run(agent, user('pay'), T)
    expect(new Set(asks.map(({ key }) => key)).size).toBe(4)
    await createRuntime({ store }).resume(agent, 't', new Map(asks.map(({ key }) => [key, true])))
    expect(ran).toHaveLength(4)
  })
})

/** Answers once with this reply, then with a text. */
function strictly(reply: ScriptedReply): ChatModel['chat'] {
  const model = strict([reply])
  return async (request, options) =>
    model.requests.length === 0 ? model.chat(request, options) : { content: 'done', finish_reason: 'stop' }
}

describe('a tool', () => {
  const { ran, tools } = numbered('pay')
  const [pay] = tools as [Tool]
  class Cashier extends Middleware {
    override tools() {
      return [pay]
    }
  }
  const byAgent = (given: readonly Tool[], own: readonly Middleware[] = []) =>
    agentGraph({ model: strict([calls(['pay', 1])]), tools: given, middleware: [...everyPay(), ...own] })
  const byNode = (called: Tool | string) => {
    const work = node('work', Talk, async (_s, ctx) => void (await ctx.callTool(called, { n: 1 })))
    return graph('g', Talk, { middleware: everyPay() }).edge(START, work).edge(work, END).check()
  }
  const cashier = new Cashier()

  it.each([
    { name: 'given to the agent', graph: byAgent([pay]) },
    { name: 'provided by a middleware', graph: byAgent([...cashier.tools()], [cashier]) },
    { name: 'brought from elsewhere', graph: byAgent([{ ...pay, source: 'mcp:bank' }]) },
    { name: 'called by a node', graph: byNode(pay) },
    { name: 'of the runtime, by its name', graph: byNode('pay') },
  ])('A11: is asked about however it came: $name', async ({ graph: g }) => {
    const { status } = await createRuntime({ tools: [pay] }).run(g, user('pay'), T)
    expect({ status, ran }).toEqual({ status: 'paused', ran: [] })
  })

  it('H8: that no model called has an id of ours, and a denial is an error of whoever called', async () => {
    const store = new MemoryStore()
    const g = byNode(pay)
    const { asks } = await createRuntime({ store }).run(g, {}, T)
    expect(asks).toMatchObject([{ payload: { toolCallId: expect.stringMatching(/^call-/) } }])
    await expect(createRuntime({ store }).resume(g, 't', false)).rejects.toMatchObject({
      code: 'REFUSED',
      reason: 'denied by reviewer',
    })
  })

  it('may be any, with "*"', async () => {
    const middleware = [new ToolInterruptMiddleware({ rules: [{ tool: '*' }] })]
    const agent = agentGraph({ model: strict([calls(['pay', 1])]), tools, middleware })
    expect((await createRuntime().run(agent, user('pay'), T)).status).toBe('paused')
  })

  it('that no rule is about is called as if there were none', async () => {
    const play = async (own: readonly Middleware[]) => {
      const agent = agentGraph({ model: strict([calls(['pay', 1]), 'done']), tools, middleware: own })
      const outcome = await createRuntime().run(agent, user('pay'), T)
      return { ...outcome, runId: '' }
    }
    const rules = [{ tool: 'send' }, { tool: pay, match: gt('n', 1) }]
    expect(await play([new ToolInterruptMiddleware({ rules })])).toEqual(await play([]))
  })
})

//#region predicates
const risky: readonly InterruptRule[] = [
  { tool: 'pay', match: ge('amount', 100) },
  { tool: 'shell', match: matches('cmd', /\b(rm|sudo)\b/) },
  { tool: 'send_mail', match: anyField({ to: /@(?!example\.com$)/, subject: /contract/i }) },
  { tool: 'book', match: ({ seats }) => (seats as number) > 8 },
]
//#endregion

describe('a predicate', () => {
  it.each([
    { tool: 'pay', args: { amount: 99 }, asks: false },
    { tool: 'pay', args: { amount: 100 }, asks: true },
    { tool: 'shell', args: { cmd: 'ls' }, asks: false },
    { tool: 'shell', args: { cmd: 'sudo ls' }, asks: true },
    { tool: 'send_mail', args: { to: 'a@example.com', subject: 'hello' }, asks: false },
    { tool: 'send_mail', args: { to: 'a@example.com', subject: 'Contract' }, asks: true },
    { tool: 'book', args: { seats: 8 }, asks: false },
    { tool: 'book', args: { seats: 9 }, asks: true },
    { tool: 'look', args: {}, asks: false },
  ])('tells the calls of a tool apart: $tool $args', ({ tool: name, args, asks }) =>
    expect(shouldInterrupt(risky, name, args as never)).toBe(asks),
  )

  it.each([
    { name: 'gt', match: gt('n', 5), holds: [6, 5.1], fails: [5, -1] },
    { name: 'ge', match: ge('n', 5), holds: [5, 6], fails: [4.9] },
    { name: 'lt', match: lt('n', 5), holds: [4], fails: [5] },
    { name: 'le', match: le('n', 5), holds: [5, 4], fails: [5.1] },
    { name: 'gt of texts', match: gt('n', 'm'), holds: ['z'], fails: ['a'] },
    { name: 'eq', match: eq('n', 5), holds: [5], fails: [6] },
    { name: 'eq of a truth', match: eq('n', true), holds: [true], fails: [false] },
    { name: 'eq of nothing', match: eq('n', null), holds: [null], fails: [] },
    { name: 'eq of a list', match: eq('n', [1, { a: 2 }]), holds: [[1, { a: 2 }]], fails: [[1]] },
    { name: 'matches', match: matches('n', /rm\s/), holds: ['sudo rm -r'], fails: ['farm'] },
    { name: 'matches by a text', match: matches('n', '^/etc'), holds: ['/etc/x'], fails: ['/home/etc'] },
    { name: 'matches with g', match: matches('n', /a/g), holds: ['a', 'a', 'ba'], fails: ['b'] },
    { name: 'allFields', match: allFields({ n: /a/ }), holds: ['a'], fails: ['b'] },
    { name: 'anyField', match: anyField({ n: 'a' }), holds: ['a'], fails: ['b'] },
  ])('says which calls are asked about: $name', ({ match, holds, fails }) => {
    for (const n of holds) expect({ n, says: match({ n: n as never }) }).toEqual({ n, says: true })
    for (const n of fails) expect({ n, says: match({ n: n as never }) }).toEqual({ n, says: false })
  })

  const asks = (match: ToolPredicate, args: object) => shouldInterrupt([{ tool: 'pay', match }], 'pay', args as never)

  it.each([
    { name: 'is missing', args: {} },
    { name: 'is a text', args: { n: '6' } },
    { name: 'is a truth', args: { n: true } },
    { name: 'is null', args: { n: null } },
    { name: 'is NaN', args: { n: Number.NaN } },
  ])('H9: of a number asks when its argument $name', ({ args }) => {
    for (const match of [gt('n', 1_000), ge('n', 1_000), lt('n', -1_000), le('n', -1_000), eq('n', 1_000)]) {
      expect(() => match(args as never)).toThrow()
      expect(asks(match, args)).toBe(true)
    }
  })

  it.each([
    { name: 'allFields', match: allFields({ to: /nobody/, memmo: /x/ }) },
    { name: 'anyField', match: anyField({ to: /ann/, memmo: /x/ }) },
  ])(
    'H10: of several fields asks when one of the names is misspelt, also where the others decide: $name',
    ({ match }) => {
      expect(asks(match, { to: 'ann', memo: 'x' })).toBe(true)
    },
  )

  it('H10: of several fields looks at each of them', () => {
    const both = allFields({ to: /ann/, memo: /gift/ })
    const either = anyField({ to: /ann/, memo: /gift/ })
    const cases = [
      { args: { to: 'ann', memo: 'gift' }, both: true, either: true },
      { args: { to: 'ann', memo: 'rent' }, both: false, either: true },
      { args: { to: 'bob', memo: 'rent' }, both: false, either: false },
    ]
    for (const { args, ...says } of cases) expect({ both: both(args), either: either(args) }).toEqual(says)
  })

  it('H11: on a misspelt argument pauses the run, and the tool does not run', async () => {
    const { paid, asks: asked } = await answered(false, [{ tool: 'pay', match: gt('ammount', 100) }])
    expect(asked).toHaveLength(1)
    expect(paid).toEqual([])
  })

  it.each([
    { name: 'throws', match: () => JSON.parse('{') },
    { name: 'forgets to answer', match: () => undefined },
    { name: 'promises an answer', match: async () => false },
  ])('of your own that $name asks', ({ match }) => {
    expect(asks(match as never, { n: 1 })).toBe(true)
  })

  it('is asked with the arguments as they were validated', async () => {
    const { pay } = paying()
    const seen: unknown[] = []
    const match = (args: object) => seen.push(args) > 1
    const withDefault = tool('pay', {
      description: 'Pays.',
      input: z.object({ to: z.string().default('ann'), amount: z.number() }),
      run: () => pay.name,
    })
    const middleware = [new ToolInterruptMiddleware({ rules: [{ tool: 'pay', match }] })]
    const model = strict([calls(['pay', { amount: 1 }]), 'done'])
    await createRuntime().run(agentGraph({ model, tools: [withDefault], middleware }), user('pay'))
    expect(seen).toEqual([{ to: 'ann', amount: 1 }])
  })

  it.each([
    { name: 'NaN', make: () => gt('n', Number.NaN), error: RangeError },
    { name: 'an object to be less than', make: () => lt('n', {} as never), error: TypeError },
    { name: 'no fields', make: () => allFields({}), error: RangeError },
    { name: 'no fields', make: () => anyField({}), error: RangeError },
    { name: 'a broken expression', make: () => matches('n', '('), error: SyntaxError },
  ])('is refused where it can never be told: $name', ({ make, error }) => expect(make).toThrow(error))
})

describe('the rules', () => {
  it.each([
    { name: 'none', options: {}, says: 'rules must be a list' },
    { name: 'a rule without a tool', options: { rules: [{ match: () => true }] }, says: 'rules[0] needs a tool' },
    { name: 'a misspelt member', options: { rules: [{ tool: 'pay', when: () => true }] }, says: 'has no "when"' },
    {
      name: 'a match that is a value',
      options: { rules: [{ tool: 'pay', match: true }] },
      says: 'rules[0] has a match',
    },
    { name: 'a misspelt option', options: { rules: [], rule: [] }, says: 'has no "rule"' },
  ])('are refused where they are none: $name', ({ options, says }) => {
    expect(() => new ToolInterruptMiddleware(options as never)).toThrow(TypeError)
    expect(() => new ToolInterruptMiddleware(options as never)).toThrow(says)
  })

  it('may stand in two middleware of two names, which both ask', async () => {
    const { ran, tools } = numbered('pay')
    const rules = [{ tool: 'pay' }]
    const middleware = [
      new ToolInterruptMiddleware({ rules, name: 'clerk' }),
      new ToolInterruptMiddleware({ rules, name: 'boss' }),
    ]
    const agent = agentGraph({ model: strict([calls(['pay', 1]), 'done']), tools, middleware })
    const store = new MemoryStore()
    let outcome = await createRuntime({ store }).run(agent, user('pay'), T)
    const keys: (string | undefined)[] = []
    for (; outcome.status === 'paused'; outcome = await createRuntime({ store }).resume(agent, 't', true)) {
      keys.push(outcome.asks[0]?.key)
      expect(ran).toEqual([])
    }
    expect(keys).toEqual(['agent:pay@clerk', 'agent:pay@boss'])
    expect(ran).toEqual(['pay 1'])
  })

  it('are asked about what middleware before them left of the arguments', async () => {
    const { ran, tools } = numbered('pay')
    class Double extends Middleware {
      override beforeTool(ctx: ToolMiddlewareContext) {
        return ctx.replace({ n: (ctx.args.n as number) * 2 })
      }
    }
    const rules = [{ tool: 'pay', match: gt('n', 1) }]
    const middleware = [new Double(), new ToolInterruptMiddleware({ rules })]
    const agent = agentGraph({ model: strict([calls(['pay', 1])]), tools, middleware })
    expect((await createRuntime().run(agent, user('pay'), T)).status).toBe('paused')
    expect(ran).toEqual([])
  })
})
