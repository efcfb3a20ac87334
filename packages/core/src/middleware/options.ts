/** Says what is wrong with an option of a middleware, and what it takes. */
const refusal = (by: string, option: string, takes: string, given: unknown): string =>
  `${by}: ${option} must be ${takes}, not ${typeof given === 'string' ? JSON.stringify(given) : String(given)}.`

/** @throws RangeError for what is no number above 0; TypeError for what is no number at all. */
export function requireTime(by: string, option: string, ms: unknown): void {
  if (typeof ms === 'number' && ms > 0) return
  throw new (typeof ms === 'number' ? RangeError : TypeError)(refusal(by, option, 'milliseconds above 0', ms))
}
