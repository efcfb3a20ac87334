import { SluiceError } from '../../errors/error.ts'
import { isObject } from '../../json/json.ts'
import { isDeviceName, type WritableFiles } from '../files.ts'

/** Something an agent has written down for later. */
export interface Memory {
  /** Names it in its scope. */
  readonly key: string
  readonly title: string
  readonly content: string
  /** What kind of thing it is: `fact`, where the model says nothing else. */
  readonly memoryType: string
  readonly scope: string
  /** Milliseconds since 1970. */
  readonly createdAt: number
  readonly updatedAt: number
}

/** What there is in a scope. */
export interface Memories {
  readonly memories: readonly Memory[]
  /** Paths of files that cannot be read. */
  readonly skipped: readonly string[]
}

const ROOT = 'memories'
const ENDING = '.json'
/** Characters of a name on a disk, which mostly takes 255 bytes, a temporary ending included. */
const MAX_NAME = 180

/** The memories of one scope, a file each: `memories/<segment>/<segment>/<key>.json`. */
export class MemoryScope {
  readonly #files: WritableFiles
  readonly #scope: string
  readonly #folder: string

  /** @throws SluiceError `PATH_REFUSED` for a scope with a segment that is empty, `.`, `..`, or kept by Windows for a device. */
  constructor(files: WritableFiles, scope: string) {
    this.#files = files
    this.#scope = scope
    this.#folder = [
      ROOT,
      ...scope.split(':').map((segment) => nameOf(segment, `the scope ${JSON.stringify(scope)}`)),
    ].join('/')
  }

  /** `undefined` where there is none. @throws SluiceError `MEMORY_DAMAGED` for a file that cannot be read. */
  async get(key: string): Promise<Memory | undefined> {
    return this.#read(this.#pathOf(key), key)
  }

  async put(memory: Memory): Promise<void> {
    await this.#files.write(this.#pathOf(memory.key), `${JSON.stringify(memory, undefined, 2)}\n`)
  }

  async remove(key: string): Promise<boolean> {
    return this.#files.remove(this.#pathOf(key))
  }

  /** All of the scope, and not of those below it, by key. */
  async all(): Promise<Memories> {
    const [memories, skipped]: [Memory[], string[]] = [[], []]
    for (const { name, kind } of await this.#files.list(this.#folder)) {
      if (kind !== 'file' || !name.endsWith(ENDING)) continue
      const path = `${this.#folder}/${name}`
      const memory = await this.#read(path).catch(() => undefined)
      if (memory === undefined || this.#pathOf(memory.key) !== path) skipped.push(path)
      else memories.push(memory)
    }
    return { memories: memories.sort((a, b) => (a.key < b.key ? -1 : 1)), skipped }
  }

  #pathOf(key: string): string {
    return `${this.#folder}/${nameOf(key, `the key ${JSON.stringify(key)}`)}${ENDING}`
  }

  async #read(path: string, key?: string): Promise<Memory | undefined> {
    try {
      const text = await this.#files.read(path)
      return text === undefined ? undefined : readMemory(JSON.parse(text), this.#scope)
    } catch (cause) {
      throw new SluiceError(
        'MEMORY_DAMAGED',
        `the memory ${key === undefined ? `at ${path}` : JSON.stringify(key)} cannot be read, and is left as it is: ${(cause as Error).message.replace(/\.$/, '')}. Delete it, or use another key.`,
        { path },
        cause,
      )
    }
  }
}

/** The scope is where the file is, whatever stands in it. */
function readMemory(value: unknown, scope: string): Memory {
  if (!isObject(value)) throw new TypeError('it is no object')
  const { key, title, content, memoryType, createdAt, updatedAt } = value
  for (const [name, text] of Object.entries({ key, title, content, memoryType })) {
    if (typeof text !== 'string') throw new TypeError(`"${name}" is no text`)
  }
  for (const [name, time] of Object.entries({ createdAt, updatedAt })) {
    if (typeof time !== 'number') throw new TypeError(`"${name}" is no time`)
  }
  return { key, title, content, memoryType, scope, createdAt, updatedAt } as Memory
}

/**
 * A name on a disk for a key or a segment: small letters, digits, `_` and `-` as they are, all else as bytes in hexadecimal, so that
 * two names are the same on no system where they are not here.
 */
function nameOf(text: string, what: string): string {
  const refuse = (why: string) => new SluiceError('PATH_REFUSED', `${what} ${why}.`)
  if (text === '' || text === '.' || text === '..') throw refuse('has a part that is empty, "." or ".."')
  const name = [...text].map((char) => (/[a-z0-9_-]/.test(char) ? char : bytesOf(char, refuse))).join('')
  if (isDeviceName(text)) throw refuse('has a part that Windows keeps for a device')
  if (name.length > MAX_NAME) throw refuse(`is too long; ${MAX_NAME} characters are the most`)
  return name
}

function bytesOf(char: string, refuse: (why: string) => Error): string {
  if (/^[\0-\x7f]$/.test(char)) return `%${char.charCodeAt(0).toString(16).padStart(2, '0')}`
  try {
    return encodeURIComponent(char).toLowerCase()
  } catch {
    throw refuse('has half a character')
  }
}
