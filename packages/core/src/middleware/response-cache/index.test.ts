import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { agentGraph, calls, contents, numbered, processes, Talk, user } from '../../../testing/agent.ts'
import { open } from '../../../testing/clock.ts'
import { says } from '../../../testing/play.ts'
import {
  type CachedResponse,
  type ChatResponse,
  createRuntime,
  END,
  graph,
  type Middleware,
  middleware,
  node,
  ResponseCacheMiddleware,
  type ResponseCacheOptions,
  type RunEvent,
  START,
  scripted,
} from '../../index.ts'
import { MemoryCache } from './memory.ts'

//#region use
const cache = new ResponseCacheMiddleware({ ttlMs: 10 * 60_000, maxEntries: 200 })
//#endregion

//#region key
const perTenant = new ResponseCacheMiddleware({
  key: ({ model, messages, tools }, { context }) => ({ model, messages, tools, tenant: (context as Tenant).tenant }),
})
//#endregion

interface Tenant {
  readonly tenant: string
}

const HELLO = user('hello')
const T = { thread: 't' }

/** Runs of the same agent, one after another, on one clock; what it said in each, and how often the model was asked. */
async function said(own: readonly Middleware[], inputs: readonly string[], passMs = 0) {
  const { clock, another } = processes()
  const model = scripted(
    inputs.map((_, i) => ({ content: `answer ${i + 1}`, usage: { inputTokens: 3, outputTokens: 2, totalTokens: 5 } })),
  )
  const chat = agentGraph({ middleware: own, model })
  const heard: (string | undefined)[] = []
  for (const input of inputs) {
    heard.push((await another().settle(chat, user(input))).state?.messages.at(-1)?.content)
    await clock.pass(passMs)
  }
  return { heard, asked: model.requests.length }
}

describe('a request that was answered before', () => {
  it('is answered in the same way, and the model is not asked', async () => {
    expect(await said([cache], ['one', 'one', 'two', 'one'])).toEqual({
      heard: ['answer 1', 'answer 1', 'answer 2', 'answer 1'],
      asked: 2,
    })
  })

  it('is asked anew when its time is over', async () => {
    const own = () => new ResponseCacheMiddleware({ ttlMs: 1_000 })
    expect((await said([own()], ['one', 'one'], 999)).asked).toBe(1)
    expect((await said([own()], ['one', 'one'], 1_000)).asked).toBe(2)
  })

  it('is asked anew when others have taken its place', async () => {
    const own = new ResponseCacheMiddleware({ maxEntries: 2 })
    expect((await said([own], ['one', 'two', 'one', 'three', 'one', 'two'])).heard).toEqual([
      'answer 1',
      'answer 2',
      'answer 1',
      'answer 3',
      'answer 1',
      'answer 4',
    ])
  })

  it('has cost nothing, and says so', async () => {
    const told: unknown[] = []
    const counts = middleware({
      name: 'counts',
      afterModel: ({ response, substituted }) => void told.push([response.usage?.totalTokens, substituted]),
    })
    await said([counts, new ResponseCacheMiddleware()], ['one', 'one'])
    expect(told).toEqual([
      [5, undefined],
      [0, 'ResponseCacheMiddleware'],
    ])
  })

  it('is found by what is said, and not by the ids of messages', async () => {
    const { another } = processes()
    const model = scripted(['hi'])
    const chat = agentGraph({ middleware: [new ResponseCacheMiddleware()], model })
    for (const id of ['a', 'b']) await another().run(chat, { messages: [{ id, role: 'user', content: 'hello' }] })
    expect(model.requests).toHaveLength(1)
  })

  it('is another one with another model, other tools or other parameters', async () => {
    const own = new ResponseCacheMiddleware()
    const asked: number[] = []
    for (const [model, tools] of [
      ['m', []],
      ['m', numbered('act').tools],
      ['n', []],
    ] as const) {
      const asks = scripted(['hi'], { model })
      await createRuntime().run(agentGraph({ middleware: [own], model: asks, tools }), HELLO)
      asked.push(asks.requests.length)
    }
    expect(asked).toEqual([1, 1, 1])
  })

  it('is found by a key of your own', async () => {
    const model = scripted(['for a', 'for b'])
    const chat = agentGraph({ middleware: [perTenant], model })
    const heard: string[] = []
    for (const tenant of ['a', 'b', 'a']) {
      const { state } = await createRuntime().run(chat, HELLO, { context: { tenant } })
      heard.push(state.messages.at(-1)?.content ?? '')
    }
    expect(heard).toEqual(['for a', 'for b', 'for a'])
  })

  it('is judged by the policies again, who see that it was supplied', async () => {
    const judge = says('Judge', { 'modelCall.after': { action: 'pass' } })
    const { another } = processes({ policies: [judge] })
    const chat = agentGraph({ middleware: [new ResponseCacheMiddleware()], model: scripted(['hi']) })
    for (const _run of [1, 2]) await another().run(chat, HELLO)
    expect(judge.asked.map(({ substituted }) => substituted)).toEqual([undefined, 'ResponseCacheMiddleware'])
  })

  it('is streamed as one part, marked', async () => {
    const chat = agentGraph({ middleware: [new ResponseCacheMiddleware()], model: scripted(['hi there']) })
    const parts: RunEvent[][] = []
    for (const _run of [1, 2]) {
      const events: RunEvent[] = []
      for await (const event of createRuntime().stream(chat, HELLO)) if (event.type === 'token') events.push(event)
      parts.push(events)
    }
    expect(parts[0]).toMatchObject([{ text: 'hi ' }, { text: 'there' }])
    expect(parts[1]).toMatchObject([{ text: 'hi there', substituted: true }])
  })

  it('may ask for tools, which run again', async () => {
    const { ran, tools } = numbered('act')
    const model = scripted([calls(['act', 1]), 'done'])
    const chat = agentGraph({ middleware: [new ResponseCacheMiddleware()], model, tools })
    for (const _run of [1, 2]) await createRuntime().run(chat, HELLO)
    expect(model.requests).toHaveLength(2)
    expect(ran).toEqual(['act 1', 'act 1'])
  })
})

