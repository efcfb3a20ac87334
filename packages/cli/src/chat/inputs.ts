import { isObject, type Json, type JsonObject, SluiceError } from '@sluice/core'

/**
 * What a line that was typed is as inputs: the one text that the flow still needs, else JSON, an object of the rest.
 *
 * @param declared what the flow takes, as JSON Schemas with a title.
 * @param given inputs that each turn has already.
 * @throws SluiceError `CLI_INPUT` for a line that is neither.
 */
export function inputsOf(line: string, declared: readonly JsonObject[], given: JsonObject): JsonObject {
  const open = declared.filter(({ title }) => !Object.hasOwn(given, String(title)))
  const needed = open.filter(({ default: value }) => value === undefined)
  const [first, ...others] = needed.length > 0 ? needed : open
  const only = others.length === 0 ? first : undefined
  if (only?.type === 'string') return { ...given, [String(only.title)]: line }
  const value = parsed(line)
  if (isObject(value)) return { ...given, ...(value as JsonObject) }
  if (only !== undefined && value !== undefined) return { ...given, [String(only.title)]: value }
  const names = open.map(({ title }) => String(title)).join(', ')
  throw new SluiceError(
    'CLI_INPUT',
    open.length === 0
      ? 'this flow takes no text; {} runs it.'
      : `this flow takes ${names}: type them as a JSON object, or give all but one text with --input.`,
  )
}

function parsed(line: string): Json | undefined {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}
