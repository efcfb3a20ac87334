import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { relative, resolve } from 'node:path'
import { isFile } from '../manifest/entry.ts'
import type { Manifest } from '../manifest/manifest.ts'

/**
 * What pins a plugin: the SHA-256 of the listing that `sha256sum` prints of its files, by name, each relative to the manifest's
 * folder. Its files are the manifest, every word of the command that starts it which is a file in that folder, and the programs
 * of its tools; of a module it is the module alone, for what it says is not known before its code runs. What those import is not
 * among them.
 */
export async function digestOf(manifest: Files): Promise<string> {
  const listing = createHash('sha256')
  for (const name of await filesOf(manifest)) {
    const file = createHash('sha256').update(await readFile(resolve(manifest.folder, name)))
    listing.update(`${file.digest('hex')}  ${name}\n`)
  }
  return `sha256:${listing.digest('hex')}`
}

export type Files = Pick<Manifest, 'file' | 'folder' | 'start' | 'tools'>

/** Sorted, so that the order in a manifest does not count. */
async function filesOf({ file, folder, start = [], tools }: Files): Promise<readonly string[]> {
  const words = [...start, ...tools.flatMap(({ path }) => path ?? [])]
  const names = new Set([relative(folder, file)])
  for (const word of words) {
    const path = resolve(folder, word)
    const name = relative(folder, path)
    if (name !== '' && !name.startsWith('..') && (await isFile(path))) names.add(name)
  }
  return [...names].toSorted()
}
