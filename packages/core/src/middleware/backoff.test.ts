import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { backoffMs } from './backoff.ts'

describe('backoffMs', () => {
  it.each([
    { name: 'the first wait, no luck', attempt: 1, random: 0.9999, waits: 100 },
    { name: 'the first wait, all luck', attempt: 1, random: 0, waits: 0 },
    { name: 'grows by doubling', attempt: 4, random: 0.9999, waits: 800 },
    { name: 'stops at the cap', attempt: 20, random: 0.9999, waits: 5_000 },
    { name: 'stops at the cap where doubling has no number any more', attempt: 2_000, random: 0.9999, waits: 5_000 },
  ])('$name', ({ attempt, random, waits }) =>
    expect(backoffMs(attempt, { baseMs: 100, capMs: 5_000 }, () => random)).toBe(waits),
  )

  it('is a whole number between 0 and the cap, whatever chance says', () => {
    const anyBackoff = fc.tuple(
      fc.integer({ min: 1, max: 100 }),
      fc.nat(60_000),
      fc.nat(60_000),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
    )
    fc.assert(
      fc.property(anyBackoff, ([attempt, baseMs, capMs, random]) => {
        const ms = backoffMs(attempt, { baseMs, capMs }, () => random)
        expect(Number.isInteger(ms) && ms >= 0 && ms <= capMs).toBe(true)
      }),
    )
  })
})
