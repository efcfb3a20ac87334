import type { Finding } from './detect.ts'

/**
 * What becomes of a finding. `block`: of the whole text, nothing is used. `redact`: a word in its place. `hash`: a word that is the
 * same for the same value. `mask`: only its last characters stay.
 */
export type PiiStrategy = 'block' | 'redact' | 'hash' | 'mask'

/** From the one that leaves least. */
export const STRATEGIES: readonly PiiStrategy[] = ['block', 'redact', 'hash', 'mask']

/** Letters of the salted digest that stand in the text: enough to tell values apart, too few to be taken for a card. */
const DIGEST_LENGTH = 12

/** The text that stands in the place of a finding. */
export function replacementOf(
  { kind }: Finding,
  value: string,
  strategy: PiiStrategy,
  sha256: (text: string) => string | Promise<string>,
  salt: string,
): string | Promise<string> {
  if (strategy === 'mask') return maskOf(kind, value)
  if (strategy !== 'hash') return `[REDACTED_${kind.toUpperCase()}]`
  const digest = sha256(JSON.stringify([salt, kind, value]))
  const named = (hex: string) => `<${kind}:${hex.slice(0, DIGEST_LENGTH)}>`
  return typeof digest === 'string' ? named(digest) : digest.then(named)
}

/** Characters of a number that people tell it by. */
const TAIL = 4

function maskOf(kind: string, value: string): string {
  if (kind === 'email') return `***${value.slice(value.lastIndexOf('@'))}`
  if (kind === 'ip') return `${value.slice(0, value.search(/[.:]/) + 1)}***`
  if (kind === 'card' || kind === 'iban' || kind === 'phone') return `***${value.slice(-TAIL)}`
  return '***'
}
