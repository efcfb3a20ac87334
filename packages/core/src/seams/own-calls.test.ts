import { describe, expect, it } from 'vitest'
import { open, quiet } from '../../testing/clock.ts'
import { eventsOf, noting, ofType, oneNode, says, settle, trying } from '../../testing/play.ts'
import { type Consultation, MiddlewareError, type Policy, policy, scripted } from '../index.ts'

const proceed = { action: 'proceed' }
const HELLO = { messages: [{ role: 'user' as const, content: 'hello' }] }
const plain = () => oneNode(() => undefined)

/** A policy that does this before each node, and proceeds. */
const doing = (name: string, act: (ctx: Consultation) => Promise<unknown>, model?: Policy['model']) =>
  says(
    name,
    {
      'node.before': async (_, ctx) => {
        await act(ctx)
        return proceed
      },
    },
    { model },
  )

describe('a policy’s own calls', () => {
  it('are judged by the other policies, with who makes them, and not by itself', async () => {
    const watch = says('Watch', { 'toolCall.before': proceed, 'modelCall.before': proceed })
    const both = policy({
      name: 'Both',
      model: scripted(['hi']),
      seams: {
        node: {
          before: async (_, ctx) => {
            await ctx.runTool('act', { text: 'x' })
            await ctx.callModel(HELLO)
            return { action: 'proceed' }
          },
        },
        toolCall: { before: () => ({ action: 'reject', reason: 'its own' }) },
        modelCall: { before: () => ({ action: 'reject', reason: 'its own' }) },
      },
    })
    const act = noting()
    const { status } = await settle({ graph: plain(), policies: [both, watch], tools: [act] })
    expect({ status, ran: act.ran }).toEqual({ status: 'completed', ran: [{ text: 'x' }] })
    expect(watch.asked.map(({ subject, input }) => ({ subject, input }))).toEqual([
      {
        subject: {
          nodeName: 'step',
          nodeType: 'Node',
          toolName: 'act',
          toolCallId: 'call-1',
          caller: 'middleware',
          source: 'code',
        },
        input: { text: 'x' },
      },
      { subject: { nodeName: 'step', nodeType: 'Node' }, input: { ...HELLO, model: 'scripted' } },
    ])
  })

  it('may be refused, changed and answered by them like any other', async () => {
    const results: unknown[] = []
    const asker = doing('Asker', async (ctx) => {
      for (const text of ['refuse', 'change', 'answer'])
        results.push(await ctx.runTool('act', { text }).catch((error: Error) => error.message))
    })
    const gate = says('Gate', {
      'toolCall.before': ({ input }) =>
        input.text === 'refuse'
          ? { action: 'reject', reason: 'no' }
          : input.text === 'change'
            ? { action: 'modify', input: { text: 'changed' } }
            : { action: 'replace', value: 'answered' },
    })
    const act = noting(({ text }) => `ran ${text}`)
    await settle({ graph: plain(), policies: [asker, gate], tools: [act] })
    expect(results).toEqual(['policy "Gate" refused the call of tool "act": no', 'ran changed', 'answered'])
  })

  /** Each of these policies makes a call of its own about every tool call it is consulted on, and notes whose it was. */
  const chain = (names: readonly string[], consulted: string[][]) =>
    names.map((name, i) =>
      says(name, {
        'toolCall.before': async ({ input }, ctx) => {
          consulted[i]?.push(`${input.text}`)
          await ctx.runTool('act', { text: `${input.text}>${name}` })
          return proceed
        },
      }),
    )

  it('pass neither the policy that makes them nor those that they are nested in', async () => {
    const consulted: string[][] = [[], []]
    const act = noting()
    const { graph } = trying((ctx) => ctx.callTool(act, { text: 'step' }))
    await settle({ graph, policies: chain(['A', 'B'], consulted), tools: [act] })
    expect(consulted).toEqual([
      ['step', 'step>B'],
      ['step>A', 'step'],
    ])
    expect(act.ran.map(({ text }) => text)).toEqual(['step>A>B', 'step>A', 'step>B>A', 'step>B', 'step'])
  })

  it('nest three levels deep and no deeper: there the call is refused', async () => {
    const consulted: string[][] = [[], [], [], []]
    const act = noting()
    const { graph } = trying((ctx) => ctx.callTool(act, { text: '' }))
    const three = await settle({ graph, policies: chain(['A', 'B', 'C'], consulted), tools: [act] })
    expect(three.status).toBe('completed')
    expect(act.ran.map(({ text }) => text)).toContain('>A>B>C')
    const { error } = await settle({ graph, policies: chain(['A', 'B', 'C', 'D'], consulted), tools: [act] })
    expect(error).toBeInstanceOf(MiddlewareError)
    expect((error as Error).message).toContain('policy "D" makes a call nested deeper than 3 policies')
  })

  it('stay out of the user’s stream, while tools that they run are seen', async () => {
    const asker = doing(
      'Asker',
      async (ctx) => ctx.runTool('act', { text: (await ctx.callModel(HELLO)).content }),
      scripted(['secret words']),
    )
    const model = scripted(['for the user'])
    const { graph } = trying((ctx) => ctx.callModel(model, HELLO))
    const events = await eventsOf({ graph, policies: [asker], tools: [noting()] })
    expect(ofType(events, 'token').map(({ text }) => text)).toEqual(['for ', 'the ', 'user'])
    expect(ofType(events, 'tool_call')).toMatchObject([
      { nodeName: 'step', toolName: 'act', toolArgs: { text: 'secret words' } },
    ])
  })

  it.each([
    {
      name: 'a model where its settings name none',
      act: (ctx: Consultation) => ctx.callModel(HELLO),
      says: 'policy "Asker" has no model to call: its settings name no llm_config',
    },
    {
      name: 'a request without messages',
      act: (ctx: Consultation) => ctx.callModel({} as never),
      model: scripted([]),
      says: 'has "messages" that are no list',
    },
    {
      name: 'a tool that does not exist',
      act: (ctx: Consultation) => ctx.runTool('shred', {}),
      says: 'there is no tool "shred"; tools are: act',
    },
    {
      name: 'arguments that do not fit',
      act: (ctx: Consultation) => ctx.runTool('act', { text: 5 }),
      says: 'invalid arguments for tool "act"',
    },
  ])('throw where the policy may catch it; else it has failed: $name', async ({ act, model, says }) => {
    const caught: unknown[] = []
    const careful = doing('Asker', (ctx) => act(ctx).catch((error) => caught.push(error)), model)
    const careless = doing('Asker', act, model)
    expect((await settle({ graph: plain(), policies: [careful], tools: [noting()] })).status).toBe('completed')
    expect((caught[0] as Error).message).toContain(says)
    const { error } = await settle({ graph: plain(), policies: [careless], tools: [noting()] })
    expect(error).toBeInstanceOf(MiddlewareError)
    expect((error as Error).message).toContain(says)
  })

  it('end with the run: a stop gives up the call that a policy waits for, and what it wanted to do next', async () => {
    const act = noting()
    const asker = doing('Asker', async (ctx) => {
      await ctx.runTool('act', { text: 'first' })
      await ctx.runTool('act', { text: 'second' })
    })
    const broken = says('Broken', {
      'toolCall.after': async () => {
        throw new Error('it broke')
      },
    })
    const { error } = await settle({ graph: plain(), policies: [asker, broken], tools: [act] })
    expect((error as Error).message).toContain('policy "Broken"')
    expect(act.ran).toEqual([{ text: 'first' }])
  })

  it('end with the run also where the policy has answered long ago', async () => {
    const act = noting()
    const gate = open<void>()
    const late = says('Late', {
      'node.before': (_, ctx) => {
        void gate.promise.then(() => ctx.runTool('act', { text: 'late' }))
        return { action: 'proceed' }
      },
    })
    expect((await settle({ graph: plain(), policies: [late], tools: [act] })).status).toBe('completed')
    gate.resolve()
    await quiet()
    expect(act.ran).toEqual([])
  })
})
