import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { agentLoop, createRuntime, type PolicyRules, type Selector, scripted } from '@sluice/core'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Clock } from '../../../core/testing/clock.ts'
import { noting, oneNode } from '../../../core/testing/play.ts'
import { loadPlugins } from '../plugins/load.ts'
import { folderOf } from '../testing/folder.ts'
import { builtRuntime } from '../testing/runtime.ts'

const runtime = builtRuntime()

interface Installed {
  readonly name: string
  readonly seams: Readonly<Record<string, readonly string[]>>
  /** The handlers, an object of source text by component type. */
  readonly handlers: string
  readonly rules?: PolicyRules
}

/** Plugins in processes of their own, in this order, each under its rules; in the folder lies the file `broken`. */
async function installed(plugins: readonly Installed[]) {
  const files = plugins.flatMap(({ name, seams, handlers }) => {
    const component = { componentType: name, kind: 'middleware', seams }
    const program = `import { existsSync } from 'node:fs'
      const broken = () => existsSync(new URL('broken', import.meta.url))
      const crash = () => process.exit(3)
      serve({ ${name}: ${handlers} })`
    return [
      [`${name}.json`, JSON.stringify({ name: name.toLowerCase(), version: '1.0.0', components: [component] })],
      [`${name}.mjs`, program],
    ]
  })
  const folder = folderOf({ ...Object.fromEntries(files), broken: '' })
  const loaded = await loadPlugins(
    plugins.map(({ name }) => join(folder, `${name}.json`)),
    {
      runtime,
      onWarning: () => undefined,
      installed: ({ name }) => ({
        env: {},
        rules: plugins.find((plugin) => plugin.name.toLowerCase() === name)?.rules ?? {},
      }),
    },
  )
  onTestFinished(() => loaded.close())
  return { policies: loaded.policies, mend: () => rmSync(join(folder, 'broken')) }
}

const CALL = { tool_calls: [{ name: 'act', arguments: { text: 'x' } }] }

/** An agent whose model asks for one tool call, and then speaks. */
const agent = (replies: Parameters<typeof scripted>[0] = [CALL, 'what was said']) =>
  oneNode(async (_, ctx) => {
    const model = scripted(replies)
    return { made: (await agentLoop(ctx, { model, tools: [noting()], messages: [] })).content ?? '' }
  })

describe('F2: a policy in shadow whose process crashes at every call', () => {
  const everywhere = ['run', 'node', 'agentRound', 'modelCall', 'toolCall']
  const seams = Object.fromEntries(everywhere.map((seam) => [seam, ['before', 'after']]))
  const handlers = `{ ${everywhere.map((seam) => `${seam}: { before: crash, after: crash }`).join(', ')} }`

  it('changes no result, and the counts say how often it crashed', async () => {
    const { policies } = await installed([{ name: 'Guard', seams, handlers, rules: { mode: 'shadow' } }])
    const [guarded, bare] = [createRuntime({ policies }), createRuntime({ policies: [] })]
    const came = async (at: typeof bare) => ({ ...(await at.settle(agent(), {})), runId: '' })
    const expected = await came(bare)
    expect(expected.status).toBe('completed')
    for (let i = 0; i < 3; i++) expect(await came(guarded)).toEqual(expected)
    await guarded.drain()
    expect(guarded.shadows.counts).toEqual([{ policy: 'Guard', consulted: 39, would: {}, failed: 39, dropped: 0 }])
  })
})

