import { SluiceError } from '../errors/error.ts'
import type { Awaitable } from '../store/store.ts'

export interface FileEntry {
  readonly name: string
  readonly kind: 'file' | 'folder'
}

/**
 * Files under a root, wherever they are: on a disk, in memory, in a bucket. Paths are relative to the root, their parts joined by
 * `/`; an implementation lets none lead out of the root, and follows no links.
 */
export interface Files {
  /** Names the root, for errors; equal for equal roots. */
  readonly root: string
  /** What is directly in a folder, sorted by name; nothing where there is none. The root itself is `''`. */
  list(folder: string): Awaitable<readonly FileEntry[]>
  /** The text of a file without a byte order mark; `undefined` where there is none. Throws for what is no text in UTF-8. */
  read(path: string): Awaitable<string | undefined>
}

export interface WritableFiles extends Files {
  /** Writes a file in whole or not at all, and the folders on its way. */
  write(path: string, text: string): Awaitable<void>
  /** Whether there was one to take away. */
  remove(path: string): Awaitable<boolean>
}

/** Names that Windows keeps for devices, with any extension. */
const RESERVED = /^(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\.|$)/i

export const isDeviceName = (name: string): boolean => RESERVED.test(name)

/** Control characters, and what some file system takes for a separator, a drive or a pattern. */
const FORBIDDEN = /[\p{Cc}\\/:*?"<>|]/u

/** Whether this is a name for a file or a folder on every system, and none that leads elsewhere. */
export const isFileName = (name: string): boolean =>
  name !== '' && !FORBIDDEN.test(name) && !/[. ]$/.test(name) && !isDeviceName(name)

/**
 * Reads a path that came from outside.
 *
 * @throws SluiceError `PATH_REFUSED` for one that leads out of the root, is absolute, or has a part that is no file name.
 */
export function readPath(path: string): string {
  if (path.split('/').every(isFileName)) return path
  throw new SluiceError(
    'PATH_REFUSED',
    `${JSON.stringify(path)} is refused as a path; give the names of folders and of a file, joined by "/", without "." and "..".`,
    { path },
  )
}
