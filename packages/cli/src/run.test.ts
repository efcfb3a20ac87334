import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { flowOf, folderOf, policyManifest, sluice, start, text, toolNode } from './testing/command.ts'

const ECHO = '#!/usr/bin/env node\nprocess.stdin.pipe(process.stdout)\n'

function echoing(files: Readonly<Record<string, string | object>> = {}): string {
  const said = [text('said')]
  return folderOf({
    'flow.json': flowOf({ nodes: { echo: toolNode('echo', said, said) }, inputs: said, outputs: said }),
    echo: ECHO,
    ...files,
  })
}

const ENCODER = `export default {
  manifest: {
    name: 'short', version: '1.0.0',
    components: [{ componentType: 'Short', kind: 'encoder', protocol: 'short', contentType: 'application/x-ndjson' }],
  },
  handlers: { Short: { n: 0, encode({ type }) { this.n++; return [{ event: type, data: this.n }] }, finish: () => [{ data: 'over' }] } },
}`

/** Runs the flow of such a folder with its tools. */
const echo = (folder: string, ...flags: string[]) =>
  sluice('run', join(folder, 'flow.json'), '--tools-dir', folder, ...flags)

describe('sluice run', () => {
  it('prints the result to stdout as JSON, and nothing else; what is for people goes to stderr (R1)', async () => {
    const folder = echoing()
    const run = await echo(folder, '--input', '{"said":"hello"}')
    expect(run).toMatchObject({ code: 0, stdout: '{"said":"hello"}\n' })
    expect(run.stderr).toMatch(
      /^● test\n {2}✓ start .*\n {2}→ echo {2}echo \{"said":"hello"\}\n {2}✓ echo .*\n {2}✓ end .*\n$/,
    )
  })

  it('takes the input from a file', async () => {
    const folder = echoing({ 'input.json': { said: 'from a file' } })
    const run = await echo(folder, '--input', `@${join(folder, 'input.json')}`)
    expect(run.stdout).toBe('{"said":"from a file"}\n')
  })

  it('prints every event as a line of JSON with --events; the last one has the result', async () => {
    const folder = echoing()
    const run = await echo(folder, '--input', '{"said":"hi"}', '--events')
    const events = run.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(events[0]).toMatchObject({ type: 'run_start', graphName: 'test' })
    expect(events.at(-1)).toMatchObject({ type: 'run_end', status: 'completed', result: { said: 'hi' } })
  })

  it('prints frames with --protocol, a line each, as a plugin renders the events, and no result (R1)', async () => {
    const folder = echoing({ 'short.mjs': ENCODER })
    const flags = ['--input', '{"said":"hi"}', '--plugin', join(folder, 'short.mjs'), '--protocol', 'short']
    const run = await echo(folder, ...flags)
    const frames = run.stdout.trim().split('\n')
    expect(run.code).toBe(0)
    expect(frames[0]).toBe('{"event":"run_start","data":1}')
    expect(frames.slice(-2)).toEqual([`{"event":"run_end","data":${frames.length - 1}}`, '{"data":"over"}'])
    expect((await echo(folder, ...flags.slice(0, -1), 'sluice')).stdout).toContain('{"event":"run_end","data":{"type":')
  })

  it('ends the run when its events cannot be rendered, and exits 1', async () => {
    const folder = echoing({ 'short.mjs': ENCODER.replace('this.n++', 'throw new Error("no such event")') })
    const flags = ['--plugin', join(folder, 'short.mjs'), '--protocol', 'short']
    const run = await echo(folder, '--input', '{"said":"hi"}', ...flags)
    expect(run).toMatchObject({ code: 1, stdout: '' })
    expect(run.stderr).toMatch(/PLUGIN_HANDLER {2}no such event[\s\S]*✗ cancelled/)
  })

  it.each([
    {
      name: 'a protocol that nobody renders',
      flags: ['--protocol', 'ag-ui'],
      says: /PLUGIN_PROTOCOL_UNKNOWN .*sluice\.$/,
    },
    { name: '--events beside --protocol', flags: ['--events', '--protocol', 'sluice'], says: /CLI_FLAGS .*give one/ },
  ])('refuses $name before anything runs', async ({ flags, says }) => {
    const run = await echo(echoing(), '--input', '{"said":"hi"}', ...flags)
    expect(run).toMatchObject({ code: 2, stdout: '' })
    expect(run.stderr.trim()).toMatch(says)
  })

  it('asks plugins for their tools where it is told to with --discover-tools, and else starts none (M5)', async () => {
    const said = [text('said')]
    const folder = folderOf({
      'flow.json': flowOf({ nodes: { echo: toolNode('found', said, said) }, inputs: said, outputs: said }),
      'finder.json': { name: 'finder', version: '1.0.0', discoverTools: true },
      'finder.mjs': `serve({}, { listTools: () => [{ name: 'found' }], tools: { found: ({ said }) => ({ said: said + '!' }) } })`,
    })
    const flags = ['--input', '{"said":"hi"}', '--plugin', join(folder, 'finder.json')]
    const refused = await sluice('run', join(folder, 'flow.json'), ...flags)
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('PLUGIN_DISCOVERY') })
    const run = await sluice('run', join(folder, 'flow.json'), ...flags, '--discover-tools')
    expect(run.stdout).toBe('{"said":"hi!"}\n')
  })

  it('exits 1 when the run fails, with the reason as the last line', async () => {
    const folder = echoing({ echo: '#!/usr/bin/env node\nconsole.error("no luck"); process.exit(3)\n' })
    const run = await echo(folder, '--input', '{"said":"hi"}')
    expect(run).toMatchObject({ code: 1, stdout: '' })
    expect(run.stderr.trim().split('\n').at(-1)).toMatch(/^✗ failed {2}TOOL_FAILED .*exit code 3.*no luck/)
  })

  it('says that the time is over when a run meets its time budget (Z18)', async () => {
    const folder = echoing({ echo: '#!/usr/bin/env node\nsetInterval(() => {}, 1000)\n' })
    const run = await echo(folder, '--input', '{"said":"hi"}', '--timeout', '400')
    expect(run.code).toBe(1)
    expect(run.stderr).toMatch(/RUN_TIMED_OUT .*timed out after 400 ms/)
  })

  it('shows control characters of documents, tools and policies as escapes', async () => {
    const evil = 'x\u001b[2J\ny'
    const folder = echoing({
      'gate.json': policyManifest('Gate', { toolCall: ['before'] }),
      'gate.mjs': `serve({ Gate: { toolCall: { before: () => ({ action: 'reject', reason: ${JSON.stringify(evil)} }) } } })`,
    })
    const run = await echo(folder, '--plugin', join(folder, 'gate.json'), '--input', '{"said":"hi"}')
    expect(run.stderr).toContain('x\\u001b[2J\\ny')
    expect(run.stderr).not.toContain('\u001b')
  })

  it('cancels the run at Ctrl+C, ends what it started, and exits 130', async () => {
    const folder = echoing({
      echo: '#!/usr/bin/env node\nprocess.stderr.write("started"); setInterval(() => {}, 1000)\n',
    })
    const run = start(['run', join(folder, 'flow.json'), '--tools-dir', folder, '--input', '{"said":"hi"}'])
    await run.says('→ echo')
    run.signal('SIGINT')
    const { code, stderr } = await run.ended
    expect(code).toBe(130)
    expect(stderr).toMatch(/✗ cancelled {2}RUN_CANCELLED/)
  })

  it('gives a policy the limits that the flags set (A7)', async () => {
    const folder = echoing({
      'gate.json': policyManifest('Retry', { nodeError: ['after'] }),
      'gate.mjs': `serve({ Retry: { nodeError: { after: () => ({ action: 'retry' }) } } })`,
      echo: '#!/usr/bin/env node\nprocess.exit(1)\n',
    })
    const run = await echo(
      folder,
      '--plugin',
      join(folder, 'gate.json'),
      '--input',
      '{"said":"hi"}',
      '--max-node-attempts',
      '2',
    )
    expect(run.stderr).toMatch(/attempt 1 of 2/)
    expect(run.stderr).toMatch(/attempt 2 of 2 was the last/)
    expect(run.code).toBe(1)
  })
})

