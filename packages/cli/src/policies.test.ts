import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { flowOf, folderOf, policyManifest, start, text, toolNode } from './testing/command.ts'

const ECHO = '#!/usr/bin/env node\nprocess.stdin.pipe(process.stdout)\n'
const said = [text('said')]
const RULE = `policies:
  - rule: no-shouting
    seam: toolCall.before
    when: re(input.said, "!$")
    verdict: reject
    reason: Not so loud.
`
const files = {
  'flow.json': flowOf({ nodes: { echo: toolNode('echo', said, said) }, inputs: said, outputs: said }),
  echo: ECHO,
}

/** Runs the flow in a folder with these files beside it, as somebody who stands there. */
function run(more: Readonly<Record<string, string | object>>, flags: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const folder = folderOf({ ...files, ...more })
  const given = ['run', 'flow.json', '--tools-dir', '.', '--input', '{"said":"hello!"}', ...flags]
  return start(given, { ...process.env, SLUICE_POLICIES: '', ...env }, folder).ended
}

describe('a policy file on the command line', () => {
  it('is loaded when --policies names it', async () => {
    const { code, stderr } = await run({ 'sluice.yaml': RULE }, ['--policies', 'sluice.yaml'])
    expect(code).toBe(1)
    expect(stderr).toContain('policy "no-shouting" refused the call of tool "echo": Not so loud.')
    expect(stderr).not.toContain('is not loaded')
  })
  it('is loaded when SLUICE_POLICIES names it; the flag goes before', async () => {
    const env = { SLUICE_POLICIES: 'sluice.yaml' }
    expect((await run({ 'sluice.yaml': RULE }, [], env)).code).toBe(1)
    const other = await run({ 'sluice.yaml': RULE, 'none.yaml': 'policies: []' }, ['--policies', 'none.yaml'], env)
    expect(other).toMatchObject({ code: 0, stdout: '{"said":"hello!"}\n' })
  })
  it('is mentioned and not loaded when it only lies there', async () => {
    const { code, stdout, stderr } = await run({ 'sluice.yaml': RULE }, [])
    expect({ code, stdout }).toEqual({ code: 0, stdout: '{"said":"hello!"}\n' })
    expect(stderr).toContain('· sluice.yaml lies here and is not loaded; --policies sluice.yaml loads it\n')
  })
  it('comes before plugins of flags, whose settings win', async () => {
    const program = `serve({ Mark: { toolCall: { before: ({ input }, ctx) => ({ action: 'modify', input: { said: input.said + ctx.component.mark } }) } } })`
    const first = { 'mark.json': policyManifest('Mark', { toolCall: ['before'] }), 'mark.mjs': program }
    const last = {
      'last.json': policyManifest('Last', { toolCall: ['before'] }),
      'last.mjs': program.replace('Mark:', 'Last:').replace('ctx.component.mark', '"?"'),
    }
    const policies = 'policies:\n  - plugin: mark.json\n    config: { Mark: { mark: a } }\n'
    // A marker that adds each time it is asked would change what was judged: the first answers only once.
    const once = {
      ...first,
      'mark.mjs': program.replace('({ action', '/\\?/.test(input.said) ? { action: "proceed" } : ({ action'),
    }
    const flags = ['--policies', 'sluice.yaml', '--plugin', 'last.json', '--plugin-config', 'Mark={"mark":"b"}']
    const { stdout } = await run({ ...once, ...last, 'sluice.yaml': policies }, flags)
    expect(stdout).toBe('{"said":"hello!b?"}\n')
  })
  it('with faults starts nothing; each is told with its place and what stands there', async () => {
    const broken = RULE.replace('input.said', 'inptu.said').replace('reject', 'rejct')
    const { code, stdout, stderr } = await run({ 'sluice.yaml': broken }, ['--policies', 'sluice.yaml'])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain('POLICY_FILE_CEL  sluice.yaml:4:14  $.policies[0].when\n')
    expect(stderr).toContain('    when: re(inptu.said, "!$")\n             ^\n')
    expect(stderr).toContain('POLICY_FILE_VALUE  sluice.yaml:5:14')
    expect(stderr).toContain('2 faults\n')
  })
  it.each([
    { what: 'what reads expressions', part: 'node_modules/@marcbachmann/cel-js', flags: ['--policies', 'sluice.yaml'] },
    { what: 'what a decision log needs', part: 'decisions/revision.js', flags: ['--decisions', 'log.jsonl'] },
  ])('costs a run without one nothing: $what is not even loaded', async ({ part, flags: using }) => {
    const loads = async (flags: readonly string[]) => {
      const coverage = join(folderOf({}), 'coverage')
      await run({ 'sluice.yaml': RULE }, flags, { NODE_V8_COVERAGE: coverage })
      const loaded = readdirSync(coverage).flatMap((file) => {
        const { result } = JSON.parse(readFileSync(join(coverage, file), 'utf8')) as { result: { url: string }[] }
        return result.map(({ url }) => url).filter((url) => url.includes('/bundle/'))
      })
      return loaded.some((url) => readFileSync(new URL(url), 'utf8').includes(part))
    }
    expect(await loads([])).toBe(false)
    expect(await loads(using)).toBe(true)
  })
  it('stands in the command that answers a question', async () => {
    const ask = RULE.replace('verdict: reject\n    reason: Not so loud.', 'verdict: suspend\n    ask: May it shout?')
    const { code, stderr } = await run({ 'sluice.yaml': ask }, ['--policies', 'sluice.yaml', '--thread', 't'])
    expect(code).toBe(3)
    expect(stderr).toMatch(/sluice run flow\.json --tools-dir \. --policies sluice\.yaml .*--resume --answer/)
  })
})

