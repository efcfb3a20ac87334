import { describe, expect, it } from 'vitest'
import { Clock } from '../../testing/clock.ts'
import { type Answer, says, settle, trying } from '../../testing/play.ts'
import { MiddlewareError, RefusedError, type ScriptedReply, scripted } from '../index.ts'

const before = (name: string, answer: Answer) => says(name, { 'modelCall.before': answer })
const after = (name: string, answer: Answer) => says(name, { 'modelCall.after': answer })
const retry = { action: 'retry' }

const REQUEST = { messages: [{ role: 'user', content: 'hello' }], temperature: 0.5, maxTokens: 100 } as const

/** A node that asks a model once and catches what it throws. */
function asking(...replies: ScriptedReply[]) {
  const model = scripted(replies)
  return { model, ...trying((ctx) => ctx.callModel(model, REQUEST)) }
}

describe('before a model call', () => {
  it('H1: a proceed sends the request as it is', async () => {
    const { model, graph } = asking('hi')
    const watch = before('Watch', { action: 'proceed' })
    await settle({ graph, policies: [watch] })
    expect(model.requests).toEqual([{ ...REQUEST, model: 'scripted' }])
    expect(watch.asked[0]?.input).toBe(model.requests[0])
  })

  it('H1: a modify is an edit: the fields it gives are sent, the others keep their value', async () => {
    const { model, graph } = asking('hi')
    await settle({ graph, policies: [before('Cool', { action: 'modify', input: { temperature: 0, model: 'small' } })] })
    expect(model.requests).toEqual([{ ...REQUEST, model: 'small', temperature: 0 }])
  })

  it('a modify may take tools away and not bring any', async () => {
    const tools = ['read', 'write'].map((name) => ({ name, description: name, parameters: { type: 'object' } }))
    const model = scripted(['hi', 'hi'])
    const { graph } = trying((ctx) => ctx.callModel(model, { ...REQUEST, tools }))
    await settle({ graph, policies: [before('Narrow', { action: 'modify', input: { tools: [{ name: 'read' }] } })] })
    expect(model.requests[0]?.tools).toEqual([tools[0]])
    const { error } = await settle({
      graph,
      policies: [before('Widen', { action: 'modify', input: { tools: [{ name: 'shell' }] } })],
    })
    expect((error as Error).message).toContain(
      'names a tool "shell" that the request does not offer; offered are: read, write',
    )
  })

  it('H2: a replace answers without asking the model, with a warning', async () => {
    const { model, graph, seen } = asking('hi')
    const { warnings } = await settle({
      graph,
      policies: [before('Cache', { action: 'replace', value: { content: 'cached' } })],
    })
    expect(model.requests).toEqual([])
    expect(seen.value).toEqual({ content: 'cached', finish_reason: '' })
    expect(warnings[0]?.message).toBe(
      'policy "Cache" supplied a result for the model call of node "step"; it did not run.',
    )
  })

  it('H3: a reject fails the call and names policy and reason; the node may catch it', async () => {
    const { model, graph, seen } = asking('hi')
    const { status } = await settle({ graph, policies: [before('Budget', { action: 'reject', reason: 'spent' })] })
    expect(status).toBe('completed')
    expect(model.requests).toEqual([])
    expect(seen.error).toBeInstanceOf(RefusedError)
    expect(seen.error).toMatchObject({
      message: 'policy "Budget" refused the model call of node "step": spent',
      at: { policy: 'Budget', seam: 'modelCall' },
    })
  })

  it.each([
    { name: 'messages that are no list', input: { messages: 'hello' }, says: '"messages" that are no list' },
    { name: 'a message without content', input: { messages: [{ role: 'user' }] }, says: 'needs a string "content"' },
    { name: 'an unknown role', input: { messages: [{ role: 'boss', content: '' }] }, says: 'a "role" of system, user' },
    { name: 'a temperature that is no number', input: { temperature: 'hot' }, says: '"temperature" that is no finite' },
    { name: 'a model without a name', input: { model: '' }, says: '"model" that is no name' },
    { name: 'a field that does not exist', input: { stop: ['x'] }, says: 'unknown field "stop"; fields are: messages' },
  ])('H4: an edit with $name stops the run, and nothing is sent', async ({ input, says }) => {
    const { model, graph } = asking('hi')
    const { error } = await settle({ graph, policies: [before('Broken', { action: 'modify', input })] })
    expect(error).toBeInstanceOf(MiddlewareError)
    expect((error as Error).message).toContain('policy "Broken" (plugin in-process) failed at modelCall.before')
    expect((error as Error).message).toContain(says)
    expect(model.requests).toEqual([])
  })
})

