import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { folderOf } from '../testing/folder.ts'
import { chain, hostOf, text } from '../testing/host.ts'
import { manifest } from '../testing/policies.ts'

const tool = (name: string, id = name) => ({
  component_type: 'ServerTool',
  id,
  name,
  inputs: [text('cmd')],
  outputs: [],
})
const llm = {
  component_type: 'OpenAiCompatibleConfig',
  id: 'llm',
  name: 'llm',
  model_id: 'small',
  url: 'http://localhost',
}
const FLOW = chain(
  {
    agent: {
      component_type: 'AgentNode',
      agent: {
        component_type: 'Agent',
        id: 'a',
        name: 'helper',
        llm_config: llm,
        system_prompt: '',
        tools: [tool('shell'), tool('search')],
      },
    },
    fetch: { component_type: 'ToolNode', tool: tool('search', 'other'), inputs: [text('cmd')] },
  },
  [text('cmd')],
)
const SCRIPT = '#!/bin/sh\n'
const FILES = {
  'flow.json': FLOW,
  'gate.json': manifest('gate', 'Gate', { seams: { modelCall: ['after'], toolCall: ['before'] } }),
  'gate.mjs': '',
}

async function explained(policies: string) {
  const folder = folderOf({ ...FILES, 'sluice.yaml': policies })
  const tools = folderOf({ shell: SCRIPT, search: SCRIPT })
  const host = await hostOf({ policies: join(folder, 'sluice.yaml'), toolsDir: tools, runtime: 'file:///none' })
  return { ...(await host.explain(join(folder, 'flow.json'))), chainOnly: await host.explain(), folder }
}

const RULES = `policies:
  - { rule: no-rm, seam: toolCall.before, match: subject.toolName == "shell", verdict: reject, reason: no }
  - { plugin: gate.json, mode: shadow, onFailure: pass }
  - { rule: taint, seam: toolCall.after, match: 'subject.toolName == "shell" && outcome.ok', verdict: pass, labels: [x] }
`

describe('an explanation', () => {
  it('has the chain half by half: order, mode, failure rule, kind, selector and where it was installed', async () => {
    const { chainOnly, folder } = await explained(RULES)
    const file = join(folder, 'sluice.yaml')
    expect(chainOnly.places).toBeUndefined()
    expect(chainOnly.policies).toEqual([
      {
        seam: 'modelCall',
        half: 'after',
        place: 1,
        name: 'Gate',
        mode: 'shadow',
        onFailure: 'pass',
        kind: 'process',
        origin: `${file}:3`,
      },
      {
        seam: 'toolCall',
        half: 'before',
        place: 1,
        name: 'no-rm',
        mode: 'enforce',
        onFailure: 'fail',
        kind: 'rule',
        origin: `${file}:2`,
        match: 'subject.toolName == "shell"',
      },
      {
        seam: 'toolCall',
        half: 'before',
        place: 2,
        name: 'Gate',
        mode: 'shadow',
        onFailure: 'pass',
        kind: 'process',
        origin: `${file}:3`,
      },
      {
        seam: 'toolCall',
        half: 'after',
        place: 1,
        name: 'taint',
        mode: 'enforce',
        onFailure: 'fail',
        kind: 'rule',
        origin: `${file}:4`,
        match: 'subject.toolName == "shell" && outcome.ok',
      },
    ])
  })
  it('says of each call that a flow makes who is consulted, and whether anybody guards it', async () => {
    const { places = [] } = await explained(RULES)
    const calls = places.filter(({ seam }) => seam === 'toolCall' || seam === 'modelCall')
    expect(
      calls.map(({ what, node, reachedBy, guarded }) => [
        what,
        node,
        reachedBy.map(({ name, reach }) => `${name} ${reach}`),
        guarded,
      ]),
    ).toEqual([
      ['model "small"', 'agent', ['Gate always'], false],
      ['tool "shell" (tools-dir)', 'agent', ['no-rm always', 'Gate always', 'taint may'], true],
      ['tool "search" (tools-dir)', 'agent', ['Gate always'], false],
      ['tool "search" (tools-dir)', 'fetch', ['Gate always'], false],
    ])
  })
  it('a policy that is off or in shadow guards nothing, nor does one that never matches', async () => {
    const guarded = async (terms: string) => {
      const { places = [] } = await explained(
        `policies:\n  - { rule: r, seam: toolCall.before, verdict: reject, reason: no${terms} }`,
      )
      return places.filter((place) => place.seam === 'toolCall' && place.guarded).length
    }
    expect(await guarded('')).toBe(3)
    expect(await guarded(', mode: off')).toBe(0)
    expect(await guarded(', mode: shadow')).toBe(0)
    expect(await guarded(', match: subject.source == "code"')).toBe(0)
    expect(await guarded(', match: subject.caller == "node"')).toBe(1)
  })
  it.each([
    { match: 'subject.toolName == "shell" && has(input.cmd)', reach: ['may', 'never'] },
    { match: 'input.cmd == "rm" && subject.toolName == "shell"', reach: ['may', 'never'] },
    { match: '"untrusted" in labels', reach: ['may', 'may'] },
    { match: '!("untrusted" in labels)', reach: ['may', 'may'] },
    { match: 'subject.toolName == "shell" || input.cmd == "rm"', reach: ['always', 'may'] },
    { match: 'subject.toolName == "shell" ? input.cmd == "rm" : false', reach: ['may', 'never'] },
    { match: '!has(subject.toolCallId)', reach: ['may', 'may'] },
  ])('says who may be consulted only where the call itself can tell: $match', async ({ match, reach }) => {
    const { places = [] } = await explained(
      `policies:\n  - { rule: r, seam: toolCall.before, verdict: reject, reason: no, match: '${match}' }`,
    )
    const reachOf = (tool: string) =>
      places.find(({ what }) => what.includes(`"${tool}"`))?.reachedBy[0]?.reach ?? 'never'
    expect([reachOf('shell'), reachOf('search')]).toEqual(reach)
  })
  it('does not take a run for one that never resumes', async () => {
    const { places = [] } = await explained(
      'policies:\n  - { rule: r, seam: run.before, verdict: reject, reason: no, match: subject.resuming }',
    )
    expect(places.find(({ seam }) => seam === 'run')?.reachedBy).toMatchObject([{ reach: 'may' }])
  })
  it('hooks that are only told guard nothing and judge nothing', async () => {
    const of = async (event: string) => {
      const hooks = `{ ${event}: [{ hooks: [{ type: command, command: ./told.sh }] }] }`
      const {
        policies,
        places = [],
        afterStreams,
      } = await explained(`policies:\n  - adapter: command-hooks\n    hooks: ${hooks}\n`)
      return [policies.map(({ observes }) => observes ?? false), places.some(({ guarded }) => guarded), afterStreams]
    }
    expect(await of('SessionEnd')).toEqual([[true], false, []])
    expect(await of('PostToolUseFailure')).toEqual([[true], false, []])
    expect(await of('PostToolUse')).toEqual([[false], true, []])
  })
  it('says for whom streams are held, and whose verdict comes too late for them', async () => {
    const { streamsHeldBy, afterStreams } = await explained(`policies:
  - { rule: judge, seam: modelCall.after, verdict: pass }
  - { plugin: gate.json, mode: shadow }
  - { rule: late, seam: node.after, verdict: pass }
`)
    expect({ streamsHeldBy, afterStreams }).toEqual({ streamsHeldBy: ['judge'], afterStreams: ['late'] })
  })
})
