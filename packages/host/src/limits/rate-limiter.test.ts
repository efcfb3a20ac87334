import {
  agentNode,
  createRuntime,
  END,
  graph,
  messages,
  RateLimitMiddleware,
  START,
  scripted,
  state,
} from '@sluice/core'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { limiterOf, memoryLimiter } from '../index.ts'

describe('a limiter in memory', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout'] }))
  afterEach(() => void vi.useRealTimers())

  it('lets so many calls of a key through in a window, and says when to try again', async () => {
    const limiter = memoryLimiter({ calls: 2, perMs: 1_000 })
    expect([await limiter.take('a'), await limiter.take('a'), await limiter.take('b')]).toEqual([
      undefined,
      undefined,
      undefined,
    ])
    vi.advanceTimersByTime(400)
    expect(await limiter.take('a')).toEqual({ retryAfterMs: 600 })
    vi.advanceTimersByTime(600)
    expect(await limiter.take('a')).toBeUndefined()
  })

  it('bounds the model calls of a graph, all its runs together', async () => {
    const Chat = state({ messages: messages() })
    const agent = agentNode('agent', Chat, { model: scripted(['one', 'two'], { model: 'm' }) })
    //#region memory
    const limiter = memoryLimiter({ calls: 2, perMs: 60_000 })
    const middleware = [new RateLimitMiddleware({ limiter, models: true })]
    const chat = graph('chat', Chat, { middleware }).edge(START, agent).edge(agent, END).check()
    //#endregion
    const runtime = createRuntime()
    const asked = { messages: [{ role: 'user', content: 'hello' }] } as const
    for (const _ of [1, 2]) await runtime.run(chat, asked)
    await expect(runtime.run(chat, asked)).rejects.toThrow('the rate limit of model "m" is reached; try again in 60 s')
  })
})

describe('a limiter of your own making', () => {
  it('whose store fails is an error with that as its cause, and no answer', async () => {
    const cause = new Error('ECONNREFUSED')
    const limiter = limiterOf({ consume: () => Promise.reject(cause) })
    await expect(limiter.take('a')).rejects.toMatchObject({ code: 'LIMITER_FAILED', cause })
  })

  it.each([
    { name: 'no calls', options: { calls: 0, perMs: 1 } },
    { name: 'no window', options: { calls: 1, perMs: 0 } },
  ])('is refused with $name', ({ options }) => {
    expect(() => memoryLimiter(options)).toThrow(RangeError)
  })
})
