import { describe, expect, it } from 'vitest'
import { says } from '../../testing/play.ts'
import { policy } from '../index.ts'
import { judge, type Posed } from './index.ts'

const shell = { toolName: 'shell', source: 'tools-dir' }
const before: Posed = { seam: 'toolCall', half: 'before', subject: shell, input: { cmd: 'ls' } }
const after: Posed = { ...before, half: 'after', outcome: { ok: true, value: 'listing' } }

describe('judge', () => {
  it.each([
    { verdict: { action: 'proceed' }, comes: { action: 'proceed', by: 'engine', input: { cmd: 'ls' } } },
    { verdict: { action: 'modify', input: { cmd: 'pwd' } }, comes: { action: 'modify', input: { cmd: 'pwd' } } },
    { verdict: { action: 'replace', value: 'as said' }, comes: { action: 'replace', value: 'as said' } },
    { verdict: { action: 'reject', reason: 'no', code: 'x' }, comes: { action: 'reject', reason: 'no', code: 'x' } },
    { verdict: { action: 'suspend', ask: { sure: '?' } }, comes: { action: 'suspend', ask: { sure: '?' } } },
  ])('says what $verdict.action comes to, who decided it, and what would run', async ({ verdict, comes }) => {
    const judged = await judge([says('Gate', { 'toolCall.before': verdict })], before)
    expect(judged).toMatchObject({ by: 'Gate', ...comes })
    expect(judged.error).toBeUndefined()
    expect('input' in judged).toBe('input' in comes)
  })

  it.each([
    { verdict: { action: 'pass' }, comes: { action: 'pass', by: 'engine', value: 'listing' } },
    { verdict: { action: 'replace', value: 'less' }, comes: { action: 'replace', value: 'less' } },
    { verdict: { action: 'reject', reason: 'no' }, comes: { action: 'reject', reason: 'no' } },
    { verdict: { action: 'fail', reason: 'no' }, comes: { action: 'fail', reason: 'no' } },
  ])('says what $verdict.action after the step comes to, and what would be used', async ({ verdict, comes }) => {
    const judged = await judge([says('Gate', { 'toolCall.after': verdict })], after)
    expect(judged).toMatchObject({ by: 'Gate', ...comes })
    expect(judged.error).toBeUndefined()
  })

  it('is one attempt: a retry that is granted is not made', async () => {
    const gate = says('Gate', { 'nodeError.after': { action: 'retry' } })
    const outcome = { ok: false, error: { name: 'Error', message: 'timed out' } } as const
    const failed: Posed = { seam: 'nodeError', half: 'after', outcome, attempt: 2 }
    expect(await judge([gate], failed)).toMatchObject({ action: 'retry', by: 'Gate', record: { attempt: 2 } })
    expect((await judge([gate], { ...failed, maxAttempts: 2 })).action).toBe('pass')
  })

  it('shows policies the subject and the labels as they are given, and consults nobody at other halves', async () => {
    const seen: unknown[] = []
    const watch = policy({
      name: 'Watch',
      seams: {
        toolCall: {
          before: ({ subject }, { labels }) => {
            seen.push([subject, labels])
            return { action: 'proceed' }
          },
          after: () => ({ action: 'fail', reason: 'not asked' }),
        },
        node: { before: () => ({ action: 'reject', reason: 'not asked' }) },
      },
    })
    expect((await judge([watch], { ...before, labels: ['untrusted'] })).action).toBe('proceed')
    expect(seen).toEqual([[{ nodeName: 'node', nodeType: 'Node', ...shell }, ['untrusted']]])
  })

  it('says whose failure it was', async () => {
    const nonsense = says('Gate', { 'toolCall.before': { action: 'maybe' } as never })
    const { action, error, record } = await judge([nonsense], before)
    expect({ action, record }).toMatchObject({
      action: 'fail',
      record: { error: { policy: 'Gate', cause: 'nonsense' } },
    })
    expect(error?.message).toContain('maybe')
  })

  it('has no record of nobody, and a step that failed is no fault of theirs', async () => {
    expect(await judge([], before)).toMatchObject({ action: 'proceed', by: 'engine', record: undefined })
    const failed: Posed = { ...after, outcome: { ok: false, error: { name: 'Error', message: 'timed out' } } }
    expect(await judge([], failed)).toMatchObject({ action: 'pass', by: 'engine', record: undefined, error: undefined })
  })
})
