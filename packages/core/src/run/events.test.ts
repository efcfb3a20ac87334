import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { eventsOf, noting, oneNode, says, settle } from '../../testing/play.ts'
import {
  agentNode,
  type ChatModel,
  createRuntime,
  END,
  graph,
  messages,
  node,
  type RunEvent,
  START,
  scripted,
  state,
} from '../index.ts'

const brief = (event: RunEvent): string => {
  if (event.type === 'token') return `token ${event.text}`
  if (event.type === 'tool_call') return `tool_call ${event.toolName} ${JSON.stringify(event.toolArgs)}`
  if (event.type === 'tool_result')
    return `tool_result ${event.toolName} ${JSON.stringify(event.toolResult ?? event.error?.message ?? event.refused)}`
  if ('attempt' in event && event.type !== 'decision') return `${event.type} ${event.nodeName} ${event.attempt}`
  return event.type
}

describe('the events of a run', () => {
  it('of one node are its start, the start of the node, its end with what it returned, and the end with the result', async () => {
    const events = await eventsOf({ graph: oneNode(() => ({ made: 'it' })) })
    expect(events).toEqual([
      { type: 'run_start', graphName: 'one', runId: expect.any(String), path: ['one'] },
      { type: 'node_start', nodeName: 'step', nodeType: 'Node', attempt: 1, path: ['one'] },
      { type: 'node_complete', nodeName: 'step', nodeType: 'Node', attempt: 1, output: { made: 'it' }, path: ['one'] },
      { type: 'run_end', status: 'completed', result: { text: 'given', made: 'it' }, path: ['one'] },
    ])
  })
  it('of a node that fails end with what is shown of its error', async () => {
    const events = await eventsOf({ graph: oneNode(() => Promise.reject(new TypeError('no'))) })
    const error = { name: 'TypeError', message: 'no' }
    expect(events.slice(2)).toEqual([
      { type: 'node_error', nodeName: 'step', nodeType: 'Node', attempt: 1, error, path: ['one'] },
      { type: 'run_end', status: 'failed', error, path: ['one'] },
    ])
  })
  it('of a retry tell each attempt, the decision and the warning', async () => {
    let attempts = 0
    const flaky = oneNode(() => (++attempts < 3 ? Promise.reject(new Error(`no ${attempts}`)) : { made: 'it' }))
    const retry = says('Retry', { 'nodeError.after': { action: 'retry' } })
    const events = await eventsOf({ graph: flaky, policies: [retry] })
    expect(events.map(brief)).toEqual([
      'run_start',
      'node_start step 1',
      'node_error step 1',
      'decision',
      'warning',
      'node_start step 2',
      'node_error step 2',
      'decision',
      'warning',
      'node_start step 3',
      'node_complete step 3',
      'run_end',
    ])
  })
  it('of an agent tell its tokens, its tool calls and their results, in the order they arise', async () => {
    const State = state({ messages: messages() })
    const model = scripted([
      { content: 'Let me see.', tool_calls: [{ name: 'act', arguments: { text: 'x' } }] },
      'All done.',
    ])
    const agent = agentNode('agent', State, { model, tools: [noting()] })
    const events = await eventsOf({ graph: graph('g', State).edge(START, agent).edge(agent, END).check() })
    expect(events.map(brief)).toEqual([
      'run_start',
      'node_start agent 1',
      'model_call',
      'token Let ',
      'token me ',
      'token see.',
      'model_result',
      'tool_call act {"text":"x"}',
      'tool_result act "done"',
      'model_call',
      'token All ',
      'token done.',
      'model_result',
      'node_complete agent 1',
      'run_end',
    ])
  })
  it('tell what each request to a model cost or why it failed, and nothing of what it said', async () => {
    const State = state({ messages: messages() })
    const usage = { inputTokens: 3, outputTokens: 2, totalTokens: 5 }
    const model = { model: 'm-1', chat: async () => ({ content: 'secret', finish_reason: 'stop', usage }) }
    const agentOf = (asked: ChatModel) => {
      const agent = agentNode('agent', State, { model: asked })
      return graph('g', State).edge(START, agent).edge(agent, END).check()
    }
    const told = async (asked: ChatModel) =>
      (await eventsOf({ graph: agentOf(asked) })).filter(({ type }) => type.startsWith('model_'))
    const at = { nodeName: 'agent', nodeType: 'AgentNode', model: 'm-1', path: ['g'] }
    const call = { type: 'model_call', ...at }
    expect(await told(model)).toEqual([call, { type: 'model_result', ...at, usage, finishReason: 'stop' }])
    const broken = { ...model, chat: () => Promise.reject(new Error('429 Too Many Requests')) }
    const error = { name: 'Error', message: '429 Too Many Requests' }
    expect(await told(broken)).toEqual([call, { type: 'model_result', ...at, error }])
  })
  it('tell of a tool call that could not be made as of any other: a call and a result', async () => {
    const act = noting()
    const step = oneNode((_, ctx) => ctx.callTool(act, { text: 7 }))
    const events = await eventsOf({ graph: step })
    expect(events.map(brief).slice(2, 4)).toEqual([
      'tool_call act {}',
      'tool_result act "invalid arguments for tool \\"act\\": the arguments of tool \\"act\\" does not fit its schema: text: Invalid input: expected string, received number"',
    ])
    expect(act.ran).toEqual([])
  })
  it('hold what a node and a tool emit', async () => {
    const act = noting()
    const chatty = { ...act, run: (_: unknown, ctx: { emit(data: string): void }) => ctx.emit('from the tool') }
    const step = oneNode(async (_, ctx) => {
      ctx.emit({ from: 'the node' })
      await ctx.callTool(chatty, { text: 'x' })
    })
    const events = await eventsOf({ graph: step })
    expect(events.flatMap((event) => (event.type === 'custom' ? [event.data] : []))).toEqual([
      { from: 'the node' },
      'from the tool',
    ])
  })
  it('hold JSON only: emitting something else fails the node, whether anybody listens or not', async () => {
    const graph = oneNode((_, ctx) => ctx.emit(new Date(0) as never))
    expect((await settle({ graph })).error).toMatchObject({ code: 'JSON_VALUE' })
    expect((await eventsOf({ graph })).at(-1)).toMatchObject({ status: 'failed', error: { code: 'JSON_VALUE' } })
  })
  it('all say where they arose', async () => {
    const all = await eventsOf({
      graph: oneNode(async (_, ctx) => {
        ctx.emit(1)
        await ctx.callTool(noting(), { text: 'x' })
        await ctx.callModel(scripted(['two words']), { messages: [] })
      }),
      policies: [
        says('Chatty', {
          'node.before': (_, ctx) => {
            ctx.log('info', 'hm')
            ctx.emitEvent('seen', 1)
            return { action: 'proceed', warnings: ['beware'] }
          },
          'toolCall.after': { action: 'replace', value: 'better' },
        }),
      ],
    })
    expect(new Set(all.map(({ type }) => type)).size).toBeGreaterThan(9)
    expect(all.filter(({ path }) => JSON.stringify(path) !== '["one"]')).toEqual([])
  })
  it('are the same when the same run is only settled: nothing depends on who listens', async () => {
    const graph = oneNode(async (s, ctx) => ({
      made: (await ctx.callModel(scripted(['a b']), { messages: [] })).content + s.text,
    }))
    const end = (await eventsOf({ graph })).at(-1)
    const { status, state } = await settle({ graph })
    expect(end).toMatchObject({ status, result: state })
  })
})

