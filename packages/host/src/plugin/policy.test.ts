import {
  agentNode,
  type ChatModel,
  createRuntime,
  END,
  graph,
  MiddlewareError,
  messages,
  own,
  policy,
  START,
  scripted,
  state,
  tool,
} from '@sluice/core'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Call } from '../../../core/src/seams/call.ts'
import { compileGate } from '../../../core/src/seams/gate.ts'
import { load as loadWith, type TestPlugin } from '../testing/plugin.ts'
import { gateProgram } from '../testing/raw.ts'
import { builtRuntime } from '../testing/runtime.ts'
import { ask, consultation, fakeSite } from '../testing/site.ts'

const runtime = builtRuntime()
const load = (plugin: TestPlugin, options = {}) => loadWith(plugin, { runtime, ...options })

const ECHO = `
const seen = ({ subject, input, outcome }, ctx) => {
  const { component, seam, half, attempt, maxAttempts, admits, answered, revisit, substituted, labels } = ctx
  return { subject, input, outcome, component, seam, half, attempt, maxAttempts, admits, answered, revisit, substituted, labels }
}
serve({ Gate: { toolCall: { before: seen, after: seen } } })`

describe('a policy in another process', () => {
  it('is shown the step, and in ctx what its half needs (Z6, Z7)', async () => {
    const { gate } = await load({ program: ECHO })
    expect(await ask(gate, { attempt: 2, maxAttempts: 3, site: fakeSite({ labels: new Set(['pii']) }) })).toEqual({
      subject: { nodeName: 'agent', nodeType: 'AgentNode', toolName: 'shell', toolCallId: 'call-1' },
      input: { cmd: 'ls' },
      component: {},
      seam: 'toolCall',
      half: 'before',
      attempt: 2,
      maxAttempts: 3,
      admits: ['proceed', 'modify', 'replace', 'reject', 'suspend'],
      revisit: false,
      labels: ['pii'],
    })
  })

  it('is shown the outcome after the call, at toolCall with the arguments that ran', async () => {
    const { gate } = await load({ program: ECHO })
    const outcome = { ok: false, error: { name: 'Error', message: 'timed out' } } as const
    expect(await ask(gate, { half: 'after', outcome, substituted: 'Cache', revisit: true })).toMatchObject({
      outcome,
      input: { cmd: 'ls' },
      half: 'after',
      admits: ['pass', 'replace', 'reject', 'fail'],
      substituted: 'Cache',
      revisit: true,
    })
  })

  it('has the settings of the operator, and {} when there are none (E9)', async () => {
    const { gate } = await load({ program: ECHO }, { config: { Gate: { guard: ['rm'] } } })
    expect(await ask(gate)).toMatchObject({ component: { guard: ['rm'] } })
    const { gate: bare } = await load({ program: ECHO })
    expect(await ask(bare)).toMatchObject({ component: {} })
  })

  it('may read llm_config as llmConfig, and has a model of it (E10)', async () => {
    const component = { llm_config: { model_id: 'm' } }
    const model = { model: 'm' } as ChatModel
    const { gate } = await load({ program: ECHO }, { config: { Gate: component }, model: () => model })
    expect(await ask(gate)).toMatchObject({ component: { ...component, llmConfig: { model_id: 'm' } } })
    expect(gate.model).toBe(model)
  })

  it('subscribes to the halves of its manifest only', async () => {
    const { gate } = await load({ program: ECHO })
    expect([gate.subscribes('toolCall', 'before'), gate.subscribes('node', 'before')]).toEqual([true, false])
  })

  it('is shown one frozen value with one text, and a changed one with another', async () => {
    const { gate } = await load({ program: gateProgram('return input') })
    const long = own({ text: 'x'.repeat(1_000) })
    expect(await ask(gate, { input: long })).toEqual(long)
    expect(await ask(gate, { input: long })).toEqual(long)
    const loose = { text: 'y'.repeat(1_000) }
    await ask(gate, { input: loose })
    loose.text = 'z'.repeat(1_000)
    expect(await ask(gate, { input: loose })).toEqual(loose)
  })

  it('is not shown what is nested too deep or too long for a message', async () => {
    const { gate } = await load({ program: ECHO })
    let deep: unknown = 1
    for (let i = 0; i < 200; i++) deep = [deep]
    expect(() => gate.consult(consultation(gate, { input: { deep } as never }))).toThrow(/deeper than 128 levels/)
    const long = { text: 'é'.repeat(4_500_000) }
    expect(() => gate.consult(consultation(gate, { input: long }))).toThrow(/longer than 8388608 bytes/)
  })
})

