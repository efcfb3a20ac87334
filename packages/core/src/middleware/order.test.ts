import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  type Constraints,
  createRuntime,
  END,
  graph,
  graphNode,
  type Middleware,
  middleware,
  node,
  policy,
  START,
  state,
} from '../index.ts'

const Numbers = state({ n: z.number().default(0) })

const one = node('one', Numbers, ({ n }) => ({ n: n + 1 }))

const made = (own: readonly Middleware[]) =>
  graph('g', Numbers, { middleware: own }).edge(START, one).edge(one, END).check()

/** The names in the order in which their `beforeNode` runs. */
async function order(...own: readonly { name: string; order?: Constraints }[]): Promise<string> {
  const seen: string[] = []
  await createRuntime().run(
    made(own.map(({ name, order }) => middleware({ name, order, beforeNode: () => void seen.push(name) }))),
    {},
  )
  return seen.join(' ')
}

describe('the order of middleware', () => {
  it('is that of the list', async () => {
    expect(await order({ name: 'a' }, { name: 'b' }, { name: 'c' })).toBe('a b c')
  })
  it.each([
    { name: 'before', list: [{ name: 'a' }, { name: 'b' }, { name: 'c', order: { before: ['a'] } }], is: 'b c a' },
    { name: 'after', list: [{ name: 'a', order: { after: ['c'] } }, { name: 'b' }, { name: 'c' }], is: 'b c a' },
    { name: 'before one that is not there', list: [{ name: 'a' }, { name: 'b', order: { before: ['x'] } }], is: 'a b' },
    { name: 'requires, met', list: [{ name: 'a', order: { requires: ['b'] } }, { name: 'b' }], is: 'a b' },
    { name: 'conflicts with one that is not there', list: [{ name: 'a', order: { conflicts: ['x'] } }], is: 'a' },
  ])('$name', async ({ list, is }) => expect(await order(...list)).toBe(is))

  it.each([
    {
      name: 'a cycle',
      list: [
        { name: 'a', order: { before: ['b'] } },
        { name: 'b', order: { before: ['c'] } },
        { name: 'c', order: { before: ['a'] } },
      ],
      why: '"a", "b", "c" each must stand before another; loosen one.',
    },
    {
      name: 'a conflict',
      list: [{ name: 'a' }, { name: 'b', order: { conflicts: ['a'] } }],
      why: 'middleware "b" and "a" cannot stand together; take one away.',
    },
    {
      name: 'what is required and missing',
      list: [{ name: 'a', order: { requires: ['b'] } }],
      why: 'middleware "a" requires "b", which is not there; add it.',
    },
    {
      name: 'two of one name',
      list: [{ name: 'a' }, { name: 'a' }],
      why: 'two middleware are named "a"; give one of them a name of its own.',
    },
  ])('$name is refused with the names where the graph is made', ({ list, why }) => {
    expect(() => made(list.map((options) => middleware(options)))).toThrow(
      expect.objectContaining({ code: 'MIDDLEWARE_ORDER', message: why }),
    )
  })

  it('one that is called like an installed policy is refused before anything runs', async () => {
    const runtime = createRuntime({
      policies: [policy({ name: 'a', seams: { node: { after: () => ({ action: 'pass' }) } } })],
    })
    await expect(runtime.run(made([middleware({ name: 'a' })]), {})).rejects.toMatchObject({
      code: 'MIDDLEWARE_ORDER',
      message: 'middleware "a" is called like an installed policy; give it a name of its own.',
    })
  })

  it('keeps every constraint that can be kept, and the list where there is none', () => {
    const names = ['a', 'b', 'c', 'd', 'e']
    const pairs = fc.uniqueArray(
      // From an earlier letter to a later one, so that there is no cycle.
      fc.tuple(fc.nat(3), fc.nat(3)).map(([i, d]) => [names[i], names[Math.min(4, i + 1 + d)]] as [string, string]),
      { selector: String },
    )
    fc.assert(
      fc.property(fc.shuffledSubarray(names), pairs, (list, before) => {
        const { plan } = made(
          list.map((name) =>
            middleware({ name, order: { before: before.flatMap(([a, b]) => (a === name ? [b] : [])) } }),
          ),
        )
        const sorted = plan.middleware.map(({ name }) => name)
        const kept = before.filter(([a, b]) => list.includes(a) && list.includes(b))
        for (const [a, b] of kept) expect(sorted.indexOf(a)).toBeLessThan(sorted.indexOf(b))
        if (kept.length === 0) expect(sorted).toEqual(list)
      }),
    )
  })
})

