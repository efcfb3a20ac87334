import type { Context } from 'hono'
import { createMiddleware } from 'hono/factory'
import type { Env } from '../http/env.ts'
import { HttpError } from '../http/errors.ts'
import { ownerOf, type Principal, type Scope } from './principal.ts'

export const has = ({ scopes }: Principal, scope: Scope): boolean => scopes.includes(scope) || scopes.includes('admin')

/** @throws HttpError `SCOPE_MISSING`. */
export function requireScope(ctx: Context<Env>, scope: Scope): void {
  if (!has(ctx.get('principal'), scope)) throw new HttpError('SCOPE_MISSING', `this needs the scope "${scope}".`)
}

/** Lets in who has the scope. @throws HttpError `SCOPE_MISSING`. */
export const needs = (scope: Scope) =>
  createMiddleware<Env>(async (ctx, next) => {
    requireScope(ctx, scope)
    await next()
  })

interface Owned {
  readonly owner: string
}

const owns = (principal: Principal, { owner }: Owned): boolean => owner === ownerOf(principal)

/** Whether a caller may look at what belongs to `owner`: what they may not see does not exist for them. */
export const sees = (principal: Principal, owned: Owned): boolean => owns(principal, owned) || has(principal, 'read')

export const maySee = (ctx: Context<Env>, owned: Owned): boolean => sees(ctx.get('principal'), owned)

/** To see everybody's is not to change it. @throws HttpError `SCOPE_MISSING`. */
export function requireTouch(ctx: Context<Env>, owned: Owned): void {
  const principal = ctx.get('principal')
  if (owns(principal, owned) || has(principal, 'admin')) return
  throw new HttpError('SCOPE_MISSING', 'this is somebody else’s, and to change it needs the scope "admin".')
}