describe('what is not held', () => {
  const rejects = middleware({ name: 'rejects', beforeModel: (ctx) => ctx.reject('not now') })
  const supplies = middleware({ name: 'supplies', beforeModel: (ctx) => ctx.answer({ content: 'a stub' }) })

  async function sets(inner: Middleware | undefined, failing: boolean, options: ResponseCacheOptions = {}) {
    const held: CachedResponse[] = []
    const store = { get: () => undefined, set: (_key: string, one: CachedResponse) => void held.push(one) }
    const own = [new ResponseCacheMiddleware({ ...options, store }), ...(inner === undefined ? [] : [inner])]
    const model = scripted([failing ? new Error('broke') : 'hi'])
    await createRuntime().settle(agentGraph({ middleware: own, model }), HELLO)
    return held.map(({ response }) => response.content)
  }

  it.each([
    { name: 'a response is', inner: undefined, failing: false, held: ['hi'] },
    { name: 'a failure is not', inner: undefined, failing: true, held: [] },
    { name: 'a refusal is not', inner: rejects, failing: false, held: [] },
    { name: 'what others supplied is not', inner: supplies, failing: false, held: [] },
    {
      name: 'that is, where it is asked for',
      inner: supplies,
      failing: false,
      options: { substituted: true },
      held: ['a stub'],
    },
  ])('$name', async ({ inner, failing, options, held }) => {
    expect(await sets(inner, failing, options)).toEqual(held)
  })
})

