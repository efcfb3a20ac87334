import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { folderOf, start } from './testing/command.ts'

const sluiceIn = (cwd: string, ...args: readonly string[]) => start(args, process.env, cwd).ended
const root = fileURLToPath(new URL('../../../', import.meta.url))

describe('sluice policy new', () => {
  it('makes a folder with a manifest, a policy and its test, and says what to do next', async () => {
    const folder = folderOf({})
    const { code, stdout, stderr } = await sluiceIn(folder, 'policy', 'new', 'no-rm')
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'no-rm/no-rm.json\nno-rm/no-rm.mjs\nno-rm/no-rm.test.mjs\n' })
    expect(stderr).toContain('sluice policy check --plugin no-rm/no-rm.json')
  })

  it('overwrites nothing, unless it is told to', async () => {
    const folder = folderOf({})
    await sluiceIn(folder, 'policy', 'new', 'gate')
    writeFileSync(join(folder, 'gate/gate.mjs'), 'mine')
    const { code, stderr } = await sluiceIn(folder, 'policy', 'new', 'gate')
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringMatching(/^CLI_EXISTS .*gate\/gate\.mjs.*--force/),
    })
    expect(readFileSync(join(folder, 'gate/gate.mjs'), 'utf8')).toBe('mine')
    expect((await sluiceIn(folder, 'policy', 'new', 'gate', '--force')).code).toBe(0)
    expect(readFileSync(join(folder, 'gate/gate.mjs'), 'utf8')).not.toBe('mine')
  })

  it('says when there is no place for it', async () => {
    const { code, stderr } = await sluiceIn(folderOf({ gate: 'a file' }), 'policy', 'new', 'gate')
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('CLI_WRITE') })
  })

  it.each([
    { name: 'a name that is a path', args: ['../x'], error: /no name of a plugin/ },
    { name: 'a half that there is not', args: ['x', '--seam', 'toolcal.before'], error: /halves are: run\.before/ },
    { name: 'a half that the seam does not have', args: ['x', '--seam', 'nodeError.before'], error: /halves are/ },
    { name: 'a language that there is not', args: ['x', '--lang', 'go'], error: /js, ts, py/ },
  ])('refuses $name', async ({ args, error }) => {
    const folder = folderOf({})
    const { code, stderr } = await sluiceIn(folder, 'policy', 'new', ...args)
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(error) })
    expect(existsSync(join(folder, 'x'))).toBe(false)
  })

  const run = (command: string, args: readonly string[], cwd: string) => {
    const { status, stdout, stderr } = spawnSync(command, args, {
      cwd,
      encoding: 'utf8',
      env: { PATH: process.env.PATH },
    })
    return { status, said: stdout + stderr }
  }
  const halves = ['toolCall.before', 'nodeError.after', 'ask.before', 'ask.after']

  it.each(halves)('at %s, in JavaScript: its test and the check are well', async (seam) => {
    const folder = folderOf({})
    await sluiceIn(folder, 'policy', 'new', 'a-gate', '--seam', seam)
    expect(run(process.execPath, ['--test', 'a-gate/a-gate.test.mjs'], folder)).toMatchObject({ status: 0 })
    const { code, stdout } = await sluiceIn(folder, 'policy', 'check', '--plugin', 'a-gate/a-gate.json')
    expect({ code, stdout }).toEqual({ code: 0, stdout: '✓  AGate  middleware  a-gate 0.1.0  passed its self-test\n' })
  })

  const hasPython = spawnSync('python3', ['--version']).status === 0
  if (!hasPython) console.warn('python3 is not there; what it is scaffolded is not run.')
  it.skipIf(!hasPython).each(['toolCall.before', 'ask.before'])(
    'at %s, in Python: its test and the check are well',
    async (seam) => {
      const folder = folderOf({})
      await sluiceIn(folder, 'policy', 'new', 'a-gate', '--lang', 'py', '--seam', seam)
      expect(run('python3', ['-m', 'unittest', 'discover', 'a-gate'], folder)).toMatchObject({ status: 0 })
      const { code, stdout } = await sluiceIn(folder, 'policy', 'check', '--plugin', 'a-gate/a-gate.json')
      expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('passed its self-test') })
    },
  )

  it.each(['toolCall.before'])('at %s, in TypeScript: it compiles, its test and the check are well', async (seam) => {
    const folder = folderOf({})
    const { stderr } = await sluiceIn(folder, 'policy', 'new', 'a-gate', '--lang', 'ts', '--seam', seam)
    expect(stderr).toContain('build it:  cd a-gate && npm install && npm run build\n')
    const unbuilt = await sluiceIn(folder, 'policy', 'check', '--plugin', 'a-gate/a-gate.json')
    expect(unbuilt).toMatchObject({ code: 2, stderr: expect.stringContaining('a-gate.mts has to be built first') })
    symlinkSync(join(root, 'node_modules'), join(folder, 'a-gate/node_modules'))
    const gate = join(folder, 'a-gate')
    expect(run(process.execPath, [join(root, 'node_modules/typescript/bin/tsc')], gate)).toEqual({
      status: 0,
      said: '',
    })
    expect(run(process.execPath, ['--test', 'a-gate.test.mjs'], gate)).toMatchObject({ status: 0 })
    expect((await sluiceIn(folder, 'policy', 'check', '--plugin', 'a-gate/a-gate.json')).code).toBe(0)
  })
})

