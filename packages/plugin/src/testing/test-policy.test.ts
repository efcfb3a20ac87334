import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { PolicyHandlers } from '../author/handlers.ts'
import { handlersOf } from './handlers-of.ts'
import { testPolicy } from './test-policy.ts'

/** A policy that answers `toolCall.before` like this. */
const gate = (before: (shown: never, ctx: never) => unknown) => ({ toolCall: { before } }) as unknown as PolicyHandlers
const CALL = { seam: 'toolCall', input: { cmd: 'ls' } } as const

describe('testPolicy', () => {
  it('shows a policy the step and gives back its verdict', async () => {
    const NoRm: PolicyHandlers = {
      toolCall: {
        before: ({ subject, input }) =>
          subject.toolName === 'shell' && /\brm\b/.test(String(input.cmd))
            ? { action: 'reject', reason: 'nothing is deleted here' }
            : { action: 'proceed' },
      },
    }
    const subject = { nodeName: 'agent', toolName: 'shell' }
    const { verdict } = await testPolicy(NoRm, { seam: 'toolCall', subject, input: { cmd: 'rm -rf /' } })
    expect(verdict).toEqual({ action: 'reject', reason: 'nothing is deleted here' })
    expect((await testPolicy(NoRm, { ...CALL, subject })).verdict).toEqual({ action: 'proceed' })
  })

  it('consults after with an outcome, at toolCall with the arguments that ran', async () => {
    const handlers = { toolCall: { after: (shown: object) => ({ action: 'replace', value: shown }) } }
    const outcome = { ok: true, value: 3 } as const
    const { verdict } = await testPolicy(handlers as PolicyHandlers, { ...CALL, outcome })
    expect(verdict).toMatchObject({ value: { input: { cmd: 'ls' }, outcome, subject: {} } })
  })

  it('fills in ctx what is not given: the first and last attempt, no settings, no labels, no answer', async () => {
    const shows = gate(
      (_shown, { component, seam, half, attempt, maxAttempts, admits, answered, revisit, labels }) => ({
        action: 'replace',
        value: { component, seam, half, attempt, maxAttempts, admits, answered, revisit, labels },
      }),
    )
    expect((await testPolicy(shows, CALL)).verdict).toMatchObject({
      value: {
        component: {},
        seam: 'toolCall',
        half: 'before',
        attempt: 1,
        maxAttempts: 1,
        admits: ['proceed', 'modify', 'replace', 'reject', 'suspend'],
        revisit: false,
        labels: [],
      },
    })
    const given = { settings: { a: 1 }, attempt: 2, maxAttempts: 3, answered: 'yes', revisit: true, labels: ['pii'] }
    const { settings: component, ...rest } = given
    expect((await testPolicy(shows, { ...CALL, ...given })).verdict).toMatchObject({ value: { component, ...rest } })
  })

  it('gives a policy what it keeps, and back what it keeps from then on', async () => {
    const Count: PolicyHandlers<{ calls: number }> = {
      toolCall: {
        before(_shown, ctx) {
          if (!ctx.revisit) ctx.kept.update(({ calls }) => ({ calls: calls + 1 }))
          return { action: 'proceed' }
        },
      },
    }
    expect(await testPolicy(Count, { ...CALL, kept: { calls: 2 } })).toMatchObject({
      verdict: { action: 'proceed' },
      kept: { calls: 3 },
    })
    const again = await testPolicy(Count, { ...CALL, kept: { calls: 3 }, revisit: true })
    expect(again.kept).toBeUndefined()
    await expect(testPolicy(Count, CALL)).rejects.toThrow('the manifest declares none')
  })

  it('plays the model and the tools, and gathers events and log lines', async () => {
    const asks = {
      toolCall: {
        async before(_shown: unknown, ctx: import('../author/context.ts').PolicyContext) {
          ctx.emitEvent('asked', { n: 1 })
          ctx.log('info', 'asking')
          const found = await ctx.runTool('search', { q: 'rm' })
          const { content } = await ctx.callModel({ messages: [{ role: 'user', content: 'safe?' }] })
          return { action: 'replace', value: [found, content] } as const
        },
      },
    }
    const tested = await testPolicy(asks, {
      ...CALL,
      runTool: (name, input) => ({ name, input }),
      callModel: async ({ messages }) => ({ content: `${messages.length} messages`, finish_reason: 'stop' }),
    })
    expect(tested).toEqual({
      verdict: { action: 'replace', value: [{ name: 'search', input: { q: 'rm' } }, '1 messages'] },
      kept: undefined,
      events: [{ name: 'asked', data: { n: 1 } }],
      logs: [{ level: 'info', message: 'asking' }],
    })
    await expect(testPolicy(asks, CALL)).rejects.toThrow('asks for runTool, and testPolicy was given none')
    const broken = () => {
      throw new RangeError('too much')
    }
    await expect(testPolicy(asks, { ...CALL, runTool: broken })).rejects.toMatchObject({ name: 'RangeError' })
  })

  it('throws the very error that the handler threw', async () => {
    const error = new RangeError('broken')
    const throws = gate(() => {
      throw error
    })
    await expect(testPolicy(throws, CALL)).rejects.toBe(error)
  })

  it('sees what the wire would: an answer that is no JSON', async () => {
    await expect(
      testPolicy(
        gate(() => ({ action: 'replace', value: 1n })),
        CALL,
      ),
    ).rejects.toThrow(/BigInt/)
    const { verdict } = await testPolicy(
      gate(() => ({ action: 'replace', value: new Date(0) })),
      CALL,
    )
    expect(verdict).toEqual({ action: 'replace', value: '1970-01-01T00:00:00.000Z' })
  })

  it('says which handler is missing', async () => {
    const asked = testPolicy(
      gate(() => ({})),
      { ...CALL, outcome: { ok: true, value: 1 } },
    )
    await expect(asked).rejects.toThrow('serve({ Policy: { toolCall: { after({ subject, outcome }, ctx) { … } } } })')
  })

  it.each([
    {
      name: 'nothing',
      answer: undefined,
      why: 'the policy answered no verdict; toolCall.before admits: proceed, modify',
    },
    { name: 'a verdict of the other half', answer: { action: 'pass' }, why: 'answered "pass"; toolCall.before admits' },
    { name: 'a reject that says nothing', answer: { action: 'reject', reason: ' ' }, why: 'a "reason" that says why' },
    {
      name: 'approvers that are no text',
      answer: { action: 'suspend', ask: { approvers: 7 } },
      why: '"approvers" that are no text',
    },
  ])('refuses $name (A7)', async ({ answer, why }) => {
    await expect(
      testPolicy(
        gate(() => answer),
        CALL,
      ),
    ).rejects.toThrow(why)
  })
})

describe('handlersOf', () => {
  const program = (text: string) => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-handlers-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    writeFileSync(join(folder, 'gate.mjs'), text)
    return pathToFileURL(join(folder, 'gate.mjs'))
  }

  it('gives what a program hands to serve, each time', async () => {
    const [a, b] = [program('serve({ A: {} })'), program('serve({ B: {} })')]
    expect(await Promise.all([handlersOf(a), handlersOf(b)])).toEqual([{ A: {} }, { B: {} }])
    expect(await handlersOf(a)).toEqual({ A: {} })
  })

  it('says when a program does not serve', async () => {
    await expect(handlersOf(program('export {}'))).rejects.toThrow('does not call the global serve(…)')
  })
})
