import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Line, Store } from '@sluice/core'
import { describe, it, onTestFinished } from 'vitest'
import { type Database, loadDriver } from '../store/driver.ts'
import { type SqliteOptions, sqliteStore } from '../store/sqlite.ts'
import { folderOf } from './folder.ts'

/** A suite that needs a SQLite driver, skipped where Node has none and better-sqlite3 is not built. */
export function describeSqlite(title: string, suite: () => void): void {
  const missing = whyNoDriver()
  if (missing === undefined) describe(title, suite)
  else describe(title, () => it.skip(missing, () => {}))
}

function whyNoDriver(): string | undefined {
  try {
    loadDriver()
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

export const lineOf = (thread: string): Line => ({ thread, branch: 'main' })

/** The path of a store in a new folder, removed after the test. */
export const storePath = (): string => join(folderOf({}), 'threads.db')

/** A store of this test, closed after it. */
export function openStore(path: string = storePath(), options?: SqliteOptions): Store {
  const store = sqliteStore(path, options)
  onTestFinished(() => store.close())
  return store
}

/** The file of a store, opened past it. */
export function openRaw(path: string): Database {
  const database = new (loadDriver())(path)
  onTestFinished(() => database.close())
  return database
}

/** What is wrong with work that should fail: the code of its error. */
export async function codeOf(work: () => unknown): Promise<string | undefined> {
  try {
    await work()
    return undefined
  } catch (error) {
    return (error as { code?: string }).code
  }
}

/** A process with `program`, which has `sqliteStore` of the built `module`. */
export function runStore(
  module: string,
  program: string,
  args: readonly string[],
  [command = process.execPath, ...before]: readonly string[] = [],
): Spoken {
  const text = `import { sqliteStore } from ${JSON.stringify(module)}\n${program}`
  return new Spoken(command, [...before, join(folderOf({ 'program.mjs': text }), 'program.mjs'), ...args])
}

/** A process of this test that speaks in lines, ended after it. */
export class Spoken {
  readonly child: ChildProcess
  readonly #lines: AsyncIterator<string>
  readonly #exited: Promise<unknown>
  #stderr = ''

  constructor(command: string, args: readonly string[]) {
    this.child = spawn(command, args, { stdio: 'pipe' })
    this.child.stderr?.on('data', (text) => {
      this.#stderr += text
    })
    // biome-ignore lint/style/noNonNullAssertion: it is piped.
    this.#lines = createInterface({ input: this.child.stdout! })[Symbol.asyncIterator]()
    this.#exited = once(this.child, 'close')
    onTestFinished(() => this.kill('SIGKILL'))
  }

  say(text: string): void {
    this.child.stdin?.write(`${text}\n`)
  }

  /** The next line; fails with what stands on stderr when there is none. */
  async next(): Promise<string> {
    const { value, done } = await this.#lines.next()
    if (done) throw new Error(`the process said no more; its stderr: ${this.#stderr}`)
    return value
  }

  /** All lines that are left, when the process has ended. */
  async rest(): Promise<readonly string[]> {
    const lines: string[] = []
    for (let line = await this.#lines.next(); !line.done; line = await this.#lines.next()) lines.push(line.value)
    await this.#exited
    return lines
  }

  async kill(signal: NodeJS.Signals): Promise<void> {
    this.child.kill(signal)
    await this.#exited
  }

  get stderr(): string {
    return this.#stderr
  }
}
