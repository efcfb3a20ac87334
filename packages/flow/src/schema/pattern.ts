import { type JsonObject, messageOf } from '@sluice/core'
import type { RegExpEngine } from 'ajv/dist/types/index.js'

/** Makes what matches a pattern. */
export type Matching = RegExpEngine

/**
 * What matches the patterns of a schema in time linear to the text. JavaScript's own may take for ever on a short one. The library
 * is loaded only for a schema that may have any.
 */
export async function matchingOf(schema: JsonObject): Promise<Matching | undefined> {
  if (!/"pattern(Properties)?":/.test(JSON.stringify(schema))) return undefined
  const { RE2JS } = await import('re2js')
  const matching = (pattern: string, flags: string) => {
    // What is no pattern of JSON Schema is not to become one here.
    new RegExp(pattern, flags)
    try {
      return RE2JS.compile(RE2JS.translateRegExp(pattern))
    } catch (error) {
      throw new Error(
        `the pattern ${JSON.stringify(pattern)} cannot be matched in linear time: ${messageOf(error)}. Write it without look-around and back-references, and count to no more than 1000`,
        { cause: error },
      )
    }
  }
  return Object.assign(matching, { code: 'matching' })
}
