import { join } from 'node:path'
import type { Store } from '@sluice/core'
import { storeContract } from '@sluice/core/store-contract'
import { describe, expect, it } from 'vitest'
import { folderOf } from '../testing/folder.ts'
import { codeOf, describeSqlite, lineOf, openRaw, openStore, storePath } from '../testing/store.ts'
import { SPAN } from './schema.ts'

const T = lineOf('t')
const STANDING = { graph: 'g', status: 'paused', asks: '[]', at: 1 } as const

async function begin(store: Store, records: readonly string[] = ['1'], line = T) {
  const lease = await store.acquire(line, { create: true })
  await store.append(lease, { seq: 1, records, standing: STANDING })
  return lease
}

describeSqlite('a store in a SQLite file', () => {
  it.each(storeContract)('$name', ({ check }) => check(openStore(join(folderOf({}), 'made/on/the/way/threads.db'))))

  it('is there after it was closed', async () => {
    const path = storePath()
    const store = openStore(path, { synchronous: 'NORMAL' })
    await begin(store, ['1', '2'])
    await store.close()
    const again = openStore(path)
    expect(await again.load(T)).toEqual({ head: 2, from: 1, records: ['1', '2'], beside: [] })
    expect(await again.lines()).toMatchObject([{ thread: 't', branch: 'main', ...STANDING, busy: false }])
  })

  it('shows what was appended to whoever asks it next, waited for or not', async () => {
    const store = openStore()
    const lease = await begin(store)
    const appended = store.append(lease, { seq: 2, records: ['2'] })
    expect(await store.load(T)).toMatchObject({ head: 2 })
    await appended
  })

  it('tells names apart that no text of SQLite could hold', async () => {
    const store = openStore()
    const names = ['\ud800', '\ud801', '\ufffd', 'a\u0000b', 'a\u0000c']
    for (const name of names) {
      const lease = await begin(store, ['1'], lineOf(name))
      await store.append(lease, { seq: 2, records: [], beside: names.map((key) => [key, '1']) })
      await store.fork(lease, 1, name, STANDING)
    }
    const lines = await store.lines()
    expect(lines.map(({ thread }) => thread)).toEqual(names.flatMap((name) => [name, name]))
    expect(lines.map(({ branch }) => branch)).toEqual(names.flatMap((name) => ['main', name]))
    expect((await store.load(lineOf('\ud801')))?.beside).toEqual(names.map((key) => [key, '1']))
  })

  it('has no row of a thread to which nothing was written, once it is let go of or the store is closed', async () => {
    const path = storePath()
    const store = openStore(path)
    store.release(await store.acquire(T, { create: true }))
    await store.acquire(lineOf('u'), { create: true })
    await begin(store, ['1'], lineOf('v'))
    store.close()
    expect(openRaw(path).prepare('select thread from line').all()).toEqual([{ thread: '"v"' }])
  })

  it('keeps entries beside the log in the order they were first put there', async () => {
    const store = openStore()
    const lease = await begin(store)
    const put = (...keys: readonly string[]) => keys.map((key) => [key, '1'] as const)
    await store.append(lease, { seq: 2, records: [], beside: put('z', 'a') })
    await store.append(lease, { seq: 2, records: [], beside: put('m', 'z') })
    expect((await store.load(T))?.beside).toEqual(put('z', 'a', 'm'))
  })

  it('takes 16,777,215 records in a line, and says so at the next', async () => {
    const path = storePath()
    const store = openStore(path)
    await store.release(await begin(store))
    openRaw(path).exec(`update log set id = ${2 * SPAN - 1}`)
    const lease = await store.acquire(T)
    expect(await codeOf(() => store.append(lease, { seq: SPAN, records: ['1'] }))).toBe('STORE_FULL')
    expect(await codeOf(() => store.append(lease, { seq: SPAN, records: ['1'], release: true }))).toBe('STORE_FULL')
  })
})

describeSqlite('two stores on one file', () => {
  it('see what the other wrote, and hold a line against each other', async () => {
    const path = storePath()
    const [a, b] = [openStore(path), openStore(path)]
    const lease = await begin(a)
    expect(await b.read(T)).toEqual([{ seq: 1, text: '1' }])
    expect(await codeOf(() => b.acquire(T))).toBe('THREAD_BUSY')
    expect(await codeOf(() => b.remove('t'))).toBe('THREAD_BUSY')
    await a.release(lease)
    const next = await b.acquire(T)
    expect(await codeOf(() => a.append(lease, { seq: 2, records: ['2'] }))).toBe('LEASE_LOST')
    await b.append(next, { seq: 2, records: ['2'] })
    expect(await a.load(T)).toMatchObject({ head: 2 })
  })

  it('write with the same lease one after the other, and never the same record', async () => {
    const path = storePath()
    const [a, b] = [openStore(path), openStore(path)]
    const lease = await begin(a)
    await b.append(lease, { seq: 2, records: ['b'] })
    expect(await codeOf(() => a.append(lease, { seq: 2, records: ['a'] }))).toBe('STORE_SEQUENCE')
    await a.append(lease, { seq: 3, records: ['a'] })
    expect((await b.read(T)).map(({ text }) => text)).toEqual(['1', 'b', 'a'])
  })
})

