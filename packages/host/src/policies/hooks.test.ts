import { judge } from '@sluice/core/testing'
import { describe, expect, it } from 'vitest'
import { codesOf, faultsOf, load, manifest } from '../testing/policies.ts'
import { explainPolicies } from './explain.ts'

const GUARD = '#!/bin/sh\nprintf "%s" "$PWD=$CLAUDE_PROJECT_DIR $TOKEN$OTHER" >&2\nexit 2\n'
const PRE_TOOL_USE = [{ matcher: 'shell', hooks: [{ type: 'command', command: './guard.sh' }] }]
const HOOKS = `hooks: ${JSON.stringify({ PreToolUse: PRE_TOOL_USE })}`
const entry = (...fields: readonly string[]) => ({
  'guard.sh': GUARD,
  'sluice.yaml': `policies:\n  - adapter: command-hooks\n${fields.map((field) => `    ${field}\n`).join('')}`,
})
const call = (toolName: string) => ({ seam: 'toolCall', half: 'before', subject: { toolName } }) as const
const settings = (hooks: object, rest: object = {}) => ({
  'settings.json': JSON.stringify({ ...rest, hooks }, null, 2),
})

describe('hooks of a policy file', () => {
  it.each([
    { name: 'stand in it', files: entry(HOOKS) },
    {
      name: 'stand in a settings file, of which nothing else counts',
      files: {
        ...entry('settings: settings.json'),
        ...settings({ PreToolUse: PRE_TOOL_USE }, { disableAllHooks: true, permissions: { deny: ['web'] } }),
      },
    },
  ])('$name', async ({ files }) => {
    const { policies } = await load(files)
    expect(await judge(policies, call('shell'))).toMatchObject({ action: 'reject', by: 'CommandHooks' })
    expect(await judge(policies, call('web'))).toMatchObject({ action: 'proceed' })
  })
  it('run in the folder of the file and see no variables but those that it names', async () => {
    const environment = { TOKEN: 't', OTHER: 'o' }
    const { policies, folder } = await load(entry(HOOKS, 'env: [TOKEN]'), { environment })
    expect((await judge(policies, call('shell'))).reason).toBe(`${folder}=${folder} t`)
  })
  it('are told that a variable is not set when the file is loaded', async () => {
    const { warnings } = await load(entry(HOOKS, 'env: [TOKEN]'))
    expect(warnings).toEqual(['sluice.yaml:2: the variable TOKEN of adapter "CommandHooks" is not set'])
  })
  it('are installed as the entry says, and in its place', async () => {
    const rule = '  - { rule: last, seam: toolCall.before, verdict: proceed }\n'
    const terms = ['mode: shadow', 'onFailure: pass', 'timeoutMs: 250', 'match: subject.toolName == "shell"']
    const more = ['breaker: { failures: 5, openMs: 30000 }', 'fields: [cmd]', 'mayModify: [cmd]']
    const files = entry(HOOKS, 'name: Guard', ...terms, ...more)
    const { policies } = await load({ ...files, 'sluice.yaml': files['sluice.yaml'] + rule })
    expect(policies.map(({ name }) => name)).toEqual(['Guard', 'last'])
    expect(policies[0]).toMatchObject({
      origin: 'sluice.yaml:2',
      mode: 'shadow',
      onFailure: 'pass',
      timeoutMs: 250,
      breaker: { failures: 5, openMs: 30_000 },
      fields: ['cmd'],
      mayModify: ['cmd'],
      match: { reads: 'subject' },
    })
    expect(explainPolicies({ policies, file: 'sluice.yaml', sourceOf: () => undefined, tools: [] }).policies).toEqual([
      expect.objectContaining({ name: 'Guard', kind: 'hooks', mode: 'shadow', match: 'subject.toolName == "shell"' }),
      expect.objectContaining({ name: 'last', kind: 'rule' }),
    ])
  })
  it('are consulted about what `match` says', async () => {
    const { policies } = await load(entry(HOOKS, 'match: input.cmd != "ls"'))
    expect((await judge(policies, { ...call('shell'), input: { cmd: 'ls' } })).action).toBe('proceed')
    expect((await judge(policies, { ...call('shell'), input: { cmd: 'rm' } })).action).toBe('reject')
  })
  it('let their failure pass where the entry says so', async () => {
    const failing = { 'guard.sh': '#!/bin/sh\nexit 1\n' }
    const { policies: strict } = await load({ ...entry(HOOKS), ...failing })
    expect((await judge(strict, call('shell'))).error?.message).toContain('CommandHooks')
    const { policies: mild } = await load({ ...entry(HOOKS, 'onFailure: pass'), ...failing })
    expect((await judge(mild, call('shell'))).action).toBe('proceed')
  })
  it('may be required', async () => {
    const files = entry(HOOKS)
    const requiring = (name: string) => ({
      ...files,
      'sluice.yaml': `${files['sluice.yaml']}require: { toolCall: [${name}] }`,
    })
    expect((await load(requiring('CommandHooks'))).policies).toHaveLength(1)
    expect(codesOf(await faultsOf(requiring('Other')))).toEqual(['POLICY_REQUIRED 4:23'])
  })
  it('have the digest of what is run as their version, so that another settings file is another revision', async () => {
    const versionOf = async (command: string) => {
      const hooks = { PreToolUse: [{ hooks: [{ type: 'command', command }] }] }
      return (await load({ ...entry('settings: settings.json'), ...settings(hooks) })).policies[0]?.version
    }
    expect(await versionOf('./a')).toMatch(/^sha256:[0-9a-f]{64}$/)
    expect(await versionOf('./a')).not.toBe(await versionOf('./b'))
  })
})

