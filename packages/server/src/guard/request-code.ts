import { isObject } from '@sluice/core'
import type { RequestCode, SubmittedFile, SubmittedPlugin, SubmittedTool } from '@sluice/host'
import type { Context } from 'hono'
import { createMiddleware } from 'hono/factory'
import type { Env } from '../http/env.ts'
import { HttpError } from '../http/errors.ts'

/** Fields that bring code. */
export const CODE_FIELDS = ['tools', 'plugins', 'files'] as const

/** Fields by which other servers are told what is installed; no request does that. */
const INSTALLING = ['plugin', 'middleware', 'policies', 'pluginConfig', 'plugin_config', 'toolsDir', 'tools_dir']

export const refusedCode = (what: string): HttpError =>
  new HttpError(
    'REQUEST_CODE',
    `${what} brings code, and this server runs none that comes with a request. Its operator installs tools and plugins (/v1/capabilities lists them), or allows it with --allow-request-code.`,
  )

/** Of a route that takes code where the operator allows it: refuses it where not. @throws HttpError `REQUEST_CODE`. */
export const codeAllowed = (isAllowed: boolean) =>
  createMiddleware<Env>(async (ctx, next) => {
    const field = isAllowed ? undefined : fieldIn(await bodyOf(ctx), CODE_FIELDS)
    if (field !== undefined) throw refusedCode(`"${field}"`)
    return next()
  })

/**
 * Of a route of another protocol, whose bodies may have fields that nobody here knows: refuses those that would bring code or name a
 * policy, which must not seem to have been heard.
 *
 * @param own fields that are the protocol's, and bring code only where an entry has a `source`.
 * @throws HttpError `REQUEST_CODE`.
 */
export const noCode = (own: readonly string[] = []) =>
  createMiddleware<Env>(async (ctx, next) => {
    const body = await bodyOf(ctx)
    const refused = [...CODE_FIELDS, ...INSTALLING].filter((field) => !own.includes(field))
    const { forwardedProps } = (body ?? {}) as { forwardedProps?: unknown }
    const field =
      fieldIn(body, refused) ?? fieldIn(forwardedProps, [...CODE_FIELDS, ...INSTALLING]) ?? sourceIn(body, own)
    if (field === undefined) return next()
    throw new HttpError(
      'REQUEST_CODE',
      `"${field}" brings code or installs something, which no request of this protocol does. Leave it out.`,
    )
  })

/** What is no JSON is for the route to refuse. */
const bodyOf = (ctx: Context): Promise<unknown> => ctx.req.json().catch(() => undefined)

const fieldIn = (body: unknown, fields: readonly string[]): string | undefined =>
  isObject(body) ? fields.find((field) => Object.hasOwn(body, field)) : undefined

const sourceIn = (body: unknown, fields: readonly string[]): string | undefined =>
  fields.find((field) => {
    const entries = isObject(body) ? (body as Record<string, unknown>)[field] : undefined
    return Array.isArray(entries) && entries.some((entry) => isObject(entry) && Object.hasOwn(entry, 'source'))
  })

interface CodeOfBody {
  readonly tools?:
    | readonly (Omit<SubmittedTool, 'interpreter'> & { readonly interpreter?: string | undefined })[]
    | undefined
  readonly plugins?: readonly (Omit<SubmittedPlugin, 'manifest'> & { readonly manifest: object })[] | undefined
  readonly files?: readonly SubmittedFile[] | undefined
}

/** The code of a body; absent where it brings none. */
export function codeIn({ tools, plugins, files }: CodeOfBody): RequestCode | undefined {
  const given = Object.entries({ tools, plugins, files }).filter(([, list]) => list !== undefined && list.length > 0)
  // The body was JSON of this shape.
  return given.length === 0 ? undefined : (Object.fromEntries(given) as RequestCode)
}
