import { isObject, type JsonObject } from '@sluice/core'
import { type Faults, IDENTIFIER, received } from './faults.ts'
import type { ManifestTool } from './manifest.ts'

/** A model's request carries the schema in every round. */
const MAX_SCHEMA_BYTES = 64 * 1024
const MAX_SCHEMA_LEVELS = 16
/** Providers refuse longer names. */
const MAX_NAME_LENGTH = 64

const FIELDS = ['name', 'path', 'componentType', 'description', 'inputSchema', 'outputSchema', 'shadows']

/**
 * Reads one entry of `tools`; what is wrong goes to `faults`.
 *
 * @param from one that the plugin itself tells of is served by it where it names nobody.
 */
export function readTool(
  value: unknown,
  at: string,
  types: readonly string[],
  faults: Faults,
  from: 'declared' | 'discovered' = 'declared',
): ManifestTool | undefined {
  const declared = faults.object(value ?? null, at)
  if (declared === undefined) return undefined
  faults.known(declared, FIELDS, at)
  const name = faults.text(declared.name, `${at}.name`)
  if (name !== '' && (!IDENTIFIER.test(name) || name.length > MAX_NAME_LENGTH)) {
    faults.add(
      `${at}.name`,
      `is ${received(name)}; it matches ${IDENTIFIER.source}, ${MAX_NAME_LENGTH} characters at most`,
    )
  }
  const path = faults.optionalText(declared.path, `${at}.path`)
  const componentType = faults.optionalText(declared.componentType, `${at}.componentType`)
  const isServed = from === 'discovered' && path === undefined
  if ((path === undefined) === (componentType === undefined) && !isServed) {
    faults.add(at, 'must have either "path", a program beside the manifest, or "componentType", who serves it')
  }
  if (componentType !== undefined && !types.includes(componentType)) {
    faults.add(`${at}.componentType`, `is "${componentType}"; this manifest declares: ${types.join(', ') || 'none'}`)
  }
  return {
    name,
    path,
    componentType,
    description: faults.optionalText(declared.description, `${at}.description`),
    inputSchema: readSchema(declared.inputSchema, `${at}.inputSchema`, faults),
    outputSchema: readSchema(declared.outputSchema, `${at}.outputSchema`, faults),
    shadows: faults.flag(declared.shadows, `${at}.shadows`) ?? false,
  }
}

function readSchema(value: unknown, at: string, faults: Faults): JsonObject | undefined {
  const schema = faults.object(value, at)
  if (schema === undefined) return undefined
  if (schema.type !== undefined && schema.type !== 'object') {
    faults.add(`${at}.type`, `is ${received(schema.type)}; a tool takes and gives objects`)
  }
  const bytes = Buffer.byteLength(JSON.stringify(schema))
  if (bytes > MAX_SCHEMA_BYTES) faults.add(at, `has ${bytes} bytes; ${MAX_SCHEMA_BYTES} is the most`)
  if (levelsOf(schema) > MAX_SCHEMA_LEVELS) faults.add(at, `is nested deeper than ${MAX_SCHEMA_LEVELS} levels`)
  return schema
}

function levelsOf(value: unknown): number {
  if (!isObject(value) && !Array.isArray(value)) return 0
  return 1 + Math.max(0, ...Object.values(value).map(levelsOf))
}