describe('explain', () => {
  it('says who is consulted at each seam, in order', () => {
    const runtime = createRuntime({
      policies: [
        policy({
          name: 'Guard',
          seams: {
            toolCall: { before: () => ({ action: 'proceed' }) },
            modelCall: { after: () => ({ action: 'pass' }) },
          },
        }),
      ],
    })
    const a = middleware({
      name: 'a',
      beforeTool: () => undefined,
      afterTool: () => undefined,
      wrapModel: (_, next) => next(),
    })
    const b = middleware({
      name: 'b',
      beforeTool: () => undefined,
      afterTool: () => undefined,
      onToolError: () => undefined,
    })
    expect(runtime.explain(made([a, b]))).toBe(
      [
        'modelCall.before    a.wrapModel',
        'modelCall.after     policy Guard',
        'toolCall.before     a.beforeTool → b.beforeTool → policy Guard',
        'toolCall failed     b.onToolError',
        'toolCall.after      b.afterTool → a.afterTool',
      ].join('\n'),
    )
  })
  it('says nothing where nobody is', () => {
    expect(createRuntime().explain(made([]))).toBe('')
  })
})

describe('middleware of a run around', () => {
  const watch = (name: string, seen: string[]) =>
    middleware({ name, beforeNode: (ctx) => void seen.push(`${name}: ${ctx.graphName}.${ctx.nodeName}`) })
  const nested = (seen: string[], inherit: boolean) => {
    const child = graph('child', Numbers, { middleware: [watch('inner', seen)] })
      .edge(START, one)
      .edge(one, END)
      .check()
    const sub = inherit
      ? node('sub', Numbers, async (s, ctx) => ({ n: (await ctx.run(child, s, { middleware: 'inherit' })).n }))
      : graphNode('sub', Numbers, child, { share: ['n'] })
    return graph('outer', Numbers, { middleware: [watch('outer', seen)] })
      .edge(START, sub)
      .edge(sub, END)
      .check()
  }
  it('is not consulted in a child run', async () => {
    const seen: string[] = []
    await createRuntime().run(nested(seen, false), {})
    expect(seen).toEqual(['outer: outer.sub', 'inner: child.one'])
  })
  it('stands around the child’s own where the child inherits it', async () => {
    const seen: string[] = []
    await createRuntime().run(nested(seen, true), {})
    expect(seen).toEqual(['outer: outer.sub', 'outer: child.one', 'inner: child.one'])
  })
  it('is left out where the child that inherits has one of that name', async () => {
    const seen: string[] = []
    const child = graph('child', Numbers, { middleware: [watch('twin', seen)] })
      .edge(START, one)
      .edge(one, END)
      .check()
    const sub = node('sub', Numbers, async (s, ctx) => ({
      n: (await ctx.run(child, s, { middleware: 'inherit' })).n,
    }))
    const own = [watch('twin', seen), watch('outer', seen)]
    const outer = graph('outer', Numbers, { middleware: own }).edge(START, sub).edge(sub, END).check()
    await createRuntime().run(outer, {})
    expect(seen).toEqual(['twin: outer.sub', 'outer: outer.sub', 'outer: child.one', 'twin: child.one'])
  })
  it('answers what is asked in the child after the child’s own, also where the child inherits it', async () => {
    for (const inherit of ['inherit', undefined] as const) {
      const seen: string[] = []
      const answers = (name: string, answer?: number) =>
        middleware({
          name,
          onInterrupt: () => {
            seen.push(name)
            return answer
          },
        })
      const asks = node('asks', Numbers, async (_, ctx) => ({ n: (await ctx.ask('how', 'How many?')) as number }))
      const child = graph('child', Numbers, { middleware: [answers('inner')] })
        .edge(START, asks)
        .edge(asks, END)
        .check()
      const sub = node('sub', Numbers, async (s, ctx) => ({ n: (await ctx.run(child, s, { middleware: inherit })).n }))
      const own = [answers('outer', 5)]
      const outer = graph('outer', Numbers, { middleware: own }).edge(START, sub).edge(sub, END).check()
      const { state: end } = await createRuntime().run(outer, {}, { thread: 't' })
      expect([end.n, ...seen]).toEqual([5, 'inner', 'outer'])
    }
  })
})

describe('explain', () => {
  it('says who is told of the end, and whom parts of a stream wait for', () => {
    const own = [
      middleware({ name: 'a', onRunEnd: () => undefined, stream: 'hold' }),
      middleware({ name: 'b', onRunEnd: () => undefined }),
    ]
    const lines = createRuntime().explain(made(own)).split('\n')
    expect(lines).toEqual(['run ended           b.onRunEnd → a.onRunEnd', 'stream held by      a'])
  })
})
