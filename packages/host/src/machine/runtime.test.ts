import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { END, graph, node, START, state } from '@sluice/core'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { z } from 'zod'
import { liveChildren } from '../child/child.ts'
import { folderOf } from '../testing/folder.ts'
import { chain, text } from '../testing/host.ts'
import { manifest } from '../testing/policies.ts'
import { builtRuntime } from '../testing/runtime.ts'
import { createRuntime, type HostRuntimeOptions } from './runtime.ts'

const runtime = builtRuntime()
const State = state({ said: z.string().default(''), heard: z.any().default(null) })

/** A graph that calls the tool `echo` with what it was told, twice; between the two it waits for `between`. */
function calls(between: () => Promise<void> = async () => {}) {
  const echo = node('echo', State, async ({ said }, ctx) => {
    const first = await ctx.callTool('echo', { said })
    await between()
    return { heard: [first, await ctx.callTool('echo', { said })] }
  })
  return graph('calls', State).edge(START, echo).edge(echo, END).check()
}

const PAYING = chain(
  {
    pay: {
      component_type: 'ToolNode',
      tool: { component_type: 'ServerTool', name: 'pay', inputs: [text('said')], outputs: [text('said')] },
    },
  },
  [text('said')],
)

const adding = (mark: string) =>
  `policies: [{ rule: mark, seam: toolCall.before, when: '!input.said.endsWith("${mark}")', verdict: modify, input: { said: '\${input.said}${mark}' } }]`

async function opened(
  policies: string,
  options: HostRuntimeOptions = {},
  files: Readonly<Record<string, string>> = {},
) {
  const folder = folderOf({ 'sluice.yaml': policies, ...files })
  const toolsDir = folderOf({ echo: '#!/bin/sh\ncat\n' })
  const warnings: string[] = []
  const host = await createRuntime({
    policies: join(folder, 'sluice.yaml'),
    toolsDir,
    runtime,
    env: { PATH: process.env.PATH },
    onWarning: (message) => warnings.push(message),
    ...options,
  })
  onTestFinished(() => host.close())
  // Put in place as an editor does: another file takes the name.
  const write = (text: string) => {
    writeFileSync(join(folder, 'next.yaml'), text)
    renameSync(join(folder, 'next.yaml'), join(folder, 'sluice.yaml'))
  }
  const heard = async () => {
    const { status, state: end } = await host.settle(calls(), { said: 'x' })
    return status === 'completed' ? (end.heard[0] as { said: string }).said : status
  }
  return { host, folder, write, heard, warnings }
}

describe('a runtime of the machine', () => {
  it('runs with the policies of its file and the tools of its folder', async () => {
    const { heard } = await opened(adding('a'))
    expect(await heard()).toBe('xa')
  })
  it('refuses a file with faults', async () => {
    await expect(opened('policies: [{}]')).rejects.toMatchObject({ code: 'POLICY_FILE' })
  })
  it('ends runs and plugins when it is closed; runs begun later stop at once', async () => {
    const { host } = await opened(adding('a'))
    await host.close()
    expect(await host.settle(calls(), { said: 'x' })).toMatchObject({ status: 'cancelled' })
  })
})

