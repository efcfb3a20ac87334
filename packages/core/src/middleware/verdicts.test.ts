import { describe, expect, it } from 'vitest'
import { playSingle, SINGLES } from '../../testing/pair.ts'

// The cases of heddle's sections A, C, D, F, G, H and I that are about one verdict, with a hook where the case has a policy:
// A1 to A4, A6, A8, F2 to F5, G3 to G6, H1 to H5, I2 to I5.
describe('a hook that says what a policy answers', () => {
  it.each(
    SINGLES.map((single) => ({
      ...single,
      title: `${single.seam}.${single.half}${single.fails ? ' of a step that fails' : ''}`,
    })),
  )('comes to the same: $title $action', async ({ title: _, ...single }) => {
    const { half, fails, action } = single
    // What a hook leaves of an outcome is the outcome, and no result that somebody else supplied.
    const edits = half === 'after' && action === 'replace' && !fails
    const judged = await playSingle(single, 'policy')
    expect(await playSingle(single, 'own')).toEqual(edits ? { ...judged, warnings: '' } : judged)
  })
})
