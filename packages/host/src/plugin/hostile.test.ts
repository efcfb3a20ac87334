import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { liveChildren } from '../child/child.ts'
import { folderOf } from '../testing/folder.ts'
import { load as loadWith, type TestPlugin } from '../testing/plugin.ts'
import { gateProgram, RAW } from '../testing/raw.ts'
import { builtHost, builtRuntime } from '../testing/runtime.ts'
import { ask, consultation } from '../testing/site.ts'

const runtime = builtRuntime()
const host = builtHost()
const load = (plugin: TestPlugin, options = {}) => loadWith(plugin, { runtime, ...options })

const processesOf = (word: string) =>
  spawnSync('ps', ['-eo', 'args='], { encoding: 'utf8' })
    .stdout.split('\n')
    .filter((line) => line.includes(word)).length

/** A temp folder that only this file writes to; plugins are told of it. */
const temp = mkdtempSync(join(tmpdir(), 'sluice-hostile-'))
beforeAll(() => void vi.stubEnv('TMPDIR', temp))
afterAll(() => {
  vi.unstubAllEnvs()
  rmSync(temp, { recursive: true })
})

const HOSTILE = [
  {
    name: 'never answers',
    program: 'process.stdin.resume()',
    error: /timed out/,
    options: { timeoutMs: 100 },
  },
  {
    name: 'never answers, and ignores the end of its stdin and SIGTERM',
    program: `process.stdin.resume(); process.on('SIGTERM', () => {}); setInterval(() => {}, 1000)`,
    error: /timed out/,
    options: { timeoutMs: 100 },
  },
  {
    name: 'prints 100 MB without a newline',
    program: `const mb = 'x'.repeat(1 << 20); let n = 0; const more = () => { if (n++ < 100) process.stdout.write(mb, more) }; more()
      process.stdin.resume()`,
    error: /printed a line of more than 8388608 bytes/,
  },
  {
    name: 'exits at once',
    program: `console.error('no licence'); process.exit(9)`,
    error: /ended with exit code 9; its stderr: no licence/,
  },
  {
    name: 'answers for another call only',
    program: `${RAW} listen((m) => m.method === 'before' && say({ id: 99, result: {} }))`,
    error: /timed out/,
    options: { timeoutMs: 300 },
  },
  {
    name: 'nests its answer 100,000 levels deep',
    program: `${RAW} listen((m) => m.method === 'before' &&
      process.stdout.write('{"jsonrpc":"2.0","id":' + m.id + ',"result":' + '['.repeat(1e5) + ']'.repeat(1e5) + '}\\n'))`,
    error: /nested deeper than 128 levels/,
  },
  {
    name: 'starts a program that outlives it',
    program: `import { spawn } from 'node:child_process'
      spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)', import.meta.filename], { stdio: 'inherit' })
      process.stdin.on('data', () => process.exit(4))`,
    error: /ended with exit code 4/,
  },
  {
    name: 'closes its stdin',
    program: `import { closeSync } from 'node:fs'; closeSync(0); setTimeout(() => process.exit(5), 100)`,
    error: /ended with exit code 5|timed out/,
    options: { timeoutMs: 3_000 },
  },
]

describe('a plugin that', () => {
  it.each(HOSTILE)('$name: a clear error, and nothing is left of it', async ({ program, error, options }) => {
    const plugins = await load({ program }, { ...options, env: { TMPDIR: temp } })
    await expect(ask(plugins.gate)).rejects.toThrow(error)
    await plugins.close()
    expect([liveChildren(), processesOf(plugins.folder)]).toEqual([0, 0])
    expect(readdirSync(temp)).toEqual([basename(plugins.folder)])
  })

  it('answers twice: the first one counts, the second is a warning', async () => {
    const program = `${RAW} listen((m) => m.method === 'before' && [1, 2].map((result) => say({ id: m.id, result })))`
    const { gate, warnings } = await load({ program })
    expect(await ask(gate)).toBe(1)
    await ask(gate)
    expect(warnings.length).toBeGreaterThan(0)
  })

  it('warns without end is not told of after a hundred times', async () => {
    const program = `${RAW} listen((m) => { if (m.method !== 'before') return
      for (let i = 0; i < 1000; i++) say({ method: 'log', params: {} })
      say({ id: m.id, result: 1 }) })`
    const { gate, warnings } = await load({ program })
    expect(await ask(gate)).toBe(1)
    expect(warnings).toHaveLength(100)
  })

  it('sleeps for ever: a thousand calls end by the deadline, one more is refused, and it is replaced (F1)', async () => {
    const plugins = await load({ program: gateProgram('await new Promise(() => {})') }, { timeoutMs: 300 })
    const { gate } = plugins
    const asked = Array.from({ length: 1_000 }, () => ask(gate))
    expect(() => gate.consult(consultation(gate))).toThrow('has 1000 calls to answer and takes no more')
    const ends = await Promise.allSettled(asked)
    expect(ends.filter((end) => end.status === 'rejected' && /timed out/.test(String(end.reason)))).toHaveLength(1_000)
    await expect(ask(gate)).rejects.toThrow('timed out')
    await plugins.close()
    expect(liveChildren()).toBe(0)
  })
})

describe('a host that ends', () => {
  const STUBBORN = `process.stdin.resume(); process.on('SIGTERM', () => {}); setInterval(() => {}, 1000)
    serve({ Box: { execute: () => ({ output: { pid: process.pid } }) } })`

  it.each([
    { name: 'by itself, while a plugin is idle and was not closed', ending: '' },
    { name: 'by process.exit', ending: 'process.exit(0)' },
    { name: 'by an error', ending: "throw new Error('bug')" },
  ])('leaves no process behind: $name', ({ ending }) => {
    const manifest = { name: 'box', version: '1', components: [{ componentType: 'Box' }] }
    const folder = folderOf({
      'box.json': JSON.stringify(manifest),
      'box.mjs': STUBBORN,
      'host.mjs': `import { loadPlugins } from ${JSON.stringify(host)}
        const plugins = await loadPlugins(['box.json'], { runtime: ${JSON.stringify(runtime)} })
        const { signal } = new AbortController()
        const { output } = await plugins.execute('Box', {}, {}, { signal })
        process.kill(output.pid, 0)
        console.log('answered')
        ${ending}`,
    })
    const { stdout } = spawnSync(process.execPath, ['host.mjs'], { cwd: folder, encoding: 'utf8' })
    expect(stdout).toBe('answered\n')
    expect(processesOf(join(folder, 'box.mjs'))).toBe(0)
  })
})
