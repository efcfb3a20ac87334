const WORDS = new Intl.RelativeTimeFormat('en')

const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
] as const

/** How long ago, or in how long, in words: `3 minutes ago`, `in 2 days`. */
export function ago(time: number, now: number): string {
  const ms = time - now
  const [unit, unitMs] = UNITS.find(([, each]) => Math.abs(ms) >= each) ?? ['second', 1_000]
  return WORDS.format(Math.trunc(ms / unitMs), unit).replace(/^in 0 seconds$|^0 seconds ago$/, 'just now')
}
