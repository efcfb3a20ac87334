import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { liveChildren } from '../child/child.ts'
import { folderOf } from '../testing/folder.ts'
import { codesOf, faultsOf, load, manifest } from '../testing/policies.ts'
import { loadPolicies } from './load.ts'

const yaml = (text: string) => ({ 'sluice.yaml': text })
const PLUGIN = { 'gate.json': manifest('gate', 'Gate'), 'gate.mjs': '' }
const rule = (name: string, rest = '') =>
  `  - { rule: ${name}, seam: toolCall.before, verdict: reject, reason: no${rest} }\n`

describe('a policy file', () => {
  it('installs plugins and rules in the order in which it lists them, then what flags name, and starts nothing', async () => {
    const other = folderOf({ 'late.json': manifest('late', 'Late'), 'late.mjs': '' })
    const { policies } = await load(
      { ...PLUGIN, ...yaml(`policies:\n${rule('first')}  - plugin: gate.json\n${rule('last')}`) },
      { plugins: [join(other, 'late.json')] },
    )
    expect(policies.map(({ name, plugin, origin }) => [name, plugin, origin])).toEqual([
      ['first', 'sluice.yaml', 'sluice.yaml:2'],
      ['Gate', 'gate', 'sluice.yaml:3'],
      ['last', 'sluice.yaml', 'sluice.yaml:4'],
      ['Late', 'late', `--plugin ${join(other, 'late.json')}`],
    ])
    expect(liveChildren()).toBe(0)
  })
  it('says how each is installed', async () => {
    const terms = `
    mode: shadow
    onFailure: pass
    timeoutMs: 250
    breaker: { failures: 5, openMs: 30000 }
    fields: [cmd]
    mayModify: [cmd]
    match: subject.toolName == "shell"`
    const { policies } = await load({ ...PLUGIN, ...yaml(`policies:\n  - plugin: gate.json${terms}`) })
    expect(policies[0]).toMatchObject({
      version: '1.0.0',
      mode: 'shadow',
      onFailure: 'pass',
      timeoutMs: 250,
      breaker: { failures: 5, openMs: 30_000 },
      fields: ['cmd'],
      mayModify: ['cmd'],
      match: { reads: 'subject' },
    })
    expect(policies[0]?.match?.matches({ subject: { toolName: 'shell' }, labels: [] })).toBe(true)
    expect(policies[0]?.match?.matches({ subject: { toolName: 'search' }, labels: [] })).toBe(false)
    expect(() => policies[0]?.match?.matches({ subject: {}, labels: [] })).toThrow('cannot be evaluated')
  })
  it('finds manifests from its own folder', async () => {
    const folder = folderOf({ ...PLUGIN, ...yaml('policies: [{ plugin: gate.json }]') })
    const { policies } = await loadPolicies(
      join(folder, 'sluice.yaml'),
      { plugins: [], config: {}, env: {} },
      { environment: {}, cwd: '/', runtime: 'file:///none' },
    )
    expect(policies.map(({ name }) => name)).toEqual(['Gate'])
  })
  it('sets each policy up; settings given by flags take the place of those of that type', async () => {
    const both = {
      ...PLUGIN,
      'other.json': manifest('other', 'Other'),
      'other.mjs': '',
      ...yaml(
        'policies:\n  - plugin: gate.json\n    config: { Gate: { max: 1, min: 0 } }\n  - plugin: other.json\n    config: { Other: { a: 1 } }',
      ),
    }
    const { policies } = await load(both, { config: { Gate: { max: 2 } } })
    expect(policies.map(({ component }) => component)).toEqual([{ max: 2 }, { a: 1 }])
  })
  it('may be JSON, and name its schema', async () => {
    const { policies } = await load(
      yaml('{ "$schema": "x.json", "policies": [{ "rule": "r", "seam": "run.after", "verdict": "pass" }] }'),
    )
    expect(policies.map(({ name }) => name)).toEqual(['r'])
  })
  it('that is not there is an error of its own', async () => {
    await expect(load({})).rejects.toMatchObject({
      code: 'POLICY_FILE_READ',
      message: expect.stringContaining('no such file'),
    })
  })
})

