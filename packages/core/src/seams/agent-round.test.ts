import { describe, expect, it } from 'vitest'
import { type Answer, noting, says, settle } from '../../testing/play.ts'
import { agentNode, createRuntime, END, graph, MiddlewareError, messages, START, scripted, state } from '../index.ts'

const Talk = state({ messages: messages() })
const before = (name: string, answer: Answer) => says(name, { 'agentRound.before': answer })
const after = (name: string, answer: Answer) => says(name, { 'agentRound.after': answer })
const proceed = { action: 'proceed' }

/** An agent whose model asks for tools in so many rounds and then answers. */
function agent(toolRounds: number, { maxRounds }: { maxRounds?: number } = {}) {
  const asks = { tool_calls: ['act', 'look'].map((name) => ({ name, arguments: { text: 'x' } })) }
  const model = scripted([...Array.from({ length: toolRounds }, () => asks), 'done'])
  const tools = [noting(), noting(undefined, 'look')]
  const step = agentNode('agent', Talk, { model, tools, maxRounds })
  return { model, graph: graph('talk', Talk).edge(START, step).edge(step, END).check() }
}

describe('before a round', () => {
  it('I1: every round is judged, the answering one too, with its number from 1 and the ceiling', async () => {
    const watch = before('Watch', proceed)
    await settle({ graph: agent(2).graph, policies: [watch], limits: { maxToolRounds: 7 } })
    expect(watch.asked.map(({ input, subject }) => ({ input, subject }))).toEqual(
      [1, 2, 3].map((round) => ({
        input: { round, maxRounds: 7 },
        subject: { nodeName: 'agent', nodeType: 'AgentNode' },
      })),
    )
  })

  it.each([
    { name: 'by default', options: {}, maxRounds: 10 },
    { name: 'where the agent asks for fewer', options: { maxRounds: 4 }, maxRounds: 4 },
    { name: 'where the agent asks for more than it may have', options: { maxRounds: 1_000 }, maxRounds: 10 },
  ])('Z8: the ceiling is a number that one can compute with: $name', async ({ options, maxRounds }) => {
    const watch = before('Watch', proceed)
    await settle({ graph: agent(0, options).graph, policies: [watch] })
    expect(watch.asked[0]?.input).toEqual({ round: 1, maxRounds })
  })

  it('I2: rejecting the first means that the model is not asked at all', async () => {
    const { model, graph } = agent(1)
    const { status } = await settle({ graph, policies: [before('Gate', { action: 'reject', reason: 'not today' })] })
    expect(status).toBe('failed')
    expect(model.requests).toEqual([])
  })

  it('I3: rejecting those above 2 ends a looping agent before its third, naming node, round, policy and reason', async () => {
    const { model, graph } = agent(9)
    const gate = before('Gate', ({ input }) =>
      (input.round as number) > 2 ? { action: 'reject', reason: 'enough' } : proceed,
    )
    const { error } = await settle({ graph, policies: [gate] })
    expect(model.requests).toHaveLength(2)
    expect(error).toMatchObject({
      code: 'REFUSED',
      message: 'policy "Gate" refused round 3 of node "agent": enough',
      at: { policy: 'Gate', seam: 'agentRound', half: 'before', node: 'agent', round: 3 },
    })
  })
})

describe('after a round', () => {
  it('I4: only rounds that ran tools are judged, with their number and the tools in the order they were asked for', async () => {
    const watch = after('Watch', { action: 'pass' })
    await settle({ graph: agent(2).graph, policies: [watch] })
    expect(watch.asked.map(({ outcome }) => outcome)).toEqual(
      [1, 2].map((round) => ({ ok: true, value: { round, toolCalls: ['act', 'look'] } })),
    )
  })

  it('a round whose model call failed is not judged', async () => {
    const watch = after('Watch', { action: 'pass' })
    const broken = new Error('503 Service Unavailable')
    const step = agentNode('agent', Talk, { model: scripted([broken]) })
    const { error } = await settle({
      graph: graph('talk', Talk).edge(START, step).edge(step, END).check(),
      policies: [watch],
    })
    expect(error).toBe(broken)
    expect(watch.asked).toEqual([])
  })

  it('I5: a fail ends the agent and names the round; the model is not asked again', async () => {
    const { model, graph } = agent(2)
    const { error } = await settle({ graph, policies: [after('Strict', { action: 'fail', reason: 'off topic' })] })
    expect(model.requests).toHaveLength(1)
    expect(error).toMatchObject({
      code: 'FAILED_BY_MIDDLEWARE',
      message: 'policy "Strict" failed round 1 of node "agent": off topic',
      at: { round: 1 },
    })
  })
})

it.each([
  {
    name: 'a rewriting verdict before',
    policy: before('Broken', { action: 'modify', input: { round: 1 } }),
    admits: 'proceed, reject',
  },
  { name: 'a pause before', policy: before('Broken', { action: 'suspend', ask: {} }), admits: 'proceed, reject' },
  { name: 'a retry after', policy: after('Broken', { action: 'retry' }), admits: 'pass, fail' },
])('I6: a round may happen or not, nothing else: $name is refused', async ({ policy, admits }) => {
  const { error } = await settle({ graph: agent(1).graph, policies: [policy] })
  expect(error).toBeInstanceOf(MiddlewareError)
  expect((error as Error).message).toContain(`does not admit; it admits: ${admits}`)
})

describe('the operator’s ceiling', () => {
  it('I7: lowered, it fails the agent that needs more, and says how many it had', async () => {
    const { error } = await settle({ graph: agent(5).graph, limits: { maxToolRounds: 3 } })
    expect(error).toMatchObject({ code: 'ROUNDS_SPENT' })
    expect((error as Error).message).toContain('has spent its 3 rounds')
  })

  it('I7: raised, it lets a longer run finish', async () => {
    expect((await settle({ graph: agent(15).graph })).status).toBe('failed')
    expect((await settle({ graph: agent(15).graph, limits: { maxToolRounds: 16 } })).status).toBe('completed')
  })

  it('I7: cannot be lifted', () => {
    expect(() => createRuntime({ limits: { maxToolRounds: Number.POSITIVE_INFINITY } })).toThrow(
      'whole number of 1 or more',
    )
  })
})
