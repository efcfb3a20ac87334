import type { Scope } from '../guard/principal.ts'
import { newToken } from '../guard/tokens.ts'

interface Caller {
  readonly scopes: readonly Scope[]
  readonly expires?: string
  readonly claims?: object
}

/** A file of tokens for these callers, and what each sends with a request. */
export function callers<Name extends string>(of: Readonly<Record<Name, Caller>>) {
  const made = Object.entries<Caller>(of).map(([id, { scopes, expires, claims }]) => {
    const { token, entry } = newToken(id, scopes, expires)
    const line = { ...JSON.parse(entry), ...(claims === undefined ? {} : { claims }) } as object
    return { id, line, headers: { authorization: `Bearer ${token}` } }
  })
  return {
    file: { principals: made.map(({ line }) => line) },
    as: Object.fromEntries(made.map(({ id, headers }) => [id, headers])) as Record<Name, { authorization: string }>,
  }
}
