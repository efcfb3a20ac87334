import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { flowOf, folderOf, sluice, text, toolNode } from './testing/command.ts'
import { describeThreads, HELLO, paying } from './testing/threads.ts'

const RULES = `policies:
  - rule: no-rm
    seam: toolCall.before
    match: subject.toolName == "shell"
    when: re(input.cmd, "^rm")
    verdict: reject
    reason: That is <destructive>.
`
const CASES = `cases:
  - name: refuses rm
    given: { seam: toolCall.before, subject: { toolName: shell }, input: { cmd: rm -rf / } }
    expect: { verdict: reject, by: no-rm }
  - name: refuses "ls"
    given: { seam: toolCall.before, subject: { toolName: shell }, input: { cmd: ls } }
    expect: { verdict: reject }
`

describe('sluice policy test', () => {
  it('prints how each case went, and exits 1 for one that came otherwise', async () => {
    const folder = folderOf({ 'sluice.yaml': RULES, 'cases.yaml': CASES })
    const [policies, cases, report] = ['sluice.yaml', 'cases.yaml', 'report.xml'].map((name) => join(folder, name)) as [
      string,
      string,
      string,
    ]
    const { code, stdout, stderr } = await sluice('policy', 'test', cases, '--policies', policies, '--junit', report)
    expect(code).toBe(1)
    expect(stdout).toBe(`✓  refuses rm    toolCall.before  reject   by no-rm
✗  refuses "ls"  toolCall.before  proceed

${cases}:5  refuses "ls"
  the verdict is "proceed"; expected "reject"
`)
    expect(stderr).toBe('1 of 2 cases came as expected\n')
    const xml = readFileSync(report, 'utf8')
    expect(xml).toContain('tests="2" failures="1"')
    expect(xml).toContain('<testcase name="refuses &quot;ls&quot;" classname="toolCall.before"')
    expect(xml).toContain('message="the verdict is &quot;proceed&quot;; expected &quot;reject&quot;"')
  })

  it('finds the policy file of the examples as its cases say', async () => {
    const example = fileURLToPath(new URL('../../../examples/policy-file/', import.meta.url))
    const [policies, cases] = [join(example, 'sluice.yaml'), join(example, 'cases.yaml')]
    const { code, stderr } = await sluice('policy', 'test', cases, '--policies', policies)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '5 of 5 cases came as expected\n' })
  })

  it('exits 2 for a file that cannot be read', async () => {
    const folder = folderOf({ 'cases.yaml': 'cases: 1' })
    const { code, stderr } = await sluice('policy', 'test', join(folder, 'cases.yaml'))
    expect(code).toBe(2)
    expect(stderr).toContain('POLICY_FILE_VALUE')
    expect((await sluice('policy', 'test', join(folder, 'none.yaml'))).code).toBe(2)
  })

  it('says when the report cannot be written, after the results', async () => {
    const folder = folderOf({ 'sluice.yaml': RULES, 'cases.yaml': CASES })
    const [policies, cases, report] = ['sluice.yaml', 'cases.yaml', 'none/report.xml'].map((name) => join(folder, name))
    const { code, stdout, stderr } = await sluice(
      ...['policy', 'test', cases as string, '--policies', policies as string, '--junit', report as string],
    )
    expect(code).toBe(2)
    expect(stdout).toContain('refuses rm')
    expect(stderr).toMatch(/CLI_WRITE .*report\.xml cannot be written/)
  })
})

const said = [text('said')]
const NO_PAY = `policies:
  - rule: no-pay
    seam: toolCall.before
    match: subject.toolName == "pay"
    verdict: reject
    reason: Nobody pays here.
`

