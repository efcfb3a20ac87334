import { describe, expect, it } from 'vitest'
import { agentGraph, calls, contents, numbered, processes, user } from '../../../testing/agent.ts'
import { ofType, says } from '../../../testing/play.ts'
import {
  CallTimeoutMiddleware,
  type ChatModel,
  ModelRetryMiddleware,
  middleware,
  type RetryOptions,
  type RunEvent,
  type ScriptedReply,
  SluiceError,
  scripted,
} from '../../index.ts'

//#region use
const retry = new ModelRetryMiddleware({ maxAttempts: 4, backoff: { baseMs: 200, capMs: 20_000 } })
//#endregion

//#region retry-on
const onlyRateLimits = new ModelRetryMiddleware({ retryOn: (error) => /^429/.test((error as Error).message) })
//#endregion

const busy = new SluiceError('MODEL_HTTP', '429 Too Many Requests: slow down')
const HELLO = user('hello')
const T = { thread: 't' }

/** Retries without luck: each wait is as long as it may be. */
const unlucky = (options: RetryOptions = {}) =>
  new ModelRetryMiddleware({ backoff: { baseMs: 100, capMs: 1_000 }, random: () => 0.9999, ...options })

/** How a run ends when time goes by, how often the model was asked, and what was waited between. */
async function ends(own: ModelRetryMiddleware, replies: readonly ScriptedReply[]) {
  const { clock, another } = processes()
  const model = scripted(replies)
  const running = another().settle(agentGraph({ middleware: [own], model }), HELLO)
  await clock.pass(600_000)
  const { status, error, warnings } = await running
  const asked = model.requests.length
  return { status, error, asked, waits: clock.waits.slice(1), warnings: warnings.map(({ message }) => message) }
}

describe('a model call that failed', () => {
  it('is made again, until it goes well', async () => {
    expect(await ends(unlucky(), [busy, busy, 'hi'])).toMatchObject({ status: 'completed', asked: 3 })
  })

  it('is made as often as it may be, and its last error goes on as the very object', async () => {
    const last = new Error('503 Service Unavailable')
    const { error, asked } = await ends(unlucky(), [busy, busy, last, 'too late'])
    expect(error).toBe(last)
    expect(asked).toBe(3)
  })

  it('may be made more often than the three attempts of the gate', async () => {
    expect(await ends(unlucky({ maxAttempts: 6 }), [busy, busy, busy, busy, busy, 'hi'])).toMatchObject({
      status: 'completed',
      asked: 6,
    })
  })

  it('is tried again after a wait that doubles up to its cap, with full jitter', async () => {
    const { waits } = await ends(unlucky({ maxAttempts: 7 }), [busy, busy, busy, busy, busy, busy, 'hi'])
    expect(waits).toEqual([100, 200, 400, 800, 1_000, 1_000])
    expect((await ends(unlucky({ random: () => 0 }), [busy, busy, 'hi'])).waits).toEqual([])
  })

  it('waits at least as long as the server asks', async () => {
    const asks = new Error('429 Too Many Requests: Retry-After: 0.5')
    expect((await ends(unlucky(), [asks, 'hi'])).waits).toEqual([600])
  })

  it('is not tried again when the server asks for more than the cap', async () => {
    const asks = new Error('429 Too Many Requests: Retry-After: 3600')
    const { error, asked, warnings } = await ends(unlucky(), [asks, 'too early'])
    expect([error, asked]).toEqual([asks, 1])
    expect(warnings).toEqual([
      'middleware "ModelRetryMiddleware": model "scripted" is not tried again: it is to wait 3600000 ms, and 1000 ms is the most.',
    ])
  })

  it('says at each retry why, when and which it is', async () => {
    expect((await ends(unlucky(), [busy, 'hi'])).warnings).toEqual([
      'middleware "ModelRetryMiddleware": model "scripted" failed in attempt 1 of 3 and is tried again in 100 ms: 429 Too Many Requests: slow down',
    ])
  })
})

describe('which errors are tried again', () => {
  const wrongKey = new SluiceError('MODEL_HTTP', '401 Unauthorized')
  const own = new RangeError('of my own')
  it.each([
    { name: 'one that may be gone the next time', error: busy, options: {}, asked: 2 },
    { name: 'not one that will not', error: wrongKey, options: {}, asked: 1 },
    { name: 'those with a code of the list', error: wrongKey, options: { retryOn: ['MODEL_HTTP'] }, asked: 2 },
    { name: 'those of a class of the list', error: own, options: { retryOn: [RangeError] }, asked: 2 },
    { name: 'none beside the list', error: busy, options: { retryOn: [RangeError] }, asked: 1 },
    { name: 'those that a function says', error: own, options: { retryOn: (e: unknown) => e === own }, asked: 2 },
  ])('$name', async ({ error, options, asked }) => {
    expect((await ends(unlucky(options), [error, 'hi'])).asked).toBe(asked)
  })

  it('are the ones of the example', async () => {
    expect((await ends(onlyRateLimits, [busy, new Error('503 Service Unavailable')])).asked).toBe(2)
  })

  it('never a refusal: a no is not tried again', async () => {
    const gate = says('Gate', { 'modelCall.before': { action: 'reject', reason: '429 Too Many Requests' } })
    const { another } = processes({ policies: [gate] })
    const outcome = await another().settle(agentGraph({ middleware: [retry], model: scripted(['hi']) }), HELLO)
    expect(outcome.error).toMatchObject({ code: 'REFUSED' })
    expect(gate.asked).toHaveLength(1)
  })
})