describe('a stream', () => {
  it('hands on events in order, however fast or slow they are read', async () => {
    const chatty = oneNode((_, ctx) => {
      for (let i = 0; i < 5_000; i++) ctx.emit(i)
    })
    const stream = createRuntime().stream(chatty, {})
    const all = Array.from({ length: 5_004 }, () => stream.next())
    const asked = (await Promise.all(all)).flatMap(({ value }) => (value?.type === 'custom' ? [value.data] : []))
    expect(asked).toEqual(Array.from({ length: 5_000 }, (_, i) => i))
    expect(await stream.next()).toEqual({ done: true, value: undefined })

    const later: unknown[] = []
    for await (const event of createRuntime().stream(chatty, {})) if (event.type === 'custom') later.push(event.data)
    expect(later).toEqual(asked)
  })
  it('starts the run whether it is read or not', async () => {
    let ran = false
    await new Promise<void>((resolve) => {
      createRuntime().stream(
        oneNode(() => {
          ran = true
          resolve()
        }),
        {},
      )
    })
    expect(ran).toBe(true)
  })
  it('ends with the error of the run as an event, and does not throw', async () => {
    const types: string[] = []
    for await (const { type } of createRuntime().stream(
      oneNode(() => Promise.reject(new Error('no'))),
      {},
    ))
      types.push(type)
    expect(types.at(-1)).toBe('run_end')
  })
})

describe('the outcome of a run', () => {
  it('counts supersteps, retries, consultations and decisions, those of children included', async () => {
    let attempts = 0
    const flaky = oneNode(() => (++attempts < 2 ? Promise.reject(new Error('no')) : {}))
    const retry = says('Retry', { 'nodeError.after': { action: 'retry' } })
    const { counts } = await settle({ graph: flaky, policies: [retry] })
    expect(counts).toEqual({ supersteps: 1, retries: 1, consultations: 1, decisions: 1 })
    attempts = 0
    const parent = oneNode((_, ctx) => ctx.run(flaky, {}).then(() => {}))
    const nested = await settle({ graph: parent, policies: [retry] })
    expect(nested.counts).toEqual({ supersteps: 1, retries: 0, consultations: 1, decisions: 1 })
  })
  it('holds the warnings, those of children included, and the first 1,000 of them', async () => {
    const warns = says('Warns', { 'node.before': { action: 'proceed', warnings: ['beware'] } })
    const once = await settle({
      graph: oneNode((_, ctx) =>
        ctx
          .run(
            oneNode(() => {}),
            {},
          )
          .then(() => {}),
      ),
      policies: [warns],
    })
    expect(once.warnings.map(({ message }) => message)).toEqual(['policy "Warns": beware', 'policy "Warns": beware'])
    const S = state({ n: z.number().default(0) })
    const step = node('step', S, (s) => ({ n: s.n + 1 }))
    const long = graph('long', S)
      .edge(START, step)
      .when(step, (s) => s.n < 1_500, { then: step, otherwise: END })
      .check()
    const { warnings } = await settle({ graph: long, policies: [warns], limits: { maxIterations: 2_000 } })
    expect(warnings).toHaveLength(1_000)
  })
  it('has an id that its events carry too', async () => {
    const { runId } = await settle({ graph: oneNode(() => {}) })
    expect(runId).toMatch(/^[0-9a-f-]{36}$/)
  })
})
