import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { Tool } from '@sluice/core'
import { describe, expect, it } from 'vitest'
import { liveChildren } from '../child/child.ts'
import { folderOf } from '../testing/folder.ts'
import { toolContext } from '../testing/tool-context.ts'
import { loadToolPrograms } from './folder.ts'
import { withPluginTools } from './merge.ts'

const NODE = `#!${process.execPath}\n`
const ctx = toolContext()

/** The one tool of a folder with this program in it. */
async function toolOf(program: string, options = {}): Promise<Tool> {
  const [tool] = await loadToolPrograms(folderOf({ 'it.mjs': NODE + program }), options)
  return tool as Tool
}

describe('a folder of tools', () => {
  it('has one for each executable file, named without the last extension', async () => {
    const folder = folderOf({ 'b.sh': '#!/bin/sh\n', 'a.v2': '#!/bin/sh\n', plain: '#!/bin/sh\n', 'readme.md': 'no' })
    mkdirSync(join(folder, 'sub.d'))
    symlinkSync(join(folder, 'b.sh'), join(folder, 'link.sh'))
    const tools = await loadToolPrograms(folder)
    expect(tools.map(({ name, source }) => [name, source])).toEqual(
      ['a', 'b', 'link', 'plain'].map((name) => [name, 'tools-dir']),
    )
    expect(tools[0]).toMatchObject({
      description: 'The program a.v2.',
      parameters: { type: 'object' },
      idempotent: false,
    })
  })
  it('is refused when it is not there, or holds a name that no tool can have, or one twice', async () => {
    await expect(loadToolPrograms('/nowhere')).rejects.toMatchObject({ code: 'TOOLS_DIR' })
    await expect(loadToolPrograms(folderOf({ 'my tool.sh': '#!/bin/sh\n' }))).rejects.toThrow(
      '"my tool" is no tool name',
    )
    const twice = folderOf({ 'a.sh': '#!/bin/sh\n', 'a.py': '#!/bin/sh\n' })
    await expect(loadToolPrograms(twice)).rejects.toMatchObject({ code: 'TOOL_DUPLICATE' })
  })
})

describe('a tool program', () => {
  it('reads JSON and prints JSON, in the environment of the host', async () => {
    const tool = await toolOf(
      `let text = ''; for await (const part of process.stdin) text += part
       console.log(JSON.stringify({ got: JSON.parse(text), path: 'PATH' in process.env }))`,
    )
    expect(tool.readResult(await tool.run({ a: 'é' }, ctx))).toEqual({ got: { a: 'é' }, path: true })
  })
  it('gives {} when it prints nothing, and need not read', async () => {
    expect(await (await toolOf('process.exit(0)')).run({ big: 'x'.repeat(1_000_000) }, ctx)).toEqual({})
  })
  it('fails with its exit code and the beginning of its stderr', async () => {
    const tool = await toolOf(`console.error('no such order'); console.error('x'.repeat(9_000)); process.exitCode = 3`)
    const failure = await (tool.run({}, ctx) as Promise<unknown>).catch((error: Error) => error)
    expect(failure).toMatchObject({
      code: 'TOOL_FAILED',
      message: expect.stringContaining('ended with exit code 3: no such order'),
    })
    expect((failure as Error).message.length).toBeLessThan(4_200)
  })
  it('fails when it is killed, prints no JSON, or cannot be started', async () => {
    await expect((await toolOf(`process.kill(process.pid, 'SIGKILL')`)).run({}, ctx)).rejects.toThrow(
      'was ended by SIGKILL',
    )
    await expect((await toolOf(`console.log('done')`)).run({}, ctx)).rejects.toThrow('printed what is not JSON: done')
    const folder = folderOf({ broken: '#!/no/such/interpreter\n' })
    await expect((await loadToolPrograms(folder))[0]?.run({}, ctx)).rejects.toThrow(/could not be started: .*ENOENT/)
    chmodSync(join(folder, 'broken'), 0o644)
  })
  it('times out, and is killed with all it started', async () => {
    const tool = await toolOf(
      `import { spawn } from 'node:child_process'
       process.on('SIGTERM', () => {})
       spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)', import.meta.filename], { stdio: 'inherit' })
       setInterval(() => {}, 1000)`,
      { timeoutMs: 500 },
    )
    await expect(tool.run({}, ctx)).rejects.toMatchObject({
      code: 'TOOL_TIMED_OUT',
      message: 'tool "it" timed out after 500 ms.',
    })
    expect(liveChildren()).toBe(0)
  })
  it('is killed when it prints more than 8 MiB', async () => {
    const tool = await toolOf(
      `const mb = 'x'.repeat(1 << 20); const more = () => process.stdout.write(mb, more); more()`,
    )
    await expect(tool.run({}, ctx)).rejects.toThrow('printed more than 8388608 bytes')
    expect(liveChildren()).toBe(0)
  })
  it('is killed when its call is given up, with the reason as the error', async () => {
    const abort = new AbortController()
    const folder = folderOf({})
    const marker = join(folder, 'started')
    const tool = await toolOf(
      `import { mkdirSync } from 'node:fs'; mkdirSync(${JSON.stringify(marker)}); setInterval(() => {}, 1000)`,
    )
    const running = tool.run({}, { ...ctx, signal: abort.signal })
    abort.abort(new Error('cancelled'))
    await expect(running).rejects.toThrow('cancelled')
    expect(liveChildren()).toBe(0)
    expect(spawnSync('ps', ['-eo', 'args='], { encoding: 'utf8' }).stdout).not.toContain(marker)
    await expect(
      tool.run({}, { ...ctx, signal: AbortSignal.abort(new Error('before')) }) as Promise<unknown>,
    ).rejects.toThrow('before')
  })
  it('leaves no listener on a signal that many calls share', async () => {
    const tool = await toolOf('process.exit(0)')
    const warnings: Error[] = []
    const onWarning = (warning: Error) => warnings.push(warning)
    process.on('warning', onWarning)
    await Promise.all(Array.from({ length: 12 }, () => tool.run({}, ctx)))
    await new Promise((resolve) => setImmediate(resolve))
    process.off('warning', onWarning)
    expect(warnings).toEqual([])
  })
})

describe('tools of plugins beside those of a folder', () => {
  const tool = (name: string, source: string) => ({ name, source }) as Tool
  it('stand together; one takes the place of another only when it says so (M4)', () => {
    const others = [tool('a', 'tools-dir'), tool('b', 'tools-dir')]
    const tools = [tool('b', 'plugin:p'), tool('c', 'plugin:p')]
    expect(() => withPluginTools(others, { tools, shadowing: new Set() })).toThrow(
      'two tools are named "b" (tools-dir and plugin:p); rename one, or write "shadows": true in the manifest.',
    )
    expect(withPluginTools(others, { tools, shadowing: new Set(['b']) })).toEqual([others[0], ...tools])
  })
})
