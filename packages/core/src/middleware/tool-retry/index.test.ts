import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { agentGraph, calls, contents, processes, user } from '../../../testing/agent.ts'
import { says } from '../../../testing/play.ts'
import {
  createRuntime,
  middleware,
  scripted,
  ToolDeniedError,
  ToolRetryMiddleware,
  type ToolRetryOptions,
  tool,
} from '../../index.ts'

//#region use
const retry = new ToolRetryMiddleware({ maxAttempts: 3, backoff: { baseMs: 200 } })
//#endregion

//#region tools
const retryThese = new ToolRetryMiddleware({ tools: ['search', 'fetch_page'] })
//#endregion

const HELLO = user('hello')
const T = { thread: 't' }
const busy = new Error('503 Service Unavailable')

/** A tool that fails so often before it works, and notes with what it ran. */
function flaky(failures: number, { name = 'search', idempotent = true, error = busy as unknown } = {}) {
  const ran: string[] = []
  const made = tool(name, {
    description: 'Fails at first.',
    input: z.object({ q: z.string() }),
    idempotent,
    run: ({ q }) => {
      ran.push(q)
      if (ran.filter((one) => one === q).length <= failures) throw error
      return `found ${q}`
    },
  })
  return Object.assign(made, { ran })
}

const unlucky = (options: ToolRetryOptions = {}) =>
  new ToolRetryMiddleware({ backoff: { baseMs: 100, capMs: 1_000 }, random: () => 0.9999, ...options })

/** What the model reads of a call of the tool, and the waits between its attempts. */
async function reads(own: ToolRetryMiddleware, act: ReturnType<typeof flaky>) {
  const { clock, another } = processes()
  const model = scripted([calls([act.name, { q: 'x' }]), 'done'])
  const running = another().run(agentGraph({ middleware: [own], model, tools: [act] }), HELLO)
  await clock.pass(60_000)
  const { state } = await running
  return { read: contents(state.messages)[2], waits: clock.waits.slice(1) }
}

describe('a tool call that failed', () => {
  it('is made again when the tool is idempotent, after waits that double', async () => {
    const act = flaky(2)
    expect(await reads(unlucky(), act)).toEqual({ read: 'tool: found x', waits: [100, 200] })
    expect(act.ran).toEqual(['x', 'x', 'x'])
  })

  it('is made as often as it may be, and the model reads its last error', async () => {
    const act = flaky(9)
    expect((await reads(retry, act)).read).toBe('tool: Error: 503 Service Unavailable')
    expect(act.ran).toHaveLength(3)
  })

  it('is not made again when the tool is not known to be idempotent: it may have done its work', async () => {
    const act = flaky(1, { idempotent: false })
    expect((await reads(unlucky(), act)).read).toBe('tool: Error: 503 Service Unavailable')
    expect(act.ran).toHaveLength(1)
  })

  it('is made again when the tool is named, and no other is then', async () => {
    const named = flaky(1, { name: 'fetch_page', idempotent: false })
    expect((await reads(retryThese, named)).read).toBe('tool: found x')
    const other = flaky(1, { name: 'other' })
    expect((await reads(retryThese, other)).read).toBe('tool: Error: 503 Service Unavailable')
  })

  it.each([
    { name: 'an error that will not be gone', error: new Error('there is no such page') },
    { name: 'a denial by the tool itself', error: new ToolDeniedError('search', '503 Service Unavailable') },
  ])('is not made again for $name', async ({ error }) => {
    const act = flaky(1, { error })
    await reads(unlucky(), act)
    expect(act.ran).toHaveLength(1)
  })

  it('is not made at all where a policy refuses it, and the refusal is not tried again', async () => {
    const gate = says('Gate', { 'toolCall.before': { action: 'reject', reason: '503 Service Unavailable' } })
    const act = flaky(0)
    const chat = agentGraph({
      middleware: [retry],
      model: scripted([calls(['search', { q: 'x' }]), 'done']),
      tools: [act],
    })
    const { state } = await createRuntime({ policies: [gate] }).run(chat, HELLO)
    expect(contents(state.messages)[2]).toBe('tool: Refused: 503 Service Unavailable')
    expect([act.ran, gate.asked.length]).toEqual([[], 1])
  })
})