describe('what a policy answers wrong', () => {
  const nonsense = [
    { name: 'nothing', answer: 'undefined' },
    { name: 'a text', answer: "'ok'" },
    { name: 'an unknown action', answer: "({ action: 'allow' })" },
    { name: 'a verdict of another half', answer: "({ action: 'pass' })" },
    { name: 'a reject without a reason', answer: "({ action: 'reject' })" },
    { name: 'a replace without a value', answer: "({ action: 'replace' })" },
    { name: 'an error', answer: "(() => { throw new TypeError('no list') })()" },
  ]

  it.each(nonsense)('ends the run just as in process (C6, A7, A8): $name', async ({ answer }) => {
    const { gate } = await load({ program: gateProgram(`return ${answer}`) })
    const before = () => new Function(`return ${answer}`)()
    const local = policy({ name: 'Gate', plugin: 'tested', seams: { toolCall: { before } } })
    const [remote, inProcess] = [await stopOf(gate), await stopOf(local)]
    expect(remote).toBeInstanceOf(MiddlewareError)
    expect(remote.message).toBe(inProcess.message.replace('answered undefined', 'answered null'))
    expect(remote.at).toEqual(inProcess.at)
  })

  it('is a death, too (C7)', async () => {
    const { gate } = await load({ program: gateProgram('process.exit(3)') })
    const stop = await stopOf(gate)
    expect(stop).toBeInstanceOf(MiddlewareError)
    expect(stop.message).toMatch(/policy "Gate" \(plugin tested\) failed at toolCall.before.*ended with exit code 3/)
  })

  it('is a handler that is not there; the author is told which to write (C8)', async () => {
    const { gate } = await load({ program: gateProgram('return { action: "proceed" }') })
    const asked = ask(gate, { half: 'after', outcome: { ok: true, value: 1 } })
    await expect(asked).rejects.toMatchObject({
      code: 'PLUGIN_HANDLER_MISSING',
      message: expect.stringContaining('serve({ Gate: { toolCall: { after({ subject, outcome }, ctx) { … } } } })'),
    })
  })
})

/** What a policy's failure stops the run with, at the gate of a tool call. */
async function stopOf(gate: typeof policy extends (options: never) => infer P ? P : never): Promise<MiddlewareError> {
  let stop: unknown
  const pass = compileGate({ seam: 'toolCall', perform: () => ({}) }, [gate])
  await new Promise<void>((resolve) => {
    const stopped = (error: unknown) => {
      stop = error
      resolve()
    }
    const subject = { nodeName: 'agent', toolName: 'shell' }
    const going = pass(new Call(fakeSite({ stop: stopped }), subject, own({ cmd: 'ls' }) as never))
    Promise.resolve(going).then(() => resolve())
  })
  return stop as MiddlewareError
}

describe('a run past policies in another process', () => {
  const Talk = state({ messages: messages() })
  const shell = tool('shell', { description: 'Runs.', input: z.object({ cmd: z.string() }), run: () => 'ran' })
  const asks = { tool_calls: [{ name: 'shell', arguments: { cmd: 'ls' } }] }
  const chat = () => {
    const agent = agentNode('agent', Talk, { model: scripted([asks, 'done']), tools: [shell] })
    return graph('chat', Talk).edge(START, agent).edge(agent, END).check()
  }
  const hello = { messages: [{ role: 'user', content: 'hello' }] } as const
  const middleware = (componentType: string, seams: object) => ({ componentType, kind: 'middleware', seams })

  it('shows each round its ceiling as a number (Z8)', async () => {
    const program = `serve({ Rounds: { agentRound: { before({ input }, ctx) {
      ctx.emitEvent('round', input)
      return { action: 'proceed' }
    } } } })`
    const manifest = { components: [middleware('Rounds', { agentRound: ['before'] })], capabilities: ['emitEvent'] }
    const { policies } = await load({ program, manifest })
    const rounds: unknown[] = []
    for await (const event of createRuntime({ policies }).stream(chat(), hello))
      if (event.type === 'plugin:Rounds:round') rounds.push((event as { data?: unknown }).data)
    expect(rounds).toEqual([
      { round: 1, maxRounds: 10 },
      { round: 2, maxRounds: 10 },
    ])
  })

  it('ends when a gate throws, and no policy at nodeError can replace that away (Z9)', async () => {
    const program = `serve({
      Rescue: { nodeError: { after: () => ({ action: 'replace', value: { messages: [] } }) } },
      Gate: { toolCall: { before() { throw new Error('broken gate') } } },
    })`
    const components = [middleware('Rescue', { nodeError: ['after'] }), middleware('Gate', { toolCall: ['before'] })]
    const { policies } = await load({ program, manifest: { components } })
    const { status, error } = await createRuntime({ policies }).settle(chat(), hello)
    expect([status, (error as Error).message]).toEqual(['failed', expect.stringContaining('broken gate')])
    expect(error).toBeInstanceOf(MiddlewareError)
  })

  it('consults them in load order in both halves (Z17)', async () => {
    const halves = (name: string) => `${name}: { toolCall: {
      before({ input }) { return { action: 'modify', input: { cmd: input.cmd + ' ${name}' } } },
      after({ outcome }) { return { action: 'pass', warnings: ['${name} saw ' + outcome.value] } },
    } }`
    const program = `serve({ ${halves('First')}, ${halves('Second')} })`.replace(
      `input.cmd + ' First'`,
      `input.cmd.includes('First') ? input.cmd : input.cmd + ' First'`,
    )
    const components = ['First', 'Second'].map((name) => middleware(name, { toolCall: ['before', 'after'] }))
    const { policies } = await load({ program, manifest: { components } })
    const told: string[] = []
    for await (const event of createRuntime({ policies }).stream(chat(), hello)) {
      if (event.type === 'tool_call') told.push(JSON.stringify(event))
      if (event.type === 'warning') told.push(event.message)
    }
    expect(told[0]).toContain('ls First Second')
    expect(told.slice(-2)).toEqual([
      expect.stringContaining('First saw ran'),
      expect.stringContaining('Second saw ran'),
    ])
  })
})