describe('what is wrong before anything runs', () => {
  it.each([
    { name: 'no such file', args: ['nowhere.json'], says: /FLOW_FILE .*nowhere\.json/ },
    { name: 'an input that is no JSON', args: ['flow.json', '--input', '{'], says: /CLI_INPUT .*--input is no JSON/ },
    {
      name: 'an input that is a list',
      args: ['flow.json', '--input', '[1]'],
      says: /CLI_INPUT .*must be a JSON object/,
    },
    {
      name: 'an input file that is not there',
      args: ['flow.json', '--input', '@gone.json'],
      says: /CLI_INPUT .*cannot be read/,
    },
    {
      name: 'a limit that is no number',
      args: ['flow.json', '--max-iterations', 'many'],
      says: /give a whole number of 1 or more/,
    },
    { name: 'an unknown flag', args: ['flow.json', '--fast'], says: /unknown option '--fast'/ },
    {
      name: 'a plugin that is not there',
      args: ['flow.json', '--plugin', 'gone.json'],
      says: /PLUGIN_MANIFEST_FILE .*gone\.json/,
    },
    {
      name: 'a plugin that is a folder',
      args: ['flow.json', '--plugin', '.'],
      says: /PLUGIN_MANIFEST_FILE .*no \.json file/,
    },
    {
      name: 'settings for a type that nobody provides (E8)',
      args: ['flow.json', '--plugin-config', 'Gate={}'],
      says: /PLUGIN_CONFIG_TYPE .*"Gate".*no middleware is loaded/,
    },
    {
      name: 'settings that are no JSON',
      args: ['flow.json', '--plugin-config', 'Gate={'],
      says: /PLUGIN_CONFIG_ARGUMENT/,
    },
    { name: 'a tools folder that is not there', args: ['flow.json', '--tools-dir', 'gone'], says: /TOOLS_DIR/ },
    { name: 'a tool that nothing provides', args: ['flow.json'], says: /FLOW_TOOLS_MISSING .*"echo"/ },
  ])('exits 2 for $name', async ({ args, says }) => {
    const folder = echoing()
    const paths = args.map((word) =>
      /\.json$/.test(word) && !word.startsWith('@') ? join(folder, word) : word === '.' ? folder : word,
    )
    const run = await sluice('run', ...paths)
    expect(run).toMatchObject({ code: 2, stdout: '' })
    expect(run.stderr).toMatch(says)
    expect(run.stderr).not.toMatch(/^\s+at /m)
  })

  it('is every fault of a document, with its line', async () => {
    const folder = folderOf({
      'flow.json': JSON.stringify(
        flowOf({ nodes: { a: { component_type: 'MapNode' }, b: { component_type: 'Nonsense' } } }),
        null,
        2,
      ),
    })
    const run = await sluice('run', join(folder, 'flow.json'))
    expect(run.code).toBe(2)
    expect(run.stderr).toMatch(/FLOW_TYPE_UNSUPPORTED .*flow\.json:\d+:\d+/)
    expect(run.stderr).toMatch(/FLOW_TYPE_UNKNOWN .*flow\.json:\d+:\d+ {2}\$\.\$referenced_components\.b/s)
    expect(run.stderr.match(/^FLOW_/gm)?.length).toBeGreaterThan(1)
    expect(run.stderr).toMatch(/\n\d+ faults\n$/)
  })

  it('is an input that the flow does not take, or lacks', async () => {
    const folder = echoing()
    const run = (input: string) => echo(folder, '--input', input)
    expect(await run('{}')).toMatchObject({ code: 2, stderr: expect.stringMatching(/^FLOW_VALUE_MISSING .*"said"/) })
    expect(await run('{"said":"x","more":1}')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^FLOW_VALUE_UNKNOWN .*"more"/),
    })
  })

  it('is a model key whose variable is not set, named when the model is asked', async () => {
    const llm = { component_type: 'OpenAiConfig', id: 'm', name: 'm', model_id: 'gpt', api_key: '$SLUICE_TEST_KEY' }
    const folder = folderOf({
      'flow.json': flowOf({ nodes: { ask: { component_type: 'LlmNode', prompt_template: 'hi', llm_config: llm } } }),
    })
    const run = await sluice('run', join(folder, 'flow.json'))
    expect(run.code).toBe(1)
    expect(run.stderr).toMatch(/MODEL_KEY_MISSING .*SLUICE_TEST_KEY/)
  })
})

