import type { Path } from '../faults/path.ts'
import type { Report } from '../faults/report.ts'
import { castable } from '../schema/castable.ts'
import type { Property } from '../schema/property.ts'
import { showType } from '../schema/type.ts'
import { type Definition, fieldOf, titleOf } from '../tree/definition.ts'
import { readProperties } from '../tree/properties.ts'

export type Direction = 'inputs' | 'outputs'

/** One side of a component: the properties it lists, and whether others pass as well. */
export interface Side {
  readonly list: readonly Property[]
  readonly open: boolean
}

export const OPEN: Side = { list: [], open: true }
export const closed = (list: readonly Property[]): Side => ({ list, open: false })
/** What a tool or a plugin's manifest lists, open where it does not say. */
export const sideOf = (list: readonly Property[] | undefined): Side => (list === undefined ? OPEN : closed(list))

export const declaredOf = (definition: Definition, direction: Direction): readonly Property[] | undefined =>
  readProperties(fieldOf(definition, direction))

/**
 * What a component declares, compared with what follows from its parts. It must list every title of those but inputs with a
 * default, and others only where they are open. A declared type may be narrower (inputs) or wider (outputs); a default is inherited.
 */
export function agree(report: Report, definition: Definition, direction: Direction, inferred: Side): Side {
  const declared = declaredOf(definition, direction)
  if (declared === undefined) return inferred
  const path = [...definition.path, direction]
  const byTitle = new Map(declared.map((property) => [property.title, property]))
  const missing = inferred.list.filter((property) => !byTitle.has(property.title) && !mayBeLeftOut(property, direction))
  const expected = new Map(inferred.list.map((property) => [property.title, property]))
  const extra = inferred.open ? [] : declared.filter(({ title }) => !expected.has(title))
  if (missing.length > 0 || extra.length > 0)
    differentTitles(report, definition, direction, inferred, { missing, extra })
  return closed(
    declared.map((property, i) => {
      const inner = expected.get(property.title)
      if (inner === undefined) return property
      const [from, to] = direction === 'inputs' ? [property, inner] : [inner, property]
      if (!castable(from.type, to.type)) differentType(report, [...path, i], from, to)
      return property.default === undefined && inner.default !== undefined
        ? { ...property, default: inner.default }
        : property
    }),
  )
}

/** An input with a default takes it where it is not listed. */
const mayBeLeftOut = (property: Property, direction: Direction) =>
  direction === 'inputs' && property.default !== undefined

/** Start and end nodes hand on what comes in, so both lists are one. An empty list beside a full one is taken as not given. */
export function mirrored(report: Report, definition: Definition): Side {
  const inputs = declaredOf(definition, 'inputs')
  const outputs = declaredOf(definition, 'outputs')
  if (inputs === undefined || outputs === undefined) return sideOf(inputs ?? outputs)
  if (inputs.length > 0 && outputs.length > 0) return agree(report, definition, 'outputs', closed(inputs))
  if (inputs.length !== outputs.length) emptyBesideFull(report, definition, inputs.length === 0 ? 'inputs' : 'outputs')
  return closed(inputs.length > 0 ? inputs : outputs)
}

export function emptyBesideFull(report: Report, definition: Definition, empty: Direction): void {
  report.warn(
    'FLOW_PORTS_EMPTY',
    [...definition.path, empty],
    `${titleOf(definition)} has an empty list of ${empty}, which does not agree with the rest; it is taken as not given. Remove it.`,
  )
}

const titles = (list: readonly Property[]) => list.map(({ title }) => `"${title}"`).join(', ')

function differentTitles(
  report: Report,
  definition: Definition,
  direction: Direction,
  inferred: Side,
  { missing, extra }: { readonly missing: readonly Property[]; readonly extra: readonly Property[] },
): void {
  const parts = [
    missing.length > 0 ? `${titles(missing)} ${missing.length === 1 ? 'is' : 'are'} missing` : '',
    extra.length > 0 ? `${titles(extra)} ${extra.length === 1 ? 'is' : 'are'} not among them` : '',
  ]
  const wanted = inferred.list.length === 0 ? 'none' : titles(inferred.list)
  report.fault(
    'FLOW_PORTS',
    [...definition.path, direction],
    `the ${direction} of ${titleOf(definition)} must be those of what it holds, ${wanted}: ${parts.filter(Boolean).join(', and ')}.\n` +
      `Correct the list, or leave "${direction}" out.`,
  )
}

export function differentType(report: Report, path: Path, from: Property, to: Property): void {
  report.fault(
    'FLOW_PORT_TYPE',
    path,
    `"${from.title}" is ${showType(from.type)} on one side and ${showType(to.type)} on the other, which it cannot become.`,
  )
}
