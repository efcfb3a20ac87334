import { describe, expect, it } from 'vitest'
import { agent, end, flowOf, start, text, tool, typed } from '../document.fixture.ts'
import { eventsOf, failureOf, outputsOf, play, watching } from './run.fixture.ts'

/** start -> pay -> end, with edges for what each is to get. */
const payment = flowOf(
  {
    start: start(text('who'), text('note')),
    pay: {
      component_type: 'ToolNode',
      tool: tool('pay', {
        inputs: [text('to'), typed('amount', 'integer', { default: 1 })],
        outputs: [typed('paid', 'integer')],
      }),
    },
    end: end(typed('paid', 'integer')),
  },
  ['start -> pay', 'pay -> end'],
  { data: ['start.who -> pay.to', 'pay.paid -> end.paid'] },
)
const paying = {
  tools: { pay: ({ amount }: { amount?: unknown }) => ({ paid: amount, secret: 'x' }) },
  input: { who: 'Ann', note: 'private' },
}

describe('what a policy at node sees of a flow', () => {
  it('F1: every node, start and end included, with its type', async () => {
    const watch = watching(['node.before', 'node.after'])
    const document = flowOf(
      {
        start: start(text('key')),
        choose: { component_type: 'BranchingNode', inputs: [text('key')], mapping: {} },
        ask: {
          component_type: 'LlmNode',
          llm_config: { component_type: 'OpenAiConfig', name: 'gpt', model_id: 'm' },
          prompt_template: 'hi',
        },
        think: { component_type: 'AgentNode', agent: agent() },
        inner: {
          component_type: 'FlowNode',
          subflow: flowOf({ in: start(), out: end() }, ['in -> out'], { id: 'inside', name: 'inside' }),
        },
        mine: { component_type: 'Mine' },
        pay: { component_type: 'ToolNode', tool: tool('pay') },
        end: { component_type: 'EndNode' },
      },
      [
        'start -> choose',
        'choose[default] -> ask',
        'ask -> think',
        'think -> inner',
        'inner -> mine',
        'mine -> pay',
        'pay -> end',
      ],
    )
    await outputsOf(document, {
      policies: [watch],
      model: ['a', 'b'],
      tools: { pay: () => ({}) },
      nodes: { Mine: () => ({ output: {} }) },
      input: { key: 'k' },
    })
    const types = watch.seen
      .filter(({ at }) => at === 'node.before')
      .map(({ subject }) => `${subject.nodeName} ${subject.nodeType}`)
    expect(types).toEqual([
      'start StartNode',
      'choose BranchingNode',
      'ask LlmNode',
      'think AgentNode',
      'inner FlowNode',
      'in StartNode',
      'out EndNode',
      'mine Mine',
      'pay ToolNode',
      'end EndNode',
    ])
    expect(watch.seen.filter(({ at }) => at === 'node.after')).toHaveLength(types.length)
  })

  it('is the mapped inputs and the declared outputs, and nothing wider', async () => {
    const watch = watching(['node.before', 'node.after'])
    await outputsOf(payment, { ...paying, policies: [watch] })
    expect(
      watch.seen.map(({ at, subject, input, outcome }) => [`${at} ${subject.nodeName}`, input ?? outcome]),
    ).toEqual([
      ['node.before start', { who: 'Ann', note: 'private' }],
      ['node.after start', { ok: true, value: { who: 'Ann', note: 'private' } }],
      ['node.before pay', { to: 'Ann', amount: 1 }],
      ['node.after pay', { ok: true, value: { paid: 1 } }],
      ['node.before end', { paid: 1 }],
      ['node.after end', { ok: true, value: { paid: 1 } }],
    ])
  })

  it("is a flow's inputs and declared outputs at run", async () => {
    const watch = watching(['run.before', 'run.after'])
    await outputsOf(payment, { ...paying, policies: [watch] })
    expect(watch.seen.map(({ input, outcome }) => input ?? outcome)).toEqual([
      { who: 'Ann', note: 'private' },
      { ok: true, value: { status: 'completed', outputs: { paid: 1 } } },
    ])
  })
})

