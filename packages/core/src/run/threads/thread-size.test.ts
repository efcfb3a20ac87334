import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { quiet } from '../../../testing/clock.ts'
import { chain, setUp } from '../../../testing/threads.ts'
import {
  append,
  type Commit,
  createRuntime,
  END,
  graph,
  type Lease,
  MemoryStore,
  node,
  START,
  state,
} from '../../index.ts'

const T = { thread: 't' }
const KB = 'x'.repeat(1_000)

/** A graph that appends 1 KB in each of so many steps beside a large field that nobody changes. */
const growing = (steps: number) => {
  const Big = state({ still: z.string().default(''), log: append(z.string()) })
  const step = node('step', Big, () => ({ log: [KB] }))
  return graph('growing', Big)
    .edge(START, step)
    .when(step, (s) => s.log.length < steps, { then: step, otherwise: END })
    .check()
}

/** Counts what is appended. */
class CountingStore extends MemoryStore {
  bytes = 0

  override append(lease: Lease, commit: Commit): void {
    for (const text of commit.records) this.bytes += text.length
    for (const [key, text] of commit.beside ?? []) this.bytes += key.length + (text?.length ?? 0)
    super.append(lease, commit)
  }
}

/** Writes with a later turn of the loop, and counts how many writes are under way at once. */
class SlowStore extends MemoryStore {
  appends = 0
  underWay = 0
  most = 0

  override async append(lease: Lease, commit: Commit): Promise<void> {
    this.appends++
    this.underWay++
    this.most = Math.max(this.most, this.underWay)
    await quiet()
    this.underWay--
    super.append(lease, commit)
  }
}

describe('the log of a thread', () => {
  const limits = { maxIterations: 1_000 }
  const bytesOf = async (steps: number, still: number) => {
    const store = new CountingStore()
    await createRuntime({ store, limits }).run(growing(steps), { still: 'y'.repeat(still) }, T)
    return store.bytes
  }

  it('E1: grows with what changes: a large value that nobody touches is stored about once, and a list as what is added', async () => {
    expect(await bytesOf(100, 200_000)).toBeLessThan(2 * (100 * KB.length + 200_000))
  })

  it('E1: grows in proportion to the steps, and not to their square', async () => {
    const [short, long] = [await bytesOf(50, 0), await bytesOf(400, 0)]
    expect(long / short).toBeLessThan(1.5 * 8)
    expect(long).toBeLessThan(2 * 400 * KB.length)
  })

  it('E2: waits for a slow store: however many steps there are, no more than one of them is on its way', async () => {
    const store = new SlowStore()
    await createRuntime({ store, limits }).run(growing(200), {}, T)
    expect(store.most).toBe(1)
    expect(store.appends).toBeGreaterThan(200)
  })
})

describe('the state of a thread, read back', () => {
  it('E5: has every field, also those that the last nodes did not touch', async () => {
    const { runtime } = setUp()
    const g = chain({ a: () => ({ x: 'by a', i: 7 }), b: () => ({ log: ['b'] }), c: () => undefined })
    await runtime.run(g, {}, T)
    expect((await runtime.stateAt(g, 't')).state).toEqual({ x: 'by a', i: 7, log: ['b'] })
  })

  it('E6: of one fork is its own: a change by hand is seen by no other fork of the same place, and not by their origin', async () => {
    const { runtime } = setUp()
    const g = chain({ a: () => ({ log: ['a'] }) })
    await runtime.run(g, {}, T)
    const at = (await runtime.history('t')).find(({ type }) => type === 'begin')?.seq
    for (const name of ['left', 'right']) await runtime.fork('t', { at, name })
    await runtime.updateState(g, 't', { log: ['by hand'] }, { branch: 'left' })
    const logOf = async (branch?: string) => (await runtime.stateAt(g, 't', { branch })).state?.log
    expect([await logOf('left'), await logOf('right'), await logOf()]).toEqual([['by hand'], [], ['a']])
    expect((await runtime.continue(g, 't', { branch: 'right' })).state.log).toEqual(['a'])
    expect((await runtime.continue(g, 't', { branch: 'left' })).state.log).toEqual(['by hand', 'a'])
    expect(await logOf()).toEqual(['a'])
  })
})
