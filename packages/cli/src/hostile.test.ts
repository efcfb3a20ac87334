import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { command, type Ended, flowOf, folderOf, policyManifest, start, text, toolNode } from './testing/command.ts'

/** Processes whose command line names this folder: everything that was started from it. */
function processesOf(folder: string): string[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids.filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(folder)
    } catch {
      return false
    }
  })
}

/** Runs the command on files of a folder of its own, and sees that nothing of it is left. */
async function leavingNothing(
  files: Readonly<Record<string, string | object>>,
  args: (folder: string) => string[],
): Promise<Ended> {
  const folder = folderOf(files)
  const temporary = folderOf({})
  const ended = await start(args(folder), { ...process.env, TMPDIR: temporary }).ended
  expect(processesOf(folder)).toEqual([])
  expect(readdirSync(temporary)).toEqual([])
  expect(ended.stderr).not.toMatch(/^\s+at /m)
  return ended
}

const asks = policyManifest('Gate', { node: ['before'] })

/** A plugin that speaks the wire by hand: `answer(id, method)` prints what it likes. */
const speaking = (answer: string) => `#!/usr/bin/env node
const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
const proceed = { action: 'proceed' }
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line)
  if (method === 'init') return say({ id, result: { protocol: 1 } })
  if (method === 'shutdown') { say({ id, result: null }); return process.exit(0) }
  if (id === undefined) return
  ${answer}
})
`

describe.runIf(process.platform === 'linux')('a hostile plugin', () => {
  it.each([
    {
      name: 'never answers',
      program: '#!/usr/bin/env node\nsetInterval(() => {}, 1000)\n',
      says: /MIDDLEWARE_FAILED .*"Gate".*timed out/,
      code: 1,
    },
    {
      name: 'ignores that it should end',
      program:
        "#!/usr/bin/env node\nprocess.on('SIGTERM', () => {}); process.stdin.resume(); setInterval(() => {}, 1000)\n",
      says: /MIDDLEWARE_FAILED .*timed out/,
      code: 1,
    },
    {
      name: 'prints 100 MB',
      program:
        "#!/usr/bin/env node\nconst mb = 'x'.repeat(2 ** 20); let n = 0; const go = () => { while (n++ < 100) if (!process.stdout.write(mb)) return process.stdout.once('drain', go) }; go()\n",
      says: /MIDDLEWARE_FAILED .*a line of more than/,
      code: 1,
    },
    {
      name: 'exits at once',
      program: "#!/usr/bin/env node\nprocess.stderr.write('no licence'); process.exit(7)\n",
      says: /MIDDLEWARE_FAILED .*no licence/,
      code: 1,
    },
    {
      name: 'answers twice',
      program: speaking('say({ id, result: proceed }); say({ id, result: proceed })'),
      says: /answer|twice|no call/i,
      code: 0,
    },
    {
      name: 'answers for another id',
      program: speaking('say({ id: id + 1000, result: proceed }); say({ id, result: proceed })'),
      says: /answer|id/i,
      code: 0,
    },
    {
      name: 'answers nonsense',
      program: speaking("say({ id, result: { action: 'block' } })"),
      says: /MIDDLEWARE_FAILED .*"block".*does not admit/,
      code: 1,
    },
    {
      name: 'prints what is no message',
      program: speaking("console.log('debug: here')"),
      says: /MIDDLEWARE_FAILED .*stderr/,
      code: 1,
    },
  ])('that $name is a clear error or a warning, and nothing is left of it', async ({ program, says, code }) => {
    const files = { 'flow.json': flowOf(), 'gate.json': { ...asks, command: ['./gate'] }, gate: program }
    const ended = await leavingNothing(files, (folder) => [
      'run',
      join(folder, 'flow.json'),
      '--plugin',
      join(folder, 'gate.json'),
    ])
    expect(ended.stderr).toMatch(says)
    expect(ended.code).toBe(code)
  })

  it('cannot reach the terminal nor the decision log with control characters: its name, its words, its verdicts', async () => {
    const odd = 'x\u001b[2J\u009b2J\u202e'
    const program = `serve({ Gate: { node: { before({ subject }, ctx) {
      const odd = ${JSON.stringify(odd)}
      console.error(odd)
      ctx.log('info', odd)
      return subject.nodeName === 'end' ? { action: odd } : { action: 'proceed', warnings: [odd], code: odd }
    } } } })`
    const manifest = { ...asks, name: odd, version: odd, capabilities: ['log'] }
    const folder = folderOf({ 'flow.json': flowOf(), 'gate.json': manifest, 'gate.mjs': program })
    const [flow = '', gate = '', log = ''] = ['flow.json', 'gate.json', 'log'].map((name) => join(folder, name))
    const { stdout, stderr } = await start(['run', flow, '--plugin', gate, '--events', '--decisions', log]).ended
    expect(stderr.match(/x\\u001b\[2J\\u009b2J\\u202e/g)?.length).toBeGreaterThan(4)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
    expect(stdout + stderr + readFileSync(log, 'utf8')).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/)
  })
})

