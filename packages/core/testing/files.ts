import type { FileEntry, WritableFiles } from '../src/index.ts'

/** Files in memory, by path. A text of `null` stands for a file that cannot be read. */
export class MemoryFiles implements WritableFiles {
  readonly root: string
  readonly texts: Map<string, string | null>

  constructor(texts: Readonly<Record<string, string | null>> = {}, root = 'mem:') {
    this.root = root
    this.texts = new Map(Object.entries(texts))
  }

  async list(folder: string): Promise<readonly FileEntry[]> {
    const found = new Map<string, FileEntry>()
    for (const path of this.texts.keys()) {
      if (folder !== '' && !path.startsWith(`${folder}/`)) continue
      const [name = '', ...rest] = path.slice(folder === '' ? 0 : folder.length + 1).split('/')
      found.set(name, { name, kind: rest.length === 0 ? 'file' : 'folder' })
    }
    return [...found.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1))
  }

  async read(path: string): Promise<string | undefined> {
    const text = this.texts.get(path)
    if (text === null) throw new Error(`${path} is no text in UTF-8`)
    return text
  }

  async write(path: string, text: string): Promise<void> {
    this.texts.set(path, text)
  }

  async remove(path: string): Promise<boolean> {
    return this.texts.delete(path)
  }
}
