import { readFileSync } from 'node:fs'
import { messageOf, SluiceError } from '@sluice/core'

/**
 * Reads what a flag gives as JSON text or as `@file`.
 *
 * @throws SluiceError `CLI_INPUT` for a file that cannot be read, text that is no JSON, or JSON that is no object.
 */
export function readJsonFlag(flag: string, text: string): Record<string, unknown> {
  const source = text.startsWith('@') ? readFile(flag, text.slice(1)) : text
  let value: unknown
  try {
    value = JSON.parse(source)
  } catch (error) {
    throw new SluiceError(
      'CLI_INPUT',
      `${flag} is no JSON: ${messageOf(error)}. Give an object such as '{"query":"…"}', or @file.`,
    )
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  throw new SluiceError('CLI_INPUT', `${flag} must be a JSON object, one key for each input.`)
}

function readFile(flag: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new SluiceError('CLI_INPUT', `${flag} names a file that cannot be read: ${messageOf(error)}.`)
  }
}