describe('what is wrong with a policy file', () => {
  it('is told all at once, each at its line and column, with the mend', async () => {
    const faults = await faultsOf({
      ...PLUGIN,
      ...yaml(`policies:
  - plugin: gate.json
    config: { Gaet: {} }
    mode: watch
    match: subject.toolNme == "shell"
  - plugin: nowhere.json
  - rule: no-shell
    seam: toolCall.before
    when: |
      has(input.cmd) &&
        re(inptu.cmd, "rm")
    verdict: reject
    reason: "not \\"that\\": \${inptu.cmd}"
    extra: 1
`),
    })
    expect(codesOf(faults)).toEqual([
      'PLUGIN_CONFIG_TYPE 3:15',
      'POLICY_FILE_VALUE 4:11',
      'POLICY_FILE_CEL 5:20',
      'PLUGIN_MANIFEST_FILE 6:13',
      'POLICY_FILE_CEL 11:12',
      'POLICY_FILE_CEL 13:30',
      'POLICY_FILE_FIELD 14:5',
    ])
    expect(faults[4]?.message).toBe(
      'there is no "inptu" at toolCall.before; an expression here reads: subject, labels, input, attempt, maxAttempts, substituted.\n' +
        '  re(inptu.cmd, "rm")\n' +
        '     ^',
    )
    expect(faults[4]?.path).toBe('$.policies[2].when')
  })
  it.each([
    { name: 'what is no YAML', text: 'policies: [', code: 'POLICY_FILE_SYNTAX' },
    { name: 'two documents', text: 'policies: []\n---\npolicies: []', code: 'POLICY_FILE_SYNTAX' },
    { name: 'a key twice', text: 'policies: []\npolicies: []', code: 'POLICY_FILE_SYNTAX' },
    { name: 'a merge key', text: 'x: &x {}\npolicies: [{ <<: *x }]', code: 'POLICY_FILE_SYNTAX' },
    {
      name: 'a key that reaches into what objects inherit',
      text: 'policies: [{ __proto__: {} }]',
      code: 'POLICY_FILE_SYNTAX',
    },
    { name: 'nothing', text: '', code: 'POLICY_FILE_VALUE' },
    { name: 'more than a MiB', text: `policies: [] #${'x'.repeat(1024 * 1024)}`, code: 'POLICY_FILE_LIMIT' },
    { name: 'too deep a nesting', text: `policies: ${'['.repeat(100_000)}`, code: 'POLICY_FILE_LIMIT' },
    {
      name: 'too many aliases',
      text: `require: { run: &a [x] }\npolicies: [${'*a, '.repeat(101)}]`,
      code: 'POLICY_FILE_LIMIT',
    },
    {
      name: 'aliases that multiply',
      text: `a: &a [${'x, '.repeat(11)}]\nb: &b [${'*a, '.repeat(11)}]\nc: [${'*b, '.repeat(11)}]`,
      code: 'POLICY_FILE_LIMIT',
    },
    { name: 'two rules of one name', text: `policies:\n${rule('a')}${rule('a')}`, code: 'POLICY_FILE_VALUE' },
  ])('$name', async ({ text, code }) => {
    expect((await faultsOf(yaml(text))).map((fault) => fault.code)).toEqual([code])
  })
  it.each([
    {
      name: 'a rule that is called like a policy of a plugin',
      text: `policies:\n  - plugin: gate.json\n${rule('Gate')}`,
      at: 'POLICY_FILE_VALUE 3:13',
    },
    { name: 'a plugin twice', text: 'policies: [{ plugin: gate.json }, { plugin: ./gate.json }]', at: 'PLUGIN_TAKEN' },
    {
      name: 'settings that do not fit',
      text: 'policies:\n  - plugin: strict.json\n    config: { Strict: { max: x } }',
      at: 'PLUGIN_CONFIG 3:23',
    },
    { name: 'settings that are missing (E7)', text: 'policies:\n  - plugin: strict.json', at: 'PLUGIN_CONFIG 2:13' },
    {
      name: 'a selector that reads what one of the halves does not show',
      text: 'policies:\n  - plugin: wide.json\n    match: input.cmd == "x"',
      at: 'POLICY_FILE_CEL 3:12',
    },
    {
      name: 'rules about the policies of a plugin that has none',
      text: 'policies:\n  - plugin: tools.json\n    mode: shadow',
      at: 'POLICY_FILE_FIELD 3:5',
    },
  ])('$name', async ({ text, at }) => {
    const schema = { type: 'object', required: ['max'], properties: { max: { type: 'integer' } } }
    const files = {
      ...PLUGIN,
      'strict.json': manifest('strict', 'Strict', { schema }),
      'strict.mjs': '',
      'wide.json': manifest('wide', 'Wide', { seams: { toolCall: ['before'], nodeError: ['after'] } }),
      'wide.mjs': '',
      'tools.json': JSON.stringify({ name: 'tools', version: '1', tools: [{ name: 'where', path: 'where.sh' }] }),
      'where.sh': '#!/bin/sh\n',
      ...yaml(text),
    }
    const told = await faultsOf(files).then(codesOf, ({ code }) => [code])
    expect(told).toEqual([at])
  })
})

