import { expect, it } from 'vitest'
import { ago } from './ago.ts'

it.each([
  { ms: 0, says: 'just now' },
  { ms: -999, says: 'just now' },
  { ms: 400, says: 'just now' },
  { ms: -1_000, says: '1 second ago' },
  { ms: -59_999, says: '59 seconds ago' },
  { ms: -3 * 60_000, says: '3 minutes ago' },
  { ms: -25 * 3_600_000, says: '1 day ago' },
  { ms: 2 * 3_600_000, says: 'in 2 hours' },
])('$ms ms from now is $says', ({ ms, says }) => expect(ago(10 ** 12 + ms, 10 ** 12)).toBe(says))