describe('sluice policy check', () => {
  it('says what is wrong, for people and as JSON, and exits 2', async () => {
    const folder = folderOf({
      'gate.json': {
        name: 'gate',
        version: '1.0.0',
        capabilities: [],
        components: [{ componentType: 'Gate', kind: 'middleware', seams: { toolCall: ['before'] } }],
      },
      'gate.mjs': 'serve({ Gate: {} })',
    })
    const { code, stdout } = await sluiceIn(folder, 'policy', 'check', '--plugin', 'gate.json')
    expect({ code, stdout }).toEqual({
      code: 2,
      stdout: expect.stringMatching(/^✗ {2}Gate .*failed: there is no handler for toolCall\.before/),
    })
    const json = await sluiceIn(folder, 'policy', 'check', '--plugin', 'gate.json', '--json')
    expect(JSON.parse(json.stdout)).toMatchObject({
      components: [{ componentType: 'Gate', result: 'failed' }],
      rules: [],
      hooks: [],
    })
  })
  it('says what it found where that is no policy, and that there is none', async () => {
    const folder = folderOf({
      'tools.json': {
        name: 'clock',
        version: '1.0.0',
        capabilities: [],
        components: [{ componentType: 'Zone', kind: 'component' }],
        tools: [{ name: 'now', path: './now', description: 'Says what time it is.', inputSchema: { type: 'object' } }],
      },
      now: '#!/bin/sh\n',
    })
    chmodSync(join(folder, 'now'), 0o755)
    const { code, stdout, stderr } = await sluiceIn(folder, 'policy', 'check', '--plugin', 'tools.json')
    expect({ code, stdout: stdout.split('\n').map((line) => line.replace(/ +/g, ' ')), stderr }).toEqual({
      code: 0,
      stdout: [
        '✓ Zone component clock 1.0.0 read in the manifest; there is nothing to start',
        '✓ now tool clock read; no tool is called',
        '',
      ],
      stderr: 'there is no policy among these: no call is decided by them\n',
    })
    const json = await sluiceIn(folder, 'policy', 'check', '--plugin', 'tools.json', '--json')
    expect(JSON.parse(json.stdout)).toMatchObject({ tools: [{ name: 'now', plugin: 'clock' }], rules: [], hooks: [] })
  })
  it('lists the rules of a policy file', async () => {
    const rule = { rule: 'no-shell', seam: 'toolCall.before', verdict: 'reject', reason: 'no' }
    const folder = folderOf({ 'p.yaml': { policies: [rule] } })
    const { code, stdout } = await sluiceIn(folder, 'policy', 'check', '--policies', 'p.yaml')
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/^✓ {2}no-shell {2}rule/) })
  })
  it('lists hooks of a policy file, and runs none', async () => {
    const hook = { type: 'command', command: 'touch ran' }
    const policies = [{ adapter: 'command-hooks', name: 'Guard', hooks: { PreToolUse: [{ hooks: [hook] }] } }]
    const folder = folderOf({ 'p.yaml': { policies } })
    const { code, stdout } = await sluiceIn(folder, 'policy', 'check', '--policies', 'p.yaml')
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^✓ {2}Guard {2}hooks .*no hook is run/),
    })
    expect(existsSync(join(folder, 'ran'))).toBe(false)
  })
  it('refuses to check nothing', async () => {
    const { code, stderr } = await sluiceIn(folderOf({}), 'policy', 'check')
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('nothing to check') })
  })
})