describeSqlite('a lease', () => {
  const HOUR = 3_600_000
  const clocks = () => {
    const path = storePath()
    let time = 1_000
    const now = () => time
    const pass = (ms: number) => {
      time += ms
    }
    return { a: openStore(path, { now, leaseMs: HOUR }), b: openStore(path, { now, leaseMs: HOUR }), pass }
  }

  it('wants to be renewed three times before it runs out', () => {
    expect(openStore().renewEveryMs).toBe(10_000)
    expect(openStore(storePath(), { leaseMs: 600 }).renewEveryMs).toBe(200)
  })

  it('is kept by renewing it', async () => {
    const { a, b, pass } = clocks()
    const lease = await begin(a)
    pass(HOUR - 1)
    await a.renew(lease)
    pass(HOUR - 1)
    expect(await codeOf(() => b.acquire(T))).toBe('THREAD_BUSY')
    expect(await b.lines()).toMatchObject([{ busy: true }])
  })

  it('may be taken over when it ran out, and is lost to the first holder then', async () => {
    const { a, b, pass } = clocks()
    const lease = await begin(a)
    pass(HOUR)
    expect(await b.lines()).toMatchObject([{ busy: false }])
    const next = await b.acquire(T)
    expect(next.epoch).toBeGreaterThan(lease.epoch)
    for (const late of [{ records: ['2'] }, { records: ['2'], release: true }, { records: [], beside: [] }]) {
      expect(await codeOf(() => a.append(lease, { seq: 2, ...late }))).toBe('LEASE_LOST')
    }
    expect(await codeOf(() => a.renew(lease))).toBe('LEASE_LOST')
    expect(await codeOf(() => a.trim(lease, 9))).toBe('LEASE_LOST')
    await a.release(lease)
    await b.append(next, { seq: 2, records: ['2'] })
  })

  it('still holds when it ran out and nobody took it', async () => {
    const { a, pass } = clocks()
    const lease = await begin(a)
    pass(HOUR)
    await a.append(lease, { seq: 2, records: ['2'] })
  })

  it('of a thread that was removed opens nothing in one that begins under its name', async () => {
    const { a, b, pass } = clocks()
    const lease = await begin(a)
    pass(HOUR)
    await b.remove('t')
    const next = await begin(b)
    expect(next.epoch).toBeGreaterThan(lease.epoch)
    expect(await codeOf(() => a.append(lease, { seq: 2, records: ['late'] }))).toBe('LEASE_LOST')
    expect(await b.load(T)).toMatchObject({ head: 1 })
  })
})

describeSqlite('a fork', () => {
  it('keeps what it needs of the line it comes from, also when it was forked below the fork between', async () => {
    const store = openStore()
    const lease = await begin(store, ['1', '2'])
    await store.append(lease, { seq: 3, records: ['3'], snapshot: true })
    await store.fork(T, 3, 'a', STANDING)
    await store.fork({ thread: 't', branch: 'a' }, 2, 'b', STANDING)
    expect(await store.trim(lease, 99)).toBe(0)
    expect(await store.load({ thread: 't', branch: 'b' })).toMatchObject({ head: 2, from: 1, records: ['1', '2'] })
    expect(await store.lines()).toMatchObject([{}, { branch: 'a' }, { forkedFrom: { branch: 'a', at: 2 } }])
  })

  it('is refused where the records it would need were dropped', async () => {
    const store = openStore()
    const lease = await begin(store, ['1', '2'])
    await store.append(lease, { seq: 3, records: ['3'], snapshot: true })
    await store.append(lease, { seq: 4, records: ['4'] })
    expect(await store.trim(lease, 99)).toBe(2)
    expect(await codeOf(() => store.fork(T, 2, 'b', STANDING))).toBe('HISTORY_UNKNOWN')
    await store.fork(T, 3, 'b', STANDING)
    expect(await store.load({ thread: 't', branch: 'b' })).toMatchObject({ head: 3, from: 3, records: ['3'] })
  })
})

describeSqlite('closing a store', () => {
  it('writes what was appended, and gives its leases back', async () => {
    const path = storePath()
    const store = openStore(path)
    const lease = await begin(store)
    const appended = store.append(lease, { seq: 2, records: ['2'] })
    await store.close()
    await appended
    const again = openStore(path)
    await again.append(await again.acquire(T), { seq: 3, records: ['3'] })
  })

  describe('ends it', () => {
    const lease = { ...T, epoch: 1 }
    const calls: readonly (readonly [name: string, call: (store: Store) => unknown])[] = [
      ['acquire', (store) => store.acquire(T)],
      ['renew', (store) => store.renew(lease)],
      ['release', (store) => store.release(lease)],
      ['append', (store) => store.append(lease, { seq: 1, records: ['1'] })],
      ['load', (store) => store.load(T)],
      ['read', (store) => store.read(T)],
      ['fork', (store) => store.fork(T, 1, 'b', STANDING)],
      ['trim', (store) => store.trim(lease, 1)],
      ['lines', (store) => store.lines()],
      ['remove', (store) => store.remove('t')],
    ]
    it.each(calls)('%s is refused', async (_, call) => {
      const store = openStore()
      await store.close()
      expect(await codeOf(() => call(store))).toBe('STORE_CLOSED')
    })
    it('a second time, nothing happens', async () => {
      const store = openStore()
      await store.close()
      await store.close()
    })
  })
})
