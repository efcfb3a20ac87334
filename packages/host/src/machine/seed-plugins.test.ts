import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { JsonObject } from '@sluice/core'
import { describe, expect, it } from 'vitest'
import { chain, eventsOn, fileOf, hostOf, pluginFolder, text } from '../testing/host.ts'
import { builtRuntime } from '../testing/runtime.ts'

const seeds = process.env.SLUICE_SEEDS ?? fileURLToPath(new URL('../../../../../shared/seeds/', import.meta.url))
const page = existsSync(seeds) ? readdirSync(seeds).find((name) => name.startsWith('000_')) : undefined
if (page === undefined)
  console.warn('The page that heddle documents its middleware on is not there; set SLUICE_SEEDS to its folder.')

/** Each program that the page shows, by the component type it serves, exactly as it stands there. */
const programs = new Map(
  page === undefined
    ? []
    : [...readFileSync(`${seeds}/${page}`, 'utf8').matchAll(/^serve\(\{\n {2}(\w+): \{[\s\S]*?^\}\);$/gm)].map(
        ([program, type]): [string, string] => [type as string, program],
      ),
)

const runtime = builtRuntime()

/** A model that asks for the tool until it was answered twice, for tests of an agent that is kept from going on. */
const stub = `const Stub = { chat: ({ messages }) => messages.filter((m) => m.role === 'tool').length < 2
  ? { content: '', finish_reason: 'tool_calls', tool_calls: [{ id: 'c' + messages.length, name: 'shell', arguments: '{"cmd":"rm -rf /"}' }] }
  : { content: messages.at(-1).content, finish_reason: 'stop' } }
const Busy = { chat: () => { throw new Error(globalThis.asked++ > 0 ? 'still 429' : '429 Too Many Requests') } }
globalThis.asked = 0
serve({ Stub, Busy })`

const agent = (model: string) => ({
  component_type: 'AgentNode',
  agent: {
    component_type: 'Agent',
    id: 'a',
    name: 'a',
    system_prompt: 'Go.',
    llm_config: { component_type: model, id: 'm', name: 'm' },
    tools: [{ component_type: 'ServerTool', id: 's', name: 'shell', inputs: [text('cmd')], outputs: [text('stdout')] }],
  },
})
const lookup = {
  component_type: 'ToolNode',
  tool: { component_type: 'ServerTool', id: 't', name: 'shell', inputs: [], outputs: [text('stdout')] },
}

interface Case {
  readonly type: string
  readonly seams: Readonly<Record<string, readonly string[]>>
  readonly nodes: Readonly<Record<string, object>>
  readonly settings?: JsonObject
  /** What the tool prints, or that it fails. */
  readonly tool?: string
  readonly sees: readonly object[]
}

const echo = "process.stdin.resume(); console.log(JSON.stringify({ stdout: 'ran' }))"

const cases: readonly Case[] = [
  {
    type: 'ApprovalGate',
    seams: { toolCall: ['before'] },
    nodes: { agent: agent('Stub') },
    sees: [{ type: 'tool_result', refused: 'destructive command' }],
  },
  {
    type: 'Auditor',
    seams: { toolCall: ['after'] },
    nodes: { agent: agent('Stub') },
    tool: "console.log(JSON.stringify({ stdout: 'x'.repeat(20000) }))",
    sees: [{ type: 'tool_result', toolResult: { note: 'result too large, omitted' } }],
  },
  {
    type: 'RetryPolicy',
    seams: { nodeError: ['after'] },
    nodes: { lookup },
    tool: "console.error('timed out'); process.exit(1)",
    settings: { maxAttempts: 2 },
    sees: [{ type: 'decision', action: 'retry', policy: 'RetryPolicy' }],
  },
  {
    type: 'RateLimitPolicy',
    seams: { modelCall: ['after'] },
    nodes: { agent: agent('Busy') },
    sees: [{ type: 'decision', action: 'retry', policy: 'RateLimitPolicy' }],
  },
  {
    type: 'NodeAudit',
    seams: { node: ['before', 'after'] },
    nodes: { lookup },
    settings: { dryRun: ['ToolNode'], stub: { stdout: 'stub' } },
    sees: [
      { type: 'plugin:NodeAudit:node', data: { node: 'lookup', ok: true } },
      { type: 'run_end', result: { stdout: 'stub' } },
    ],
  },
  {
    type: 'RoundBudget',
    seams: { agentRound: ['before', 'after'] },
    nodes: { agent: agent('Stub') },
    settings: { maxRounds: 1 },
    sees: [
      { type: 'plugin:RoundBudget:round', data: { round: 1, toolCalls: ['shell'] } },
      { type: 'run_end', status: 'failed' },
    ],
  },
]

describe.skipIf(page === undefined)('a program of the page that heddle documents its middleware on', () => {
  it.each(cases)('runs unchanged: $type', async ({ type, seams, nodes, settings, tool = echo, sees }) => {
    const program = programs.get(type)
    expect(program).toBeDefined()
    const components = [{ componentType: type, kind: 'middleware', seams }]
    const policy = pluginFolder(program as string, { capabilities: ['emitEvent'], components })
    const models = ['Stub', 'Busy'].map((componentType) => ({ componentType, kind: 'provider' }))
    const provider = pluginFolder(
      stub,
      { name: 'models', components: models },
      { shell: `#!/usr/bin/env node\n${tool}\n` },
    )
    const host = await hostOf({
      plugins: [provider.manifest, policy.manifest],
      pluginConfig: settings === undefined ? [] : [`${type}=${JSON.stringify(settings)}`],
      toolsDir: provider.folder,
      runtime,
    })
    const events = await eventsOn(host, fileOf(chain(nodes)))
    for (const seen of sees) expect(events).toContainEqual(expect.objectContaining(seen))
  })
})
