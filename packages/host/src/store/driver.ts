import { createRequire, isBuiltin } from 'node:module'
import { messageOf, SluiceError } from '@sluice/core'

/** What the drivers have in common. Parameters are plain `?` in order: with `?1` they would differ. */
export interface Database {
  exec(sql: string): void
  prepare(sql: string): Statement
  close(): void
}

export interface Statement {
  run(...values: readonly Value[]): { readonly changes: number | bigint }
  get(...values: readonly Value[]): unknown
  all(...values: readonly Value[]): readonly unknown[]
}

export type Value = string | number | null

export type Driver = new (file: string) => Database

/** What the search for a driver asks of Node. */
export interface Modules {
  isBuiltin(name: string): boolean
  require(name: string): unknown
}

const BUILT_IN = 'node:sqlite'
const PACKAGE = 'better-sqlite3'

let found: Driver | undefined

/** The driver of this process, loaded when the first store is opened. */
export function loadDriver(): Driver {
  found ??= findDriver({ isBuiltin, require: createRequire(import.meta.url) })
  return found
}

/**
 * Node's own SQLite where there is one, else the package better-sqlite3.
 *
 * @throws SluiceError `STORE_DRIVER_MISSING` when there is neither.
 */
export function findDriver({ isBuiltin, require }: Modules): Driver {
  if (isBuiltin(BUILT_IN)) return withoutItsWarning(() => require(BUILT_IN) as { DatabaseSync: Driver }).DatabaseSync
  try {
    const driver = require(PACKAGE) as Driver
    // Its native part is loaded with the first database.
    new driver(':memory:').close()
    return driver
  } catch (error) {
    throw new SluiceError(
      'STORE_DRIVER_MISSING',
      `a SQLite store needs Node 22.13 or later, or the package ${PACKAGE}. This is Node ${process.versions.node}, and ${PACKAGE} ` +
        `cannot be loaded (${messageOf(error).split('\n', 1)[0]}). Run "npm install ${PACKAGE}@12" with its install script allowed, or "npm ` +
        `rebuild ${PACKAGE}" where it was built for another Node; without a prebuilt one, that needs python3, make and g++.`,
      {},
      error,
    )
  }
}

/** Some versions of Node call their SQLite experimental, each time they load it. Whoever opens a store has nothing to do about that. */
function withoutItsWarning<Loaded>(load: () => Loaded): Loaded {
  const { emitWarning } = process
  process.emitWarning = ((warning: string | Error, ...rest: never[]) => {
    if (!String(warning).startsWith('SQLite is an experimental feature')) emitWarning.call(process, warning, ...rest)
  }) as typeof emitWarning
  try {
    return load()
  } finally {
    process.emitWarning = emitWarning
  }
}
