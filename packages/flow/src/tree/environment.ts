import { type Path, showPath } from '../faults/path.ts'
import { type Definition, isComponent } from './definition.ts'
import { below, type Placed, REFERENCED, reach } from './placed.ts'

/** A variable of the environment that a document names instead of a secret. Read when the flow runs, not before. */
export interface EnvironmentReference {
  readonly name: string
  /** JSON path of the first place that names it. */
  readonly path: string
}

const KEYS = new Set(['api_key', 'apiKey'])
/** Never read by a run, so that nothing there can demand a secret. */
const SKIPPED = new Set(['metadata', 'inputs', 'outputs', REFERENCED])

/** `$NAME` -> `NAME` */
export function environmentName(value: unknown): string | undefined {
  return typeof value === 'string' ? /^\$([A-Za-z_]\w*)$/.exec(value)?.[1] : undefined
}

/** Adds what one component names, in its own fields and in the plain objects inside. */
export function collectEnvironment(found: Map<string, EnvironmentReference>, { value, path, scope }: Definition): void {
  for (const key of Object.keys(value)) if (!SKIPPED.has(key)) collect(found, below({ value, path, scope }, key), key)
}

function collect(found: Map<string, EnvironmentReference>, placed: Placed, key: string): void {
  const { value, path } = placed
  if (KEYS.has(key)) add(found, path, reach(placed)?.value)
  if (typeof value !== 'object' || value === null || isComponent(value)) return
  for (const inner of Object.keys(value)) {
    collect(found, below(placed, Array.isArray(value) ? Number(inner) : inner), inner)
  }
}

function add(found: Map<string, EnvironmentReference>, path: Path, value: unknown): void {
  const name = environmentName(value)
  if (name !== undefined && !found.has(name)) found.set(name, { name, path: showPath(path) })
}
