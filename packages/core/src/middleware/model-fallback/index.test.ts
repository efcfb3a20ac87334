import { describe, expect, it } from 'vitest'
import { agentGraph, calls, contents, numbered, processes, user } from '../../../testing/agent.ts'
import { quiet } from '../../../testing/clock.ts'
import { ofType, says } from '../../../testing/play.ts'
import {
  type ChatModel,
  type ModelFallbackError,
  ModelFallbackMiddleware,
  ModelRetryMiddleware,
  middleware,
  type RunEvent,
  type ScriptedReply,
  scripted,
} from '../../index.ts'

const HELLO = user('hello')
const T = { thread: 't' }
const down = new Error('503 Service Unavailable')

/** Models named `first`, `second` … with a script each. */
const models = (...scripts: readonly (readonly ScriptedReply[])[]) =>
  scripts.map((replies, i) => scripted(replies, { model: ['first', 'second', 'third'][i] }))

const asks = (all: ReturnType<typeof models>) => all.map(({ requests }) => requests.length)

const smaller = scripted(['from the smaller model'], { model: 'smaller' })

//#region use
const fallback = new ModelFallbackMiddleware({ models: [smaller, 'openai/gpt-5-mini'] })
//#endregion

/** An agent on the first model, with the others to fall back on. */
const falling = ([first, ...others]: ReturnType<typeof models>, options = {}) =>
  agentGraph({ middleware: [new ModelFallbackMiddleware({ models: others, ...options })], model: first as ChatModel })

describe('a model that fails', () => {
  it('is stood in for by the next one of the list, and the run says so', async () => {
    const all = models([down], ['hi'], ['not asked'])
    const { state, warnings } = await processes().another().run(falling(all), HELLO)
    expect(contents(state.messages)).toEqual(['user: hello', 'assistant: hi'])
    expect(asks(all)).toEqual([1, 1, 0])
    expect(warnings.map(({ message }) => message)).toEqual([
      'middleware "ModelFallbackMiddleware": model "first" failed, and "second" is asked: 503 Service Unavailable',
    ])
  })

  it('is stood in for by one that the runtime has under a name', async () => {
    const named = scripted(['from the runtime'], { model: 'gpt-5-mini' })
    const broken = { ...smaller, chat: () => Promise.reject(down), stream: undefined }
    const own = new ModelFallbackMiddleware({ models: [broken, 'openai/gpt-5-mini'] })
    const { another } = processes({ models: (name) => (name === 'openai/gpt-5-mini' ? named : undefined) })
    const { state } = await another().run(agentGraph({ middleware: [own], model: scripted([down]) }), HELLO)
    expect(contents(state.messages).at(-1)).toBe('assistant: from the runtime')
    expect(named.requests[0]).toMatchObject({ model: 'gpt-5-mini', messages: HELLO.messages })
  })

  it('is asked first again in the next round', async () => {
    const all = models([down, 'done'], [calls(['act', 1])])
    const { tools } = numbered('act')
    const [first, second] = all
    const own = new ModelFallbackMiddleware({ models: [second as ChatModel] })
    const { state } = await processes()
      .another()
      .run(agentGraph({ middleware: [own], model: first as ChatModel, tools }), HELLO)
    expect(contents(state.messages).slice(-2)).toEqual(['tool: act 1 done', 'assistant: done'])
    expect(asks(all)).toEqual([2, 1])
  })

  it('is not asked again by those of the list that go well: it changes nothing where nothing fails', async () => {
    const outcomes = []
    for (const middleware of [[], [fallback]]) {
      const { another } = processes({ models: () => smaller })
      outcomes.push(await another().run(agentGraph({ middleware, model: scripted(['hi']) }), HELLO, T))
    }
    expect(outcomes[1]?.state).toEqual(outcomes[0]?.state)
    expect(outcomes[1]?.warnings).toEqual([])
  })
})

describe('when all fail', () => {
  it('the error has every cause, the first one first', async () => {
    const errors = [down, new Error('429 Too Many Requests'), new Error('out of order')] as const
    const { error } = await processes()
      .another()
      .settle(falling(models([errors[0]], [errors[1]], [errors[2]])), HELLO)
    expect(error).toMatchObject({ name: 'ModelFallbackError', code: 'MODELS_FAILED', cause: down })
    expect((error as ModelFallbackError).errors).toEqual(errors)
    expect((error as Error).message).toBe(
      'each of 3 models failed: "first": 503 Service Unavailable; "second": 429 Too Many Requests; "third": out of order',
    )
  })

  it('a retry around it knows from the causes whether to try the whole list again', async () => {
    const all = models([down, down], [down, 'hi'])
    const { clock, another } = processes()
    const own = [
      new ModelRetryMiddleware({ random: () => 0 }),
      new ModelFallbackMiddleware({ models: [all[1] as ChatModel] }),
    ]
    const running = another().run(agentGraph({ middleware: own, model: all[0] as ChatModel }), HELLO)
    await clock.pass(1_000)
    expect(contents((await running).state.messages).at(-1)).toBe('assistant: hi')
    expect(asks(all)).toEqual([2, 2])
  })

  it('a retry inside it tries each model by itself', async () => {
    const all = models([down, down], [down, 'hi'])
    const { clock, another } = processes()
    const own = [
      new ModelFallbackMiddleware({ models: [all[1] as ChatModel] }),
      new ModelRetryMiddleware({ maxAttempts: 2, random: () => 0 }),
    ]
    const running = another().run(agentGraph({ middleware: own, model: all[0] as ChatModel }), HELLO)
    await clock.pass(1_000)
    await running
    expect(asks(all)).toEqual([2, 2])
  })
})

