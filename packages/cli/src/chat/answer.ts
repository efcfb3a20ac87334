import { isObject, type Json, type JsonObject, SluiceError } from '@sluice/core'
import { jsonText } from '../render/escape.ts'

/** How a question is answered at a prompt. */
export interface Answering {
  /** What may be typed. */
  readonly hint: string
  /** @throws SluiceError `CLI_ANSWER` for a line that is no answer. */
  read(line: string): Json
}

/** By the schema of the answer: yes or no, a choice, a text, else JSON. JSON is taken for every one of them. */
export function answering(schema: JsonObject = {}): Answering {
  const { type, enum: choices } = schema
  if (type === 'boolean') return yesOrNo((yes) => yes)
  if (asksForApproval(schema)) return yesOrNo((approved) => ({ approved }))
  if (Array.isArray(choices)) return oneOf(choices)
  if (type === 'string') return { hint: 'a text', read: (line) => line }
  return { hint: 'JSON', read: (line) => readJson(line, 'JSON, such as true, 5, "a text" or {…}') }
}

/** An object in which a yes or no is all that must be said. */
function asksForApproval({ type, properties, required }: JsonObject): boolean {
  const approved = isObject(properties) && isObject(properties.approved) ? properties.approved : undefined
  if (type !== 'object' || approved?.type !== 'boolean') return false
  return required === undefined || (Array.isArray(required) && required.every((name) => name === 'approved'))
}

const YES: ReadonlySet<string> = new Set(['y', 'yes', 'true'])
const NO: ReadonlySet<string> = new Set(['n', 'no', 'false'])

function yesOrNo(answerOf: (yes: boolean) => Json): Answering {
  return {
    hint: 'yes or no',
    read(line) {
      const word = line.trim().toLowerCase()
      if (YES.has(word) || NO.has(word)) return answerOf(YES.has(word))
      return readJson(line, 'yes or no')
    },
  }
}

function oneOf(choices: readonly Json[]): Answering {
  const hint = choices.map((choice, i) => `${i + 1} ${wordOf(choice)}`).join(', ')
  return {
    hint,
    read(line) {
      const word = line.trim()
      const named = choices.find((choice) => wordOf(choice) === word)
      const chosen = named ?? choices[Number(word) - 1]
      return chosen === undefined ? readJson(line, `one of ${hint}`) : chosen
    },
  }
}

const wordOf = (choice: Json): string => (typeof choice === 'string' ? choice : jsonText(choice))

function readJson(line: string, what: string): Json {
  try {
    return JSON.parse(line)
  } catch {
    throw new SluiceError('CLI_ANSWER', `type ${what}.`)
  }
}
