import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Answer, eventsOf, noting, ofType, says, settle, trying } from '../../testing/play.ts'
import {
  agentNode,
  END,
  graph,
  MiddlewareError,
  messages,
  type Policy,
  RefusedError,
  type ScriptedCall,
  START,
  scripted,
  state,
  type Tool,
  tool,
} from '../index.ts'

const Talk = state({ messages: messages() })
const before = (name: string, answer: Answer) => says(name, { 'toolCall.before': answer })
const after = (name: string, answer: Answer) => says(name, { 'toolCall.after': answer })
const reject = { action: 'reject', reason: 'destructive' }
const pass = { action: 'pass' }
const rewrite = (text: string) => ({ action: 'modify', input: { text } })

/** An agent whose model asks for these calls in one round and then answers. */
function agent(tools: readonly Tool[], calls: readonly ScriptedCall[] = [{ name: 'act', arguments: { text: 'x' } }]) {
  const model = scripted([{ tool_calls: calls }, 'done'])
  const step = agentNode('agent', Talk, { model, tools })
  return { model, graph: graph('talk', Talk).edge(START, step).edge(step, END).check() }
}

const toolMessages = (conversation: {
  messages: readonly { role: string; tool_call_id?: string; content: string }[]
}) =>
  conversation.messages
    .filter(({ role }) => role === 'tool')
    .map(({ tool_call_id, content }) => [tool_call_id, content])

describe('a refused tool call', () => {
  it('G1: is answered with the model’s call id and the reason, so that the conversation stays well formed', async () => {
    const { graph, model } = agent([noting()])
    const { status, state } = await settle({ graph, policies: [before('Gate', reject)] })
    expect(status).toBe('completed')
    expect(toolMessages(state)).toEqual([['call-1-1', 'Refused: destructive']])
    expect(model.requests).toHaveLength(2)
  })

  it.each([
    { name: 'as it is, up to 1 KiB', reason: 'x'.repeat(1_024), told: 'x'.repeat(1_024) },
    { name: 'cut at 1 KiB', reason: 'x'.repeat(9_999), told: `${'x'.repeat(1_024)}…` },
    { name: 'cut between characters', reason: `x${'😀'.repeat(300)}`, told: `x${'😀'.repeat(255)}…` },
  ])('tells the model the reason $name; whoever reads the event has all of it', async ({ reason, told }) => {
    const { graph } = agent([noting()])
    const policies = [before('Gate', { action: 'reject', reason })]
    expect(toolMessages((await settle({ graph, policies })).state)).toEqual([['call-1-1', `Refused: ${told}`]])
    const events = await eventsOf({ graph: agent([noting()]).graph, policies })
    expect(ofType(events, 'tool_result')).toMatchObject([{ refused: reason }])
  })

  it('G2: does not run; a tool_result says refused and no error, there is no tool_call, and a warning names policy and reason', async () => {
    const act = noting()
    const events = await eventsOf({ graph: agent([act]).graph, policies: [before('Gate', reject)] })
    expect(act.ran).toEqual([])
    expect(ofType(events, 'tool_call')).toEqual([])
    expect(ofType(events, 'tool_result')).toEqual([
      {
        type: 'tool_result',
        path: ['talk'],
        nodeName: 'agent',
        nodeType: 'AgentNode',
        toolName: 'act',
        toolCallId: 'call-1-1',
        refused: 'destructive',
      },
    ])
    expect(ofType(events, 'warning').map(({ message }) => message)).toEqual([
      'policy "Gate" refused the call of tool "act": destructive',
    ])
  })

  it('throws where no model asked, and the error carries who refused and the bare reason', async () => {
    const { graph, seen } = trying((ctx) => ctx.callTool(noting(), { text: 'x' }))
    await settle({ graph, policies: [before('Gate', reject)] })
    expect(seen.error).toBeInstanceOf(RefusedError)
    expect(seen.error).toMatchObject({
      message: 'policy "Gate" refused the call of tool "act": destructive',
      reason: 'destructive',
      at: { policy: 'Gate', seam: 'toolCall', half: 'before', node: 'step', tool: 'act' },
    })
  })

  it('A3: leaves the other calls of its round alone: they run, and each call has one result, in order', async () => {
    const act = noting(({ text }) => `did ${text}`)
    const calls = ['approved', 'free', 'gated'].map((text) => ({ name: 'act', arguments: { text } }))
    const gate = before('Gate', ({ input }) => (input.text === 'gated' ? reject : { action: 'proceed' }))
    const { state } = await settle({ graph: agent([act], calls).graph, policies: [gate] })
    expect(act.ran.map(({ text }) => text)).toEqual(['approved', 'free'])
    expect(toolMessages(state)).toEqual([
      ['call-1-1', 'did approved'],
      ['call-1-2', 'did free'],
      ['call-1-3', 'Refused: destructive'],
    ])
  })

  it('G6: is shown to no further policy, neither before nor after', async () => {
    const later = says('Later', { 'toolCall.before': { action: 'proceed' }, 'toolCall.after': pass })
    await settle({ graph: agent([noting()]).graph, policies: [before('Gate', reject), later] })
    expect(later.asked).toEqual([])
  })
})

