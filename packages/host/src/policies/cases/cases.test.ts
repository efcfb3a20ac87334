import { policy } from '@sluice/core'
import { describe, expect, it } from 'vitest'
import { PolicyFileError } from '../faults.ts'
import { playCases } from './play.ts'
import { readCases } from './read.ts'

const shell = policy({
  name: 'Shell',
  seams: {
    toolCall: {
      before: ({ subject, input }) =>
        subject.toolName !== 'shell'
          ? { action: 'proceed' }
          : String(input.cmd).startsWith('rm')
            ? { action: 'reject', reason: 'That is destructive.', code: 'destructive' }
            : { action: 'modify', input: { cmd: `nice ${input.cmd}` } },
    },
    nodeError: { after: (_shown, { attempt }) => (attempt < 3 ? { action: 'retry' } : { action: 'pass' }) },
  },
})
const broken = policy({
  name: 'Broken',
  seams: { toolCall: { before: () => Promise.reject(new Error('no licence')) } },
})

const play = async (text: string, policies = [shell]) => playCases(policies, await readCases(text, 'cases.yaml'))

describe('cases', () => {
  it('pass when what they expect comes of what they give', async () => {
    const results = await play(`cases:
  - name: refuses rm
    given: { seam: toolCall.before, subject: { toolName: shell }, input: { cmd: rm -rf / } }
    expect: { verdict: reject, by: Shell, reason: destructive, code: destructive }
  - given: { seam: toolCall.before, subject: { toolName: shell }, input: { cmd: ls } }
    expect: { verdict: modify, input: { cmd: nice ls } }
  - given: { seam: toolCall.before, subject: { toolName: search } }
    expect: { verdict: proceed, by: engine }
  - given: { seam: nodeError.after, outcome: { error: { message: timed out } }, attempt: 2 }
    expect: { verdict: retry }
  - given: { seam: nodeError.after, outcome: { error: { message: timed out } }, attempt: 3 }
    expect: { verdict: pass }
`)
    expect(results.flatMap(({ differences }) => differences)).toEqual([])
    expect(results.map(({ name, at, verdict }) => [name, at, verdict]).slice(0, 2)).toEqual([
      ['refuses rm', 'toolCall.before', 'reject'],
      ['cases.yaml:5', 'toolCall.before', 'modify'],
    ])
  })

  it('say what came otherwise, and whose failure it was', async () => {
    const text = `cases:
  - given: { seam: toolCall.before, subject: { toolName: shell }, input: { cmd: ls } }
    expect: { verdict: reject, reason: destructive, input: { cmd: ls } }
`
    expect((await play(text))[0]?.differences).toEqual([
      'the verdict is "modify"; expected "reject"',
      'the reason is absent; expected "destructive" in it',
      'what would run is {"cmd":"nice ls"}; expected {"cmd":"ls"}',
    ])
    expect(
      (await play(text.replace('reject, reason: destructive', 'fail'), [broken]))[0]?.differences.at(-1),
    ).toContain('policy "Broken" (plugin in-process) failed at toolCall.before of node "node": no licence')
  })

  it.each([
    { text: '[]', says: ['POLICY_FILE_VALUE 1:1'] },
    { text: 'case: []', says: ['POLICY_FILE_FIELD 1:1', 'POLICY_FILE_FIELD 1:1'] },
    { text: 'cases: [1, {}]', says: ['POLICY_FILE_VALUE 1:9', 'POLICY_FILE_FIELD 1:12', 'POLICY_FILE_FIELD 1:12'] },
    {
      text: 'cases:\n  - given: { seam: toolCall, subject: { tool: x }, outcome: {} }\n    expect: { verdict: maybe }',
      says: ['POLICY_FILE_VALUE 2:20', 'POLICY_FILE_FIELD 2:41', 'POLICY_FILE_VALUE 2:61', 'POLICY_FILE_VALUE 3:24'],
    },
  ])('that cannot be read say every fault at its place: $text', async ({ text, says }) => {
    const error = await readCases(text, 'cases.yaml').catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(PolicyFileError)
    expect((error as PolicyFileError).faults.map(({ code, line, column }) => `${code} ${line}:${column}`)).toEqual(says)
  })
})
