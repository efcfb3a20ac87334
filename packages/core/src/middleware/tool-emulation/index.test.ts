import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { agentGraph, asking, calls, contents, processes, user } from '../../../testing/agent.ts'
import { noting, says } from '../../../testing/play.ts'
import {
  createRuntime,
  type ScriptedReply,
  scripted,
  ToolEmulationMiddleware,
  type ToolEmulationOptions,
  tool,
} from '../../index.ts'

const player = scripted(['{"sky":"sunny"}'], { model: 'player' })

//#region use
const rehearsal = new ToolEmulationMiddleware({
  model: player,
  tools: ['weather', 'send_mail'],
  instructions: 'It is a hot day in July, and every mail arrives.',
})
//#endregion

const HELLO = user('hello')
const T = { thread: 't' }

const ran: string[] = []
const weather = tool('weather', {
  description: 'The weather in a city.',
  input: z.object({ city: z.string() }),
  output: z.object({ sky: z.enum(['sunny', 'grey']) }),
  run: ({ city }) => {
    ran.push(city)
    return { sky: 'grey' as const }
  },
})
const asks: ScriptedReply = calls(['weather', { city: 'Bern' }])

/** What the agent reads when a model with these replies plays its tools, and what that model was asked. */
async function plays(replies: readonly ScriptedReply[], options: Partial<ToolEmulationOptions> = {}) {
  const model = scripted(replies)
  const own = new ToolEmulationMiddleware({ model, ...options })
  const chat = agentGraph({ middleware: [own], model: scripted([asks, 'done']), tools: [weather] })
  const { state, warnings } = await createRuntime().run(chat, HELLO)
  return { read: contents(state.messages)[2], asked: model.requests, warnings }
}

describe('a tool that a model plays', () => {
  it('does not run: what the model says is its result', async () => {
    const chat = agentGraph({ middleware: [rehearsal], model: scripted([asks, 'done']), tools: [weather] })
    const { state, warnings } = await createRuntime().run(chat, HELLO)
    expect(contents(state.messages)[2]).toBe('tool: {"sky":"sunny"}')
    expect(ran).toEqual([])
    // The model is told the tool, its arguments, and the world in which it plays.
    const [system, call] = player.requests[0]?.messages ?? []
    expect(system?.content).toMatch(/^You play a tool .*\n\nIt is a hot day in July/)
    expect(JSON.parse(call?.content ?? '')).toMatchObject({
      tool: { name: 'weather', description: 'The weather in a city.', parameters: { type: 'object' } },
      arguments: { city: 'Bern' },
    })
    expect(warnings.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^middleware "ToolEmulationMiddleware" supplied a result for the call of tool "weather"/),
    ])
  })

  it.each([
    { name: 'JSON', said: '{"sky":"grey"}' },
    { name: 'JSON in a code fence', said: '```json\n{"sky":"grey"}\n```' },
  ])('may be played in $name', async ({ said }) => {
    expect((await plays([said])).read).toBe('tool: {"sky":"grey"}')
  })

  it('may give back a text', async () => {
    const model = scripted(['all is well'])
    const chat = agentGraph({
      middleware: [new ToolEmulationMiddleware({ model })],
      model: scripted([calls(['act', { text: 'a' }]), 'done']),
      tools: [noting()],
    })
    expect(contents((await createRuntime().run(chat, HELLO)).state.messages)[2]).toBe('tool: all is well')
  })

  it('is held to its own results: what does not fit is told to the model, which may try again', async () => {
    const { read, asked } = await plays(['{"sky":"green"}', '{"sky":"grey"}'])
    expect(read).toBe('tool: {"sky":"grey"}')
    expect(contents(asked[1]?.messages ?? []).slice(2)).toEqual([
      'assistant: {"sky":"green"}',
      expect.stringMatching(
        /^user: That is not what the tool gives back: .*sky.* Answer again, with JSON that fits\.$/s,
      ),
    ])
  })

  it('fails when the model never gives what fits, and the agent reads why', async () => {
    const { read, asked } = await plays(['nonsense', 'nonsense', 'too late'])
    expect(read).toMatch(/^tool: Error: the model that plays tool "weather" gave no result that fits in 2 attempts/)
    expect(asked).toHaveLength(2)
  })

  it('fails when the model does', async () => {
    const { read } = await plays([new Error('503 Service Unavailable')], { maxAttempts: 1 })
    expect(read).toContain('503 Service Unavailable')
  })

  it('is played by a model that the runtime has under a name', async () => {
    const own = new ToolEmulationMiddleware({ model: 'actor' })
    const chat = agentGraph({ middleware: [own], model: scripted([asks, 'done']), tools: [weather] })
    const runtime = createRuntime({ models: () => scripted(['{"sky":"sunny"}']) })
    expect(contents((await runtime.run(chat, HELLO)).state.messages)[2]).toBe('tool: {"sky":"sunny"}')
  })
})