describe('a policy that changes the input of a node', () => {
  const modify = (input: object) => [watching(['node.before'], { 'node.before pay': { action: 'modify', input } })]

  it('has it made what the node declares, defaults included', async () => {
    const { ran } = await play(payment, { ...paying, policies: modify({ to: 7 }) })
    expect(ran).toEqual([['pay', { to: '7', amount: 1 }]])
  })
  it.each([
    { name: 'a missing input', input: {}, says: 'input "to" of node "pay" has no value and no default.' },
    {
      name: 'an unknown input',
      input: { to: 'B', tip: 1 },
      says: 'there is no input "tip" of node "pay"; there are: to, amount.',
    },
    { name: 'a wrong type', input: { to: 'B', amount: 'all' }, says: 'input "amount" of node "pay" must be integer' },
  ])('fails when what it gave is none: $name', async ({ input, says }) => {
    const { error, ran } = await play(payment, { ...paying, policies: modify(input) })
    expect(error).toMatchObject({ name: 'MiddlewareError', message: expect.stringContaining(says) })
    expect(ran).toEqual([])
  })
  it('may change the input of a flow at run, and is held to what the flow takes', async () => {
    const at = (input: object) => [watching(['run.before'], { 'run.before support': { action: 'modify', input } })]
    expect((await play(payment, { ...paying, policies: at({ who: 'Bob', note: '' }) })).ran).toEqual([
      ['pay', { to: 'Bob', amount: 1 }],
    ])
    expect(await failureOf(payment, { ...paying, policies: at({ who: 'Bob' }) })).toContain(
      'input "note" of flow "support"',
    )
  })
})

describe('a policy that supplies the result of a node', () => {
  const at = (half: string, value: unknown) => [watching([half], { [`${half} pay`]: { action: 'replace', value } })]
  const failing = {
    ...paying,
    tools: {
      pay: () => {
        throw new Error('no money')
      },
    },
  }

  it.each([
    { name: 'instead of running it', half: 'node.before', playing: paying, ran: 0 },
    { name: 'in place of its own', half: 'node.after', playing: paying, ran: 1 },
    { name: 'when it failed', half: 'nodeError.after', playing: failing, ran: 1 },
  ])('has it made what the node declares: $name', async ({ half, playing, ran }) => {
    const played = await play(payment, { ...playing, policies: at(half, { paid: '9', more: 1 }) })
    expect(played.state).toEqual({ paid: 9 })
    expect(played.ran).toHaveLength(ran)
    expect(played.warnings[0]?.message).toMatch(/policy "Watch" supplied a result for node "pay"/)
  })
  it('says in the event who did', async () => {
    const events = await eventsOf(payment, { ...paying, policies: at('node.before', { paid: 9 }) })
    expect(events.find((event) => event.type === 'node_complete' && event.nodeName === 'pay')).toMatchObject({
      output: { paid: 9 },
      substituted: 'Watch',
    })
  })
  it.each(['node.before', 'node.after'])('fails when what it gave is none (%s)', async (half) => {
    const { error } = await play(payment, { ...paying, policies: at(half, { piad: 9 }) })
    expect(error).toMatchObject({
      name: 'MiddlewareError',
      message: expect.stringContaining('output "paid" of node "pay" has no value and no default.'),
    })
  })
})

describe('a node whose result was supplied', () => {
  const branching = (...edges: readonly string[]) =>
    flowOf(
      {
        start: start(text('key')),
        choose: { component_type: 'BranchingNode', inputs: [text('key')], mapping: { hot: 'hot' } },
        hot: end(text('key')),
        plain: end(text('key')),
      },
      ['start -> choose', ...edges],
      { outputs: [text('key', { default: '' })] },
    )
  const policies = (half: string) => [watching([half], { [`${half} choose`]: { action: 'replace', value: {} } })]
  const endOf = async (document: object, half: string) => {
    const events = await eventsOf(document, { input: { key: 'hot' }, policies: policies(half) })
    return events.findLast(({ type }) => type === 'node_complete')
  }

  it.each(['node.before', 'node.after'])('leaves by its unlabelled edge (B1, %s)', async (half) => {
    const document = branching('choose[hot] -> hot', 'choose -> plain')
    expect(await endOf(document, half)).toMatchObject({ nodeName: 'plain' })
  })
  it.each(['node.before', 'node.after'])(
    'fails where there is none: a result is not a route (B2, B3, %s)',
    async (half) => {
      const document = branching('choose[hot] -> hot', 'choose[default] -> plain')
      expect(await failureOf(document, { input: { key: 'hot' }, policies: policies(half) })).toBe(
        'node "choose": policy "Watch" supplied its result, and a result is not a route: every edge is labelled (hot, default), so the run cannot continue past it. Add an unlabelled edge.',
      )
    },
  )
})
