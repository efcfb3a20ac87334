import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, lstat, mkdir, open, readdir, rename, rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { type FileEntry, isFileName, readPath, SluiceError, type WritableFiles } from '@sluice/core'

export interface NodeFilesOptions {
  /** Bytes of one file; 1 MiB without it. */
  readonly maxBytes?: number
}

/**
 * The files of a folder on this machine, for skills and memory. No path leads out of it: parts that are no plain names are
 * refused, and so are symbolic links, wherever they lead. It need not be there yet.
 *
 * @throws SluiceError `FILE_REFUSED`, from its methods, for a link, for what is no file, for one that is too large or no UTF-8;
 *   `PATH_REFUSED` for a path that is none.
 */
export function nodeFiles(folder: string, { maxBytes = 1024 * 1024 }: NodeFilesOptions = {}): WritableFiles {
  return new NodeFiles(resolve(folder), maxBytes)
}

const { O_RDONLY, O_NOFOLLOW = 0 } = constants

class NodeFiles implements WritableFiles {
  readonly root: string
  readonly #maxBytes: number

  constructor(root: string, maxBytes: number) {
    this.root = root
    this.#maxBytes = maxBytes
  }

  async list(folder: string): Promise<readonly FileEntry[]> {
    const path = await this.#inside(folder)
    const entries = path === undefined ? [] : await readdir(path, { withFileTypes: true }).catch(nothing<never[]>([]))
    return entries
      .flatMap((entry): readonly FileEntry[] => {
        if (!isFileName(entry.name)) return []
        if (entry.isFile()) return [{ name: entry.name, kind: 'file' }]
        return entry.isDirectory() ? [{ name: entry.name, kind: 'folder' }] : []
      })
      .toSorted((a, b) => (a.name < b.name ? -1 : 1))
  }

  async read(path: string): Promise<string | undefined> {
    const place = await this.#inside(path)
    const file = place === undefined ? undefined : await open(place, O_RDONLY | O_NOFOLLOW).catch(nothing(undefined))
    if (file === undefined) return undefined
    try {
      return await this.#text(file, path)
    } finally {
      await file.close()
    }
  }

  async #text(file: FileHandle, path: string): Promise<string> {
    const { size } = await this.#requireFile(await file.stat(), path)
    if (size > this.#maxBytes) throw refused(path, `has ${size} bytes, and ${this.#maxBytes} are the most`)
    const bytes = await file.readFile()
    try {
      return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    } catch (cause) {
      throw refused(path, 'is no text in UTF-8', cause)
    }
  }

  async write(path: string, text: string): Promise<void> {
    const folder = dirname(join(this.root, readPath(path)))
    await this.#inside(path)
    await mkdir(folder, { recursive: true })
    const place = await this.#inside(path, folder)
    // Beside the file and in its place in one step, so that nobody reads half of it.
    const beside = `${place}.${randomUUID()}.tmp`
    try {
      const file = await open(beside, 'wx')
      await file.writeFile(text).finally(() => file.close())
      await rename(beside, place as string)
    } catch (error) {
      await rm(beside, { force: true })
      throw error
    }
  }

  async remove(path: string): Promise<boolean> {
    const place = await this.#inside(path)
    if (place === undefined) return false
    await this.#requireFile(await lstat(place), path)
    await rm(place)
    return true
  }

  /**
   * Where a path is, its folders looked at one by one; `undefined` where it is not there. With `folder`, which is there, the file
   * may be missing.
   */
  async #inside(path: string, folder?: string): Promise<string | undefined> {
    let place = this.root
    for (const name of path === '' ? [] : readPath(path).split('/')) {
      place = join(place, name)
      const found = await lstat(place).catch(nothing(undefined))
      if (found === undefined) return folder === undefined ? undefined : place
      if (found.isSymbolicLink()) throw refused(path, 'is a symbolic link, or lies behind one')
    }
    return place
  }

  async #requireFile<Stats extends { isFile(): boolean }>(stats: Stats, path: string): Promise<Stats> {
    if (stats.isFile()) return stats
    throw refused(path, 'is no file')
  }
}

const refused = (path: string, why: string, cause?: unknown) =>
  new SluiceError('FILE_REFUSED', `${path} ${why}.`, { path }, cause)

/** What stands for something that is not there. */
const nothing =
  <Value>(value: Value) =>
  (error: NodeJS.ErrnoException): Value => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return value
    throw error
  }
