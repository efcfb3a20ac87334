import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Commit, type Lease, MemoryStore } from '@sluice/core'
import { afterAll, describe, expect, it } from 'vitest'
import { killAtRandom, random } from './kill.mjs'
import { EFFECTS, effectsIn, finish, scenario, step } from './scenario.mjs'

const folder = mkdtempSync(join(tmpdir(), 'sluice-crash-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A store that fails chosen appends, before or after they took place. */
class Failing extends MemoryStore {
  appends = 0
  readonly #fails: (n: number) => 'before' | 'after' | undefined

  constructor(fails: (n: number) => 'before' | 'after' | undefined) {
    super()
    this.#fails = fails
  }

  override append(lease: Lease, commit: Commit): void {
    const fails = this.#fails(++this.appends)
    if (fails === 'before') throw new Error('the disk is gone')
    super.append(lease, commit)
    if (fails === 'after') throw new Error('the disk is gone, after it wrote')
  }
}

/** A thread that needs more runs than that makes no headway. */
const MOST_STEPS = 500

let threads = 0

/** Takes a thread to its end over a failing store, whatever fails on the way; says what it came to and what it did. */
async function play(fails: (n: number) => 'before' | 'after' | undefined) {
  const file = join(folder, `${threads++}.effects`)
  const store = new Failing(fails)
  const made = scenario(file, store)
  let failures = 0
  for (let steps = 0; ; steps++) {
    if (steps > MOST_STEPS) throw new Error('the thread does not come to its end')
    const [line] = await made.runtime.branches('t')
    if (line?.status === 'completed') break
    await step(made, 't', file).catch((error: Error) => {
      if (!/the disk is gone/.test(error.message)) throw error
      failures++
    })
  }
  return { state: await finish(made, 't', file), effects: effectsIn(file), appends: store.appends, failures }
}

describe('a store that fails', async () => {
  const quiet = await play(() => undefined)

  it('is one that the scenario writes to often enough to matter', () => {
    expect(quiet.failures).toBe(0)
    expect(quiet.appends).toBeGreaterThan(40)
  })

  it.each(['before', 'after'] as const)(
    'at any one write, %s it took place: the thread opens, goes on, and ends as if nothing had been; each effect is had once',
    async (when) => {
      for (let at = 1; at <= quiet.appends; at++) {
        const { state, effects } = await play((n) => (n === at ? when : undefined))
        expect({ at, state }).toEqual({ at, state: quiet.state })
        for (const effect of EFFECTS)
          expect({ at, effect, times: effects.get(effect) }).toEqual({ at, effect, times: 1 })
      }
    },
    120_000,
  )

  it.each([1, 2, 3, 4, 5])('at every sixth write or so, as chance has it (seed %i)', async (seed) => {
    const next = random(seed)
    const { state, effects, failures } = await play(() => {
      const chance = next()
      return chance > 1 / 6 ? undefined : chance > 1 / 12 ? 'before' : 'after'
    })
    expect(failures).toBeGreaterThan(3)
    expect(state).toEqual(quiet.state)
    for (const effect of EFFECTS) expect({ effect, times: effects.get(effect) }).toEqual({ effect, times: 1 })
  })
})

describe('a process that is killed', () => {
  it('at random moments leaves a thread that another one takes to the same end; each effect is had once', async () => {
    const { kills } = await killAtRandom({ times: 20, seed: 20_26 })
    expect(kills).toBeGreaterThanOrEqual(20)
  }, 120_000)
})