describeThreads('sluice policy replay', () => {
  it('says what other policies would have decided on recorded threads, and runs nothing', async () => {
    const site = paying({ 'new.yaml': NO_PAY, 'old.yaml': 'policies: []' })
    await site.run(...HELLO, '--thread', 'one')
    await site.run(...HELLO, '--thread', 'two')
    const ran = site.ran()
    const [flow, policies] = [join(site.folder, 'flow.json'), join(site.folder, 'new.yaml')]
    const replay = (...flags: readonly string[]) =>
      site.sluice('policy', 'replay', flow, '--policies', policies, '--tools-dir', site.folder, ...flags)
    const { code, stdout, stderr } = await replay('--against', join(site.folder, 'old.yaml'))
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: `one  toolCall.before  pay  as it was → reject by no-pay  Nobody pays here.
two  toolCall.before  pay  as it was → reject by no-pay  Nobody pays here.
`,
    })
    expect(stderr).toBe('2 threads, 2 of 2 decisions differ\n')
    expect((await replay('--exit-code', '--thread', 'one')).code).toBe(1)
    expect(await replay('--exit-code', '--against', policies)).toMatchObject({ code: 0, stdout: '' })
    expect(site.ran()).toEqual(ran)
  })

  it('compares with plugins too, which have flags of their own', async () => {
    const site = paying({
      'none.yaml': 'policies: []',
      'gate.json': JSON.stringify({
        name: 'gate',
        version: '1.0.0',
        capabilities: [],
        components: [
          {
            componentType: 'Gate',
            kind: 'middleware',
            seams: { toolCall: ['before'] },
            schema: { type: 'object', properties: { pays: { type: 'boolean' } } },
          },
        ],
      }),
      'gate.mjs': `serve({ Gate: { toolCall: { before: (_, ctx) =>
        ctx.component.pays ? { action: 'proceed' } : { action: 'reject', reason: 'not here' } } } })`,
    })
    await site.run(...HELLO, '--thread', 'one')
    const at = (name: string) => join(site.folder, name)
    const replay = (...flags: readonly string[]) =>
      site.sluice(
        'policy',
        'replay',
        at('flow.json'),
        '--policies',
        at('none.yaml'),
        '--tools-dir',
        site.folder,
        ...flags,
      )
    const stricter = await replay('--against-plugin', at('gate.json'))
    expect(stricter).toMatchObject({
      code: 0,
      stdout: 'one  toolCall.before  first  reject by Gate → as it was  not here\n',
    })
    const pays = ['--against-plugin-config', 'Gate={"pays":true}']
    expect((await replay('--against-plugin', at('gate.json'), ...pays, '--exit-code')).code).toBe(0)
    expect(await replay('--plugin', at('gate.json'), '--against-plugin', at('gate.json'), ...pays)).toMatchObject({
      stdout: expect.stringContaining('→ reject by Gate'),
    })
    expect(await replay(...pays)).toMatchObject({ code: 2, stderr: expect.stringContaining('nothing to compare with') })
  })

  it('refuses a thread that is not there, or is one of another flow', async () => {
    const other = JSON.stringify(flowOf({ nodes: { pay: toolNode('pay', said, said) }, inputs: said, outputs: said }))
    const site = paying({ 'new.yaml': NO_PAY, 'other.json': other.replace('"name":"test"', '"name":"other"') })
    await site.run(...HELLO, '--thread', 'one')
    const replay = (flow: string, thread: string) =>
      site.sluice(
        ...['policy', 'replay', join(site.folder, flow), '--policies', join(site.folder, 'new.yaml')],
        ...['--tools-dir', site.folder, '--thread', thread],
      )
    expect(await replay('flow.json', 'two')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('THREAD_UNKNOWN  there is no thread "two" in the store.'),
    })
    expect(await replay('other.json', 'one')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('THREAD_OF_OTHER_GRAPH'),
    })
  })
})

const ECHOING = {
  'flow.json': flowOf({ nodes: { echo: toolNode('echo', said, said) }, inputs: said, outputs: said }),
  'sluice.yaml': NO_PAY.replace('"pay"', '"echo"').replace(
    '    verdict',
    '    when: input.said == "never"\n    verdict',
  ),
  echo: '#!/usr/bin/env node\nprocess.stdin.pipe(process.stdout)\n',
}

describe('sluice run --decisions', () => {
  it('writes a record of each half that policies were consulted about, without what was said; verify checks the chain', async () => {
    const folder = folderOf(ECHOING)
    const at = (name: string) => join(folder, name)
    const log = at('decisions.jsonl')
    const run = () =>
      sluice(
        ...[
          'run',
          at('flow.json'),
          '--tools-dir',
          folder,
          '--policies',
          at('sluice.yaml'),
          '--input',
          '{"said":"MARKER"}',
        ],
        ...['--decisions', log, '--decisions-chain'],
      )
    await run()
    await run()
    const lines = readFileSync(log, 'utf8').trimEnd().split('\n')
    expect(lines.map((line) => JSON.parse(line))).toMatchObject(
      [1, 2].map(() => ({
        seam: 'toolCall',
        half: 'before',
        outcome: 'proceed',
        revision: expect.stringMatching(/^sha256:/),
      })),
    )
    expect(lines.join('\n')).not.toContain('MARKER')
    const verified = await sluice('policy', 'verify', log)
    expect(verified).toMatchObject({ code: 0, stderr: '2 records, 0 faults\n' })
    writeFileSync(log, `${lines[1]}\n`)
    expect(await sluice('policy', 'verify', log, '--head', verified.stdout.trim())).toMatchObject({ code: 1 })
  })

  it('verify says how many records were lost where a record says so, and that this is no fault', async () => {
    const first = '{"seq":1}'
    const prev = `sha256:${createHash('sha256').update(first).digest('hex')}`
    const log = join(folderOf({}), 'decisions.jsonl')
    writeFileSync(log, `${first}\n${JSON.stringify({ seq: 4, dropped: 2, prev })}\n`)
    expect(await sluice('policy', 'verify', log)).toMatchObject({
      code: 0,
      stderr: `${log}:2  says that 2 records before it could not be written: the chain goes on without\n2 records, 2 dropped, 0 faults\n`,
    })
    expect(JSON.parse((await sluice('policy', 'verify', log, '--json')).stdout)).toMatchObject({
      losses: [{ line: 2, dropped: 2 }],
      faults: [],
    })
    writeFileSync(log, `${JSON.stringify({ seq: 4, dropped: 2, prev })}\n`)
    expect(await sluice('policy', 'verify', log)).toMatchObject({ code: 1, stderr: expect.stringContaining('1 fault') })
  })

  it('says that decisions cannot be written, and stops the run where they must be', async () => {
    const folder = folderOf(ECHOING)
    const run = (...flags: readonly string[]) =>
      sluice(
        ...['run', join(folder, 'flow.json'), '--tools-dir', folder, '--policies', join(folder, 'sluice.yaml')],
        ...['--input', '{"said":"hello"}', '--decisions', join(folder, 'none', 'decisions.jsonl'), ...flags],
      )
    const lost = await run()
    expect(lost.code).toBe(0)
    expect(lost.stderr.match(/! decisions are not written, and lost: .*decisions\.jsonl/g)).toHaveLength(1)
    const required = await run('--decisions-required')
    expect(required.code).toBe(1)
    expect(required.stderr).toContain('DECISION_LOG_FAILED')
  })
})
