// How a figure is made: warm up, take samples in turn, say median and best.

const median = (sorted) => sorted[sorted.length >> 1]

/**
 * Times several works of one case in turn, so that noise meets them alike.
 *
 * @param works {{ [name: string]: () => unknown }} each does `ops` operations
 * @returns {{ [name: string]: { median: number, best: number } }} microseconds for one operation
 */
export async function interleaved(works, { ops, samples = 15, warmups = 5 }) {
  const names = Object.keys(works)
  for (let i = 0; i < warmups; i++) for (const name of names) await works[name]()
  const taken = Object.fromEntries(names.map((name) => [name, []]))
  for (let i = 0; i < samples; i++) {
    for (const name of names) {
      const start = performance.now()
      await works[name]()
      taken[name].push(((performance.now() - start) * 1_000) / ops)
    }
  }
  return Object.fromEntries(
    names.map((name) => {
      const sorted = taken[name].sort((a, b) => a - b)
      return [name, { median: median(sorted), best: sorted[0] }]
    }),
  )
}

/** A row of the table. `goal` is a text; `holds` says whether the figure keeps it. */
export const row = (work, name, value, unit, rest = {}) => ({ work, case: name, value: round(value), unit, ...rest })

export const round = (value) => Number(value.toPrecision(3))
