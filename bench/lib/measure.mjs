// How a figure is made: warm up, take samples in turn, say median and best.

const median = (sorted) => sorted[sorted.length >> 1]

/**
 * Times several works of one case in turn, so that noise meets them alike.
 *
 * @param works {{ [name: string]: () => unknown }} each does `ops` operations
 * @returns {{ [name: string]: { median: number, best: number, samples: number[] } }} microseconds for one operation; samples in
 *   the order they were taken, one a round
 */
export async function interleaved(works, { ops, samples = 15, warmups = 5 }) {
  const names = Object.keys(works)
  for (let i = 0; i < warmups; i++) for (const name of names) await works[name]()
  const taken = Object.fromEntries(names.map((name) => [name, []]))
  for (let i = 0; i < samples; i++) {
    // Whoever goes first in one round goes last in the next, for the place is felt.
    for (const name of i % 2 === 0 ? names : names.toReversed()) {
      const start = performance.now()
      await works[name]()
      taken[name].push(((performance.now() - start) * 1_000) / ops)
    }
  }
  return Object.fromEntries(
    names.map((name) => {
      const sorted = taken[name].toSorted((a, b) => a - b)
      return [name, { median: median(sorted), best: sorted[0], samples: taken[name] }]
    }),
  )
}

/** How much of `other`'s throughput this has: the median over the rounds, so that load which comes and goes meets both. */
export const throughputBeside = (one, other) =>
  median(one.samples.map((took, i) => other.samples[i] / took).toSorted((a, b) => a - b))

/** A row of the table. `goal` is a text; `holds` says whether the figure keeps it. */
export const row = (work, name, value, unit, rest = {}) => ({ work, case: name, value: round(value), unit, ...rest })

export const round = (value) => Number(value.toPrecision(3))