describe('what is wrong with hooks of a policy file', () => {
  it('is told all at once, each at its line and column', async () => {
    const faults = await faultsOf(
      entry(
        'mode: watch',
        'hooks:',
        '  Stop: []',
        '  PreToolUse:',
        '    - matcher: "("',
        '      hooks:',
        '        - { type: prompt, command: x }',
        '        - { type: command, command: x, once: true }',
      ),
    )
    expect(codesOf(faults)).toEqual([
      'POLICY_FILE_VALUE 3:11',
      'COMMAND_HOOK_SETTINGS 5:7',
      'COMMAND_HOOK_SETTINGS 7:11',
      'COMMAND_HOOK_SETTINGS 9:17',
      'COMMAND_HOOK_SETTINGS 10:44',
    ])
    expect(faults[1]?.message).toContain('hooks.Stop is not served: no half lets a policy send an agent on')
  })
  it('in a settings file stands where that is named, with its place there', async () => {
    const hooks = { PreToolUse: [{ matcher: 'A,B', hooks: [{ type: 'prompt' }] }] }
    const faults = await faultsOf({ ...entry('settings: settings.json'), ...settings(hooks) })
    expect(codesOf(faults)).toEqual(['COMMAND_HOOK_SETTINGS 3:15', 'COMMAND_HOOK_SETTINGS 3:15'])
    expect(faults.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^settings\.json:5:9: .*has a comma/),
      expect.stringMatching(/^settings\.json:8:13: .*must be "command"/),
    ])
  })
  it.each([
    {
      name: 'a settings file that is not there',
      text: undefined,
      code: 'POLICY_FILE_READ',
      why: /settings file settings\.json cannot be read: there is no such file/,
    },
    { name: 'one that is no JSON', text: '{ "hooks": ', code: 'POLICY_FILE_SYNTAX', why: /^settings\.json:1:\d+: / },
    { name: 'one without hooks', text: '{}', code: 'COMMAND_HOOK_SETTINGS', why: /hooks must be an object of events/ },
    {
      name: 'one that is no object',
      text: '[]',
      code: 'COMMAND_HOOK_SETTINGS',
      why: /hooks must be an object of events/,
    },
  ])('$name', async ({ text, code, why }) => {
    const [fault, ...others] = await faultsOf({
      ...entry('settings: settings.json'),
      ...(text !== undefined && { 'settings.json': text }),
    })
    expect({ fault, others }).toMatchObject({ fault: { code, line: 3, column: 15 }, others: [] })
    expect(fault?.message).toMatch(why)
  })
  it.each([
    {
      name: 'a selector that reads what one of the halves does not show',
      files: entry('hooks: { PreToolUse: [], SessionEnd: [] }', 'match: input.cmd == "x"'),
      at: 'POLICY_FILE_CEL 4:12',
    },
    { name: 'paths that are none', files: entry(HOOKS, 'fields: [a..b]'), at: 'POLICY_FILE_VALUE 4:13' },
  ])('$name', async ({ files, at }) => {
    expect(codesOf(await faultsOf(files))).toEqual([at])
  })
  it.each([
    { name: 'another adapter', with: `  - adapter: command-hooks\n    ${HOOKS}\n`, at: 'POLICY_FILE_VALUE 4:5' },
    {
      name: 'a rule',
      with: '  - { rule: CommandHooks, seam: toolCall.before, verdict: proceed }\n',
      at: 'POLICY_FILE_VALUE 4:13',
    },
    { name: 'a policy of a plugin', with: '  - plugin: gate.json\n', at: 'POLICY_FILE_VALUE 2:5' },
  ])('a name that $name has', async ({ with: other, at }) => {
    const files = entry(HOOKS)
    const plugin = { 'gate.json': manifest('gate', 'CommandHooks'), 'gate.mjs': '' }
    expect(codesOf(await faultsOf({ ...files, ...plugin, 'sluice.yaml': files['sluice.yaml'] + other }))).toEqual([at])
  })
})
