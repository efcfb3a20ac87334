import { isObject, type Json, type JsonObject, own, SluiceError } from '@sluice/core'
import type { Property } from '../schema/property.ts'

/** What a model is told of the outputs it must fill: nothing where one text is wanted, for any answer is that. */
export function responseFormat(name: string, outputs: readonly Property[]): Json | undefined {
  if (outputs.length === 0 || isOneText(outputs)) return undefined
  const required = outputs.filter((output) => output.default === undefined).map(({ title }) => title)
  const properties = Object.fromEntries(outputs.map(({ title, schema }) => [title, schema]))
  return own({
    type: 'json_schema',
    name,
    schema: { type: 'object', properties, required, additionalProperties: false },
  })
}

const isOneText = (outputs: readonly Property[]): boolean => outputs.length === 1 && outputs[0]?.type.kind === 'string'

/**
 * The outputs in a model's answer: one text is the answer itself, or the value under its title where the answer is JSON that
 * has it; several, or other types, are read from JSON.
 *
 * @throws SluiceError `FLOW_ANSWER` for an answer that is no JSON object where one is needed.
 */
export function readAnswer(text: string, outputs: readonly Property[], what: string): JsonObject {
  const parsed = parse(text)
  if (isOneText(outputs)) {
    const { title } = outputs[0] as Property
    return { [title]: isObject(parsed) && typeof parsed[title] === 'string' ? parsed[title] : text }
  }
  if (outputs.length === 0) return {}
  if (isObject(parsed)) return parsed as JsonObject
  const [only] = outputs
  if (outputs.length === 1 && only !== undefined && parsed !== undefined) return { [only.title]: parsed as Json }
  throw new SluiceError(
    'FLOW_ANSWER',
    `${what} must be JSON with ${outputs.map(({ title }) => `"${title}"`).join(', ')}, and is not.`,
  )
}

/** An answer where no outputs are declared: its text as `result` and, if it is a JSON object, each of its keys. */
export function openAnswer(text: string): JsonObject {
  const parsed = parse(text)
  return isObject(parsed) ? { result: text, ...(parsed as JsonObject) } : { result: text }
}

/** Models like to fence their JSON. */
function parse(text: string): unknown {
  const inner = /^\s*```(?:json)?\s*\n([\s\S]*?)\n\s*```\s*$/.exec(text)?.[1] ?? text
  try {
    return JSON.parse(inner)
  } catch {
    return undefined
  }
}

/** A tool's result by title: one output is the value itself, or what stands under its title; several are keys of an object. */
export function readToolResult(result: Json, outputs: readonly Property[] | undefined): JsonObject {
  if (outputs === undefined) return isObject(result) ? (result as JsonObject) : { result }
  const [only] = outputs
  if (outputs.length === 1 && only !== undefined && !(isObject(result) && Object.hasOwn(result, only.title))) {
    return { [only.title]: result }
  }
  return isObject(result) ? (result as JsonObject) : {}
}