it('refuses a rule that is called like a policy which a flag installs', async () => {
  const plugins = [join(folderOf(PLUGIN), 'gate.json')]
  expect(codesOf(await faultsOf(yaml(`policies:\n${rule('Gate')}`), { plugins }))).toEqual(['POLICY_FILE_VALUE 2:13'])
})

describe('the environment of a plugin of the file', () => {
  const program = '#!/bin/sh\nprintf \'{"home":"%s","token":"%s","other":"%s"}\' "$HOME" "$TOKEN" "$OTHER"\n'
  const files = {
    'where.json': JSON.stringify({ name: 'where', version: '1', tools: [{ name: 'where', path: 'where.sh' }] }),
    'where.sh': program,
  }
  const told = async (text: string) => {
    const { plugins } = await load(
      { ...files, ...yaml(text) },
      { environment: { TOKEN: 't', OTHER: 'o', HOME: '/h' }, env: { OTHER: 'flag' } },
    )
    return plugins.tools[0]?.run({}, { signal: new AbortController().signal } as never)
  }
  it('is empty but for what its entry names; what flags name is for the plugins of flags', async () => {
    expect(await told('policies: [{ plugin: where.json }]')).toEqual({ home: '', token: '', other: '' })
    expect(await told('policies: [{ plugin: where.json, env: [TOKEN] }]')).toEqual({ home: '', token: 't', other: '' })
  })
})

describe('a variable that an entry names and that is not set', () => {
  it('is told when the file is loaded', async () => {
    const { warnings } = await load({ ...PLUGIN, ...yaml('policies:\n  - { plugin: gate.json, env: [GATE_KEY] }') })
    expect(warnings).toEqual(['sluice.yaml:2: the variable GATE_KEY of plugin "gate" is not set'])
  })
})

describe('a plugin that is pinned', () => {
  const sha = (text: string) => createHash('sha256').update(text).digest('hex')
  const files = { 'gate.json': manifest('gate', 'Gate'), 'gate.mjs': 'serve({})' }
  // What `sha256sum gate.json gate.mjs | sha256sum` prints.
  const digest = `sha256:${sha(
    Object.entries(files)
      .map(([name, text]) => `${sha(text)}  ${name}\n`)
      .join(''),
  )}`
  const pinned = (to: string) => yaml(`policies:\n  - plugin: gate.json\n    digest: ${to}`)

  it('is loaded when manifest and program are those of the digest', async () => {
    expect((await load({ ...files, ...pinned(digest) })).policies).toHaveLength(1)
  })
  it('is refused when one of them is another, with the digest that it has', async () => {
    const [fault] = await faultsOf({ ...files, 'gate.mjs': 'serve({ })', ...pinned(digest) })
    expect(fault).toMatchObject({ code: 'PLUGIN_DIGEST', line: 3, column: 13 })
    expect(fault?.message).toMatch(/its files have the digest sha256:[0-9a-f]{64}\.$/)
  })
  it('is not even read when it is a module with another digest, for reading it runs it', async () => {
    const content = `globalThis.ran = true; export default { manifest: ${files['gate.json']}, handlers: {} }`
    const module = { 'gate-module.mjs': content }
    const pinnedModule = (to: string) => yaml(`policies:\n  - plugin: gate-module.mjs\n    digest: ${to}`)
    const [fault] = await faultsOf({ ...module, ...pinnedModule(digest) })
    expect(fault).toMatchObject({ code: 'PLUGIN_DIGEST', line: 3, column: 13 })
    expect(globalThis).not.toHaveProperty('ran')
    const [, right = ''] = /(sha256:[0-9a-f]{64})\.$/.exec(fault?.message ?? '') ?? []
    expect((await load({ ...module, ...pinnedModule(right) })).policies).toHaveLength(1)
  })
  it('includes the files that its command names, and the programs of its tools', async () => {
    const tools = [{ name: 'tool', path: 'tool.sh' }]
    const content = JSON.stringify({ ...JSON.parse(files['gate.json']), command: ['node', 'main.js', '--fast'], tools })
    const all = { 'gate.json': content, 'main.js': 'serve({})', 'tool.sh': '#!/bin/sh\n' }
    const [fault] = await faultsOf({ ...all, ...pinned(`sha256:${'0'.repeat(64)}`) })
    const expected = sha(
      Object.entries(all)
        .map(([name, text]) => `${sha(text)}  ${name}\n`)
        .join(''),
    )
    expect(fault?.message).toContain(expected)
  })
})

