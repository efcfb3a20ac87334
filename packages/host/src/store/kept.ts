import type { KeptOfPrincipal, KeptStore } from '@sluice/core'
import type { Connection } from './connection.ts'
import { nameText } from './schema.ts'

/** Beside the tables of threads, and made when it is first used: a release that knows nothing of it reads the rest. */
const CREATE = `
  create table if not exists kept (
    principal text not null,
    policy text not null,
    body text not null,
    primary key (principal, policy)
  ) without rowid
`

interface Row {
  readonly principal: string
  readonly policy: string
  readonly body: string
}

/** What policies keep of principals, in the file of a store. */
export class SqliteKept implements KeptStore {
  readonly #open: () => Connection
  #made = false

  /** @param open hands out the connection, or throws when the store is closed. */
  constructor(open: () => Connection) {
    this.#open = open
  }

  read(by: string, principal: string): string | undefined {
    const sql = 'select body from kept where principal = ? and policy = ?'
    return this.#db().get<Row>(sql, nameText(principal), nameText(by))?.body
  }

  /** Other processes may write between what was read and this: one statement looks and writes. */
  write(by: string, principal: string, text: string, was: string | undefined): boolean {
    const of = [nameText(principal), nameText(by)] as const
    const db = this.#db()
    if (was === undefined) {
      return db.run('insert or ignore into kept (principal, policy, body) values (?, ?, ?)', ...of, text) > 0
    }
    return db.run('update kept set body = ? where principal = ? and policy = ? and body = ?', text, ...of, was) > 0
  }

  list(principal?: string): readonly KeptOfPrincipal[] {
    const [where, values] = principal === undefined ? ['', []] : ['where principal = ?', [nameText(principal)]]
    return this.#db()
      .all<Row>(`select principal, policy, body from kept ${where}`, ...values)
      .map((row) => ({ by: JSON.parse(row.policy), principal: JSON.parse(row.principal), text: row.body }))
  }

  remove(principal: string, by?: string): number {
    const db = this.#db()
    if (by === undefined) return db.run('delete from kept where principal = ?', nameText(principal))
    return db.run('delete from kept where principal = ? and policy = ?', nameText(principal), nameText(by))
  }

  #db(): Connection {
    const db = this.#open()
    if (!this.#made) db.exec(CREATE)
    this.#made = true
    return db
  }
}
