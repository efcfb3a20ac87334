import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { messageOf, SluiceError } from '@sluice/core'
import { parse } from 'yaml'
import { z } from 'zod'
import { PRINCIPAL_ID, type Principal, SCOPES, type Scope } from './principal.ts'

const entry = z.strictObject({
  id: z.string().regex(PRINCIPAL_ID, 'up to 128 letters, digits, ".", "_", "@" and "-", a letter or a digit first'),
  scopes: z.array(z.enum(SCOPES)),
  token: z
    .string()
    .regex(/^sha256:[0-9a-f]{64}$/, '"sha256:" and the 64 hex digits of a token’s hash; a token itself is never kept'),
  expires: z
    .union([z.iso.date(), z.iso.datetime({ offset: true })], 'a date, or a date and time with its offset')
    .optional(),
  claims: z.record(z.string(), z.json()).optional(),
})
const tokenFile = z.strictObject({ principals: z.array(entry).max(10_000) })

interface Held {
  readonly digest: Buffer
  readonly principal: Principal
  /** Milliseconds since 1970. */
  readonly until: number
}

const digestOf = (token: string): Buffer => createHash('sha256').update(token).digest()

/** Those who may call, from a file that holds hashes of their tokens. */
export class Tokens {
  readonly #file: string
  readonly #now: () => number
  #held: readonly Held[] = []

  private constructor(file: string, now: () => number) {
    this.#file = file
    this.#now = now
  }

  /** @throws SluiceError `SERVER_TOKENS` for a file that cannot be read, or is not what it should be. */
  static async load(file: string, now: () => number = Date.now): Promise<Tokens> {
    const tokens = new Tokens(file, now)
    await tokens.reload()
    return tokens
  }

  /** Reads the file once more. @throws SluiceError `SERVER_TOKENS`; then what was read before stays. */
  async reload(): Promise<void> {
    this.#held = await read(this.#file)
  }

  /** Whose token this is. Every entry is compared, whichever fits, so that the time it takes says nothing. */
  find(token: string): Principal | undefined {
    const digest = digestOf(token)
    let found: Held | undefined
    for (const held of this.#held) if (timingSafeEqual(held.digest, digest)) found = held
    return found !== undefined && this.#now() < found.until ? found.principal : undefined
  }
}

async function read(file: string): Promise<readonly Held[]> {
  const fault = (why: string, cause?: unknown) =>
    new SluiceError('SERVER_TOKENS', `the file of tokens ${file}: ${why}.`, { file }, cause)
  let written: unknown
  try {
    written = parse(await readFile(file, 'utf8'), { maxAliasCount: 0 })
  } catch (cause) {
    const { code } = cause as { code?: string }
    throw fault(code === 'ENOENT' ? 'there is no such file' : (messageOf(cause).split('\n')[0] ?? ''), cause)
  }
  const { success, data, error } = tokenFile.safeParse(written)
  if (!success) {
    const [first] = error.issues
    throw fault(`${first?.path.join('.') || 'the whole'}: ${first?.message}`)
  }
  const twice = data.principals.find(
    ({ token }, at) => data.principals.findIndex((each) => each.token === token) !== at,
  )
  if (twice !== undefined) throw fault(`two entries have one token, the second for "${twice.id}"`)
  return data.principals.map(({ id, scopes, token, expires, claims }) => ({
    digest: Buffer.from(token.slice('sha256:'.length), 'hex'),
    until: expires === undefined ? Number.POSITIVE_INFINITY : Date.parse(expires),
    principal: { kind: 'token', id, scopes, ...(claims === undefined ? {} : { claims }) },
  }))
}

/** A token that was made, and what a file of tokens says of it. */
export interface NewToken {
  /** 256 random bits; nothing keeps it. */
  readonly token: string
  /** A line for `principals`, as JSON, which is YAML too. */
  readonly entry: string
}

/** @throws SluiceError `SERVER_TOKENS` for an id or a date that a file may not have. */
export function newToken(id: string, scopes: readonly Scope[], expires?: string): NewToken {
  const token = `sluice_${randomBytes(32).toString('base64url')}`
  const made = {
    id,
    scopes,
    token: `sha256:${digestOf(token).toString('hex')}`,
    ...(expires === undefined ? {} : { expires }),
  }
  const { success, error } = entry.safeParse(made)
  if (success) return { token, entry: JSON.stringify(made) }
  const [first] = error.issues
  throw new SluiceError('SERVER_TOKENS', `${first?.path.join('.')}: ${first?.message}.`)
}