describe('nobody is asked instead', () => {
  it('after a refusal: what a policy forbids one model, it may forbid the next', async () => {
    const gate = says('Gate', { 'modelCall.before': { action: 'reject', reason: 'not with this text' } })
    const all = models(['hi'], ['hi'])
    const { error } = await processes({ policies: [gate] })
      .another()
      .settle(falling(all), HELLO)
    expect(error).toMatchObject({ code: 'REFUSED', reason: 'not with this text' })
    expect(asks(all)).toEqual([0, 0])
    expect(gate.asked).toHaveLength(1)
  })

  it('after an error that `fallbackOn` leaves alone, which goes on as the very object', async () => {
    const wrong = new Error('400 Bad Request')
    const all = models([wrong], ['hi'])
    const fallbackOn = (error: unknown) => error !== wrong
    const { error } = await processes().another().settle(falling(all, { fallbackOn }), HELLO)
    expect(error).toBe(wrong)
    expect(asks(all)).toEqual([1, 0])
  })
})

describe('among others', () => {
  it('A2: policies see who is asked, each time', async () => {
    const gate = says('Gate', { 'modelCall.before': { action: 'proceed' } })
    await processes({ policies: [gate] })
      .another()
      .run(falling(models([down], ['hi'])), HELLO)
    expect(gate.asked.map(({ input }) => (input as { model: string }).model)).toEqual(['first', 'second'])
  })

  it('what stands after it sees the request of each model', async () => {
    const seen: string[] = []
    const inner = middleware({ name: 'inner', afterModel: ({ model }) => void seen.push(model) })
    const [first, second] = models([down], ['hi'])
    const own = [new ModelFallbackMiddleware({ models: [second as ChatModel] }), inner]
    await processes()
      .another()
      .run(agentGraph({ middleware: own, model: first as ChatModel }), HELLO)
    expect(seen).toEqual(['second'])
  })

  it('parts of the model that broke off are called back', async () => {
    const breaks: ChatModel = {
      model: 'breaks',
      chat: () => Promise.reject(down),
      async *stream() {
        yield { content: 'half a ' }
        throw down
      },
    }
    const [second] = models(['whole'])
    const own = new ModelFallbackMiddleware({ models: [second as ChatModel] })
    const events: RunEvent[] = []
    for await (const event of processes()
      .another()
      .stream(agentGraph({ middleware: [own], model: breaks }), HELLO)) {
      events.push(event)
    }
    const story = events.flatMap(({ type }) => (type === 'token' || type === 'retracted' ? [type] : []))
    expect(story).toEqual(['token', 'retracted', 'token'])
    expect(ofType(events, 'token').at(-1)?.text).toBe('whole')
  })

  it('in another process, a model that had failed before the crash is not asked again', async () => {
    const { another } = processes()
    const hanging: ChatModel = { model: 'second', chat: () => new Promise(() => {}) }
    const [first] = models([down])
    const controller = new AbortController()
    const chat = (primary: ChatModel, other: ChatModel) =>
      agentGraph({ middleware: [new ModelFallbackMiddleware({ models: [other] })], model: primary })
    const cut = another().settle(chat(first as ChatModel, hanging), HELLO, { ...T, signal: controller.signal })
    await quiet()
    controller.abort()
    expect((await cut).status).toBe('cancelled')
    const [again, other] = models(['not asked'], ['hi'])
    const { state } = await another().continue(chat(again as ChatModel, other as ChatModel), 't')
    expect(contents(state.messages).at(-1)).toBe('assistant: hi')
    expect(again?.requests).toEqual([])
  })
})

describe('its options', () => {
  it('a name that the runtime does not have shows on the first call, though nothing fails', async () => {
    const own = new ModelFallbackMiddleware({ models: ['openai/gpt-6'] })
    const { error } = await processes()
      .another()
      .settle(agentGraph({ middleware: [own], model: scripted(['hi']) }), HELLO)
    expect(error).toMatchObject({
      code: 'MIDDLEWARE_FAILED',
      at: { middleware: 'ModelFallbackMiddleware' },
      message: expect.stringContaining('there is no model "openai/gpt-6" in the runtime'),
    })
  })

  it.each([
    { name: 'no models', options: { models: [] }, error: 'models must be a list of models and names' },
    { name: 'one that is none', options: { models: [{}] }, error: 'models must be a list of models and names' },
    { name: 'one there is not', options: { model: 'x', models: ['x'] }, error: 'has no "model"' },
    {
      name: 'no function',
      options: { models: ['x'], fallbackOn: 429 },
      error: 'fallbackOn must be a function, not 429',
    },
  ])('$name: refused', ({ options, error }) => {
    expect(() => new ModelFallbackMiddleware(options as never)).toThrow(error)
  })
})