describe('before a tool call', () => {
  it('G3: a modify is what runs, and the tool_call event shows it', async () => {
    const act = noting()
    const events = await eventsOf({ graph: agent([act]).graph, policies: [before('Rewrite', rewrite('safe'))] })
    expect(act.ran).toEqual([{ text: 'safe' }])
    expect(ofType(events, 'tool_call').map(({ toolArgs }) => toolArgs)).toEqual([{ text: 'safe' }])
  })

  it('G4: a replace is given to the model as the result; nothing runs, and after judges it', async () => {
    const act = noting()
    const watch = after('Watch', pass)
    const { state } = await settle({
      graph: agent([act]).graph,
      policies: [before('Cache', { action: 'replace', value: { from: 'cache' } }), watch],
    })
    expect(act.ran).toEqual([])
    expect(toolMessages(state)).toEqual([['call-1-1', '{"from":"cache"}']])
    expect(watch.asked[0]).toMatchObject({ outcome: { ok: true, value: { from: 'cache' } }, substituted: 'Cache' })
  })

  it('G5: a gate after a policy that rewrites sees what it rewrote', async () => {
    const gate = before('Gate', ({ input }) => (input.text === 'rm' ? reject : { action: 'proceed' }))
    const act = noting()
    await settle({ graph: agent([act]).graph, policies: [before('Rewrite', rewrite('rm')), gate] })
    expect(gate.asked[0]?.input).toEqual({ text: 'rm' })
    expect(act.ran).toEqual([])
  })

  it('A4: rewrites add up in load order; a policy without an opinion undoes none', async () => {
    const add = (word: string) => (shown: { input: { text?: unknown } }) => rewrite(`${shown.input.text} ${word}`)
    const [act, silent] = [noting(), before('Silent', { action: 'proceed' })]
    const once = (name: string, word: string) =>
      before(name, (shown, ctx) => (ctx.revisit ? { action: 'proceed' } : add(word)(shown)))
    await settle({ graph: agent([act]).graph, policies: [once('First', 'and'), silent, once('Third', 'more')] })
    expect(act.ran).toEqual([{ text: 'x and more' }])
  })

  it('a modify is validated like the call’s own arguments, with their defaults; one that does not fit runs nothing', async () => {
    const made: unknown[] = []
    const act = tool('act', {
      description: 'With a default.',
      input: z.object({ text: z.string(), times: z.number().default(1) }),
      run: (args) => made.push(args),
    })
    await settle({ graph: agent([act]).graph, policies: [before('Rewrite', rewrite('y'))] })
    expect(made).toEqual([{ text: 'y', times: 1 }])
    const { error } = await settle({
      graph: agent([act]).graph,
      policies: [before('Broken', { action: 'modify', input: { text: 5 } })],
    })
    expect(error).toBeInstanceOf(MiddlewareError)
    expect((error as Error).message).toContain(
      'policy "Broken" (plugin in-process) failed at toolCall.before of node "agent"',
    )
    expect((error as Error).message).toContain('invalid arguments for tool "act"')
    expect(made).toHaveLength(1)
  })

  it.each([
    { name: 'A7: a verdict in another shape', answer: { verdict: 'block' }, says: 'an object with the keys verdict' },
    { name: 'A7: an unknown word', answer: { action: 'block' }, says: '"block"' },
    { name: 'G7: a verdict of another half', answer: { action: 'pass' }, says: '"pass"' },
    { name: 'no answer at all', answer: () => undefined, says: 'answered undefined' },
  ])('$name stops the run; nothing runs, and the error names policy, seam and what would be admitted', async (at) => {
    const act = noting()
    const { error } = await settle({ graph: agent([act]).graph, policies: [before('Gate', at.answer)] })
    expect(act.ran).toEqual([])
    expect(error).toBeInstanceOf(MiddlewareError)
    const { message } = error as Error
    expect(message).toContain('policy "Gate" (plugin in-process) failed at toolCall.before of node "agent"')
    expect(message).toContain(at.says)
    expect(message).toContain('proceed, modify, replace, reject, suspend')
  })

  it('G8: a policy from elsewhere that subscribes and serves no handler fails on first use', async () => {
    const hollow: Policy = {
      ...before('Hollow', { action: 'proceed' }),
      consult: () => undefined,
    }
    const act = noting()
    const { error } = await settle({ graph: agent([act]).graph, policies: [hollow] })
    expect(error).toBeInstanceOf(MiddlewareError)
    expect(act.ran).toEqual([])
  })
})

