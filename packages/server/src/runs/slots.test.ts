import { describe, expect, it } from 'vitest'
import { Slots } from './slots.ts'

/** Who takes places, in the order in which they got one; each may leave by its name. */
function stage(options: ConstructorParameters<typeof Slots>[0]) {
  const slots = new Slots(options)
  const entered: string[] = []
  const leave = new Map<string, () => void>()
  const take = async (caller: string, name = caller, signal?: AbortSignal) => {
    leave.set(name, await slots.take(caller, signal))
    entered.push(name)
  }
  return { slots, entered, take, leave: (name: string) => leave.get(name)?.() }
}

/** What was let in has gone on. */
const settled = () => new Promise(setImmediate)

describe('a place for a run', () => {
  it('is had at once while there are some, and else waited for', async () => {
    const { slots, entered, take, leave } = stage({ max: 2 })
    await take('ann', 'one')
    await take('bob', 'two')
    void take('carl', 'three')
    await settled()
    expect([entered, slots.taken, slots.waiting]).toEqual([['one', 'two'], 2, 1])
    leave('one')
    await settled()
    expect([entered, slots.taken, slots.waiting]).toEqual([['one', 'two', 'three'], 2, 0])
  })

  it('is given up once', async () => {
    const { slots, take, leave } = stage({ max: 2 })
    await take('ann')
    await take('bob')
    leave('ann')
    leave('ann')
    expect(slots.taken).toBe(1)
  })

  it('goes to who has the fewest, and of these to who has waited longest', async () => {
    const { entered, take, leave } = stage({ max: 2 })
    await take('ann', 'a1')
    await take('ann', 'a2')
    for (const [caller, name] of [
      ['ann', 'a3'],
      ['bob', 'b1'],
      ['carl', 'c1'],
      ['bob', 'b2'],
    ] as const)
      void take(caller, name)
    for (const name of ['a1', 'a2', 'b1', 'c1']) {
      leave(name)
      await settled()
    }
    expect(entered).toEqual(['a1', 'a2', 'b1', 'a3', 'c1', 'b2'])
  })

  it('is refused when so many wait already, with when to come again', async () => {
    const { slots, take } = stage({ max: 1, maxQueue: 1 })
    await take('ann')
    void take('bob')
    await expect(take('carl')).rejects.toMatchObject({ code: 'TOO_MANY_RUNS', headers: { 'retry-after': '1' } })
    expect([slots.taken, slots.waiting, slots.refused]).toEqual([1, 1, 1])
  })

  it('is refused to one caller who has and waits for as many as one may, and not to others', async () => {
    const { take, entered, leave } = stage({ max: 4, maxPerCaller: 1 })
    await take('ann', 'a1')
    void take('ann', 'a2')
    await expect(take('ann', 'a3')).rejects.toMatchObject({ code: 'TOO_MANY_RUNS' })
    await take('bob')
    leave('a1')
    await settled()
    expect(entered).toEqual(['a1', 'bob', 'a2'])
  })

  it('is not kept for who has gone', async () => {
    const { slots, entered, take, leave } = stage({ max: 1 })
    const gone = new AbortController()
    await take('ann')
    const waiting = take('bob', 'bob', gone.signal)
    void take('carl')
    gone.abort()
    await expect(waiting).rejects.toMatchObject({ code: 'REQUEST_CUT' })
    await expect(take('dora', 'dora', gone.signal)).rejects.toMatchObject({ code: 'REQUEST_CUT' })
    leave('ann')
    await settled()
    expect([entered, slots.waiting]).toEqual([['ann', 'carl'], 0])
  })
})
