import { accessSync, closeSync, constants, mkdirSync, openSync, readSync, type Stats, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { SluiceError } from '@sluice/core'
import { Connection } from './connection.ts'
import { loadDriver } from './driver.ts'
import { storeFault } from './fault.ts'
import { APPLICATION_ID, CREATE, VERSION } from './schema.ts'

export interface FileOptions {
  readonly synchronous: 'FULL' | 'NORMAL'
  readonly busyTimeoutMs: number
}

/** Opens the file of a store, and makes it where there is none. What is not ours is refused before anything touches it. */
export function openFile(path: string, options: FileOptions): Connection {
  const file = resolve(path)
  const Database = loadDriver()
  let connection: Connection | undefined
  try {
    mkdirSync(dirname(file), { recursive: true })
    inspect(file)
    connection = new Connection(file, new Database(file))
    prepare(connection, options)
    return connection
  } catch (error) {
    connection?.close()
    throw storeFault(file, error)
  }
}

/** Looks at a file without SQLite, which would bring an unfinished write of another program's file to its end. */
function inspect(file: string): void {
  const stats = statOf(file)
  if (stats !== undefined) {
    if (!stats.isFile()) throw foreign(file, stats.isDirectory() ? 'is a folder' : 'is no file')
    accessSync(file, constants.R_OK | constants.W_OK)
    if (stats.size > 0) checkHeader(file)
  }
  // SQLite keeps files of its own beside it.
  accessSync(dirname(file), constants.W_OK)
}

/** @see https://www.sqlite.org/fileformat2.html#the_database_header */
function checkHeader(file: string): void {
  const header = Buffer.alloc(100)
  const descriptor = openSync(file, 'r')
  try {
    readSync(descriptor, header, 0, 100, 0)
  } finally {
    closeSync(descriptor)
  }
  if (header.toString('latin1', 0, 16) !== 'SQLite format 3\0') throw foreign(file, 'is no SQLite database')
  checkIdentity(file, header.readUInt32BE(68), header.readUInt32BE(60))
}

function checkIdentity(file: string, id: number, version: number): void {
  if (id !== APPLICATION_ID) throw foreign(file, 'is a SQLite database of another program')
  if (version <= VERSION) return
  throw new SluiceError(
    'STORE_NEWER',
    `the store ${file} has version ${version}; this release reads up to ${VERSION}, and left it as it is. Upgrade Sluice.`,
    { file },
  )
}

/**
 * The tables are made before the file is set to write ahead: so the header of a file of ours says that it is, whatever happens to
 * the process that makes it.
 */
function prepare(connection: Connection, { synchronous, busyTimeoutMs }: FileOptions): void {
  connection.exec(`pragma busy_timeout = ${busyTimeoutMs}`)
  if (numberOf(connection, 'application_id') === 0) {
    connection.writing(() => {
      // Another process may have made something of it while this one waited.
      if (connection.get('select 1 from sqlite_master') === undefined) connection.exec(CREATE)
    })
  }
  checkIdentity(connection.file, numberOf(connection, 'application_id'), numberOf(connection, 'user_version'))
  const mode = connection.get<{ journal_mode: string }>('pragma journal_mode = wal')?.journal_mode
  if (mode !== 'wal')
    throw new Error(`its file system cannot do what write-ahead logging needs; the mode stays "${mode}"`)
  connection.exec(`pragma synchronous = ${synchronous}`)
}

function numberOf(connection: Connection, name: 'application_id' | 'user_version'): number {
  return connection.get<Record<string, number>>(`pragma ${name}`)?.[name] ?? 0
}

const foreign = (file: string, what: string) =>
  new SluiceError('STORE_FOREIGN', `${file} ${what}, and was left as it is. Choose another path for the store.`, {
    file,
  })

const statOf = (file: string): Stats | undefined => statSync(file, { throwIfNoEntry: false })