describe('a reload', () => {
  it('is for runs that begin after it; one under way keeps the chain that it began with', async () => {
    const { host, write, heard } = await opened(adding('a'))
    const under = await host.settle(
      calls(async () => {
        write(adding('b'))
        await host.reload()
      }),
      { said: 'x' },
    )
    expect(under.state.heard).toEqual([{ said: 'xa' }, { said: 'xa' }])
    expect(await heard()).toBe('xb')
  })
  it('with a broken file changes nothing, and says so', async () => {
    const { host, write, heard } = await opened(adding('a'))
    write('policies: [{ rule: 1 }]')
    await expect(host.reload()).rejects.toMatchObject({ code: 'POLICY_FILE' })
    expect(await heard()).toBe('xa')
    write(adding('b'))
    await host.reload()
    expect(await heard()).toBe('xb')
  })
  it('keeps threads that no store was given for', async () => {
    const ask = `policies: [{ rule: ask, seam: toolCall.before, verdict: suspend, ask: May it? }]`
    const { host } = await opened(ask)
    const paused = await host.run(calls(), { said: 'x' }, { thread: 't' })
    expect(paused.status).toBe('paused')
    await host.reload()
    const again = await host.resume(calls(), 't', true)
    expect(again).toMatchObject({ status: 'paused', thread: 't' })
  })
  it('ends the processes of plugins that are no longer named, after the runs that use them', async () => {
    const gate = {
      'gate.json': manifest('gate', 'Gate'),
      'gate.mjs': `serve({ Gate: { toolCall: { before: ({ input }) => input.said.endsWith('!') ? { action: 'proceed' } : { action: 'modify', input: { said: input.said + '!' } } } } })`,
    }
    const { host, write, heard } = await opened('policies: [{ plugin: gate.json }]', {}, gate)
    const before = liveChildren()
    const under = await host.settle(
      calls(async () => {
        write('policies: []')
        await host.reload()
        expect(liveChildren()).toBe(before + 1)
      }),
      { said: 'x' },
    )
    expect(under.state.heard).toEqual([{ said: 'x!' }, { said: 'x!' }])
    await vi.waitFor(() => expect(liveChildren()).toBe(before))
    expect(await heard()).toBe('x')
  })
  it('lets a host that is held be, and ends its plugins when it is released, whatever was compiled on it', async () => {
    const till = {
      'gate.json': JSON.stringify({
        ...JSON.parse(manifest('gate', 'Gate')),
        tools: [{ name: 'pay', componentType: 'Gate', inputSchema: { type: 'object' } }],
      }),
      'gate.mjs': `serve({ Gate: { toolCall: { before: () => ({ action: 'proceed' }) } } }, { tools: { pay: (input) => input } })`,
    }
    const { host } = await opened('policies: [{ plugin: gate.json }]', {}, till)
    const before = liveChildren()
    const held = host.hold()
    const { graph: paying, callsPlugins } = await held.host.compile(PAYING)
    expect(callsPlugins).toBe(true)
    await host.reload()
    expect(host.host).not.toBe(held.host)
    const { state: end } = await held.host.runtime.run(paying, { said: 'ten' })
    expect(end).toMatchObject({ said: 'ten' })
    expect(liveChildren()).toBe(before + 1)
    held.release()
    held.release()
    await vi.waitFor(() => expect(liveChildren()).toBe(before))
  })
  it('begins with breakers that are closed, so that a plugin that was mended is used at once (F4)', async () => {
    const gate = {
      'gate.json': manifest('gate', 'Gate'),
      'gate.mjs': `import { existsSync } from 'node:fs'
        const broken = () => existsSync(new URL('broken', import.meta.url))
        serve({ Gate: { toolCall: { before: () => broken() ? process.exit(3) : { action: 'proceed' } } } })`,
      broken: '',
    }
    const policies = 'policies: [{ plugin: gate.json, breaker: { failures: 1, openMs: 3600000 } }]'
    const { host, folder } = await opened(policies, {}, gate)
    const run = async () => {
      const { status, error } = await host.settle(calls(), { said: 'x' })
      return status === 'completed' ? status : (error as { cause?: { code?: string } }).cause?.code
    }
    expect([await run(), await run()]).toEqual(['PLUGIN_DIED', 'POLICY_BREAKER_OPEN'])
    rmSync(join(folder, 'broken'))
    expect(await run()).toBe('POLICY_BREAKER_OPEN')
    await host.reload()
    expect(await run()).toBe('completed')
  })
  it('reads the settings file of hooks anew', async () => {
    const making = (said: string) => {
      const hookSpecificOutput = { hookEventName: 'PreToolUse', updatedInput: { said } }
      const command = `echo '${JSON.stringify({ hookSpecificOutput })}'`
      return JSON.stringify({ hooks: { PreToolUse: [{ hooks: [{ type: 'command', command }] }] } })
    }
    const policies = 'policies: [{ adapter: command-hooks, settings: settings.json }]'
    const { host, folder, heard } = await opened(policies, {}, { 'settings.json': making('a') })
    expect(await heard()).toBe('a')
    writeFileSync(join(folder, 'settings.json'), making('b'))
    await host.reload()
    expect(await heard()).toBe('b')
  })
  it('does not see what has changed in a module', async () => {
    const module = (mark: string) => `const modify = ({ input }) =>
      input.said === '${mark}' ? { action: 'proceed' } : { action: 'modify', input: { said: '${mark}' } }
      export default { manifest: ${manifest('gate', 'Gate')}, handlers: { Gate: { toolCall: { before: modify } } } }`
    const { host, folder, heard } = await opened('policies: [{ plugin: gate.mjs }]', {}, { 'gate.mjs': module('a') })
    writeFileSync(join(folder, 'gate.mjs'), module('b'))
    await host.reload()
    expect(await heard()).toBe('a')
  })
  it('comes with SIGHUP, where that is wanted', async () => {
    const { write, heard, warnings } = await opened(adding('a'), { reloadOn: ['SIGHUP'] })
    write(adding('b'))
    process.kill(process.pid, 'SIGHUP')
    await vi.waitFor(async () => expect(await heard()).toBe('xb'))
    write('policies: 1')
    process.kill(process.pid, 'SIGHUP')
    await vi.waitFor(() => expect(warnings).toHaveLength(1))
    expect(warnings[0]).toMatch(/sluice\.yaml was not loaded anew, and what was loaded stays: POLICY_FILE_VALUE/)
    expect(await heard()).toBe('xb')
  })
  it('comes when the file has changed, where that is wanted', async () => {
    const { write, heard } = await opened(adding('a'), { reloadOn: ['change'] })
    write(adding('b'))
    await vi.waitFor(async () => expect(await heard()).toBe('xb'), { timeout: 10_000 })
  })
})
