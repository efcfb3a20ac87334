import { typeOf } from '../seams/hooks.ts'

/** Says what is wrong with an option of a middleware, and what it takes. */
const refusal = (by: string, option: string, takes: string, given: unknown): string =>
  `${by}: ${option} must be ${takes}, not ${inWords(given)}.`

/** A number or a text itself, of all else the type. */
const inWords = (given: unknown): string =>
  typeof given === 'number' ? String(given) : typeof given === 'string' ? JSON.stringify(given) : typeOf(given)

/** @throws RangeError for what is no number above 0; TypeError for what is no number at all. */
export function requireTime(by: string, option: string, ms: unknown): void {
  if (typeof ms === 'number' && ms > 0) return
  throw new (typeof ms === 'number' ? RangeError : TypeError)(refusal(by, option, 'milliseconds above 0', ms))
}

/** @throws RangeError for what is no whole number of `least` or more; TypeError for what is no number at all. */
export function requireCount(by: string, option: string, count: unknown, least = 1): void {
  if (Number.isInteger(count) && (count as number) >= least) return
  const takes = `a whole number of ${least} or more`
  throw new (typeof count === 'number' ? RangeError : TypeError)(refusal(by, option, takes, count))
}

/** @throws TypeError for what is no function. */
export function requireFunction(by: string, option: string, given: unknown): void {
  if (typeof given === 'function') return
  throw new TypeError(refusal(by, option, 'a function', given))
}

/** @throws TypeError for what is no list of names, or an empty one. */
export function readNames(by: string, option: string, names: unknown): ReadonlySet<string> {
  if (Array.isArray(names) && names.length > 0 && names.every((name) => typeof name === 'string')) return new Set(names)
  throw new TypeError(`${by}: ${option} must be a list of names, one at least.`)
}

/** @throws TypeError for what is none of these words. */
export function requireWord(by: string, option: string, word: unknown, words: readonly string[]): void {
  if (words.includes(word as string)) return
  throw new TypeError(refusal(by, option, words.map((one) => JSON.stringify(one)).join(' or '), word))
}

/** @throws TypeError for what is no text, or a blank one. */
export function requireText(by: string, option: string, text: unknown): void {
  if (typeof text === 'string' && text.trim() !== '') return
  throw new TypeError(refusal(by, option, 'a text that is not blank', text))
}
