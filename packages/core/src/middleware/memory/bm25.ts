/** The words of a text, in small letters. */
const wordsOf = (text: string): readonly string[] => text.toLowerCase().match(/[\p{L}\p{N}\p{M}_]+/gu) ?? []

/** How soon more of a word counts no more, and how much the length of a text does. */
const [K1, B] = [1.2, 0.75]

/**
 * Texts that have words of a query, the best first, as indices with scores; ties in the order given. Okapi BM25 with k1 = 1.2 and
 * b = 0.75; a word in `n` of `N` texts weighs ln(1 + (N - n + 0.5) / (n + 0.5)).
 *
 * @see Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009 - where the formula comes from.
 */
export function rank(
  query: string,
  texts: readonly string[],
): readonly { readonly at: number; readonly score: number }[] {
  const counts = texts.map((text) => countOf(wordsOf(text)))
  const lengths = counts.map((count) => [...count.values()].reduce((sum, n) => sum + n, 0))
  const average = lengths.reduce((sum, length) => sum + length, 0) / Math.max(1, texts.length)
  const scores = texts.map(() => 0)
  for (const word of new Set(wordsOf(query))) {
    const having = counts.filter((count) => count.has(word)).length
    const weight = Math.log(1 + (texts.length - having + 0.5) / (having + 0.5))
    for (const [at, count] of counts.entries()) {
      const times = count.get(word) ?? 0
      const length = 1 - B + (B * (lengths[at] as number)) / average
      if (times > 0) scores[at] = (scores[at] as number) + (weight * times * (K1 + 1)) / (times + K1 * length)
    }
  }
  return scores
    .map((score, at) => ({ at, score }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score || a.at - b.at)
}

function countOf(words: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1)
  return counts
}