describe('command hooks of a policy file, on the command line', () => {
  const hooks = (command: string) => ({ PreToolUse: [{ matcher: 'echo', hooks: [{ type: 'command', command }] }] })
  const flags = ['--policies', 'sluice.yaml']

  it('refuse a call with exit code 2, and stderr says why', async () => {
    const guard = '#!/bin/sh\nread -r call\ncase "$call" in *hello!*) echo "Not so loud." >&2; exit 2;; esac\n'
    const policies = { policies: [{ adapter: 'command-hooks', settings: 'settings.json' }] }
    const given = { 'guard.sh': guard, 'settings.json': { hooks: hooks('./guard.sh') }, 'sluice.yaml': policies }
    const { code, stderr } = await run(given, flags)
    expect(code).toBe(1)
    expect(stderr).toContain('policy "CommandHooks" refused the call of tool "echo": Not so loud.')
    const quiet = await run(given, [...flags, '--input', '{"said":"hello"}'])
    expect(quiet).toMatchObject({ code: 0, stdout: '{"said":"hello"}\n' })
  })
  it('let a person decide where a hook asks', async () => {
    const asks = { permissionDecision: 'ask', permissionDecisionReason: 'May it shout?' }
    const hook = `#!/bin/sh\necho '${JSON.stringify({ hookSpecificOutput: { hookEventName: 'PreToolUse', ...asks } })}'\n`
    const policies = { policies: [{ adapter: 'command-hooks', name: 'Guard', hooks: hooks('./ask.sh') }] }
    const folder = folderOf({ ...files, 'ask.sh': hook, 'sluice.yaml': policies })
    const command = ['run', 'flow.json', '--tools-dir', '.', ...flags, '--store', 'store.db', '--thread', 't']
    const env = { ...process.env, SLUICE_POLICIES: '' }
    const asked = await start([...command, '--input', '{"said":"hello!"}'], env, folder).ended
    expect(asked.code).toBe(3)
    expect(asked.stderr).toContain('May it shout?')
    const answered = await start([...command, '--resume', '--answer', 'true'], env, folder).ended
    expect(answered).toMatchObject({ code: 0, stdout: '{"said":"hello!"}\n' })
  })
})

describe('sluice policy explain', () => {
  const folder = () =>
    folderOf({ ...files, 'sluice.yaml': RULE.replace('    when', '    match: subject.toolName == "other"\n    when') })
  const explain = (cwd: string, ...flags: string[]) =>
    start(['policy', 'explain', ...flags], { ...process.env, SLUICE_POLICIES: '' }, cwd).ended

  it('prints the chain, for whom streams are held, and for a flow what nobody guards', async () => {
    const { code, stdout } = await explain(folder(), '--policies', 'sluice.yaml', '--tools-dir', '.', 'flow.json')
    expect(code).toBe(0)
    expect(stdout).toBe(
      [
        'toolCall.before  1  enforce  no-shouting  rule  on failure: fail  sluice.yaml:2  where subject.toolName == "other": 0 of 1 places',
        '',
        'streams  not held',
        '',
        'unguarded  tool "echo" (tools-dir)  from node echo',
        'unguarded  nodes                    start, echo, end',
        '',
      ].join('\n'),
    )
  })
  it('prints all of it as JSON', async () => {
    const { stdout } = await explain(folder(), '--policies', 'sluice.yaml', '--tools-dir', '.', '--json', 'flow.json')
    expect(JSON.parse(stdout)).toMatchObject({
      policies: [{ seam: 'toolCall', half: 'before', name: 'no-shouting', origin: 'sluice.yaml:2' }],
      streamsHeldBy: [],
      places: expect.arrayContaining([expect.objectContaining({ what: 'tool "echo" (tools-dir)', guarded: false })]),
    })
  })
  it('says that nothing is installed', async () => {
    const { stdout } = await explain(folderOf({}))
    expect(stdout).toBe('no policy is installed\n\nstreams  not held\n')
  })
  it('has the faults of the file, like a run', async () => {
    const { code, stderr } = await explain(folderOf({ 'p.yaml': 'policies: [{ rule: r }]' }), '--policies', 'p.yaml')
    expect(code).toBe(2)
    expect(stderr).toContain('POLICY_FILE_FIELD  p.yaml:1:12')
  })
})