describe('among others', () => {
  it('each attempt meets the policies, and what stands after it in the list', async () => {
    const gate = says('Gate', { 'modelCall.before': { action: 'proceed' } })
    const told: number[] = []
    const inner = middleware({ name: 'inner', beforeModel: ({ attempt }) => void told.push(attempt) })
    const { clock, another } = processes({ policies: [gate] })
    const chat = agentGraph({ middleware: [unlucky(), inner], model: scripted([busy, busy, 'hi']) })
    const running = another().run(chat, HELLO)
    await clock.pass(1_000)
    await running
    expect(gate.asked.map(({ attempt }) => attempt)).toEqual([1, 1, 1])
    expect(told).toEqual([1, 1, 1])
  })

  it('a time-out inside it bounds each attempt, and one around it all of them', async () => {
    const silent: ChatModel = { model: 'slow', chat: () => new Promise(() => {}) }
    const timeout = new CallTimeoutMiddleware({ modelMs: 1_000 })
    const took = async (middleware: readonly (ModelRetryMiddleware | CallTimeoutMiddleware)[]) => {
      const { clock, another } = processes()
      const running = another()
        .settle(agentGraph({ middleware, model: silent }), HELLO)
        .then(({ error }) => `${(error as Error).message}, at ${clock.now()}`)
      await clock.pass(10_000)
      return running
    }
    expect(await took([unlucky(), timeout])).toBe('model "slow" timed out after 1000 ms, at 3300')
    expect(await took([timeout, unlucky()])).toBe('model "slow" timed out after 1000 ms, at 1000')
  })

  it('calls its parts back when a response breaks off, and sends those of the next attempt', async () => {
    let asked = 0
    const model: ChatModel = {
      model: 'flaky',
      chat: () => Promise.reject(new Error('not asked')),
      async *stream() {
        yield { content: 'hi ' }
        if (asked++ === 0) throw new Error('503 Service Unavailable')
        yield { content: 'there', finish_reason: 'stop' }
      },
    }
    const { clock, another } = processes()
    const events: RunEvent[] = []
    const listening = (async () => {
      for await (const event of another().stream(agentGraph({ middleware: [unlucky()], model }), HELLO))
        events.push(event)
    })()
    await clock.pass(1_000)
    await listening
    expect(ofType(events, 'token').map(({ text }) => text)).toEqual(['hi ', 'hi ', 'there'])
    expect(ofType(events, 'retracted')).toHaveLength(1)
  })

  it('tells nobody of a call that goes well: it changes nothing', async () => {
    const outcomes = []
    for (const middleware of [[], [retry]]) {
      const { another } = processes()
      const { state, warnings } = await another().run(agentGraph({ middleware, model: scripted(['hi']) }), HELLO, T)
      outcomes.push({ messages: state.messages, warnings })
    }
    expect(outcomes[1]).toEqual(outcomes[0])
  })
})

describe('in another process', () => {
  it('goes on where it was: attempts that failed are not made again, and count', async () => {
    const { clock, another } = processes()
    const first = scripted([busy, busy])
    const controller = new AbortController()
    const cut = another().settle(agentGraph({ middleware: [unlucky()], model: first }), HELLO, {
      ...T,
      signal: controller.signal,
    })
    await clock.pass(150)
    controller.abort()
    await cut
    expect(first.requests).toHaveLength(2)
    expect(clock.pending).toBe(0)
    const second = scripted([busy, 'too late'])
    const goingOn = another()
      .continue(agentGraph({ middleware: [unlucky()], model: second }), 't')
      .catch((e) => e)
    await clock.pass(1_000)
    expect(await goingOn).toMatchObject({ code: busy.code, message: busy.message })
    expect(second.requests).toHaveLength(1)
  })

  it('parallel calls wait each for itself', async () => {
    const { clock, another } = processes()
    const { ran, tools } = numbered('act')
    const model = scripted([busy, calls(['act', 1], ['act', 2]), busy, 'done'])
    const running = another().run(agentGraph({ middleware: [unlucky()], model, tools }), HELLO, T)
    await clock.pass(1_000)
    expect(contents((await running).state.messages).at(-1)).toBe('assistant: done')
    expect(ran).toEqual(['act 1', 'act 2'])
  })
})

describe('its options', () => {
  it.each([
    {
      name: 'no attempt',
      options: { maxAttempts: 0 },
      error: 'maxAttempts must be a whole number of 1 or more, not 0',
    },
    { name: 'half an attempt', options: { maxAttempts: 1.5 }, error: 'not 1.5' },
    { name: 'no wait', options: { backoff: { baseMs: -1 } }, error: 'backoff.baseMs must be milliseconds above 0' },
    {
      name: 'errors by number',
      options: { retryOn: [429] },
      error: 'retryOn must be a function of the error, or a list',
    },
    { name: 'one there is not', options: { maxRetries: 2 }, error: 'ModelRetryMiddleware has no "maxRetries"' },
    { name: 'chance by number', options: { random: 0.5 }, error: 'random must be a function, not 0.5' },
  ])('$name: refused', ({ options, error }) => {
    expect(() => new ModelRetryMiddleware(options as never)).toThrow(error)
  })
})
