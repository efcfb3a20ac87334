/** A document may hold very many names. */
const MOST_CANDIDATES = 300

/** The candidate that a misspelt word probably means: at most a third of its letters differ, and at most three. */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  const most = Math.min(3, Math.floor(word.length / 3))
  let best: { readonly candidate: string; readonly distance: number } | undefined
  let looked = 0
  for (const candidate of candidates) {
    if (++looked > MOST_CANDIDATES) break
    if (Math.abs(candidate.length - word.length) > most) continue
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase())
    if (distance <= most && (best === undefined || distance < best.distance)) best = { candidate, distance }
  }
  return best?.candidate
}

/** Insertions, deletions, replacements of one letter and exchanges of two neighbours: Damerau's distance, restricted. */
function editDistance(a: string, b: string): number {
  let [before, row]: [number[], number[]] = [[], Array.from({ length: b.length + 1 }, (_, j) => j)]
  const at = (line: readonly number[], j: number) => line[j] as number
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = at(row, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const isExchange = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const exchanged = isExchange ? at(before, j - 2) + 1 : Number.POSITIVE_INFINITY
      next.push(Math.min(replaced, exchanged, at(row, j) + 1, at(next, j - 1) + 1))
    }
    before = row
    row = next
  }
  return at(row, b.length)
}

/** `Did you mean "x"? ` with a blank after it, or nothing. */
export function didYouMean(word: string, candidates: Iterable<string>): string {
  const candidate = nearest(word, candidates)
  return candidate === undefined ? '' : `Did you mean "${candidate}"? `
}
