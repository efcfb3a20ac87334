import { isObject } from '@sluice/core'
import type { Path } from '../faults/path.ts'
import type { Report } from '../faults/report.ts'
import { didYouMean } from './nearest.ts'

/** A `$referenced_components`, and those of the components around. */
export interface Scope {
  readonly table: Readonly<Record<string, unknown>>
  readonly path: Path
  readonly outer: Scope | undefined
}

/** A value of the document: where it stands, and which references it can see. */
export interface Placed {
  readonly value: unknown
  readonly path: Path
  readonly scope: Scope | undefined
}

/** A reference that leads nowhere. */
interface Lost {
  readonly lost: 'missing' | 'cycle'
  readonly id: string
}

const REFERENCE = '$component_ref'
export const REFERENCED = '$referenced_components'

export const isReference = (value: unknown): value is { readonly [REFERENCE]: string } =>
  isObject(value) && typeof value[REFERENCE] === 'string'

/** What stands at a key of an object or a position of a list. */
export function below({ value, path, scope }: Placed, key: string | number): Placed {
  return { value: (value as Record<string | number, unknown>)[key], path: [...path, key], scope }
}

/** Goes from a reference to what it means, over references that mean references. Other values mean themselves. */
export function follow(placed: Placed): Placed | Lost {
  const seen = new Set<unknown>()
  let here = placed
  while (isReference(here.value)) {
    const id = here.value[REFERENCE]
    if (seen.has(here.value)) return { lost: 'cycle', id }
    seen.add(here.value)
    const target = lookUp(here.scope, id)
    if (target === undefined) return { lost: 'missing', id }
    here = target
  }
  return here
}

/** The same for those who come after the survey, which has reported what is lost. */
export function reach(placed: Placed): Placed | undefined {
  const found = follow(placed)
  return 'lost' in found || found.value === null || found.value === undefined ? undefined : found
}

/** A list or object with the references in it followed, one level deep; what is lost stays. Other values as they are. */
export function entriesOf(placed: Placed): unknown {
  const { value } = placed
  if (typeof value !== 'object' || value === null) return value
  const meant = (key: string | number) =>
    reach(below(placed, key))?.value ?? (value as Record<string | number, unknown>)[key]
  return Array.isArray(value)
    ? value.map((_, i) => meant(i))
    : Object.fromEntries(Object.keys(value).map((key) => [key, meant(key)]))
}

function lookUp(scope: Scope | undefined, id: string): Placed | undefined {
  for (let at = scope; at !== undefined; at = at.outer) {
    if (Object.hasOwn(at.table, id)) return { value: at.table[id], path: [...at.path, id], scope: at }
  }
  return undefined
}

/** The scope inside of an object that may bring a table of its own. */
export function scopeInside({ value, path, scope }: Placed): Scope | undefined {
  const table = isObject(value) && Object.hasOwn(value, REFERENCED) ? value[REFERENCED] : undefined
  return isObject(table) ? { table, path: [...path, REFERENCED], outer: scope } : scope
}

export function lostReference(report: Report, { path, scope }: Placed, { lost, id }: Lost): void {
  // The search for a similar name is not cheap, and documents may be hostile.
  if (report.isFull) return
  if (lost === 'cycle')
    report.fault('FLOW_REF_LOOP', path, `the reference "${id}" leads back to itself. Define "${id}".`)
  else {
    // The specification exports secrets as references that end in the field's own name.
    const isSecret = id.endsWith(`.${path.at(-1)}`)
    const mend = isSecret
      ? 'Write the value here, or "$NAME" for an api_key, which is then read from the environment.'
      : `${didYouMean(id, namesIn(scope))}Add it to a "${REFERENCED}" around.`
    report.fault('FLOW_REF_UNKNOWN', path, `nothing is defined as "${id}".\n${mend}`)
  }
}

function* namesIn(scope: Scope | undefined): Iterable<string> {
  for (let at = scope; at !== undefined; at = at.outer) yield* Object.keys(at.table)
}