describe('sluice validate', () => {
  it('says what a sound document is (N6)', async () => {
    const folder = echoing()
    expect(await sluice('validate', join(folder, 'flow.json'))).toMatchObject({
      code: 0,
      stdout: 'flow "test" is sound: 3 nodes\n',
    })
  })

  it('exits 2 for a document with faults (N6)', async () => {
    const folder = folderOf({ 'flow.yaml': 'component_type: Flow\nname: x\n' })
    const run = await sluice('validate', join(folder, 'flow.yaml'))
    expect(run).toMatchObject({ code: 2, stdout: '' })
    expect(run.stderr).toMatch(/FLOW_\w+ .*flow\.yaml:1:1/)
  })
})

describe('sluice', () => {
  it('says its version', async () => {
    const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
    expect(await sluice('--version')).toMatchObject({ code: 0, stdout: `${version}\n` })
  })

  it('says how it is used, and each command too', async () => {
    expect((await sluice('--help')).stdout).toMatch(/run .*run a flow[\s\S]*validate [\s\S]*threads [\s\S]*asks /)
    expect((await sluice('run', '--help')).stdout).toMatch(
      /--max-tool-rounds[\s\S]*--thread [\s\S]*Exit codes.* 3 paused/,
    )
    expect((await sluice('threads', '--help')).stdout).toMatch(/ls [\s\S]*show [\s\S]*fork [\s\S]*rm [\s\S]*export /)
  })

  it('exits 2 for a command that does not exist', async () => {
    expect(await sluice('fly')).toMatchObject({ code: 2, stdout: '' })
  })
})
