import { describe, expect, it } from 'vitest'
import golden from '../../golden/verdict-pairs.json' with { type: 'json' }
import { playBeside, playPair, type Single } from '../../testing/pair.ts'
import { admits, type Half, SEAM_NAMES, type Seam } from './table.ts'

const played = ([consulted, ran, comes, decisions, warnings]: readonly (string | undefined)[]) => ({
  consulted,
  ran,
  comes,
  decisions,
  warnings,
})

const halves = golden.halves.map(({ seam, half, step, rows }) => ({
  seam: seam as Seam,
  half: half as Half,
  step,
  rows,
  title: `${seam}.${half}${step === undefined ? '' : ` of a step that ${step}`}`,
}))

describe('A9: two policies at one half', () => {
  describe.each(halves)('$title', ({ seam, half, step, rows }) => {
    it.each(rows)('%s, then %s', async (first, second, ...expected) => {
      expect(await playPair({ seam, half, step, first: first ?? '', second: second ?? '' })).toEqual(played(expected))
    })
  })

  it('has every pair of admitted verdicts, for a step that succeeds and for one that fails', () => {
    const listed = halves.map(({ title, rows }) => [title, rows.map(([first, second]) => `${first} ${second}`)])
    const pairs = (seam: Seam, half: Half) =>
      admits(seam, half).flatMap((first) => admits(seam, half).map((second) => `${first} ${second}`))
    const steps = (seam: Seam) =>
      seam === 'nodeError' ? ['fails'] : seam === 'agentRound' || seam === 'ask' ? ['succeeds'] : ['succeeds', 'fails']
    const expected = SEAM_NAMES.flatMap((seam) => [
      ...(admits(seam, 'before').length === 0 ? [] : [[`${seam}.before`, pairs(seam, 'before')]]),
      ...steps(seam).map((step) => [`${seam}.after of a step that ${step}`, pairs(seam, 'after')]),
    ])
    expect(listed).toEqual(expected)
  })
})

describe('the final look: the second policy changed the input, and the first is consulted once more', () => {
  describe.each(golden.finalLook)('$seam.before', ({ seam, rows }) => {
    it.each(rows)('and then answers: %s', async (again, ...expected) => {
      const pair = { seam: seam as Seam, half: 'before', first: 'proceed', second: 'modify', again } as const
      expect(await playPair(pair)).toEqual(played(expected))
    })
  })
})

describe('what the operator decided about the first policy', () => {
  it.each(golden.failures)('$seam.$half: it breaks, and failures $rule; the second says $second', async (row) => {
    const { seam, half, step, rule, second, comes } = row as Ruled
    const rules = { onFailure: rule } as const
    expect(await playPair({ seam, half, step, first: 'throws', second, rules } as never)).toEqual(played(comes))
  })
  it.each(golden.modes)('$seam.$half: it is $mode and says $first', async (row) => {
    const { seam, half, step, mode, first, comes } = row as Moded
    const second = half === 'before' ? 'proceed' : 'pass'
    expect(await playPair({ seam, half, step, first, second, rules: { mode } } as never)).toEqual(played(comes))
  })
})

interface Row {
  readonly seam: Seam
  readonly half: Half
  readonly step?: string
  readonly comes: readonly string[]
}
type Ruled = Row & { readonly rule: 'fail' | 'pass'; readonly second: string }
type Moded = Row & { readonly mode: 'shadow' | 'off'; readonly first: string }

describe('own middleware, and then a policy', () => {
  it.each(golden.beside)('$seam.$half: own says $own, the policy $policy', async ({ comes, own, policy, ...at }) => {
    const { seam, half, fails } = at as Pick<Single, 'seam' | 'half' | 'fails'>
    expect(await playBeside({ seam, half, fails, action: own }, policy)).toEqual(played(comes))
  })
})