describe('a store of your own', () => {
  it('serves other processes', async () => {
    const shared = new Map<string, CachedResponse>()
    const store = {
      get: async (key: string) => shared.get(key),
      set: async (key: string, one: CachedResponse) => void shared.set(key, JSON.parse(JSON.stringify(one))),
    }
    const models = [scripted(['hi']), scripted(['not asked'])]
    for (const model of models) {
      const chat = agentGraph({ middleware: [new ResponseCacheMiddleware({ store })], model })
      expect(contents((await createRuntime().run(chat, HELLO)).state.messages)).toContain('assistant: hi')
    }
    expect(models.map(({ requests }) => requests.length)).toEqual([1, 0])
    expect([...shared.keys()]).toEqual([expect.stringMatching(/^[0-9a-f]{64}$/)])
  })

  it.each([
    {
      name: 'cannot be read',
      get: () => Promise.reject(new Error('no connection')),
      warns: /could not be read.*no connection/,
    },
    {
      name: 'holds nonsense',
      get: () => ({ response: { content: 7 } as unknown as ChatResponse, expiresAt: Number.POSITIVE_INFINITY }),
      warns: /could not be read.*a cached response needs a string "content"/,
    },
    { name: 'cannot be written', get: () => undefined, warns: /could not be put into the cache: full/ },
  ])('that $name is a warning, and the model is asked', async ({ get, warns }) => {
    const store = {
      get,
      set: () => {
        if (String(warns).includes('full')) throw new Error('full')
      },
    }
    const chat = agentGraph({ middleware: [new ResponseCacheMiddleware({ store })], model: scripted(['hi']) })
    const { state, warnings } = await createRuntime().run(chat, HELLO)
    expect(contents(state.messages)).toContain('assistant: hi')
    expect(warnings.map(({ message }) => message)).toEqual([expect.stringMatching(warns)])
  })
})

describe('in a run', () => {
  it('parallel calls that are equal are each made: none waits for another', async () => {
    const both = open<string>()
    const later = () => {
      if (model.requests.length === 2) both.resolve('both were asked')
      return both.promise
    }
    const model = scripted([later, later])
    const work = node('work', Talk, async (_s, ctx) => {
      const asks = [1, 2].map(() => ctx.callModel(model, HELLO))
      return user((await Promise.all(asks)).map(({ content }) => content).join())
    })
    const own = [new ResponseCacheMiddleware()]
    const g = graph('g', Talk, { middleware: own }).edge(START, work).edge(work, END).check()
    expect(contents((await createRuntime().run(g, {})).state.messages)).toEqual([
      'user: both were asked,both were asked',
    ])
  })

  it('a call that settled from the cache is handed back after a pause, though the cache has lost it', async () => {
    const { another } = processes()
    const own = new ResponseCacheMiddleware()
    await another().run(agentGraph({ middleware: [own], model: scripted(['hi']) }), HELLO)
    const asks = (one: ResponseCacheMiddleware) => {
      const work = node('work', Talk, async (_s, ctx) => {
        const { content } = await ctx.callModel(scripted([], { model: 'scripted' }), HELLO)
        await ctx.ask('q', 'Go on?')
        return user(content)
      })
      return graph('g', Talk, { middleware: [one] })
        .edge(START, work)
        .edge(work, END)
        .check()
    }
    expect((await another().settle(asks(own), {}, T)).status).toBe('paused')
    const { state } = await another().resume(asks(new ResponseCacheMiddleware()), 't', true)
    expect(contents(state.messages)).toEqual(['user: hi'])
  })
})

describe('the memory', () => {
  it('holds what was used last, and never more than it may', () => {
    const anyKey = fc.constantFrom('a', 'b', 'c', 'd', 'e')
    const anyUse = fc.record({ key: anyKey, sets: fc.boolean() })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4 }), fc.array(anyUse, { maxLength: 40 }), (most, uses) => {
        const memory = new MemoryCache(most)
        let order: string[] = []
        for (const { key, sets } of uses) {
          const held = order.includes(key)
          if (sets) memory.set(key, { response: { content: key, finish_reason: 'stop' }, expiresAt: 1 })
          else expect(memory.get(key)?.response.content).toBe(held ? key : undefined)
          if (sets || held) order = [...order.filter((one) => one !== key), key].slice(-most)
        }
      }),
    )
  })
})

describe('its options', () => {
  it.each([
    { name: 'no time', options: { ttlMs: 0 }, error: 'ttlMs must be milliseconds above 0, not 0' },
    { name: 'no room', options: { maxEntries: 0 }, error: 'maxEntries must be a whole number of 1 or more, not 0' },
    { name: 'half a store', options: { store: { get: () => undefined } }, error: 'store.set must be a function' },
    { name: 'a key that makes none', options: { key: 'model' }, error: 'key must be a function, not "model"' },
    { name: 'one there is not', options: { ttl: 5 }, error: 'ResponseCacheMiddleware has no "ttl"' },
  ])('$name: refused', ({ options, error }) => {
    expect(() => new ResponseCacheMiddleware(options as never)).toThrow(error)
  })
})
