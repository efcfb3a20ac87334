import { delimiter } from 'node:path'
import type { Line, Store } from '@sluice/core'
import { expect, it } from 'vitest'
import { builtStore } from '../testing/runtime.ts'
import {
  codeOf,
  describeSqlite,
  lineOf,
  openRaw,
  openStore,
  runStore,
  type Spoken,
  storePath,
} from '../testing/store.ts'

const T = lineOf('t')
const seqsOf = async (store: Store, line: Line) => (await store.read(line)).map(({ seq }) => seq)
const textsOf = async (store: Store, line: Line) => (await store.read(line)).map(({ text }) => JSON.parse(text))
const upTo = (last: number) => Array.from({ length: last }, (_, i) => i + 1)

/** Appends to a thread of its own under one lease, and to a shared one under a new lease each time; says what is acknowledged. */
const APPEND_BOTH = `
const [path, name, count] = process.argv.slice(2)
const store = sqliteStore(path)
const own = await store.acquire({ thread: name, branch: 'main' }, { create: true })
const turn = () => new Promise(setImmediate)
async function shared() {
  for (;;) {
    try {
      return await store.acquire({ thread: 'shared', branch: 'main' }, { create: true })
    } catch (error) {
      if (error.code !== 'THREAD_BUSY') throw error
      await turn()
    }
  }
}
for (let n = 1; n <= count; n++) {
  await store.append(own, { seq: n, records: [String(n)] })
  console.log('own ' + n)
  const lease = await shared()
  const seq = ((await store.load(lease))?.head ?? 0) + 1
  await store.append(lease, { seq, records: [JSON.stringify(name + n)], release: true })
  console.log('shared ' + name + n)
  await turn()
}
await store.close()
`

/** Takes the thread when told to, says how that went, and appends at each line it is told after that. */
const HOLD = `
import { createInterface } from 'node:readline'
const store = sqliteStore(process.argv[2])
const said = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
console.log('ready')
await said.next()
try {
  const lease = await store.acquire({ thread: 't', branch: 'main' }, { create: true })
  await store.append(lease, { seq: 1, records: ['1'], standing: { graph: 'g', asks: '[]', at: 1 } })
  console.log('held')
  for (let seq = 2; !(await said.next()).done; seq++) {
    await store.append(lease, { seq, records: [String(seq)] })
    console.log('appended')
  }
} catch (error) {
  console.log(error.code)
  await said.next()
}
`

/** Reads the thread of whoever wrote before, says its texts, and adds its own. */
const IN_TURN = `
const [path, name] = process.argv.slice(2)
const store = sqliteStore(path)
const lease = await store.acquire({ thread: 't', branch: 'main' }, { create: true })
const { head, records, beside } = (await store.load(lease)) ?? { head: 0, records: [], beside: [] }
await store.append(lease, { seq: head + 1, records: [JSON.stringify(name + '\\u0000𝄞')], beside: [[name, '1']], release: true })
console.log(JSON.stringify([...records.map((text) => JSON.parse(text)), ...beside.map(([key]) => key)]))
await store.close()
`

const others = process.env.SLUICE_OTHER_NODES?.split(delimiter).filter((path) => path !== '') ?? []

const NONE = others.length === 0 ? ' (skipped: SLUICE_OTHER_NODES lists no other node)' : ''

