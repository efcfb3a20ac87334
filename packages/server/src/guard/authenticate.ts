import { type Awaitable, SluiceError } from '@sluice/core'
import { createMiddleware } from 'hono/factory'
import type { Env } from '../http/env.ts'
import { HttpError } from '../http/errors.ts'
import { isLocal, LOCAL, PRINCIPAL_ID, type Principal, SCOPES } from './principal.ts'
import type { Tokens } from './tokens.ts'

/** Says who sends a request; nobody, where it is `undefined`. Whatever it throws is a fault of the server. */
export type Authenticate = (request: Request) => Awaitable<Principal | undefined>

const BEARER = /^Bearer +([A-Za-z0-9._~+/-]{1,4096}=*) *$/i

/** Lets in whoever brings a token that the file knows. */
export const byToken =
  (tokens: Tokens): Authenticate =>
  ({ headers }) => {
    const [, token] = BEARER.exec(headers.get('authorization') ?? '') ?? []
    return token === undefined ? undefined : tokens.find(token)
  }

/**
 * Everything behind it knows who calls.
 *
 * @throws HttpError `CALLER_UNKNOWN`; SluiceError `SERVER_PRINCIPAL`, which is the embedder's.
 */
export const authenticated = (authenticate: Authenticate | undefined) =>
  createMiddleware<Env>(async (ctx, next) => {
    ctx.set('principal', authenticate === undefined ? LOCAL : await callerOf(authenticate, ctx.req.raw))
    await next()
  })

async function callerOf(authenticate: Authenticate, request: Request): Promise<Principal> {
  const principal = await authenticate(request)
  if (principal === undefined || principal === null) {
    const why = 'say who you are: "authorization: Bearer <token>", with a token that is known and has not expired.'
    throw new HttpError('CALLER_UNKNOWN', why, { 'www-authenticate': 'Bearer realm="sluice"' })
  }
  const { kind, id, scopes } = principal
  const isNamed = typeof kind === 'string' && kind !== '' && typeof id === 'string' && PRINCIPAL_ID.test(id)
  const isOne = isNamed && !isLocal(principal)
  if (isOne && Array.isArray(scopes) && scopes.every((scope) => SCOPES.includes(scope))) return principal
  throw new SluiceError(
    'SERVER_PRINCIPAL',
    `"authenticate" gave no principal: a kind that is not "local", an id of letters, digits, ".", "_", "@" and "-", and scopes of ${SCOPES.join(', ')}.`,
  )
}
