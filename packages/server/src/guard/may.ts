import type { Context } from 'hono'
import { createMiddleware } from 'hono/factory'
import type { Env } from '../http/env.ts'
import { HttpError } from '../http/errors.ts'
import { ownerOf, type Principal, type Scope } from './principal.ts'

export const has = ({ scopes }: Principal, scope: Scope): boolean => scopes.includes(scope) || scopes.includes('admin')

/** Lets in who has the scope. @throws HttpError `FORBIDDEN`. */
export const needs = (scope: Scope) =>
  createMiddleware<Env>(async (ctx, next) => {
    if (!has(ctx.get('principal'), scope)) throw new HttpError('FORBIDDEN', `this needs the scope "${scope}".`)
    await next()
  })

/** Whether a caller may look at what belongs to `owner`: what they may not see does not exist for them. */
export function maySee(ctx: Context<Env>, { owner }: { readonly owner: string }): boolean {
  const principal = ctx.get('principal')
  return owner === ownerOf(principal) || has(principal, 'read')
}
