import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createAgent, type HookName, middleware, scripted, type ToolMiddlewareContext, tool } from '../index.ts'

const page = readFileSync(new URL('../../../../docs/middleware.md', import.meta.url), 'utf8')

/** What the page says that a context has, by the first cell of its row. */
const rows = new Map(
  [...page.matchAll(/^\| (every one|the others|`\w+Context`) \| (.+) \|$/gm)].map(([, context = '', has = '']) => [
    context.replaceAll('`', ''),
    [...has.matchAll(/`(\w+)`/g)].map(([, member = '']) => member),
  ]),
)
const documented = (context: string): readonly string[] =>
  ['every one', ...(context === 'GraphMiddlewareContext' ? [] : ['the others']), context].flatMap(
    (row) => rows.get(row) ?? [],
  )

/** Every member of a value, its own and what it inherits, whatever it is called by. */
function membersOf(value: object): readonly string[] {
  const members = new Set<PropertyKey>()
  for (let at: object = value; at !== Object.prototype; at = Object.getPrototypeOf(at)) {
    for (const member of Reflect.ownKeys(at)) members.add(member)
  }
  members.delete('constructor')
  return [...members].map(String).toSorted()
}

/** The contexts of one agent's run, by hook. */
async function contexts(): Promise<ReadonlyMap<HookName, object>> {
  const seen = new Map<HookName, object>()
  const see = (hook: HookName) => (ctx: object) => void seen.set(hook, ctx)
  const looks = middleware({
    name: 'looks',
    kept: { scope: 'turn', schema: z.object({ n: z.number().default(0) }) },
    beforeGraph: see('beforeGraph'),
    onRunEnd: see('onRunEnd'),
    beforeNode: see('beforeNode'),
    afterNode: see('afterNode'),
    beforeRound: see('beforeRound'),
    afterRound: see('afterRound'),
    beforeModel: see('beforeModel'),
    afterModel: see('afterModel'),
    beforeTool: see('beforeTool'),
    afterTool: see('afterTool'),
    wrapTool: (_args, next, ctx) => {
      seen.set('wrapTool', ctx)
      return next()
    },
  })
  const act = tool('act', { description: 'acts', input: z.object({}), run: () => 'done' })
  const model = scripted([{ tool_calls: [{ name: 'act', arguments: {} }] }, { content: 'done' }])
  await createAgent({ model, tools: [act], middleware: [looks] }).run('go')
  return seen
}

describe('a context', () => {
  it('has what the page says and nothing else, so that no hook reaches the engine through it', async () => {
    const seen = await contexts()
    expect(seen.size).toBe(11)
    for (const [hook, ctx] of seen) {
      expect({ hook, has: membersOf(ctx) }).toEqual({ hook, has: documented(ctx.constructor.name).toSorted() })
      expect({ hook, own: Reflect.ownKeys(ctx) }).toEqual({ hook, own: [] })
    }
  })

  it('shows what a middleware keeps by its value and its update, and nothing else', async () => {
    const ctx = (await contexts()).get('beforeTool') as ToolMiddlewareContext
    expect(membersOf(ctx.kept)).toEqual(['update', 'value'])
  })

  it('cannot be changed: another request or other arguments are said with a word', async () => {
    const seen = await contexts()
    for (const [hook, member] of [
      ['beforeModel', 'request'],
      ['afterModel', 'response'],
      ['beforeTool', 'args'],
      ['afterRound', 'toolCalls'],
    ] as const) {
      expect(() => Object.assign(seen.get(hook) as object, { [member]: 'another' })).toThrow(TypeError)
    }
  })
})
