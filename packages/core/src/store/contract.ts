import { equal } from '../json/equal.ts'
import type { Json } from '../json/json.ts'
import type { Commit, Lease, Line, Store } from './store.ts'

/** One thing that every store does; `check` rejects when this one does not. */
export interface StoreCase {
  readonly name: string
  check(store: Store): Promise<void>
}

const T: Line = { thread: 't', branch: 'main' }
const at = (n: number) => ({ graph: 'g', status: 'paused', asks: '[]', at: n }) as const

async function begin(store: Store, records: readonly string[] = ['{"n":1}'], line = T): Promise<Lease> {
  const lease = await store.acquire(line, { create: true })
  await store.append(lease, { seq: 1, records, standing: at(1) })
  return lease
}

/** What a store must do, for a suite that runs each case on a fresh, empty one. */
export const storeContract: readonly StoreCase[] = [
  {
    name: 'hands back the records it was given, in order, with their sequence numbers',
    async check(store) {
      const lease = await begin(store, ['{"n":1}', '{"n":2}'])
      await store.append(lease, { seq: 3, records: ['{"n":3}'] })
      same(await store.read(T), [rec(1), rec(2), rec(3)])
      same(await store.read(T, { from: 2, to: 2 }), [rec(2)])
      same(await store.load(T), { head: 3, from: 1, records: [rec(1).text, rec(2).text, rec(3).text], beside: [] })
    },
  },
  {
    name: 'keeps every character of a record',
    async check(store) {
      const text = JSON.stringify({ text: '\u0000 \u2028 𝄞 \\ " \n é', big: 'x'.repeat(300_000) })
      await begin(store, [text])
      same((await store.read(T))[0]?.text, text)
    },
  },
  {
    name: 'knows no thread before something was written to it',
    async check(store) {
      same(await store.load(T), undefined)
      const lease = await store.acquire(T, { create: true })
      same(await store.load(T), undefined)
      same(await store.lines(), [])
      await store.release(lease)
      await refuses('THREAD_UNKNOWN', () => store.acquire(T))
      await refuses('THREAD_UNKNOWN', () => store.read(T))
      await refuses('THREAD_UNKNOWN', () => store.fork(T, 1, 'b', at(1)))
      await refuses('THREAD_UNKNOWN', () => store.acquire({ thread: 't', branch: 'b' }, { create: true }))
    },
  },
  {
    name: 'keeps nothing of a thread to which nothing was written, once it is let go of',
    async check(store) {
      const lease = await store.acquire(T, { create: true })
      await store.release(lease)
      same(await store.remove('t'), false)
      await refuses('LEASE_LOST', () => store.append(lease, { seq: 1, records: ['{"n":1}'] }))
      await store.release(await begin(store))
      same(await store.remove('t'), true)
    },
  },
  {
    name: 'lets one writer in at a time, and the next one after it gave the lease back',
    async check(store) {
      const lease = await begin(store)
      await refuses('THREAD_BUSY', () => store.acquire(T))
      await store.release(lease)
      const next = await store.acquire(T)
      same(next.epoch > lease.epoch, true)
    },
  },
  {
    name: 'refuses every write under a lease that was given back',
    async check(store) {
      const lease = await begin(store)
      await store.append(lease, { seq: 2, records: ['{"n":2}'], release: true })
      await refuses('LEASE_LOST', () => store.append(lease, { seq: 3, records: ['{"n":3}'] }))
      await refuses('LEASE_LOST', () => store.append(lease, { seq: 3, records: [], beside: [['k', 'v']] }))
      await refuses('LEASE_LOST', () => store.renew(lease))
      const next = await store.acquire(T)
      await refuses('LEASE_LOST', () => store.append(lease, { seq: 3, records: ['{"n":3}'] }))
      await store.release(lease)
      await store.append(next, { seq: 3, records: ['{"n":3}'] })
      same(await store.read(T), [rec(1), rec(2), rec(3)])
    },
  },
  {
    name: 'refuses a record out of sequence, and writes nothing of the commit',
    async check(store) {
      const lease = await begin(store)
      for (const seq of [1, 3]) {
        const commit: Commit = { seq, records: ['{"n":9}'], beside: [['k', 'v']], standing: at(9), release: true }
        await refuses('STORE_SEQUENCE', () => store.append(lease, commit))
      }
      same(await store.load(T), { head: 1, from: 1, records: [rec(1).text], beside: [] })
      same((await store.lines())[0]?.at, 1)
      await store.append(lease, { seq: 2, records: ['{"n":2}'] })
    },
  },
  {
    name: 'keeps appends in the order they were made, also when nobody waits in between',
    async check(store) {
      const lease = await begin(store)
      const numbers = Array.from({ length: 50 }, (_, i) => i + 2)
      await Promise.all(numbers.map((n) => store.append(lease, { seq: n, records: [rec(n).text] })))
      same(await store.read(T), [1, ...numbers].map(rec))
    },
  },
  {
    name: 'puts entries beside the log and takes them away',
    async check(store) {
      const lease = await begin(store)
      await store.append(lease, {
        seq: 2,
        records: [],
        beside: [
          ['a', '1'],
          ['b', '2'],
        ],
      })
      await store.append(lease, {
        seq: 2,
        records: ['{"n":2}'],
        beside: [
          ['a', null],
          ['b', '3'],
        ],
      })
      same((await store.load(T))?.beside, [['b', '3']])
      await store.append(lease, {
        seq: 3,
        records: [],
        beside: [
          ['b', null],
          ['never there', null],
        ],
      })
      same((await store.load(T))?.beside, [])
    },
  },
  {
    name: 'reads from the last snapshot on',
    async check(store) {
      const lease = await begin(store, ['{"n":1}', '{"n":2}'])
      await store.append(lease, { seq: 3, records: ['{"n":3}'], snapshot: true })
      await store.append(lease, { seq: 4, records: ['{"n":4}'] })
      same(await store.load(T), { head: 4, from: 3, records: [rec(3).text, rec(4).text], beside: [] })
      same(await store.read(T), [1, 2, 3, 4].map(rec))
    },
  },
  {
    name: 'forks a line: what is before is shared, what comes after is not',
    async check(store) {
      const lease = await begin(store, ['{"n":1}', '{"n":2}', '{"n":3}'])
      await store.append(lease, { seq: 4, records: [], beside: [['k', 'v']] })
      await store.fork(T, 2, 'early', at(1))
      await store.fork(T, 3, 'late', at(1))
      const early = { thread: 't', branch: 'early' }
      const fork = await store.acquire(early)
      await store.append(fork, { seq: 3, records: ['{"n":"e"}'], standing: at(5) })
      await store.append(lease, { seq: 4, records: ['{"n":4}'] })
      same(await store.read(early), [rec(1), rec(2), { seq: 3, text: '{"n":"e"}' }])
      same(await store.read(T), [1, 2, 3, 4].map(rec))
      same((await store.load(early))?.beside, [])
      same((await store.load({ thread: 't', branch: 'late' }))?.beside, [['k', 'v']])
      same((await store.lines('t')).find((line) => line.branch === 'early')?.forkedFrom, { branch: 'main', at: 2 })
    },
  },
  {
    name: 'lists a fork as it was told that it stands, whatever its origin comes to',
    async check(store) {
      const lease = await begin(store, ['{"n":1}', '{"n":2}'])
      const standing = { graph: 'g', status: 'failed', asks: '[]', at: 7 } as const
      await store.fork(T, 2, 'head', standing)
      await store.fork(T, 1, 'before', { graph: 'g', asks: '[]', at: 8 })
      await store.append(lease, { seq: 3, records: ['{"n":3}'], standing: at(9), release: true })
      same(
        (await store.lines('t')).map(({ branch, status, at, busy }) => [branch, status ?? null, at, busy]),
        [
          ['main', 'paused', 9, false],
          ['before', null, 8, false],
          ['head', 'failed', 7, false],
        ],
      )
    },
  },
  {
    name: 'forks a fork, and reads it from a snapshot of its origin',
    async check(store) {
      const lease = await begin(store, ['{"n":1}'])
      await store.append(lease, { seq: 2, records: ['{"n":2}'], snapshot: true })
      await store.append(lease, { seq: 3, records: ['{"n":3}'], snapshot: true })
      await store.fork(T, 2, 'a', at(1))
      const a = await store.acquire({ thread: 't', branch: 'a' })
      await store.append(a, { seq: 3, records: ['{"n":"a"}'] })
      await store.fork(a, 3, 'b', at(1))
      same(await store.load({ thread: 't', branch: 'b' }), {
        head: 3,
        from: 2,
        records: [rec(2).text, '{"n":"a"}'],
        beside: [],
      })
    },
  },
  {
    name: 'refuses a fork whose name is taken, or from where there is nothing',
    async check(store) {
      await begin(store)
      await store.fork(T, 1, 'b', at(1))
      await refuses('BRANCH_EXISTS', () => store.fork(T, 1, 'b', at(1)))
      await refuses('BRANCH_EXISTS', () => store.fork(T, 1, 'main', at(1)))
      for (const bad of [0, 2, 1.5, Number.NaN]) await refuses('HISTORY_UNKNOWN', () => store.fork(T, bad, 'c', at(1)))
      same((await store.lines()).length, 2)
    },
  },
  {
    name: 'drops old records, but none that a snapshot or a fork needs',
    async check(store) {
      const lease = await begin(store, ['{"n":1}', '{"n":2}'])
      await store.append(lease, { seq: 3, records: ['{"n":3}'], snapshot: true })
      await store.append(lease, { seq: 4, records: ['{"n":4}'], snapshot: true })
      await store.fork(T, 3, 'b', at(1))
      same(await store.trim(lease, 99), 2)
      same(await store.read(T), [rec(3), rec(4)])
      same(await store.read({ thread: 't', branch: 'b' }), [rec(3)])
      same(await store.trim(lease, 99), 0)
    },
  },
  {
    name: 'drops nothing that a fork of a fork needs, and forks from nothing that was dropped',
    async check(store) {
      const lease = await begin(store, ['{"n":1}'])
      await store.append(lease, { seq: 2, records: ['{"n":2}'], snapshot: true })
      await store.append(lease, { seq: 3, records: ['{"n":3}'] })
      await store.fork(T, 3, 'a', at(1))
      await store.fork({ thread: 't', branch: 'a' }, 2, 'b', at(1))
      await store.append(lease, { seq: 4, records: ['{"n":4}'], snapshot: true })
      same(await store.trim(lease, 99), 1)
      same((await store.load({ thread: 't', branch: 'b' }))?.records, [rec(2).text])
      await refuses('HISTORY_UNKNOWN', () => store.fork(T, 1, 'c', at(1)))
    },
  },
  {
    name: 'takes no lease on a removed thread for one on another of its name',
    async check(store) {
      const old = await begin(store)
      await store.release(old)
      await store.remove('t')
      const lease = await begin(store)
      await refuses('LEASE_LOST', () => store.append(old, { seq: 2, records: ['{"n":9}'] }))
      await store.append(lease, { seq: 2, records: ['{"n":2}'] })
      same(await store.read(T), [rec(1), rec(2)])
    },
  },
  {
    name: 'refuses what lies beside the log, too, when a record before it is missing',
    async check(store) {
      const lease = await begin(store)
      await refuses('STORE_SEQUENCE', () => store.append(lease, { seq: 3, records: [], beside: [['k', 'v']] }))
      same((await store.load(T))?.beside, [])
    },
  },
  {
    name: 'lists every line with what its last run left, the last written first',
    async check(store) {
      const first = await begin(store)
      await begin(store, ['{"n":1}'], { thread: 'u', branch: 'main' })
      await store.append(first, {
        seq: 2,
        records: ['{"n":2}'],
        standing: { graph: 'g', asks: '[{"key":"k"}]', at: 7 },
        release: true,
      })
      const lines = await store.lines()
      same(
        lines.map(({ thread, busy, head, status }) => [thread, busy, head, status ?? null]),
        [
          ['t', false, 2, null],
          ['u', true, 1, 'paused'],
        ],
      )
      same(lines[0]?.asks, '[{"key":"k"}]')
      same(
        (await store.lines('u')).map((line) => line.thread),
        ['u'],
      )
    },
  },
  {
    name: 'removes a thread with its branches, unless somebody writes to it',
    async check(store) {
      const lease = await begin(store)
      await store.fork(T, 1, 'b', at(1))
      await refuses('THREAD_BUSY', () => store.remove('t'))
      await store.release(lease)
      same(await store.remove('t'), true)
      same(await store.remove('t'), false)
      same(await store.load({ thread: 't', branch: 'b' }), undefined)
      await begin(store)
    },
  },
  {
    name: 'keeps of a principal what was written over what was read, and nothing else',
    async check({ kept }) {
      same(await kept.read('Limit', 'ann'), undefined)
      same(await kept.write('Limit', 'ann', '{"n":1}', '{"n":0}'), false)
      same(await kept.write('Limit', 'ann', '{"n":1}', undefined), true)
      same(await kept.write('Limit', 'ann', '{"n":9}', undefined), false)
      same(await kept.write('Limit', 'ann', '{"n":2}', '{"n":0}'), false)
      same(await kept.write('Limit', 'ann', '{"n":2}', '{"n":1}'), true)
      same(await kept.read('Limit', 'ann'), '{"n":2}')
    },
  },
  {
    name: 'lets one of those who have read the same write it',
    async check({ kept }) {
      const writes = ['1', '2', '3'].map(async (text) => kept.write('Limit', 'ann', text, undefined))
      const written = await Promise.all(writes)
      same(written.filter(Boolean).length, 1)
      same(await kept.read('Limit', 'ann'), String(written.indexOf(true) + 1))
    },
  },
  {
    name: 'tells policies and principals apart whatever their names are, and lists what it keeps of them',
    async check({ kept }) {
      const names = [
        'a',
        'A',
        '',
        "'; drop table x; --",
        '__proto__',
        'a"],["b',
        '\u00e9',
        'e\u0301',
        'a\u0000b',
        '\ud800',
      ]
      const pairs = names.flatMap((by) => names.map((principal) => ({ by, principal })))
      for (const { by, principal } of pairs)
        same(await kept.write(by, principal, JSON.stringify([by, principal]), undefined), true)
      for (const { by, principal } of pairs) same(await kept.read(by, principal), JSON.stringify([by, principal]))
      same((await kept.list()).length, pairs.length)
      const ofA = (await kept.list('a')).map(({ text }) => text).sort()
      same(ofA, names.map((by) => JSON.stringify([by, 'a'])).sort())
    },
  },
  {
    name: 'forgets what it keeps of one principal, of one policy or of all, whatever becomes of threads',
    async check(store) {
      const { kept } = store
      for (const by of ['Limit', 'Spend'])
        for (const principal of ['ann', 'bob']) await kept.write(by, principal, '1', undefined)
      await store.release(await begin(store))
      await store.remove('t')
      same((await kept.list()).length, 4)
      same(await kept.remove('ann', 'Limit'), 1)
      same(await kept.write('Limit', 'ann', '2', '1'), false)
      same(await kept.remove('bob'), 2)
      same(await kept.remove('bob'), 0)
      same(await kept.list(), [{ by: 'Spend', principal: 'ann', text: '1' }])
    },
  },
  {
    name: 'tells threads apart whatever their names are',
    async check(store) {
      const names = [
        'a',
        'A',
        ' ',
        "'; drop table x; --",
        '__proto__',
        'constructor',
        '../x',
        '\u00e9',
        'e\u0301',
        '𝄞',
        'a\u0000b',
      ]
      for (const name of names) await begin(store, [JSON.stringify({ name })], { thread: name, branch: 'main' })
      for (const name of names) {
        same(
          (await store.read({ thread: name, branch: 'main' })).map(({ text }) => text),
          [JSON.stringify({ name })],
        )
      }
    },
  },
]

const rec = (n: number) => ({ seq: n, text: `{"n":${n}}` })

function same(got: unknown, wanted: unknown): void {
  const plain = (value: unknown) => (value === undefined ? null : JSON.parse(JSON.stringify(value))) as Json
  if (equal(plain(got), plain(wanted))) return
  throw new Error(`got ${JSON.stringify(got)}, wanted ${JSON.stringify(wanted)}`)
}

async function refuses(code: string, work: () => unknown): Promise<void> {
  let value: unknown
  try {
    value = await work()
  } catch (error) {
    same((error as { code?: string }).code, code)
    return
  }
  throw new Error(`wanted ${code}, got ${JSON.stringify(value)}`)
}
