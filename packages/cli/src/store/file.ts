import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { SluiceError } from '@sluice/core'

const DEFAULT = join('.sluice', 'threads.db')

export interface StoreFile {
  /** As it was named; relative to where the command runs. */
  readonly path: string
  /** Whether somebody named it. */
  readonly named: boolean
}

/** The file that keeps threads: the one of the flag, else of the variable SLUICE_STORE, else one in the current folder. */
export function storeFile(flag: string | undefined, env = process.env): StoreFile {
  const path = flag ?? (env.SLUICE_STORE || undefined)
  return { path: path ?? DEFAULT, named: path !== undefined }
}

/** @throws SluiceError `CLI_STORE` where there is no such file: one that is only read is not made. */
export function requireFile({ path }: StoreFile): void {
  if (existsSync(path)) return
  throw new SluiceError(
    'CLI_STORE',
    `there is no store ${path}. Name the file that keeps the threads with --store, or with the variable SLUICE_STORE.`,
    { file: path },
  )
}
