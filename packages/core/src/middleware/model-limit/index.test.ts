import { describe, expect, it } from 'vitest'
import { agentGraph, asking, calls, contents, numbered, processes, strict, Talk, user } from '../../../testing/agent.ts'
import { faultsOf } from '../../../testing/transcript.ts'
import {
  agentNode,
  createRuntime,
  END,
  graph,
  type Middleware,
  ModelLimitMiddleware,
  type ModelLimitOptions,
  ModelRetryMiddleware,
  middleware,
  node,
  type ScriptedReply,
  START,
  scripted,
  type Tool,
} from '../../index.ts'

//#region use
const limit = new ModelLimitMiddleware({ perTurn: 30, perThread: 500 })
//#endregion

//#region answer
const stops = new ModelLimitMiddleware({ perTurn: 2, atLimit: 'answer' })
//#endregion

const HELLO = user('hello')
const T = { thread: 't' }
const goesOn: ScriptedReply = calls(['act', 1])

const limited = (
  options: ModelLimitOptions,
  replies: readonly ScriptedReply[],
  tools: readonly Tool[] = numbered('act').tools,
) => agentGraph({ middleware: [new ModelLimitMiddleware(options)], model: scripted(replies), tools })

describe('a limit of model calls', () => {
  it('lets so many of a turn be made, and fails the next', async () => {
    const model = scripted([goesOn, goesOn, 'too late'])
    const own = [new ModelLimitMiddleware({ perTurn: 2 })]
    const { error } = await createRuntime().settle(
      agentGraph({ middleware: own, model, tools: numbered('act').tools }),
      HELLO,
    )
    expect(error).toMatchObject({
      code: 'REFUSED',
      at: { middleware: 'ModelLimitMiddleware', node: 'agent' },
      reason: 'the limit of 2 model calls in a turn is reached',
    })
    expect(model.requests).toHaveLength(2)
  })

  it('may end an agent with an answer instead, and the conversation stays one that providers take', async () => {
    const chat = agentGraph({ middleware: [stops], model: strict([goesOn, goesOn]), tools: numbered('act').tools })
    const { state } = await createRuntime().run(chat, HELLO)
    expect(contents(state.messages).at(-1)).toBe(
      'assistant: I stop here: the limit of 2 model calls in a turn is reached.',
    )
    expect(faultsOf(state.messages)).toEqual([])
  })

  it('begins a turn anew, and counts a thread over all its turns', async () => {
    const { another } = processes()
    const options = { perTurn: 2, perThread: 3 }
    expect((await another().settle(limited(options, [goesOn, 'one']), HELLO, T)).status).toBe('completed')
    const { status, error } = await another().settle(limited(options, [goesOn, 'two']), HELLO, T)
    expect(status).toBe('failed')
    expect(error).toMatchObject({ reason: 'the limit of 3 model calls in a thread is reached' })
  })

  it('counts over a pause, in another process, and no call twice', async () => {
    const { another } = processes()
    const options = { perTurn: 2 }
    const ask = asking('ask')
    const first = limited(options, [calls(['ask', { text: 'a' }])], [ask])
    expect((await another().settle(first, HELLO, T)).status).toBe('paused')
    const { state } = await another().resume(limited(options, [() => 'done'], [ask]), 't', 'yes')
    expect(contents(state.messages).at(-1)).toBe('assistant: done')
  })

  it('counts a call that waits for a person once, however often it is entered anew', async () => {
    const { another } = processes()
    const gate = middleware({
      name: 'gate',
      beforeModel: (ctx) => (ctx.answered === undefined ? ctx.suspend({ question: 'May it?' }) : undefined),
    })
    const chat = () =>
      agentGraph({ middleware: [new ModelLimitMiddleware({ perTurn: 1 }), gate], model: scripted(['hi']) })
    expect((await another().settle(chat(), HELLO, T)).status).toBe('paused')
    expect((await another().resume(chat(), 't', 'yes')).status).toBe('completed')
  })

  it('is not passed by calls that are made at once', async () => {
    const model = scripted(Array.from({ length: 10 }, () => 'hi'))
    const work = node('work', Talk, async (_s, ctx) => {
      const asks = Array.from({ length: 10 }, () =>
        ctx.callModel(model, HELLO).then(
          () => 1,
          () => 0,
        ),
      )
      const made = (await Promise.all(asks)).reduce<number>((sum, one) => sum + one, 0)
      return user(String(made))
    })
    const own = [new ModelLimitMiddleware({ perTurn: 4 })]
    const g = graph('g', Talk, { middleware: own }).edge(START, work).edge(work, END).check()
    expect(contents((await createRuntime().run(g, {})).state.messages)).toEqual(['user: 4'])
    expect(model.requests).toHaveLength(4)
  })
})

describe('among others', () => {
  const busy = new Error('429 Too Many Requests')
  it.each([
    { name: 'after a retry, each attempt counts', order: ['retry', 'limit'], status: 'failed', asked: 2 },
    { name: 'before it, all attempts are one call', order: ['limit', 'retry'], status: 'completed', asked: 3 },
  ])('$name', async ({ order, status, asked }) => {
    const own: Record<string, Middleware> = {
      retry: new ModelRetryMiddleware({ random: () => 0 }),
      limit: new ModelLimitMiddleware({ perTurn: 2 }),
    }
    const model = scripted([busy, busy, 'hi'])
    const chat = agentGraph({ middleware: order.map((name) => own[name] as Middleware), model })
    const { clock, another } = processes()
    const running = another().settle(chat, HELLO, T)
    await clock.pass(1_000)
    expect((await running).status).toBe(status)
    expect(model.requests).toHaveLength(asked)
  })

  it('C9: counts model calls, and nothing that other middleware does', async () => {
    const noops = Array.from({ length: 10 }, (_, i) =>
      middleware({
        name: `noop-${i}`,
        beforeModel: () => undefined,
        afterModel: () => undefined,
        beforeRound: () => undefined,
      }),
    )
    for (const others of [[], noops]) {
      const replies = [...Array.from({ length: 9 }, () => goesOn), 'done']
      const own = [new ModelLimitMiddleware({ perTurn: 10 }), ...others]
      const agent = agentNode('agent', Talk, { model: scripted(replies), tools: numbered('act').tools, maxRounds: 10 })
      const g = graph('g', Talk, { middleware: own }).edge(START, agent).edge(agent, END).check()
      expect((await createRuntime({ limits: { maxIterations: 1 } }).settle(g, HELLO)).status).toBe('completed')
    }
  })

  it('changes nothing below the limit', async () => {
    const outcomes = []
    for (const own of [[], [limit]]) {
      const chat = agentGraph({ middleware: own, model: scripted([goesOn, 'hi']), tools: numbered('act').tools })
      const { state, warnings } = await processes().another().run(chat, HELLO, T)
      outcomes.push({ state, warnings })
    }
    expect(outcomes[1]).toEqual(outcomes[0])
  })
})

describe('its options', () => {
  it.each([
    { name: 'no limit', options: {}, error: 'give perTurn or perThread' },
    { name: 'no call', options: { perTurn: 0 }, error: 'perTurn must be a whole number of 1 or more, not 0' },
    {
      name: 'another word',
      options: { perTurn: 1, atLimit: 'end' },
      error: 'atLimit must be "fail" or "answer", not "end"',
    },
    { name: 'one there is not', options: { runLimit: 1 }, error: 'ModelLimitMiddleware has no "runLimit"' },
  ])('$name: refused', ({ options, error }) => {
    expect(() => new ModelLimitMiddleware(options as never)).toThrow(error)
  })
})
