import { describe, expect, it, onTestFinished } from 'vitest'
import { codeOf, describeSqlite, openRaw, openStore, storePath } from '../testing/store.ts'
import { runLogContract } from './contract.ts'
import { memoryRunLog } from './memory.ts'
import type { RunEntry } from './run-log.ts'
import { sqliteRunLog } from './sqlite.ts'

const entryOf = (id: string): RunEntry => ({
  id,
  owner: '',
  thread: 't',
  branch: 'main',
  flow: { name: 'f' },
  begun: { kind: 'start', inputs: {} },
  by: 'local',
  startedBy: 'local',
  at: 1,
})
const ended = { ending: { status: 'completed' as const, warnings: [], decisions: [] }, at: 1 }

function openLog(path = storePath(), options?: Parameters<typeof sqliteRunLog>[1]) {
  const log = sqliteRunLog(path, options)
  onTestFinished(() => log.close())
  return log
}

describe('a log of runs in memory', () => {
  it.each(runLogContract)('$name', ({ check }) => check(memoryRunLog()))
})

describeSqlite('a log of runs in a SQLite file', () => {
  it.each(runLogContract)('$name', ({ check }) => check(openLog()))
  it.each(runLogContract)('$name (NORMAL)', ({ check }) => check(openLog(storePath(), { synchronous: 'NORMAL' })))

  it('lies in the file of a store, which reads its threads as before', async () => {
    const path = storePath()
    const store = openStore(path)
    const lease = await store.acquire({ thread: 't', branch: 'main' }, { create: true })
    await store.append(lease, { seq: 1, records: ['1'], release: true })
    const log = openLog(path)
    await log.begin(entryOf('a'))
    expect(await openStore(path).read({ thread: 't', branch: 'main' })).toEqual([{ seq: 1, text: '1' }])
    expect(openRaw(path).prepare('pragma user_version').get()).toEqual({ user_version: 1 })
  })

  it('leaves the runs it held to whoever opens the file next', async () => {
    const path = storePath()
    const log = openLog(path)
    await log.begin(entryOf('a'))
    await log.append('a', ['1'])
    const other = openLog(path)
    expect(await other.claim()).toEqual([])
    await log.close()
    expect(await other.claim()).toEqual([entryOf('a')])
    await other.append('a', ['2'])
    expect((await other.events('a', 0, 9)).map(({ text }) => text)).toEqual(['1', '2'])
  })

  it('takes a run from who gave no sign of life, and refuses what that one still writes', async () => {
    const path = storePath()
    let time = 0
    const options = { leaseMs: 30_000, now: () => time }
    const [slow, other] = [openLog(path, options), openLog(path, options)]
    await slow.begin(entryOf('a'))
    await slow.append('a', ['1'])
    time = 29_000
    expect(await slow.beat()).toEqual([])
    time = 58_000
    expect(await other.claim()).toEqual([])
    time = 59_000
    expect(await other.claim()).toEqual([entryOf('a')])
    expect(await codeOf(() => slow.append('a', ['x']))).toBe('RUN_LOST')
    expect(await codeOf(() => slow.end('a', ended))).toBe('RUN_LOST')
    await slow.release('a')
    await other.end('a', { ...ended, events: ['2'] })
    expect((await slow.events('a', 0, 9)).map(({ text }) => text)).toEqual(['1', '2'])
  })

  it('lets one of two processes answer a question', async () => {
    const path = storePath()
    const logs = [openLog(path), openLog(path)] as const
    await logs[0].begin(entryOf('a'))
    const ask = { id: 'q', key: 'k', askedBy: 'graph', payload: null, nodeName: 'n', taskId: '1', askedAt: 1 }
    await logs[0].end('a', { ...ended, ending: { ...ended.ending, status: 'paused', asks: [ask] } })
    const answers = await Promise.allSettled(logs.map((log, i) => log.begin(entryOf(`b${i}`), ['q'])))
    expect(answers.map((answer) => (answer.status === 'rejected' ? answer.reason.code : 'begun')).sort()).toEqual([
      'ASK_ANSWERED',
      'begun',
    ])
    expect(await logs[0].runs()).toHaveLength(2)
  })

  it('tells a cancel to the process that holds the run', async () => {
    const path = storePath()
    const [holder, other] = [openLog(path), openLog(path)]
    await holder.begin(entryOf('a'))
    expect(await other.cancel('a')).toBe(true)
    expect(await other.beat()).toEqual([])
    expect(await holder.beat()).toEqual(['a'])
  })

  it('never mixes up a run with a forgotten one', async () => {
    const path = storePath()
    const [one, other] = [openLog(path), openLog(path)]
    await one.begin(entryOf('a'))
    await other.removeThread('', 't')
    await other.begin(entryOf('b'))
    expect(await codeOf(() => one.append('a', ['x']))).toBe('RUN_UNKNOWN')
    expect(await other.events('b', 0, 9)).toEqual([])
  })

  it('says that it is closed', async () => {
    const log = openLog()
    await log.close()
    expect(await codeOf(() => log.run('a'))).toBe('STORE_CLOSED')
    expect(await codeOf(() => log.append('a', ['1']))).toBe('STORE_CLOSED')
  })
})
