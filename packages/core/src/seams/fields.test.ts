import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { says, settle, trying } from '../../testing/play.ts'
import { type JsonObject, type Policy, scripted, tool } from '../index.ts'

const ARGS = { cmd: 'ls', secret: 'MARKER', env: { home: '/root', key: 'MARKER' } }

/** Calls a tool that notes what it ran with past these policies. */
async function call(policies: readonly Policy[]) {
  const ran: unknown[] = []
  const shell = tool('shell', {
    description: 'Runs a command.',
    input: z.object({ cmd: z.string(), secret: z.string(), env: z.record(z.string(), z.string()) }),
    run: (args) => {
      ran.push(args)
      return { out: 'done', log: 'MARKER' }
    },
  })
  const { graph, seen } = trying((ctx) => ctx.callTool(shell, ARGS))
  return { ...(await settle({ graph, policies })), seen, ran }
}

const modify = (input: JsonObject) => ({ action: 'modify', input })

describe('fields', () => {
  it('are all that a policy is shown, in both halves', async () => {
    const gate = says(
      'Gate',
      { 'toolCall.before': { action: 'proceed' }, 'toolCall.after': { action: 'pass' } },
      { fields: ['cmd', 'env.home', 'out'] },
    )
    await call([gate])
    expect(gate.asked).toMatchObject([
      { input: { cmd: 'ls', env: { home: '/root' } } },
      { input: { cmd: 'ls', env: { home: '/root' } }, outcome: { ok: true, value: { out: 'done' } } },
    ])
    expect(JSON.stringify(gate.asked)).not.toContain('MARKER')
  })

  it('do not narrow what goes on: a modify of them is laid over the rest', async () => {
    const gate = says('Gate', { 'toolCall.before': modify({ cmd: 'ls -l' }) }, { fields: ['cmd'] })
    expect((await call([gate])).ran).toEqual([{ ...ARGS, cmd: 'ls -l' }])
  })

  it('at a model call an edit names what it changes, and of that only what is shown', async () => {
    const model = scripted(['ok'])
    const { graph } = trying((ctx) =>
      ctx.callModel(model, {
        temperature: 0,
        messages: [
          { role: 'system', content: 'be brief' },
          { role: 'user', content: 'hi' },
        ],
      }),
    )
    const gate = says(
      'Gate',
      { 'modelCall.before': modify({ messages: [{ content: 'be brief' }, { content: 'hello' }] }) },
      { fields: ['messages.*.content'] },
    )
    await settle({ graph, policies: [gate] })
    expect(gate.asked).toMatchObject([{ input: { messages: [{ content: 'be brief' }, { content: 'hi' }] } }])
    expect(model.requests[0]).toMatchObject({
      temperature: 0,
      messages: [
        { role: 'system', content: 'be brief' },
        { role: 'user', content: 'hello' },
      ],
    })
  })

  it('hold for the final look and for what binds an answer: a policy is shown the same again', async () => {
    const gate = says('Gate', { 'toolCall.before': { action: 'proceed' } }, { fields: ['cmd'] })
    await call([gate, says('Other', { 'toolCall.before': modify({ ...ARGS, cmd: 'pwd' }) })])
    expect(gate.asked.map(({ input, revisit }) => [input, revisit])).toEqual([
      [{ cmd: 'ls' }, false],
      [{ cmd: 'pwd' }, true],
    ])
  })
})

describe('a modify that touches what it may not is the policy’s failure', () => {
  it.each<{ name: string; rules: object; input: JsonObject; says: string }>([
    {
      name: 'outside mayModify',
      rules: { mayModify: ['cmd'] },
      input: { ...ARGS, secret: 'x' },
      says: 'changed "secret", and may change only "cmd"',
    },
    {
      name: 'below a path beside',
      rules: { mayModify: ['env.home'] },
      input: { ...ARGS, env: { home: '/', key: 'x' } },
      says: 'changed "env.key"',
    },
    {
      name: 'something it is not shown',
      rules: { fields: ['cmd'] },
      input: { cmd: 'ls', secret: 'x' },
      says: 'changed "secret"',
    },
    {
      name: 'anything, where nothing may be changed',
      rules: { mayModify: [] },
      input: { ...ARGS, cmd: 'x' },
      says: 'changed "cmd", and may change only nothing',
    },
  ])('$name', async ({ rules, input, says: why }) => {
    const gate = says('Gate', { 'toolCall.before': modify(input) }, rules)
    const { error, ran } = await call([gate])
    expect(error).toMatchObject({ code: 'MIDDLEWARE_FAILED', message: expect.stringContaining(why) })
    expect((error as Error).message).not.toContain('MARKER')
    expect(ran).toEqual([])
  })

  it('and what it may, it does: mayModify may name what it is not shown', async () => {
    const gate = says(
      'Gate',
      { 'toolCall.before': modify({ cmd: 'ls', secret: 'none' }) },
      { fields: ['cmd'], mayModify: ['secret'] },
    )
    expect((await call([gate])).ran).toEqual([{ ...ARGS, secret: 'none' }])
  })
})