describe.runIf(process.platform === 'linux')('a hostile document', () => {
  const deep = (open: string, close: string) =>
    `{"component_type":"Flow","metadata":${open.repeat(10_000)}${close.repeat(10_000)}}`
  it.each([
    {
      name: 'of 10 MB',
      file: 'flow.json',
      text: JSON.stringify({ ...flowOf(), description: 'x'.repeat(10 * 2 ** 20) }),
      says: /FLOW_TOO_LARGE|FLOW_\w+ .*(MiB|bytes)/,
    },
    { name: 'nested 10,000 deep', file: 'flow.json', text: deep('[', ']'), says: /FLOW_TOO_DEEP/ },
    { name: 'nested 10,000 deep, in YAML', file: 'flow.yaml', text: deep('[', ']'), says: /FLOW_TOO_DEEP/ },
    {
      name: 'of aliases upon aliases',
      file: 'flow.yaml',
      text: `a: &a [x]\n${Array.from({ length: 20 }, (_, i) => `b${i}: &b${i} [${`*${i === 0 ? 'a' : `b${i - 1}`},`.repeat(9)}]`).join('\n')}\n`,
      says: /FLOW_\w+ .*alias/is,
    },
    { name: 'that is no text', file: 'flow.json', text: '\u0000\u0001\u0002', says: /FLOW_\w+/ },
  ])('$name is refused, and nothing is left of it', async ({ file, text, says }) => {
    const ended = await leavingNothing({ [file]: text }, (folder) => ['run', join(folder, file)])
    expect(ended.code).toBe(2)
    expect(ended.stderr).toMatch(says)
  })

  const controls = 'x\u001b[31m\u009b2J\u007f\u202e'
  const speaking = flowOf({ outputs: [text('said')] }) as { $referenced_components: { start: object } }
  Object.assign(speaking.$referenced_components.start, {
    name: controls,
    inputs: [{ ...text('said'), default: controls }],
    outputs: [],
  })
  it.each([
    { name: 'run', args: ['run'] },
    { name: 'run --events', args: ['run', '--events'] },
    { name: 'validate', args: ['validate'] },
  ])('cannot reach the terminal with control characters, nor can its file name: $name', async ({ args }) => {
    const file = 'x\u001b[31m.json'
    const ended = await leavingNothing({ [file]: speaking }, (folder) => [...args, join(folder, file)])
    expect(ended.code).toBe(0)
    expect(ended.stderr).toContain('FLOW_PORTS_EMPTY')
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
    expect(ended.stdout + ended.stderr).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/)
    if (args[0] === 'run')
      expect(
        JSON.stringify(
          ended.stdout
            .trim()
            .split('\n')
            .map((line) => JSON.parse(line)),
        ),
      ).toContain(JSON.stringify(controls))
  })

  it('that is a folder, or a manifest that is one, is refused', async () => {
    const ended = await leavingNothing({ 'flow.json': flowOf() }, (folder) => ['run', folder])
    expect(ended).toMatchObject({ code: 2, stderr: expect.stringMatching(/FLOW_FILE/) })
  })
})

describe.runIf(process.platform === 'linux')('a run whose terminal or reader is gone', () => {
  const files = {
    'flow.json': flowOf({ nodes: { nap: toolNode('nap') } }),
    nap: '#!/bin/sh\nexec sleep 60 # in this folder\n',
  }

  it('is cancelled when the terminal hangs up, and its programs end with it', async () => {
    const folder = folderOf(files)
    const run = start(['run', join(folder, 'flow.json'), '--tools-dir', folder])
    await run.says('→ nap')
    run.signal('SIGHUP')
    expect(await run.ended).toMatchObject({ code: 129, stderr: expect.stringContaining('RUN_CANCELLED') })
  })

  it('is cancelled when nobody reads its events any more, without a stack', () => {
    const tick = (id: string) => ({ ...toolNode('tick'), tool: { ...toolNode('tick').tool, id } })
    const nodes = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`n${i}`, tick(`tick-${i}`)]))
    const folder = folderOf({ 'flow.json': flowOf({ nodes }), tick: '#!/bin/sh\nsleep 0.02; echo {}\n' })
    const sluice = `'${process.execPath}' '${command}' run '${join(folder, 'flow.json')}' --tools-dir '${folder}' --events`
    const { stderr } = spawnSync('sh', ['-c', `(${sluice}; echo "code $?" >&2) | head -1`], { encoding: 'utf8' })
    expect(stderr).toContain('RUN_CANCELLED')
    expect(stderr).toContain('code 1\n')
    expect(stderr).not.toMatch(/^\s+at /m)
  })
})
