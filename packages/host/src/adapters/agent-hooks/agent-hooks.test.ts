import { createAgent, type Json, type JsonObject, MemoryStore, type ScriptedReply, scripted, tool } from '@sluice/core'
import { type PlayOptions, play } from '@sluice/core/testing'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { agentHooks } from './agent-hooks.ts'
import type { AgentContext } from './context.ts'
import type { AgentHooksOptions, Interceptor } from './options.ts'
import { setAt } from './path.ts'
import type { InterceptionRecord } from './record.ts'

const pay = (id: string, amount: number): ScriptedReply => ({
  tool_calls: [{ id, name: 'pay', arguments: { amount } }],
})

/** An agent that pays what the replies say, with these interceptors around it. */
async function run(
  interceptors: readonly Interceptor[],
  { replies = [pay('c1', 100), 'Paid.'], hooks = {}, ...options }: Options = {},
) {
  const paid: Json[] = []
  const records: InterceptionRecord[] = []
  const payTool = tool('pay', {
    description: 'Pays.',
    input: z.object({ amount: z.number() }),
    run: ({ amount }) => {
      paid.push(amount)
      return `paid ${amount}`
    },
  })
  const model = scripted(replies)
  const agent = createAgent({ model, tools: [payTool] })
  const policies = [agentHooks({ interceptors, onRecord: (record) => records.push(record), ...hooks })]
  const input = 'Pay it.' as never
  const played = await play(agent, { input, policies, ...options })
  return { ...played, paid, records, model }
}

interface Options extends Omit<PlayOptions<never>, 'policies'> {
  readonly replies?: readonly ScriptedReply[]
  readonly hooks?: Partial<AgentHooksOptions>
}

/** Answers at one point, and allows all else. */
const at =
  (point: string, answer: unknown): Interceptor =>
  ({ interception_point }) =>
    interception_point === point ? answer : { decision: 'allow' }

const transform = (path: string, value: Json) => ({ decision: 'transform', transform: { path, value } })
const liftable = { decision: 'deny', reason: 'bank:large', approval: {} }

type Ask = { readonly payload: Json }
const offered = ({ payload }: Ask) => payload as { readonly approve: JsonObject; readonly reject: JsonObject }

describe('interceptors', () => {
  it('are one policy', async () => {
    const records: InterceptionRecord[] = []
    //#region install
    const policies = [
      agentHooks({
        interceptors: [
          ({ interception_point, tool_call }) =>
            interception_point === 'pre_tool_call' && (tool_call as { name: string }).name === 'pay'
              ? { decision: 'deny', reason: 'bank:approval', approval: {} }
              : { decision: 'allow' },
        ],
        composition: { profile: 'sequential/first_deny', on_approval: 'resume' },
        tools: ['pay'],
        onRecord: (record) => records.push(record),
      }),
    ]
    //#endregion
    const { asked } = await run([], { policies } as never)
    expect(asked).toHaveLength(1)
    expect(records.map(({ interception_point }) => interception_point)).toContain('post_model_call')
  })
})

describe('an edit', () => {
  it('of the input is what the agent is asked', async () => {
    const { model } = await run([at('input', transform('$target.content', 'Pay nothing.'))])
    expect(model.requests[0]?.messages.map(({ content }) => content)).toEqual(['Pay nothing.'])
  })
  it('of messages is what the model is asked', async () => {
    const { model } = await run([at('pre_model_call', transform('$target[0].content', 'Hello.'))])
    expect(model.requests[0]?.messages[0]?.content).toBe('Hello.')
  })
  it('of a response changes the calls in it', async () => {
    const { paid } = await run([
      ({ interception_point, target }) =>
        interception_point === 'post_model_call' && (target as { tool_calls: Json[] }).tool_calls.length > 0
          ? transform('$target.tool_calls[0].args.amount', 1)
          : { decision: 'allow' },
    ])
    expect(paid).toEqual([1])
  })
  it('of a result is what the model is told', async () => {
    expect((await run([at('post_tool_call', transform('$target', 'paid'))])).toolMessages[0]?.content).toBe('paid')
  })
  it('of the output is what the run hands out', async () => {
    const { state, messages } = await run([at('output', transform('$target.content', 'Done.'))])
    expect((state as { finalText: string }).finalText).toBe('Done.')
    expect(messages.at(-1)?.content).toBe('Done.')
  })
  it('that leaves what can be named is a denial of the host', async () => {
    const { status, paid, records } = await run([at('pre_tool_call', transform('$target.amount', 2 ** 53))])
    expect({ status, paid }).toEqual({ status: 'failed', paid: [] })
    expect(records.map(({ verdict }) => verdict.reason)).toContain('host_error:context_invalid')
  })
})

describe('a path', () => {
  it.each([
    { path: '$target', value: 1 },
    { path: '$target.a', value: { a: 1, b: [{ c: 0 }] } },
    { path: '$target.new', value: { a: 0, b: [{ c: 0 }], new: 1 } },
    { path: '$target.b[0]["c"]', value: { a: 0, b: [{ c: 1 }] } },
    { path: '$target.b[1]', value: undefined },
    { path: '$target.x.y', value: undefined },
    { path: '$target.__proto__', value: undefined },
    { path: '$target..a', value: undefined },
    { path: '$target.a b', value: undefined },
    { path: '$other.a', value: undefined },
  ])('$path', ({ path, value }) => expect(setAt({ a: 0, b: [{ c: 0 }] }, path, 1)).toEqual(value))
})

