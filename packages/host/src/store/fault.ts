import { messageOf, SluiceError } from '@sluice/core'

type Reason = 'busy' | 'read-only' | 'full' | 'corrupt'

/** SQLite's result codes, as node:sqlite gives them; the last byte of one is its kind. */
const BY_NUMBER: Readonly<Record<number, Reason>> = {
  5: 'busy',
  6: 'busy',
  8: 'read-only',
  11: 'corrupt',
  13: 'full',
  26: 'corrupt',
  // A write, and the growth of the shared memory: refused over the file size limit of the process.
  778: 'full',
  4874: 'full',
}

/** The same as better-sqlite3 gives them, and what the system says where SQLite was not asked yet. */
const BY_NAME: readonly (readonly [RegExp, Reason])[] = [
  [/^SQLITE_(BUSY|LOCKED)/, 'busy'],
  [/^(SQLITE_READONLY|EACCES$|EPERM$|EROFS$)/, 'read-only'],
  [/^SQLITE_(CORRUPT|NOTADB)/, 'corrupt'],
  [/^(SQLITE_(FULL|IOERR_WRITE|IOERR_SHMSIZE)|ENOSPC$|EDQUOT$)/, 'full'],
]

function reasonOf(error: unknown): Reason | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  const { code, errcode } = error as { code?: unknown; errcode?: unknown }
  if (typeof errcode === 'number') return BY_NUMBER[errcode] ?? BY_NUMBER[errcode & 0xff]
  return typeof code === 'string' ? BY_NAME.find(([name]) => name.test(code))?.[1] : undefined
}

/** What a driver or the system threw, as an error of the store; one of ours is handed back as it is. */
export function storeFault(file: string, error: unknown): SluiceError {
  if (error instanceof SluiceError) return error
  const [code, text] = describe(reasonOf(error), file)
  return new SluiceError(code, `${text} (${messageOf(error)})`, { file }, error)
}

function describe(reason: Reason | undefined, file: string): readonly [code: string, text: string] {
  switch (reason) {
    case 'busy':
      return [
        'STORE_BUSY',
        `the store ${file} was locked by another process for too long. Try again; look for a process that stands still, or for a tool that holds the file open in a transaction.`,
      ]
    case 'read-only':
      return [
        'STORE_READ_ONLY',
        `the store ${file} may not be written. Give this user the right to read and write the file and its folder, or choose another path.`,
      ]
    case 'full':
      return [
        'STORE_FULL',
        `the store ${file} cannot grow, and this was not written. Make room on its disk, or raise the file size limit of the process.`,
      ]
    case 'corrupt':
      return [
        'STORE_CORRUPT',
        `the store ${file} is damaged. Put it back from a backup, or save what can be read with the command "sqlite3" and its ".recover".`,
      ]
    default:
      return [
        'STORE_FAILED',
        `the store ${file} could not be read or written. Look at the file, its folder and its disk.`,
      ]
  }
}
