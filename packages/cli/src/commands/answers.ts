import { type Json, messageOf, SluiceError } from '@sluice/core'
import { shellWord } from '../render/shell.ts'

/** Stands for what a person writes, in the commands that we print. */
export const YOURS = '…'

/**
 * Reads the values of `--answer`: JSON alone for the only question, or `<key>=<json>` for each. A key may hold `=`; the first one
 * after which JSON follows ends it.
 *
 * @throws SluiceError `CLI_ANSWER` for text that is neither, a key given twice, or a bare value beside another answer.
 */
export function readAnswers(texts: readonly string[]): Json | ReadonlyMap<string, Json> {
  const byKey = new Map<string, Json>()
  for (const text of texts) {
    const bare = parse(text)
    if (bare !== undefined && texts.length === 1) return bare.value
    if (bare !== undefined)
      throw refuse(`${text} does not say what it answers; with several answers each is <key>=<json>`)
    const [key, value] = readKeyed(text)
    if (byKey.has(key)) throw refuse(`"${key}" is answered twice; answer each question once`)
    byKey.set(key, value)
  }
  return byKey
}

function readKeyed(text: string): readonly [key: string, value: Json] {
  for (let at = text.indexOf('=', 1); at !== -1; at = text.indexOf('=', at + 1)) {
    const read = parse(text.slice(at + 1))
    if (read !== undefined) return [text.slice(0, at), read.value]
  }
  throw noJson(text)
}

/** A value in a box, for `null` is one. */
function parse(text: string): { readonly value: Json } | undefined {
  try {
    return { value: JSON.parse(text) }
  } catch {
    return undefined
  }
}

/** What was meant is mostly a text; a shell takes one pair of quotes away, and JSON wants another. */
function noJson(text: string): SluiceError {
  const equals = /^[[{"]/.test(text) ? -1 : text.indexOf('=', 1)
  const [key, value] = [text.slice(0, equals + 1), text.slice(equals + 1)]
  if (value.includes(YOURS))
    return refuse(`put the answer in the place of "${YOURS}", as JSON: true, 5, "a text" or {…}`)
  if (value === '')
    return refuse(`${key === '' ? 'it is empty' : `nothing stands after "${key}"`}; give JSON: true, 5 or {…}`)
  if (/^[[{"]/.test(value)) return refuse(`${value} is no JSON: ${whyNot(value)}`)
  return refuse(`${value} is no JSON; a text stands in quotes: --answer ${shellWord(key + JSON.stringify(value))}`)
}

function whyNot(text: string): string {
  try {
    JSON.parse(text)
    return ''
  } catch (error) {
    return messageOf(error)
  }
}

const refuse = (why: string) => new SluiceError('CLI_ANSWER', `--answer: ${why}.`)
