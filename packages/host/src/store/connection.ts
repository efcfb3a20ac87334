import type { Database, Statement, Value } from './driver.ts'
import { storeFault } from './fault.ts'

/** A database with its statements, each prepared once. Whatever its driver throws comes out as an error of the store. */
export class Connection {
  readonly file: string
  readonly #database: Database
  readonly #prepared = new Map<string, Statement>()

  constructor(file: string, database: Database) {
    this.file = file
    this.#database = database
  }

  /** Says how many rows changed. */
  run(sql: string, ...values: readonly Value[]): number {
    return this.#guarded(() => Number(this.#statement(sql).run(...values).changes))
  }

  get<Row>(sql: string, ...values: readonly Value[]): Row | undefined {
    return this.#guarded(() => this.#statement(sql).get(...values) as Row | undefined)
  }

  all<Row>(sql: string, ...values: readonly Value[]): readonly Row[] {
    return this.#guarded(() => this.#statement(sql).all(...values) as readonly Row[])
  }

  /** Several statements; none of them is kept. */
  exec(sql: string): void {
    this.#guarded(() => this.#database.exec(sql))
  }

  /** Reads the file as it is at one moment. */
  reading<Result>(work: () => Result): Result {
    return this.#transaction('begin', work)
  }

  /** Writes all of it or, when `work` throws, nothing; no other process writes meanwhile. */
  writing<Result>(work: () => Result): Result {
    return this.#transaction('begin immediate', work)
  }

  close(): void {
    this.#prepared.clear()
    this.#guarded(() => this.#database.close())
  }

  #transaction<Result>(begin: string, work: () => Result): Result {
    this.run(begin)
    try {
      const result = work()
      this.run('commit')
      return result
    } catch (error) {
      this.#rollBack()
      throw error
    }
  }

  /** After some errors SQLite has done so itself, and refuses. */
  #rollBack(): void {
    try {
      this.run('rollback')
    } catch {}
  }

  #statement(sql: string): Statement {
    let statement = this.#prepared.get(sql)
    if (statement === undefined) {
      statement = this.#database.prepare(sql)
      this.#prepared.set(sql, statement)
    }
    return statement
  }

  #guarded<Result>(work: () => Result): Result {
    try {
      return work()
    } catch (error) {
      throw storeFault(this.file, error)
    }
  }
}