describe('a denial that may be lifted', () => {
  const both: ScriptedReply = {
    tool_calls: [
      { id: 'c1', name: 'pay', arguments: { amount: 100 } },
      { id: 'c2', name: 'pay', arguments: { amount: 100 } },
    ],
  }
  const hooks = [at('pre_tool_call', liftable)]

  it('waits, and one approval opens one call', async () => {
    const answers = [offered, offered].map(
      (offer, i) => (ask: Ask) => (i === 0 ? offer(ask).approve : offer(ask).reject),
    )
    const { paid, toolMessages } = await run(hooks, {
      replies: [both, 'done'],
      answer: (ask) => answers.shift()?.(ask),
    })
    expect(paid).toEqual([100])
    expect(toolMessages.map(({ content }) => content)).toEqual(['paid 100', expect.stringContaining('rejected')])
  })
  it('is not lifted by the answer to another call', async () => {
    const first: JsonObject[] = []
    const answer = (ask: Ask) => {
      first.push(offered(ask).approve)
      return first[0]
    }
    const { status, paid } = await run(hooks, { replies: [pay('c1', 100), pay('c2', 100), 'done'], answer })
    expect({ status, paid }).toEqual({ status: 'failed', paid: [100] })
  })
  it('is one of the start too, and nothing begins before', async () => {
    const denies = [at('agent_startup', liftable)]
    const rejected = await run(denies, { answer: (ask) => offered(ask).reject })
    expect({ status: rejected.status, asked: rejected.model.requests }).toEqual({ status: 'failed', asked: [] })
    const approved = await run(denies, { answer: (ask) => offered(ask).approve })
    expect(approved.status).toBe('completed')
  })
  it('an approval of the start is none of the input', async () => {
    const { asked } = await run([at('agent_startup', liftable), at('input', liftable)], {
      answer: (ask) => offered(ask).approve,
    })
    const points = asked.map(({ payload }) => (payload as { request: { interception_point: string } }).request)
    expect(points.map(({ interception_point }) => interception_point)).toEqual(['agent_startup', 'input'])
  })
  it('is a plain one after the step, where nobody can wait', async () => {
    const { toolMessages, asked } = await run([at('post_tool_call', liftable)])
    expect(asked).toEqual([])
    expect(toolMessages[0]?.content).toContain('bank:large')
  })
})

describe('an interceptor', () => {
  it('that does not answer in its time is a denial of the host, which ends the run', async () => {
    const hangs: Interceptor = ({ interception_point }) =>
      interception_point === 'pre_tool_call' ? new Promise(() => {}) : { decision: 'allow' }
    const { status, paid, records } = await run([hangs], { hooks: { interceptorTimeoutMs: 20 } })
    expect({ status, paid }).toEqual({ status: 'failed', paid: [] })
    expect(records.map(({ verdict }) => verdict.reason)).toContain('host_error:interceptor_timeout')
  })
  it('is shown the labels that others gave', async () => {
    const seen: AgentContext[] = []
    await run([
      (context) => {
        seen.push(context)
        return { decision: 'allow', result_labels: ['untrusted'] }
      },
    ])
    expect(seen.at(-1)?.extensions).toEqual({ sluice: { labels: ['untrusted'] } })
  })
})

describe('a session', () => {
  it('is a turn: it begins and ends with it, and the next one is another', async () => {
    const store = new MemoryStore()
    const allows = at('input', { decision: 'allow' })
    const turns = [await run([allows], { store }), await run([allows], { store })]
    const ids = turns.map(({ records }) => new Set(records.map(({ session_id }) => session_id)).size)
    expect(ids).toEqual([1, 1])
    const records = turns[1]?.records ?? []
    expect(records.map(({ sequence }) => sequence)).toEqual(records.map((_, i) => i))
    expect(records.at(-1)?.interception_point).toBe('agent_shutdown')
  })
})

describe('records', () => {
  it('carry nothing of what was shown', async () => {
    const marker = 'MARKER-7f3a'
    const { records } = await run([at('post_tool_call', transform('$target', marker))], {
      replies: [pay('c1', 100), marker],
    })
    expect(records.length).toBeGreaterThan(5)
    expect(JSON.stringify(records)).not.toContain(marker)
  })
})

describe('options that there are not', () => {
  it.each([
    {
      name: 'a profile',
      options: { composition: { profile: 'most_permissive' } },
      error: /is no profile; profiles are/,
    },
    {
      name: 'a name of a provider',
      options: { identityProvider: { name: 'jcs-x', identify: () => '' } },
      error: /"jcs-x" is none/,
    },
  ])('$name', ({ options, error }) => {
    expect(() => agentHooks({ interceptors: [], ...(options as object) })).toThrow(error)
  })
})
