/** The word that is meant by one that is none: the one with the fewest letters changed, at most `most` of them. */
export function nearest<Word extends string>(
  word: string,
  words: Iterable<Word>,
  most = Number.POSITIVE_INFINITY,
): Word | undefined {
  let [meant, least]: [Word | undefined, number] = [undefined, most + 1]
  for (const known of words) {
    const changed = distance(word, known)
    if (changed < least) [meant, least] = [known, changed]
  }
  return meant
}

/** Letters to insert, drop or change to make one word of another (Levenshtein, 1965). */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1
      next[j] = Math.min((row[j] as number) + 1, (next[j - 1] as number) + 1, (row[j - 1] as number) + same)
    }
    row = next
  }
  return row[b.length] as number
}
