import { isObject, MAX_DEPTH } from '@sluice/core'
import type { Context } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { createMiddleware } from 'hono/factory'
import type { Env } from '../http/env.ts'
import { HttpError } from '../http/errors.ts'

const WITH_BODY = ['POST', 'PUT', 'PATCH', 'DELETE']
const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json *(?:;|$)/i

/**
 * Reads a body within its limits, before any route sees it: so many bytes, JSON, so deep, and no key that reaches into what objects
 * inherit. A route that reads JSON is handed what was read here.
 *
 * @throws HttpError `REQUEST_TOO_LARGE`, `REQUEST_TYPE`, `REQUEST_JSON`, `REQUEST_CUT`.
 */
export function jsonBodies(maxBytes: number) {
  const tooLarge = (): never => {
    throw new HttpError('REQUEST_TOO_LARGE', `a request's body may have ${maxBytes} bytes.`)
  }
  const counted = bodyLimit({ maxSize: maxBytes, onError: tooLarge })
  return createMiddleware<Env>(async (ctx, next) => {
    if (!WITH_BODY.includes(ctx.req.method)) return next()
    const told = ctx.req.header('content-length')
    if (Number(told ?? 0) > maxBytes) tooLarge()
    if (told === undefined) await whole(() => counted(ctx, async () => {}))
    const text = await whole(() => ctx.req.text())
    if (Buffer.byteLength(text) > maxBytes) tooLarge()
    if (text !== '') ctx.req.bodyCache.json = Promise.resolve(read(ctx, text))
    return next()
  })
}

/** Who stops in the middle of a body is told so, if anybody is there; it is no fault of ours. */
async function whole<Read>(reading: () => Promise<Read>): Promise<Read> {
  try {
    return await reading()
  } catch (cause) {
    throw cause instanceof HttpError ? cause : new HttpError('REQUEST_CUT', 'the body ended before it was whole.')
  }
}

function read(ctx: Context, text: string): unknown {
  const type = ctx.req.header('content-type')
  if (type === undefined || !JSON_TYPE.test(type))
    throw new HttpError('REQUEST_TYPE', 'a body is JSON: send "content-type: application/json" with it.')
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new HttpError('REQUEST_JSON', 'the body is not JSON.')
  }
  refuseStrange(value, 0)
  return value
}

function refuseStrange(value: unknown, depth: number): void {
  if (typeof value !== 'object' || value === null) return
  if (depth >= MAX_DEPTH) throw new HttpError('REQUEST_JSON', `the body is nested deeper than ${MAX_DEPTH} levels.`)
  for (const [key, member] of Object.entries(value)) {
    if (key === '__proto__' || (key === 'constructor' && isObject(member) && Object.hasOwn(member, 'prototype')))
      throw new HttpError('REQUEST_JSON', `the body has a key "${key}", which nothing here takes.`)
    refuseStrange(member, depth + 1)
  }
}