describe('after a model call', () => {
  it('H5: a retry after a failure asks again, before included, and the second answer is used', async () => {
    const { model, graph, seen } = asking(new Error('429 Too Many Requests: slow down'), 'hi')
    const gate = before('Gate', (_, { attempt }) => ({ action: 'modify', input: { temperature: attempt / 10 } }))
    const again = after('RetryPolicy', ({ outcome }) => (outcome.ok ? { action: 'pass' } : retry))
    const { warnings } = await settle({ graph, policies: [gate, again] })
    expect(model.requests.map(({ temperature }) => temperature)).toEqual([0.1, 0.2])
    expect(gate.asked.map(({ attempt, maxAttempts }) => [attempt, maxAttempts])).toEqual([
      [1, 3],
      [2, 3],
    ])
    expect(seen.value).toMatchObject({ content: 'hi' })
    expect(warnings.map(({ message }) => message)).toEqual([
      'policy "RetryPolicy" retries the model call of node "step" in 0 ms, attempt 1 of 3: 429 Too Many Requests: slow down',
    ])
  })

  it('a retry starts from the request as the code gave it, not from what policies made of it', async () => {
    const { graph } = asking('no', 'yes')
    const gate = before('Gate', ({ input }) => ({
      action: 'modify',
      input: { messages: [...(input.messages as object[]), { role: 'user', content: 'more' }] },
    }))
    await settle({
      graph,
      policies: [gate, after('RetryPolicy', (_, { attempt }) => (attempt < 2 ? retry : { action: 'pass' }))],
    })
    expect(gate.asked.map(({ input }) => (input as typeof REQUEST).messages.length)).toEqual([1, 1])
  })

  it('H6, Z21: a policy that always retries causes 3 sends, and the failure of the last stands; core adds none of its own', async () => {
    const failures = [1, 2, 3, 4].map((n) => new Error(`failure ${n}`))
    const { model, graph, seen } = asking(...failures)
    await settle({ graph, policies: [after('RetryPolicy', retry)] })
    expect(model.requests).toHaveLength(3)
    expect(seen.error).toBe(failures[2])
    const alone = asking(...failures)
    await settle({ graph: alone.graph })
    expect(alone.model.requests).toHaveLength(1)
  })

  it('the wait before a retry passes on the clock that is handed in', async () => {
    const platform = new Clock()
    const { model, graph } = asking('no', 'yes')
    const policies = [
      after('RetryPolicy', (_, { attempt }) => (attempt < 2 ? { ...retry, delayMs: 700 } : { action: 'pass' })),
    ]
    const run = settle({ graph, policies, platform })
    await platform.pass(699)
    expect(model.requests).toHaveLength(1)
    await platform.pass(1)
    await run
    expect(model.requests).toHaveLength(2)
  })

  it.each([
    {
      name: 'a replace supplies the answer',
      answer: { action: 'replace', value: { content: 'sorry' } },
      value: 'sorry',
    },
    { name: 'a pass leaves the failure', answer: { action: 'pass' }, error: 'no route to host' },
    {
      name: 'a fail ends the call with its reason',
      answer: { action: 'fail', reason: 'never mind' },
      error: 'policy "Judge" failed the model call of node "step": never mind',
    },
  ])('H7: after a failure $name', async ({ answer, value, error }) => {
    const { graph, seen } = asking(new Error('no route to host'))
    await settle({ graph, policies: [after('Judge', answer)] })
    expect((seen.value as { content: string } | undefined)?.content).toBe(value)
    expect((seen.error as Error | undefined)?.message).toBe(error)
  })

  it('a replaced response may ask for tools, and must be a response', async () => {
    const tool_calls = [{ id: 'c', name: 'act', arguments: '{}' }]
    const { graph, seen } = asking('hi', 'hi')
    await settle({ graph, policies: [after('Plan', { action: 'replace', value: { content: '', tool_calls } })] })
    expect(seen.value).toEqual({ content: '', finish_reason: '', tool_calls })
    const { error } = await settle({ graph, policies: [after('Broken', { action: 'replace', value: { text: 'x' } })] })
    expect(error).toBeInstanceOf(MiddlewareError)
    expect((error as Error).message).toContain('needs a string "content"')
  })
})

it('H8: without policies a model call is the call itself: its answer, or the very error it threw', async () => {
  const refused = new Error('401 Unauthorized')
  const good = asking('hi')
  const bad = asking(refused)
  await settle({ graph: good.graph })
  await settle({ graph: bad.graph })
  expect(good.seen.value).toEqual({ content: 'hi', finish_reason: 'stop' })
  expect(bad.seen.error).toBe(refused)
})
