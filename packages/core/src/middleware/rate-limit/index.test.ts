import { describe, expect, it } from 'vitest'
import { agentGraph, calls, contents, numbered, Talk, user } from '../../../testing/agent.ts'
import { Clock } from '../../../testing/clock.ts'
import { says } from '../../../testing/play.ts'
import {
  createRuntime,
  END,
  graph,
  type Limiter,
  MemoryStore,
  Middleware,
  node,
  RateLimitMiddleware,
  type RateLimitOptions,
  START,
  scripted,
  type Tool,
  type ToolMiddlewareContext,
} from '../../index.ts'

/** So many calls a key in each window of a second, as the clock has it; notes what it was asked about. */
function perSecond(calls: number, clock: Clock) {
  const asked: string[] = []
  const taken = new Map<string, number>()
  const limiter: Limiter = {
    take: (key) => {
      asked.push(key)
      const window = Math.floor(clock.now() / 1_000)
      const name = `${window} ${key}`
      const count = taken.get(name) ?? 0
      if (count >= calls) return { retryAfterMs: (window + 1) * 1_000 - clock.now() }
      taken.set(name, count + 1)
      return undefined
    },
  }
  return { asked, limiter }
}

/** A graph whose node calls the tool so many times at once. */
function calling(times: number, middleware: readonly Middleware[], context?: unknown) {
  const { ran, tools } = numbered('look')
  const results: string[] = []
  const work = node('work', Talk, async (_s, ctx) => {
    const made = Array.from({ length: times }, (_, n) => ctx.callTool(tools[0] as Tool, { n }))
    results.push(...(await Promise.all(made.map((call) => call.then(String, (error) => error.reason)))))
  })
  const g = graph('g', Talk, { middleware }).edge(START, work).edge(work, END).check()
  return { ran, results, run: (platform: Clock) => createRuntime({ platform }).run(g, {}, { context }) }
}

describe('a rate limit', () => {
  it('refuses what is too much; the model reads when it may try again', async () => {
    const clock = new Clock()
    const { limiter } = perSecond(2, clock)
    const { ran, tools } = numbered('look')
    const model = scripted([calls(['look', 1], ['look', 2], ['look', 3]), 'done'])
    //#region tools
    const middleware = [new RateLimitMiddleware({ limiter, tools: ['look'] })]
    //#endregion
    const { state } = await createRuntime({ platform: clock }).run(
      agentGraph({ model, tools, middleware }),
      user('look'),
    )
    expect(ran).toEqual(['look 1', 'look 2'])
    expect(contents(state.messages)[4]).toBe(
      'tool: Refused: the rate limit of tool "look" is reached; try again in 1 s',
    )
  })

  it('lets calls wait their turn where it is told to, and no more run in a window than may', async () => {
    const clock = new Clock()
    const { limiter } = perSecond(2, clock)
    //#region wait
    const middleware = [new RateLimitMiddleware({ limiter, tools: true, atLimit: 'wait', maxWaitMs: 10_000 })]
    //#endregion
    const { ran, results, run } = calling(5, middleware)
    const running = run(clock)
    await clock.pass(0)
    const seen = [ran.length]
    for (const _ of [1, 2]) {
      await clock.pass(1_000)
      seen.push(ran.length)
    }
    await running
    expect(seen).toEqual([2, 4, 5])
    expect(results.every((result) => result.endsWith('done'))).toBe(true)
  })

  it('refuses at once what would wait longer than it may', async () => {
    const clock = new Clock()
    const { limiter } = perSecond(1, clock)
    const { results, run } = calling(2, [
      new RateLimitMiddleware({ limiter, tools: true, atLimit: 'wait', maxWaitMs: 999 }),
    ])
    await run(clock)
    expect(results).toEqual(['look 0 done', 'the rate limit of tool "look" is reached; try again in 1 s'])
    expect(clock.waits.filter((ms) => ms < 5_000)).toEqual([])
  })

  it('refuses a call of a model: it fails, and nothing is sent', async () => {
    const { limiter } = perSecond(1, new Clock())
    const model = scripted(['one'], { model: 'm' })
    const agent = agentGraph({ model, middleware: [new RateLimitMiddleware({ limiter, models: true })] })
    const runtime = createRuntime()
    await runtime.run(agent, user('hello'))
    await expect(runtime.run(agent, user('hello'))).rejects.toMatchObject({
      code: 'REFUSED',
      reason: 'the rate limit of model "m" is reached; try again in 1 s',
    })
    expect(model.requests).toHaveLength(1)
  })

  it.each([
    { name: 'by name', options: { models: true, tools: true }, keys: ['["model:m"]', '["tool:look"]', '["model:m"]'] },
    {
      name: 'all together',
      options: { models: true, tools: true, by: 'all' },
      keys: ['["all"]', '["all"]', '["all"]'],
    },
    { name: 'tools only', options: { tools: true }, keys: ['["tool:look"]'] },
    { name: 'other tools', options: { tools: ['pay'], models: ['m'] }, keys: ['["model:m"]', '["model:m"]'] },
    {
      name: 'by user',
      options: { tools: true, key: ({ context }) => String((context as { user: string }).user) },
      keys: ['["tool:look","ada"]'],
    },
  ] as { name: string; options: Omit<RateLimitOptions, 'limiter'>; keys: string[] }[])(
    'counts $name',
    async ({ options, keys }) => {
      const { asked, limiter } = perSecond(9, new Clock())
      const { tools } = numbered('look')
      const model = scripted([calls(['look', 1]), 'done'], { model: 'm' })
      const agent = agentGraph({ model, tools, middleware: [new RateLimitMiddleware({ limiter, ...options })] })
      await createRuntime().run(agent, user('look'), { context: { user: 'ada' } })
      expect(asked).toEqual(keys)
    },
  )

  it('counts each go at a call, for each is a request', async () => {
    const { asked, limiter } = perSecond(9, new Clock())
    let left = 2
    const retry = says('Retry', { 'modelCall.after': () => ({ action: left-- > 0 ? 'retry' : 'pass' }) })
    const agent = agentGraph({
      model: scripted(['a', 'b', 'c']),
      middleware: [new RateLimitMiddleware({ limiter, models: true })],
    })
    await createRuntime({ policies: [retry] }).run(agent, user('hello'))
    expect(asked).toHaveLength(3)
  })

  it('leaves no timer behind when the run is cancelled while a call waits', async () => {
    const clock = new Clock()
    const { limiter } = perSecond(1, clock)
    const { ran, tools } = numbered('look')
    const work = node('work', Talk, async (_s, ctx) => {
      await Promise.all([1, 2].map((n) => ctx.callTool(tools[0] as Tool, { n })))
    })
    const middleware = [new RateLimitMiddleware({ limiter, tools: true, atLimit: 'wait' })]
    const g = graph('g', Talk, { middleware }).edge(START, work).edge(work, END).check()
    const controller = new AbortController()
    const running = createRuntime({ platform: clock }).settle(g, {}, { signal: controller.signal })
    await clock.pass(0)
    controller.abort()
    expect((await running).status).toBe('cancelled')
    expect({ ran, pending: clock.pending }).toEqual({ ran: ['look 1'], pending: 0 })
  })

  it('whose limiter fails ends the run: nothing goes uncounted', async () => {
    const limiter = { take: () => Promise.reject(new Error('the store is away')) }
    const { run } = calling(1, [new RateLimitMiddleware({ limiter, tools: true })])
    await expect(run(new Clock())).rejects.toMatchObject({ code: 'MIDDLEWARE_FAILED' })
  })
})

