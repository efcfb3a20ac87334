import { createRuntime, END, graph, node, policy, START, state, tool } from '@sluice/core'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { builtStore } from '../testing/runtime.ts'
import { describeSqlite, openRaw, openStore, runStore, storePath } from '../testing/store.ts'

const S = state({ passed: z.number().default(0) })
const act = tool('act', { description: 'Acts.', input: z.object({}), run: () => null })

/** A graph whose one node calls the tool so many times at once. */
function calling(times: number) {
  const work = node('work', S, async (_state, ctx) => {
    const calls = Array.from({ length: times }, () =>
      ctx.callTool(act, {}).then(
        () => 1,
        () => 0,
      ),
    )
    return { passed: (await Promise.all<number>(calls)).reduce((sum, one) => sum + one, 0) }
  })
  return graph('calling', S).edge(START, work).edge(work, END).check()
}

/** Lets so many calls of each principal through; looks, lets others go on, and then counts. */
const limit = (most: number, turns: number) =>
  policy({
    name: 'Limit',
    kept: { scope: 'principal', schema: z.object({ calls: z.number().default(0) }) },
    seams: {
      toolCall: {
        before: async (_shown, ctx) => {
          const { calls } = ctx.kept.value
          for (let turn = 0; turn < turns; turn++) await Promise.resolve()
          if (calls >= most) return { action: 'reject', reason: 'enough' }
          ctx.kept.update(() => ({ calls: calls + 1 }))
          return { action: 'proceed' }
        },
      },
    },
  })

const sum = (numbers: readonly number[]) => numbers.reduce((all, one) => all + one, 0)

/** Counts up, one by one, however often somebody else was first. */
const COUNT = `
const [path, times] = process.argv.slice(2)
const { kept, close } = sqliteStore(path)
for (let left = Number(times); left > 0; ) {
  const was = kept.read('Limit', 'ann')
  if (kept.write('Limit', 'ann', String(Number(was ?? 0) + 1), was)) left--
}
console.log('done')
`

describeSqlite('what is kept of principals in a SQLite file', () => {
  it('holds a limit exactly, however many consultations come at once by several connections', async () => {
    const connection = fc.record({ calls: fc.array(fc.nat(5), { maxLength: 3 }), turns: fc.nat(4) })
    const cases = fc.record({ most: fc.nat(8), connections: fc.array(connection, { minLength: 2, maxLength: 3 }) })
    await fc.assert(
      fc.asyncProperty(cases, async ({ most, connections }) => {
        const path = storePath()
        const runs = connections.flatMap(({ calls, turns }) => {
          const runtime = createRuntime({
            store: openStore(path, { synchronous: 'NORMAL' }),
            policies: [limit(most, turns)],
          })
          const principal = { kind: 'token', id: 'ann' }
          return calls.map(async (times) => (await runtime.run(calling(times), {}, { principal })).state.passed)
        })
        const wanted = sum(connections.flatMap(({ calls }) => calls))
        expect(sum(await Promise.all(runs))).toBe(Math.min(most, wanted))
      }),
      { numRuns: 25 },
    )
  })

  it('loses no count of two processes', async () => {
    const [path, module] = [storePath(), builtStore()]
    const processes = [1, 2].map(() => runStore(module, COUNT, [path, '200']))
    expect(await Promise.all(processes.map((one) => one.next()))).toEqual(['done', 'done'])
    expect(openStore(path).kept.read('Limit', 'ann')).toBe('400')
  })

  it('is there after the store was closed, and in a file of before there was such a thing', async () => {
    const path = storePath()
    const store = openStore(path)
    expect(tables(path)).not.toContain('kept')
    await store.kept.write('Limit', 'ann', '1', undefined)
    await store.close()
    expect(tables(path)).toContain('kept')
    expect(await openStore(path).kept.read('Limit', 'ann')).toBe('1')
  })

  it('is refused once the store is closed', async () => {
    const store = openStore()
    await store.close()
    expect(() => store.kept.read('Limit', 'ann')).toThrow(expect.objectContaining({ code: 'STORE_CLOSED' }))
  })
})

const tables = (path: string): readonly unknown[] =>
  openRaw(path)
    .prepare("select name from sqlite_master where type = 'table'")
    .all()
    .map((row) => (row as { name: string }).name)