describe('among others', () => {
  it('parallel calls are tried again each for itself', async () => {
    const act = flaky(1)
    const { clock, another } = processes()
    const model = scripted([calls(['search', { q: 'a' }], ['search', { q: 'b' }]), 'done'])
    const running = another().run(agentGraph({ middleware: [unlucky()], model, tools: [act] }), HELLO, T)
    await clock.pass(60_000)
    expect(contents((await running).state.messages).slice(2, 4)).toEqual(['tool: found a', 'tool: found b'])
    expect(act.ran).toEqual(['a', 'b', 'a', 'b'])
  })

  it('each attempt meets the policies, and their last word comes once', async () => {
    const gate = says('Gate', { 'toolCall.before': { action: 'proceed' }, 'toolCall.after': { action: 'pass' } })
    const { clock, another } = processes({ policies: [gate] })
    const model = scripted([calls(['search', { q: 'x' }]), 'done'])
    const running = another().run(agentGraph({ middleware: [unlucky()], model, tools: [flaky(2)] }), HELLO)
    await clock.pass(60_000)
    await running
    expect(gate.asked.map(({ at }) => at)).toEqual([
      'toolCall.before',
      'toolCall.before',
      'toolCall.before',
      'toolCall.after',
    ])
  })

  it('what observes errors is told of each attempt', async () => {
    const told: string[] = []
    const watch = middleware({ name: 'watch', onToolError: (_ctx, error) => void told.push(error.message) })
    const { clock, another } = processes()
    const model = scripted([calls(['search', { q: 'x' }]), 'done'])
    const running = another().run(agentGraph({ middleware: [unlucky(), watch], model, tools: [flaky(2)] }), HELLO)
    await clock.pass(60_000)
    await running
    expect(told).toEqual(['503 Service Unavailable', '503 Service Unavailable'])
  })
})

describe('in another process', () => {
  it('goes on where it was: an attempt that failed before a pause is not made again', async () => {
    const { clock, another } = processes()
    const ran: string[] = []
    const act = tool('search', {
      description: 'Fails once, then asks.',
      input: z.object({ q: z.string() }),
      idempotent: true,
      run: async (_args, ctx) => {
        ran.push('ran')
        if (ran.length === 1) throw busy
        return `found with ${await ctx.ask('which', 'Which one?')}`
      },
    })
    const chat = (replies: Parameters<typeof scripted>[0]) =>
      agentGraph({ middleware: [unlucky()], model: scripted(replies), tools: [act] })
    const pausing = another().settle(chat([calls(['search', { q: 'x' }])]), HELLO, T)
    await clock.pass(60_000)
    expect((await pausing).status).toBe('paused')
    const going = another().resume(chat([() => 'done']), 't', 'this')
    await clock.pass(60_000)
    expect(contents((await going).state.messages)[2]).toBe('tool: found with this')
    // Once before the pause, to its failure; once to its question; once more, since the call goes on from the top of the tool.
    expect(ran).toHaveLength(3)
  })
})

describe('its options', () => {
  it.each([
    { name: 'no tools', options: { tools: [] }, error: 'tools must be a list of names, one at least' },
    { name: 'a tool that is no name', options: { tools: [1] }, error: 'tools must be a list of names' },
    { name: 'no attempt', options: { maxAttempts: 0 }, error: 'ToolRetryMiddleware: maxAttempts must be' },
    { name: 'one there is not', options: { tool: 'search' }, error: 'ToolRetryMiddleware has no "tool"' },
  ])('$name: refused', ({ options, error }) => {
    expect(() => new ToolRetryMiddleware(options as never)).toThrow(error)
  })
})