describe('among others', () => {
  it('tools that are not named run as ever', async () => {
    const act = noting()
    const own = new ToolEmulationMiddleware({ model: scripted([]), tools: ['weather'] })
    const chat = agentGraph({
      middleware: [own],
      model: scripted([calls(['act', { text: 'a' }]), 'done']),
      tools: [act],
    })
    expect(contents((await createRuntime().run(chat, HELLO)).state.messages)[2]).toBe('tool: done')
    expect(act.ran).toEqual([{ text: 'a' }])
  })

  it('policies are not asked whether it may run, for it does not; they judge the result, and see who gave it', async () => {
    const gate = says('Gate', { 'toolCall.before': { action: 'proceed' }, 'toolCall.after': { action: 'pass' } })
    const own = new ToolEmulationMiddleware({ model: scripted(['{"sky":"sunny"}']) })
    const chat = agentGraph({ middleware: [own], model: scripted([asks, 'done']), tools: [weather] })
    await createRuntime({ policies: [gate] }).run(chat, HELLO)
    expect(gate.asked.map(({ at, substituted }) => [at, substituted])).toEqual([
      ['toolCall.after', 'ToolEmulationMiddleware'],
    ])
  })

  it('what the model says in its part is not in the stream of the user', async () => {
    const own = new ToolEmulationMiddleware({ model: scripted(['{"sky":"sunny"}']) })
    const chat = agentGraph({ middleware: [own], model: scripted([asks, 'done']), tools: [weather] })
    const texts: string[] = []
    for await (const event of createRuntime().stream(chat, HELLO)) if (event.type === 'token') texts.push(event.text)
    expect(texts).toEqual(['done'])
  })

  it('a call that was played before a pause is not played again, in another process, and parallel ones each are', async () => {
    const { another } = processes()
    const chat = (actor: ReturnType<typeof scripted>, replies: readonly ScriptedReply[]) =>
      agentGraph({
        middleware: [new ToolEmulationMiddleware({ model: actor, tools: ['weather'] })],
        model: scripted(replies),
        tools: [weather, asking()],
      })
    const round = calls(['weather', { city: 'Bern' }], ['weather', { city: 'Chur' }], ['ask', { text: 'a' }])
    const first = scripted(['{"sky":"sunny"}', '{"sky":"grey"}'])
    expect((await another().settle(chat(first, [round]), HELLO, T)).status).toBe('paused')
    expect(first.requests).toHaveLength(2)
    const { state } = await another().resume(chat(scripted([]), [() => 'done']), 't', 'yes')
    expect(contents(state.messages).slice(2, 4)).toEqual(['tool: {"sky":"sunny"}', 'tool: {"sky":"grey"}'])
  })
})

describe('its options', () => {
  it.each([
    { name: 'no model', options: {}, error: 'model must be a model, or the name of one' },
    { name: 'no tools', options: { model: 'x', tools: [] }, error: 'tools must be a list of names, one at least' },
    { name: 'no attempt', options: { model: 'x', maxAttempts: 0 }, error: 'maxAttempts must be a whole number of 1' },
    { name: 'blank instructions', options: { model: 'x', instructions: '' }, error: 'instructions must be a text' },
    { name: 'one there is not', options: { model: 'x', tool: 'y' }, error: 'ToolEmulationMiddleware has no "tool"' },
  ])('$name: refused', ({ options, error }) => {
    expect(() => new ToolEmulationMiddleware(options as never)).toThrow(error)
  })
})