describe('over a pause', () => {
  class Gate extends Middleware {
    override beforeTool(ctx: ToolMiddlewareContext) {
      return ctx.answered === undefined ? ctx.suspend({}) : undefined
    }
  }

  it('a call that waited for a person is counted again where it goes on, by the limiter that is there', async () => {
    const store = new MemoryStore()
    const play = () => {
      const { asked, limiter } = perSecond(9, new Clock())
      return { asked, middleware: [new RateLimitMiddleware({ limiter, tools: true }), new Gate()] }
    }
    const { ran, tools } = numbered('look')
    const model = scripted([calls(['look', 1], ['look', 2]), 'done'])
    const [first, second] = [play(), play()]
    const { asks } = await createRuntime({ store }).run(agentGraph({ model, tools, ...first }), user('look'), {
      thread: 't',
    })
    const answers = new Map(asks.map(({ key }) => [key, true]))
    await createRuntime({ store }).resume(agentGraph({ model, tools, ...second }), 't', answers)
    expect(ran.toSorted()).toEqual(['look 1', 'look 2'])
    expect([first.asked.length, second.asked.length]).toEqual([2, 2])
  })
})

describe('the options', () => {
  const { limiter } = perSecond(1, new Clock())
  it.each([
    { name: 'no limiter', options: { models: true }, says: 'limiter has no take(key)' },
    { name: 'nothing to count', options: { limiter }, says: 'it counts nothing' },
    {
      name: 'another word',
      options: { limiter, tools: true, atLimit: 'drop' },
      says: 'atLimit is "drop"; give "reject" or "wait"',
    },
    { name: 'another way', options: { limiter, tools: true, by: 'ip' }, says: 'by is "ip"' },
    {
      name: 'no time',
      options: { limiter, tools: true, maxWaitMs: 0 },
      says: 'maxWaitMs must be milliseconds above 0',
    },
    { name: 'another option', options: { limiter, tools: true, calls: 3 }, says: 'has no "calls"' },
  ])('are refused where they are none: $name', ({ options, says: why }) => {
    expect(() => new RateLimitMiddleware(options as RateLimitOptions)).toThrow(why)
  })
})
