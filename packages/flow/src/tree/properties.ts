import { isObject, type Json, type JsonObject, own } from '@sluice/core'
import type { Path } from '../faults/path.ts'
import type { Report } from '../faults/report.ts'
import { fits } from '../schema/fits.ts'
import { type Property, propertyOf } from '../schema/property.ts'
import { isTypeName, type PropertyType, showType, TYPE_NAMES, typeOfSchema } from '../schema/type.ts'
import { wrongType } from './kinds.ts'
import { below, follow, lostReference, type Placed, reach } from './placed.ts'

/** The properties of a list that {@link checkProperties} has seen; what it refused is left out. */
export function readProperties(list: Placed | undefined): readonly Property[] | undefined {
  if (list === undefined || !Array.isArray(list.value)) return undefined
  return list.value.flatMap((_, i) => {
    const schema = reach(below(list, i))?.value
    return isObject(schema) && typeof schema.title === 'string' ? [propertyOf(own(schema) as JsonObject)] : []
  })
}

/** Titles become placeholders, variables and the keys of results, so they are one word. */
const NOT_IN_TITLES = /[\s.,{}'"]/
/** What a conversation and a resumed run carry beside the values of a flow. */
const RESERVED = new Set(['_chat_history', '_resume'])

export function checkProperties(report: Report, list: Placed): void {
  if (!Array.isArray(list.value)) {
    wrongType(report, list.path, 'a list of properties', list.value)
    return
  }
  const titles = new Set<string>()
  for (const i of list.value.keys()) {
    const item = below(list, i)
    const found = follow(item)
    if ('lost' in found) lostReference(report, item, found)
    else checkProperty(report, found, titles)
  }
}

function checkProperty(report: Report, { value: schema, path }: Placed, titles: Set<string>): void {
  if (!isObject(schema)) {
    wrongType(report, path, 'a JSON Schema with a title', schema)
    return
  }
  const { title } = schema
  if (typeof title !== 'string' || title === '' || NOT_IN_TITLES.test(title)) badTitle(report, path, title)
  else if (RESERVED.has(title)) reservedTitle(report, path, title)
  else if (titles.has(title)) titleTwice(report, path, title)
  else titles.add(title)
  if (!checkTypes(report, schema, path) || schema.default === undefined) return
  const type = typeOfSchema(schema)
  if (!fits(schema.default as Json, type)) wrongDefault(report, [...path, 'default'], type)
}

/** Checks the names of types, and warns of what cannot be compared. Returns whether all is well. */
function checkTypes(report: Report, schema: Readonly<Record<string, unknown>>, path: Path): boolean {
  const { type, items, properties, anyOf, additionalProperties } = schema
  const names = type === undefined || type === null ? [] : Array.isArray(type) ? type : [type]
  const wrong = names.find((name) => !isTypeName(name))
  if (wrong !== undefined) unknownTypeName(report, [...path, 'type'], wrong)
  const opaque = ['allOf', 'oneOf'].find((key) => Object.hasOwn(schema, key))
  if (opaque !== undefined && names.length === 0) notCompared(report, [...path, opaque], opaque)
  const inner: [Path, unknown][] = [
    [[...path, 'items'], items],
    [[...path, 'additionalProperties'], additionalProperties],
    ...Object.entries(isObject(properties) ? properties : {}).map(([key, part]): [Path, unknown] => [
      [...path, 'properties', key],
      part,
    ]),
    ...(Array.isArray(anyOf) ? anyOf.map((part, i): [Path, unknown] => [[...path, 'anyOf', i], part]) : []),
  ]
  let isWell = wrong === undefined
  for (const [at, part] of inner) if (isObject(part) && !checkTypes(report, part, at)) isWell = false
  return isWell
}

function badTitle(report: Report, path: Path, title: unknown): void {
  const found = typeof title === 'string' ? `"${title}" is none` : 'there is none'
  report.fault(
    'FLOW_TITLE',
    path,
    `a property needs a title of one word, without blanks, quotes, braces, commas and periods; ${found}.`,
  )
}

function reservedTitle(report: Report, path: Path, title: string): void {
  report.fault(
    'FLOW_TITLE_RESERVED',
    path,
    `"${title}" is reserved for the conversation of a run. Choose another title.`,
  )
}

function titleTwice(report: Report, path: Path, title: string): void {
  report.fault('FLOW_TITLE_TWICE', path, `two properties of one list have the title "${title}". Rename one.`)
}

function unknownTypeName(report: Report, path: Path, name: unknown): void {
  report.fault('FLOW_SCHEMA_TYPE', path, `unknown type ${JSON.stringify(name)}; types are: ${TYPE_NAMES.join(', ')}.`)
}

function notCompared(report: Report, path: Path, keyword: string): void {
  report.warn('FLOW_SCHEMA_OPAQUE', path, `"${keyword}" is not compared: the property is taken as one of any type.`)
}

function wrongDefault(report: Report, path: Path, type: PropertyType): void {
  report.fault('FLOW_DEFAULT', path, `the default is not of its own type, ${showType(type)}.`)
}
