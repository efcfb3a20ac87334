import { readFileSync } from 'node:fs'
import { isObject, type JsonObject, messageOf } from '@sluice/core'
import { PluginError } from '../plugin/error.ts'

/** Settings by component type. */
export type PluginConfig = { readonly [componentType: string]: JsonObject }

/**
 * Reads the values of `--plugin-config`: `Type=<json>`, or `Type=@file` to take the JSON from a file.
 *
 * @throws PluginError `PLUGIN_CONFIG_ARGUMENT` for one without `=` or without a type, a type given twice, a file that cannot be
 *   read, text that is not JSON, JSON that is no object.
 */
export function parsePluginConfig(args: readonly string[]): PluginConfig {
  const config = new Map<string, JsonObject>()
  for (const arg of args) {
    const equals = arg.indexOf('=')
    const type = arg.slice(0, Math.max(0, equals)).trim()
    if (type === '')
      throw refuse(
        `"${arg.slice(0, 20)}${arg.length > 20 ? '…' : ''}" is no setting; write <ComponentType>=<json> or <ComponentType>=@<file>`,
      )
    if (config.has(type)) throw refuse(`"${type}" is given twice; give each component type once`)
    config.set(type, readValue(type, arg.slice(equals + 1)))
  }
  return Object.fromEntries(config)
}

function readValue(type: string, text: string): JsonObject {
  const file = text.startsWith('@') ? text.slice(1) : undefined
  const from = file === undefined ? 'the setting' : `file ${file}`
  let value: unknown
  try {
    value = JSON.parse(file === undefined ? text : readSetting(type, file))
  } catch (error) {
    if (error instanceof PluginError) throw error
    throw refuse(`${from} of "${type}" is not JSON: ${messageOf(error)}`)
  }
  if (!isObject(value)) throw refuse(`${from} of "${type}" is no JSON object; write ${type}='{"name":"value"}'`)
  return value as JsonObject
}

function readSetting(type: string, file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw refuse(`the file with the settings of "${type}" cannot be read: ${messageOf(error)}`)
  }
}

const refuse = (why: string) => new PluginError('PLUGIN_CONFIG_ARGUMENT', `--plugin-config: ${why}.`)
