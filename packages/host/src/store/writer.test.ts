import { readFileSync } from 'node:fs'
import type { Commit, Lease, Store } from '@sluice/core'
import { expect, it } from 'vitest'
import { codeOf, describeSqlite, lineOf, openStore, storePath } from '../testing/store.ts'
import type { SqliteOptions } from './sqlite.ts'

/** How many transactions the write-ahead log of a store has. @see https://www.sqlite.org/fileformat2.html#the_write_ahead_log */
function commitsIn(path: string): number {
  const log = readFileSync(`${path}-wal`)
  const frame = 24 + log.readUInt32BE(8)
  let commits = 0
  for (let at = 32; at < log.length; at += frame) if (log.readUInt32BE(at + 4) > 0) commits++
  return commits
}

async function heldLines(
  path: string,
  names: readonly string[],
  options?: SqliteOptions,
): Promise<{ store: Store; leases: readonly Lease[] }> {
  const store = openStore(path, options)
  const leases = await Promise.all(names.map((name) => store.acquire(lineOf(name), { create: true })))
  return { store, leases }
}

const first: Commit = { seq: 1, records: ['1'] }
const NAMES = Array.from({ length: 16 }, (_, i) => `t${i}`)

describeSqlite('appends', () => {
  it.each([
    { name: 'microtasks', synchronous: 'NORMAL', wait: async () => undefined },
    { name: 'microtasks', synchronous: 'FULL', wait: async () => undefined },
    { name: 'ticks', synchronous: 'FULL', wait: () => new Promise<void>((resolve) => process.nextTick(resolve)) },
  ] as const)(
    'meet in one transaction, of whichever lines, $name apart ($synchronous)',
    async ({ synchronous, wait }) => {
      const path = storePath()
      const { store, leases } = await heldLines(path, NAMES, { synchronous })
      const before = commitsIn(path)
      await Promise.all(
        leases.map(async (lease, i) => {
          for (let n = 0; n < i; n++) await wait()
          await store.append(lease, first)
        }),
      )
      expect(commitsIn(path) - before).toBe(1)
      for (const name of NAMES) expect(await store.load(lineOf(name))).toMatchObject({ head: 1 })
    },
  )

  it('let others have their turn in between (FULL)', async () => {
    const { store, leases } = await heldLines(storePath(), ['t'])
    const [lease] = leases as [Lease]
    const order: string[] = []
    setImmediate(() => order.push('other'))
    for (const seq of [1, 2]) await store.append(lease, { seq, records: ['1'] })
    order.push('second append')
    expect(order).toEqual(['other', 'second append'])
  })

  it('are a transaction each where one waits for the other', async () => {
    const path = storePath()
    const { store, leases } = await heldLines(path, ['t'])
    const [lease] = leases as [Lease]
    const before = commitsIn(path)
    await store.append(lease, first)
    await store.append(lease, { seq: 2, records: ['2'] })
    expect(commitsIn(path) - before).toBe(2)
  })

  it.each<{ name: string; commit: Commit; code: string }>([
    { name: 'a lost lease', commit: first, code: 'LEASE_LOST' },
    { name: 'a lost lease, with more than a record', commit: { ...first, beside: [['k', '1']] }, code: 'LEASE_LOST' },
    { name: 'a record out of sequence', commit: { ...first, seq: 2 }, code: 'STORE_SEQUENCE' },
    {
      name: 'several out of sequence',
      commit: { seq: 3, records: ['3', '4'], snapshot: true },
      code: 'STORE_SEQUENCE',
    },
    { name: 'what is no text', commit: { seq: 1, records: ['1', {} as string] }, code: 'STORE_FAILED' },
  ])('are refused alone: $name stops no other, and leaves nothing', async ({ commit, code }) => {
    const path = storePath()
    const { store, leases } = await heldLines(path, ['a', 'bad', 'b'])
    const [a, bad, b] = leases as [Lease, Lease, Lease]
    if (code === 'LEASE_LOST') {
      await store.release(bad)
      await store.acquire(bad, { create: true })
    }
    const appended = [store.append(a, first), store.append(bad, commit), store.append(b, { ...first, release: true })]
    expect(await Promise.all(appended.map((append) => codeOf(() => append)))).toEqual([undefined, code, undefined])
    const heads = ['a', 'bad', 'b'].map(async (name) => (await store.load(lineOf(name)))?.head)
    expect(await Promise.all(heads)).toEqual([1, undefined, 1])
  })

  it('of one line fall with the one before them', async () => {
    const { store, leases } = await heldLines(storePath(), ['t'])
    const [lease] = leases as [Lease]
    const commits: readonly Commit[] = [
      { seq: 1, records: [{} as string] },
      { seq: 2, records: ['2'] },
      { seq: 3, records: [], beside: [['k', '1']] },
    ]
    const appended = commits.map((commit) => codeOf(() => store.append(lease, commit)))
    expect(await Promise.all(appended)).toEqual(['STORE_FAILED', 'STORE_SEQUENCE', 'STORE_SEQUENCE'])
    await store.append(lease, first)
    expect(await store.load(lineOf('t'))).toEqual({ head: 1, from: 1, records: ['1'], beside: [] })
  })
})
