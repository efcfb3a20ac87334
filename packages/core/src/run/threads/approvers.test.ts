import { describe, expect, it } from 'vitest'
import { noting, oneNode, says } from '../../../testing/play.ts'
import { together } from '../../../testing/threads.ts'
import { type AskOptions, createRuntime, MemoryStore, type RuntimeOptions, SluiceError } from '../../index.ts'

const T = { thread: 't' }
const CHIEF = 'principal.id == "chief"'

const asking = (options: AskOptions) =>
  oneNode(async (_s, ctx) => ({ made: `${await ctx.ask('q', 'well?', options)}` }))

const gated = oneNode(async (_s, ctx) => void (await ctx.callTool(noting(), { text: 'x' })))
const gate = (approvers: unknown) =>
  says('Gate', {
    'toolCall.before': (_shown, { answered }) =>
      answered === undefined ? { action: 'suspend', ask: { question: 'sure?', approvers } } : { action: 'proceed' },
  })

const runtimeOf = (options: RuntimeOptions = {}) => createRuntime({ store: new MemoryStore(), ...options })

describe('who may answer', () => {
  it('stands with a question of a node, and is not for the person', async () => {
    const runtime = runtimeOf()
    const { asks } = await runtime.run(asking({ approvers: CHIEF }), {}, T)
    expect(asks).toMatchObject([{ approvers: CHIEF, payload: 'well?' }])
    expect((await runtime.stateAt(asking({ approvers: CHIEF }), 't')).asks).toEqual(asks)
  })

  it('stands with a question of a policy, and not in what is shown', async () => {
    const { asks } = await runtimeOf({ policies: [gate(CHIEF)] }).run(gated, {}, T)
    expect(asks).toMatchObject([{ approvers: CHIEF, payload: { question: 'sure?' } }])
    expect(asks[0]?.payload).not.toHaveProperty('approvers')
  })

  it('is asked anew of a policy that has come to say otherwise, when a run that failed goes on', async () => {
    const store = new MemoryStore()
    let fails = true
    const g = together({
      a: async (_s, ctx) => void (await ctx.callTool(noting(), { text: 'x' })),
      b: () => {
        if (fails) throw new Error('once')
      },
    })
    await createRuntime({ store, policies: [gate(CHIEF)] }).settle(g, {}, T)
    fails = false
    const board = 'principal.claims.board'
    const { asks } = await createRuntime({ store, policies: [gate(board)] }).continue(g, 't')
    expect(asks).toMatchObject([{ askedBy: 'policy:Gate', approvers: board }])
  })

  const checkApprovers = (text: string) => {
    if (text !== CHIEF) throw new SluiceError('POLICY_EXPRESSION', 'it is none.')
  }

  it.each([
    { name: 'no text', approvers: 7, options: {}, why: 'that are no text' },
    { name: 'an empty text', approvers: ' ', options: {}, why: 'that are no text' },
    { name: 'a text of 4,097 characters', approvers: 'x'.repeat(4_097), options: {}, why: 'that are no text' },
    { name: 'what the host does not take', approvers: 'x', options: { checkApprovers }, why: 'it is none' },
  ])('is not said by $name', async ({ approvers, options, why }) => {
    const asked = runtimeOf(options).run(asking({ approvers: approvers as string }), {}, T)
    await expect(asked).rejects.toMatchObject({ code: 'ASK_INVALID', message: expect.stringContaining(why) })
    const suspended = runtimeOf({ ...options, policies: [gate(approvers)] }).run(gated, {}, T)
    await expect(suspended).rejects.toMatchObject({ code: 'MIDDLEWARE_FAILED', message: expect.stringContaining(why) })
  })

  it('is for whoever knows who answers: the runtime itself takes an answer from whoever may resume', async () => {
    const runtime = runtimeOf({ checkApprovers, policies: [gate(CHIEF)] })
    await runtime.run(gated, {}, T)
    expect((await runtime.resume(gated, 't', true)).status).toBe('completed')
  })
})