describe('what is required', () => {
  const told = (event: string) =>
    `  - adapter: command-hooks\n    name: Told\n    hooks:\n      ${event}: [{ hooks: [{ type: command, command: ./told.sh }] }]\n`
  const requiring = (require: string, entry = rule('gate')) => yaml(`policies:\n${entry}require: ${require}`)

  it('is there and enforces', async () => {
    expect((await load(requiring('{ toolCall: [gate] }'))).policies).toHaveLength(1)
  })
  it('may be hooks that judge there', async () => {
    const judging = `${told('PostToolUseFailure')}      PreToolUse: [{ hooks: [{ type: command, command: ./told.sh }] }]\n`
    expect((await load(requiring('{ toolCall: [Told] }', judging))).policies).toHaveLength(1)
  })
  it('may be installed by a flag', async () => {
    const folder = folderOf(PLUGIN)
    const { policies } = await load(yaml('require: { toolCall: [Gate] }'), { plugins: [join(folder, 'gate.json')] })
    expect(policies).toHaveLength(1)
  })
  it.each([
    {
      name: 'is missing',
      text: requiring('{ toolCall: [other] }'),
      why: 'policy "other" is not installed, and nothing runs without it.',
    },
    {
      name: 'is missing where nothing is installed at all',
      text: yaml('require: { toolCall: [gate] }'),
      why: 'policy "gate" is not installed',
    },
    {
      name: 'a seam where nothing is installed at all',
      text: yaml('require: { toolCall: [] }'),
      why: 'no policy that enforces is consulted at toolCall.',
    },
    {
      name: 'is off',
      text: requiring('{ toolCall: [gate] }', rule('gate', ', mode: off')),
      why: 'policy "gate" is in mode "off"',
    },
    {
      name: 'is in shadow',
      text: requiring('{ toolCall: [gate] }', rule('gate', ', mode: shadow')),
      why: 'in mode "shadow"',
    },
    {
      name: 'stands elsewhere',
      text: requiring('{ modelCall: [gate] }'),
      why: 'policy "gate" is not consulted at modelCall',
    },
    {
      name: 'a seam where nobody enforces',
      text: requiring('{ run: [] }'),
      why: 'no policy that enforces is consulted at run.',
    },
    {
      name: 'a seam where nothing enforces',
      text: requiring('{ toolCall: [] }', rule('gate', ', mode: shadow')),
      why: 'no policy that enforces is consulted at toolCall.',
    },
    {
      name: 'hooks that are only told',
      text: requiring('{ toolCall: [Told] }', told('PostToolUseFailure')),
      why: 'policy "Told" is only told at toolCall and decides nothing there',
    },
    {
      name: 'a seam where hooks are only told',
      text: requiring('{ run: [] }', told('SessionEnd')),
      why: 'no policy that enforces is consulted at run.',
    },
    {
      name: 'a half that admits nothing but to go on',
      text: requiring('{ ask: [gate] }', '  - { rule: gate, seam: ask.after, verdict: pass }\n'),
      why: 'policy "gate" is only told at ask and decides nothing there',
    },
  ])('refuses to start: $name', async ({ text, why }) => {
    const [fault] = await faultsOf(text)
    expect(fault?.code).toBe('POLICY_REQUIRED')
    expect(fault?.message).toContain(why)
  })
})
