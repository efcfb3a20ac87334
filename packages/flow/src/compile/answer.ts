import { isObject, type Json, type JsonObject, own, SluiceError } from '@sluice/core'
import { fits } from '../schema/fits.ts'
import type { Property } from '../schema/property.ts'
import type { PropertyType } from '../schema/type.ts'

/** What a model is told of the outputs it must fill: nothing where one text is wanted, for any answer is that. */
export function responseFormat(name: string, outputs: readonly Property[]): Json | undefined {
  if (outputs.length === 0 || isOneText(outputs)) return undefined
  const required = outputs.filter((output) => output.default === undefined).map(({ title }) => title)
  const properties = Object.fromEntries(outputs.map(({ title, schema }) => [title, schema]))
  return own({
    type: 'json_schema',
    // Providers refuse other characters, and longer names.
    name: name.replaceAll(/[^a-zA-Z0-9_-]/g, '_').slice(0, 64),
    schema: { type: 'object', properties, required, additionalProperties: false },
  })
}

export const isOneText = (outputs: readonly Property[]): boolean =>
  outputs.length === 1 && outputs[0]?.type.kind === 'string'

/**
 * The outputs in a model's answer, read from JSON; of one output, its value alone will do. One text is the answer itself, or
 * the text under its title where the answer is JSON that has it.
 *
 * @throws SluiceError `FLOW_ANSWER` for an answer that is no JSON where it is needed.
 */
export function readAnswer(text: string, outputs: readonly Property[], what: string): JsonObject {
  if (outputs.length === 0) return {}
  const parsed = parse(text)
  const found = outputs.length === 1 ? readOne(text, parsed, outputs[0] as Property) : parsed
  if (isObject(found)) return found as JsonObject
  throw new SluiceError(
    'FLOW_ANSWER',
    `${what} must be JSON with ${outputs.map(({ title }) => `"${title}"`).join(', ')}, and is not.`,
  )
}

function readOne(text: string, parsed: Json | undefined, output: Property): unknown {
  const { title, type } = output
  const titled = isObject(parsed) && Object.hasOwn(parsed, title)
  if (type.kind === 'string') return { [title]: titled && typeof parsed[title] === 'string' ? parsed[title] : text }
  if (titled) return parsed
  if (parsed === undefined) return fits(text, type) ? { [title]: text } : undefined
  return leavesOut(parsed, output) ? {} : { [title]: parsed }
}

/** An object with other keys is the value of an output that may be one; else it leaves the output to its default. */
const leavesOut = (value: unknown, { type, default: fallback }: Property): boolean =>
  isObject(value) && fallback !== undefined && !mayBeObject(type)

const mayBeObject = (type: PropertyType): boolean =>
  type.kind === 'object' || type.kind === 'any' || (type.kind === 'union' && type.members.some(mayBeObject))

/** An answer where no outputs are declared: its text as `result` and, if it is a JSON object, each of its keys. */
export function openAnswer(text: string): JsonObject {
  const parsed = parse(text)
  return isObject(parsed) ? { result: text, ...(parsed as JsonObject) } : { result: text }
}

/** JSON that no value here can hold, such as a key named `__proto__`, is text. */
function parse(text: string): Json | undefined {
  try {
    return own(JSON.parse(unfenced(text)))
  } catch {
    return undefined
  }
}

const FENCE = '```'

/** Models like to fence their JSON. */
function unfenced(text: string): string {
  const trimmed = text.trim()
  if (!trimmed.startsWith(FENCE) || !trimmed.endsWith(FENCE)) return text
  const lineEnd = trimmed.indexOf('\n')
  const label = trimmed.slice(FENCE.length, lineEnd).trim().toLowerCase()
  return lineEnd !== -1 && (label === '' || label === 'json') ? trimmed.slice(lineEnd, -FENCE.length) : text
}

/** A tool's result by title: one output is the value itself, or what stands under its title; several are keys of an object. */
export function readToolResult(result: Json, outputs: readonly Property[] | undefined): JsonObject {
  const [only, ...more] = outputs ?? []
  const values = isObject(result) ? (result as JsonObject) : undefined
  if (outputs === undefined) return values ?? { result }
  if (only === undefined || more.length > 0) return values ?? {}
  if (values !== undefined && Object.hasOwn(values, only.title)) return values
  return leavesOut(result, only) ? {} : { [only.title]: result }
}