describe('after a tool call', () => {
  const failing = () =>
    noting(() => {
      throw new Error('disk full')
    })

  it('G9: it is consulted when the tool returned and when it threw, with the arguments that ran', async () => {
    const watch = after('Watch', pass)
    const policies = [before('Rewrite', rewrite('y')), watch]
    await settle({ graph: agent([noting(() => 'fine')]).graph, policies })
    const { state } = await settle({ graph: agent([failing()]).graph, policies })
    expect(watch.asked.map(({ input, outcome }) => ({ input, outcome }))).toEqual([
      { input: { text: 'y' }, outcome: { ok: true, value: 'fine' } },
      { input: { text: 'y' }, outcome: { ok: false, error: { name: 'Error', message: 'disk full' } } },
    ])
    expect(toolMessages(state)).toEqual([['call-1-1', 'Error: disk full']])
  })

  it('G9: a replace is what the model sees, also of a call that threw', async () => {
    const policies = [after('Redact', { action: 'replace', value: 'redacted' })]
    for (const act of [noting(), failing()])
      expect(toolMessages((await settle({ graph: agent([act]).graph, policies })).state)).toEqual([
        ['call-1-1', 'redacted'],
      ])
  })

  it('a reject withholds the result: the model gets the reason, and the result stands in no event and no message', async () => {
    const act = noting(() => 'the secret')
    const policies = [after('Withhold', { action: 'reject', reason: 'not for you' })]
    const { state } = await settle({ graph: agent([act]).graph, policies })
    const events = await eventsOf({ graph: agent([act]).graph, policies })
    expect(toolMessages(state)).toEqual([['call-1-1', 'Refused: not for you']])
    expect(JSON.stringify([state, events])).not.toContain('the secret')
  })

  it('G9: a fail ends the run from outside; no nodeError policy is asked', async () => {
    const strict = says('Strict', {
      'toolCall.after': { action: 'fail', reason: 'leaked' },
      'nodeError.after': { action: 'replace', value: {} },
    })
    const { error } = await settle({ graph: agent([noting()]).graph, policies: [strict] })
    expect(error).toMatchObject({ code: 'FAILED_BY_MIDDLEWARE' })
    expect((error as Error).message).toBe('policy "Strict" failed the call of tool "act": leaked')
    expect(strict.asked.map(({ at }) => at)).toEqual(['toolCall.after'])
  })

  it('a value that the tool’s own result schema refuses is the policy’s failure', async () => {
    const act = tool('act', {
      description: 'Answers with a number.',
      input: z.object({ text: z.string() }),
      output: z.number(),
      run: () => 1,
    })
    const { error } = await settle({
      graph: agent([act]).graph,
      policies: [after('Broken', { action: 'replace', value: 'one' })],
    })
    expect(error).toBeInstanceOf(MiddlewareError)
    expect((error as Error).message).toContain('failed at toolCall.after')
  })
})

it.each([
  { name: 'arguments', half: 'toolCall.before' },
  { name: 'result', half: 'toolCall.after' },
] as const)('the $name that were judged are those that are used, though the tool changes its own', async ({ half }) => {
  const mine = { cmd: 'ls' }
  const ran: unknown[] = []
  const foreign: Tool = {
    ...noting(),
    readArguments: () => mine,
    readResult: () => mine,
    run: ({ cmd }) => void ran.push(cmd),
  }
  const judge = says('Judge', {
    [half]: async () => {
      mine.cmd = 'rm'
      return { action: half === 'toolCall.before' ? 'proceed' : 'pass' }
    },
  })
  const { graph, seen } = trying((ctx) => ctx.callTool(foreign, {}))
  await settle({ graph, policies: [judge] })
  expect(half === 'toolCall.before' ? ran : [(seen.value as typeof mine).cmd]).toEqual(['ls'])
})

describe('nobody is consulted about', () => {
  it('G10: a call, at a half to which nobody is subscribed', async () => {
    const { counts } = await settle({ graph: agent([noting()]).graph, policies: [after('Watch', pass)] })
    expect(counts.consultations).toBe(1)
  })

  it.each([
    { name: 'an unknown tool', call: { name: 'shred', arguments: {} }, says: 'Error: there is no tool "shred"' },
    {
      name: 'broken arguments',
      call: { name: 'act', arguments: '{"text":' },
      says: 'Error: the arguments are no JSON',
    },
    {
      name: 'invalid arguments',
      call: { name: 'act', arguments: { text: 5 } },
      says: 'Error: invalid arguments for tool "act"',
    },
  ])('$name: the model gets the error as a result', async ({ call, says: text }) => {
    const watch = says('Watch', { 'toolCall.before': reject, 'toolCall.after': reject })
    const { state } = await settle({ graph: agent([noting()], [call]).graph, policies: [watch] })
    expect(watch.asked).toEqual([])
    expect(toolMessages(state)[0]?.[1]).toContain(text)
  })
})
