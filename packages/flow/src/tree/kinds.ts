import { isObject } from '@sluice/core'
import type { FieldKind } from '../components/descriptor.ts'
import type { Path } from '../faults/path.ts'
import type { Report } from '../faults/report.ts'
import { type Definition, titleOf } from './definition.ts'

/** What a value is, for messages; never the value itself, which may be a secret. */
export function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (value === undefined) return 'missing'
  if (Array.isArray(value)) return 'a list'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

export function wrongType(report: Report, path: Path, wanted: string, value: unknown): void {
  report.fault('FLOW_FIELD_TYPE', path, `this must be ${wanted}, not ${kindOf(value)}.`)
}

export function missing(report: Report, owner: Definition, name: string): void {
  report.fault('FLOW_FIELD_MISSING', owner.path, `${titleOf(owner)} has no "${name}". Add it.`)
}

const isString = (value: unknown) => typeof value === 'string'
const isTexts = (value: unknown) => Array.isArray(value) && value.every(isString)
const isTextMap = (value: unknown) => isObject(value) && Object.values(value).every(isString)

/** For a field of plain values: what is wanted, when the value is something else. */
export function mismatchOf(kind: FieldKind, value: unknown): string | undefined {
  switch (kind.is) {
    case 'string':
    case 'template':
      return isString(value) ? undefined : 'text'
    case 'boolean':
      return typeof value === 'boolean' ? undefined : 'true or false'
    case 'number':
      return typeof value === 'number' ? undefined : 'a number'
    case 'integer':
      return Number.isInteger(value) ? undefined : 'a whole number'
    case 'object':
    case 'generation':
      return isObject(value) ? undefined : 'an object'
    case 'strings':
      return isTexts(value) ? undefined : 'a list of texts'
    case 'stringMap':
      return isTextMap(value) ? undefined : 'an object whose values are texts'
    case 'oneOf':
      return kind.values.includes(value) ? undefined : `one of ${kind.values.map((v) => JSON.stringify(v)).join(', ')}`
    default:
      return undefined
  }
}