describeSqlite('several processes on one file', () => {
  const module = builtStore()
  const holder = async (path: string): Promise<Spoken> => {
    const child = runStore(module, HOLD, [path])
    expect(await child.next()).toBe('ready')
    return child
  }
  const held = async (path: string): Promise<Spoken> => {
    const child = await holder(path)
    child.say('take it')
    expect(await child.next()).toBe('held')
    return child
  }

  it('append side by side, and lose nothing of what was acknowledged when one is killed (E30)', async () => {
    const path = storePath()
    const names = ['a', 'b', 'c', 'victim']
    const children = names.map((name) =>
      runStore(module, APPEND_BOTH, [path, name, name === 'victim' ? 'Infinity' : '200']),
    )
    const said = await Promise.all(
      children.map(async (child, i) => {
        if (names[i] !== 'victim') return child.rest()
        const lines = [await child.next()]
        while (lines.length < 150) lines.push(await child.next())
        child.child.kill('SIGKILL')
        return [...lines, ...(await child.rest())]
      }),
    )
    expect(children.map(({ stderr }) => stderr)).toEqual(['', '', '', ''])

    const store = openStore(path)
    for (const [i, name] of names.entries()) {
      const acknowledged = said[i]?.filter((line) => line.startsWith('own')).length ?? 0
      const seqs = await seqsOf(store, lineOf(name))
      expect(seqs).toEqual(upTo(seqs.length))
      expect(seqs.length).toBeGreaterThanOrEqual(acknowledged)
      if (name !== 'victim') expect(seqs).toHaveLength(200)
    }
    const shared = lineOf('shared')
    expect(await seqsOf(store, shared)).toEqual(upTo((await store.load(shared))?.head ?? 0))
    const written = await textsOf(store, shared)
    expect(new Set(written).size).toBe(written.length)
    const acknowledged = said.flat().flatMap((line) => (line.startsWith('shared ') ? [line.slice(7)] : []))
    expect(acknowledged.filter((text) => !written.includes(text))).toEqual([])
    expect(openRaw(path).prepare('pragma integrity_check').get()).toEqual({ integrity_check: 'ok' })
  }, 120_000)

  it('take one line at the same moment: one has it, the others are told that it is busy (field case E3)', async () => {
    const path = storePath()
    const children = await Promise.all(upTo(4).map(() => holder(path)))
    for (const child of children) child.say('take it')
    const said = await Promise.all(children.map((child) => child.next()))
    expect(said.toSorted()).toEqual(['THREAD_BUSY', 'THREAD_BUSY', 'THREAD_BUSY', 'held'])
    expect(await openStore(path).read(T)).toEqual([{ seq: 1, text: '1' }])
  })

  it('know who holds a line, and take it over at once from one that was killed', async () => {
    const path = storePath()
    const child = await held(path)
    const store = openStore(path)
    await expect(async () => store.acquire(T)).rejects.toThrow(
      `thread "t" is held by process ${child.child.pid}; a thread has one writer at a time.`,
    )
    expect(await store.lines()).toMatchObject([{ busy: true }])
    await child.kill('SIGKILL')
    expect(await store.lines()).toMatchObject([{ busy: false }])
    await store.append(await store.acquire(T), { seq: 2, records: ['2'] })
  })

  it.runIf(process.platform === 'linux')('also from one whose end its parent never noticed', async () => {
    const path = storePath()
    const starter = runStore(module, HOLD, [path], ['sh', '-c', '"$0" "$@" <&0 & exec sleep 1000', process.execPath])
    expect(await starter.next()).toBe('ready')
    starter.say('take it')
    expect(await starter.next()).toBe('held')
    starter.child.stdin?.end()
    const store = openStore(path)
    await expect.poll(() => codeOf(() => store.acquire(T)), { timeout: 20_000 }).toBe(undefined)
  })

  it('let one that stands still keep its line while the lease lasts; after that it can write no more', async () => {
    const path = storePath()
    const child = await held(path)
    child.child.kill('SIGSTOP')
    const store = openStore(path)
    expect(await codeOf(() => store.acquire(T))).toBe('THREAD_BUSY')
    const later = openStore(path, { now: () => Date.now() + 30_000 })
    await later.append(await later.acquire(T), { seq: 2, records: ['"mine"'] })
    child.child.kill('SIGCONT')
    child.say('append')
    expect(await child.next()).toBe('LEASE_LOST')
    expect(await textsOf(store, T)).toEqual([1, 'mine'])
  })

  it.skipIf(others.length === 0)(
    `of different versions of Node read and write it in turn, and say nothing on stderr${NONE}`,
    async () => {
      const path = storePath()
      const turns = [process.execPath, ...others.flatMap((node) => [node, process.execPath])]
      for (const [i, node] of turns.entries()) {
        const child = runStore(module, IN_TURN, [path, `turn ${i}`], [node])
        const before = turns.slice(0, i).map((_, n) => `turn ${n}`)
        const lines = (await child.rest()).map((line) => JSON.parse(line))
        expect(child.stderr).toBe('')
        expect(lines).toEqual([[...before.map((name) => `${name}\u0000𝄞`), ...before]])
      }
      expect(await openStore(path).load(T)).toMatchObject({ head: turns.length })
    },
  )
})