describe('F3: a policy whose process crashes in an after half', () => {
  const ends = [{ seam: 'modelCall' }, { seam: 'toolCall' }, { seam: 'agentRound' }, { seam: 'node' }, { seam: 'run' }]

  async function play(seam: string, onFailure: 'fail' | 'pass', graph = agent()) {
    const handlers = `{ ${seam}: { after: crash } }`
    const { policies } = await installed([
      { name: 'Guard', seams: { [seam]: ['after'] }, handlers, rules: { onFailure } },
    ])
    const stream = createRuntime({ policies }).stream(graph, {})
    const said: string[] = []
    for await (const event of stream) if (event.type === 'token') said.push(event.text)
    return { said: said.join(''), outcome: await stream.outcome }
  }

  it.each(ends)('after $seam: with the rule fail it is blocked', async ({ seam }) => {
    const { outcome } = await play(seam, 'fail')
    expect(outcome).toMatchObject({ status: 'failed', error: { name: 'MiddlewareError' } })
    expect(String(outcome.error)).toMatch(new RegExp(`"Guard".* ${seam}\\.after`))
  })

  it.each(ends)('after $seam: with the rule pass it goes on, with a warning', async ({ seam }) => {
    const { outcome } = await play(seam, 'pass')
    expect(outcome).toMatchObject({ status: 'completed', state: { made: 'what was said' } })
    expect(outcome.warnings.map(({ message }) => message).join()).toContain(`${seam}.after`)
  })

  it.each([
    { onFailure: 'fail', left: '' },
    { onFailure: 'pass', left: 'what was said' },
  ] as const)(
    'at the end of a stream, with the rule $onFailure: what has left is $left',
    async ({ onFailure, left }) => {
      expect((await play('modelCall', onFailure, agent(['what was said']))).said).toBe(left)
    },
  )
})

describe('F4: one of three policies is broken, and its selector matches some runs', () => {
  const OPEN_MS = 60_000
  const seams = { toolCall: ['before'] }
  const adds = (letter: string) =>
    `{ toolCall: { before: ({ input }) => input.text.includes('${letter}') ? { action: 'proceed' } : { action: 'modify', input: { text: input.text + '${letter}' } } } }`
  const bad = `{ toolCall: { before: () => { if (broken()) crash(); return { action: 'proceed' } } } }`

  /** Two policies that each add a letter, and between them the bad one, which is consulted about the tool `risky` only. */
  async function stage() {
    const match = {
      reads: 'subject',
      matches: ({ subject }) => subject.toolName === 'risky',
    } as const satisfies Selector
    const breaker = { failures: 3, openMs: OPEN_MS }
    const { policies, mend } = await installed([
      { name: 'First', seams, handlers: adds('a') },
      { name: 'Bad', seams, handlers: bad, rules: { match, breaker } },
      { name: 'Last', seams, handlers: adds('b') },
    ])
    const clock = new Clock()
    const at = createRuntime({ policies, platform: clock })
    const calling = (name: string) => {
      const echo = noting(({ text }) => text, name)
      const graph = oneNode(async (_, ctx) => ({ made: (await ctx.callTool(echo, { text: 'x' })) as string }))
      return async () => {
        const { status, state, error } = await at.settle(graph, {})
        return status === 'completed' ? state.made : (error as { cause?: { code?: string } }).cause?.code
      }
    }
    return { mend, clock, plain: calling('plain'), risky: calling('risky') }
  }

  const times = (count: number, run: () => Promise<unknown>) => Promise.all(Array.from({ length: count }, run))
  const UNHARMED = Array.from({ length: 50 }, () => 'xab')

  it('the others complete while its breaker is closed, while it is open, and after one try has closed it', async () => {
    const { mend, clock, plain, risky } = await stage()
    const [others, ...failing] = await Promise.all([times(50, plain), risky(), risky(), risky()])
    expect(others).toEqual(UNHARMED)
    expect(failing).toEqual(Array(3).fill('PLUGIN_DIED'))
    const [beside, refused] = await Promise.all([times(50, plain), times(10, risky)])
    expect(beside).toEqual(UNHARMED)
    expect(refused).toEqual(Array(10).fill('POLICY_BREAKER_OPEN'))
    mend()
    expect(await risky()).toBe('POLICY_BREAKER_OPEN')
    await clock.pass(OPEN_MS)
    expect(await risky()).toBe('xab')
    expect(await times(10, risky)).toEqual(Array(10).fill('xab'))
    expect(await times(50, plain)).toEqual(UNHARMED)
  })
})
